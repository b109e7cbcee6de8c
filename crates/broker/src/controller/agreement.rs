//! This node's part in agreeing on the catalog: its voter, the catalog as of the last entry, and what was asked for here.
//!
//! ```text
//! time, messages, proposals, stores ─► step ─► Send, Store, Carry (effects, then answers), Shorten, Led
//! ```
//! Guarantees: pure: the same events give the same commands, so that the simulator drives what ships. What the voter must not say
//! before its log has it stays in the [`Store`] until [`Event::Stored`]. A command asked for here is answered with the entry that
//! holds it, after that entry is in effect here, so that whoever asked reads what it wrote. An entry that this release cannot read
//! ends the node before anything is stored or applied of it. A node that is alone is a group of one: the same steps, no time needed.

mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use floe_cluster::consensus::{
    self, Body, Configuration, Leadership, Message, Position, Ready, Refusal, Role, Stored, TICK,
    Voter,
};
use floe_cluster::format::{self, Answered, Undecodable};
use floe_cluster::plan::{Group, voters};
use floe_cluster::{Catalog, Consensus, Entry};
use floe_log::Stream;
use floe_model::{Incarnation, NodeId};
use floe_replication::Member;

use super::asks::{Asks, Ticket, Try, WITHIN};
use super::stream;
use crate::exchange::Heard;
use crate::peers::{self, Call, Peer};
pub(crate) use words::{Carry, Do, Event, Over, Store};

/// Entries after which a snapshot takes their place.
const ENTRIES_MAX: usize = 512;
/// Bytes of entries after which a snapshot takes their place.
const ENTRY_BYTES_MAX: usize = 1 << 20;
/// Ticks made up for at once: a process that hung does not take that for silence of the others.
const TICKS_MAX: u32 = 4;

/// See the module.
pub(crate) struct Agreement {
    voter: Box<dyn Consensus>,
    catalog: Arc<Catalog>,
    asks: Asks,
    /// Learned by snapshot, and the number of the store that is to hold it.
    installing: Option<(u64, Catalog)>,
    carry: Carry,
    has_news: bool,
    /// What was stored since the last snapshot.
    entries: usize,
    entry_bytes: usize,
    connected: BTreeMap<NodeId, Peer>,
    /// Of the last entry that was applied in this life.
    applied_term: u64,
    ticked_at: Option<Duration>,
}

impl Agreement {
    /// Takes up what the log kept. `unrecorded`: who votes while the log does not say. `seed` spreads election timeouts. One that is
    /// alone leads at once.
    pub(crate) fn resume(
        me: Member,
        unrecorded: Configuration,
        stream: &Stream,
        seed: u64,
    ) -> Result<Self, Undecodable> {
        let mut catalog = stream::base(stream)?;
        let stored = Stored {
            vote: stream::vote(stream.vote),
            snapshot: stream
                .snapshot
                .as_ref()
                .map(|snapshot| consensus::Snapshot {
                    at: Position {
                        index: snapshot.index,
                        term: snapshot.term,
                    },
                    configuration: catalog.configuration.clone(),
                    data: snapshot.data.clone(),
                }),
            entries: stream::entries(stream)?,
        };
        let mut voter = Voter::resume(me, unrecorded, stored, seed);
        // What is known to be agreed was applied in an earlier life; its effects are taken from the catalog, at start.
        for entry in voter.ready().committed {
            catalog.apply_entry(entry.index, entry.payload)?;
        }
        if voter.configuration().is_alone(me) {
            voter.campaign();
        }
        let sizes = stream.entries.iter().map(|entry| entry.data.len());
        Ok(Self {
            entries: stream.entries.len(),
            entry_bytes: sizes.sum(),
            voter: Box::new(voter),
            catalog: Arc::new(catalog),
            asks: Asks::default(),
            installing: None,
            carry: Carry::default(),
            has_news: false,
            connected: BTreeMap::new(),
            applied_term: 0,
            ticked_at: None,
        })
    }

    /// The catalog as of the last entry.
    pub(crate) fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    /// The cluster is this one; from the node's identity.
    pub(crate) fn belongs_to(&mut self, cluster: floe_cluster::ClusterId) {
        Arc::make_mut(&mut self.catalog).cluster = cluster;
    }

    /// Whether nobody else votes or listens: then no time need pass for anything.
    pub(crate) fn is_alone(&self) -> bool {
        let configuration = self.voter.configuration();
        configuration.is_alone(self.voter.me()) && configuration.learners.is_empty()
    }

    /// Who leads.
    pub(crate) fn leadership(&self) -> Leadership {
        self.voter.leadership()
    }

    /// Whether this node leads, and its catalog has all that was agreed before it did.
    pub(crate) fn leads(&self) -> bool {
        let Leadership { role, term, .. } = self.leadership();
        role == Role::Leader && self.applied_term == term
    }

    /// Commands that are not answered yet.
    pub(crate) fn waiting(&self) -> usize {
        self.asks.len()
    }

    /// Proposes the next change towards a group of those nodes and this one, if this one leads. A node's life is the registered one;
    /// of one that never registered the one it has proven; of one that is not there either the one it was taken in as.
    pub(crate) fn reform(&mut self, listed: &BTreeSet<NodeId>) {
        if self.leadership().role != Role::Leader {
            return;
        }
        let me = self.voter.me();
        let configuration = self.voter.configuration();
        let life_of = |node: &NodeId| {
            let registered = self.catalog.nodes.get(node).map(|node| node.incarnation);
            let registered = registered.filter(|life| *life != Incarnation(0));
            let connected = || self.connected.get(node).map(|peer| peer.incarnation);
            let held = || configuration.members().find(|held| held.node == *node);
            let life = registered.or_else(connected);
            life.or_else(|| held().map(|held| held.incarnation))
        };
        let others = listed.iter().filter(|node| **node != me.node);
        let lives = others.filter_map(|node| Some((*node, life_of(node)?)));
        let wanted = lives.chain([(me.node, me.incarnation)]).collect();
        let group = Group {
            me,
            configuration,
            progress: &self.voter.progress(),
            index: self.catalog.index,
        };
        if let Some(change) = voters(group, &wanted) {
            // One at a time: while one is under way the next is refused, and asked again.
            match self.voter.change(change) {
                Ok(_) => tracing::info!(?change, "the catalog's voters change"),
                Err(refusal) => tracing::debug!(?change, %refusal, "not now"),
            }
        }
    }

    /// Takes in what happened, and says what is to be done.
    pub(crate) fn step(
        &mut self,
        now: Duration,
        event: Event,
        out: &mut Vec<Do>,
    ) -> Result<(), Over> {
        match event {
            Event::Ticked => self.tick(now),
            Event::Proposed(ticket, command) => self.asks.add(ticket, command, now),
            Event::Stored(number) => self.stored(number),
            Event::Heard(heard) => self.heard(heard, out)?,
            Event::Unsent(to, message) => self.unsent(to, &message),
        }
        Ok(())
    }

    /// Everything there is to do now. Called after one or several steps.
    pub(crate) fn settle(&mut self, out: &mut Vec<Do>) -> Result<(), Over> {
        loop {
            self.place(out);
            let ready = self.voter.ready();
            if ready.is_idle() {
                break;
            }
            self.take_in(ready, out)?;
        }
        if self.has_news || !self.carry.answers.is_empty() {
            self.has_news = false;
            self.carry.catalog = Arc::clone(&self.catalog);
            out.push(Do::Carry(std::mem::take(&mut self.carry)));
        }
        if self.entries >= ENTRIES_MAX || self.entry_bytes >= ENTRY_BYTES_MAX {
            self.shorten(out);
        }
        Ok(())
    }

    fn tick(&mut self, now: Duration) {
        if self.is_alone() {
            self.ticked_at = None;
            return;
        }
        let mut at = self.ticked_at.unwrap_or(now);
        at = at.max(now.saturating_sub(TICK * TICKS_MAX));
        while at + TICK <= now {
            at += TICK;
            self.voter.tick();
        }
        self.ticked_at = Some(at);
        self.asks.expire(now, &mut self.carry.answers);
    }

    fn stored(&mut self, number: u64) {
        self.voter.stored(number);
        if let Some((_, catalog)) = self.installing.take_if(|(at, _)| *at <= number) {
            let index = catalog.index;
            let known = Arc::make_mut(&mut self.catalog);
            let (cluster, controller) = (known.cluster, known.controller);
            *known = catalog;
            (known.cluster, known.controller) = (cluster, controller);
            (self.entries, self.entry_bytes) = (0, 0);
            self.asks.leapt(index, &mut self.carry.answers);
            self.carry.effects.clear();
            self.carry.leapt = true;
            self.has_news = true;
        }
    }

    fn heard(&mut self, heard: Heard, out: &mut Vec<Do>) -> Result<(), Over> {
        match heard {
            Heard::Connected(peer) => drop(self.connected.insert(peer.node, peer)),
            Heard::Disconnected(peer, _) => {
                self.connected.remove(&peer.node);
                self.asks.disconnected(peer.node, &mut self.carry.answers);
                self.voter.unreachable(life(peer));
            }
            Heard::Gone(_) => {}
            Heard::Said(peer, message) => return self.said(peer, message, out),
        }
        Ok(())
    }

    fn said(&mut self, peer: Peer, message: peers::Message, out: &mut Vec<Do>) -> Result<(), Over> {
        match message {
            peers::Message::Consensus(bytes) => {
                let read = format::decode_message(&bytes);
                let Ok(message) = read.inspect_err(|error| complain(peer, error)) else {
                    return Ok(());
                };
                // Nobody votes in another's name.
                if message.from != life(peer) {
                    return Ok(());
                }
                if let Body::Install(snapshot) = &message.body {
                    // Before anything of it is stored: a node that cannot read it could not start any more.
                    format::decode_snapshot(&snapshot.data)?;
                }
                match self.voter.step(message) {
                    Err(lost @ Refusal::Lost { .. }) => return Err(Over::Lost(lost)),
                    Err(Refusal::Message(why)) => complain(peer, &why),
                    _ => {}
                }
            }
            peers::Message::ControllerRequest(call) => {
                let answer = peers::Message::ControllerAnswer(Call {
                    correlation: call.correlation,
                    hops: 0,
                    within: Duration::ZERO,
                    body: vec![format::encode_answered(self.asked(peer, &call))],
                });
                out.push(Do::Send(peer.node, answer));
            }
            peers::Message::ControllerAnswer(call) => {
                let read = format::decode_answered(&call.body.concat());
                if let Ok(answered) = read.inspect_err(|error| complain(peer, error)) {
                    let (ticket, applied) = (Ticket(call.correlation), self.catalog.index);
                    let answers = &mut self.carry.answers;
                    self.asks
                        .answered(peer.node, ticket, answered, applied, answers);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Another node asks for a command to be proposed.
    fn asked(&mut self, peer: Peer, call: &Call) -> Answered {
        let read = format::decode_asked(&call.body.concat());
        let Ok(command) = read.inspect_err(|error| complain(peer, error)) else {
            return Answered::Unfit;
        };
        match self.voter.propose(command) {
            Ok(at) => Answered::Placed(at),
            Err(Refusal::NotLeader { leader }) => Answered::NotLeader { leader },
            Err(Refusal::TooLarge(_)) => Answered::Unfit,
            Err(_) => Answered::Busy,
        }
    }

    fn unsent(&mut self, to: NodeId, message: &peers::Message) {
        match message {
            peers::Message::ControllerRequest(call) => self.asks.unsent(Ticket(call.correlation)),
            peers::Message::Consensus(_) => {
                if let Some(peer) = self.connected.get(&to) {
                    self.voter.unreachable(life(*peer));
                }
            }
            _ => {}
        }
    }

    /// Proposes what waits, here or at the leader.
    fn place(&mut self, out: &mut Vec<Do>) {
        let (voter, connected) = (&mut self.voter, &self.connected);
        let Leadership { role, leader, .. } = voter.leadership();
        if role != Role::Leader && leader.is_none() {
            return;
        }
        self.asks.place(|ticket, command| {
            if role == Role::Leader {
                return voter
                    .propose(command.clone())
                    .map_or(Try::Later, Try::Placed);
            }
            let is_there =
                |leader: &Member| connected.get(&leader.node).map(|p| life(*p)) == Some(*leader);
            let Some(leader) = leader.filter(is_there) else {
                return Try::Later;
            };
            let call = Call {
                correlation: ticket.0,
                hops: 0,
                within: WITHIN,
                body: vec![format::encode_asked(command)],
            };
            out.push(Do::Send(
                leader.node,
                peers::Message::ControllerRequest(call),
            ));
            Try::Asked(leader.node)
        });
    }

    fn take_in(&mut self, mut ready: Ready, out: &mut Vec<Do>) -> Result<(), Over> {
        out.extend(
            self.drawn(ready.messages)
                .into_iter()
                .map(|(to, message)| Do::Send(to, message)),
        );
        if let Some(snapshot) = &ready.install {
            let mut catalog = format::decode_snapshot(&snapshot.data)?;
            // What the voter has it by: the snapshot's own may be of a time before.
            catalog.configuration = snapshot.configuration.clone();
            self.installing = Some((ready.number, catalog));
        }
        for entry in &ready.append {
            self.entries += 1;
            self.entry_bytes += format::encode_payload(&entry.payload).len();
        }
        if ready.number > 0 || ready.vote.is_some() {
            let after = self.drawn(std::mem::take(&mut ready.messages_after));
            out.push(Do::Store(Store {
                number: ready.number,
                vote: ready.vote,
                install: ready.install,
                append: ready.append,
                after,
            }));
        }
        for entry in ready.committed {
            self.apply(entry)?;
        }
        if let Some(leadership) = ready.leadership {
            Arc::make_mut(&mut self.catalog).controller =
                leadership.leader.map(|leader| leader.node);
            self.has_news = true;
            out.push(Do::Led(leadership));
        }
        if ready.wants_snapshot {
            self.shorten(out);
        }
        Ok(())
    }

    fn apply(&mut self, entry: Entry) -> Result<(), Undecodable> {
        assert!(
            self.installing.is_none(),
            "entries behind a snapshot come when it is stored"
        );
        let at = entry.position();
        let catalog = Arc::make_mut(&mut self.catalog);
        let applied = catalog.apply_entry(at.index, entry.payload)?;
        self.has_news = true;
        self.applied_term = at.term;
        self.asks
            .applied(at, applied.as_ref(), &mut self.carry.answers);
        let effects = applied.map(|applied| applied.effects);
        self.carry.effects.extend(effects.into_iter().flatten());
        Ok(())
    }

    /// Replaces entries by a snapshot.
    fn shorten(&mut self, out: &mut Vec<Do>) {
        if self.installing.is_some() || self.catalog.index == 0 {
            return;
        }
        (self.entries, self.entry_bytes) = (0, 0);
        let snapshot = self.voter.compact(format::encode_snapshot(&self.catalog));
        out.push(Do::Shorten(snapshot));
    }

    /// Messages to nodes that are there under the life they are meant for.
    fn drawn(&self, messages: Vec<Message>) -> Vec<(NodeId, peers::Message)> {
        let is_there = |message: &Message| {
            let peer = self.connected.get(&message.to.node);
            peer.is_some_and(|peer| life(*peer) == message.to)
        };
        let messages = messages.into_iter().filter(is_there).map(|message| {
            let bytes = format::encode_message(&message);
            (message.to.node, peers::Message::Consensus(bytes))
        });
        messages.collect()
    }
}

/// Who a connected node is to a voter.
fn life(peer: Peer) -> Member {
    Member {
        node: peer.node,
        incarnation: peer.incarnation,
    }
}

fn complain(peer: Peer, what: &dyn std::fmt::Display) {
    tracing::warn!(node = peer.node.0, %what, "what a node said about the catalog is not taken");
}

#[cfg(test)]
mod tests;
