//! Starting a node: recover the log, take up the catalog, seal and open every generation, read back producers.
//!
//! ```text
//! open log ─► resume catalog ─► copies held ─► register ─► the controller ends and opens generations ─► producers ─► upkeep
//! ```
//! Guarantees: nothing is appended before every generation this node led in an earlier life is sealed (`LeaderDoesNotResume`), so the
//! leader epoch of each partition rises with each start; whatever of this fails leaves a directory that the next start
//! takes up.

mod reopen;
mod replay;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use arc_swap::ArcSwap;
use floe_cluster::consensus::Configuration;
use floe_cluster::{Applied, ClusterId, Command};
use floe_log::{Failure, Log, OpenError, Recovered, Setup, Stream, Verdict};
use floe_model::{Incarnation, PartitionIndex, TopicId, TopicPartition};
use floe_replication::Member;
use floe_world::tasks;
use tokio::sync::{mpsc, watch};

use crate::controller::{Agreement, CATALOG_GROUP, Driver, Ears, Proposals};
use crate::events::{OnFailure, Sweep};
use crate::metrics::Metrics;
use crate::node::Node;
use crate::partition::Tally;
use crate::peers::Alone;
use crate::producer_ids::ProducerIds;
use crate::replica::{Given, Outside};
use crate::{Settings, StartError, Unavailable, World, upkeep};

/// Bound like a partition, so that the voter's identity has an incarnation which damage renews (`VoterIdentity`).
const CATALOG: TopicPartition = TopicPartition {
    topic: TopicId::ZERO,
    partition: PartitionIndex(0),
};

/// Brings a node up to where its doors may open.
pub(crate) async fn start(
    world: World,
    mut settings: Settings,
    on_failure: OnFailure,
) -> Result<Arc<Node>, StartError> {
    settings.log.cluster = settings.cluster.map(|cluster| cluster.0);
    settings.log.node = settings.node;
    let batch_bytes_max = settings.topic_defaults.max_message_bytes as usize;
    settings.log.batch_bytes_max = settings.log.batch_bytes_max.max(batch_bytes_max);
    let begun = world.clock.monotonic();
    let (log, recovered) = open_log(&world, &settings).await?;
    report(&settings, &recovered);
    let replicas = Arc::new(ArcSwap::from_pointee(HashMap::default()));
    let failed = |failure: Failure| failed(&settings, "starting", &failure);
    log.start(Arc::new(Sweep {
        replicas: Arc::downgrade(&replicas),
        on_failure,
    }))
    .map_err(failed)?;
    let voter = Member {
        node: settings.node,
        incarnation: log.bind(CATALOG).await.map_err(failed)?,
    };
    let seed = world.random.next_u64();
    let mut agreement = take_up(voter, &settings, &recovered, seed)?;
    agreement.belongs_to(ClusterId(recovered.cluster));
    let (proposals, received) = Proposals::new();
    let metrics = Arc::new(Metrics::default());
    let (outside, copies) = Outside::new(Given {
        node: settings.node,
        boot: recovered.boot,
        log: log.clone(),
        clock: Arc::clone(&world.clock),
        transport: Arc::new(Alone),
        metrics: Arc::clone(&metrics),
    });
    outside.run();
    let node = Arc::new(Node {
        boot: recovered.boot,
        log,
        replicas,
        outside,
        catalog: ArcSwap::new(Arc::clone(agreement.catalog())),
        changed: watch::Sender::new(Arc::clone(agreement.catalog())),
        proposals,
        producer_ids: ProducerIds::default(),
        producers: Tally::default(),
        metrics,
        stopping: watch::Sender::new(false),
        world,
        settings,
    });
    reopen::hold(&node, &recovered, voter.incarnation).await?;
    let driver = Driver::new(Arc::clone(&node), agreement, None, BTreeSet::new());
    // Nobody else is there to be heard.
    let (_, nobody) = mpsc::channel(1);
    let heard = Ears {
        proposals: received,
        peers: nobody,
        copies,
    };
    tasks::spawn(driver.run(heard, node.stopping.subscribe()));
    register(&node, voter).await?;
    reopen::tell(&node, &recovered).await?;
    reopen::led(&node).await?;
    replay::producers(&node).await?;
    upkeep::spawn(&node);
    let took = node.world.clock.monotonic().saturating_sub(begun);
    tracing::info!(
        boot = node.boot.0,
        partitions = node.replicas.load().len(),
        took_ms = took.as_millis() as u64,
        "the broker is ready"
    );
    Ok(node)
}

async fn open_log(world: &World, settings: &Settings) -> Result<(Log, Recovered), StartError> {
    let limit = world.memory.limit();
    let setup = Setup {
        disk: Arc::clone(&world.disk),
        dir: settings.data_dir.clone(),
        clock: Arc::clone(&world.clock),
        random: Arc::clone(&world.random),
        tail: world.memory.share(settings.tail_bytes.unwrap_or(limit / 2)),
        reads: world.memory.share(settings.read_bytes.unwrap_or(limit / 8)),
        config: settings.log.clone(),
    };
    let opened = tasks::blocking(move || Log::open(setup)).await;
    opened.map_err(|error| refused(settings, error))
}

/// What the operator should know of the last life.
fn report(settings: &Settings, recovered: &Recovered) {
    let dir = settings.data_dir.display();
    match &recovered.verdict {
        Verdict::Clean => {}
        Verdict::Torn => {
            tracing::info!(%dir, "the last write was cut; nothing acknowledged is missing");
        }
        Verdict::Damage { findings } => {
            for finding in findings {
                tracing::error!(%dir, %finding, "the data directory is damaged; what is lost fails by name");
            }
        }
    }
}

fn take_up(
    voter: Member,
    settings: &Settings,
    recovered: &Recovered,
    seed: u64,
) -> Result<Agreement, StartError> {
    let empty = Stream::default();
    let stream = recovered
        .streams
        .iter()
        .find(|stream| stream.group == CATALOG_GROUP)
        .unwrap_or(&empty);
    Agreement::resume(voter, Configuration::alone(voter), stream, seed).map_err(|error| {
        StartError::Damaged {
            dir: settings.data_dir.clone(),
            what: error.to_string(),
        }
    })
}

/// The node is here, under a new boot, at these addresses. The first entry of this life, so the vote is stored before it.
async fn register(node: &Arc<Node>, voter: Member) -> Result<(), StartError> {
    let me = floe_cluster::Node {
        id: node.settings.node,
        incarnation: voter.incarnation,
        boot: node.boot,
        endpoints: node.settings.endpoints.clone(),
        protocol: 0,
    };
    let catalog = node.catalog.load();
    let known = catalog.nodes.get(&me.id).map(|known| known.incarnation);
    let replaced = known.filter(|known| *known != voter.incarnation && *known != Incarnation(0));
    let command = match replaced {
        // This directory's own catalog names its earlier life: damage was found, and ended it.
        Some(replaces) => Command::ReplaceNode { node: me, replaces },
        None => Command::RegisterNode(me),
    };
    let applied = commit(node, command).await?;
    match applied.refused.first() {
        Some(refusal) => Err(StartError::Damaged {
            dir: node.settings.data_dir.clone(),
            what: refusal.to_string(),
        }),
        None => Ok(()),
    }
}

/// Has a command agreed, however long the others take: what a start proposes may come twice.
async fn commit(node: &Node, command: Command) -> Result<Applied, StartError> {
    let outcome = loop {
        match node.propose(command.clone()).await {
            Err(why @ (Unavailable::NotAgreed | Unavailable::Undecided)) => {
                tracing::warn!(%why, "this node waits for its cluster");
            }
            outcome => break outcome,
        }
    };
    outcome.map_err(|unavailable| {
        let failure = node.proposals.failure();
        failure.map_or_else(
            || StartError::Failed {
                dir: node.settings.data_dir.clone(),
                what: "writing the catalog".to_owned(),
                source: std::io::Error::other(unavailable.to_string()),
            },
            |failure| failed(&node.settings, "writing the catalog", failure),
        )
    })
}

fn failed(settings: &Settings, what: &str, failure: &Failure) -> StartError {
    StartError::Failed {
        dir: settings.data_dir.clone(),
        what: format!("{what}: {} {}", failure.action, failure.path.display()),
        source: std::io::Error::new(failure.source.kind(), failure.source.to_string()),
    }
}

fn refused(settings: &Settings, error: OpenError) -> StartError {
    use std::io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
    let dir = settings.data_dir.clone();
    match error {
        OpenError::InUse { dir } => StartError::Locked(dir),
        OpenError::OtherIdentity {
            dir,
            found,
            expected,
        } => StartError::OtherIdentity {
            dir,
            found,
            expected,
        },
        OpenError::NewerFormat { path, found, known } => StartError::NewerFormat {
            path,
            found: found.into(),
            supported: known.into(),
        },
        OpenError::NoIdentity { .. } | OpenError::JournalCut { .. } => StartError::Damaged {
            dir,
            what: error.to_string(),
        },
        OpenError::Config(what) => StartError::Setting(what),
        OpenError::Failed(failure)
            if matches!(failure.source.kind(), PermissionDenied | ReadOnlyFilesystem) =>
        {
            StartError::Unwritable {
                dir,
                source: std::io::Error::new(failure.source.kind(), failure.source.to_string()),
            }
        }
        OpenError::Failed(failure) => failed(settings, "opening", &failure),
    }
}
