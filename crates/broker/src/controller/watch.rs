//! Which nodes can be relied on: heartbeats in, suspicion out.
//!
//! ```text
//! heartbeats, connections, time ─► Watch ─► alive (node, process), heartbeats to send, what changed and why
//! ```
//! Guarantees: pure. A node is suspected when it is silent (a hung process as much as a dead one), when nothing of this node arrives
//! there although it is heard (a cut in one direction: its echo stays behind), when its disk hangs, and at once when nothing listens
//! at its address. One that flaps must be well for longer each time before it counts again. A process that hung itself blames nobody:
//! it begins to wait anew.
//!
//! Deliberately: a closed connection alone is no reason; the silence behind it is.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::time::Duration;

use floe_model::{Boot, NodeId};

use crate::peers::{Echo, Heartbeat, Peer};

/// Own heartbeats whose time is remembered.
const SENT_MAX: usize = 64;
/// A node that was suspected within this time before is one that flaps.
const FLAP_WITHIN: Duration = Duration::from_mins(1);
/// How long the first flap has to be well; doubles.
const WELL_MIN: Duration = Duration::from_secs(1);
/// ... up to 32 s.
const DOUBLED_MAX: u32 = 5;

/// How fast.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    /// Between two heartbeats to one node.
    pub(crate) heartbeat_every: Duration,
    /// Silence, or a missing echo, after which a node is suspected.
    pub(crate) suspect_after: Duration,
    /// Age of a node's oldest unfinished flush from which it is suspected.
    pub(crate) flush_age_max: Duration,
}

impl Default for Times {
    fn default() -> Self {
        Self {
            heartbeat_every: Duration::from_millis(100),
            suspect_after: Duration::from_millis(500),
            flush_age_max: Duration::from_secs(1),
        }
    }
}

/// Why a node is suspected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// Nothing is heard of it.
    Silent,
    /// It is heard, and hears nothing of this node.
    Deaf,
    /// Its disk does not finish a flush.
    Disk,
    /// Nothing listens at its address.
    Gone,
    /// It was suspected a short time ago, and again.
    Flaps,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Silent => "nothing is heard of it",
            Self::Deaf => "it is heard, but nothing of this node arrives there",
            Self::Disk => "its disk does not finish a flush",
            Self::Gone => "nothing listens at its address",
            Self::Flaps => "it came and went a short time ago",
        })
    }
}

/// One node as it is seen from here.
struct Seen {
    /// The process that is connected or was.
    boot: Boot,
    is_connected: bool,
    heard_at: Duration,
    /// What was heard last, and when: to be given back.
    echo: Option<(u64, Duration)>,
    sent: VecDeque<(u64, Duration)>,
    /// The newest heartbeat of this node that is known to have arrived was sent then.
    arrived_of: Duration,
    flush_age: Option<Duration>,
    is_gone: bool,
    suspected: Option<Why>,
    suspected_at: Option<Duration>,
    flaps: u32,
    /// From then on it was well.
    well_from: Option<Duration>,
}

/// See the module.
pub(crate) struct Watch {
    times: Times,
    me: (NodeId, Boot),
    nodes: BTreeMap<NodeId, Seen>,
    number: u64,
    begun_at: Duration,
    ticked_at: Duration,
    send_at: Duration,
}

impl Watch {
    pub(crate) fn new(me: NodeId, boot: Boot, times: Times, now: Duration) -> Self {
        Self {
            times,
            me: (me, boot),
            nodes: BTreeMap::new(),
            number: 0,
            begun_at: now,
            ticked_at: now,
            send_at: now,
        }
    }

    /// It can be spoken to.
    pub(crate) fn connected(&mut self, peer: Peer, now: Duration) {
        let fresh = || Seen {
            boot: peer.boot,
            is_connected: true,
            heard_at: now,
            echo: None,
            sent: VecDeque::new(),
            arrived_of: now,
            flush_age: None,
            is_gone: false,
            suspected: None,
            suspected_at: None,
            flaps: 0,
            well_from: None,
        };
        let seen = self.nodes.entry(peer.node).or_insert_with(fresh);
        (seen.boot, seen.is_connected, seen.is_gone) = (peer.boot, true, false);
        (seen.heard_at, seen.arrived_of) = (now, now);
        seen.echo = None;
        seen.sent.clear();
        seen.flush_age = None;
    }

    /// ... and no more.
    pub(crate) fn disconnected(&mut self, node: NodeId) {
        if let Some(seen) = self.nodes.get_mut(&node) {
            seen.is_connected = false;
        }
    }

    /// Nothing listens at its address.
    pub(crate) fn gone(&mut self, node: NodeId) {
        if let Some(seen) = self.nodes.get_mut(&node) {
            seen.is_gone = !seen.is_connected;
        }
    }

    /// It is there.
    pub(crate) fn heard(&mut self, from: NodeId, heartbeat: &Heartbeat, now: Duration) {
        let Some(seen) = self.nodes.get_mut(&from) else {
            return;
        };
        seen.heard_at = now;
        seen.echo = Some((heartbeat.number, now));
        seen.flush_age = heartbeat.flush_age;
        let Some(echo) = heartbeat.echo else {
            return;
        };
        while let Some((number, at)) = seen.sent.front().copied() {
            if number > echo.number {
                break;
            }
            seen.arrived_of = at;
            seen.sent.pop_front();
        }
    }

    /// Time has passed: what to send, and who is suspected from now on, or no more. `flush_age`: of this node.
    pub(crate) fn tick(
        &mut self,
        now: Duration,
        flush_age: Option<Duration>,
        changed: &mut Vec<(NodeId, Option<Why>)>,
    ) -> Vec<(NodeId, Heartbeat)> {
        let hung = now.saturating_sub(self.ticked_at) >= self.times.suspect_after / 2;
        self.ticked_at = now;
        let times = self.times;
        for (node, seen) in &mut self.nodes {
            if hung {
                (seen.heard_at, seen.arrived_of) = (now, now);
            }
            let before = seen.suspected;
            seen.look(times, now);
            if before.is_none() != seen.suspected.is_none() {
                changed.push((*node, seen.suspected));
            }
        }
        if now < self.send_at {
            return Vec::new();
        }
        self.send_at = now + times.heartbeat_every;
        self.number += 1;
        let number = self.number;
        let connected = self.nodes.iter_mut().filter(|(_, seen)| seen.is_connected);
        let beats = connected.map(|(node, seen)| {
            seen.sent.push_back((number, now));
            if seen.sent.len() > SENT_MAX {
                seen.sent.pop_front();
            }
            let echo = seen.echo.map(|(number, heard_at)| Echo {
                number,
                held: now.saturating_sub(heard_at),
            });
            let heartbeat = Heartbeat {
                number,
                sent_at: now,
                echo,
                flush_age,
            };
            (*node, heartbeat)
        });
        beats.collect()
    }

    /// Nodes that are not suspected, this one among them, and the processes that answer there.
    pub(crate) fn alive(&self) -> BTreeMap<NodeId, Boot> {
        let well = self
            .nodes
            .iter()
            .filter(|(_, seen)| seen.suspected.is_none());
        let well = well.map(|(node, seen)| (*node, seen.boot));
        well.chain([self.me]).collect()
    }

    /// Whether every node had the time to be heard of since this process began.
    pub(crate) fn has_looked(&self, now: Duration) -> bool {
        now >= self.begun_at + self.times.suspect_after
    }
}

impl Seen {
    fn look(&mut self, times: Times, now: Duration) {
        let late = |since: Duration| now.saturating_sub(since) > times.suspect_after;
        let wrong = if self.is_gone {
            Some(Why::Gone)
        } else if late(self.heard_at) {
            Some(Why::Silent)
        } else if late(self.arrived_of) {
            Some(Why::Deaf)
        } else if self.flush_age.is_some_and(|age| age > times.flush_age_max) {
            Some(Why::Disk)
        } else {
            None
        };
        if let Some(wrong) = wrong {
            self.well_from = None;
            if self.suspected.is_none() {
                let recently = |at: Duration| now.saturating_sub(at) < FLAP_WITHIN;
                let flaps = self.suspected_at.is_some_and(recently);
                self.flaps = if flaps { self.flaps + 1 } else { 0 };
                self.suspected_at = Some(now);
            }
            self.suspected = Some(wrong);
            return;
        }
        if self.suspected.is_none() {
            return;
        }
        let well_from = *self.well_from.get_or_insert(now);
        let needed = match self.flaps {
            0 => Duration::ZERO,
            flaps => WELL_MIN * 2u32.pow((flaps - 1).min(DOUBLED_MAX)),
        };
        let is_well = self.is_connected && now.saturating_sub(well_from) >= needed;
        self.suspected = (!is_well).then_some(Why::Flaps);
    }
}

#[cfg(test)]
mod tests;
