//! From values to messages.

use floe_model::{LeaderEpoch, TopicPartition};

use super::messages::record::Command as Kind;
use super::messages::{self, Address, Leader, Lease, Member, Times};
use crate::{Command, NewTopic};

pub(super) fn kind_of(command: &Command) -> Kind {
    match command {
        Command::RegisterNode(node) => Kind::RegisterNode(node.into()),
        Command::ReplaceNode { node, replaces } => Kind::ReplaceNode(messages::ReplaceNode {
            node: Some(node.into()),
            replaces: replaces.0,
        }),
        Command::RenewCopies {
            node,
            incarnation,
            boot,
            copies,
        } => Kind::RenewCopies(messages::RenewCopies {
            node: node.0,
            incarnation: incarnation.0,
            boot: boot.0,
            copies: copies.iter().map(Into::into).collect(),
        }),
        Command::CreateTopic(topic) => Kind::CreateTopic(topic.into()),
        Command::SealAndOpen(transitions) => Kind::SealAndOpen(messages::SealAndOpen {
            transitions: transitions.iter().map(Into::into).collect(),
        }),
        Command::EndLeases(leases) => Kind::EndLeases(messages::EndLeases {
            leases: leases
                .iter()
                .map(|(partition, epoch)| messages::EndedLease {
                    partition: Some(partition.into()),
                    epoch: epoch.0,
                })
                .collect(),
        }),
        Command::AddHolders(claims) => Kind::AddHolders(messages::AddHolders {
            claims: claims.iter().map(Into::into).collect(),
        }),
        Command::Forget(list) => Kind::Forget(messages::Forget {
            list: list.iter().map(Into::into).collect(),
        }),
        Command::DeleteTopic(id) => Kind::DeleteTopic(messages::DeleteTopic { id: id.0.to_vec() }),
        Command::ConfirmDeleted { node, topics } => {
            Kind::ConfirmDeleted(messages::ConfirmDeleted {
                node: node.0,
                topics: topics.iter().map(|id| id.0.to_vec()).collect(),
            })
        }
        Command::AdvanceLogStart(starts) => Kind::AdvanceLogStart(messages::AdvanceLogStart {
            starts: starts
                .iter()
                .map(|(partition, to)| messages::LogStart {
                    partition: Some(partition.into()),
                    to: to.0,
                })
                .collect(),
        }),
        Command::ReserveProducerIds(node) => {
            Kind::ReserveProducerIds(messages::ReserveProducerIds { node: node.0 })
        }
    }
}

pub(super) fn list(members: &[floe_replication::Member]) -> Vec<Member> {
    members.iter().copied().map(Into::into).collect()
}

fn leases(leases: &[(LeaderEpoch, floe_replication::Member)]) -> Vec<Lease> {
    let drawn = leases.iter().map(|(epoch, leader)| Lease {
        epoch: epoch.0,
        leader: Some((*leader).into()),
    });
    drawn.collect()
}

impl From<floe_replication::Member> for Member {
    fn from(member: floe_replication::Member) -> Self {
        Self {
            node: member.node.0,
            incarnation: member.incarnation.0,
        }
    }
}

impl From<floe_replication::Leader> for Leader {
    fn from(leader: floe_replication::Leader) -> Self {
        Self {
            node: leader.node.0,
            incarnation: leader.incarnation.0,
            boot: leader.boot.0,
        }
    }
}

impl From<&TopicPartition> for Address {
    fn from(at: &TopicPartition) -> Self {
        Self {
            topic: at.topic.0.to_vec(),
            partition: at.partition.0,
        }
    }
}

impl From<crate::Times> for Times {
    fn from(times: crate::Times) -> Self {
        Self {
            min: times.min.0,
            max: times.max.0,
        }
    }
}

impl From<&crate::Node> for messages::Node {
    fn from(node: &crate::Node) -> Self {
        Self {
            id: node.id.0,
            boot: node.boot.0,
            endpoints: node
                .endpoints
                .iter()
                .map(|endpoint| messages::Endpoint {
                    door: endpoint.door.clone(),
                    host: endpoint.host.clone(),
                    port: endpoint.port.into(),
                })
                .collect(),
            incarnation: node.incarnation.0,
            protocol: node.protocol,
        }
    }
}

impl From<&crate::RenewedCopy> for messages::RenewedCopy {
    fn from(copy: &crate::RenewedCopy) -> Self {
        Self {
            partition: Some((&copy.partition).into()),
            was: copy.was.0,
            is: copy.is.0,
        }
    }
}

impl From<&NewTopic> for messages::CreateTopic {
    fn from(topic: &NewTopic) -> Self {
        Self {
            name: topic.name.to_string(),
            id: topic.id.0.to_vec(),
            partitions: topic
                .partitions
                .iter()
                .map(|partition| messages::NewPartition {
                    leader: Some(partition.leader.into()),
                    members: list(&partition.members),
                })
                .collect(),
            overrides: topic.overrides.clone(),
            internal: topic.internal,
            replication_factor: topic.replication_factor,
            quorum: topic.quorum,
            has_table: Some(topic.has_table),
        }
    }
}

impl From<&crate::Transition> for messages::Transition {
    fn from(transition: &crate::Transition) -> Self {
        Self {
            partition: Some((&transition.partition).into()),
            epoch: transition.epoch.0,
            end: transition.end.0,
            lossy: transition.lossy,
            holders: list(&transition.holders),
            leader: Some(transition.leader.into()),
            members: list(&transition.members),
            times: transition.times.map(Into::into),
            leases: leases(&transition.leases),
        }
    }
}

impl From<&crate::Claim> for messages::Claim {
    fn from(claim: &crate::Claim) -> Self {
        Self {
            member: Some(claim.member.into()),
            partition: Some((&claim.partition).into()),
            epoch: claim.epoch.0,
            as_of: claim.as_of,
        }
    }
}

impl From<&crate::Forgetting> for messages::Forgetting {
    fn from(forgetting: &crate::Forgetting) -> Self {
        Self {
            node: forgetting.node.0,
            partition: Some((&forgetting.partition).into()),
            epoch: forgetting.epoch.0,
        }
    }
}

impl From<&crate::Topic> for messages::Topic {
    fn from(topic: &crate::Topic) -> Self {
        Self {
            name: topic.name.to_string(),
            id: topic.id.0.to_vec(),
            partitions: topic.partitions.iter().map(Into::into).collect(),
            overrides: topic.overrides.clone(),
            internal: topic.internal,
            replication_factor: topic.replication_factor,
            quorum: topic.quorum,
            has_table: Some(topic.has_table),
        }
    }
}

impl From<&crate::Partition> for messages::Partition {
    fn from(partition: &crate::Partition) -> Self {
        let copies = partition.copies.iter();
        let sealed = partition.sealed.iter();
        Self {
            epoch: partition.epoch.0,
            start: partition.start.0,
            leader: Some(partition.leader.into()),
            members: list(&partition.replicas),
            log_start: partition.log_start.0,
            sealed: sealed
                .map(|sealed| {
                    let facts = partition.facts.get(&sealed.epoch);
                    let let_go = facts.map(|facts| facts.let_go.iter()).into_iter().flatten();
                    messages::Sealed {
                        epoch: sealed.epoch.0,
                        start: sealed.start.0,
                        end: sealed.end.0,
                        lossy: sealed.lossy,
                        holders: list(&sealed.holders),
                        times: partition.times(sealed.epoch).map(Into::into),
                        let_go: let_go
                            .map(|(node, index)| messages::LetGo {
                                node: node.0,
                                index: *index,
                            })
                            .collect(),
                    }
                })
                .collect(),
            leases: leases(&partition.leases),
            copies: copies
                .map(|(node, incarnation)| Member {
                    node: node.0,
                    incarnation: incarnation.0,
                })
                .collect(),
        }
    }
}
