//! Creating and deleting topics: what is asked is checked here, what holds is decided by the catalog.

use std::collections::BTreeMap;
use std::sync::Arc;

use floe_cluster::{Catalog, Command, InvalidSetting, NewPartition, Refusal, Topic, TopicSettings};
use floe_model::{
    Incarnation, LeaderEpoch, PartitionIndex, TopicId, TopicName, TopicPartition, limits,
};
use floe_replication::{Leader, Member, quorum};

use crate::node::Node;
use crate::{CreateTopicError, DeleteTopicError, Unavailable};

/// Copies of each partition: this node is the only one.
const REPLICATION_FACTOR: u32 = 1;

/// A topic to create.
#[derive(Clone, Debug, Default)]
pub struct NewTopic {
    /// Its name, unchecked.
    pub name: String,
    /// How many partitions; `None` (Kafka's -1) takes the node's default.
    pub partitions: Option<i32>,
    /// How many copies; `None` (Kafka's -1) leaves it to the node.
    pub replication_factor: Option<i16>,
    /// Settings by Kafka's names.
    pub settings: Vec<(String, String)>,
    /// Check only.
    pub validate_only: bool,
}

/// A checked wish.
struct Plan {
    name: TopicName,
    partitions: u32,
    overrides: BTreeMap<String, String>,
    internal: bool,
}

impl Node {
    /// See [`Broker::create_topic`](crate::Broker::create_topic).
    pub(crate) async fn create_topic(&self, new: NewTopic) -> Result<Arc<Topic>, CreateTopicError> {
        let plan = self.plan(&new)?;
        refuse_taken(&self.catalog.load(), &plan.name)?;
        if new.validate_only {
            return Ok(Arc::new(self.preview(plan)));
        }
        self.create(plan).await
    }

    /// See [`Broker::create_internal_topic`](crate::Broker::create_internal_topic).
    pub(crate) async fn create_internal_topic(
        &self,
        name: &str,
        partitions: u32,
        compact: bool,
    ) -> Result<Arc<Topic>, CreateTopicError> {
        let name = TopicName::parse(name)?;
        if let Some(topic) = self.catalog.load().topics.get(&name) {
            return Ok(Arc::clone(topic));
        }
        let policy = if compact { "compact" } else { "delete" };
        let plan = Plan {
            name: name.clone(),
            partitions,
            overrides: BTreeMap::from([("cleanup.policy".to_owned(), policy.to_owned())]),
            internal: true,
        };
        self.create_or_find(plan).await
    }

    /// See [`Broker::topic_or_create`](crate::Broker::topic_or_create).
    pub(crate) async fn topic_or_create(
        &self,
        name: &str,
    ) -> Result<Option<Arc<Topic>>, CreateTopicError> {
        let name = TopicName::parse(name)?;
        let catalog = self.catalog.load_full();
        if let Some(topic) = catalog.topics.get(&name) {
            return Ok(Some(Arc::clone(topic)));
        }
        if !self.settings.auto_create_topics {
            return Ok(None);
        }
        refuse_taken(&catalog, &name)?;
        let plan = Plan {
            name,
            partitions: self.settings.partitions_default,
            overrides: BTreeMap::new(),
            internal: false,
        };
        self.create_or_find(plan).await.map(Some)
    }

    /// Two may ask for the same name at once: both get the one that comes to be.
    async fn create_or_find(&self, plan: Plan) -> Result<Arc<Topic>, CreateTopicError> {
        let name = plan.name.clone();
        match self.create(plan).await {
            Err(CreateTopicError::Exists(_)) => self
                .catalog
                .load()
                .topics
                .get(&name)
                .cloned()
                .ok_or(CreateTopicError::Exists(name)),
            created => created,
        }
    }

    fn plan(&self, new: &NewTopic) -> Result<Plan, CreateTopicError> {
        let name = TopicName::parse(&new.name)?;
        let default = self.settings.partitions_default;
        let partitions = new.partitions.map_or(i64::from(default), i64::from);
        if !(1..=i64::from(limits::PARTITIONS_PER_TOPIC_MAX)).contains(&partitions) {
            return Err(CreateTopicError::Partitions {
                partitions,
                limit: limits::PARTITIONS_PER_TOPIC_MAX,
            });
        }
        if let Some(factor) = new.replication_factor.filter(|factor| *factor != 1) {
            return Err(CreateTopicError::ReplicationFactor {
                factor: factor.into(),
                nodes: 1,
            });
        }
        let overrides: BTreeMap<_, _> = new.settings.iter().cloned().collect();
        let settings = TopicSettings::resolve(&self.settings.topic_defaults, &overrides)
            .map_err(CreateTopicError::Settings)?;
        let batch_bytes_max = self.settings.log.batch_bytes_max;
        if settings.max_message_bytes as usize > batch_bytes_max {
            let fault = InvalidSetting::Value {
                name: "max.message.bytes".to_owned(),
                value: settings.max_message_bytes.to_string(),
                expected: format!(
                    "this node's log takes batches of at most {batch_bytes_max} bytes"
                ),
            };
            return Err(CreateTopicError::Settings(vec![fault]));
        }
        Ok(Plan {
            name,
            partitions: partitions as u32,
            overrides,
            internal: false,
        })
    }

    /// What a topic would be, under no id.
    fn preview(&self, plan: Plan) -> Topic {
        let me = self.leader(Member {
            node: self.settings.node,
            incarnation: Incarnation(0),
        });
        let partitions = (0..plan.partitions).map(|index| {
            let index = PartitionIndex(index);
            floe_cluster::Partition::first(index, LeaderEpoch(0), me, vec![me.member()])
        });
        Topic {
            name: plan.name,
            id: TopicId::ZERO,
            replication_factor: REPLICATION_FACTOR,
            quorum: quorum(REPLICATION_FACTOR as usize) as u32,
            has_table: plan.internal,
            partitions: partitions.collect(),
            overrides: plan.overrides,
            internal: plan.internal,
        }
    }

    /// Binds the partitions here, so that the command can name their incarnations, then has the topic committed.
    async fn create(&self, plan: Plan) -> Result<Arc<Topic>, CreateTopicError> {
        let id = TopicId(self.world.random.id());
        let addresses: Vec<_> = (0..plan.partitions)
            .map(|partition| TopicPartition {
                topic: id,
                partition: PartitionIndex(partition),
            })
            .collect();
        let bound: Vec<_> = addresses.iter().map(|at| self.log.bind(*at)).collect();
        let mut partitions = Vec::with_capacity(bound.len());
        for receipt in bound {
            let incarnation = receipt.await.map_err(|_| Unavailable::Stopping)?;
            let member = Member {
                node: self.settings.node,
                incarnation,
            };
            partitions.push(NewPartition {
                leader: self.leader(member),
                members: vec![member],
            });
        }
        let command = Command::CreateTopic(floe_cluster::NewTopic {
            name: plan.name.clone(),
            id,
            replication_factor: REPLICATION_FACTOR,
            quorum: quorum(REPLICATION_FACTOR as usize) as u32,
            has_table: plan.internal,
            partitions,
            overrides: plan.overrides,
            internal: plan.internal,
        });
        let applied = self.propose(command).await?;
        if let Some(refusal) = applied.refused.into_iter().next() {
            // Dropped unawaited: nothing was ever in them.
            for at in &addresses {
                drop(self.log.forget(*at));
            }
            return Err(refused(plan.name, refusal));
        }
        // Deleted again in the same breath: as if it had never been found.
        let catalog = self.catalog.load();
        let topic = catalog.topic_by_id(id).cloned();
        topic.ok_or(CreateTopicError::Unavailable(Unavailable::Stopping))
    }

    fn leader(&self, member: Member) -> Leader {
        Leader {
            node: member.node,
            incarnation: member.incarnation,
            boot: self.boot,
        }
    }

    /// See [`Broker::delete_topic_by_id`](crate::Broker::delete_topic_by_id).
    pub(crate) async fn delete_topic_by_id(&self, id: TopicId) -> Result<(), DeleteTopicError> {
        let catalog = self.catalog.load_full();
        let unknown = || DeleteTopicError::Unknown(id.to_string());
        let topic = catalog.topic_by_id(id).ok_or_else(unknown)?;
        if topic.internal {
            return Err(DeleteTopicError::Internal(topic.name.clone()));
        }
        let applied = self.propose(Command::DeleteTopic(id)).await?;
        if applied.refused.is_empty() {
            Ok(())
        } else {
            Err(unknown())
        }
    }
}

/// Refuses early what the catalog would refuse.
fn refuse_taken(catalog: &Catalog, name: &TopicName) -> Result<(), CreateTopicError> {
    if catalog.topics.contains_key(name) {
        return Err(CreateTopicError::Exists(name.clone()));
    }
    match catalog.collision(name) {
        Some(existing) => Err(CreateTopicError::Collision {
            name: name.clone(),
            existing: existing.clone(),
        }),
        None => Ok(()),
    }
}

fn refused(name: TopicName, refusal: Refusal) -> CreateTopicError {
    match refusal {
        Refusal::TopicExists(existing) => CreateTopicError::Exists(existing),
        Refusal::Collides(existing) => CreateTopicError::Collision { name, existing },
        Refusal::IdTaken(_) => unreachable!("ids are 128 random bits"),
        Refusal::Unfit { .. }
        | Refusal::UnknownTopic(_)
        | Refusal::NotOpen { .. }
        | Refusal::Node { .. } => {
            unreachable!("a creation names this process, and no other topic")
        }
    }
}
