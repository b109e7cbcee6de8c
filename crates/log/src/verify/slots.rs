//! The two checkpoint slots.

use std::path::PathBuf;

use bytes::Bytes;

use super::{Check, VerifyError};
use crate::format::FormatError;
use crate::format::checkpoint::{Body, SLOT_HEADER, SlotHeader};

/// A slot that is whole.
pub(super) struct Slot {
    pub(super) path: PathBuf,
    pub(super) header: SlotHeader,
    pub(super) body: Body,
}

impl Check<'_> {
    /// The slots that are whole, older first.
    pub(super) fn slots(&mut self) -> Result<Vec<Slot>, VerifyError> {
        let mut slots = Vec::new();
        for name in ["checkpoint.0", "checkpoint.1"] {
            let path = self.dir.join(name);
            if !self.disk.exists(&path) {
                self.find(&path, "is missing");
                continue;
            }
            let bytes = Bytes::from(self.read_whole(&path)?);
            match decode(&bytes) {
                Ok((header, body)) => slots.push(Slot { path, header, body }),
                Err(FormatError::Newer(found)) => {
                    return Err(VerifyError::NewerFormat { path, found });
                }
                Err(error) => self.find(&path, error.to_string()),
            }
        }
        slots.sort_by_key(|slot| slot.header.seq);
        if let [older, newer] = &slots[..] {
            let (older, newer) = (older.header, newer.header);
            if older.seq == newer.seq || older.x > newer.x || older.boot > newer.boot {
                let path = slots[1].path.clone();
                let what = format!(
                    "contradicts the other slot: seq {} and {}, X {} and {}, boot {} and {}",
                    older.seq, newer.seq, older.x, newer.x, older.boot, newer.boot
                );
                self.find(&path, what);
            }
        }
        for slot in &slots {
            self.entries(slot);
        }
        Ok(slots)
    }

    fn entries(&mut self, slot: &Slot) {
        let mut locals = std::collections::BTreeSet::new();
        let mut names = std::collections::BTreeSet::new();
        for entry in &slot.body.partitions {
            if !locals.insert(entry.local) || !names.insert(entry.partition) {
                let what = format!("partition {} is in it twice", entry.partition);
                self.find(&slot.path, what);
            }
            if !entry.generations.is_sorted_by(|a, b| a.epoch < b.epoch) {
                let what = format!("generations of {} are out of order", entry.partition);
                self.find(&slot.path, what);
            }
        }
    }
}

fn decode(bytes: &Bytes) -> Result<(SlotHeader, Body), FormatError> {
    let header = SlotHeader::decode(bytes)?;
    let end = usize::try_from(header.body_bytes)
        .ok()
        .and_then(|len| len.checked_add(SLOT_HEADER))
        .filter(|end| *end <= bytes.len())
        .ok_or(FormatError::Inconsistent("checkpoint length"))?;
    let body = Body::decode(&header, &bytes.slice(SLOT_HEADER..end))?;
    Ok((header, body))
}
