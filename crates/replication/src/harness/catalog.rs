//! The catalog as replicas need it: a list of conditional commands, applied at once, learned one by one.

use std::collections::HashMap;

use floe_model::{Boot, LeaderEpoch, NodeId, Offset};

use super::Switch;
use crate::replica::Opened;
use crate::rule::{Rule, keeps};
use crate::{Leader, Member, Opening, Sealed};

#[derive(Clone, Debug)]
pub(super) enum Entry {
    Opened(Opened),
    Sealed(LeaderEpoch, Offset),
    Forgotten(NodeId, LeaderEpoch),
}

/// A claim to hold a sealed generation, on its way to the catalog.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claim {
    pub(super) member: Member,
    pub(super) epoch: LeaderEpoch,
    pub(super) as_of: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Catalog {
    /// Index of an entry: its place plus one.
    pub(super) entries: Vec<Entry>,
    pub(super) open: Opened,
    pub(super) open_leases: Vec<(LeaderEpoch, Member)>,
    pub(super) sealed: Vec<Sealed>,
    /// Who each node is now, and in which boot.
    pub(super) nodes: HashMap<NodeId, Leader>,
    forgotten: HashMap<(NodeId, LeaderEpoch), u64>,
    pub(super) quorum: usize,
    switch: Option<Switch>,
}

impl Catalog {
    pub(super) fn new(nodes: &[Leader], first: Opened, switch: Option<Switch>) -> Self {
        Self {
            entries: vec![Entry::Opened(first.clone())],
            quorum: first.quorum,
            open: first,
            open_leases: Vec::new(),
            sealed: Vec::new(),
            nodes: nodes.iter().map(|node| (node.node, *node)).collect(),
            forgotten: HashMap::new(),
            switch,
        }
    }

    pub(super) fn is_current(&self, member: &Member) -> bool {
        self.nodes[&member.node].member() == *member
    }

    /// A seal is conditional on the open epoch and on the incarnations of the proven holders. So it is on those of the new
    /// members: a generation that names q lives that are over could never be sealed.
    pub(super) fn seal(
        &mut self,
        epoch: LeaderEpoch,
        opening: &Opening,
        members: Vec<Member>,
        leader: Leader,
    ) -> bool {
        let is_late = self.open.epoch == epoch.next() && self.switch == Some(Switch::SealTwice);
        if is_late {
            self.sealed.pop();
        } else if self.open.epoch != epoch {
            return false;
        }
        let holders = opening.holders.iter();
        let current = holders.filter(|holder| self.is_current(holder)).count();
        if current < self.open.quorum && keeps(Rule::RepairReachesQuorum) {
            return false;
        }
        if !members.iter().all(|member| self.is_current(member)) {
            return false;
        }
        let start = self.sealed.last().map_or(Offset(0), |before| before.end);
        self.sealed.push(Sealed {
            epoch,
            start,
            end: opening.end,
            lossy: false,
            holders: opening.holders.clone(),
        });
        let quorum = match self.switch {
            Some(Switch::QuorumShrinks) => self.quorum.min(members.len()),
            _ => self.quorum,
        };
        self.open = Opened {
            epoch: epoch.next(),
            start: opening.end,
            leader,
            members,
            quorum,
            has_table: true,
            leases: opening.leases.iter().map(|(epoch, _)| *epoch).collect(),
        };
        self.open_leases.clone_from(&opening.leases);
        self.entries.push(Entry::Sealed(epoch, opening.end));
        self.entries.push(Entry::Opened(self.open.clone()));
        true
    }

    /// The leases that a seal of the open generation has to end.
    pub(super) fn leases(&self) -> Vec<(LeaderEpoch, Member)> {
        let mut leases = self.open_leases.clone();
        leases.push((self.open.epoch, self.open.leader.member()));
        leases
    }

    pub(super) fn sealed(&self, epoch: LeaderEpoch) -> Option<&Sealed> {
        self.sealed.iter().find(|sealed| sealed.epoch == epoch)
    }

    /// Who is no member of the open generation may forget what enough others hold.
    pub(super) fn forget(&mut self, member: Member, epoch: LeaderEpoch) -> bool {
        let is_member = self
            .open
            .members
            .iter()
            .any(|open| open.node == member.node);
        let may = self
            .sealed(epoch)
            .is_some_and(|sealed| sealed.may_forget(member, self.quorum, |m| self.is_current(m)));
        if is_member || !may {
            return false;
        }
        self.entries.push(Entry::Forgotten(member.node, epoch));
        let index = self.entries.len() as u64;
        self.forgotten.insert((member.node, epoch), index);
        let sealed = self.sealed.iter_mut().find(|sealed| sealed.epoch == epoch);
        let holders = &mut sealed.expect("found above").holders;
        holders.retain(|holder| holder.node != member.node);
        true
    }

    /// Rule ClaimNamesIncarnation: the life that copied is recorded. Rule ForgetVoidsClaim: not if it was let go since.
    pub(super) fn record(&mut self, claim: Claim) {
        let let_go = self.forgotten.get(&(claim.member.node, claim.epoch));
        let is_void = let_go.is_some_and(|index| *index > claim.as_of);
        if is_void && self.switch != Some(Switch::ForgottenClaims) {
            return;
        }
        let named = if self.switch == Some(Switch::ClaimsOfNobody) {
            self.nodes[&claim.member.node].member()
        } else {
            claim.member
        };
        let (quorum, nodes) = (self.quorum, &self.nodes);
        let is_current = |member: &Member| nodes[&member.node].member() == *member;
        let sealed = self
            .sealed
            .iter_mut()
            .find(|sealed| sealed.epoch == claim.epoch);
        let holders = &mut sealed.expect("claims are of sealed generations").holders;
        if !holders.contains(&named) {
            holders.push(named);
        }
        // Lives that are over are struck off once enough others are recorded.
        if holders.iter().filter(|holder| is_current(holder)).count() >= quorum {
            holders.retain(is_current);
        }
    }

    /// P1 speaks of the loss of at most q-1 of the copies that are named: whether this node's may be lost now.
    pub(super) fn survives_without(&self, node: NodeId) -> bool {
        let lost = |named: &[Member]| {
            let is_lost = |member: &&Member| member.node == node || !self.is_current(member);
            named.iter().filter(is_lost).count()
        };
        self.sealed
            .iter()
            .all(|sealed| lost(&sealed.holders) < self.quorum)
            && lost(&self.open.members) < self.quorum
    }

    pub(super) fn register(&mut self, node: NodeId, member: Member, boot: Boot) {
        let leader = Leader {
            node,
            incarnation: member.incarnation,
            boot,
        };
        self.nodes.insert(node, leader);
    }
}
