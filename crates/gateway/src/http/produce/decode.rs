//! Decodes a produce body and appends nothing: what the fuzzer and the tests of hostile bytes drive.

use bytes::Bytes;
use floe_model::{PartitionIndex, Timestamp, TopicName};

use super::Problem;
use super::batches::Batches;
use super::fill::{Common, To, fill};

/// How many records a body of this media type holds, as a produce request would take it; the batches they would be
/// appended as are built, too.
pub fn decode(media_type: &str, body: &Bytes) -> Result<usize, Problem> {
    let topic = TopicName::parse("topic")?;
    let common = Common {
        key: None,
        partition: None,
        timestamp: Timestamp(0),
    };
    let to = To {
        topic: &topic,
        partitions: 4,
        home: PartitionIndex(1),
    };
    let mut batches = Batches::new(floe_model::limits::BATCH_BYTES_MAX);
    if !fill(&mut batches, media_type, body, &common, &to)? {
        return Ok(1);
    }
    Ok(batches.finished().map(|(_, count)| count as usize).sum())
}

#[cfg(test)]
mod tests {
    use super::*;
    use floe_wire::batch::{Rules, check};
    use floe_wire::codec::Scratch;

    #[test]
    fn every_body_is_refused_or_becomes_batches_that_the_broker_takes() {
        let random = floe_world::random::Seeded::new(11);
        let next = || floe_world::Random::next_u64(&random);
        let alphabet = br#"{}[]"$:,keyvaluepartition base64json0123 \n"#;
        let seed = br#"[{"key":"a","value":{"$base64":"AA=="},"headers":[{"key":"h","value":null}]},{"value":1}]"#;
        let topic = TopicName::parse("topic").unwrap();
        for round in 0..30_000_u64 {
            let mut body = seed.to_vec();
            for _ in 0..round % 6 {
                let place = next() as usize % body.len();
                body[place] = alphabet[next() as usize % alphabet.len()];
            }
            let body = Bytes::from(body);
            for media in super::super::super::media::STRUCTURED {
                let common = Common {
                    key: None,
                    partition: None,
                    timestamp: Timestamp(0),
                };
                let to = To {
                    topic: &topic,
                    partitions: 4,
                    home: PartitionIndex(1),
                };
                let mut batches = Batches::new(1000);
                let Ok(is_filled) = fill(&mut batches, media, &body, &common, &to) else {
                    continue;
                };
                assert!(is_filled);
                for (batch, count) in batches.finished() {
                    let checked = check(batch, &Rules::LENIENT, &mut Scratch::default()).unwrap();
                    assert_eq!(u64::from(checked.record_count), count);
                }
            }
        }
    }
}
