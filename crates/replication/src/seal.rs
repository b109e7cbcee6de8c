//! Seal and open: how one generation ends and the next begins, the only way a leader or a replica set changes.
//!
//! ```text
//! begin ──Fence(all)──► asking ──n-q+1 witnesses──► waiting ──all, or Waited──► repairing ──q members hold e──► Open
//! ```
//!
//! Guarantees: the end is the largest among at least n-q+1 witnesses (at least one), so no acknowledged record lies above it;
//! nothing opens before q live copies hold the generation up to that end, nor with fewer members than q; answers after the
//! decision add holders and change nothing else. What survives is therefore the loss of any q-1 of the copies that are named.
//!
//! Whoever runs one may stop after any step: the fences stay in force, and another one, begun anew, ends the same generation. That
//! only one of them opens the next is the catalog's condition: the epoch is still open, the holders' incarnations still hold, and so
//! do those of the new members (a generation that names q lives that are over could never be sealed).

use floe_model::{LeaderEpoch, Offset};

use crate::Member;
use crate::rule::{Rule, keeps};

/// One generation on its way to be sealed.
#[derive(Clone, Debug)]
pub struct Seal {
    quorum: usize,
    members: Vec<Member>,
    next: Vec<Member>,
    leases: Vec<(LeaderEpoch, Member)>,
    witnesses: Vec<(Member, Offset)>,
    is_waiting: bool,
    decided: Option<Decided>,
    opened: bool,
    tries: usize,
}

#[derive(Clone, Debug)]
struct Decided {
    end: Offset,
    lossy: bool,
    holders: Vec<Member>,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The member's fence is durable, with everything it accepted before; its end then.
    Fenced(Member, Offset),
    /// The member holds the generation whole up to this offset, durably.
    Holds(Member, Offset),
    /// An operator, or a set of one whose only copy was damaged, gives up what may be missing: this copy, under its
    /// new incarnation, decides the end. Recorded for ever.
    LossAccepted(Member, Offset),
    /// The time that [`Command::Wait`] asked for is over.
    Waited,
    /// Nothing has come for so long that messages may be lost.
    TimedOut,
}

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Journal a fence behind everything accepted, flush, answer.
    Fence(Member),
    /// Enough have answered: wait a moment for the others (50 ms, or the time in which 99 of 100 peers answer if that is
    /// shorter), then say [`Event::Waited`]. One more whole copy is worth it.
    Wait,
    /// Bring the generation on `to` up to `end` from one that holds it.
    Copy {
        /// Who has it.
        from: Member,
        /// Who needs it.
        to: Member,
        /// Up to where.
        end: Offset,
    },
    /// Commit the catalog command.
    Open(Opening),
}

/// The decision, as the catalog command states it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opening {
    /// Where the old generation ends and the new one starts.
    pub end: Offset,
    /// Whether acknowledged records may be missing.
    pub lossy: bool,
    /// Who is proven to hold the old generation whole.
    pub holders: Vec<Member>,
    /// Leases that may still hold: of the old generation and of those before (rule LeaseGatesAllEarlier).
    pub leases: Vec<(LeaderEpoch, Member)>,
}

impl Opening {
    /// Who should lead the next generation of `next`: a proven holder, so that producer state and table are there at the end;
    /// `wished` if it is one, or if nobody is. A newcomer leads only when none is left, or by request.
    pub fn successor(&self, next: &[Member], wished: Option<Member>) -> Option<Member> {
        let is_proven = |member: &&Member| self.holders.contains(member);
        let wished = wished.filter(|member| next.contains(member));
        let mut proven = next.iter().filter(is_proven);
        wished
            .filter(|member| is_proven(&member))
            .or_else(|| proven.next().copied())
            .or(wished)
            .or_else(|| next.first().copied())
    }
}

/// `NeverBelowQ`: the next replica set is smaller than the quorum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a generation needs {quorum} members; {members} are given")]
pub struct TooFew {
    /// How many are needed.
    pub quorum: usize,
    /// How many there are.
    pub members: usize,
}

impl Seal {
    /// Begins to seal the generation of `members` in favour of one of `next`.
    pub fn begin(
        members: Vec<Member>,
        next: Vec<Member>,
        quorum: usize,
    ) -> Result<(Self, Vec<Command>), TooFew> {
        if next.len() < quorum {
            return Err(TooFew {
                quorum,
                members: next.len(),
            });
        }
        let fences = members.iter().copied().map(Command::Fence).collect();
        let seal = Self {
            quorum,
            members,
            next,
            leases: Vec::new(),
            witnesses: Vec::new(),
            is_waiting: false,
            decided: None,
            opened: false,
            tries: 0,
        };
        Ok((seal, fences))
    }

    /// Leases that may hold, of this generation and of earlier ones, with the member that led. One is proven ended when that
    /// member confirms the fence.
    #[must_use]
    pub fn with_leases(mut self, leases: Vec<(LeaderEpoch, Member)>) -> Self {
        self.leases = leases;
        self
    }

    /// Takes an event in, gives what to do next.
    pub fn step(&mut self, event: Event) -> Vec<Command> {
        match event {
            Event::Fenced(member, end) => self.fenced(member, end),
            Event::Holds(member, end) => self.holds(member, end),
            Event::LossAccepted(member, end) => self.loss_accepted(member, end),
            Event::Waited if self.is_waiting && self.decided.is_none() => self.decide(false),
            Event::Waited => Vec::new(),
            Event::TimedOut => self.again(),
        }
    }

    /// Asks again who has not answered, or has the missing copies made from the next holder.
    fn again(&mut self) -> Vec<Command> {
        self.tries += 1;
        if self.opened {
            return Vec::new();
        }
        if self.decided.is_some() {
            return self.repair();
        }
        let is_missing =
            |member: &&Member| self.witnesses.iter().all(|(known, _)| known != *member);
        let missing = self.members.iter().filter(is_missing);
        missing.copied().map(Command::Fence).collect()
    }

    fn fenced(&mut self, member: Member, end: Offset) -> Vec<Command> {
        let known = self.witnesses.iter().any(|(witness, _)| *witness == member);
        // Rule WipedIsNoWitness: only members count, under the incarnation that the generation names.
        if !self.members.contains(&member) || known {
            return Vec::new();
        }
        self.witnesses.push((member, end));
        self.leases.retain(|(_, leader)| *leader != member);
        if self.decided.is_some() {
            return self.holds(member, end);
        }
        let needed = (self.members.len() + 1).saturating_sub(self.quorum).max(1);
        if self.witnesses.len() == self.members.len() {
            return self.decide(false);
        }
        if self.witnesses.len() < needed || std::mem::replace(&mut self.is_waiting, true) {
            return Vec::new();
        }
        vec![Command::Wait]
    }

    fn loss_accepted(&mut self, member: Member, end: Offset) -> Vec<Command> {
        if self.decided.is_some() {
            return Vec::new();
        }
        self.witnesses.push((member, end));
        self.decide(true)
    }

    /// Rule LargestEnd. With `lossy` the last witness decides alone.
    fn decide(&mut self, lossy: bool) -> Vec<Command> {
        let ends = self.witnesses.iter().map(|(_, end)| *end);
        let end = if lossy {
            self.witnesses.last().map(|(_, end)| *end)
        } else if keeps(Rule::LargestEnd) {
            ends.max()
        } else {
            ends.min()
        };
        let end = end.expect("there is at least one witness");
        let holders = self.witnesses.iter().filter(|(_, held)| *held >= end);
        self.decided = Some(Decided {
            end,
            lossy,
            holders: holders.map(|(member, _)| *member).collect(),
        });
        let opening = self.open();
        if !opening.is_empty() {
            return opening;
        }
        self.repair()
    }

    /// Copies to members, old or new, that lack the tail, until q can hold it.
    fn repair(&self) -> Vec<Command> {
        let Some(decided) = &self.decided else {
            return Vec::new();
        };
        let holders = &decided.holders;
        if holders.is_empty() {
            return Vec::new();
        }
        let from = holders[self.tries % holders.len()];
        let mut targets: Vec<Member> = Vec::new();
        let witnesses = self.witnesses.iter().map(|(witness, _)| witness);
        for member in witnesses.chain(&self.next) {
            if !holders.contains(member) && !targets.contains(member) {
                targets.push(*member);
            }
        }
        let end = decided.end;
        targets
            .into_iter()
            .map(|to| Command::Copy { from, to, end })
            .collect()
    }

    fn holds(&mut self, member: Member, up_to: Offset) -> Vec<Command> {
        // Live nodes of the old set or the new one, under the incarnation that was asked (rule WipedIsNoFollower).
        let is_ours = self.members.contains(&member) || self.next.contains(&member);
        let Some(decided) = self.decided.as_mut().filter(|_| is_ours) else {
            return Vec::new();
        };
        if up_to >= decided.end && !decided.holders.contains(&member) {
            decided.holders.push(member);
        }
        self.open()
    }

    /// Rule RepairReachesQuorum: not before q members hold the generation whole. ("Whole": from its start; holding only what
    /// lies above a known commit offset is not counted.)
    fn open(&mut self) -> Vec<Command> {
        let Some(decided) = &self.decided else {
            return Vec::new();
        };
        let needed = if keeps(Rule::RepairReachesQuorum) {
            self.quorum
        } else {
            1
        };
        if self.opened || decided.holders.len() < needed {
            return Vec::new();
        }
        self.opened = true;
        vec![Command::Open(Opening {
            end: decided.end,
            lossy: decided.lossy,
            holders: decided.holders.clone(),
            leases: self.leases.clone(),
        })]
    }
}

#[cfg(test)]
mod tests {
    use floe_model::{Incarnation, NodeId};

    use super::*;

    /// `3` is node 3 in its first incarnation, `3'` in its second.
    fn member(text: &str) -> Member {
        Member {
            node: NodeId(text.trim_end_matches('\'').parse().unwrap()),
            incarnation: Incarnation(if text.ends_with('\'') { 2 } else { 1 }),
        }
    }

    fn name(member: Member) -> String {
        let life = if member.incarnation.0 == 2 { "'" } else { "" };
        format!("{}{life}", member.node)
    }

    fn members(text: &str) -> Vec<Member> {
        text.split_whitespace().map(member).collect()
    }

    fn show(commands: &[Command]) -> String {
        let shown: Vec<_> = commands
            .iter()
            .map(|command| match command {
                Command::Fence(member) => format!("fence {}", name(*member)),
                Command::Wait => "wait".to_owned(),
                Command::Copy { from, to, end } => {
                    format!("copy {} to {} up to {end}", name(*from), name(*to))
                }
                Command::Open(opening) => {
                    let holders: Vec<_> = opening.holders.iter().copied().map(name).collect();
                    let lossy = if opening.lossy { " lossy" } else { "" };
                    let leases = opening.leases.iter();
                    let leases = leases
                        .map(|(epoch, leader)| format!(" lease {epoch} of {}", name(*leader)));
                    format!(
                        "open at {}{lossy} held by {}{}",
                        opening.end,
                        holders.join(" "),
                        leases.collect::<Vec<_>>().concat()
                    )
                }
            })
            .collect();
        if shown.is_empty() {
            "nothing".to_owned()
        } else {
            shown.join(", ")
        }
    }

    /// First line: `<members> | <next members> | <q> [| <epoch> <leader>, ..] -> <commands>`, the last being leases; then
    /// `fenced|holds|loss <member> <end> -> <commands>` or `waited|late -> <commands>`.
    fn check(scenario: &str) {
        let mut lines = scenario
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty());
        let (sets, expected) = lines.next().unwrap().split_once(" -> ").unwrap();
        let sets: Vec<_> = sets.split('|').map(str::trim).collect();
        let quorum = sets[2].parse().unwrap();
        let leases = sets.get(3).map(|leases| {
            let leases = leases.split(", ").map(|lease| {
                let (epoch, leader) = lease.split_once(' ').unwrap();
                (LeaderEpoch(epoch.parse().unwrap()), member(leader))
            });
            leases.collect()
        });
        let (seal, commands) = Seal::begin(members(sets[0]), members(sets[1]), quorum).unwrap();
        let mut seal = seal.with_leases(leases.unwrap_or_default());
        assert_eq!(show(&commands), expected);
        for line in lines {
            let (event, expected) = line.split_once(" -> ").unwrap();
            let words: Vec<_> = event.split_whitespace().collect();
            let who = || member(words[1]);
            let end = || Offset(words[2].parse().unwrap());
            let event = match words[0] {
                "fenced" => Event::Fenced(who(), end()),
                "holds" => Event::Holds(who(), end()),
                "waited" => Event::Waited,
                "late" => Event::TimedOut,
                _ => Event::LossAccepted(who(), end()),
            };
            assert_eq!(show(&seal.step(event)), expected, "at: {line}");
        }
    }

    #[test]
    fn a_set_of_one_seals_at_its_own_end_and_opens_once() {
        check(
            "1 | 1 | 1 -> fence 1
             fenced 1 42 -> open at 42 held by 1
             fenced 1 42 -> nothing
             holds 1 42 -> nothing",
        );
    }

    #[test]
    fn the_end_is_the_largest_of_enough_witnesses_and_late_answers_do_not_change_it() {
        check(
            "1 2 3 | 1 2 3 | 2 -> fence 1, fence 2, fence 3
             fenced 2 40 -> nothing
             fenced 3 50 -> wait
             waited -> copy 3 to 2 up to 50, copy 3 to 1 up to 50
             fenced 1 60 -> open at 50 held by 3 1
             waited -> nothing",
        );
    }

    #[test]
    fn whoever_answers_while_the_seal_waits_counts() {
        check(
            "1 2 3 | 1 2 3 | 2 -> fence 1, fence 2, fence 3
             fenced 2 50 -> nothing
             fenced 3 50 -> wait
             fenced 1 60 -> copy 1 to 2 up to 60, copy 1 to 3 up to 60
             holds 3 60 -> open at 60 held by 1 3",
        );
    }

    #[test]
    fn nothing_opens_before_a_quorum_holds_the_generation() {
        check(
            "1 2 3 | 2 3 4 | 2 -> fence 1, fence 2, fence 3
             fenced 2 40 -> nothing
             fenced 3 50 -> wait
             waited -> copy 3 to 2 up to 50, copy 3 to 4 up to 50
             holds 4 49 -> nothing
             holds 5 50 -> nothing
             holds 4 50 -> open at 50 held by 3 4",
        );
    }

    #[test]
    fn what_is_lost_is_asked_for_again_and_from_another_holder() {
        check(
            "1 2 3 4 5 | 1 2 3 4 5 | 3 -> fence 1, fence 2, fence 3, fence 4, fence 5
             fenced 1 50 -> nothing
             late -> fence 2, fence 3, fence 4, fence 5
             fenced 2 50 -> nothing
             fenced 4 40 -> wait
             waited -> copy 2 to 4 up to 50, copy 2 to 3 up to 50, copy 2 to 5 up to 50
             late -> copy 1 to 4 up to 50, copy 1 to 3 up to 50, copy 1 to 5 up to 50
             holds 5 50 -> open at 50 held by 1 2 5
             late -> nothing",
        );
    }

    #[test]
    fn a_lease_stays_on_the_list_until_its_leader_confirms_the_fence() {
        check(
            "1 2 3 | 1 2 3 | 2 | 4 1, 6 2 -> fence 1, fence 2, fence 3
             fenced 2 50 -> nothing
             fenced 3 50 -> wait
             waited -> open at 50 held by 2 3 lease 4 of 1",
        );
    }

    #[test]
    fn a_proven_holder_leads_next_unless_there_is_none() {
        let opening = |holders| Opening {
            end: Offset(9),
            lossy: false,
            holders: members(holders),
            leases: Vec::new(),
        };
        let next = members("1 2 3");
        let successor = |holders, wished: Option<&str>| {
            let chosen = opening(holders).successor(&next, wished.map(member));
            chosen.map(name).unwrap()
        };
        assert_eq!(successor("2 3", None), "2");
        assert_eq!(successor("2 3", Some("3")), "3");
        assert_eq!(successor("2 3", Some("1")), "2");
        assert_eq!(successor("2 3", Some("4")), "2");
        assert_eq!(successor("4 5", Some("3")), "3");
        assert_eq!(successor("4 5", None), "1");
    }

    #[test]
    fn another_incarnation_is_no_witness() {
        check(
            "1 | 1' | 1 -> fence 1
             fenced 1' 42 -> nothing
             loss 1' 42 -> open at 42 lossy held by 1'",
        );
    }

    #[test]
    fn a_set_below_the_quorum_is_never_opened() {
        let refused = Seal::begin(members("1 2 3"), members("1"), 2).unwrap_err();
        assert_eq!(
            refused,
            TooFew {
                quorum: 2,
                members: 1
            }
        );
    }
}
