//! Scenarios of server-assigned groups as text: each line an event, below it (`->`) what the group answered. Here is the
//! language they are written in; the scenarios stand in the modules, by theme.

mod assigning;
mod delivering;
mod schedules;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use floe_model::{Offset, PartitionIndex, TopicId, TopicName, TopicPartition};

use super::{Delivery, DeliveryToken, Group, OnNewGroup, Range, Reading, Received, Registration};
use crate::{ConnectionId, ConsumerId, GroupId, Settings};

/// Runs the events of a scenario and compares the whole text. An event is `<time> <name> <words…>`:
///
/// - `topics t:4 u:2`: these exist, with so many partitions
/// - `register CONSUMER topics=t+u [conn=1] [idle=10s]`; the nth registration has nonce n
/// - `poll CONSUMER [got=none|NONCE-NUMBER]`; `deliver CONSUMER POLL t/0:0-5 …`; `again CONSUMER POLL`
/// - `commit CONSUMER`; `committed CONSUMER TOKEN`; `lost CONSUMER TOKEN`; `leave CONSUMER`; `tick`; `who`
fn check(scenario: &str) {
    let mut run = Run::default();
    let mut expected = String::new();
    let mut actual = String::new();
    for line in scenario.lines().map(str::trim).filter(|l| !l.is_empty()) {
        writeln!(expected, "{line}").unwrap();
        if line.starts_with("->") {
            continue;
        }
        writeln!(actual, "{line}").unwrap();
        for answer in run.event(line) {
            writeln!(actual, "-> {answer}").unwrap();
        }
        run.assert_one_reader_per_partition();
    }
    assert_eq!(actual, expected, "\nactual:\n{actual}");
}

struct Run {
    group: Group,
    topics: BTreeSet<TopicPartition>,
    registrations: u64,
}

impl Default for Run {
    fn default() -> Self {
        Self {
            group: Group::new(Arc::new(Settings::default())),
            topics: BTreeSet::new(),
            registrations: 0,
        }
    }
}

impl Run {
    fn event(&mut self, line: &str) -> Vec<String> {
        let words: Vec<_> = line.split_whitespace().collect();
        let now = seconds(words[0]);
        let rest = &words[2..];
        let id = ConsumerId::from(rest.first().copied().unwrap_or(""));
        match words[1] {
            "topics" => {
                self.topics = rest.iter().flat_map(|word| topic(word)).collect();
                self.tell_partitions();
                Vec::new()
            }
            "register" => vec![self.register(now, id, rest)],
            "poll" => vec![self.poll(now, &id, rest)],
            "deliver" => {
                let ranges = rest[2..].iter().map(|word| range(word)).collect();
                let poll = rest[1].parse().unwrap();
                vec![match self.group.deliver(now, &id, poll, ranges) {
                    Ok(delivery) => delivery.map_or_else(|| "nothing".to_owned(), |d| show(&d)),
                    Err(refusal) => format!("{refusal:?}"),
                }]
            }
            "again" => {
                let poll = rest[1].parse().unwrap();
                vec![format!("{:?}", self.group.redelivered(now, &id, poll))]
            }
            "commit" => vec![match self.group.begin_commit(now, &id) {
                Ok(delivery) => delivery.map_or_else(|| "nothing".to_owned(), |d| show(&d)),
                Err(refusal) => format!("{refusal:?}"),
            }],
            "committed" => {
                self.group.committed(&id, token(rest[1]));
                Vec::new()
            }
            "lost" => {
                self.group.lost(&id, token(rest[1]));
                Vec::new()
            }
            "leave" => vec![self.group.leave(&id).to_string()],
            "tick" => {
                let gone = self.group.tick(now);
                gone.iter()
                    .map(|member| format!("{} is gone", member.id))
                    .collect()
            }
            "who" => self.who(),
            other => panic!("no event {other}"),
        }
    }

    fn register(&mut self, now: Duration, consumer: ConsumerId, words: &[&str]) -> String {
        let value = |key: &str| {
            words
                .iter()
                .find_map(|word| word.strip_prefix(key)?.strip_prefix('='))
        };
        let registration = Registration {
            group: GroupId::from("g"),
            consumer,
            topics: value("topics")
                .unwrap()
                .split('+')
                .map(|name| TopicName::parse(name).unwrap())
                .collect(),
            on_new_group: OnNewGroup::Earliest,
            idle_timeout: value("idle").map(seconds),
            connection: value("conn").map(|n| ConnectionId(n.parse().unwrap())),
        };
        self.registrations += 1;
        let result = self.group.register(now, &registration, self.registrations);
        self.tell_partitions();
        match result {
            Ok(is_there) => if is_there { "already" } else { "new" }.to_owned(),
            Err(refusal) => format!("{refusal:?}"),
        }
    }

    fn tell_partitions(&mut self) {
        let read: BTreeSet<_> = self
            .group
            .topics()
            .into_iter()
            .map(|name| name.as_str().as_bytes()[0])
            .collect();
        let known = self.topics.iter().copied();
        let wanted = known.filter(|tp| read.contains(&tp.topic.0[0])).collect();
        self.group.set_partitions(wanted);
    }

    fn poll(&mut self, now: Duration, id: &ConsumerId, words: &[&str]) -> String {
        let received = match words.get(1).and_then(|word| word.strip_prefix("got=")) {
            None => Received::Unsaid,
            Some("none") => Received::Nothing,
            Some(text) => Received::UpTo(token(text)),
        };
        let plan = match self.group.begin_poll(now, id, received) {
            Ok(plan) => plan,
            Err(refusal) => return format!("{refusal:?}"),
        };
        let mut text = format!("poll {}", plan.poll);
        if let Some(delivery) = plan.commit {
            write!(text, ", commit {}", show(&delivery)).unwrap();
        }
        match plan.reading {
            Reading::Again(delivery) => write!(text, ", again {}", show(&delivery)).unwrap(),
            Reading::Next => {
                let readable: Vec<_> = self.group.readable(id).iter().map(name).collect();
                write!(text, ", next [{}]", readable.join(" ")).unwrap();
            }
        }
        text
    }

    fn who(&self) -> Vec<String> {
        self.group
            .members()
            .map(|member| {
                let assigned: Vec<_> = self
                    .group
                    .assigned(&member.id)
                    .map(|tp| name(&tp))
                    .collect();
                format!("{} [{}]", member.id, assigned.join(" "))
            })
            .collect()
    }

    /// R22: no partition is readable by two.
    fn assert_one_reader_per_partition(&self) {
        let mut seen = BTreeSet::new();
        for member in self.group.members() {
            for partition in self.group.readable(&member.id) {
                assert!(seen.insert(partition), "{partition} has two readers");
            }
        }
        if self
            .group
            .members()
            .all(|member| member.delivered.is_none())
        {
            let read = self
                .group
                .members()
                .next()
                .map_or(0, |_| self.group.partitions.len());
            assert_eq!(seen.len(), read, "a partition has no reader");
        }
    }
}

fn seconds(text: &str) -> Duration {
    Duration::from_secs(text.strip_suffix('s').unwrap().parse().unwrap())
}

fn topic(text: &str) -> impl Iterator<Item = TopicPartition> + use<> {
    let (name, count) = text.split_once(':').unwrap();
    let topic = TopicId([name.as_bytes()[0]; 16]);
    (0..count.parse().unwrap()).map(move |partition| TopicPartition {
        topic,
        partition: PartitionIndex(partition),
    })
}

fn name(partition: &TopicPartition) -> String {
    format!(
        "{}/{}",
        char::from(partition.topic.0[0]),
        partition.partition
    )
}

fn range(text: &str) -> Range {
    let (partition, offsets) = text.split_once(':').unwrap();
    let (topic, index) = partition.split_once('/').unwrap();
    let (start, end) = offsets.split_once('-').unwrap();
    Range {
        partition: TopicPartition {
            topic: TopicId([topic.as_bytes()[0]; 16]),
            partition: PartitionIndex(index.parse().unwrap()),
        },
        start: Offset(start.parse().unwrap()),
        end: Offset(end.parse().unwrap()),
    }
}

fn token(text: &str) -> DeliveryToken {
    text.parse().unwrap()
}

fn show(delivery: &Delivery) -> String {
    let ranges: Vec<_> = delivery
        .ranges
        .iter()
        .map(|range| format!("{}:{}-{}", name(&range.partition), range.start, range.end))
        .collect();
    let token = delivery.token;
    format!(
        "{}-{} {}",
        token.registration,
        token.number,
        ranges.join(" ")
    )
}
