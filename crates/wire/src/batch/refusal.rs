//! Why a batch is not taken: what is wrong, at which record, and Kafka's code for it.

use floe_model::Timestamp;

use super::Malformed;
use crate::ErrorCode;
use crate::codec;

/// A refused batch.
#[derive(Debug, thiserror::Error)]
#[error("{}{kind}", .record.map(|r| format!("record {r} of the batch: ")).unwrap_or_default())]
pub struct Refusal {
    /// Place of the record at fault in its batch, from 0, if one is.
    pub record: Option<u32>,
    /// What is wrong.
    pub kind: RefusalKind,
}

/// What is wrong with a batch.
#[derive(Debug, thiserror::Error)]
pub enum RefusalKind {
    /// Not one whole batch.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// Bytes behind the batch: a partition takes one batch per request.
    #[error("{0} bytes follow the record batch; send one batch per partition and request")]
    MoreThanOne(usize),
    /// Stored bytes above `max.message.bytes`.
    #[error("record batch has {bytes} bytes; max.message.bytes is {limit}")]
    TooLarge {
        /// Bytes of the batch.
        bytes: usize,
        /// The limit in force.
        limit: usize,
    },
    /// A format that is not 2.
    #[error("record batch format is {0}; only format 2 is spoken (Kafka 0.11 and later)")]
    Magic(i8),
    /// The checksum does not match: the bytes changed on the way.
    #[error("record batch CRC-32C is {computed:08x}, its header says {stored:08x}; send it again")]
    Crc {
        /// What the header says.
        stored: u32,
        /// What the bytes give.
        computed: u32,
    },
    /// Attribute bits that only a broker may set.
    #[error("a producer must not set {0} in a record batch")]
    BrokersOwn(&'static str),
    /// Count and last offset delta disagree, or no record at all.
    #[error("record batch says {count} records and a last offset delta of {delta}")]
    Count {
        /// Record count in the header.
        count: i32,
        /// Last offset delta in the header.
        delta: i32,
    },
    /// The records region holds fewer or more bytes than its records.
    #[error("records end at byte {at} of {of}")]
    End {
        /// Where the last announced record ended.
        at: usize,
        /// Bytes there are.
        of: usize,
    },
    /// A field of a record reaches beyond the record or is out of range.
    #[error("{field} at byte {at} is out of range")]
    Field {
        /// Which field.
        field: &'static str,
        /// Byte in the uncompressed records region.
        at: usize,
    },
    /// Offset deltas do not run 0, 1, 2, …
    #[error("offset delta is {found}, expected {expected}")]
    Delta {
        /// In the record.
        found: i32,
        /// Its place.
        expected: u32,
    },
    /// Compressed with a codec there is no number for.
    #[error("compression codec {0} is unknown; use none, gzip, snappy, lz4 or zstd")]
    Codec(u8),
    /// The codec does not take the bytes, or gives too many.
    #[error(transparent)]
    Decompress(#[from] codec::Error),
    /// Producer id without a usable epoch or sequence.
    #[error("producer {id} sends epoch {epoch} and base sequence {sequence}")]
    Producer {
        /// Producer id.
        id: i64,
        /// Its epoch.
        epoch: i16,
        /// Sequence of the first record.
        sequence: i32,
    },
    /// Outside `message.timestamp.before.max.ms` and `message.timestamp.after.max.ms`.
    #[error("timestamp {} is outside the accepted {} to {}", .found.0, .from.0, .to.0)]
    Timestamp {
        /// The record's.
        found: Timestamp,
        /// Earliest accepted.
        from: Timestamp,
        /// Latest accepted.
        to: Timestamp,
    },
    /// A compacted topic needs keys.
    #[error("a record without a key cannot enter a compacted topic; give it a key")]
    NoKey,
}

/// What a caller does about a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// The bytes are damaged; sending them again may help.
    Corrupt,
    /// Above a limit.
    TooLarge,
    /// Breaks the format or a rule of the topic.
    Invalid,
    /// Timestamp not accepted.
    Timestamp,
    /// Codec not known.
    Codec,
}

impl Refusal {
    pub(super) fn at(record: u32, kind: RefusalKind) -> Self {
        Self {
            record: Some(record),
            kind,
        }
    }

    /// What kind of refusal it is.
    pub fn class(&self) -> Class {
        match &self.kind {
            RefusalKind::Malformed(_)
            | RefusalKind::Crc { .. }
            | RefusalKind::Decompress(codec::Error::Undecodable { .. }) => Class::Corrupt,
            RefusalKind::Decompress(codec::Error::TooLarge { .. })
            | RefusalKind::TooLarge { .. } => Class::TooLarge,
            RefusalKind::Timestamp { .. } => Class::Timestamp,
            RefusalKind::Codec(_) => Class::Codec,
            RefusalKind::MoreThanOne(_)
            | RefusalKind::Magic(_)
            | RefusalKind::BrokersOwn(_)
            | RefusalKind::Count { .. }
            | RefusalKind::End { .. }
            | RefusalKind::Field { .. }
            | RefusalKind::Delta { .. }
            | RefusalKind::Producer { .. }
            | RefusalKind::NoKey => Class::Invalid,
        }
    }
}

impl Class {
    /// Kafka's code for it.
    pub fn error_code(self) -> ErrorCode {
        match self {
            Self::Corrupt => ErrorCode::CorruptMessage,
            Self::TooLarge => ErrorCode::MessageTooLarge,
            Self::Invalid => ErrorCode::InvalidRecord,
            Self::Timestamp => ErrorCode::InvalidTimestamp,
            Self::Codec => ErrorCode::UnsupportedCompressionType,
        }
    }
}

impl<K: Into<RefusalKind>> From<K> for Refusal {
    fn from(kind: K) -> Self {
        Self {
            record: None,
            kind: kind.into(),
        }
    }
}
