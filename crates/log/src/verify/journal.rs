//! The journal from the older checkpoint to its end, replayed from both checkpoints.

use std::path::PathBuf;
use std::sync::Arc;

use floe_world::File;

use super::replay::{Contradiction, State};
use super::slots::Slot;
use super::{Check, Finding, JournalReport, LogStarts, VerifyError};
use crate::format::identity::Identity;
use crate::format::record::Records;
use crate::format::sector::{
    self, Found, GROUP_SECTORS_MAX, GroupHeader, PAYLOAD, SECTOR, STAMP, Seed,
};

/// What the checkpoints lead to.
#[derive(Default)]
pub(super) struct Replayed {
    /// From the newer slot.
    pub(super) newest: State,
    /// From the older slot, and that slot's file, where it leads to the same journal end.
    older: Option<(PathBuf, State)>,
    pub(super) report: JournalReport,
}

/// A whole group.
struct Group {
    boot: u32,
    header: GroupHeader,
    records: Vec<u8>,
}

/// What is at a place where a group should begin.
enum Place {
    Whole(Group),
    /// Nothing that belongs here: the end, or a group that was cut.
    Missing {
        is_torn: bool,
    },
    /// A sector that fails its checksum, or a group that contradicts itself.
    Bad(String),
}

struct Ring {
    file: Arc<dyn File>,
    path: PathBuf,
    sectors: u64,
    seed: Seed,
}

impl Ring {
    fn sector(&self, lsn: u64) -> Result<Vec<u8>, VerifyError> {
        let mut bytes = vec![0; SECTOR];
        let offset = lsn % self.sectors * SECTOR as u64;
        let read = self.file.read_at(&mut bytes, offset);
        read.map_err(|source| VerifyError::Read {
            path: self.path.clone(),
            source,
        })?;
        Ok(bytes)
    }

    fn group(&self, lsn: u64, boot: u32) -> Result<Place, VerifyError> {
        let first = self.sector(lsn)?;
        let stamp = match sector::inspect(&first, self.seed) {
            Found::Good(stamp) => stamp,
            Found::Zero => return self.after_missing(lsn, boot),
            Found::Bad => return Ok(Place::Bad("a sector fails its checksum".to_owned())),
        };
        if stamp.lsn != lsn || stamp.boot < boot || stamp.index != 0 {
            return self.after_missing(lsn, boot);
        }
        let Some(header) = GroupHeader::decode(&first[STAMP..]) else {
            return Ok(Place::Bad("a group header contradicts itself".to_owned()));
        };
        if header.known > lsn {
            return Ok(Place::Bad("a group knows itself flushed".to_owned()));
        }
        let mut payload = first[STAMP..].to_vec();
        let mut cut = false;
        for index in 1..header.sectors {
            let at = lsn + u64::from(index);
            let next = self.sector(at)?;
            match sector::inspect(&next, self.seed) {
                Found::Good(found)
                    if found.lsn == at && found.boot == stamp.boot && found.index == index =>
                {
                    payload.extend_from_slice(&next[STAMP..STAMP + PAYLOAD]);
                }
                Found::Bad => return Ok(Place::Bad("a sector fails its checksum".to_owned())),
                Found::Good(_) | Found::Zero => cut = true,
            }
        }
        if cut {
            return self.after_missing(lsn, stamp.boot);
        }
        let range = sector::GROUP_HEADER..sector::GROUP_HEADER + header.record_bytes as usize;
        Ok(Place::Whole(Group {
            boot: stamp.boot,
            header,
            records: payload[range].to_vec(),
        }))
    }

    /// Whether what is missing at `lsn` was known flushed by a later group: a lost write, not a torn one.
    fn after_missing(&self, lsn: u64, boot: u32) -> Result<Place, VerifyError> {
        let mut is_torn = false;
        let window = (GROUP_SECTORS_MAX as u64).min(self.sectors - 1);
        for at in lsn..=lsn + window {
            let bytes = self.sector(at)?;
            let Found::Good(stamp) = sector::inspect(&bytes, self.seed) else {
                continue;
            };
            if stamp.lsn != at || stamp.boot < boot {
                continue;
            }
            is_torn = true;
            let header = GroupHeader::decode(&bytes[STAMP..]).filter(|_| stamp.index == 0);
            if at > lsn && header.is_some_and(|header| header.known > lsn) {
                let what = format!("a flushed group is missing, sector {at} knew it flushed");
                return Ok(Place::Bad(what));
            }
        }
        Ok(Place::Missing { is_torn })
    }

    fn next_header(&self, lsn: u64, boot: u32) -> Result<Option<u64>, VerifyError> {
        let window = (GROUP_SECTORS_MAX as u64).min(self.sectors - 1);
        for at in lsn + 1..=lsn + window {
            let bytes = self.sector(at)?;
            if let Found::Good(stamp) = sector::inspect(&bytes, self.seed)
                && (stamp.lsn, stamp.index) == (at, 0)
                && stamp.boot >= boot
            {
                return Ok(Some(at));
            }
        }
        Ok(None)
    }
}

impl Check<'_> {
    /// Replays from each slot to the end.
    pub(super) fn journal(
        &mut self,
        identity: &Identity,
        slots: &[Slot],
    ) -> Result<Replayed, VerifyError> {
        let path = self.dir.join("journal");
        let ring = Ring {
            file: self.open(&path)?,
            path,
            sectors: u64::from(identity.ring_sectors),
            seed: Seed::new(identity.journal_id),
        };
        let mut report = JournalReport {
            ring_sectors: ring.sectors,
            ..JournalReport::default()
        };
        if ring.sectors == 0 {
            self.find(&ring.path, "the identity names a journal of no sectors");
            return Ok(Replayed {
                report,
                ..Replayed::default()
            });
        }
        let mut newest: Option<State> = None;
        let mut older = None;
        for slot in slots.iter().rev() {
            let mut found = Vec::new();
            let mut state = State::from_checkpoint(&slot.body, &mut found);
            // What only the older slot shows is its own: the newer one carries on without it.
            if newest.is_none() {
                self.contradictions(&slot.path, found);
            }
            let replayed = self.replay(&ring, slot, &mut state, newest.is_none())?;
            if newest.is_none() {
                report = replayed;
                newest = Some(state);
                continue;
            }
            report.from = replayed.from;
            report.groups = replayed.groups;
            report.records = replayed.records;
            if replayed.end == report.end {
                older = Some((slot.path.clone(), state));
            } else {
                let what = format!(
                    "leads to journal end {}, the newer one to {}",
                    replayed.end, report.end
                );
                self.find(&slot.path, what);
            }
        }
        if newest.is_none() {
            self.find(
                &self.dir.join("checkpoint.0"),
                "no checkpoint is whole: nothing says what the node holds",
            );
        }
        Ok(Replayed {
            newest: newest.unwrap_or_default(),
            older,
            report,
        })
    }

    /// Both slots lead to the same.
    pub(super) fn compare(&mut self, replayed: &Replayed, log_starts: &LogStarts) {
        let Some((path, older)) = &replayed.older else {
            return;
        };
        if let Some(what) = replayed.newest.differs(older, log_starts) {
            self.find(path, format!("leads elsewhere than the newer one: {what}"));
        }
    }

    fn replay(
        &mut self,
        ring: &Ring,
        slot: &Slot,
        state: &mut State,
        is_newest: bool,
    ) -> Result<JournalReport, VerifyError> {
        let mut report = JournalReport {
            ring_sectors: ring.sectors,
            from: slot.header.x,
            end: slot.header.x,
            boot: slot.header.boot,
            ..JournalReport::default()
        };
        let mut previous = None;
        while report.end < report.from + ring.sectors {
            let at = report.end;
            match ring.group(at, report.boot)? {
                Place::Whole(group) => {
                    if previous.is_some_and(|previous| previous != group.header.previous)
                        && is_newest
                    {
                        self.find(
                            &ring.path,
                            format!(
                                "the group at sector {at} names {} as the one before",
                                group.header.previous
                            ),
                        );
                    }
                    let mut found = Vec::new();
                    report.records += apply(state, &group, &mut found);
                    if is_newest {
                        self.contradictions(&ring.path, found);
                    }
                    report.groups += 1;
                    report.boot = group.boot;
                    report.end += u64::from(group.header.sectors);
                    previous = Some(at);
                }
                Place::Missing { is_torn } => {
                    report.is_torn = is_torn;
                    break;
                }
                Place::Bad(what) => {
                    if is_newest {
                        self.find(&ring.path, format!("sector {at}: {what}"));
                    }
                    match ring.next_header(at, report.boot)? {
                        Some(next) => report.end = next,
                        None => break,
                    }
                    previous = None;
                }
            }
        }
        Ok(report)
    }

    fn contradictions(&mut self, path: &std::path::Path, found: Vec<Contradiction>) {
        self.findings.extend(found.into_iter().map(|found| Finding {
            path: path.to_owned(),
            what: found.what,
            partition: found.partition,
            offsets: found.offsets,
        }));
    }
}

fn apply(state: &mut State, group: &Group, found: &mut Vec<Contradiction>) -> u64 {
    let mut records = Records::new(&group.records);
    let mut count = 0;
    for (local, record) in &mut records {
        count += 1;
        found.extend(state.apply(local, record).err());
    }
    if !records.is_whole() {
        found.push(Contradiction {
            what: "a group ends in something that is not a record".to_owned(),
            partition: None,
            offsets: None,
        });
    }
    count
}
