//! What is asked of a voter, call by call.

use bytes::Bytes;
use floe_replication::Member;
use raft::{SnapshotStatus, StateRole};

use super::super::configuration::id_of;
use super::super::convert::message_into;
use super::super::{
    Body, COMMAND_BYTES_MAX, Change, Configuration, Consensus, Leadership, Message, Position,
    Progress, Ready, Refusal, Role, Snapshot,
};
use super::{SNAPSHOT_TICKS, Voter};

impl Consensus for Voter {
    fn tick(&mut self) {
        for (id, ticks) in std::mem::take(&mut self.snapshots) {
            if ticks >= SNAPSHOT_TICKS {
                self.node.report_snapshot(id, SnapshotStatus::Failure);
            } else {
                self.snapshots.insert(id, ticks + 1);
            }
        }
        // A voter whose disk is busy does not stand: it could neither vote for itself nor lead.
        if !self.is_leader() && !self.storing.is_empty() {
            return;
        }
        let raft = &mut self.node.raft;
        raft.set_randomized_election_timeout(self.timeout as usize);
        self.node.tick();
        if !self.is_leader() && self.node.raft.election_elapsed == 0 {
            self.draw();
        }
    }

    fn step(&mut self, message: Message) -> Result<(), Refusal> {
        self.check(&message)?;
        if message.body == Body::StandNow && !self.storing.is_empty() {
            return Ok(());
        }
        self.forget_strangers();
        self.name(message.from);
        for configuration in message.configurations() {
            self.name_members(configuration);
        }
        // What it refuses comes too late or from nobody it knows: as if it had not come.
        drop(self.node.step(message_into(&message)));
        Ok(())
    }

    fn propose(&mut self, command: Bytes) -> Result<Position, Refusal> {
        self.must_lead()?;
        if command.len() > COMMAND_BYTES_MAX {
            return Err(Refusal::TooLarge(command.len()));
        }
        assert!(!command.is_empty(), "a command says something");
        self.node
            .propose(Vec::new(), command.to_vec())
            .map_err(|_| Refusal::Busy)?;
        Ok(self.last())
    }

    fn change(&mut self, change: Change) -> Result<Position, Refusal> {
        self.must_lead()?;
        if change == Change::Remove(self.me) {
            return Err(Refusal::Change(
                "the leader does not remove itself; transfer first",
            ));
        }
        let next = self.configuration.after(change)?;
        if next.members().any(|member| self.collides(member)) {
            return Err(Refusal::Change("the id is that of another member"));
        }
        self.propose_configuration(&next)
    }

    fn campaign(&mut self) {
        if !self.storing.is_empty() {
            return;
        }
        // Refused only to one that leads.
        drop(self.node.campaign());
    }

    fn transfer(&mut self, to: Member) -> Result<(), Refusal> {
        self.must_lead()?;
        if to == self.me || !self.configuration.voters.contains(&to) {
            return Err(Refusal::Change("leadership goes to another voter"));
        }
        self.node.transfer_leader(id_of(to));
        Ok(())
    }

    fn read(&mut self, token: u64) -> Result<(), Refusal> {
        if self.node.raft.leader_id == raft::INVALID_ID {
            return Err(Refusal::NotLeader { leader: None });
        }
        let mut context = id_of(self.me).to_le_bytes().to_vec();
        context.extend(token.to_le_bytes());
        self.node.read_index(context);
        Ok(())
    }

    fn ready(&mut self) -> Ready {
        let mut out = Ready {
            committed: std::mem::take(&mut self.recovered),
            ..Ready::default()
        };
        if self.node.has_ready() {
            self.advance(&mut out);
        }
        for entry in &out.committed {
            self.note(entry);
        }
        out.leadership = self.new_leadership();
        self.make_known();
        out.wants_snapshot = self.node.store().take_wish();
        out
    }

    fn stored(&mut self, number: u64) {
        let mut installed = None;
        while let Some((_, index)) = self.storing.pop_front_if(|(held, _)| *held <= number) {
            installed = index.or(installed);
        }
        self.voting.take_if(|voting| *voting <= number);
        self.node.on_persist_ready(number);
        if let Some(index) = installed
            && index > self.node.raft.raft_log.applied
        {
            self.node.advance_apply_to(index);
        }
    }

    fn compact(&mut self, catalog: Bytes) -> Snapshot {
        let index = self.handed;
        let term = self.node.store().term_at(index);
        let snapshot = Snapshot {
            at: Position {
                index,
                term: term.expect("the log below the last entry handed out may go, that one not"),
            },
            configuration: self.configuration.clone(),
            data: catalog,
        };
        self.node.mut_store().compact(snapshot.clone());
        snapshot
    }

    fn unreachable(&mut self, peer: Member) {
        let id = id_of(peer);
        self.node.report_unreachable(id);
        if self.snapshots.remove(&id).is_some() {
            self.node.report_snapshot(id, SnapshotStatus::Failure);
        }
    }

    fn me(&self) -> Member {
        self.me
    }

    fn leadership(&self) -> Leadership {
        let raft = &self.node.raft;
        Leadership {
            term: raft.term,
            role: match raft.state {
                StateRole::Leader => Role::Leader,
                StateRole::Candidate | StateRole::PreCandidate => Role::Candidate,
                StateRole::Follower => Role::Follower,
            },
            leader: self.member(raft.leader_id),
        }
    }

    fn configuration(&self) -> &Configuration {
        &self.configuration
    }

    fn progress(&self) -> Vec<Progress> {
        if !self.is_leader() {
            return Vec::new();
        }
        let others = self.configuration.members().filter(|held| *held != self.me);
        others
            .filter_map(|member| {
                let progress = self.node.raft.prs().get(id_of(member))?;
                Some(Progress {
                    member,
                    stored: progress.matched,
                    is_active: progress.recent_active,
                })
            })
            .collect()
    }
}
