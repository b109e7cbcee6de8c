//! Reading without a group: every partition from where it was asked, in turn, to its end or without end.
//!
//! Guarantees: without `--follow` it ends where each partition ended when it was first read; with it, every partition is
//! long-polled at once. At most [`AHEAD_MAX`] reads are under way.

use std::collections::VecDeque;

use tokio::task::JoinSet;

use super::print::{Printer, Record};
use super::{Consume, unreadable};
use crate::client::Client;
use crate::client::api::{Batch, items, number};
use crate::exit::{Code, Failure, Outcome};

/// Partitions long-polled at once; more of them take turns.
const AHEAD_MAX: usize = 64;

/// Where reading begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum From {
    /// At the first record kept.
    Earliest,
    /// At the end.
    Latest,
    /// At this offset of each partition.
    Offset(u64),
    /// At the first record not older than this, in milliseconds since 1970.
    Time(i64),
}

impl From {
    /// Reads what stands after `--from`.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        match text {
            "earliest" => return Ok(Self::Earliest),
            "latest" => return Ok(Self::Latest),
            _ => {}
        }
        let time = match text.strip_prefix('@') {
            Some(ms) => ms.parse().ok(),
            None => rfc3339_ms(text),
        };
        match (text.parse(), time) {
            (Ok(offset), _) => Ok(Self::Offset(offset)),
            (_, Some(ms)) => Ok(Self::Time(ms)),
            _ => Err(format!(
                "'{text}' is no place to begin; write earliest, latest, an offset, a time such as \
                 2026-01-31T12:00:00Z, or @ and milliseconds since 1970"
            )),
        }
    }

    fn query(&self) -> String {
        match self {
            Self::Earliest => "offset=earliest".to_owned(),
            Self::Latest => "offset=latest".to_owned(),
            Self::Offset(offset) => format!("offset={offset}"),
            Self::Time(ms) => format!("timestamp={ms}"),
        }
    }
}

/// A time of RFC 3339 with `Z` or an offset, in milliseconds since 1970.
fn rfc3339_ms(text: &str) -> Option<i64> {
    let time: toml::value::Datetime = text.parse().ok()?;
    let (date, clock) = (time.date?, time.time?);
    let offset_minutes = match time.offset? {
        toml::value::Offset::Z => 0,
        toml::value::Offset::Custom { minutes } => i64::from(minutes),
    };
    // Days from the civil calendar (Howard Hinnant, chrono-compatible date algorithms).
    let year = i64::from(date.year) - i64::from(date.month <= 2);
    let month = (i64::from(date.month) + 9) % 12;
    let day_of_year = (153 * month + 2) / 5 + i64::from(date.day) - 1;
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    let days = era * 146_097 + day_of_era - 719_468;
    let second = i64::from(clock.second.unwrap_or_default());
    let seconds = i64::from(clock.hour) * 3600 + i64::from(clock.minute) * 60 + second;
    let ms = i64::from(clock.nanosecond.unwrap_or_default() / 1_000_000);
    Some((days * 86_400 + seconds - offset_minutes * 60) * 1000 + ms)
}

/// One partition under reading.
struct Cursor {
    partition: u64,
    from: String,
    end: Option<u64>,
}

/// Reads the topic as the command says.
pub(super) async fn read(command: &Consume, printer: &mut Printer) -> Outcome {
    let mut client = command.node.client();
    let topic = client.topic(&command.topic).await?;
    let mut waiting: VecDeque<Cursor> = items(&topic, "partitions")
        .iter()
        .filter_map(|partition| partition.get("partition").and_then(number))
        .filter_map(|partition| u64::try_from(partition).ok())
        .filter(|partition| command.partition.is_none_or(|only| only == *partition))
        .map(|partition| Cursor {
            partition,
            from: command.from.query(),
            end: None,
        })
        .collect();
    if waiting.is_empty() {
        return Err(Failure::new(
            Code::Refused,
            format!(
                "topic {} has no partition {}; `floe topic describe {}` lists them",
                command.topic,
                command.partition.unwrap_or_default(),
                command.topic
            ),
        ));
    }
    if command.follow {
        return follow(command, printer, waiting).await;
    }
    while let Some(mut cursor) = waiting.pop_front() {
        if printer.is_full() {
            break;
        }
        let batch = client
            .records(&command.topic, cursor.partition, &cursor.from, 0)
            .await?;
        let end = *cursor.end.get_or_insert(batch.commit_offset);
        print(command, printer, cursor.partition, &batch, Some(end))?;
        if batch.next_offset < end {
            cursor.from = format!("offset={}", batch.next_offset);
            waiting.push_back(cursor);
        }
    }
    printer.flush()
}

async fn follow(
    command: &Consume,
    printer: &mut Printer,
    mut waiting: VecDeque<Cursor>,
) -> Outcome {
    // Where some have to take turns, nobody holds a place for long.
    let wait_ms = if waiting.len() > AHEAD_MAX {
        200
    } else {
        10_000
    };
    let mut reads = JoinSet::new();
    let mut clients: Vec<Client> = Vec::new();
    while !printer.is_full() {
        while reads.len() < AHEAD_MAX {
            let Some(cursor) = waiting.pop_front() else {
                break;
            };
            let client = clients.pop().unwrap_or_else(|| command.node.client());
            reads.spawn(one(client, command.topic.clone(), cursor, wait_ms));
        }
        let Some(read) = reads.join_next().await else {
            break;
        };
        let (client, mut cursor, batch) =
            read.map_err(|error| Failure::failed(format!("a read ended early: {error}")))?;
        let batch = batch?;
        print(command, printer, cursor.partition, &batch, None)?;
        printer.flush()?;
        cursor.from = format!("offset={}", batch.next_offset);
        clients.push(client);
        waiting.push_back(cursor);
    }
    printer.flush()
}

async fn one(
    mut client: Client,
    topic: String,
    cursor: Cursor,
    wait_ms: u64,
) -> (Client, Cursor, Outcome<Batch>) {
    let batch = client
        .records(&topic, cursor.partition, &cursor.from, wait_ms)
        .await;
    (client, cursor, batch)
}

fn print(
    command: &Consume,
    printer: &mut Printer,
    partition: u64,
    batch: &Batch,
    end: Option<u64>,
) -> Outcome {
    for line in batch.lines.split(|byte| *byte == b'\n') {
        if line.is_empty() {
            continue;
        }
        let mut record: Record<'_> =
            serde_json::from_slice(line).map_err(|error| unreadable(&error))?;
        let offset: u64 = record.offset.get().parse().unwrap_or_default();
        if printer.is_full() || end.is_some_and(|end| offset >= end) {
            break;
        }
        record.topic = Some(&command.topic);
        record.partition = Some(partition);
        printer.print(&record)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_to_begin_is_a_word_an_offset_or_a_time() {
        for (text, from) in [
            ("earliest", From::Earliest),
            ("latest", From::Latest),
            ("17", From::Offset(17)),
            ("@17", From::Time(17)),
            ("1970-01-01T00:00:00Z", From::Time(0)),
            ("1970-01-01T01:00:00.250+01:00", From::Time(250)),
            ("2000-02-29T12:30:15Z", From::Time(951_827_415_000)),
            ("2013-01-31T23:59:59Z", From::Time(1_359_676_799_000)),
        ] {
            assert_eq!(From::parse(text), Ok(from), "{text}");
        }
        for text in ["", "yesterday", "-1", "@x", "2013-01-31"] {
            assert!(From::parse(text).is_err(), "{text}");
        }
    }
}
