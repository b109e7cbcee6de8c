//! Creating and deleting topics: what is asked is checked here, what holds is decided by the catalog.

use std::collections::BTreeMap;
use std::sync::Arc;

use floe_cluster::placement::{Factor, place};
use floe_cluster::{Catalog, Command, InvalidSetting, Refusal, Topic, TopicSettings};
use floe_model::{LeaderEpoch, PartitionIndex, TopicId, TopicName, limits};
use floe_replication::quorum;

use crate::node::Node;
use crate::{CreateTopicError, DeleteTopicError, Unavailable};

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
    factor: Factor,
    overrides: BTreeMap<String, String>,
    internal: bool,
}

impl Node {
    /// See [`Broker::create_topic`](crate::Broker::create_topic).
    pub(crate) async fn create_topic(&self, new: NewTopic) -> Result<Arc<Topic>, CreateTopicError> {
        let plan = self.plan(&new)?;
        refuse_taken(&self.catalog.load(), &plan.name)?;
        if new.validate_only {
            return self.preview(&plan).map(Arc::new);
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
            factor: Factor::Auto,
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
            factor: Factor::Auto,
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
        let factor = match new.replication_factor {
            None => Factor::Auto,
            // Below zero there is nothing that could be meant.
            Some(factor) => Factor::Copies(u32::try_from(factor).unwrap_or(0)),
        };
        let nodes = self.catalog.load().nodes.len();
        factor
            .copies(nodes)
            .map_err(|_| factor_refused(factor, nodes))?;
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
            factor,
            overrides,
            internal: false,
        })
    }

    /// What a topic would be, under no id.
    fn preview(&self, plan: &Plan) -> Result<Topic, CreateTopicError> {
        let new = self.placed(plan, TopicId::ZERO)?;
        let partitions = new.partitions.into_iter().zip(0..).map(|(new, index)| {
            let index = PartitionIndex(index);
            floe_cluster::Partition::first(index, LeaderEpoch(0), new.leader, new.members)
        });
        Ok(Topic {
            name: new.name,
            id: new.id,
            replication_factor: new.replication_factor,
            quorum: new.quorum,
            has_table: new.has_table,
            partitions: partitions.collect(),
            overrides: new.overrides,
            internal: new.internal,
        })
    }

    /// Places its partitions on the nodes that are registered.
    fn placed(&self, plan: &Plan, id: TopicId) -> Result<floe_cluster::NewTopic, CreateTopicError> {
        let catalog = self.catalog.load();
        let no = |_| factor_refused(plan.factor, catalog.nodes.len());
        let copies = plan.factor.copies(catalog.nodes.len()).map_err(no)?;
        let places = place(&catalog, plan.partitions, Factor::Copies(copies)).map_err(no)?;
        let partitions = places.iter().map(|place| {
            // Should the first one not answer, the controller sees to it at once.
            let partition = place.partition(&catalog, |_| true);
            partition.ok_or(CreateTopicError::Unavailable(Unavailable::NotAgreed))
        });
        Ok(floe_cluster::NewTopic {
            name: plan.name.clone(),
            id,
            replication_factor: copies,
            quorum: quorum(copies as usize) as u32,
            has_table: plan.internal,
            partitions: partitions.collect::<Result<_, _>>()?,
            overrides: plan.overrides.clone(),
            internal: plan.internal,
        })
    }

    /// Has the topic agreed on; who is to hold its partitions binds them when that is known there.
    async fn create(&self, plan: Plan) -> Result<Arc<Topic>, CreateTopicError> {
        let id = TopicId(self.world.random.id());
        let command = Command::CreateTopic(self.placed(&plan, id)?);
        let applied = self.propose(command).await?;
        if let Some(refusal) = applied.refused.into_iter().next() {
            return Err(refused(plan.name, refusal));
        }
        // Deleted again in the same breath: as if it had never been found.
        let catalog = self.catalog.load();
        let topic = catalog.topic_by_id(id).cloned();
        topic.ok_or(CreateTopicError::Unavailable(Unavailable::Stopping))
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

fn factor_refused(factor: Factor, nodes: usize) -> CreateTopicError {
    let factor = match factor {
        Factor::Auto => 1,
        Factor::Copies(copies) => copies.into(),
    };
    CreateTopicError::ReplicationFactor {
        factor,
        nodes: nodes as u32,
    }
}

fn refused(name: TopicName, refusal: Refusal) -> CreateTopicError {
    match refusal {
        Refusal::TopicExists(existing) => CreateTopicError::Exists(existing),
        Refusal::Collides(existing) => CreateTopicError::Collision { name, existing },
        // A node began again on the way, or came with other data.
        Refusal::Unfit { .. } => CreateTopicError::Unavailable(Unavailable::NotAgreed),
        Refusal::IdTaken(_) => unreachable!("ids are 128 random bits"),
        Refusal::UnknownTopic(_) | Refusal::NotOpen { .. } | Refusal::Node { .. } => {
            unreachable!("a creation names no other topic and registers nobody")
        }
    }
}
