//! The fold of a compacted log: the last value of each key.
//!
//! Invariant (P6): the rows equal the fold of the records below `applied`, held by `tests.rs`. Rows live in
//! memory, ordered by key; whoever writes the log bounds their number.

use std::collections::BTreeMap;
use std::ops::Bound;

use floe_model::Offset;
use floe_wire::batch::{self, Refusal, View};
use floe_wire::codec::Scratch;

/// A partition's table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    rows: BTreeMap<Box<[u8]>, Box<[u8]>>,
    bytes: usize,
    applied: Offset,
}

/// A stored batch that cannot be read: the log should never have given it out.
#[derive(Debug, thiserror::Error)]
#[error("batch at offset {offset} of a table's log cannot be read: {source}")]
pub struct Damaged {
    /// Its base offset.
    pub offset: Offset,
    /// Why.
    pub source: Refusal,
}

impl Table {
    /// Without rows, about to apply `applied`.
    pub fn new(applied: Offset) -> Self {
        Self {
            applied,
            ..Self::default()
        }
    }

    /// The next offset to apply.
    pub fn applied(&self) -> Offset {
        self.applied
    }

    /// Applies a batch that begins at `base`; records below the applied offset are in already. All or nothing.
    pub fn apply(
        &mut self,
        view: &View<'_>,
        base: Offset,
        scratch: &mut Scratch,
    ) -> Result<(), Damaged> {
        let damaged = |source| Damaged {
            offset: base,
            source,
        };
        let end = base.plus(u64::from(view.last_offset_delta().max(0).cast_unsigned()) + 1);
        if end <= self.applied {
            return Ok(());
        }
        if !view.is_control() {
            let records = batch::records(view, scratch).map_err(damaged)?;
            let records: Vec<_> = records.collect::<Result<_, _>>().map_err(damaged)?;
            for record in records {
                let offset = base.plus(u64::from(record.offset_delta.max(0).cast_unsigned()));
                if let Some(key) = record.key
                    && offset >= self.applied
                {
                    self.put(key, record.value);
                }
            }
        }
        self.applied = end;
        Ok(())
    }

    /// Goes on at `offset`: what lies before it cannot be read any more, so the rows miss its changes.
    pub fn skip_to(&mut self, offset: Offset) {
        self.applied = self.applied.max(offset);
    }

    /// Sets or, with `None`, deletes a row.
    pub(crate) fn put(&mut self, key: &[u8], value: Option<&[u8]>) {
        let old = match value {
            Some(value) => {
                self.bytes += key.len() + value.len();
                self.rows.insert(key.into(), value.into())
            }
            None => self.rows.remove(key),
        };
        if let Some(old) = old {
            self.bytes -= key.len() + old.len();
        }
    }

    /// The value of a key.
    pub fn get(&self, key: &[u8]) -> Option<&[u8]> {
        self.rows.get(key).map(AsRef::as_ref)
    }

    /// The rows whose key begins with `prefix`, in order.
    pub fn prefix<'a>(&'a self, prefix: &'a [u8]) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        self.rows
            .range::<[u8], _>((Bound::Included(prefix), Bound::Unbounded))
            .take_while(move |(key, _)| key.starts_with(prefix))
            .map(|(key, value)| (key.as_ref(), value.as_ref()))
    }

    /// All rows, in order of keys.
    pub fn rows(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.prefix(&[])
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Bytes of all keys and values.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}
