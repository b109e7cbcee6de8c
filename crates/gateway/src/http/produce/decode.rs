//! Decodes a produce body and does nothing with it: what the fuzzer and the tests of hostile bytes drive.

use bytes::Bytes;

use super::super::media;
use super::{Problem, frames, lines, records};

/// How many records a body of this media type holds, as a produce request would take it.
pub fn decode(media_type: &str, body: &Bytes) -> Result<usize, Problem> {
    match media_type {
        media::NDJSON => Ok(lines::lines(body).count()),
        media::FRAMES => frames::frames(body).try_fold(0, |count, frame| frame.map(|_| count + 1)),
        media::RECORDS => {
            let mut count = 0;
            records::each(body, |_| {
                count += 1;
                Ok(())
            })?;
            Ok(count)
        }
        _ => Ok(1),
    }
}
