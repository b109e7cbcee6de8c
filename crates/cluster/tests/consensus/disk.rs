//! What one voter has durable: what the log's stream keeps, write by write.

use floe_cluster::consensus::{Entry, Payload, Position, Snapshot, Stored, Vote};

/// One write.
#[derive(Clone, Debug)]
pub enum Write {
    Vote(Vote),
    Install(Snapshot),
    Append(Entry),
    Compact(Snapshot),
}

/// The durable state.
#[derive(Clone, Debug, Default)]
pub struct Disk {
    pub stored: Stored,
}

impl Disk {
    pub fn write(&mut self, write: Write) {
        let stored = &mut self.stored;
        match write {
            Write::Vote(vote) => {
                let held = stored.vote;
                assert!(vote.term >= held.term, "terms rise: {held:?}, {vote:?}");
                assert!(
                    vote.term > held.term
                        || held.voted_for.is_none()
                        || held.voted_for == vote.voted_for,
                    "one vote a term: {held:?}, {vote:?}"
                );
                stored.vote = vote;
            }
            Write::Install(snapshot) => {
                stored.entries.clear();
                stored.snapshot = Some(snapshot);
            }
            Write::Append(entry) => {
                let base = self.base();
                let stored = &mut self.stored;
                assert!(
                    entry.index > base,
                    "what a snapshot covers is not written again"
                );
                stored.entries.truncate((entry.index - base - 1) as usize);
                assert_eq!(
                    stored.entries.len() as u64,
                    entry.index - base - 1,
                    "no gap"
                );
                stored.entries.push(entry);
            }
            Write::Compact(snapshot) => {
                if snapshot.at.index > self.base() {
                    let stored = &mut self.stored;
                    stored
                        .entries
                        .retain(|entry| entry.index > snapshot.at.index);
                    stored.snapshot = Some(snapshot);
                }
            }
        }
    }

    fn base(&self) -> u64 {
        let snapshot = self.stored.snapshot.as_ref();
        snapshot.map_or(0, |snapshot| snapshot.at.index)
    }

    pub fn last(&self) -> u64 {
        self.base() + self.stored.entries.len() as u64
    }

    /// Whether a start from here knows that the change of configuration at `index` is committed.
    pub fn knows(&self, index: u64) -> bool {
        let mut entries = self.stored.entries.iter();
        self.base() >= index
            || entries.any(|entry| matches!(entry.payload, Payload::Known(known) if known >= index))
    }

    /// Whether an entry, or a snapshot with it, is durable.
    pub fn holds(&self, at: Position) -> bool {
        if at.index <= self.base() {
            return true;
        }
        let entry = self
            .stored
            .entries
            .get((at.index - self.base() - 1) as usize);
        entry.is_some_and(|entry| entry.term == at.term)
    }
}

/// A digest that depends on everything applied so far.
pub fn chain(hash: u64, entry: &Entry) -> u64 {
    let bytes: Vec<u8> = match &entry.payload {
        Payload::Blank => vec![0],
        Payload::Known(index) => index.to_le_bytes().to_vec(),
        Payload::Command(command) => command.to_vec(),
        Payload::Configuration(configuration) => format!("{configuration:?}").into_bytes(),
    };
    let fields = [entry.index, entry.term];
    let all = fields
        .iter()
        .flat_map(|field| field.to_le_bytes())
        .chain(bytes);
    all.fold(hash, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
