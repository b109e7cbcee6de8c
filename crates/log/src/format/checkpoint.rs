//! A checkpoint slot: a header sector, then the body, both padded with zeros to blocks.
//!
//! ```text
//! header  0 magic 8   8 u16 version  10 u16 flags (1 scrub)  12 u32 crc of 16..56 and 0..12   16 u64 seq   24 u64 X
//!        32 u32 boot  36 u32 body crc  40 u64 body bytes  48 u32 partitions  52 u32 streams
//! partition  u32 local | topic id 16 | u32 partition | u64 incarnation | u32 fence | u16 flags | u16 generations,
//!            then each generation, then if flags & 2 the producers: u64 at | u16 bytes | the owner's bytes
//!            flags: 1 forgotten, 2 producers, 4 files of dropped generations may be left
//! generation u32 epoch | u64 start | u64 end | u64 synced end | u64 file base | u32 next block (0: no file)
//!            | u32 tail bytes | u16 lost ranges | u16 descriptor bytes | u32 Kafka's checksum of the last batch (0: not
//!            known; from version 2 on); then lost ranges (u64,u64), descriptor, tail
//! stream     u32 group | u32 entries | vote 3 x u64 | u64 snapshot index | u64 its term | u64 its bytes (max: none)
//!            | snapshot; then each entry: u64 index | u64 term | u32 bytes | command
//! ```
//! X: the journal is replayed from this sector on; everything before it is in here or in synced segments.

use bytes::Bytes;
use floe_model::{LeaderEpoch, PartitionIndex, TopicId, TopicPartition};

use super::sector::is_countable;
use super::{BLOCK, Fields, FormatError, VERSION, crc};
use crate::{CatalogEntry, Snapshot, Stream, Vote};

const MAGIC: &[u8; 8] = b"FloeChkp";
/// Bytes of the header sector.
pub const SLOT_HEADER: usize = BLOCK;
const NO_SNAPSHOT: u64 = u64::MAX;
const FORGOTTEN: u16 = 1;
const PRODUCERS: u16 = 2;
const LEFT_OVER: u16 = 4;

/// A slot's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotHeader {
    /// Of the layout.
    pub version: u16,
    /// Damage was met: bad sectors anywhere in the ring are wiped before the next boot group.
    pub scrub: bool,
    /// Rises with each checkpoint.
    pub seq: u64,
    /// Replay from here.
    pub x: u64,
    /// Boot of the process that wrote it.
    pub boot: u32,
    /// Checksum of the body.
    pub body_crc: u32,
    /// Its bytes.
    pub body_bytes: u64,
    /// Partitions in it.
    pub partitions: u32,
    /// Streams in it.
    pub streams: u32,
}

impl Default for SlotHeader {
    fn default() -> Self {
        Self {
            version: VERSION,
            scrub: false,
            seq: 0,
            x: 0,
            boot: 0,
            body_crc: 0,
            body_bytes: 0,
            partitions: 0,
            streams: 0,
        }
    }
}

impl SlotHeader {
    /// The header sector.
    pub fn encode(&self, into: &mut [u8]) {
        let into = &mut into[..SLOT_HEADER];
        into.fill(0);
        into[..8].copy_from_slice(MAGIC);
        into[8..10].copy_from_slice(&self.version.to_le_bytes());
        into[10..12].copy_from_slice(&u16::from(self.scrub).to_le_bytes());
        into[16..24].copy_from_slice(&self.seq.to_le_bytes());
        into[24..32].copy_from_slice(&self.x.to_le_bytes());
        into[32..36].copy_from_slice(&self.boot.to_le_bytes());
        into[36..40].copy_from_slice(&self.body_crc.to_le_bytes());
        into[40..48].copy_from_slice(&self.body_bytes.to_le_bytes());
        into[48..52].copy_from_slice(&self.partitions.to_le_bytes());
        into[52..56].copy_from_slice(&self.streams.to_le_bytes());
        let sum = crc(&[&into[16..56], &into[..12]]);
        into[12..16].copy_from_slice(&sum.to_le_bytes());
    }

    /// From the header sector.
    pub fn decode(bytes: &[u8]) -> Result<Self, FormatError> {
        let short = FormatError::Inconsistent("checkpoint header");
        let bytes = bytes.get(..56).ok_or(short)?;
        let mut fields = Fields(bytes);
        if fields.bytes(8) != Some(MAGIC) {
            return Err(FormatError::Magic("checkpoint"));
        }
        let version = fields.u16().ok_or(short)?;
        let flags = fields.u16().ok_or(short)?;
        if fields.u32().ok_or(short)? != crc(&[&bytes[16..], &bytes[..12]]) {
            return Err(FormatError::Checksum("checkpoint header"));
        }
        if version > VERSION {
            return Err(FormatError::Newer(version));
        }
        let header = (|| {
            Some(Self {
                version,
                scrub: flags & 1 == 1,
                seq: fields.u64()?,
                x: fields.u64()?,
                boot: fields.u32()?,
                body_crc: fields.u32()?,
                body_bytes: fields.u64()?,
                partitions: fields.u32()?,
                streams: fields.u32()?,
            })
        })();
        header
            .filter(|header| is_countable(header.x, header.boot) && header.seq < u64::MAX)
            .ok_or(short)
    }
}

/// One partition in a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionEntry {
    /// Its number in the journal.
    pub local: u32,
    /// Which.
    pub partition: TopicPartition,
    /// Life of its data.
    pub incarnation: u64,
    /// Its fence.
    pub fence: LeaderEpoch,
    /// Whether only the fence is left.
    pub is_forgotten: bool,
    /// Whether files of dropped generations may still be there.
    pub has_left_over: bool,
    /// In order of epoch.
    pub generations: Vec<GenerationEntry>,
    /// Producer snapshot: at offset, bytes.
    pub producers: Option<(u64, Bytes)>,
}

/// One generation in a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GenerationEntry {
    /// Epoch.
    pub epoch: LeaderEpoch,
    /// First offset.
    pub start: u64,
    /// End.
    pub end: u64,
    /// End of what is in synced segments; the rest is the tail.
    pub synced: u64,
    /// Base offset in the name of its newest file.
    pub file_base: u64,
    /// First free block there; 0: there is no file.
    pub next_block: u32,
    /// Known losses.
    pub lost: Vec<(u64, u64)>,
    /// The owner's bytes.
    pub descriptor: Bytes,
    /// Kafka's checksum of the last batch, if it is known.
    pub last: Option<u32>,
    /// Whole batches from `synced` to `end`.
    pub tail: Bytes,
}

impl PartitionEntry {
    /// Appends the entry, with `tails[i]` as the parts of the tail of generation i (in place of its `tail`).
    pub fn encode(&self, tails: &[Vec<Bytes>], into: &mut Vec<u8>) {
        into.extend(self.local.to_le_bytes());
        into.extend(self.partition.topic.0);
        into.extend(self.partition.partition.0.to_le_bytes());
        into.extend(self.incarnation.to_le_bytes());
        into.extend(self.fence.0.to_le_bytes());
        let flags = (u16::from(self.is_forgotten) * FORGOTTEN)
            | (u16::from(self.producers.is_some()) * PRODUCERS)
            | (u16::from(self.has_left_over) * LEFT_OVER);
        into.extend(flags.to_le_bytes());
        into.extend((self.generations.len() as u16).to_le_bytes());
        for (generation, tail) in self.generations.iter().zip(tails) {
            into.extend(generation.epoch.0.to_le_bytes());
            into.extend(generation.start.to_le_bytes());
            into.extend(generation.end.to_le_bytes());
            into.extend(generation.synced.to_le_bytes());
            into.extend(generation.file_base.to_le_bytes());
            into.extend(generation.next_block.to_le_bytes());
            let tail_bytes: usize = tail.iter().map(Bytes::len).sum();
            into.extend((tail_bytes as u32).to_le_bytes());
            into.extend((generation.lost.len() as u16).to_le_bytes());
            into.extend((generation.descriptor.len() as u16).to_le_bytes());
            into.extend(generation.last.unwrap_or(0).to_le_bytes());
            for (from, to) in &generation.lost {
                into.extend(from.to_le_bytes());
                into.extend(to.to_le_bytes());
            }
            into.extend(&generation.descriptor);
            for part in tail {
                into.extend(part);
            }
        }
        if let Some((at, bytes)) = &self.producers {
            into.extend(at.to_le_bytes());
            into.extend((bytes.len() as u16).to_le_bytes());
            into.extend(bytes);
        }
    }

    fn decode(version: u16, fields: &mut Fields<'_>, body: &Bytes) -> Option<Self> {
        let local = fields.u32()?;
        let topic = TopicId(fields.array()?);
        let partition = PartitionIndex(fields.u32()?);
        let incarnation = fields.u64()?;
        let fence = LeaderEpoch(fields.u32()?);
        let flags = fields.u16()?;
        let count = fields.u16()?;
        let mut generations = Vec::new();
        for _ in 0..count {
            generations.push(GenerationEntry::decode(version, fields, body)?);
        }
        let producers = if flags & PRODUCERS == 0 {
            None
        } else {
            let at = fields.u64()?;
            let len = usize::from(fields.u16()?);
            Some((at, body.slice_ref(fields.bytes(len)?)))
        };
        Some(Self {
            local,
            partition: TopicPartition { topic, partition },
            incarnation,
            fence,
            is_forgotten: flags & FORGOTTEN != 0,
            has_left_over: flags & LEFT_OVER != 0,
            generations,
            producers,
        })
    }
}

impl GenerationEntry {
    fn decode(version: u16, fields: &mut Fields<'_>, body: &Bytes) -> Option<Self> {
        let epoch = LeaderEpoch(fields.u32()?);
        let (start, end, synced) = (fields.u64()?, fields.u64()?, fields.u64()?);
        let (file_base, next_block) = (fields.u64()?, fields.u32()?);
        let tail_bytes = fields.u32()? as usize;
        let (lost_count, descriptor_bytes) = (fields.u16()?, usize::from(fields.u16()?));
        let last = if version < 2 { 0 } else { fields.u32()? };
        let mut lost = Vec::new();
        for _ in 0..lost_count {
            lost.push((fields.u64()?, fields.u64()?));
        }
        let descriptor = body.slice_ref(fields.bytes(descriptor_bytes)?);
        let tail = body.slice_ref(fields.bytes(tail_bytes)?);
        let is_sound = start <= end && synced <= end;
        is_sound.then_some(Self {
            epoch,
            start,
            end,
            synced,
            file_base,
            next_block,
            lost,
            descriptor,
            last: (last != 0).then_some(last),
            tail,
        })
    }
}

/// Appends a stream.
pub fn encode_stream(stream: &Stream, into: &mut Vec<u8>) {
    into.extend(stream.group.to_le_bytes());
    into.extend((stream.entries.len() as u32).to_le_bytes());
    let vote = stream.vote;
    for field in [vote.term, vote.node, vote.incarnation] {
        into.extend(field.to_le_bytes());
    }
    let (index, term, data) = match &stream.snapshot {
        Some(snapshot) => (snapshot.index, snapshot.term, Some(&snapshot.data)),
        None => (0, 0, None),
    };
    into.extend(index.to_le_bytes());
    into.extend(term.to_le_bytes());
    into.extend(
        data.map_or(NO_SNAPSHOT, |data| data.len() as u64)
            .to_le_bytes(),
    );
    if let Some(data) = data {
        into.extend(data);
    }
    for entry in &stream.entries {
        into.extend(entry.index.to_le_bytes());
        into.extend(entry.term.to_le_bytes());
        into.extend((entry.data.len() as u32).to_le_bytes());
        into.extend(&entry.data);
    }
}

fn decode_stream(fields: &mut Fields<'_>, body: &Bytes) -> Option<Stream> {
    let group = fields.u32()?;
    let count = fields.u32()?;
    let vote = Vote {
        term: fields.u64()?,
        node: fields.u64()?,
        incarnation: fields.u64()?,
    };
    let (index, term, len) = (fields.u64()?, fields.u64()?, fields.u64()?);
    let snapshot = if len == NO_SNAPSHOT {
        None
    } else {
        let data = body.slice_ref(fields.bytes(usize::try_from(len).ok()?)?);
        Some(Snapshot { index, term, data })
    };
    let mut entries = Vec::new();
    for _ in 0..count {
        let (index, term) = (fields.u64()?, fields.u64()?);
        let len = fields.u32()? as usize;
        let data = body.slice_ref(fields.bytes(len)?);
        entries.push(CatalogEntry { index, term, data });
    }
    Some(Stream {
        group,
        vote,
        snapshot,
        entries,
    })
}

/// What a checkpoint says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Body {
    /// Partitions, forgotten ones too.
    pub partitions: Vec<PartitionEntry>,
    /// Catalog streams.
    pub streams: Vec<Stream>,
}

impl Body {
    /// From a body whose length is the header's.
    pub fn decode(header: &SlotHeader, body: &Bytes) -> Result<Self, FormatError> {
        if crc(&[body]) != header.body_crc {
            return Err(FormatError::Checksum("checkpoint body"));
        }
        let mut fields = Fields(body);
        let decoded = (|| {
            let mut out = Self::default();
            for _ in 0..header.partitions {
                out.partitions
                    .push(PartitionEntry::decode(header.version, &mut fields, body)?);
            }
            for _ in 0..header.streams {
                out.streams.push(decode_stream(&mut fields, body)?);
            }
            fields.0.is_empty().then_some(out)
        })();
        decoded.ok_or(FormatError::Inconsistent("checkpoint body"))
    }
}

#[cfg(test)]
mod tests;
