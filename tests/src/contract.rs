//! What every Kafka client family has to be able to do with Floe, written once. A family brings a program with the
//! verbs of `tests/clients/README.md`.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::Node;
use crate::kafka::code;

/// A client family.
#[derive(Debug, Clone)]
pub struct Family {
    /// Its name and version, for the matrix.
    pub name: String,
    /// Its program with fixed arguments.
    pub program: Vec<String>,
    /// What its own library refuses before Floe sees it.
    pub lacks: Lacks,
}

/// What a family cannot say; everything else is asked of it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Lacks {
    /// Creating and deleting topics.
    pub admin: bool,
    /// A header without a value.
    pub null_header: bool,
    /// A header whose name has no byte.
    pub empty_header_name: bool,
    /// A record with neither key nor value.
    pub null_record: bool,
    /// A record whose key and value have no byte between them.
    pub empty_record: bool,
    /// A record's time.
    pub timestamp: bool,
}

impl Lacks {
    /// kcat 1.7.1.
    pub const KCAT: Self = Self {
        admin: true,
        null_header: false,
        empty_header_name: true,
        null_record: true,
        empty_record: true,
        timestamp: true,
    };
    /// kafka-python 3.0.
    pub const KAFKA_PYTHON: Self = Self {
        admin: false,
        null_header: true,
        empty_header_name: false,
        null_record: true,
        empty_record: false,
        timestamp: false,
    };
}

/// How a case ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It holds.
    Passed,
    /// The family has no such call.
    Absent,
    /// It does not hold.
    Failed(String),
}

/// Names of all cases, in the order they run.
pub const CASES: [&str; 12] = [
    "topic create",
    "headers",
    "null and empty",
    "codec none",
    "codec gzip",
    "codec snappy",
    "codec lz4",
    "codec zstd",
    "earliest and by time",
    "group of two",
    "one leaves, one is killed",
    "topic delete",
];

const BASE_TIME: i64 = 1_700_000_000_000;

type Check = Result<(), String>;

/// Runs every case against a node.
pub fn run(family: &Family, node: &Node) -> Vec<(&'static str, Outcome)> {
    let contract = Contract {
        family,
        node,
        address: node.kafka_address(),
    };
    CASES
        .iter()
        .map(|case| {
            let started = Instant::now();
            let outcome = if family.lacks.admin && case.starts_with("topic") {
                Outcome::Absent
            } else {
                match contract.case(case) {
                    Ok(()) => Outcome::Passed,
                    Err(why) => Outcome::Failed(why),
                }
            };
            eprintln!(
                "{}: {case}: {outcome:?} ({:.1} s)",
                family.name,
                started.elapsed().as_secs_f64()
            );
            (*case, outcome)
        })
        .collect()
}

struct Contract<'a> {
    family: &'a Family,
    node: &'a Node,
    address: String,
}

impl Contract<'_> {
    fn case(&self, case: &str) -> Check {
        match case {
            "topic create" => self.topic_create(),
            "headers" => self.headers(),
            "null and empty" => self.null_and_empty(),
            "earliest and by time" => self.earliest_and_by_time(),
            "group of two" => self.group_of_two(),
            "one leaves, one is killed" => self.one_leaves_one_is_killed(),
            "topic delete" => self.topic_delete(),
            codec => self.codec(codec.trim_start_matches("codec ")),
        }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.family.program[0]);
        command
            .args(&self.family.program[1..])
            .args(&arguments[..1])
            .arg(&self.address);
        command.args(&arguments[1..]);
        command
    }

    fn call(&self, arguments: &[&str], input: &str) -> Result<String, String> {
        let mut child = self
            .command(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{:?}: {error}", self.family.program))?;
        // A program that ends early says why on its own; the pipe's end is no news.
        let written = child.stdin.take().unwrap().write_all(input.as_bytes());
        let output = child
            .wait_with_output()
            .map_err(|error| error.to_string())?;
        if !output.status.success() || written.is_err() {
            let said = String::from_utf8_lossy(&output.stderr);
            let tail: Vec<&str> = said.lines().rev().take(6).collect();
            return Err(format!(
                "{arguments:?} ended with {}: {}",
                output.status,
                tail.join(" | ")
            ));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn topic(&self, name: &str, partitions: i32) -> String {
        let topic = format!(
            "contract-{name}-{}",
            self.family.name.split(' ').next().unwrap()
        );
        self.node.kafka().create_topic(&topic, partitions);
        topic
    }

    fn produce(&self, topic: &str, codec: &str, records: &[Value]) -> Check {
        let mut lines = String::new();
        for record in records {
            writeln!(lines, "{record}").unwrap();
        }
        self.call(&["produce", topic, codec], &lines).map(drop)
    }

    fn consume(&self, topic: &str, from: &str, count: usize) -> Result<Vec<Value>, String> {
        let printed = self.call(&["consume", topic, "0", from, &count.to_string()], "")?;
        let records: Vec<Value> = printed
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect();
        if records.len() != count {
            return Err(format!("{} records instead of {count}", records.len()));
        }
        Ok(records)
    }

    /// Produces with one codec and reads back the same, offsets dense from zero.
    fn round_trip(&self, topic: &str, codec: &str, records: &[Value]) -> Check {
        self.produce(topic, codec, records)?;
        for (index, (got, sent)) in self
            .consume(topic, "earliest", records.len())?
            .iter()
            .zip(records)
            .enumerate()
        {
            for field in ["partition", "timestamp", "key", "value", "headers"] {
                let is_free = field == "timestamp" && self.family.lacks.timestamp;
                if got[field] != sent[field] && !is_free {
                    return Err(format!(
                        "record {index}: {field} is {} instead of {}",
                        got[field], sent[field]
                    ));
                }
            }
            if got["offset"] != json!(index) {
                return Err(format!("record {index} has offset {}", got["offset"]));
            }
        }
        Ok(())
    }

    fn topic_create(&self) -> Check {
        let topic = format!(
            "contract-create-{}",
            self.family.name.split(' ').next().unwrap()
        );
        self.call(&["create", &topic, "3"], "")?;
        let partitions = self.node.kafka().topic(&topic).partitions.len();
        if partitions == 3 {
            Ok(())
        } else {
            Err(format!("{partitions} partitions instead of 3"))
        }
    }

    fn topic_delete(&self) -> Check {
        let topic = self.topic("delete", 2);
        self.call(&["delete", &topic], "")?;
        match self.node.kafka().topic(&topic).error_code {
            code::UNKNOWN_TOPIC_OR_PARTITION => Ok(()),
            other => Err(format!("error {other} for a deleted topic")),
        }
    }

    fn headers(&self) -> Check {
        let lacks = self.family.lacks;
        let mut headers = vec![json!(["a", "1"]), json!(["a", "2"]), json!(["c", ""])];
        if !lacks.null_header {
            headers.push(json!(["b", null]));
        }
        if !lacks.empty_header_name {
            headers.push(json!(["", "x"]));
        }
        let records = [
            record(0, Some("k"), Some("v"), &json!(headers)),
            record(1, Some("k"), Some("v"), &json!([])),
        ];
        self.round_trip(&self.topic("headers", 1), "none", &records)
    }

    fn null_and_empty(&self) -> Check {
        let lacks = self.family.lacks;
        let mut pairs = vec![
            (Some("k"), Some("v")),
            (Some("k"), None),
            (Some("k"), Some("")),
            (None, Some("v")),
            (Some(""), Some("v")),
        ];
        if !lacks.empty_record {
            pairs.extend([(Some(""), Some("")), (None, Some("")), (Some(""), None)]);
        }
        if !lacks.null_record {
            pairs.push((None, None));
        }
        let records: Vec<Value> = pairs
            .into_iter()
            .enumerate()
            .map(|(index, (key, value))| record(index as i64, key, value, &json!([])))
            .collect();
        self.round_trip(&self.topic("null", 1), "none", &records)
    }

    fn codec(&self, codec: &str) -> Check {
        let topic = self.topic(&format!("codec-{codec}"), 1);
        let value = "the same words again and again, ".repeat(40);
        let records: Vec<Value> = (0..20)
            .map(|index| record(index, Some("k"), Some(&value), &json!([])))
            .collect();
        self.round_trip(&topic, codec, &records)?;
        // What came compressed has to lie there and leave as it came.
        let number = ["none", "gzip", "snappy", "lz4", "zstd"]
            .iter()
            .position(|name| *name == codec);
        let kept = self.node.kafka().fetch_bytes(&topic, 0, 0);
        let kept = usize::from(kept[22] & 7);
        if Some(kept) == number {
            Ok(())
        } else {
            Err(format!("the first batch has codec number {kept}"))
        }
    }

    fn earliest_and_by_time(&self) -> Check {
        let topic = self.topic("time", 1);
        let records: Vec<crate::batch::Record> = (0..10)
            .map(|index| {
                crate::batch::Record::value(format!("v{index}")).at(BASE_TIME + index * 1000)
            })
            .collect();
        self.node.kafka().produce(&topic, 0, &records);
        let first = &self.consume(&topic, "earliest", 1)?[0];
        if first["offset"] != json!(0) {
            return Err(format!("earliest gives {first}"));
        }
        let found = &self.consume(&topic, &format!("time:{}", BASE_TIME + 4_500), 1)?[0];
        if found["offset"] != json!(5) {
            return Err(format!("4.5 s after the first gives {found}"));
        }
        Ok(())
    }

    fn group_of_two(&self) -> Check {
        let topic = self.topic("group", 4);
        let members = [
            Member::start(self, &topic, "group-two")?,
            Member::start(self, &topic, "group-two")?,
        ];
        wait_for("two members that share four partitions", 60, || {
            is_shared(&members)
        })?;
        let mut kafka = self.node.kafka();
        for partition in 0..4 {
            let records: Vec<_> = (0..25)
                .map(|index| crate::batch::Record::value(format!("{index}")))
                .collect();
            kafka.produce(&topic, partition, &records);
        }
        wait_for("100 records at the members", 60, || {
            let got: Vec<(i64, i64)> = members.iter().flat_map(Member::records).collect();
            let distinct: BTreeSet<_> = got.iter().copied().collect();
            distinct.len() == 100 && got.len() == 100
        })
    }

    fn one_leaves_one_is_killed(&self) -> Check {
        let topic = self.topic("leave", 4);
        let stays = Member::start(self, &topic, "group-leave")?;
        let members = [stays, Member::start(self, &topic, "group-leave")?];
        wait_for("two members that share four partitions", 60, || {
            is_shared(&members)
        })?;
        let [stays, leaves] = members;
        leaves.leave()?;
        wait_for("all partitions after a leave", 10, || {
            stays.assigned().len() == 4
        })?;
        let members = [stays, Member::start(self, &topic, "group-leave")?];
        wait_for("two members again", 60, || is_shared(&members))?;
        let [stays, killed] = members;
        drop(killed);
        // Session time-out 6 s, a second to notice, a heartbeat and a join.
        wait_for("all partitions after a kill", 15, || {
            stays.assigned().len() == 4
        })
    }
}

fn record(index: i64, key: Option<&str>, value: Option<&str>, headers: &Value) -> Value {
    json!({"partition": 0, "timestamp": BASE_TIME + index, "key": key, "value": value, "headers": headers})
}

fn is_shared(members: &[Member]) -> bool {
    let parts: Vec<BTreeSet<i64>> = members.iter().map(Member::assigned).collect();
    let all: BTreeSet<i64> = parts.iter().flatten().copied().collect();
    all.len() == 4
        && parts.iter().all(|part| !part.is_empty())
        && parts.iter().map(BTreeSet::len).sum::<usize>() == 4
}

fn wait_for(what: &str, seconds: u64, mut state: impl FnMut() -> bool) -> Check {
    let started = Instant::now();
    while !state() {
        if started.elapsed() > Duration::from_secs(seconds) {
            return Err(format!("after {seconds} s still waiting for {what}"));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// A group member in a process of its own; killed when dropped.
struct Member {
    child: Child,
    lines: Arc<Mutex<Vec<Value>>>,
}

impl Member {
    fn start(contract: &Contract<'_>, topic: &str, group: &str) -> Result<Self, String> {
        let group = format!(
            "{group}-{}",
            contract.family.name.split(' ').next().unwrap()
        );
        let mut child = contract
            .command(&["member", topic, &group])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| error.to_string())?;
        let lines = Arc::new(Mutex::new(Vec::new()));
        let (out, kept) = (BufReader::new(child.stdout.take().unwrap()), lines.clone());
        std::thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                if let Ok(line) = serde_json::from_str(&line) {
                    kept.lock().unwrap().push(line);
                }
            }
        });
        Ok(Self { child, lines })
    }

    /// The last assignment it printed.
    fn assigned(&self) -> BTreeSet<i64> {
        let lines = self.lines.lock().unwrap();
        let last = lines
            .iter()
            .rev()
            .find_map(|line| line["assigned"].as_array());
        last.into_iter()
            .flatten()
            .filter_map(Value::as_i64)
            .collect()
    }

    /// Partition and offset of each record it printed.
    fn records(&self) -> Vec<(i64, i64)> {
        let lines = self.lines.lock().unwrap();
        lines
            .iter()
            .filter_map(|line| Some((line["partition"].as_i64()?, line["offset"].as_i64()?)))
            .collect()
    }

    fn leave(mut self) -> Check {
        self.child
            .stdin
            .take()
            .unwrap()
            .write_all(b"\n")
            .map_err(|error| error.to_string())?;
        let mut ended = None;
        wait_for("a member to leave", 30, || {
            ended = self.child.try_wait().unwrap();
            ended.is_some()
        })?;
        if ended.is_some_and(|status| status.success()) {
            Ok(())
        } else {
            Err(format!("a member left with {ended:?}"))
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        // Already gone is as good.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
