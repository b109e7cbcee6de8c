//! Seal and open: how one generation ends and the next begins, the only way a leader or a replica set changes.
//!
//! ```text
//! new ──Fence(all)──► asking ──n-q+1 witnesses──► repairing ──q members of the next set hold e──► Open
//! ```
//!
//! Guarantees: the end is the largest among at least n-q+1 witnesses (at least one), so no acknowledged record lies above it;
//! nothing opens before q live copies hold the generation up to that end (`RepairReachesQuorum`), nor with fewer
//! members than q (`NeverBelowQ`); answers after the decision add holders and change nothing else.

use floe_model::Offset;

use crate::Member;

/// One generation on its way to be sealed.
#[derive(Clone, Debug)]
pub struct Seal {
    quorum: usize,
    members: Vec<Member>,
    next: Vec<Member>,
    witnesses: Vec<(Member, Offset)>,
    decided: Option<Decided>,
    opened: bool,
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
}

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Journal a fence behind everything accepted, flush, answer.
    Fence(Member),
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
            witnesses: Vec::new(),
            decided: None,
            opened: false,
        };
        Ok((seal, fences))
    }

    /// Takes an event in, gives what to do next.
    pub fn step(&mut self, event: Event) -> Vec<Command> {
        match event {
            Event::Fenced(member, end) => self.fenced(member, end),
            Event::Holds(member, end) => self.holds(member, end),
            Event::LossAccepted(member, end) => self.loss_accepted(member, end),
        }
    }

    fn fenced(&mut self, member: Member, end: Offset) -> Vec<Command> {
        let known = self.witnesses.iter().any(|(witness, _)| *witness == member);
        if !self.members.contains(&member) || known {
            return Vec::new();
        }
        self.witnesses.push((member, end));
        if self.decided.is_some() {
            return self.holds(member, end);
        }
        let needed = (self.members.len() + 1).saturating_sub(self.quorum).max(1);
        if self.witnesses.len() < needed {
            return Vec::new();
        }
        let end = self.witnesses.iter().map(|(_, end)| *end).max();
        self.decide(end.expect("there is at least one witness"), false)
    }

    fn loss_accepted(&mut self, member: Member, end: Offset) -> Vec<Command> {
        if self.decided.is_some() {
            return Vec::new();
        }
        self.witnesses.push((member, end));
        self.decide(end, true)
    }

    fn decide(&mut self, end: Offset, lossy: bool) -> Vec<Command> {
        let holders = self
            .witnesses
            .iter()
            .filter(|(_, held)| *held >= end)
            .map(|(member, _)| *member)
            .collect();
        self.decided = Some(Decided {
            end,
            lossy,
            holders,
        });
        let opening = self.open();
        if !opening.is_empty() {
            return opening;
        }
        self.repair(end)
    }

    /// Copies to members, old or new, that lack the tail, until q can hold it.
    fn repair(&self, end: Offset) -> Vec<Command> {
        let holders = self.holders();
        let Some(from) = holders.first().copied() else {
            return Vec::new();
        };
        let mut targets: Vec<Member> = Vec::new();
        for member in self
            .witnesses
            .iter()
            .map(|(witness, _)| witness)
            .chain(&self.next)
        {
            if !holders.contains(member) && !targets.contains(member) {
                targets.push(*member);
            }
        }
        targets
            .into_iter()
            .map(|to| Command::Copy { from, to, end })
            .collect()
    }

    fn holds(&mut self, member: Member, up_to: Offset) -> Vec<Command> {
        let Some(decided) = &mut self.decided else {
            return Vec::new();
        };
        if up_to >= decided.end && !decided.holders.contains(&member) {
            decided.holders.push(member);
        }
        self.open()
    }

    fn open(&mut self) -> Vec<Command> {
        let Some(decided) = &self.decided else {
            return Vec::new();
        };
        if self.opened || decided.holders.len() < self.quorum {
            return Vec::new();
        }
        self.opened = true;
        vec![Command::Open(Opening {
            end: decided.end,
            lossy: decided.lossy,
            holders: decided.holders.clone(),
        })]
    }

    fn holders(&self) -> &[Member] {
        self.decided
            .as_ref()
            .map_or(&[], |decided| &decided.holders)
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
                Command::Copy { from, to, end } => {
                    format!("copy {} to {} up to {end}", name(*from), name(*to))
                }
                Command::Open(opening) => {
                    let holders: Vec<_> = opening.holders.iter().copied().map(name).collect();
                    let lossy = if opening.lossy { " lossy" } else { "" };
                    format!(
                        "open at {}{lossy} held by {}",
                        opening.end,
                        holders.join(" ")
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

    /// First line: `<members> | <next members> | <q> -> <commands>`; then `fenced|holds|loss <member> <end> -> <commands>`.
    fn check(scenario: &str) {
        let mut lines = scenario
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty());
        let (sets, expected) = lines.next().unwrap().split_once(" -> ").unwrap();
        let sets: Vec<_> = sets.split('|').map(str::trim).collect();
        let quorum = sets[2].parse().unwrap();
        let (mut seal, commands) = Seal::begin(members(sets[0]), members(sets[1]), quorum).unwrap();
        assert_eq!(show(&commands), expected);
        for line in lines {
            let (event, expected) = line.split_once(" -> ").unwrap();
            let words: Vec<_> = event.split_whitespace().collect();
            let (who, end) = (member(words[1]), Offset(words[2].parse().unwrap()));
            let event = match words[0] {
                "fenced" => Event::Fenced(who, end),
                "holds" => Event::Holds(who, end),
                _ => Event::LossAccepted(who, end),
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
             fenced 3 50 -> copy 3 to 2 up to 50, copy 3 to 1 up to 50
             fenced 1 60 -> open at 50 held by 3 1",
        );
    }

    #[test]
    fn nothing_opens_before_a_quorum_holds_the_generation() {
        check(
            "1 2 3 | 2 3 4 | 2 -> fence 1, fence 2, fence 3
             fenced 2 40 -> nothing
             fenced 3 50 -> copy 3 to 2 up to 50, copy 3 to 4 up to 50
             holds 4 49 -> nothing
             holds 4 50 -> open at 50 held by 3 4",
        );
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
