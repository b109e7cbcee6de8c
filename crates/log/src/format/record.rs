//! The records of a group: `u8 kind | u8 flags | u16 reserved | u32 length | u32 local partition`, then the body.
//!
//! ```text
//!  1 Batch       the RecordBatch, offset and epoch stamped
//!  2 Pointer     u32 epoch | u64 file base | u32 first block | u32 blocks | u64 base offset | u64 end offset
//!                | u32 crc of the run's header and table | u32 Kafka's checksum of the last batch (0: not known)
//!  3 Bind        topic id 16 | u32 partition | u64 incarnation
//!  4 Generation  u32 epoch | u64 start | descriptor
//!  5 Fence       u32 epoch
//!  6 Truncate    u32 epoch | u64 end
//!  7 Forget      u32 epoch (the fence, which stays): all generations
//!  8 Vote        u32 group | u64 term | u64 node | u64 incarnation
//!  9 Catalog     u32 group | u64 index | u64 term | command
//! 10 Commit      u32 epoch | u64 offset: lazy lower bound
//! 11 Boot        u32 release | u32 sector bytes | i64 wall clock | u64 ring sectors; local partition 0
//! 12 Drop        u32 epoch: one generation
//! ```

use floe_model::{LeaderEpoch, TopicId};

use super::Fields;

/// Bytes before a record's body.
pub const RECORD_HEADER: usize = 12;

/// One record. Bodies are borrowed from the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record<'a> {
    /// Appended bytes.
    Batch(&'a [u8]),
    /// Appended bytes that lie in a segment, flushed before.
    Pointer(Pointer),
    /// A local number for a partition.
    Bind {
        /// Topic.
        topic: TopicId,
        /// Partition.
        partition: u32,
        /// Life of its data.
        incarnation: u64,
    },
    /// A generation opens.
    Generation {
        /// Epoch.
        epoch: LeaderEpoch,
        /// First offset.
        start: u64,
        /// The owner's bytes.
        descriptor: &'a [u8],
    },
    /// No append below this epoch.
    Fence(LeaderEpoch),
    /// A generation ends here.
    Truncate {
        /// Epoch.
        epoch: LeaderEpoch,
        /// Its end from now on.
        end: u64,
    },
    /// All data dropped.
    Forget(LeaderEpoch),
    /// One generation dropped.
    Drop(LeaderEpoch),
    /// A vote of a consensus group.
    Vote {
        /// Group.
        group: u32,
        /// Term.
        term: u64,
        /// Voted for this node ...
        node: u64,
        /// ... in this life.
        incarnation: u64,
    },
    /// An entry of a catalog log.
    Catalog {
        /// Group.
        group: u32,
        /// Place.
        index: u64,
        /// Term.
        term: u64,
        /// Command.
        data: &'a [u8],
    },
    /// A lower bound of the commit offset.
    Commit {
        /// Epoch.
        epoch: LeaderEpoch,
        /// Offset.
        offset: u64,
    },
    /// A process came up.
    Boot {
        /// Release number.
        release: u32,
        /// Sector bytes.
        sector: u32,
        /// Wall clock, milliseconds.
        wall: i64,
        /// Ring sectors.
        ring: u64,
    },
}

/// Where a run lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pointer {
    /// Generation.
    pub epoch: LeaderEpoch,
    /// Base offset in the file's name.
    pub file_base: u64,
    /// First block of the run.
    pub first_block: u32,
    /// Its blocks.
    pub blocks: u32,
    /// Its first offset.
    pub base: u64,
    /// The offset after its last.
    pub end: u64,
    /// Checksum of the run's header and table. It vouches for all of the run: the table for the heads, Kafka's checksums in
    /// the heads for the rest.
    pub header_crc: u32,
    /// Kafka's checksum of the last batch; 0: not known.
    pub last_crc: u32,
}

impl Record<'_> {
    fn kind(&self) -> u8 {
        match self {
            Self::Batch(_) => 1,
            Self::Pointer(_) => 2,
            Self::Bind { .. } => 3,
            Self::Generation { .. } => 4,
            Self::Fence(_) => 5,
            Self::Truncate { .. } => 6,
            Self::Forget(_) => 7,
            Self::Vote { .. } => 8,
            Self::Catalog { .. } => 9,
            Self::Commit { .. } => 10,
            Self::Boot { .. } => 11,
            Self::Drop(_) => 12,
        }
    }

    /// The fixed fields, at the front of the returned array.
    fn fixed(&self) -> ([u8; 48], usize) {
        let mut body = [0; 48];
        let mut at = 0;
        let mut put = |bytes: &[u8]| {
            body[at..at + bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
        };
        match self {
            Self::Batch(_) => {}
            Self::Pointer(pointer) => {
                put(&pointer.epoch.0.to_le_bytes());
                put(&pointer.file_base.to_le_bytes());
                put(&pointer.first_block.to_le_bytes());
                put(&pointer.blocks.to_le_bytes());
                put(&pointer.base.to_le_bytes());
                put(&pointer.end.to_le_bytes());
                put(&pointer.header_crc.to_le_bytes());
                put(&pointer.last_crc.to_le_bytes());
            }
            Self::Bind {
                topic,
                partition,
                incarnation,
            } => {
                put(&topic.0);
                put(&partition.to_le_bytes());
                put(&incarnation.to_le_bytes());
            }
            Self::Generation {
                epoch,
                start: offset,
                ..
            }
            | Self::Truncate { epoch, end: offset }
            | Self::Commit { epoch, offset } => {
                put(&epoch.0.to_le_bytes());
                put(&offset.to_le_bytes());
            }
            Self::Fence(epoch) | Self::Forget(epoch) | Self::Drop(epoch) => {
                put(&epoch.0.to_le_bytes());
            }
            Self::Vote {
                group,
                term,
                node,
                incarnation,
            } => {
                put(&group.to_le_bytes());
                put(&term.to_le_bytes());
                put(&node.to_le_bytes());
                put(&incarnation.to_le_bytes());
            }
            Self::Catalog {
                group, index, term, ..
            } => {
                put(&group.to_le_bytes());
                put(&index.to_le_bytes());
                put(&term.to_le_bytes());
            }
            Self::Boot {
                release,
                sector,
                wall,
                ring,
            } => {
                put(&release.to_le_bytes());
                put(&sector.to_le_bytes());
                put(&wall.to_le_bytes());
                put(&ring.to_le_bytes());
            }
        }
        (body, at)
    }

    fn variable(&self) -> &[u8] {
        match self {
            Self::Batch(bytes)
            | Self::Generation {
                descriptor: bytes, ..
            }
            | Self::Catalog { data: bytes, .. } => bytes,
            _ => &[],
        }
    }

    /// Bytes that it takes in a group.
    pub fn encoded_len(&self) -> usize {
        RECORD_HEADER + self.fixed().1 + self.variable().len()
    }

    /// Hands its parts to `put` in order.
    pub fn encode(&self, local: u32, mut put: impl FnMut(&[u8])) {
        let (fixed, len) = self.fixed();
        let variable = self.variable();
        let mut header = [0; RECORD_HEADER];
        header[0] = self.kind();
        header[4..8].copy_from_slice(&((len + variable.len()) as u32).to_le_bytes());
        header[8..].copy_from_slice(&local.to_le_bytes());
        put(&header);
        put(&fixed[..len]);
        put(variable);
    }
}

/// The records of a group in order; `None` after the last or at the first that is not one ([`Records::is_whole`]).
#[derive(Debug)]
pub struct Records<'a> {
    rest: &'a [u8],
    is_whole: bool,
}

impl<'a> Records<'a> {
    /// Over the record bytes of a group.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self {
            rest: bytes,
            is_whole: true,
        }
    }

    /// Whether everything up to here was a record.
    pub fn is_whole(&self) -> bool {
        self.is_whole
    }

    fn decode(&mut self) -> Option<(u32, Record<'a>)> {
        let mut fields = Fields(self.rest);
        let kind = fields.u8()?;
        let _flags = fields.u8()?;
        let _reserved = fields.u16()?;
        let len = fields.u32()? as usize;
        let local = fields.u32()?;
        let body = fields.bytes(len)?;
        self.rest = fields.0;
        Some((local, decode_body(kind, body)?))
    }
}

impl<'a> Iterator for Records<'a> {
    /// Local partition and record.
    type Item = (u32, Record<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() || !self.is_whole {
            return None;
        }
        let decoded = self.decode();
        self.is_whole = decoded.is_some();
        decoded
    }
}

fn decode_body(kind: u8, body: &[u8]) -> Option<Record<'_>> {
    let mut fields = Fields(body);
    let record = match kind {
        1 => return Some(Record::Batch(body)),
        2 => {
            let pointer = Pointer {
                epoch: LeaderEpoch(fields.u32()?),
                file_base: fields.u64()?,
                first_block: fields.u32()?,
                blocks: fields.u32()?,
                base: fields.u64()?,
                end: fields.u64()?,
                header_crc: fields.u32()?,
                last_crc: fields.u32()?,
            };
            Record::Pointer(pointer)
        }
        3 => Record::Bind {
            topic: TopicId(fields.array()?),
            partition: fields.u32()?,
            incarnation: fields.u64()?,
        },
        4 => {
            return Some(Record::Generation {
                epoch: LeaderEpoch(fields.u32()?),
                start: fields.u64()?,
                descriptor: fields.0,
            });
        }
        5 => Record::Fence(LeaderEpoch(fields.u32()?)),
        6 => Record::Truncate {
            epoch: LeaderEpoch(fields.u32()?),
            end: fields.u64()?,
        },
        7 => Record::Forget(LeaderEpoch(fields.u32()?)),
        8 => Record::Vote {
            group: fields.u32()?,
            term: fields.u64()?,
            node: fields.u64()?,
            incarnation: fields.u64()?,
        },
        9 => {
            return Some(Record::Catalog {
                group: fields.u32()?,
                index: fields.u64()?,
                term: fields.u64()?,
                data: fields.0,
            });
        }
        10 => Record::Commit {
            epoch: LeaderEpoch(fields.u32()?),
            offset: fields.u64()?,
        },
        11 => Record::Boot {
            release: fields.u32()?,
            sector: fields.u32()?,
            wall: fields.i64()?,
            ring: fields.u64()?,
        },
        12 => Record::Drop(LeaderEpoch(fields.u32()?)),
        _ => return None,
    };
    fields.0.is_empty().then_some(record)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encode(local: u32, record: &Record<'_>) -> Vec<u8> {
        let mut bytes = Vec::new();
        record.encode(local, |part| bytes.extend_from_slice(part));
        assert_eq!(bytes.len(), record.encoded_len());
        bytes
    }

    fn all() -> Vec<Record<'static>> {
        let epoch = LeaderEpoch(3);
        vec![
            Record::Batch(b"batch"),
            Record::Pointer(Pointer {
                epoch,
                file_base: 5,
                first_block: 1,
                blocks: 9,
                base: 6,
                end: 8,
                header_crc: 1,
                last_crc: 2,
            }),
            Record::Bind {
                topic: TopicId(*b"0123456789abcdef"),
                partition: 7,
                incarnation: 8,
            },
            Record::Generation {
                epoch,
                start: 4,
                descriptor: b"who",
            },
            Record::Fence(epoch),
            Record::Truncate { epoch, end: 11 },
            Record::Forget(epoch),
            Record::Vote {
                group: 1,
                term: 2,
                node: 3,
                incarnation: 4,
            },
            Record::Catalog {
                group: 1,
                index: 2,
                term: 3,
                data: b"command",
            },
            Record::Commit { epoch, offset: 12 },
            Record::Boot {
                release: 1,
                sector: 4096,
                wall: -1,
                ring: 9,
            },
            Record::Drop(epoch),
        ]
    }

    #[test]
    fn a_pointer_is_laid_out_as_drawn() {
        let bytes = encode(2, &all()[1]);
        assert_eq!(&bytes[..12], b"\x02\0\0\0\x2c\0\0\0\x02\0\0\0");
        assert_eq!(&bytes[12..28], b"\x03\0\0\0\x05\0\0\0\0\0\0\0\x01\0\0\0");
        assert_eq!(&bytes[28..40], b"\x09\0\0\0\x06\0\0\0\0\0\0\0");
        assert_eq!(&bytes[40..], b"\x08\0\0\0\0\0\0\0\x01\0\0\0\x02\0\0\0");
    }

    #[test]
    fn every_kind_reads_back() {
        let bytes: Vec<u8> = all().iter().flat_map(|record| encode(9, record)).collect();
        let mut records = Records::new(&bytes);
        let read: Vec<_> = records.by_ref().collect();
        assert!(records.is_whole());
        assert!(read.iter().all(|(local, _)| *local == 9));
        assert_eq!(
            read.into_iter()
                .map(|(_, record)| record)
                .collect::<Vec<_>>(),
            all()
        );
    }

    #[test]
    fn a_cut_or_unknown_record_ends_the_group_and_says_so() {
        let bytes = encode(1, &all()[4]);
        for cut in 1..bytes.len() {
            let mut records = Records::new(&bytes[..cut]);
            assert_eq!(records.next(), None);
            assert!(!records.is_whole(), "{cut}");
        }
        let mut unknown = bytes;
        unknown[0] = 99;
        let mut records = Records::new(&unknown);
        assert_eq!(records.next(), None);
        assert!(!records.is_whole());
    }
}
