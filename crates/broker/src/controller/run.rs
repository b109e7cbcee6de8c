//! The task that drives this node's part in the catalog: it carries out what the pure [`Agreement`] and [`Lead`] say.
//!
//! Guarantees: time, messages and proposals are taken in while flushes and effects are under way; effects are carried out in the
//! order of their entries, what gathers meanwhile together; an answer is given when what it answers is in effect. Ends with the node,
//! when the log fails, or when the node must not go on.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::future::{Future, pending, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use floe_cluster::consensus::{Role, TICK};
use floe_cluster::{Applied, Command, duties, format};
use floe_log::Failure;
use floe_model::{NodeId, TopicId, TopicPartition};
use floe_replication::message::Fence;
use floe_replication::replica::Event as Told;
use floe_world::time;
use tokio::sync::{mpsc, oneshot, watch};

use super::agreement::{Agreement, Carry, Do, Event, Over};
use super::asks::{Outcome, Ticket};
use super::lead::{Lead, Todo};
use super::stores::Stores;
use super::stream::{self, CATALOG_GROUP};
use super::watch::Times;
use super::{Proposal, WAITING_MAX, effects};
use crate::Unavailable;
use crate::exchange::Heard;
use crate::node::Node;
use crate::peers::{LIST_MAX, Message, Transport};
use crate::replica::Said;

/// Commands taken up at a time.
const BATCH_MAX: usize = 256;

/// How often a confirmation is said again; longer than one may wait to be agreed.
const CONFIRM_EVERY: Duration = Duration::from_secs(15);

/// What is done because of entries; the deleted topics that are gone.
type Carrying = Pin<Box<dyn Future<Output = Result<Vec<TopicId>, Failure>> + Send>>;
type Reply = oneshot::Sender<Result<Applied, Unavailable>>;

/// Where what happens comes in.
pub(crate) struct Ears {
    pub(crate) proposals: mpsc::Receiver<Proposal>,
    pub(crate) peers: mpsc::Receiver<Heard>,
    /// This node's copies.
    pub(crate) copies: mpsc::Receiver<Said>,
}

/// Who waits for an outcome.
enum Asker {
    Reply(Reply),
    /// These know what they asked for, and wait for this node's own command behind it.
    Held(Vec<Outcome>),
    /// This node's own wish that generations end.
    Turns(Vec<TopicPartition>),
}

/// See the module.
pub(crate) struct Driver {
    node: Arc<Node>,
    agreement: Agreement,
    lead: Lead,
    stores: Stores,
    peers: Option<Arc<dyn Transport>>,
    /// Who is to vote or to listen.
    listed: BTreeSet<NodeId>,
    confirm_at: Duration,
    tickets: u64,
    askers: HashMap<Ticket, Asker>,
    out: Vec<Do>,
    todo: Vec<Todo>,
    /// On their way to other nodes, in lists.
    fences: BTreeMap<NodeId, Vec<(TopicPartition, Fence)>>,
    /// What is to be carried out next.
    gathered: Option<Carry>,
    carrying: Option<(Carrying, Carry)>,
}

/// Why the task ends before the node.
#[derive(Debug, thiserror::Error)]
enum End {
    #[error("the catalog cannot be written any more: {0}")]
    Failed(#[from] Failure),
    #[error("this node cannot go on in its cluster: {0}")]
    Over(#[from] Over),
}

impl Driver {
    pub(crate) fn new(
        node: Arc<Node>,
        agreement: Agreement,
        peers: Option<Arc<dyn Transport>>,
        listed: BTreeSet<NodeId>,
    ) -> Self {
        let now = node.world.clock.monotonic();
        // Half of all numbers are left to rise through.
        let first = node.world.random.next_u64() >> 1;
        let me = (node.settings.node, node.boot);
        Self {
            lead: Lead::new(me, listed.is_empty(), Times::default(), first, now),
            stores: Stores::new(node.log.clone()),
            node,
            agreement,
            peers,
            listed,
            confirm_at: now + CONFIRM_EVERY,
            tickets: 0,
            askers: HashMap::new(),
            out: Vec::new(),
            todo: Vec::new(),
            fences: BTreeMap::new(),
            gathered: None,
            carrying: None,
        }
    }

    /// Drives until the node stops.
    pub(crate) async fn run(mut self, ears: Ears, stopping: watch::Receiver<bool>) {
        let Err(end) = self.serve(ears, stopping).await else {
            return;
        };
        tracing::error!(%end, "the catalog goes on without this node");
        if let End::Failed(failure) = end {
            drop(self.node.proposals.failure.set(failure));
        }
    }

    async fn serve(
        &mut self,
        mut ears: Ears,
        mut stopping: watch::Receiver<bool>,
    ) -> Result<(), End> {
        let mut gathered = Vec::new();
        // Kept from round to round: what is heard all the time must not put it off.
        let mut tick = Box::pin(time::sleep(TICK));
        loop {
            self.settle()?;
            let needs_time = !self.agreement.is_alone() || !self.lead.is_idle();
            let has_room = self.agreement.waiting() < WAITING_MAX;
            let (stores, carrying) = (&mut self.stores, &mut self.carrying);
            // In a fixed order, so that one seed gives one run; whatever is ready is soon its turn, since each takes little.
            tokio::select! {
                biased;
                _ = stopping.wait_for(|stopping| *stopping) => return Ok(()),
                stored = poll_fn(|context| stores.poll(context)) => {
                    let (number, after) = stored?;
                    for (to, message) in after {
                        self.send(to, message)?;
                    }
                    if number > 0 {
                        self.step(Event::Stored(number))?;
                    }
                }
                deleted = carried(carrying) => self.carried(deleted?)?,
                () = &mut tick, if needs_time => {
                    tick = Box::pin(time::sleep(TICK));
                    self.step(Event::Ticked)?;
                    self.agreement.reform(&self.listed);
                    self.confirm_again()?;
                }
                Some(said) = ears.copies.recv() => {
                    self.lead.said(said.address, &said.what, self.now());
                }
                Some(heard) = ears.peers.recv() => {
                    self.lead.heard(&heard, self.now());
                    self.step(Event::Heard(heard))?;
                }
                count = ears.proposals.recv_many(&mut gathered, BATCH_MAX), if has_room => {
                    if count == 0 {
                        return Ok(());
                    }
                    for proposal in gathered.drain(..) {
                        self.propose(&proposal.command, Asker::Reply(proposal.reply))?;
                    }
                }
            }
        }
    }

    fn now(&self) -> Duration {
        self.node.world.clock.monotonic()
    }

    fn step(&mut self, event: Event) -> Result<(), Over> {
        let now = self.now();
        self.agreement.step(now, event, &mut self.out)
    }

    fn propose(&mut self, command: &Command, asker: Asker) -> Result<(), Over> {
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        self.askers.insert(ticket, asker);
        self.step(Event::Proposed(ticket, format::encode(command)))
    }

    /// A confirmation that was not agreed is said again, until the tombstone does not wait for this node any more.
    fn confirm_again(&mut self) -> Result<(), Over> {
        let now = self.now();
        if now < self.confirm_at {
            return Ok(());
        }
        self.confirm_at = now + CONFIRM_EVERY;
        let (me, replicas) = (self.node.settings.node, self.node.replicas.load());
        let catalog = self.node.catalog.load();
        let waiting = catalog.tombstones.iter().filter(|(topic, tombstone)| {
            let is_held = || replicas.keys().any(|address| address.topic == **topic);
            tombstone.waiting.contains(&me) && !is_held()
        });
        let topics: Vec<_> = waiting.map(|(topic, _)| *topic).collect();
        if topics.is_empty() {
            return Ok(());
        }
        let confirm = Command::ConfirmDeleted { node: me, topics };
        self.propose(&confirm, Asker::Held(Vec::new()))
    }

    /// Does everything there is to do now, but for what has to be waited for.
    fn settle(&mut self) -> Result<(), Over> {
        loop {
            self.agreement.settle(&mut self.out)?;
            for todo in std::mem::take(&mut self.out) {
                self.obey(todo)?;
            }
            let (now, leads) = (self.now(), self.agreement.leads());
            let catalog = self.agreement.catalog();
            let flush_age = self.node.log.flush_age();
            self.lead
                .step(now, catalog, leads, flush_age, &mut self.todo);
            if self.todo.is_empty() && self.out.is_empty() {
                break;
            }
            for todo in std::mem::take(&mut self.todo) {
                self.guide(todo)?;
            }
            for (to, list) in std::mem::take(&mut self.fences) {
                for chunk in list.chunks(LIST_MAX) {
                    self.send(to, Message::Fence(chunk.to_vec()))?;
                }
            }
        }
        if self.carrying.is_none()
            && let Some(carry) = self.gathered.take()
        {
            self.carry(carry);
        }
        Ok(())
    }

    fn obey(&mut self, todo: Do) -> Result<(), Over> {
        match todo {
            Do::Send(to, message) => self.send(to, message)?,
            Do::Store(store) => self.stores.add(store),
            Do::Carry(carry) => match &mut self.gathered {
                Some(gathered) => gathered.add(carry),
                None => self.gathered = Some(carry),
            },
            Do::Shorten(snapshot) => {
                let snapshot = stream::snapshot(snapshot);
                self.node.log.compact(CATALOG_GROUP, snapshot);
            }
            Do::Led(leadership) => {
                let leader = leadership.leader.map(|leader| leader.node.0);
                let is_here = leadership.role == Role::Leader;
                tracing::info!(
                    term = leadership.term,
                    leader,
                    is_here,
                    "the catalog's leader"
                );
            }
        }
        Ok(())
    }

    fn guide(&mut self, todo: Todo) -> Result<(), Over> {
        match todo {
            Todo::Beat(to, heartbeat) => self.send(to, Message::Heartbeat(heartbeat)),
            Todo::Propose(command, partitions) => self.propose(&command, Asker::Turns(partitions)),
            Todo::Tell(to, at, told) if to == self.node.settings.node => {
                if let Some(replica) = self.node.replica(at) {
                    let opened = replica.step(told);
                    debug_assert!(opened.is_empty(), "a fence opens nothing");
                }
                Ok(())
            }
            Todo::Tell(to, at, Told::FenceAsked(fence)) => {
                self.fences.entry(to).or_default().push((at, fence));
                Ok(())
            }
            Todo::Tell(to, partition, Told::CopyOrdered(order)) => {
                self.send(to, Message::CopyOrder { partition, order })
            }
            Todo::Tell(..) => unreachable!("members are told to end a generation or to copy it"),
        }
    }

    fn send(&mut self, to: NodeId, message: Message) -> Result<(), Over> {
        let Some(peers) = &self.peers else {
            return Ok(());
        };
        match peers.send(to, message.clone()) {
            Ok(()) => Ok(()),
            Err(unsent) => {
                tracing::debug!(%unsent, "a message about the catalog is not sent");
                self.step(Event::Unsent(to, message))
            }
        }
    }

    fn carry(&mut self, mut carry: Carry) {
        let node = Arc::clone(&self.node);
        let catalog = Arc::clone(&carry.catalog);
        let mut todo = std::mem::take(&mut carry.effects);
        if carry.leapt {
            todo = duties(&catalog, node.settings.node, &node.holdings());
        }
        let carrying: Carrying =
            Box::pin(async move { effects::carry_out(&node, &catalog, &todo).await });
        self.carrying = Some((carrying, carry));
    }

    /// It is in effect.
    fn carried(&mut self, deleted: Vec<TopicId>) -> Result<(), Over> {
        let (_, carry) = self.carrying.take().expect("it was carried out");
        self.node.publish(&carry.catalog);
        if deleted.is_empty() {
            self.answer(carry.answers);
            return Ok(());
        }
        let confirm = Command::ConfirmDeleted {
            node: self.node.settings.node,
            topics: deleted,
        };
        self.propose(&confirm, Asker::Held(carry.answers))
    }

    fn answer(&mut self, answers: Vec<Outcome>) {
        for (ticket, outcome) in answers {
            match self.askers.remove(&ticket) {
                // Whoever went away does not wait for the answer; the command holds.
                Some(Asker::Reply(reply)) => drop(reply.send(outcome)),
                Some(Asker::Held(answers)) => self.answer(answers),
                Some(Asker::Turns(partitions)) => self.decided(&partitions, outcome),
                None => {}
            }
        }
    }

    fn decided(&mut self, partitions: &[TopicPartition], outcome: Result<Applied, Unavailable>) {
        match outcome {
            Ok(applied) => {
                for refused in applied.refused {
                    tracing::debug!(%refused, "a generation is not ended");
                }
            }
            Err(why) => {
                tracing::warn!(partitions = partitions.len(), %why, "generations are not ended");
            }
        }
        self.lead.decided(partitions);
    }
}

/// Waits for what is being carried out, if anything is.
async fn carried(carrying: &mut Option<(Carrying, Carry)>) -> Result<Vec<TopicId>, Failure> {
    match carrying {
        Some((carrying, _)) => carrying.await,
        None => pending().await,
    }
}
