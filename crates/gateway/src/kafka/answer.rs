//! What goes out for one request: a frame in one or more parts, so that records leave by reference.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::{BufMut, Bytes, BytesMut};
use floe_wire::ErrorCode;
use kacrab_protocol::{KafkaString, KafkaUuid, ProtocolError};

use super::api::Key;
use super::request::{Close, Request};
use floe_model::TopicId;

/// A whole frame, its length first.
#[derive(Debug, Default)]
pub(super) struct Answer {
    parts: Vec<Bytes>,
    bytes: usize,
}

/// Largest answer without records: lists and descriptions beyond it must be asked for in parts.
pub(super) const ANSWER_BYTES_MAX: usize = 256 * 1024 * 1024;
/// How many parts one vectored write takes.
const SLICES_MAX: usize = 64;

impl Answer {
    /// Encodes a message behind the response header.
    pub(super) fn encode(
        request: &Request,
        write: impl FnOnce(&mut BytesMut, i16) -> Result<(), ProtocolError>,
    ) -> Result<Self, Close> {
        Self::encode_as(request, request.version, write)
    }

    /// As [`Answer::encode`], in another version than asked.
    pub(super) fn encode_as(
        request: &Request,
        version: i16,
        write: impl FnOnce(&mut BytesMut, i16) -> Result<(), ProtocolError>,
    ) -> Result<Self, Close> {
        let mut out = Self::begin(request);
        let refuse = |reason: String| Close::Unencodable {
            api: request.api.name,
            version,
            reason,
        };
        write(&mut out, version).map_err(|e| refuse(e.to_string()))?;
        if out.len() > ANSWER_BYTES_MAX {
            return Err(refuse(format!(
                "{} bytes; the limit is {ANSWER_BYTES_MAX}",
                out.len()
            )));
        }
        Ok(Self::finish(vec![out.freeze()]))
    }

    /// Room for the length and the response header: correlation id, and tagged fields for flexible versions, but
    /// never for ApiVersions, whose asker does not know the version yet (KIP-511).
    pub(super) fn begin(request: &Request) -> BytesMut {
        let mut out = BytesMut::with_capacity(256);
        out.put_i32(0);
        out.put_i32(request.header.correlation_id);
        if request.is_flexible() && request.api.key != Key::ApiVersions {
            out.put_u8(0);
        }
        out
    }

    /// Closes the frame: its length is written over the first four bytes of the first part.
    pub(super) fn finish(mut parts: Vec<Bytes>) -> Self {
        let bytes: usize = parts.iter().map(Bytes::len).sum();
        let length = i32::try_from(bytes - 4).expect("answers are bounded far below 2 GiB");
        if let Some(first) = parts.first_mut() {
            let mut head = BytesMut::from(std::mem::take(first));
            head[..4].copy_from_slice(&length.to_be_bytes());
            *first = head.freeze();
        }
        Self { parts, bytes }
    }

    /// Bytes of the frame.
    pub(super) fn len(&self) -> usize {
        self.bytes
    }

    /// Its parts, in order.
    pub(super) fn into_parts(self) -> Vec<Bytes> {
        self.parts
    }
}

/// Bytes waiting to be written, in order; they count among those of all connections while they wait.
#[derive(Debug)]
pub(super) struct Outbox<'a> {
    parts: VecDeque<Bytes>,
    bytes: usize,
    all: &'a AtomicUsize,
}

impl Drop for Outbox<'_> {
    fn drop(&mut self) {
        self.all.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl<'a> Outbox<'a> {
    /// An empty one that counts into `all`.
    pub(super) fn new(all: &'a AtomicUsize) -> Self {
        Self {
            parts: VecDeque::new(),
            bytes: 0,
            all,
        }
    }

    pub(super) fn push(&mut self, answer: Answer) {
        self.bytes += answer.len();
        self.all.fetch_add(answer.len(), Ordering::Relaxed);
        self.parts.extend(answer.into_parts());
    }

    pub(super) fn len(&self) -> usize {
        self.bytes
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// The next parts, for one vectored write.
    pub(super) fn slices(&self) -> Vec<IoSlice<'_>> {
        self.parts
            .iter()
            .take(SLICES_MAX)
            .map(|part| IoSlice::new(part))
            .collect()
    }

    /// Takes away what was written.
    pub(super) fn advance(&mut self, mut written: usize) {
        self.bytes -= written;
        self.all.fetch_sub(written, Ordering::Relaxed);
        while let Some(front) = self.parts.front_mut() {
            if front.len() > written {
                bytes::Buf::advance(front, written);
                return;
            }
            written -= front.len();
            self.parts.pop_front();
        }
    }
}

/// A string of a message.
pub(super) fn text(text: &str) -> KafkaString {
    KafkaString::new(Bytes::copy_from_slice(text.as_bytes())).unwrap_or_default()
}

/// A topic id of a message.
pub(super) fn uuid(id: TopicId) -> KafkaUuid {
    let bits = u128::from_be_bytes(id.0);
    KafkaUuid::from_parts((bits >> 64) as u64, bits as u64)
}

/// The topic id a message names.
pub(super) fn topic_id(uuid: KafkaUuid) -> TopicId {
    TopicId(uuid.to_bytes())
}

/// No error.
pub(super) const NONE: i16 = 0;

/// The number of a code.
pub(super) fn code(code: ErrorCode) -> i16 {
    code.code()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outbox_gives_back_every_byte_once_whatever_the_writes_take() {
        for step in 1..9 {
            let all = AtomicUsize::new(0);
            let mut outbox = Outbox::new(&all);
            outbox.push(Answer::finish(vec![
                Bytes::from_static(b"\0\0\0\0ab"),
                Bytes::new(),
                Bytes::from_static(b"cde"),
            ]));
            outbox.push(Answer::finish(vec![Bytes::from_static(b"\0\0\0\0f")]));
            let mut seen = Vec::new();
            while !outbox.is_empty() {
                let all: Vec<u8> = outbox.slices().iter().flat_map(|s| s.to_vec()).collect();
                let take = step.min(all.len());
                seen.extend_from_slice(&all[..take]);
                outbox.advance(take);
            }
            assert_eq!(seen, b"\0\0\0\x05abcde\0\0\0\x01f");
            assert_eq!(all.load(Ordering::Relaxed), 0);
        }
    }
}
