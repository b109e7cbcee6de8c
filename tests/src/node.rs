//! A node as a process of the built release binary.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use tempfile::TempDir;

use crate::ports::Port;
use crate::{http, kafka, wait};

/// The binary under test: `TESTED_FLOE`, else the release binary, built once if it is stale.
///
/// # Panics
/// When it cannot be built.
pub fn binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        if let Some(path) = std::env::var_os("TESTED_FLOE") {
            return PathBuf::from(path);
        }
        // This program lies in <target>/release or below, whatever the target folder is called.
        let program = std::env::current_exe().unwrap();
        let release = program
            .ancestors()
            .find(|folder| folder.file_name().is_some_and(|name| name == "release"))
            .expect("tests and chores run from a release build")
            .to_owned();
        let status = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
            .args(["build", "--release", "--quiet", "--bin", "floe"])
            .current_dir(crate::tools::root())
            .env("CARGO_TARGET_DIR", release.parent().unwrap())
            .status()
            .unwrap();
        assert!(status.success(), "floe does not build");
        release.join("floe")
    })
}

/// A `floe` command, ready for its arguments.
pub fn floe() -> Command {
    let mut command = Command::new(binary());
    // What is set around the tests is no setting of the node under test.
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("FLOE_") {
            command.env_remove(name);
        }
    }
    command.stdin(Stdio::null());
    command
}

/// The ports of one node.
#[derive(Debug)]
pub struct Ports {
    kafka: Port,
    discovery: Port,
    produce: Port,
    consume: Port,
    metrics: Port,
}

impl Ports {
    fn free() -> Self {
        Self {
            kafka: Port::free(),
            discovery: Port::free(),
            produce: Port::free(),
            consume: Port::free(),
            metrics: Port::free(),
        }
    }

    fn settings(&self) -> Vec<(String, String)> {
        [
            ("kafka.port", &self.kafka),
            ("http.discovery.port", &self.discovery),
            ("http.produce.port", &self.produce),
            ("http.consume.port", &self.consume),
            ("metrics.port", &self.metrics),
        ]
        .map(|(name, port)| (name.to_owned(), port.number().to_string()))
        .to_vec()
    }
}

/// A running, killed or stopped node; killed for good when dropped.
#[derive(Debug)]
pub struct Node {
    child: Option<Child>,
    scratch: TempDir,
    data: PathBuf,
    ports: Ports,
    settings: Vec<(String, String)>,
    prefix: Vec<String>,
}

impl Node {
    /// A ready node with the defaults of `floe dev` and an empty folder.
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// A ready node with these settings.
    pub fn start_with(settings: &[(&str, &str)]) -> Self {
        let mut node = Self::prepare(settings);
        node.restart();
        node
    }

    /// A node that is not started yet.
    pub fn prepare(settings: &[(&str, &str)]) -> Self {
        let scratch = tempfile::Builder::new()
            .prefix("floe-test-")
            .tempdir()
            .unwrap();
        let ports = Ports::free();
        let mut all = ports.settings();
        // Small files, so that a suite of nodes does not fill a disk.
        if !settings.iter().any(|(name, _)| *name == "journal.bytes") {
            all.push(("journal.bytes".to_owned(), "64MiB".to_owned()));
        }
        all.extend(
            settings
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned())),
        );
        let data = scratch.path().join("data");
        Self {
            child: None,
            scratch,
            data,
            ports,
            settings: all,
            prefix: Vec::new(),
        }
    }

    /// The command line that starts this node.
    pub fn command(&self) -> Command {
        let mut command = floe();
        if let Some((program, arguments)) = self.prefix.split_first() {
            let own = command.get_program().to_owned();
            let cleared: Vec<_> = command
                .get_envs()
                .map(|(name, _)| name.to_owned())
                .collect();
            command = Command::new(program);
            command.args(arguments).arg(own).stdin(Stdio::null());
            for name in cleared {
                command.env_remove(name);
            }
        }
        command.arg("dev").arg("--data-dir").arg(&self.data);
        for (name, value) in &self.settings {
            command.arg("--set").arg(format!("{name}={value}"));
        }
        command
    }

    /// Adds a setting for the next start.
    pub fn set(&mut self, name: &str, value: &str) {
        self.settings.push((name.to_owned(), value.to_owned()));
    }

    /// Starts the node through another program, which gets the node's command line behind its own and has to become it.
    pub fn prefix(&mut self, program: &[&str]) {
        self.prefix = program.iter().map(|word| (*word).to_owned()).collect();
    }

    /// Starts the process without waiting for it.
    pub fn spawn(&mut self) {
        assert!(self.child.is_none(), "the node runs already");
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.log_path())
            .unwrap();
        let mut command = self.command();
        command.stdout(log.try_clone().unwrap()).stderr(log);
        self.child = Some(command.spawn().unwrap());
    }

    /// Starts the process and waits until it answers; it must not run.
    pub fn restart(&mut self) {
        self.spawn();
        self.wait_ready();
    }

    /// Waits until every door answers.
    ///
    /// # Panics
    /// When the process ends instead, with what it said.
    pub fn wait_ready(&mut self) {
        wait::until("the node to be ready", || {
            if let Some(status) = self
                .child
                .as_mut()
                .expect("the node was started")
                .try_wait()
                .unwrap()
            {
                panic!("the node ended with {status}: {}", self.log());
            }
            let address = self.discovery_address();
            std::net::TcpStream::connect(&address).ok()?;
            std::net::TcpStream::connect(self.kafka_address()).ok()?;
            (http::get(&address, "/status").status == 200).then_some(())
        });
    }

    /// SIGKILL, and waits until the process is gone.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// SIGTERM, and waits for the end.
    pub fn stop(&mut self) -> ExitStatus {
        self.signal(rustix::process::Signal::TERM);
        self.wait_end()
    }

    /// Sends a signal to the process.
    pub fn signal(&self, signal: rustix::process::Signal) {
        let id = rustix::process::Pid::from_raw(self.process_id() as i32).unwrap();
        rustix::process::kill_process(id, signal).unwrap();
    }

    /// Waits until the process ends by itself.
    pub fn wait_end(&mut self) -> ExitStatus {
        let status = wait::until("the node to end", || {
            self.child
                .as_mut()
                .expect("the node was started")
                .try_wait()
                .unwrap()
        });
        self.child = None;
        status
    }

    /// Whether the process is alive.
    pub fn is_alive(&mut self) -> bool {
        self.child
            .as_mut()
            .is_some_and(|child| child.try_wait().unwrap().is_none())
    }

    /// Kills the node if it is still recovering after this long, else lets it come up; says which.
    pub fn spawn_and_kill_after(&mut self, pause: Duration) {
        self.spawn();
        std::thread::sleep(pause);
        self.kill();
    }

    /// The process id.
    pub fn process_id(&self) -> u32 {
        self.child.as_ref().expect("the node runs").id()
    }

    /// The data directory.
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// Uses another data directory from the next start on.
    pub fn use_data(&mut self, folder: &Path) {
        folder.clone_into(&mut self.data);
    }

    /// A folder that goes with the node.
    pub fn scratch(&self) -> &Path {
        self.scratch.path()
    }

    fn log_path(&self) -> PathBuf {
        self.scratch.path().join("log")
    }

    /// All the node said, over all its starts.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.log_path()).unwrap_or_default()
    }

    /// Resident memory in bytes.
    pub fn resident_bytes(&self) -> u64 {
        let status =
            std::fs::read_to_string(format!("/proc/{}/status", self.process_id())).unwrap();
        let line = status
            .lines()
            .find(|line| line.starts_with("VmRSS:"))
            .unwrap();
        line.split_whitespace()
            .nth(1)
            .unwrap()
            .parse::<u64>()
            .unwrap()
            * 1024
    }

    /// `host:port` of the Kafka door.
    pub fn kafka_address(&self) -> String {
        self.ports.kafka.address()
    }

    /// `host:port` of discovery.
    pub fn discovery_address(&self) -> String {
        self.ports.discovery.address()
    }

    /// `host:port` for producing.
    pub fn produce_address(&self) -> String {
        self.ports.produce.address()
    }

    /// `host:port` for consuming.
    pub fn consume_address(&self) -> String {
        self.ports.consume.address()
    }

    /// `host:port` of the metrics.
    pub fn metrics_address(&self) -> String {
        self.ports.metrics.address()
    }

    /// Every address, Kafka's first.
    pub fn addresses(&self) -> [String; 5] {
        [
            self.kafka_address(),
            self.discovery_address(),
            self.produce_address(),
            self.consume_address(),
            self.metrics_address(),
        ]
    }

    /// A connection to the Kafka door.
    pub fn kafka(&self) -> kafka::Connection {
        kafka::Connection::open(&self.kafka_address())
    }

    /// `floe verify` over the stopped node's data; gives what it printed.
    ///
    /// # Panics
    /// When it finds anything wrong.
    pub fn verify(&self) -> String {
        assert!(self.child.is_none(), "verify is for a node at rest");
        crate::tools::run(floe().arg("verify").arg(&self.data))
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() {
            let log = self.log();
            let tail: Vec<&str> = log.lines().rev().take(40).collect();
            eprintln!("--- the node's last lines");
            for line in tail.iter().rev() {
                eprintln!("{line}");
            }
            if std::env::var_os("KEEP_NODES").is_some() {
                self.scratch.disable_cleanup(true);
                eprintln!(
                    "--- the node's folder is kept: {}",
                    self.scratch.path().display()
                );
            }
        }
    }
}
