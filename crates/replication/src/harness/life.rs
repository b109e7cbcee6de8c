//! What a node does and suffers: appends, flushes, learns, copies; ends, loses its disk, starts again.

use floe_model::{Boot, Incarnation, Offset};

use super::Switch;
use super::catalog::{Claim, Entry};
use super::disk::{Disk, Record};
use super::truth::Broken;
use super::world::World;
use crate::backfill;
use crate::message::{Ask, Batch, Checksum, Order, Purpose};
use crate::replica::{Event, Replica};

impl World {
    /// The leader takes a batch of one to three records.
    pub(super) fn append(&mut self, at: usize) -> Result<(), Broken> {
        let node = &mut self.nodes[at];
        let Some(replica) = node
            .replica
            .as_ref()
            .filter(|replica| replica.takes_appends())
        else {
            return Ok(());
        };
        let epoch = replica.leads().expect("it takes appends");
        let base = node.disk.memory.generations[&epoch].end();
        self.next_record += 1;
        let batch = Batch {
            end: base.plus(1 + self.chance.below(3) as u64),
            checksum: Checksum(self.next_record),
        };
        self.truth
            .written((node.member, node.boot), epoch, base, batch)?;
        node.disk.write(Record::Append(epoch, base, batch));
        self.step(at, Event::Appended { epoch, batch })
    }

    pub(super) fn flush(&mut self, at: usize, count: usize) -> Result<(), Broken> {
        if self.nodes[at].replica.is_none() {
            return Ok(());
        }
        for event in self.nodes[at].disk.flush(count) {
            self.step(at, event)?;
        }
        Ok(())
    }

    /// The node applies the next entry of the catalog.
    pub(super) fn learn(&mut self, at: usize) -> Result<(), Broken> {
        let node = &mut self.nodes[at];
        if node.replica.is_none() || self.deaf == Some(at) {
            return Ok(());
        }
        let Some(entry) = self.catalog.entries.get(node.applied) else {
            return Ok(());
        };
        node.applied += 1;
        let index = node.applied as u64;
        match entry.clone() {
            Entry::Opened(opened) => self.step(at, Event::Opened(opened)),
            Entry::Sealed(epoch, end) => {
                let lossy = false;
                self.step(at, Event::Sealed { epoch, end, lossy })
            }
            Entry::Forgotten(of, epoch) if of == Self::id(at) => {
                self.step(at, Event::Forgotten { epoch, index })
            }
            Entry::Forgotten(..) => Ok(()),
        }
    }

    /// A member of the open generation copies the next sealed one that it lacks.
    pub(super) fn backfill(&mut self, at: usize) -> Result<(), Broken> {
        let (me, applied) = (self.nodes[at].member, self.nodes[at].applied);
        let known = &self.catalog.entries[..applied];
        let knows = |epoch| {
            known
                .iter()
                .any(|entry| matches!(entry, Entry::Sealed(of, _) if *of == epoch))
        };
        let is_up = self.nodes[at].replica.is_some();
        if !is_up || !self.catalog.open.members.contains(&me) {
            return Ok(());
        }
        let next = backfill::next(&self.catalog.sealed, me, Offset(0), |sealed| {
            !knows(sealed.epoch)
        });
        let Some(sealed) = next.cloned() else {
            return Ok(());
        };
        let from = self
            .chance
            .pick(&sealed.holders)
            .expect("somebody holds it");
        let as_of = applied as u64;
        let ask = Ask(self.number());
        let epoch = sealed.epoch;
        let claim = Claim {
            member: me,
            epoch,
            as_of,
        };
        self.claiming.insert(ask, claim);
        let order = Order {
            to: me,
            from,
            epoch,
            start: sealed.start,
            end: sealed.end,
            purpose: Purpose::Backfill,
            as_of,
            ask,
        };
        self.step(at, Event::CopyOrdered(order))
    }

    /// The process ends, perhaps with the disk, and is down until it is started.
    pub(super) fn crash(&mut self, at: usize) {
        self.say(format!("node {at}: crash"));
        let kept = self.chance.below(4);
        let node = &mut self.nodes[at];
        node.replica = None;
        node.disk.crash(kept);
    }

    pub(super) fn wipe(&mut self, at: usize) {
        self.say(format!("node {at}: wipe"));
        self.crash(at);
        self.nodes[at].disk = Disk::default();
        self.another_life(at);
    }

    /// A durable suffix of one generation is lost. Rule DamageIsNoticed.
    pub(super) fn damage(&mut self, at: usize) {
        self.say(format!("node {at}: damage"));
        self.crash(at);
        let disk = &mut self.nodes[at].disk;
        let filled = disk
            .durable
            .generations
            .iter()
            .filter(|(_, stored)| !stored.batches.is_empty());
        let filled: Vec<_> = filled
            .map(|(epoch, stored)| (*epoch, stored.batches.len()))
            .collect();
        let Some((epoch, batches)) = self.chance.pick(&filled) else {
            return;
        };
        disk.lose(epoch, self.chance.below(batches));
        if self.shape.switch != Some(Switch::DamageUnnoticed) {
            self.another_life(at);
        }
    }

    fn another_life(&mut self, at: usize) {
        let incarnation = Incarnation(self.number());
        let node = &mut self.nodes[at];
        node.member.incarnation = incarnation;
        let (member, boot) = (node.member, node.boot);
        self.catalog.register(Self::id(at), member, boot);
    }

    /// It starts again: another boot, the catalog learned anew from some prefix on.
    pub(super) fn start(&mut self, at: usize) {
        self.say(format!("node {at}: start"));
        let node = &mut self.nodes[at];
        node.boot = Boot(node.boot.0 + 1);
        node.applied = 0;
        let found = node.disk.recovered();
        let fence = node.disk.durable.fence;
        node.replica = Some(Replica::new(
            node.member,
            node.boot,
            fence,
            &found,
            self.settings,
        ));
        let (member, boot) = (node.member, node.boot);
        self.catalog.register(Self::id(at), member, boot);
    }
}
