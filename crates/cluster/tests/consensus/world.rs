//! Three nodes, their disks and the network between them, driven as a node drives its voter.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use floe_cluster::consensus::{
    Change, Configuration, Consensus, Entry, Message, Payload, Position, Ready, Refusal, Role,
    Snapshot, Voter,
};
use floe_cluster::{Command, format};
use floe_model::{Incarnation, NodeId};
use floe_replication::Member;

use crate::disk::{Disk, Write, chain};

/// What one `Ready` asked to store, and what goes out behind it.
pub struct Store {
    number: u64,
    writes: Vec<Write>,
    after: Vec<Message>,
}

/// One life of a process.
pub struct Life {
    pub voter: Voter,
    pub storing: VecDeque<Store>,
    applied: u64,
    hash: u64,
}

pub struct Node {
    pub incarnation: u64,
    pub disk: Disk,
    pub life: Option<Life>,
}

/// What was agreed, as seen from outside.
#[derive(Default)]
pub struct Truth {
    pub entries: Vec<Entry>,
    /// Digest of everything up to each index; the first is that of nothing.
    hashes: Vec<u64>,
    leaders: BTreeMap<u64, Member>,
    /// By place and term; the node it was promised by.
    promised: BTreeMap<(u64, u64), (usize, Bytes)>,
    pub configuration: Configuration,
    /// Where that one stands.
    pub changed: u64,
    /// Entries known committed when a read was asked for.
    reads: BTreeMap<u64, u64>,
    pub reads_answered: u64,
    pub replaced: u64,
    pub installs: u64,
}

pub struct World {
    pub seed: u64,
    pub nodes: Vec<Node>,
    pub truth: Truth,
    /// On their way, oldest first.
    pub sent: VecDeque<Bytes>,
    /// This one hears and says nothing.
    pub cut: Option<usize>,
    pub is_lost_expected: bool,
    pub lost: u64,
    lives: u64,
    commands: u32,
}

impl World {
    /// The first node alone, the others empty.
    pub fn new(seed: u64) -> Self {
        let node = || Node {
            incarnation: 1,
            disk: Disk::default(),
            life: None,
        };
        let mut world = Self {
            seed,
            nodes: vec![node(), node(), node()],
            truth: Truth {
                hashes: vec![0],
                ..Truth::default()
            },
            sent: VecDeque::new(),
            cut: None,
            is_lost_expected: false,
            lost: 0,
            lives: 0,
            commands: 0,
        };
        (0..3).for_each(|place| world.restart(place, true));
        world
    }

    /// Three voters that have agreed on something.
    pub fn of_three(seed: u64) -> Self {
        let mut world = Self::new(seed);
        for _ in 0..200 {
            if let Some(leader) = world.leader() {
                world.reconcile(leader);
            }
            world.rounds(1);
        }
        assert_eq!(world.truth.configuration, world.wanted());
        let leader = world.leader().unwrap();
        world.propose(leader);
        world.rounds(5);
        assert!((0..3).all(|place| world.is_whole(place)));
        world
    }

    pub fn member(&self, place: usize) -> Member {
        Member {
            node: NodeId(place as u32),
            incarnation: Incarnation(self.nodes[place].incarnation),
        }
    }

    /// All three, as they are now.
    pub fn wanted(&self) -> Configuration {
        Configuration {
            voters: (0..3).map(|place| self.member(place)).collect(),
            learners: Vec::new(),
        }
    }

    pub fn voter(&mut self, place: usize) -> &mut Voter {
        &mut self.nodes[place].life.as_mut().unwrap().voter
    }

    pub fn applied(&self, place: usize) -> u64 {
        let life = self.nodes[place].life.as_ref();
        life.map_or(0, |life| life.applied)
    }

    pub fn is_whole(&self, place: usize) -> bool {
        let life = self.nodes[place].life.as_ref();
        life.is_some_and(|life| life.applied == self.truth.entries.len() as u64)
    }

    /// The leader of the highest term that is there.
    pub fn leader(&self) -> Option<usize> {
        let lives = self.nodes.iter().enumerate();
        let leaders = lives.filter_map(|(place, node)| {
            let leadership = node.life.as_ref()?.voter.leadership();
            (leadership.role == Role::Leader).then_some((leadership.term, place))
        });
        leaders.max().map(|(_, place)| place)
    }

    /// For the report of a run that failed.
    pub fn describe(&self) -> String {
        let nodes = self.nodes.iter().map(|node| {
            let life = node.life.as_ref().map(|life| {
                let voter = &life.voter;
                format!(
                    "{:?} {:?} {:?}, applied {}, {} stores",
                    voter.leadership(),
                    voter.configuration(),
                    voter.progress(),
                    life.applied,
                    life.storing.len()
                )
            });
            format!("{life:?}, disk up to {}", node.disk.last())
        });
        nodes.collect::<Vec<_>>().join("\n")
    }

    pub fn restart(&mut self, place: usize, campaigns: bool) {
        self.lives += 1;
        let me = self.member(place);
        let is_first = place == 0 && self.nodes[0].incarnation == 1;
        let unrecorded = if is_first {
            Configuration::alone(me)
        } else {
            Configuration::default()
        };
        let node = &mut self.nodes[place];
        let stored = node.disk.stored.clone();
        let (applied, hash) = stored
            .snapshot
            .as_ref()
            .map_or((0, 0), |snapshot| state(&snapshot.data));
        let seed = self.seed.wrapping_mul(1_000_003).wrapping_add(self.lives);
        let mut voter = Voter::resume(me, unrecorded, stored, seed);
        if campaigns && voter.configuration().is_alone(me) {
            voter.campaign();
        }
        node.life = Some(Life {
            voter,
            storing: VecDeque::new(),
            applied,
            hash,
        });
    }

    /// Ends a process; the first writes of what was under way may have reached the disk.
    pub fn crash(&mut self, place: usize, reached: usize) {
        let Some(life) = self.nodes[place].life.take() else {
            return;
        };
        let writes = life.storing.into_iter().flat_map(|store| store.writes);
        for write in writes.take(reached) {
            self.nodes[place].disk.write(write);
        }
        // A leadership that was never durable was that of this life only.
        let term = self.nodes[place].disk.stored.vote.term;
        let promised = &mut self.truth.promised;
        promised.retain(|(_, of), (by, _)| *by != place || *of <= term);
    }

    /// Proposes a command that was never proposed before.
    pub fn propose(&mut self, place: usize) {
        self.commands += 1;
        let command = format::encode(&Command::ReserveProducerIds(NodeId(self.commands)));
        if let Ok(at) = self.voter(place).propose(command.clone()) {
            self.truth
                .promised
                .insert((at.index, at.term), (place, command));
        }
    }

    pub fn read(&mut self, place: usize, token: u64) {
        let known = self.truth.entries.len() as u64;
        if self.voter(place).read(token).is_ok() {
            self.truth.reads.insert(token, known);
        }
    }

    /// What a controller would do to have the three of now as voters.
    pub fn reconcile(&mut self, place: usize) {
        let wanted = self.wanted();
        let voter = self.voter(place);
        let held = voter.configuration().clone();
        let progress = voter.progress();
        let gone = held.members().find(|member| !wanted.contains(*member));
        let new = wanted.members().find(|member| !held.contains(*member));
        let ready = progress
            .iter()
            .find(|progress| held.learners.contains(&progress.member) && progress.stored > 0);
        let change = gone
            .map(Change::Remove)
            .or(ready.map(|progress| Change::Promote(progress.member)))
            .or(new.map(Change::AddLearner));
        if let Some(change) = change {
            // One at a time: the next round asks again.
            drop(voter.change(change));
        }
    }

    pub fn compact(&mut self, place: usize) {
        let life = self.nodes[place].life.as_mut().unwrap();
        let data = [life.applied, life.hash].map(u64::to_le_bytes).concat();
        if life.applied == 0 {
            return;
        }
        let snapshot = life.voter.compact(data.into());
        assert_eq!(snapshot.at.index, life.applied);
        let write = Write::Compact(snapshot);
        match life.storing.back_mut() {
            Some(store) => store.writes.push(write),
            None => self.nodes[place].disk.write(write),
        }
    }

    pub fn deliver(&mut self, bytes: &[u8]) {
        let message = format::decode_message(bytes).unwrap();
        let (from, to) = (message.from.node.0 as usize, message.to.node.0 as usize);
        if self.cut.is_some_and(|cut| cut == from || cut == to) {
            return;
        }
        let Some(life) = self.nodes[to].life.as_mut() else {
            return;
        };
        match life.voter.step(message) {
            Ok(()) | Err(Refusal::NotForMe) => {}
            Err(Refusal::Lost { .. }) if self.is_lost_expected => self.lost += 1,
            Err(refusal) => panic!("seed {}: {refusal}", self.seed),
        }
    }

    fn send(&mut self, messages: &[Message]) {
        let encoded = messages.iter().map(|message| {
            let bytes = format::encode_message(message);
            assert_eq!(format::decode_message(&bytes).unwrap(), *message);
            bytes
        });
        self.sent.extend(encoded.collect::<Vec<_>>());
    }

    /// Everything the voter has to do, but for its stores.
    pub fn drain(&mut self, place: usize) {
        loop {
            let Some(life) = self.nodes[place].life.as_mut() else {
                return;
            };
            let mut ready = life.voter.ready();
            if ready.is_idle() {
                return;
            }
            self.send(&std::mem::take(&mut ready.messages));
            let wants_snapshot = ready.wants_snapshot;
            self.take_in(place, ready);
            if wants_snapshot {
                self.compact(place);
            }
        }
    }

    fn take_in(&mut self, place: usize, ready: Ready) {
        let me = self.member(place);
        let node = &mut self.nodes[place];
        let life = node.life.as_mut().unwrap();
        if let Some(leadership) = ready.leadership
            && leadership.role == Role::Leader
        {
            let leader = *self.truth.leaders.entry(leadership.term).or_insert(me);
            assert_eq!(leader, me, "seed {}: one leader a term", self.seed);
        }
        for (token, index) in &ready.reads {
            let known = self.truth.reads.remove(token);
            assert!(
                known.is_none_or(|known| *index >= known),
                "seed {}: a read at {index} misses something committed before it",
                self.seed
            );
            self.truth.reads_answered += 1;
        }
        if let Some(snapshot) = &ready.install {
            self.truth.check_snapshot(snapshot, self.seed);
            self.truth.installs += 1;
            (life.applied, life.hash) = state(&snapshot.data);
        }
        for entry in &ready.committed {
            assert!(
                node.disk.holds(entry.position()),
                "seed {}: {entry:?} is handed out and not stored",
                self.seed
            );
            assert_eq!(entry.index, life.applied + 1, "seed {}", self.seed);
            life.hash = chain(life.hash, entry);
            life.applied = entry.index;
            self.truth.commit(entry, life.hash, self.seed);
        }
        let writes = ready.vote.into_iter().map(Write::Vote);
        let writes = writes.chain(ready.install.into_iter().map(Write::Install));
        let writes = writes.chain(ready.append.into_iter().map(Write::Append));
        let store = Store {
            number: ready.number,
            writes: writes.collect(),
            after: ready.messages_after,
        };
        life.storing.push_back(store);
        self.pass(place);
    }

    /// Lets go what waits for no write.
    fn pass(&mut self, place: usize) {
        while let Some(life) = self.nodes[place].life.as_mut()
            && let Some(store) = life.storing.pop_front_if(|store| store.writes.is_empty())
        {
            life.voter.stored(store.number);
            self.send(&store.after);
        }
    }

    /// One flush.
    pub fn flush(&mut self, place: usize) {
        let node = &mut self.nodes[place];
        let Some(life) = node.life.as_mut() else {
            return;
        };
        let Some(store) = life.storing.front_mut() else {
            return;
        };
        for write in std::mem::take(&mut store.writes) {
            if let Write::Append(entry) = &write {
                let replaces = entry.index <= node.disk.last();
                self.truth.replaced += u64::from(replaces);
            }
            node.disk.write(write);
        }
        self.pass(place);
        self.drain(place);
    }

    /// Whole rounds without faults but the cut: everyone ticks, everything is delivered and flushed.
    pub fn rounds(&mut self, count: usize) {
        for _ in 0..count {
            for place in 0..3 {
                if let Some(life) = self.nodes[place].life.as_mut() {
                    life.voter.tick();
                }
                self.drain(place);
            }
            for _ in 0..4 {
                for _ in 0..self.sent.len() {
                    let bytes = self.sent.pop_front().unwrap();
                    self.deliver(&bytes);
                }
                for place in 0..3 {
                    self.drain(place);
                    while self.nodes[place]
                        .life
                        .as_ref()
                        .is_some_and(|life| !life.storing.is_empty())
                    {
                        self.flush(place);
                    }
                }
            }
        }
    }
}

/// What a snapshot's data holds: index and digest.
fn state(data: &[u8]) -> (u64, u64) {
    let field = |at: usize| u64::from_le_bytes(data[at..at + 8].try_into().unwrap());
    (field(0), field(8))
}

impl Truth {
    fn commit(&mut self, entry: &Entry, hash: u64, seed: u64) {
        let place = entry.index as usize;
        if let Some(known) = self.entries.get(place - 1) {
            assert_eq!(known, entry, "seed {seed}: committed entries agree");
            assert_eq!(self.hashes[place], hash, "seed {seed}");
            return;
        }
        assert_eq!(self.entries.len() + 1, place, "seed {seed}: no gap");
        if let Some((_, promised)) = self.promised.get(&(entry.index, entry.term)) {
            let is_kept = entry.payload == Payload::Command(promised.clone());
            assert!(
                is_kept,
                "seed {seed}: {entry:?} is at a place that was promised"
            );
        }
        if let Payload::Configuration(configuration) = &entry.payload {
            self.configuration = configuration.clone();
            self.changed = entry.index;
        }
        self.entries.push(entry.clone());
        self.hashes.push(hash);
    }

    fn check_snapshot(&self, snapshot: &Snapshot, seed: u64) {
        let Position { index, term } = snapshot.at;
        let entry = &self.entries[index as usize - 1];
        assert_eq!(entry.term, term, "seed {seed}");
        let hash = self.hashes[index as usize];
        assert_eq!(state(&snapshot.data), (index, hash), "seed {seed}");
    }

    pub fn terms(&self) -> u64 {
        self.leaders.len() as u64
    }

    pub fn last_hash(&self) -> u64 {
        *self.hashes.last().unwrap()
    }
}
