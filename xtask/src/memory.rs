//! Long runs against one node: its memory under a hard limit, and a producer that is idle for long.
//!
//! Guarantees: the node alone is in the control group; the load, the readers that never read and this chore are not.

use std::io::Write;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use floe_tests::{Node, tools};

use crate::bench::Load;
use crate::repository;

const LIMIT: u64 = 512 << 20;
const STUCK_READERS: usize = 300;
const TOPIC: &str = "memory";

/// Sends so many GiB through a node of 512 MiB, reads them back, and looks at its memory.
pub(crate) fn run(gib: Option<&str>) -> Result<()> {
    let gib: u64 = gib.unwrap_or("10").parse()?;
    let home = repository::target().join("bench");
    std::fs::create_dir_all(&home)?;
    let load = Load::build(&home)?;
    let group = Group::new()?;
    let mut node = Node::prepare(&[("journal.bytes", "256MiB")]);
    let data = home.join("memory-data");
    if data.exists() {
        std::fs::remove_dir_all(&data)?;
    }
    node.use_data(&data);
    // The default budget is the control group's limit; the node has to be in it from its first instruction.
    node.prefix(&[
        "sh",
        "-c",
        &format!(
            "echo $$ > {} && exec \"$0\" \"$@\"",
            group.tasks().display()
        ),
    ]);
    node.restart();
    load.create(&node.kafka_address(), TOPIC, 12)?;
    // Warm-up: every share of the budget is used once.
    let per_gib = 1 << 20;
    load.produce(&node.kafka_address(), TOPIC, per_gib, 1024, 1000, 0)?;
    let stuck = stuck_readers(&node)?;
    load.consume(&node.kafka_address(), TOPIC, per_gib, 12, 1)?;
    let (failures_before, resident_before) = (group.failures()?, node.resident_bytes());
    println!(
        "memory: warm, {} MiB resident, {failures_before} failed charges",
        resident_before >> 20
    );
    let (mut least, mut most) = (resident_before, resident_before);
    for n in 1..gib {
        load.produce(&node.kafka_address(), TOPIC, per_gib, 1024, 1000, 0)?;
        let resident = node.resident_bytes();
        (least, most) = (least.min(resident), most.max(resident));
        println!("memory: {} GiB in, {} MiB resident", n + 1, resident >> 20);
    }
    load.consume(&node.kafka_address(), TOPIC, gib * per_gib, 12, 1)?;
    let resident = node.resident_bytes();
    (least, most) = (least.min(resident), most.max(resident));
    let failures = group.failures()? - failures_before;
    println!(
        "memory: all read back, {} to {} MiB resident, {failures} failed charges",
        least >> 20,
        most >> 20
    );
    drop(stuck);
    if !node.is_alive() {
        bail!("the node was killed: {}", node.log());
    }
    if !node.stop().success() {
        bail!("the node did not end in order: {}", node.log());
    }
    std::fs::remove_dir_all(&data)?;
    if failures > 0 {
        bail!("{failures} charges failed at the limit after warm-up");
    }
    if (most - least) * 20 > most {
        bail!("resident memory moved by more than 5 %: {least} to {most} bytes");
    }
    Ok(())
}

/// Readers that ask for much and take nothing, through both doors.
fn stuck_readers(node: &Node) -> Result<Vec<TcpStream>> {
    let mut stuck = Vec::new();
    for n in 0..STUCK_READERS {
        let partition = n % 12;
        let stream = if n % 2 == 0 {
            let mut connection = node.kafka();
            for _ in 0..8 {
                connection.send(
                    &floe_tests::kafka::fetch_request(TOPIC, partition as i32, 0, 0),
                    11,
                );
            }
            connection.stream().try_clone()?
        } else {
            let mut stream = TcpStream::connect(node.consume_address())?;
            let path = format!("/v1/topic/{TOPIC}/partitions/{partition}/records?max=100000");
            stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: floe\r\n\r\n").as_bytes())?;
            stream
        };
        stuck.push(stream);
    }
    Ok(stuck)
}

/// A memory control group (version 1 or 2) that is gone in the end.
struct Group {
    folder: PathBuf,
    is_second: bool,
}

impl Group {
    fn new() -> Result<Self> {
        let root = Path::new("/sys/fs/cgroup");
        let is_second = root.join("cgroup.controllers").exists();
        let name = format!("floe-{}", std::process::id());
        let folder = if is_second {
            root.join(name)
        } else {
            root.join("memory").join(name)
        };
        std::fs::create_dir(&folder)
            .with_context(|| format!("{}: needs root", folder.display()))?;
        let limit = if is_second {
            "memory.max"
        } else {
            "memory.limit_in_bytes"
        };
        std::fs::write(folder.join(limit), LIMIT.to_string())?;
        Ok(Self { folder, is_second })
    }

    fn tasks(&self) -> PathBuf {
        self.folder.join("cgroup.procs")
    }

    /// How often a charge met the limit.
    fn failures(&self) -> Result<u64> {
        if !self.is_second {
            return Ok(std::fs::read_to_string(self.folder.join("memory.failcnt"))?
                .trim()
                .parse()?);
        }
        let events = std::fs::read_to_string(self.folder.join("memory.events"))?;
        let line = events
            .lines()
            .find_map(|line| line.strip_prefix("max "))
            .context("memory.events")?;
        Ok(line.trim().parse()?)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // It stays only while a process is in it, and then says so by being there.
        drop(std::fs::remove_dir(&self.folder));
    }
}

/// C28 of the cases with a real client: two records, a long pause, two more.
pub(crate) fn idle(minutes: Option<&str>) -> Result<()> {
    let minutes: u64 = minutes.unwrap_or("11").parse()?;
    let node = Node::start();
    node.kafka().create_topic("idle", 1);
    let started = Instant::now();
    let seconds = (minutes * 60).to_string();
    tools::run(tools::client("idle.py").args([&node.kafka_address(), "idle", &seconds]));
    if started.elapsed() < Duration::from_secs(minutes * 60) {
        bail!("the producer did not pause");
    }
    let count = node.kafka().read_all("idle", 0, 0).len();
    if count != 4 {
        bail!("{count} records instead of 4");
    }
    println!("idle: two records, {minutes} minutes, two more: all there once");
    Ok(())
}
