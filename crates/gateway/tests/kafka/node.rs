//! A node in this process: its broker on a simulated disk, its Kafka door on a port of the system's choosing.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use floe_broker::{Broker, Settings, World};
use floe_gateway::kafka::{self, Door};
use floe_gateway::listen::{self, Gate, Limits, Phase, Stop, Stopper};
use floe_world::tasks::Handle;
use floe_world::{Pool, clock, disk, random, tasks};
use tokio::net::TcpListener;

pub(crate) struct Node {
    pub(crate) broker: Broker,
    pub(crate) address: SocketAddr,
    pub(crate) requests: Pool,
    pub(crate) disk: disk::Simulated,
    stopper: Stopper,
    accepting: Handle<()>,
}

/// Limits short enough to be waited for.
pub(crate) fn short() -> Limits {
    Limits {
        first_byte: Duration::from_millis(400),
        head: Duration::from_millis(300),
        idle: Duration::from_millis(500),
        write_stall: Duration::from_millis(300),
        drain: Duration::from_millis(500),
        ..Limits::default()
    }
}

/// A panic on the runtime's threads would go unseen by a test that only sees its connection close.
fn end_at_a_panic_of_the_node() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            before(panic);
            if std::thread::current()
                .name()
                .is_some_and(|name| name.starts_with("tokio"))
            {
                std::process::abort();
            }
        }));
    });
}

impl Node {
    pub(crate) async fn start() -> Self {
        Self::with(Limits::default(), kafka::Settings::default()).await
    }

    pub(crate) async fn with(limits: Limits, settings: kafka::Settings) -> Self {
        end_at_a_panic_of_the_node();
        let memory = Pool::new(96 << 20);
        let disk = disk::Simulated::new(7);
        let world = World {
            disk: Arc::new(disk.clone()),
            clock: Arc::new(clock::System),
            random: Arc::new(random::System),
            memory: memory.clone(),
        };
        let mut broker = Settings::new(PathBuf::from("/data"));
        broker.group_initial_rebalance_delay = Duration::ZERO;
        let broker = Broker::start(world.clone(), broker, |what| panic!("{what}"))
            .await
            .unwrap();
        let (stopper, stop): (Stopper, Stop) = Stopper::new();
        let gate = Gate::new(limits, stop, world.clock, listen::Metrics::default());
        let requests = memory.share(16 << 20);
        let door = Door::new(
            broker.clone(),
            gate.clone(),
            settings,
            requests.clone(),
            kafka::metrics::Metrics::default(),
        );
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let accepting = tasks::spawn(async move { gate.run(listener, door).await });
        Self {
            broker,
            address,
            requests,
            disk,
            stopper,
            accepting,
        }
    }

    pub(crate) async fn stop(self) {
        self.stopper.advance(Phase::Draining);
        self.accepting.await;
        self.broker.stop().await;
    }
}
