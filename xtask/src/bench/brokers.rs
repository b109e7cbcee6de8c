//! The two brokers as processes.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use floe_tests::ports::Port;
use floe_tests::{Node, http};

use super::host;
use crate::{clients, repository};

/// A broker under load.
pub(crate) trait Broker {
    /// Its name in the report.
    fn name(&self) -> &'static str;
    /// Starts it and waits until it answers; it keeps its data.
    fn start(&mut self) -> Result<()>;
    /// Ends it in order.
    fn stop(&mut self) -> Result<()>;
    /// `host:port` for clients.
    fn address(&self) -> String;
    /// Its process.
    fn process_id(&self) -> Result<u32>;
    /// Its data directory.
    fn data(&self) -> PathBuf;
    /// How many groups its journal has flushed, where it says so.
    fn journal_groups(&self) -> Result<Option<u64>>;
    /// How many batches it has appended, where it says so.
    fn appended_batches(&self) -> Result<Option<u64>>;

    /// Resident memory.
    fn resident_bytes(&self) -> Result<u64> {
        host::resident_bytes(self.process_id()?)
    }

    /// Deletes a topic, so that the disk does not fill.
    fn delete_topic(&self, topic: &str) -> Result<()> {
        let error = floe_tests::kafka::Connection::open(&self.address()).delete_topic(topic);
        if error == 0 {
            Ok(())
        } else {
            bail!("{}: deleting {topic}: error {error}", self.name())
        }
    }
}

/// Floe with a budget of 384 MiB.
pub(crate) struct Floe {
    node: Node,
    is_running: bool,
}

impl Floe {
    pub(crate) fn new(home: &Path) -> Result<Self> {
        let mut node = Node::prepare(&[
            ("memory.limit.bytes", "384MiB"),
            ("journal.bytes", "256MiB"),
        ]);
        let data = home.join("floe-data");
        empty(&data)?;
        node.use_data(&data);
        Ok(Self {
            node,
            is_running: false,
        })
    }

    fn counter(&self, name: &str) -> Option<u64> {
        let page = http::get(&self.node.metrics_address(), "/metrics").text();
        let line = page
            .lines()
            .find(|line| line.starts_with(name) && !line.starts_with('#'))?;
        line.rsplit(' ')
            .next()?
            .parse::<f64>()
            .ok()
            .map(|value| value as u64)
    }
}

impl Broker for Floe {
    fn name(&self) -> &'static str {
        "floe"
    }

    fn start(&mut self) -> Result<()> {
        self.node.restart();
        self.is_running = true;
        Ok(())
    }

    fn stop(&mut self) -> Result<()> {
        if std::mem::take(&mut self.is_running) && !self.node.stop().success() {
            bail!("floe did not end in order: {}", self.node.log());
        }
        Ok(())
    }

    fn address(&self) -> String {
        self.node.kafka_address()
    }

    fn process_id(&self) -> Result<u32> {
        Ok(self.node.process_id())
    }

    fn data(&self) -> PathBuf {
        self.node.data().to_owned()
    }

    fn journal_groups(&self) -> Result<Option<u64>> {
        let groups = self.counter("floe_log_journal_groups_total");
        if groups.is_none() {
            bail!("floe's metrics do not count journal groups");
        }
        Ok(groups)
    }

    fn appended_batches(&self) -> Result<Option<u64>> {
        Ok(self.counter("floe_produced_batches_total"))
    }
}

/// Apache Kafka: one node, broker and controller, its defaults, 1 GiB of heap and G1.
pub(crate) struct Kafka {
    home: PathBuf,
    classpath: String,
    client: Port,
    controller: Port,
    child: Option<Child>,
}

impl Kafka {
    pub(crate) fn new(home: &Path) -> Result<Self> {
        let home = home.join("kafka");
        std::fs::create_dir_all(&home)?;
        let classpath =
            clients::maven_classpath(&repository::root().join("bench/kafka/pom.xml"), &home)?;
        let kafka = Self {
            classpath,
            client: Port::free(),
            controller: Port::free(),
            child: None,
            home,
        };
        empty(&kafka.data())?;
        kafka.format()?;
        Ok(kafka)
    }

    fn settings(&self) -> PathBuf {
        self.home.join("server.properties")
    }

    fn format(&self) -> Result<()> {
        let (client, controller) = (self.client.address(), self.controller.address());
        // What a single node needs to run at all; the rest are Kafka's defaults.
        let settings = format!(
            "process.roles=broker,controller\nnode.id=1\ncontroller.quorum.voters=1@{controller}\n\
             listeners=PLAINTEXT://{client},CONTROLLER://{controller}\nadvertised.listeners=PLAINTEXT://{client}\n\
             controller.listener.names=CONTROLLER\nlog.dirs={}\noffsets.topic.replication.factor=1\n\
             transaction.state.log.replication.factor=1\ntransaction.state.log.min.isr=1\n",
            self.data().display()
        );
        std::fs::write(self.settings(), settings)?;
        let mut command = Command::new("java");
        command.args([
            "-cp",
            &self.classpath,
            "kafka.tools.StorageTool",
            "format",
            "-t",
            "Zmxvb2UtYmVuY2gtcnVuLQ",
            "-c",
        ]);
        repository::run(
            command
                .arg(self.settings())
                .stdout(Stdio::null())
                .stderr(Stdio::null()),
        )
    }
}

impl Broker for Kafka {
    fn name(&self) -> &'static str {
        "kafka"
    }

    fn start(&mut self) -> Result<()> {
        let log = std::fs::File::options()
            .create(true)
            .append(true)
            .open(self.home.join("log"))?;
        let mut command = Command::new("java");
        // The heap of the comparison, and the flags of Kafka's own start script.
        command.args([
            "-Xms1g",
            "-Xmx1g",
            "-server",
            "-XX:+UseG1GC",
            "-XX:MaxGCPauseMillis=20",
        ]);
        command.args([
            "-XX:InitiatingHeapOccupancyPercent=35",
            "-XX:+ExplicitGCInvokesConcurrent",
        ]);
        command
            .args([
                "-Djava.awt.headless=true",
                "-cp",
                &self.classpath,
                "kafka.Kafka",
            ])
            .arg(self.settings());
        self.child = Some(
            command
                .stdin(Stdio::null())
                .stdout(log.try_clone()?)
                .stderr(log)
                .spawn()?,
        );
        let started = Instant::now();
        while !answers(&self.address()) {
            if started.elapsed() > Duration::from_mins(1) {
                bail!(
                    "kafka does not answer; see {}",
                    self.home.join("log").display()
                );
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    fn stop(&mut self) -> Result<()> {
        if let Some(mut child) = self.child.take() {
            repository::run(Command::new("kill").arg(child.id().to_string()))?;
            child.wait()?;
        }
        Ok(())
    }

    fn address(&self) -> String {
        self.client.address()
    }

    fn process_id(&self) -> Result<u32> {
        Ok(self.child.as_ref().context("kafka runs")?.id())
    }

    fn data(&self) -> PathBuf {
        self.home.join("data")
    }

    fn journal_groups(&self) -> Result<Option<u64>> {
        Ok(None)
    }

    fn appended_batches(&self) -> Result<Option<u64>> {
        Ok(None)
    }
}

impl Drop for Kafka {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            // Nothing is left to report to.
            drop(child.kill());
            drop(child.wait());
        }
    }
}

/// Whether a broker serves metadata with itself in it.
fn answers(address: &str) -> bool {
    if std::net::TcpStream::connect(address).is_err() {
        return false;
    }
    std::panic::catch_unwind(|| floe_tests::kafka::Connection::open(address).has_brokers())
        .unwrap_or(false)
}

fn empty(folder: &Path) -> Result<()> {
    if folder.exists() {
        std::fs::remove_dir_all(folder)?;
    }
    std::fs::create_dir_all(folder)?;
    Ok(())
}
