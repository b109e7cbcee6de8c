//! Controllers at work: each runs a seal, may stop at any moment, and its last command may come late or never.

use floe_model::{LeaderEpoch, Offset};

use super::Switch;
use super::truth::Broken;
use super::world::{Message, World};
use crate::message::{Ask, Fence, Order, Purpose};
use crate::replica::{Command, Event};
use crate::{Leader, Member, Opening, Seal, seal};

pub(super) struct Controller {
    seal: Seal,
    number: u64,
    epoch: LeaderEpoch,
    start: Offset,
    next: Vec<Member>,
    pub(super) is_waiting: bool,
}

/// A catalog command on its way.
pub(super) struct Pending {
    epoch: LeaderEpoch,
    opening: Opening,
    members: Vec<Member>,
    leader: Leader,
}

impl World {
    /// Begins to end the open generation, in favour of some set of nodes under the lives that the catalog knows.
    pub(super) fn begin(&mut self, slot: usize) {
        let current: Vec<Member> = self
            .catalog
            .nodes
            .values()
            .map(|node| node.member())
            .collect();
        let mut current = current;
        current.sort_unstable();
        let smallest = match self.shape.switch {
            Some(Switch::QuorumShrinks) => 1,
            _ => self.shape.quorum,
        };
        let spread = self.shape.members - smallest;
        let fewer = if self.is_calm || spread == 0 {
            0
        } else {
            self.chance.below(spread + 1)
        };
        let next = self.chance.choose(&current, self.shape.members - fewer);
        let open = &self.catalog.open;
        let (epoch, start) = (open.epoch, open.start);
        let quorum = open.quorum.min(match self.shape.switch {
            Some(Switch::QuorumShrinks) => next.len(),
            _ => open.quorum,
        });
        let begun = Seal::begin(open.members.clone(), next.clone(), quorum);
        let (seal, commands) = begun.expect("enough members");
        let number = self.number();
        self.controllers[slot] = Some(Controller {
            seal: seal.with_leases(self.catalog.leases()),
            number,
            epoch,
            start,
            next,
            is_waiting: false,
        });
        self.obey(slot, commands);
    }

    pub(super) fn tell(&mut self, slot: usize, event: seal::Event) {
        if let Some(controller) = &mut self.controllers[slot] {
            let commands = controller.seal.step(event);
            self.obey(slot, commands);
        }
    }

    fn obey(&mut self, slot: usize, commands: Vec<seal::Command>) {
        for command in commands {
            let ask = Ask(self.number());
            let controller = self.controllers[slot].as_mut().expect("at work");
            let (epoch, start, number) = (controller.epoch, controller.start, controller.number);
            match command {
                seal::Command::Fence(to) => {
                    self.asks.insert(ask, (slot, number));
                    let fence = Fence {
                        to,
                        epoch,
                        start,
                        ask,
                    };
                    self.post(to.node, to.node, Event::FenceAsked(fence));
                }
                seal::Command::Wait => controller.is_waiting = true,
                seal::Command::Copy { from, to, end } => {
                    self.asks.insert(ask, (slot, number));
                    let order = Order {
                        to,
                        from,
                        epoch,
                        start,
                        end,
                        purpose: Purpose::Repair,
                        as_of: 0,
                        ask,
                    };
                    self.post(to.node, to.node, Event::CopyOrdered(order));
                }
                seal::Command::Open(opening) => self.propose(slot, opening),
            }
        }
    }

    fn propose(&mut self, slot: usize, opening: Opening) {
        let controller = self.controllers[slot].as_ref().expect("at work");
        let (epoch, members) = (controller.epoch, controller.next.clone());
        let wished = self.chance.pick(&members);
        let successor = if self.chance.one_in(4) {
            wished
        } else {
            opening.successor(&members, wished)
        };
        let successor = successor.expect("there are members");
        let leader = Leader {
            boot: self.catalog.nodes[&successor.node].boot,
            node: successor.node,
            incarnation: successor.incarnation,
        };
        self.pending.push(Pending {
            epoch,
            opening,
            members,
            leader,
        });
    }

    /// A command reaches the catalog.
    pub(super) fn apply(&mut self, at: usize) -> Result<(), Broken> {
        let pending = self.pending.swap_remove(at);
        let (epoch, end) = (pending.epoch, pending.opening.end);
        let is_done = self
            .catalog
            .seal(epoch, &pending.opening, pending.members, pending.leader);
        if is_done {
            let (holders, open) = (&pending.opening.holders, &self.catalog.open);
            self.say(format!(
                "catalog: {epoch} sealed at {end}, held by {holders:?}; {open:?}"
            ));
            self.is_seal_wanted = false;
            self.truth.sealed(epoch, end)?;
        }
        Ok(())
    }

    /// An answer to a controller: for the one that asked, if it is still at work.
    pub(super) fn replied(&mut self, reply: &Command) {
        let (ask, event) = match reply {
            Command::Fenced { from, ask, end } => (ask, seal::Event::Fenced(*from, *end)),
            Command::Copied { from, ask, end, .. } => (ask, seal::Event::Holds(*from, *end)),
            _ => return,
        };
        let Some((slot, number)) = self.asks.get(ask).copied() else {
            return;
        };
        let controller = self.controllers[slot].as_ref();
        if controller.is_some_and(|controller| controller.number == number) {
            self.tell(slot, event);
        }
    }

    /// Delivers the message at this place, if nothing is in its way.
    pub(super) fn deliver(&mut self, at: usize) -> Result<(), Broken> {
        match self.network.remove(at).expect("a message is there") {
            Message::Reply(reply) => self.replied(&reply),
            Message::ToNode(from, to, event) => {
                let is_order = matches!(event, Event::FenceAsked(_) | Event::CopyOrdered(_));
                let is_unheard = is_order && self.deaf == Some(to.0 as usize);
                if !is_unheard && !self.cuts.contains(&(from, to)) {
                    if !self.is_calm && self.chance.one_in(20) {
                        let again = Message::ToNode(from, to, event.clone());
                        self.network.push_back(again);
                    }
                    return self.step(to.0 as usize, event);
                }
            }
        }
        Ok(())
    }
}
