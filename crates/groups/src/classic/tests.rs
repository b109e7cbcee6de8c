//! Scenarios of classic groups as text: each line an event, below it (`->`) what the group answered. Here is the language
//! they are written in; the scenarios stand in the modules, by theme.

mod fencing;
mod joining;
mod rebalancing;
mod schedules;
mod statics;

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::{Answer, Caller, Group, Join, Leaving, State, Sync, Ticket};
use crate::{GenerationId, InstanceId, MemberId, Refusal, Settings};

/// Runs the events of a scenario and compares the whole text. An event is `<time> <name> <words…>`:
///
/// - `join TICKET [id=] [instance=] [session=6s] [rebalance=60s] [type=consumer] [p=range:TOPIC+sticky:TOPIC]
///   [known] [skip]`; new ids are `c-TICKET`, of static members `INSTANCE-TICKET`
/// - `sync TICKET id= gen= [instance=] [assign=MEMBER:BYTES+…] [type=] [protocol=]`
/// - `beat`, `commit` with `id= gen= [instance=]`; `leave [id=] [instance=]`; `abandon TICKET`; `tick`
fn check(scenario: &str) {
    check_with(at_once(), scenario);
}

/// Settings without a delay of the first rebalance.
fn at_once() -> Settings {
    Settings {
        initial_rebalance_delay: Duration::ZERO,
        ..Settings::default()
    }
}

fn check_with(settings: Settings, scenario: &str) {
    let mut group = Group::new(Arc::new(settings));
    let mut expected = String::new();
    let mut actual = String::new();
    for line in scenario.lines().map(str::trim).filter(|l| !l.is_empty()) {
        writeln!(expected, "{line}").unwrap();
        if line.starts_with("->") {
            continue;
        }
        writeln!(actual, "{line}").unwrap();
        for answer in Event::parse(line).run(&mut group) {
            writeln!(actual, "-> {answer}").unwrap();
        }
        assert_members_are_consistent(&group);
    }
    assert_eq!(actual, expected, "\nactual:\n{actual}");
}

struct Event<'a> {
    now: Duration,
    name: &'a str,
    words: Vec<&'a str>,
}

impl<'a> Event<'a> {
    fn parse(line: &'a str) -> Self {
        let mut words = line.split_whitespace();
        let now = words.next().unwrap();
        Self {
            now: Duration::from_secs(now.strip_suffix('s').unwrap().parse().unwrap()),
            name: words.next().unwrap(),
            words: words.collect(),
        }
    }

    fn value(&self, key: &str) -> Option<&'a str> {
        self.words
            .iter()
            .find_map(|word| word.strip_prefix(key)?.strip_prefix('='))
    }

    fn seconds(&self, key: &str, default: u64) -> Duration {
        let given = self.value(key).map(|v| v.strip_suffix('s').unwrap());
        Duration::from_secs(given.map_or(default, |v| v.parse().unwrap()))
    }

    fn caller(&self) -> Caller {
        Caller {
            member_id: MemberId::from(self.value("id").unwrap_or("")),
            instance_id: self.value("instance").map(InstanceId::from),
            generation: GenerationId(self.value("gen").map_or(-1, |v| v.parse().unwrap())),
        }
    }

    fn ticket(&self) -> Ticket {
        Ticket(self.words[0].strip_prefix('t').unwrap().parse().unwrap())
    }

    fn join(&self) -> Join {
        let protocols = self.value("p").unwrap_or("range:x").split('+');
        Join {
            member_id: MemberId::from(self.value("id").unwrap_or("")),
            instance_id: self.value("instance").map(InstanceId::from),
            client_id: "c".into(),
            client_host: "127.0.0.1".into(),
            protocol_type: self.value("type").unwrap_or("consumer").into(),
            protocols: protocols
                .filter(|text| !text.is_empty())
                .map(|text| {
                    let (name, bytes) = text.split_once(':').unwrap_or((text, ""));
                    (Arc::from(name), Bytes::copy_from_slice(bytes.as_bytes()))
                })
                .collect(),
            session_timeout: self.seconds("session", 6),
            rebalance_timeout: self.seconds("rebalance", 60),
            needs_known_id: self.words.contains(&"known"),
            may_skip_assignment: self.words.contains(&"skip"),
        }
    }

    fn sync(&self) -> Sync {
        let assignments = self.value("assign").unwrap_or("").split('+');
        Sync {
            caller: self.caller(),
            protocol_type: self.value("type").map(Arc::from),
            protocol: self.value("protocol").map(Arc::from),
            assignments: assignments
                .filter_map(|text| text.split_once(':'))
                .map(|(id, bytes)| (MemberId::from(id), Bytes::copy_from_slice(bytes.as_bytes())))
                .collect(),
        }
    }

    fn run(&self, group: &mut Group) -> Vec<String> {
        let plain = |result: Result<(), Refusal>| {
            vec![result.map_or_else(|refusal| format!("{refusal:?}"), |()| "ok".to_owned())]
        };
        let mut lines = match self.name {
            "join" => {
                let fresh = self.words[0];
                group.join(self.now, self.ticket(), &self.join(), fresh);
                Vec::new()
            }
            "sync" => {
                group.sync(self.now, self.ticket(), self.sync());
                Vec::new()
            }
            "abandon" => {
                group.abandon(self.now, self.ticket());
                Vec::new()
            }
            "tick" => {
                group.tick(self.now);
                Vec::new()
            }
            "beat" => plain(group.heartbeat(self.now, &self.caller())),
            "commit" => plain(group.check_commit(self.now, &self.caller())),
            "leave" => {
                let caller = self.caller();
                let one = Leaving {
                    member_id: caller.member_id,
                    instance_id: caller.instance_id,
                };
                plain(group.leave(self.now, &[one]).remove(0))
            }
            other => panic!("no event {other}"),
        };
        lines.extend(group.take_answers().iter().map(show));
        if self.words.contains(&"?") {
            lines.push(format!("{:?} {}", group.state, group.generation.0));
        }
        lines
    }
}

fn show(answer: &Answer) -> String {
    match answer {
        Answer::Joined(ticket, Ok(joined)) => {
            let members: Vec<_> = joined
                .members
                .iter()
                .map(|m| m.member_id.as_str())
                .collect();
            format!(
                "t{} joined {} gen={} {} leader={}{} [{}]",
                ticket.0,
                joined.member_id,
                joined.generation.0,
                joined.protocol,
                joined.leader,
                if joined.skip_assignment { " skip" } else { "" },
                members.join(" ")
            )
        }
        Answer::Synced(ticket, Ok(synced)) => {
            let assignment = String::from_utf8_lossy(&synced.assignment).into_owned();
            format!("t{} synced {} '{assignment}'", ticket.0, synced.protocol)
        }
        Answer::Joined(ticket, Err(refusal)) | Answer::Synced(ticket, Err(refusal)) => {
            format!("t{} {refusal:?}", ticket.0)
        }
    }
}

fn assert_members_are_consistent(group: &Group) {
    for (instance, id) in &group.statics {
        assert_eq!(group.members[id].instance_id.as_ref(), Some(instance));
    }
    assert_eq!(group.members.is_empty(), group.leader.is_none());
    if let Some(leader) = &group.leader {
        assert!(group.members.contains_key(leader));
    }
    if group.state == State::Stable {
        let is_idle = |m: &super::Member| m.joining.is_none() && m.syncing.is_none();
        assert!(group.members().all(is_idle));
    }
    if group.state == State::Empty {
        assert!(group.members.is_empty());
    }
}
