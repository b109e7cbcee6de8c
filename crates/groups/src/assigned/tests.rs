//! Scenarios of server-assigned groups as text: each line an event, below it (`->`) what the group answered.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use floe_model::{Offset, PartitionIndex, TopicId, TopicName, TopicPartition};

use super::{Delivery, DeliveryToken, Group, OnNewGroup, Range, Reading, Received, Registration};
use crate::{ConnectionId, ConsumerId, GroupId, Refusal, Settings};

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

#[test]
fn the_next_poll_commits_what_was_delivered() {
    check(
        "
        0s topics t:2
        0s register a topics=t
        -> new
        0s poll a
        -> poll 1, next [t/0 t/1]
        0s deliver a 1 t/0:0-5 t/1:7-9
        -> 1-1 t/0:0-5 t/1:7-9
        1s poll a
        -> poll 2, commit 1-1 t/0:0-5 t/1:7-9, next [t/0 t/1]
        1s committed a 1-1
        1s deliver a 2 t/0:5-6
        -> 1-2 t/0:5-6
        1s commit a
        -> 1-2 t/0:5-6
        1s committed a 1-2
        1s commit a
        -> nothing
        2s poll a
        -> poll 3, next [t/0 t/1]
        ",
    );
}

/// 10.3 m.
#[test]
fn a_delivery_that_was_lost_comes_again_the_same() {
    check(
        "
        0s topics t:1
        0s register a topics=t
        -> new
        0s poll a
        -> poll 1, next [t/0]
        0s deliver a 1 t/0:0-5
        -> 1-1 t/0:0-5
        0s lost a 1-1
        0s commit a
        -> nothing
        0s poll a
        -> poll 2, again 1-1 t/0:0-5
        0s again a 2
        -> Ok(())
        1s poll a
        -> poll 3, commit 1-1 t/0:0-5, next [t/0]
        1s lost a 1-1
        1s committed a 1-1
        1s poll a
        -> poll 4, next [t/0]
        ",
    );
}

#[test]
fn a_token_says_exactly_what_was_received() {
    check(
        "
        0s topics t:1
        0s register a topics=t
        -> new
        0s poll a got=none
        -> poll 1, next [t/0]
        0s deliver a 1 t/0:0-5
        -> 1-1 t/0:0-5
        0s poll a got=none
        -> poll 2, again 1-1 t/0:0-5
        0s lost a 1-1
        0s poll a got=1-1
        -> poll 3, commit 1-1 t/0:0-5, next [t/0]
        0s committed a 1-1
        0s deliver a 3 t/0:5-9
        -> 1-2 t/0:5-9
        0s poll a got=1-1
        -> poll 4, again 1-2 t/0:5-9
        0s poll a got=1-1
        -> poll 5, again 1-2 t/0:5-9
        0s poll a got=1-3
        -> UnknownDelivery
        0s poll a got=9-2
        -> poll 6, again 1-2 t/0:5-9
        0s poll a got=1-2
        -> poll 7, commit 1-2 t/0:5-9, next [t/0]
        ",
    );
}

#[test]
fn a_partition_changes_hands_only_when_nothing_of_it_is_out() {
    check(
        "
        0s topics t:2
        0s register a topics=t
        -> new
        0s poll a
        -> poll 1, next [t/0 t/1]
        0s deliver a 1 t/0:0-5 t/1:0-3
        -> 1-1 t/0:0-5 t/1:0-3
        1s register b topics=t
        -> new
        1s who
        -> a [t/0]
        -> b [t/1]
        1s poll b
        -> poll 1, next []
        2s poll a
        -> poll 2, commit 1-1 t/0:0-5 t/1:0-3, next [t/0]
        2s poll b
        -> poll 2, next []
        2s committed a 1-1
        2s poll b
        -> poll 3, next [t/1]
        2s deliver a 2 t/0:5-6 t/1:3-4
        -> 1-2 t/0:5-6
        ",
    );
}

/// 10.3 l.
#[test]
fn who_leaves_or_is_idle_gives_everything_up_at_once() {
    check(
        "
        0s topics t:2
        0s register a topics=t idle=10s
        -> new
        0s register b topics=t
        -> new
        0s register c topics=t
        -> new
        0s poll a
        -> poll 1, next [t/0]
        0s deliver a 1 t/0:0-5
        -> 1-1 t/0:0-5
        9s tick
        9s leave b
        -> true
        9s who
        -> a [t/0]
        -> c [t/1]
        10s tick
        -> a is gone
        10s poll c
        -> poll 1, next [t/0 t/1]
        10s poll a
        -> NotRegistered
        10s leave a
        -> false
        130s tick
        -> c is gone
        ",
    );
}

#[test]
fn a_waiting_poll_keeps_its_consumer_and_a_newer_poll_ends_it() {
    check(
        "
        0s topics t:1
        0s register a topics=t
        -> new
        0s poll a
        -> poll 1, next [t/0]
        1s poll a
        -> poll 2, next [t/0]
        1s deliver a 1 t/0:0-5
        -> Superseded
        1s again a 1
        -> Err(Superseded)
        1s deliver a 2 t/0:0-5
        -> 1-1 t/0:0-5
        ",
    );
}

#[test]
fn registering_again_needs_the_same_topics_in_the_same_style() {
    check(
        "
        0s topics t:1 u:1
        0s register a topics=t+u idle=10s
        -> new
        5s register a topics=t+u
        -> already
        5s register a topics=u+t
        -> RegisteredDifferently
        5s register a topics=t+u conn=1
        -> RegisteredDifferently
        10s tick
        15s tick
        -> a is gone
        ",
    );
}

#[test]
fn a_new_connection_takes_its_consumer_over_and_gets_what_the_old_one_had() {
    check(
        "
        0s topics t:1
        0s register a topics=t conn=1
        -> new
        0s register a topics=t conn=1
        -> already
        0s poll a
        -> poll 1, next [t/0]
        0s deliver a 1 t/0:0-5
        -> 1-1 t/0:0-5
        0s register a topics=t conn=2
        -> new
        0s poll a
        -> poll 1, next [t/0]
        ",
    );
}

#[test]
fn members_read_the_union_of_topics_also_those_created_later() {
    check(
        "
        0s topics t:2
        0s register a topics=t
        -> new
        0s register b topics=u
        -> new
        0s who
        -> a [t/0]
        -> b [t/1]
        1s topics t:2 u:2
        1s who
        -> a [t/0 u/0]
        -> b [t/1 u/1]
        2s leave b
        -> true
        2s topics t:2 u:2
        2s who
        -> a [t/0 t/1]
        ",
    );
}

#[test]
fn what_was_delivered_of_a_deleted_topic_is_forgotten() {
    check(
        "
        0s topics t:1 u:1
        0s register a topics=t+u
        -> new
        0s poll a
        -> poll 1, next [t/0 u/0]
        0s deliver a 1 t/0:0-5 u/0:0-1
        -> 1-1 t/0:0-5 u/0:0-1
        0s topics u:1
        0s poll a got=none
        -> poll 2, again 1-1 u/0:0-1
        0s topics t:1
        0s poll a got=none
        -> poll 3, next [t/0]
        ",
    );
}

#[test]
fn more_consumers_than_partitions_leave_some_without() {
    check(
        "
        0s topics t:1
        0s register a topics=t
        -> new
        0s register b topics=t
        -> new
        0s poll b
        -> poll 1, next []
        0s leave a
        -> true
        0s poll b
        -> poll 2, next [t/0]
        ",
    );
}

#[test]
fn a_token_reads_back_and_foreign_ones_are_refused() {
    let token = DeliveryToken {
        registration: u64::MAX,
        number: 12,
    };
    assert_eq!(token.to_string(), "ffffffffffffffff-12");
    assert_eq!(token.to_string().parse(), Ok(token));
    for text in ["", "-", "x-1", "1-x", "1", "11111111111111111-1", "1--1"] {
        assert_eq!(
            text.parse::<DeliveryToken>(),
            Err(Refusal::UnknownDelivery),
            "{text}"
        );
    }
}

/// R22 on random schedules: committed positions never go back, every record is delivered, one reader at a time.
#[test]
fn any_schedule_reads_every_partition_to_the_end_and_never_back() {
    let mut seed = 0x5eed_u64;
    let mut below = move |n: u64| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed % n
    };
    for _ in 0..500 {
        let mut run = Run::default();
        run.event("0s topics t:5");
        let mut committed = [0_u64; 5];
        let mut out: Vec<(&str, Delivery)> = Vec::new();
        for step in 0..200 {
            let id = ["a", "b", "c"][below(3) as usize];
            let consumer = ConsumerId::from(id);
            match if step < 150 { below(8) } else { 4 + below(4) } {
                0 => {
                    run.event(&format!("0s register {id} topics=t"));
                }
                1 => {
                    run.event(&format!("0s leave {id}"));
                }
                2 => {
                    for (id, delivery) in out.drain(..) {
                        run.group.lost(&ConsumerId::from(id), delivery.token);
                    }
                }
                3 => {
                    let delivery = run.group.begin_commit(Duration::ZERO, &consumer);
                    if let Ok(Some(delivery)) = delivery {
                        commit(&mut run.group, &consumer, &mut committed, &delivery);
                    }
                }
                _ => {
                    let Ok(plan) =
                        run.group
                            .begin_poll(Duration::ZERO, &consumer, Received::Unsaid)
                    else {
                        run.event(&format!("0s register {id} topics=t"));
                        continue;
                    };
                    if let Some(delivery) = &plan.commit {
                        commit(&mut run.group, &consumer, &mut committed, delivery);
                    }
                    if let Reading::Again(delivery) = plan.reading {
                        for range in &delivery.ranges {
                            let at = range.partition.partition.0 as usize;
                            assert_eq!(range.start.0, committed[at]);
                        }
                        run.group
                            .redelivered(Duration::ZERO, &consumer, plan.poll)
                            .unwrap();
                        continue;
                    }
                    let ranges = run
                        .group
                        .readable(&consumer)
                        .into_iter()
                        .map(|partition| {
                            let start = committed[partition.partition.0 as usize];
                            Range {
                                partition,
                                start: Offset(start),
                                end: Offset(start + 1 + below(3)),
                            }
                        })
                        .collect();
                    let delivered = run
                        .group
                        .deliver(Duration::ZERO, &consumer, plan.poll, ranges)
                        .unwrap();
                    out.extend(delivered.map(|delivery| (id, delivery)));
                }
            }
            run.assert_one_reader_per_partition();
        }
        assert!(committed.iter().all(|offset| *offset > 0), "{committed:?}");
    }
}

fn commit(group: &mut Group, consumer: &ConsumerId, committed: &mut [u64; 5], delivery: &Delivery) {
    for range in &delivery.ranges {
        let position = &mut committed[range.partition.partition.0 as usize];
        assert_eq!(
            range.start.0, *position,
            "a range was committed out of order"
        );
        *position = range.end.0;
    }
    group.committed(consumer, delivery.token);
}
