//! The offset and time index of a segment: kept while it is written, stored when the file is full or the log closes,
//! loaded or rebuilt from run headers when first needed.

use std::sync::Arc;

use floe_model::TopicPartition;
use floe_world::{Buffer, OpenOptions, Pool};

use crate::Failure;
use crate::engine::Engine;
use crate::files::SegmentFile;
use crate::format::BLOCK;
use crate::format::index::{Entry, PAGE_ENTRIES, decode_page, encode_page};
use crate::format::segment::{RUN_HEADER, RunHeader};

/// Blocks read at once while a file is searched for runs.
const WINDOW_BLOCKS: usize = 64;

/// One run of a file, by the index.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunPlace {
    pub(crate) base: u64,
    pub(crate) block: u32,
    /// At most so many blocks.
    pub(crate) blocks: u32,
    /// First offset of the run after it, if there is one in the file.
    pub(crate) next_base: Option<u64>,
    /// Largest timestamp up to its end, and up to the end of the run before.
    pub(crate) max_so_far: i64,
    pub(crate) max_before: i64,
}

/// All runs of a file, loading the index if it is not there; `is_fresh`: from the run headers, whatever is stored.
pub(crate) fn runs(
    engine: &Engine,
    partition: TopicPartition,
    file: &Arc<SegmentFile>,
    is_fresh: bool,
) -> Result<Vec<RunPlace>, Failure> {
    let mut index = file.index.lock();
    if is_fresh {
        index.from_block = index.to_block.unwrap_or(u32::MAX);
        index.entries.clear();
    }
    if index.from_block > 1 {
        let mut scan = Scan::new(engine, partition, file)?;
        let to = index.from_block.min(scan.blocks);
        let mut entries = if is_fresh {
            Vec::new()
        } else {
            stored(engine, file, to)
        };
        scan.run(&mut entries, to)?;
        let mut max = entries.last().map_or(i64::MIN, |entry| entry.max_timestamp);
        for entry in &index.entries {
            max = max.max(entry.max_timestamp);
            entries.push(Entry {
                max_timestamp: max,
                ..*entry
            });
        }
        index.entries = entries;
        index.from_block = 1;
        index.to_block.get_or_insert(to);
    }
    let end = index.to_block.unwrap_or(1);
    // A run at or above a later one holds only appends that were never acknowledged.
    let mut least = u32::MAX;
    let mut live: Vec<Entry> = Vec::new();
    for entry in index.entries.iter().rev() {
        if entry.delta < least {
            least = entry.delta;
            live.push(*entry);
        }
    }
    live.reverse();
    let mut max_before = i64::MIN;
    let places = live.iter().enumerate().map(|(at, entry)| {
        let next = live.get(at + 1);
        let place = RunPlace {
            base: file.base + u64::from(entry.delta),
            block: entry.block,
            blocks: next
                .map_or(end, |next| next.block)
                .saturating_sub(entry.block),
            next_base: next.map(|next| file.base + u64::from(next.delta)),
            max_so_far: entry.max_timestamp,
            max_before,
        };
        max_before = entry.max_timestamp;
        place
    });
    Ok(places.collect())
}

/// What the index file says of the blocks below `to`: whatever is wrong in it is found again in the run headers.
fn stored(engine: &Engine, file: &SegmentFile, to: u32) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    let options = OpenOptions {
        direct: true,
        ..OpenOptions::default()
    };
    let Ok(pages) = engine.disk.open(&file.index_path(), options) else {
        return entries;
    };
    let mut page = block(1);
    let mut offset = 0;
    while let Ok(BLOCK) = pages.read_at(&mut page[..BLOCK], offset) {
        let before = entries.len();
        if decode_page(&page, &mut entries).is_err() {
            entries.truncate(before);
            break;
        }
        offset += BLOCK as u64;
    }
    let mut last = 0;
    let sound = entries.iter().take_while(|entry| {
        let follows = entry.block > last && entry.block < to;
        last = entry.block;
        follows
    });
    let sound = sound.count();
    entries.truncate(sound);
    entries
}

/// Writes the index of a file whose runs are all known. A cache: not flushed, and a failure only costs a rebuild.
pub(crate) fn store(engine: &Engine, file: &SegmentFile) {
    let index = file.index.lock();
    if index.from_block != 1 || index.entries.is_empty() {
        return;
    }
    let entries = index.entries.clone();
    drop(index);
    let path = file.index_path();
    let options = OpenOptions {
        write: true,
        create_new: true,
        direct: true,
        dsync: false,
    };
    if engine.disk.exists(&path) && engine.disk.remove_file(&path).is_err() {
        return;
    }
    let Ok(pages) = engine.disk.open(&path, options) else {
        return;
    };
    let mut page = block(1);
    for (at, entries) in entries.chunks(PAGE_ENTRIES).enumerate() {
        encode_page(entries, &mut page);
        if pages.write_at(&page[..BLOCK], (at * BLOCK) as u64).is_err() {
            return;
        }
    }
}

/// Stores the indexes of all files that are open for writing.
pub(crate) fn store_all(engine: &Engine) {
    for partition in engine.all_partitions() {
        let files = partition.files.lock();
        let open = files.open.as_ref().map(|open| Arc::clone(&open.file));
        drop(files);
        if let Some(file) = open {
            store(engine, &file);
        }
    }
}

fn block(blocks: usize) -> Buffer {
    Pool::new(floe_world::memory::class(blocks * BLOCK))
        .try_get(blocks * BLOCK)
        .expect("a pool made for one piece has it")
}

/// Goes through a file from run to run.
struct Scan<'a> {
    partition: TopicPartition,
    file: &'a SegmentFile,
    handle: Arc<dyn floe_world::disk::File>,
    /// Blocks of the file.
    blocks: u32,
    window: Buffer,
    held: std::ops::Range<u32>,
}

impl<'a> Scan<'a> {
    fn new(
        engine: &Engine,
        partition: TopicPartition,
        file: &'a Arc<SegmentFile>,
    ) -> Result<Self, Failure> {
        let handle = file.handle(engine)?;
        let len = handle
            .len()
            .map_err(Engine::failed("measure", &file.path))?;
        Ok(Self {
            partition,
            file,
            handle,
            blocks: u32::try_from(len / BLOCK as u64).unwrap_or(u32::MAX),
            window: block(WINDOW_BLOCKS),
            held: 0..0,
        })
    }

    /// Extends `entries` to the runs below block `to`, from after the last one known, or from the start if that one
    /// is not where it is said to be.
    fn run(&mut self, entries: &mut Vec<Entry>, to: u32) -> Result<(), Failure> {
        let mut at = 1;
        if let Some(last) = entries.last().copied() {
            match self.header(last.block)? {
                Some(header) => at = last.block + header.blocks,
                None => entries.clear(),
            }
        }
        let mut max = entries.last().map_or(i64::MIN, |entry| entry.max_timestamp);
        while at < to {
            let Some(header) = self.header(at)? else {
                // A damaged run, or what lies behind the last: the next header is looked for block by block.
                at += 1;
                continue;
            };
            max = max.max(header.max_timestamp);
            entries.push(Entry {
                delta: header.base.saturating_sub(self.file.base) as u32,
                block: at,
                max_timestamp: max,
            });
            at += header.blocks;
        }
        Ok(())
    }

    /// The run header at a block, proved by its checksum.
    fn header(&mut self, at: u32) -> Result<Option<RunHeader>, Failure> {
        let bytes = self.load(at)?;
        let Ok(header) = RunHeader::decode(&bytes[..RUN_HEADER]) else {
            return Ok(None);
        };
        if at
            .checked_add(header.blocks)
            .is_none_or(|end| end > self.blocks)
        {
            return Ok(None);
        }
        let range = header.table();
        let mut table = Vec::with_capacity(range.len());
        let mut position = range.start;
        while position < range.end {
            let inside = position % BLOCK;
            let now = (range.end - position).min(BLOCK - inside);
            let bytes = self.load(at + (position / BLOCK) as u32)?;
            table.extend_from_slice(&bytes[inside..inside + now]);
            position += now;
        }
        let is_right = header.checksum(self.partition, at, &table) == header.crc;
        Ok(is_right.then_some(header))
    }

    fn load(&mut self, at: u32) -> Result<&[u8], Failure> {
        if !self.held.contains(&at) {
            let blocks = (self.blocks.saturating_sub(at))
                .min(WINDOW_BLOCKS as u32)
                .max(1);
            let bytes = &mut self.window[..blocks as usize * BLOCK];
            let read = self.handle.read_at(bytes, u64::from(at) * BLOCK as u64);
            let read = read.map_err(Engine::failed("read", &self.file.path))?;
            bytes[read..].fill(0);
            self.held = at..at + blocks;
        }
        let start = (at - self.held.start) as usize * BLOCK;
        Ok(&self.window[start..start + BLOCK])
    }
}
