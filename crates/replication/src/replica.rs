//! One node's part in one partition: what it holds of each generation, its fence, and what it leads. Events in, commands out.
//!
//! ```text
//!   catalog: Opened, Sealed, ..  ─┐                      ┌─► log: Open, Append, Fence, Truncate, Forget
//!   log: Flushed, FenceFlushed   ─┼─► Replica::step ─────┼─► peers: Send, Answer, Fenced, Pull, Give, Copied, leases
//!   peers: appends, fences, ..   ─┤                      └─► node: Committed, Ended, AskForSeal, Damaged
//!   node: Appended, Ticked       ─┘
//! ```
//!
//! Guarantees: nothing is answered as durable before the log said so; a fence lies behind all that was accepted before it, and
//! from then on the generations below take nothing but copies; excess is cut when the catalog has sealed, never before; the fence
//! outlives the data. Its safety does not rest on its view of the catalog being fresh.
//!
//! The driver carries out commands to the log in their order, reports flushes in the order of the journal, and reports a
//! fence's flush after those of what lies before it. Messages may be lost, doubled, late and out of order.

mod command;
mod copying;
mod event;
mod fence;
mod follow;
#[cfg(test)]
mod tests;
mod wish;

pub use command::{Command, Send, Why};
pub use event::{Event, Opened, Recovered, Sent};

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use floe_model::{Boot, LeaderEpoch, Offset};

use crate::Member;
use crate::held::Held;
use crate::leading::Leading;
use crate::lease::Terms;
use crate::message::{Batch, Before};
use crate::rule::{Rule, keeps};
use copying::Copying;
use fence::Asked;
use follow::Following;
pub(crate) use wish::Wish;

/// What a replica is run with.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// How many bytes may be under way to one follower.
    pub window_bytes: usize,
    /// How many bytes one append or piece carries at most; one batch always fits.
    pub send_bytes_max: usize,
    /// After this long without progress, what was sent or asked is taken for lost.
    pub resend_after: Duration,
    /// Of leases.
    pub lease: Terms,
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Replica {
    me: Member,
    boot: Boot,
    settings: Settings,
    /// In force from when its record is handed to the log.
    fence: LeaderEpoch,
    fence_flushed: LeaderEpoch,
    /// The newest generation known from the catalog; all below are sealed.
    known: LeaderEpoch,
    held: BTreeMap<LeaderEpoch, Held>,
    /// Being forgotten: not begun again before that is flushed, or a late flush of the old copy would count for the new one.
    forgetting: BTreeSet<LeaderEpoch>,
    /// Fences handed to the log, in order.
    asked: VecDeque<Asked>,
    leading: Option<Leading>,
    following: Option<Following>,
    copying: BTreeMap<LeaderEpoch, Copying>,
    /// A generation that it was to lead and cannot.
    wish: Option<Wish>,
    /// Numbers answers and fences.
    said: u64,
}

impl Replica {
    /// A replica as its disk holds it. Rule DamageIsNoticed: whoever recovered it has given `me` a new incarnation if anything
    /// durable is missing. Rule ForgetKeepsFence: `fence` is the largest ever flushed under this incarnation, whatever became
    /// of the data.
    pub fn new(
        me: Member,
        boot: Boot,
        fence: LeaderEpoch,
        recovered: &[Recovered],
        settings: Settings,
    ) -> Self {
        let held = recovered.iter().map(|found| {
            let held = Held::recovered(found.start, found.end, found.last, found.since);
            (found.epoch, held)
        });
        Self {
            me,
            boot,
            settings,
            fence,
            fence_flushed: fence,
            known: LeaderEpoch(0),
            held: held.collect(),
            forgetting: BTreeSet::new(),
            asked: VecDeque::new(),
            leading: None,
            following: None,
            copying: BTreeMap::new(),
            wish: None,
            said: 0,
        }
    }

    /// Who it is.
    pub fn member(&self) -> Member {
        self.me
    }

    /// Takes an event in, adds what to do to `out`.
    pub fn step(&mut self, now: Duration, event: Event, out: &mut Vec<Command>) {
        match event {
            Event::Opened(opened) => self.opened(&opened, now, out),
            Event::Sealed { epoch, end, lossy } => self.sealed(epoch, end, lossy, now, out),
            Event::Forgotten { epoch, index } => self.forgotten(epoch, index, out),
            Event::ForgetFlushed(epoch) => drop(self.forgetting.remove(&epoch)),
            Event::LogStartAdvanced(to) => self.log_start_advanced(to),
            Event::Flushed { epoch, end } => self.flushed(epoch, end, now, out),
            Event::FenceFlushed(number) => self.fence_flushed(number, now, out),
            Event::AppendArrived(append) => self.append_arrived(&append, out),
            Event::FenceAsked(fence) => self.fence_asked(&fence, now, out),
            Event::CopyOrdered(order) => self.copy_ordered(order, now, out),
            Event::PullArrived(pull) => self.pull_arrived(pull, out),
            Event::PieceArrived(piece) => self.piece_arrived(&piece, now, out),
            Event::LeaseAsked(renew) => self.lease_asked(renew, out),
            Event::Appended { epoch, batch } => self.appended(epoch, batch, now, out),
            event => self.led(now, &event, out),
        }
    }

    /// What only the leader's side is concerned with.
    fn led(&mut self, now: Duration, event: &Event, out: &mut Vec<Command>) {
        if matches!(event, Event::Ticked) {
            self.pull_again(now, out);
            if let Some(wish) = &mut self.wish {
                wish.again(now, self.settings.resend_after, out);
            }
        }
        let Some(leading) = &mut self.leading else {
            return;
        };
        let epoch = leading.epoch();
        match event {
            Event::Ticked => leading.ticked(now, out),
            Event::Sent(sent) => leading.sent(*sent, now, out),
            Event::Answered(answer) if answer.epoch == epoch => leading.answered(answer, now, out),
            Event::LeaseGranted(grant) if grant.epoch == epoch => leading.granted(grant),
            Event::LeaseEnded(ended) => leading.lease_ended(*ended, now, out),
            Event::ConnectionChanged { to, is_connected } => {
                leading.connected(*to, *is_connected, now, out);
            }
            _ => {}
        }
    }

    fn opened(&mut self, opened: &Opened, now: Duration, out: &mut Vec<Command>) {
        let epoch = opened.epoch;
        if epoch < self.known || self.leads() == Some(epoch) {
            return;
        }
        assert!(
            self.leading.is_none(),
            "what was led is sealed before the next is open"
        );
        self.known = epoch;
        if !opened.members.contains(&self.me) {
            return;
        }
        // A replay of what is long over: later generations are held already.
        if self.newest() > epoch {
            return;
        }
        self.open(epoch, opened.start, 0, out);
        if !opened.leader.is(self.me, self.boot) {
            // Rule LeaderDoesNotResume: another boot of this member does not lead it; it asks for the next generation.
            if opened.leader.member() == self.me {
                self.wish = Some(Wish::say(epoch, Why::OtherBoot, now, out));
            }
            return;
        }
        if self.fence > epoch {
            self.wish = Some(Wish::say(epoch, Why::Fenced(self.fence), now, out));
            return;
        }
        let end = self.held[&epoch].accepted();
        assert!(
            end == opened.start || !keeps(Rule::LeaderDoesNotResume),
            "nobody wrote in a generation before its leader"
        );
        self.following = None;
        self.leading = Some(Leading::new(opened, self.me, end, self.settings, now));
    }

    /// Nothing of generations below this is taken or granted: by fence, by the catalog, or because a successor is held.
    fn floor(&self) -> LeaderEpoch {
        self.fence.max(self.known).max(self.newest())
    }

    /// The newest generation held.
    fn newest(&self) -> LeaderEpoch {
        let newest = self.held.last_key_value();
        newest.map(|(epoch, _)| *epoch).unwrap_or_default()
    }

    /// A generation begins here, if it has not yet.
    fn open(
        &mut self,
        epoch: LeaderEpoch,
        start: Offset,
        since: u64,
        out: &mut Vec<Command>,
    ) -> &mut Held {
        self.held.entry(epoch).or_insert_with(|| {
            out.push(Command::Open {
                epoch,
                start,
                since,
            });
            Held::new(start, since)
        })
    }

    fn sealed(
        &mut self,
        epoch: LeaderEpoch,
        end: Offset,
        lossy: bool,
        now: Duration,
        out: &mut Vec<Command>,
    ) {
        self.known = self.known.max(epoch.next());
        self.wish.take_if(|wish| wish.epoch() <= epoch);
        let led = self.leading.take_if(|leading| leading.epoch() == epoch);
        if let Some(mut leading) = led {
            leading.sealed(end, lossy, now, out);
        }
        // What was ordered so that it could be sealed is of no more use; a member that lacks it copies it as sealed.
        self.copying
            .retain(|copied, copying| *copied != epoch || !copying.is_repair());
        if let Some(held) = self.held.get_mut(&epoch) {
            assert!(lossy || held.committed() <= end, "committed above a seal");
            // Rule: truncation only after the seal is known from the catalog, and journalled like all else.
            if held.seal(end) {
                out.push(Command::Truncate { epoch, end });
            }
        }
    }

    /// Rule ForgetConditional is the catalog's: it has counted q other holders. Rule ForgetKeepsFence: only the data goes. A copy
    /// made after the entry is not the one that it let go.
    fn forgotten(&mut self, epoch: LeaderEpoch, index: u64, out: &mut Vec<Command>) {
        let is_later = |held: &Held| held.since() >= index;
        if self.held.get(&epoch).is_none_or(is_later) {
            return;
        }
        self.held.remove(&epoch);
        self.copying.remove(&epoch);
        self.forgetting.insert(epoch);
        out.push(Command::Forget(epoch));
    }

    /// Sealed generations that end below the log start are deleted by the log itself.
    fn log_start_advanced(&mut self, to: Offset) {
        self.held
            .retain(|_, held| held.sealed().is_none_or(|end| end > to));
        let held = &self.held;
        self.copying.retain(|epoch, _| held.contains_key(epoch));
    }

    fn appended(
        &mut self,
        epoch: LeaderEpoch,
        batch: Batch,
        now: Duration,
        out: &mut Vec<Command>,
    ) {
        let leading = self.leading.as_mut().expect("only a leader appends");
        assert!(
            leading.epoch() == epoch && leading.takes_appends(),
            "the log takes nothing of a fenced generation"
        );
        let held = self.held.get_mut(&epoch).expect("what is led is held");
        held.push(batch);
        leading.appended(batch.end, now, out);
    }

    fn flushed(&mut self, epoch: LeaderEpoch, end: Offset, now: Duration, out: &mut Vec<Command>) {
        let Some(held) = self.held.get_mut(&epoch) else {
            return;
        };
        if held.flushed(end) {
            self.durable_grew(epoch, now, out);
        }
    }

    /// More of a generation is durable: the leader counts it, a follower reports it, a copy may be whole.
    fn durable_grew(&mut self, epoch: LeaderEpoch, now: Duration, out: &mut Vec<Command>) {
        let durable = self.held[&epoch].durable();
        if let Some(leading) = self
            .leading
            .as_mut()
            .filter(|leading| leading.epoch() == epoch)
        {
            leading.flushed(durable, now, out);
        }
        self.report(epoch, out);
        self.copy_on(epoch, out);
    }

    fn next_number(&mut self) -> u64 {
        self.said += 1;
        self.said
    }

    /// The generation it leads, fenced or not.
    pub fn leads(&self) -> Option<LeaderEpoch> {
        self.leading.as_ref().map(Leading::epoch)
    }

    /// Whether the node may append in the generation it leads. To be asked under the lock that the append is made under.
    pub fn takes_appends(&self) -> bool {
        self.leading.as_ref().is_some_and(Leading::takes_appends)
    }

    /// Members that it feeds as leader.
    pub fn followers(&self) -> impl Iterator<Item = Member> {
        self.leading.iter().flat_map(Leading::followers)
    }

    /// Whether [`Event::Ticked`] may bring anything on. If not, only another event can.
    pub fn waits(&self) -> bool {
        self.wish.is_some()
            || !self.copying.is_empty()
            || self.leading.as_ref().is_some_and(Leading::waits)
    }

    /// What ends at `base` in a generation, as far as that is remembered.
    pub fn before(&self, epoch: LeaderEpoch, base: Offset) -> Before {
        let held = self.held.get(&epoch);
        held.map_or(Before::Forgotten, |held| held.before(base))
    }

    /// Whether it may answer linearizable reads as leader; to be asked after the read and before the answer.
    pub fn has_lease(&self, now: Duration) -> bool {
        self.leading
            .as_ref()
            .is_some_and(|leading| leading.has_lease(now))
    }

    /// The fence in force.
    pub fn fence(&self) -> LeaderEpoch {
        self.fence
    }

    /// Commit offset of a generation as far as known here: what readers may see of it, and what a follower journals lazily as
    /// a lower bound for restarts.
    pub fn committed(&self, epoch: LeaderEpoch) -> Option<Offset> {
        if let Some(leading) = self
            .leading
            .as_ref()
            .filter(|leading| leading.epoch() == epoch)
        {
            return Some(leading.committed());
        }
        self.held.get(&epoch).map(Held::committed)
    }

    /// What of a generation is on stable storage here, and usable.
    pub fn durable(&self, epoch: LeaderEpoch) -> Option<(Offset, Offset)> {
        let held = self.held.get(&epoch).filter(|held| !held.is_damaged())?;
        Some((held.start(), held.durable()))
    }
}
