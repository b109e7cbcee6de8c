//! A voter over the library `raft`.
//!
//! Guarantees: the same calls give the same results: the election timeout is drawn here from the seed. A member's id is known
//! by name before the library hears of it. Nothing that the library would end the process for comes in from a peer.

mod calls;

use std::collections::{BTreeMap, VecDeque};

use floe_replication::Member;
use raft::eraftpb::{self, HardState, MessageType};
use raft::{RawNode, StateRole};

use super::configuration::{id_of, mix};
use super::convert::{body_from, change_of, entry_from, entry_into, snapshot_from, state_of};
use super::recovered::{self, Stored};
use super::store::Store;
use super::{
    Body, Configuration, Consensus, ELECTION_TICKS, Entry, HEARTBEAT_TICKS, Leadership, Message,
    Payload, Position, Ready, Refusal, UNCOMMITTED_BYTES_MAX, Vote,
};
use crate::format;

/// Entries of one message, in bytes as the library counts them: at least 4 each, which bounds their number, too.
const APPEND_BYTES_MAX: u64 = format::ENTRIES_PER_MESSAGE_MAX as u64 * 4;
/// Messages with entries under way to one follower.
const IN_FLIGHT_MAX: usize = 64;
/// Ticks after which a snapshot that nobody confirmed is taken for lost: 5 s.
const SNAPSHOT_TICKS: u32 = 200;
/// Strangers whose ids are remembered.
const NAMES_MAX: usize = 256;

/// See the module.
pub struct Voter {
    me: Member,
    node: RawNode<Store>,
    /// As of the last entry handed out.
    configuration: Configuration,
    /// Index of the last entry handed out.
    handed: u64,
    /// Index of the last change of configuration that was handed out.
    changed: u64,
    /// Up to here entries that were handed out say what is committed.
    known: u64,
    /// In this term, and for this change, it was proposed to say so.
    asked: (u64, u64),
    names: BTreeMap<u64, Member>,
    /// Entries known committed at start, to be handed out first.
    recovered: Vec<Entry>,
    /// Number, and index of the snapshot in it, of each `Ready` whose stores may be under way.
    storing: VecDeque<(u64, Option<u64>)>,
    /// What was asked to be stored last.
    vote: Vote,
    /// The `Ready` that asked for it, until it is stored.
    voting: Option<u64>,
    told: Leadership,
    /// Ticks since a snapshot went to a peer.
    snapshots: BTreeMap<u64, u32>,
    chance: u64,
    timeout: u32,
}

impl Voter {
    /// Goes on from a stored log. `unrecorded`: who votes while the log does not say: this one alone for a node that begins a
    /// cluster (or began one before there were several), nobody for one that is to be added. `seed` spreads election timeouts.
    pub fn resume(me: Member, unrecorded: Configuration, mut stored: Stored, seed: u64) -> Self {
        let start = recovered::start(me, unrecorded, &stored);
        let before = stored.base();
        let last = stored.entries.last().map_or(before, Entry::position);
        let mut names = BTreeMap::new();
        let voted_for = stored.vote.voted_for.map_or(0, |member| {
            names.insert(id_of(member), member);
            id_of(member)
        });
        let hard = HardState {
            term: stored.vote.term.max(last.term),
            vote: if stored.vote.term < last.term {
                0
            } else {
                voted_for
            },
            commit: start.committed,
            ..HardState::default()
        };
        let config = raft::Config {
            id: id_of(me),
            election_tick: ELECTION_TICKS as usize,
            heartbeat_tick: HEARTBEAT_TICKS as usize,
            applied: start.committed,
            max_size_per_msg: APPEND_BYTES_MAX,
            max_inflight_msgs: IN_FLIGHT_MAX,
            check_quorum: true,
            pre_vote: true,
            max_uncommitted_size: UNCOMMITTED_BYTES_MAX as u64,
            ..raft::Config::default()
        };
        let entries = stored.entries.iter().map(entry_into).collect();
        let store = Store::new(
            (hard, state_of(&start.configuration)),
            stored.snapshot.take(),
            before,
            entries,
        );
        // It speaks of every message; what matters is told by `Ready::leadership`.
        let silent = slog::Logger::root(slog::Discard, slog::o!());
        let node = RawNode::new(&config, store, &silent)
            .expect("the settings fit one another and the store knows its state");
        stored
            .entries
            .retain(|entry| entry.index <= start.committed);
        let mut voter = Self {
            me,
            configuration: start.configuration,
            handed: before.index,
            changed: 0,
            known: 0,
            asked: (0, 0),
            recovered: stored.entries,
            storing: VecDeque::new(),
            vote: stored.vote,
            voting: None,
            told: Leadership::default(),
            snapshots: BTreeMap::new(),
            chance: seed,
            timeout: 0,
            names,
            node,
        };
        voter.name(me);
        voter.name_members(&voter.configuration.clone());
        voter.draw();
        voter
    }

    fn name(&mut self, member: Member) {
        self.names.insert(id_of(member), member);
    }

    fn name_members(&mut self, configuration: &Configuration) {
        for member in configuration.members() {
            self.name(member);
        }
    }

    /// Drops the names of strangers when they have become many.
    fn forget_strangers(&mut self) {
        if self.names.len() <= NAMES_MAX || self.node.snap().is_some() {
            return;
        }
        let raft = &self.node.raft;
        let needed = [raft.vote, raft.leader_id, raft.id];
        let configuration = &self.configuration;
        self.names
            .retain(|id, member| needed.contains(id) || configuration.contains(*member));
    }

    /// Whether an id stands for another member.
    fn collides(&self, member: Member) -> bool {
        let held = self.names.get(&id_of(member));
        held.is_some_and(|held| *held != member)
    }

    fn member(&self, id: u64) -> Option<Member> {
        self.names.get(&id).copied()
    }

    /// The next election timeout.
    fn draw(&mut self) {
        self.chance = self.chance.wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.timeout = ELECTION_TICKS + (mix(self.chance) % u64::from(ELECTION_TICKS)) as u32;
    }

    fn is_leader(&self) -> bool {
        self.node.raft.state == StateRole::Leader
    }

    fn must_lead(&self) -> Result<(), Refusal> {
        if self.is_leader() {
            return Ok(());
        }
        let leader = self.leadership().leader;
        Err(Refusal::NotLeader { leader })
    }

    fn last(&self) -> Position {
        let raft = &self.node.raft;
        Position {
            index: raft.raft_log.last_index(),
            term: raft.term,
        }
    }

    fn propose_configuration(&mut self, next: &Configuration) -> Result<Position, Refusal> {
        if self.node.raft.has_pending_conf() {
            return Err(Refusal::Change("another change is under way"));
        }
        // The library checks that this is one change; whoever applies it makes the change from the configuration in the context.
        let moves = self.configuration.moves_to(next);
        let step = moves.first().copied();
        let step = step.ok_or(Refusal::Change("it would change nothing"))?;
        self.name_members(next);
        let context = format::encode_configuration(next).to_vec();
        self.node
            .propose_conf_change(context, change_of(step))
            .map_err(|_| Refusal::Busy)?;
        Ok(self.last())
    }

    /// What the library takes for a bug of its own, since no honest peer does it.
    fn check(&self, message: &Message) -> Result<(), Refusal> {
        if message.to != self.me || message.from == self.me {
            return Err(Refusal::NotForMe);
        }
        message.check().map_err(Refusal::Message)?;
        let named = message.configurations().flat_map(Configuration::members);
        for member in named.chain([message.from]) {
            if self.collides(member) {
                return Err(Refusal::Message("its id is that of another member"));
            }
        }
        let found = self.node.raft.raft_log.last_index();
        if message.term < self.node.raft.term {
            return Ok(());
        }
        match message.body {
            Body::Heartbeat { commit, .. } if commit > found => Err(Refusal::Lost {
                expected: commit,
                found,
            }),
            Body::Appended { stored, .. } if self.is_leader() && stored > found => {
                Err(Refusal::Message("more is stored than was sent"))
            }
            _ => Ok(()),
        }
    }

    fn messages(&mut self, messages: &[eraftpb::Message]) -> Vec<Message> {
        let mut out = Vec::with_capacity(messages.len());
        for message in messages {
            if message.get_msg_type() == MessageType::MsgSnapshot {
                self.snapshots.insert(message.to, 0);
            }
            let body = body_from(message, self.node.store().snapshot());
            // An answer to a stranger that was forgotten meanwhile is lost, as any message may be.
            let (Some(to), Some(body)) = (self.member(message.to), body) else {
                continue;
            };
            out.push(Message {
                from: self.me,
                to,
                term: message.term,
                body,
            });
        }
        out
    }

    /// Takes in the configurations of entries that are handed out.
    fn reconfigure(&mut self, entries: &[Entry]) {
        for entry in entries {
            let Payload::Configuration(next) = &entry.payload else {
                continue;
            };
            self.name_members(next);
            for step in self.configuration.moves_to(next) {
                self.node
                    .apply_conf_change(&change_of(step))
                    .expect("one step at a time never needs a joint configuration");
            }
            self.configuration = next.clone();
        }
    }

    fn new_vote(&mut self) -> Option<Vote> {
        let raft = &self.node.raft;
        let vote = Vote {
            term: raft.term,
            voted_for: self.member(raft.vote),
        };
        (vote != self.vote).then(|| {
            self.vote = vote;
            vote
        })
    }

    fn new_leadership(&mut self) -> Option<Leadership> {
        let leadership = self.leadership();
        (leadership != self.told).then(|| {
            self.told = leadership;
            leadership
        })
    }

    /// Has a leader write down that the last change of configuration is committed, once a term.
    fn make_known(&mut self) {
        let ask = (self.node.raft.term, self.changed);
        if !self.is_leader() || self.changed <= self.known || self.asked == ask {
            return;
        }
        let payload = format::encode_payload(&Payload::Known(self.handed));
        if self.node.propose(Vec::new(), payload.to_vec()).is_ok() {
            self.asked = ask;
        }
    }

    /// What an entry that is handed out says of the configuration.
    fn note(&mut self, entry: &Entry) {
        self.handed = entry.index;
        match &entry.payload {
            Payload::Configuration(_) => self.changed = entry.index,
            Payload::Known(committed) => self.known = self.known.max(*committed),
            Payload::Blank | Payload::Command(_) => {}
        }
    }

    /// One round of the library, as a `Ready`.
    fn advance(&mut self, out: &mut Ready) {
        let mut ready = self.node.ready();
        out.number = ready.number();
        out.vote = self.new_vote();
        if !ready.snapshot().is_empty() {
            let names = &self.names;
            let snapshot = snapshot_from(ready.snapshot(), |id| {
                *names
                    .get(&id)
                    .expect("members of a snapshot are named when it comes")
            });
            self.configuration = snapshot.configuration.clone();
            self.handed = snapshot.at.index;
            self.known = self.known.max(snapshot.at.index);
            self.node.mut_store().install(snapshot.clone());
            out.install = Some(snapshot);
        }
        let entries = ready.take_entries();
        out.append = entries.iter().map(entry_from).collect();
        self.node.mut_store().append(&entries);
        let messages = ready.take_messages();
        let after = ready.take_persisted_messages();
        let committed = ready.take_committed_entries();
        let reads = ready.take_read_states();
        self.node.advance_append_async(ready);
        out.messages = self.messages(&messages);
        out.messages_after = self.messages(&after);
        if out.vote.is_some() {
            self.voting = Some(out.number);
        }
        if self.voting.is_some() {
            // Durable: one that is alone leads before its vote is stored. Were its entries heard of first, a learner could hold others
            // of the same place and term after a crash.
            out.messages_after.append(&mut out.messages);
        }
        out.reads = reads
            .iter()
            .filter_map(|read| token(&read.request_ctx, read.index))
            .collect();
        if let Some(last) = committed.last() {
            let last = last.index;
            let committed: Vec<Entry> = committed.iter().map(entry_from).collect();
            self.reconfigure(&committed);
            self.node.advance_apply_to(last);
            out.committed.extend(committed);
        }
        let installed = out.install.as_ref().map(|snapshot| snapshot.at.index);
        self.storing.push_back((out.number, installed));
    }
}

/// A read of this voter, by the name it was given in [`Consensus::read`].
fn token(context: &[u8], index: u64) -> Option<(u64, u64)> {
    let token = context.get(8..16)?.try_into().ok()?;
    Some((u64::from_le_bytes(token), index))
}

impl std::fmt::Debug for Voter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Voter({:?}, {:?})", self.me, self.leadership())
    }
}
