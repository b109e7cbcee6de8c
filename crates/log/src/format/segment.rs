//! Segment files: block 0 says whose batches they are, runs follow, each on a fresh block.
//!
//! ```text
//! block 0   0 magic 8   8 u16 version  10 u16 zero  12 u32 crc of all but itself   16 topic id 16   32 u32 partition
//!          36 u32 epoch  40 u64 base offset  48 u64 journal id  56 u32 descriptor bytes  60 descriptor, zeros
//! run       0 u32 magic  4 u32 crc of header and table, started from topic id, partition, block
//!           8 u64 base offset  16 u32 batches  20 u32 bytes of batches  24 u32 blocks  28 u32 last offset - base
//!          32 i64 max timestamp  40 batches, contiguous;  then the table: u32 head crc a batch; zeros to the block
//! ```
//! The table lies behind the batches, so that batches are gathered in place before their number is known. Kafka's CRC
//! covers a batch from byte 21 on, the table the 21 bytes before.

use floe_model::{LeaderEpoch, TopicPartition};

use super::batch::{self, HEAD_BYTES};
use super::{BLOCK, Fields, FormatError, VERSION, crc};

const MAGIC: &[u8; 8] = b"FloeSegm";
const RUN_MAGIC: u32 = u32::from_le_bytes(*b"FRun");
/// Bytes of a run's header.
pub const RUN_HEADER: usize = 40;
/// Bytes of the table for each batch.
pub const TABLE_ENTRY: usize = 4;
/// Room for a descriptor in block 0; a longer one is only in journal and checkpoint.
pub const DESCRIPTOR_BYTES_MAX: usize = BLOCK - 60;

/// What block 0 says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileHeader {
    /// Whose batches.
    pub partition: TopicPartition,
    /// Generation.
    pub epoch: LeaderEpoch,
    /// First offset.
    pub base: u64,
    /// Journal of the node that wrote it.
    pub journal_id: u64,
    /// The generation's descriptor, empty when too long.
    pub descriptor: Vec<u8>,
}

impl FileHeader {
    /// Block 0.
    pub fn encode(&self, into: &mut [u8]) {
        let into = &mut into[..BLOCK];
        into.fill(0);
        into[..8].copy_from_slice(MAGIC);
        into[8..10].copy_from_slice(&VERSION.to_le_bytes());
        into[16..32].copy_from_slice(&self.partition.topic.0);
        into[32..36].copy_from_slice(&self.partition.partition.0.to_le_bytes());
        into[36..40].copy_from_slice(&self.epoch.0.to_le_bytes());
        into[40..48].copy_from_slice(&self.base.to_le_bytes());
        into[48..56].copy_from_slice(&self.journal_id.to_le_bytes());
        if self.descriptor.len() <= DESCRIPTOR_BYTES_MAX {
            into[56..60].copy_from_slice(&(self.descriptor.len() as u32).to_le_bytes());
            into[60..60 + self.descriptor.len()].copy_from_slice(&self.descriptor);
        }
        let sum = crc(&[&into[..12], &into[16..]]);
        into[12..16].copy_from_slice(&sum.to_le_bytes());
    }

    /// From block 0.
    pub fn decode(bytes: &[u8]) -> Result<Self, FormatError> {
        let short = FormatError::Inconsistent("segment header");
        let block = bytes.get(..BLOCK).ok_or(short)?;
        let mut fields = Fields(block);
        if fields.bytes(8) != Some(MAGIC) {
            return Err(FormatError::Magic("segment"));
        }
        let version = fields.u16().ok_or(short)?;
        let _zero = fields.u16().ok_or(short)?;
        if fields.u32().ok_or(short)? != crc(&[&block[..12], &block[16..]]) {
            return Err(FormatError::Checksum("segment header"));
        }
        if version > VERSION {
            return Err(FormatError::Newer(version));
        }
        (|| {
            let partition = TopicPartition {
                topic: floe_model::TopicId(fields.array()?),
                partition: floe_model::PartitionIndex(fields.u32()?),
            };
            let epoch = LeaderEpoch(fields.u32()?);
            let (base, journal_id) = (fields.u64()?, fields.u64()?);
            let len = fields.u32()? as usize;
            let descriptor = fields.bytes(len)?.to_vec();
            Some(Self {
                partition,
                epoch,
                base,
                journal_id,
                descriptor,
            })
        })()
        .ok_or(short)
    }
}

/// A run's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunHeader {
    /// Checksum of header and table.
    pub crc: u32,
    /// First offset.
    pub base: u64,
    /// Batches.
    pub batches: u32,
    /// Their bytes.
    pub bytes: u32,
    /// Blocks of 4 KiB, all in all.
    pub blocks: u32,
    /// Last offset less the first.
    pub last_delta: u32,
    /// Largest record timestamp.
    pub max_timestamp: i64,
}

/// Blocks that a run takes.
pub fn blocks_for(bytes: usize, batches: usize) -> usize {
    (RUN_HEADER + bytes + batches * TABLE_ENTRY).div_ceil(BLOCK)
}

impl RunHeader {
    /// The offset after its last.
    pub fn end(&self) -> u64 {
        self.base.saturating_add(u64::from(self.last_delta) + 1)
    }

    /// Where its table lies in it.
    pub fn table(&self) -> std::ops::Range<usize> {
        let start = RUN_HEADER + self.bytes as usize;
        start..start + self.batches as usize * TABLE_ENTRY
    }

    /// The header, unchecked but for its magic and sizes that fit together.
    pub fn decode(bytes: &[u8]) -> Result<Self, FormatError> {
        let wrong = FormatError::Inconsistent("run header");
        let mut fields = Fields(bytes);
        if fields.u32().ok_or(wrong)? != RUN_MAGIC {
            return Err(FormatError::Magic("run"));
        }
        let header = (|| {
            Some(Self {
                crc: fields.u32()?,
                base: fields.u64()?,
                batches: fields.u32()?,
                bytes: fields.u32()?,
                blocks: fields.u32()?,
                last_delta: fields.u32()?,
                max_timestamp: fields.i64()?,
            })
        })()
        .ok_or(wrong)?;
        let (bytes, batches) = (header.bytes as usize, header.batches as usize);
        let is_sound = batches > 0
            && bytes >= batches * batch::HEADER_BYTES
            && blocks_for(bytes, batches) == header.blocks as usize;
        if is_sound { Ok(header) } else { Err(wrong) }
    }

    /// Writes it to the front of a run.
    pub fn encode(&self, into: &mut [u8]) {
        into[..4].copy_from_slice(&RUN_MAGIC.to_le_bytes());
        into[4..8].copy_from_slice(&self.crc.to_le_bytes());
        into[8..16].copy_from_slice(&self.base.to_le_bytes());
        into[16..20].copy_from_slice(&self.batches.to_le_bytes());
        into[20..24].copy_from_slice(&self.bytes.to_le_bytes());
        into[24..28].copy_from_slice(&self.blocks.to_le_bytes());
        into[28..32].copy_from_slice(&self.last_delta.to_le_bytes());
        into[32..40].copy_from_slice(&self.max_timestamp.to_le_bytes());
    }

    /// The checksum it should carry at that block of that partition's file, over its own fields and `table`.
    pub fn checksum(&self, partition: TopicPartition, block: u32, table: &[u8]) -> u32 {
        let mut header = [0; RUN_HEADER];
        self.encode(&mut header);
        crc(&[
            &partition.topic.0,
            &partition.partition.0.to_le_bytes(),
            &block.to_le_bytes(),
            &header[..4],
            &header[8..],
            table,
        ])
    }

    /// Checks a whole run: header, table, heads and, if asked, Kafka's own checksums; offsets dense or rising.
    pub fn verify(
        run: &[u8],
        partition: TopicPartition,
        block: u32,
        with_bodies: bool,
    ) -> Result<Self, FormatError> {
        let header = Self::decode(run)?;
        let wrong = FormatError::Inconsistent("run");
        let table = run.get(header.table()).ok_or(wrong)?;
        if header.checksum(partition, block, table) != header.crc {
            return Err(FormatError::Checksum("run header"));
        }
        let batches = &run[RUN_HEADER..header.table().start];
        let mut entries = table.chunks_exact(TABLE_ENTRY);
        let mut seen = 0;
        let mut next = header.base;
        for (place, head) in batch::walk(batches) {
            let entry = entries.next().ok_or(wrong)?;
            if entry != batch::head_crc(head.bytes()).to_le_bytes() {
                return Err(FormatError::Checksum("batch head"));
            }
            if with_bodies && !head.crc_holds() {
                return Err(FormatError::Checksum("batch"));
            }
            if head.base() < next {
                return Err(wrong);
            }
            next = head.end();
            seen = place.end;
        }
        if seen == batches.len() && entries.next().is_none() && next == header.end() {
            Ok(header)
        } else {
            Err(wrong)
        }
    }
}

/// The table of a run: head crc of each batch, in order.
pub fn write_table(batches: &[u8], mut into: impl FnMut(usize, [u8; TABLE_ENTRY])) -> usize {
    let mut count = 0;
    for (_, head) in batch::walk(batches) {
        into(
            count,
            batch::head_crc(&head.bytes()[..HEAD_BYTES]).to_le_bytes(),
        );
        count += 1;
    }
    count
}

#[cfg(test)]
mod tests {
    use floe_model::{Offset, PartitionIndex, TopicId};

    use super::*;

    fn partition() -> TopicPartition {
        TopicPartition {
            topic: TopicId(*b"0123456789abcdef"),
            partition: PartitionIndex(2),
        }
    }

    fn run(block: u32) -> Vec<u8> {
        let mut bytes = vec![0; RUN_HEADER];
        let mut next = 10;
        for records in [2, 3] {
            let mut one = batch::tests::example(records, 30, 99);
            batch::stamp(&mut one, Offset(next), LeaderEpoch(1));
            next += u64::from(records);
            bytes.extend(one);
        }
        let batches = bytes[RUN_HEADER..].to_vec();
        let mut table = Vec::new();
        write_table(&batches, |_, crc| table.extend(crc));
        let mut header = RunHeader {
            crc: 0,
            base: 10,
            batches: 2,
            bytes: batches.len() as u32,
            blocks: 1,
            last_delta: 4,
            max_timestamp: 99,
        };
        header.crc = header.checksum(partition(), block, &table);
        header.encode(&mut bytes);
        bytes.extend(table);
        bytes.resize(BLOCK, 0);
        bytes
    }

    #[test]
    fn a_run_is_laid_out_as_drawn() {
        let bytes = run(7);
        assert_eq!(&bytes[..4], b"FRun");
        assert_eq!(
            &bytes[8..32],
            b"\x0a\0\0\0\0\0\0\0\x02\0\0\0\xb6\0\0\0\x01\0\0\0\x04\0\0\0"
        );
        assert_eq!(&bytes[32..48], b"\x63\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x0a");
        let header = RunHeader::verify(&bytes, partition(), 7, true).unwrap();
        assert_eq!((header.base, header.end(), header.batches), (10, 15, 2));
    }

    #[test]
    fn a_run_at_another_block_or_with_a_flip_is_refused() {
        let mut bytes = run(7);
        assert!(RunHeader::verify(&bytes, partition(), 8, true).is_err());
        for at in (0..40).chain([41, 60, 100, 200, 222, 229]) {
            bytes[at] ^= 4;
            assert!(
                RunHeader::verify(&bytes, partition(), 7, true).is_err(),
                "{at}"
            );
            bytes[at] ^= 4;
        }
    }

    #[test]
    fn block_0_is_laid_out_as_drawn() {
        let header = FileHeader {
            partition: partition(),
            epoch: LeaderEpoch(4),
            base: 5,
            journal_id: 6,
            descriptor: b"who".to_vec(),
        };
        let mut bytes = [1; BLOCK];
        header.encode(&mut bytes);
        assert_eq!(&bytes[..12], b"FloeSegm\x02\0\0\0");
        assert_eq!(&bytes[32..48], b"\x02\0\0\0\x04\0\0\0\x05\0\0\0\0\0\0\0");
        assert_eq!(&bytes[48..64], b"\x06\0\0\0\0\0\0\0\x03\0\0\0who\0");
        assert_eq!(FileHeader::decode(&bytes), Ok(header));
        bytes[4000] ^= 1;
        assert_eq!(
            FileHeader::decode(&bytes),
            Err(FormatError::Checksum("segment header"))
        );
    }
}
