//! Scenarios of classic groups as text: each line an event, below it (`->`) what the group answered.

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

#[test]
fn a_new_member_is_told_its_id_first_and_leads_when_alone() {
    check(
        "
        0s join t1 known
        -> t1 MemberIdRequired(MemberId(\"c-t1\"))
        0s join t2 id=c-t1 known
        -> t2 joined c-t1 gen=1 range leader=c-t1 [c-t1]
        0s sync t3 id=c-t1 gen=1 assign=c-t1:AB protocol=range type=consumer
        -> t3 synced range 'AB'
        1s beat id=c-t1 gen=1
        -> ok
        1s sync t4 id=c-t1 gen=1
        -> t4 synced range 'AB'
        ",
    );
}

#[test]
fn an_old_client_joins_at_once_without_an_id() {
    check(
        "
        0s join t1
        -> t1 joined c-t1 gen=1 range leader=c-t1 [c-t1]
        ",
    );
}

#[test]
fn an_id_that_was_not_given_out_or_has_lapsed_is_unknown() {
    check(
        "
        0s join t1 id=guess
        -> t1 UnknownMember
        0s join t2 known
        -> t2 MemberIdRequired(MemberId(\"c-t2\"))
        6s tick
        6s join t3 id=c-t2
        -> t3 UnknownMember
        ",
    );
}

#[test]
fn a_second_member_rebalances_and_followers_wait_for_the_leader() {
    check(
        "
        0s join t1
        -> t1 joined c-t1 gen=1 range leader=c-t1 [c-t1]
        0s sync t2 id=c-t1 gen=1 assign=c-t1:AB
        -> t2 synced range 'AB'
        1s join t3
        2s beat id=c-t1 gen=1
        -> RebalanceInProgress
        2s sync t9 id=c-t1 gen=1
        -> t9 RebalanceInProgress
        2s join t4 id=c-t1
        -> t4 joined c-t1 gen=2 range leader=c-t1 [c-t1 c-t3]
        -> t3 joined c-t3 gen=2 range leader=c-t1 []
        2s sync t5 id=c-t3 gen=2
        3s beat id=c-t3 gen=2
        -> ok
        3s sync t6 id=c-t1 gen=2 assign=c-t1:A+c-t3:B+stranger:C
        -> t6 synced range 'A'
        -> t5 synced range 'B'
        ",
    );
}

#[test]
fn a_member_the_leader_forgets_is_assigned_nothing() {
    check(
        "
        0s join t1
        -> t1 joined c-t1 gen=1 range leader=c-t1 [c-t1]
        0s sync t2 id=c-t1 gen=1
        -> t2 synced range ''
        ",
    );
}

#[test]
fn a_member_that_does_not_rejoin_in_time_is_out() {
    check(
        "
        0s join t1 session=60s rebalance=10s
        -> t1 joined c-t1 gen=1 range leader=c-t1 [c-t1]
        0s sync t2 id=c-t1 gen=1
        -> t2 synced range ''
        1s join t3 rebalance=10s
        10s tick
        11s tick
        -> t3 joined c-t3 gen=2 range leader=c-t3 [c-t3]
        12s beat id=c-t1 gen=1
        -> UnknownMember
        ",
    );
}

#[test]
fn a_silent_member_is_replaced_after_its_session_timeout() {
    check(
        "
        0s join t1
        -> t1 joined c-t1 gen=1 range leader=c-t1 [c-t1]
        0s join t2
        0s join t3 id=c-t1
        -> t3 joined c-t1 gen=2 range leader=c-t1 [c-t1 c-t2]
        -> t2 joined c-t2 gen=2 range leader=c-t1 []
        0s sync t4 id=c-t1 gen=2 assign=c-t1:A+c-t2:B
        -> t4 synced range 'A'
        0s sync t5 id=c-t2 gen=2
        -> t5 synced range 'B'
        5s beat id=c-t2 gen=2
        -> ok
        5s tick ?
        -> Stable 2
        6s tick
        7s beat id=c-t2 gen=2
        -> RebalanceInProgress
        7s join t6 id=c-t2
        -> t6 joined c-t2 gen=3 range leader=c-t2 [c-t2]
        ",
    );
}

#[test]
fn a_member_whose_connection_is_gone_while_it_waits_has_its_session_to_come_back() {
    check(
        "
        0s join t1 session=30s
        -> t1 joined c-t1 gen=1 range leader=c-t1 [c-t1]
        0s join t2 session=6s
        1s abandon t2
        2s join t3 id=c-t1 session=30s
        6s tick
        7s tick
        -> t3 joined c-t1 gen=2 range leader=c-t1 [c-t1]
        ",
    );
}

#[test]
fn who_does_not_sync_in_time_is_out() {
    check(
        "
        0s join t1 session=60s rebalance=10s
        -> t1 joined c-t1 gen=1 range leader=c-t1 [c-t1]
        0s join t2 session=60s rebalance=10s
        0s join t3 id=c-t1 session=60s rebalance=10s
        -> t3 joined c-t1 gen=2 range leader=c-t1 [c-t1 c-t2]
        -> t2 joined c-t2 gen=2 range leader=c-t1 []
        1s sync t4 id=c-t2 gen=2
        10s tick
        -> t4 RebalanceInProgress
        11s join t5 id=c-t2 session=60s rebalance=10s
        -> t5 joined c-t2 gen=3 range leader=c-t2 [c-t2]
        ",
    );
}

#[test]
fn only_changed_metadata_or_the_leader_rebalances_a_stable_group() {
    check(
        "
        0s join t1
        -> t1 joined c-t1 gen=1 range leader=c-t1 [c-t1]
        0s join t2
        0s join t3 id=c-t1
        -> t3 joined c-t1 gen=2 range leader=c-t1 [c-t1 c-t2]
        -> t2 joined c-t2 gen=2 range leader=c-t1 []
        0s join t4 id=c-t2
        -> t4 joined c-t2 gen=2 range leader=c-t1 []
        0s sync t5 id=c-t1 gen=2 assign=c-t1:A+c-t2:B
        -> t5 synced range 'A'
        0s join t6 id=c-t2
        -> t6 joined c-t2 gen=2 range leader=c-t1 []
        0s join t7 id=c-t2 p=range:y ?
        -> Preparing { deadline: 60s, gather_until: None } 2
        0s join t8 id=c-t1
        -> t8 joined c-t1 gen=3 range leader=c-t1 [c-t1 c-t2]
        -> t7 joined c-t2 gen=3 range leader=c-t1 []
        0s sync t9 id=c-t1 gen=3
        -> t9 synced range ''
        0s join t10 id=c-t1 ?
        -> Preparing { deadline: 60s, gather_until: None } 3
        ",
    );
}

#[test]
fn the_protocol_all_have_and_most_like_best_is_chosen() {
    check(
        "
        0s join t1 p=range+sticky
        -> t1 joined c-t1 gen=1 range leader=c-t1 [c-t1]
        0s join t2 p=sticky+range
        0s join t3 p=sticky
        0s join t4 p=robin
        -> t4 InconsistentProtocol
        0s join t5 type=connect p=sticky
        -> t5 InconsistentProtocol
        0s join t6 p=
        -> t6 InconsistentProtocol
        0s join t7 id=c-t1 p=range+sticky
        -> t7 joined c-t1 gen=2 sticky leader=c-t1 [c-t1 c-t2 c-t3]
        -> t2 joined c-t2 gen=2 sticky leader=c-t1 []
        -> t3 joined c-t3 gen=2 sticky leader=c-t1 []
        0s sync t8 id=c-t1 gen=2 protocol=range
        -> t8 InconsistentProtocol
        0s sync t9 id=c-t1 gen=2 type=connect
        -> t9 InconsistentProtocol
        ",
    );
}

#[test]
fn a_member_may_change_all_its_protocols_when_alone() {
    check(
        "
        0s join t1 p=range
        -> t1 joined c-t1 gen=1 range leader=c-t1 [c-t1]
        0s join t2 id=c-t1 p=sticky
        -> t2 joined c-t1 gen=2 sticky leader=c-t1 [c-t1]
        ",
    );
}

#[test]
fn session_timeouts_outside_the_bounds_are_refused_with_the_bounds() {
    check(
        "
        0s join t1 session=5s
        -> t1 InvalidSessionTimeout { given_ms: 5000, min_ms: 6000, max_ms: 1800000 }
        0s join t2 session=1801s
        -> t2 InvalidSessionTimeout { given_ms: 1801000, min_ms: 6000, max_ms: 1800000 }
        ",
    );
}

#[test]
fn the_first_rebalance_waits_for_more_members_but_not_for_ever() {
    check_with(
        Settings::default(),
        "
        0s join t1 rebalance=7s
        2s join t2 rebalance=7s
        3s tick
        4s join t3 rebalance=7s
        6s join t4 rebalance=7s
        7s tick
        -> t1 joined c-t1 gen=1 range leader=c-t1 [c-t1 c-t2 c-t3 c-t4]
        -> t2 joined c-t2 gen=1 range leader=c-t1 []
        -> t3 joined c-t3 gen=1 range leader=c-t1 []
        -> t4 joined c-t4 gen=1 range leader=c-t1 []
        ",
    );
}

#[test]
fn members_beyond_the_limit_are_refused_pending_ones_counted() {
    let settings = Settings {
        members_max: 2,
        ..at_once()
    };
    check_with(
        settings,
        "
        0s join t1
        -> t1 joined c-t1 gen=1 range leader=c-t1 [c-t1]
        0s join t2 known
        -> t2 MemberIdRequired(MemberId(\"c-t2\"))
        0s join t3
        -> t3 Full
        0s join t4 instance=i
        -> t4 Full
        ",
    );
}

#[test]
fn leaving_rebalances_the_rest_and_the_last_one_empties_the_group() {
    check(
        "
        0s join t1
        -> t1 joined c-t1 gen=1 range leader=c-t1 [c-t1]
        0s join t2
        0s join t3 id=c-t1
        -> t3 joined c-t1 gen=2 range leader=c-t1 [c-t1 c-t2]
        -> t2 joined c-t2 gen=2 range leader=c-t1 []
        0s sync t4 id=c-t2 gen=2
        0s leave id=c-t1
        -> ok
        -> t4 RebalanceInProgress
        0s leave id=c-t1
        -> UnknownMember
        1s join t5 id=c-t2
        -> t5 joined c-t2 gen=3 range leader=c-t2 [c-t2]
        1s leave id=c-t2 ?
        -> ok
        -> Empty 4
        1s beat id=c-t2 gen=3
        -> UnknownMember
        2s join t6 type=connect p=default
        -> t6 joined c-t6 gen=5 default leader=c-t6 [c-t6]
        ",
    );
}

#[test]
fn a_leave_while_all_others_wait_completes_the_rebalance() {
    check(
        "
        0s join t1
        -> t1 joined c-t1 gen=1 range leader=c-t1 [c-t1]
        0s join t2
        0s leave id=c-t1
        -> ok
        -> t2 joined c-t2 gen=2 range leader=c-t2 [c-t2]
        ",
    );
}

/// C15.
#[test]
fn commits_without_membership_need_an_empty_group_and_stale_ones_are_fenced() {
    check(
        "
        0s commit
        -> ok
        0s commit id=anybody
        -> ok
        0s commit id=anybody gen=3
        -> UnknownMember
        0s join t1
        -> t1 joined c-t1 gen=1 range leader=c-t1 [c-t1]
        0s commit id=c-t1 gen=1
        -> RebalanceInProgress
        0s sync t2 id=c-t1 gen=1
        -> t2 synced range ''
        0s commit
        -> UnknownMember
        0s commit id=c-t1 gen=0
        -> IllegalGeneration
        0s commit id=other gen=1
        -> UnknownMember
        0s commit id=c-t1 gen=1
        -> ok
        1s join t3
        1s commit id=c-t1 gen=1
        -> ok
        1s leave id=c-t1
        -> ok
        -> t3 joined c-t3 gen=2 range leader=c-t3 [c-t3]
        1s commit id=c-t1 gen=1
        -> UnknownMember
        ",
    );
}

/// R23.
#[test]
fn a_zombie_of_an_older_generation_is_told_so() {
    check(
        "
        0s join t1
        -> t1 joined c-t1 gen=1 range leader=c-t1 [c-t1]
        0s sync t2 id=c-t1 gen=1
        -> t2 synced range ''
        0s join t3 id=c-t1
        -> t3 joined c-t1 gen=2 range leader=c-t1 [c-t1]
        0s sync t4 id=c-t1 gen=2
        -> t4 synced range ''
        0s commit id=c-t1 gen=1
        -> IllegalGeneration
        0s beat id=c-t1 gen=1
        -> IllegalGeneration
        0s sync t5 id=c-t1 gen=1
        -> t5 IllegalGeneration
        ",
    );
}

#[test]
fn a_commit_is_a_sign_of_life() {
    check(
        "
        0s join t1
        -> t1 joined c-t1 gen=1 range leader=c-t1 [c-t1]
        0s sync t2 id=c-t1 gen=1
        -> t2 synced range ''
        5s commit id=c-t1 gen=1
        -> ok
        10s tick ?
        -> Stable 1
        11s tick ?
        -> Empty 2
        ",
    );
}

#[test]
fn a_static_member_comes_back_unnoticed_and_its_old_self_is_fenced() {
    check(
        "
        0s join t1 instance=a known
        -> t1 joined a-t1 gen=1 range leader=a-t1 [a-t1]
        0s join t2 instance=b known
        0s join t3 instance=a id=a-t1
        -> t3 joined a-t1 gen=2 range leader=a-t1 [a-t1 b-t2]
        -> t2 joined b-t2 gen=2 range leader=a-t1 []
        0s sync t4 id=a-t1 instance=a gen=2 assign=a-t1:A+b-t2:B
        -> t4 synced range 'A'
        0s sync t5 id=b-t2 instance=b gen=2
        -> t5 synced range 'B'
        3s join t6 instance=b
        -> t6 joined b-t6 gen=2 range leader=a-t1 []
        3s sync t7 id=b-t6 instance=b gen=2
        -> t7 synced range 'B'
        3s beat id=b-t2 instance=b gen=2
        -> FencedInstance
        3s commit id=b-t2 instance=b gen=2
        -> FencedInstance
        3s join t8 id=b-t2 instance=b
        -> t8 FencedInstance
        3s beat id=a-t1 instance=a gen=2
        -> ok
        3s beat id=a-t1 instance=nobody gen=2
        -> UnknownMember
        ",
    );
}

#[test]
fn a_static_leader_that_comes_back_keeps_the_assignment() {
    check(
        "
        0s join t1 instance=a
        -> t1 joined a-t1 gen=1 range leader=a-t1 [a-t1]
        0s sync t2 id=a-t1 instance=a gen=1 assign=a-t1:A
        -> t2 synced range 'A'
        1s join t3 instance=a skip
        -> t3 joined a-t3 gen=1 range leader=a-t3 skip [a-t3]
        2s join t4 instance=a
        -> t4 joined a-t4 gen=1 range leader=a-t3 []
        2s sync t5 id=a-t4 instance=a gen=1
        -> t5 synced range 'A'
        3s join t6 instance=a p=range:other
        -> t6 joined a-t6 gen=2 range leader=a-t6 [a-t6]
        ",
    );
}

#[test]
fn a_static_member_that_is_away_during_a_rebalance_stays_until_its_session_ends() {
    check(
        "
        0s join t1 instance=a session=30s rebalance=5s
        -> t1 joined a-t1 gen=1 range leader=a-t1 [a-t1]
        0s sync t2 id=a-t1 instance=a gen=1
        -> t2 synced range ''
        1s join t3 rebalance=5s session=30s
        6s tick
        -> t3 joined c-t3 gen=2 range leader=c-t3 [a-t1 c-t3]
        6s sync t4 id=c-t3 gen=2 assign=a-t1:A+c-t3:B
        -> t4 synced range 'B'
        12s tick ?
        -> Stable 2
        30s beat id=c-t3 gen=2
        -> ok
        30s tick ?
        -> Preparing { deadline: 35s, gather_until: None } 2
        ",
    );
}

#[test]
fn an_operator_removes_a_static_member_by_its_instance_id_alone() {
    check(
        "
        0s join t1 instance=a
        -> t1 joined a-t1 gen=1 range leader=a-t1 [a-t1]
        0s leave instance=b
        -> UnknownMember
        0s leave instance=a id=a-t0
        -> FencedInstance
        0s leave instance=a ?
        -> ok
        -> Empty 2
        ",
    );
}

#[test]
fn two_joins_of_one_instance_at_a_time_fence_the_first() {
    check(
        "
        0s join t1
        -> t1 joined c-t1 gen=1 range leader=c-t1 [c-t1]
        0s join t2 instance=a
        0s join t3 instance=a
        -> t2 FencedInstance
        0s join t4 id=c-t1
        -> t3 joined a-t3 gen=2 range leader=c-t1 []
        -> t4 joined c-t1 gen=2 range leader=c-t1 [a-t3 c-t1]
        ",
    );
}

#[test]
fn the_next_deadline_is_the_earliest_of_all() {
    let mut group = Group::new(Arc::new(at_once()));
    assert_eq!(group.next_deadline(), None);
    Event::parse("0s join t1 session=9s").run(&mut group);
    assert_eq!(group.next_deadline(), Some(Duration::from_secs(9)));
    Event::parse("1s join t2 session=6s rebalance=5s known").run(&mut group);
    assert_eq!(group.next_deadline(), Some(Duration::from_secs(7)));
    Event::parse("7s tick").run(&mut group);
    assert_eq!(group.next_deadline(), Some(Duration::from_secs(9)));
    Event::parse("9s tick").run(&mut group);
    assert_eq!(group.next_deadline(), None);
    assert!(group.is_vacant());
}

/// Random events: one answer per ticket, members bounded, and the group's own invariants after each.
#[test]
fn any_order_of_events_answers_each_ticket_at_most_once() {
    let mut seed = 0x5eed_u64;
    let mut below = move |n: u64| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed % n
    };
    for _ in 0..2_000 {
        let settings = Settings {
            members_max: 4,
            ..at_once()
        };
        let mut group = Group::new(Arc::new(settings));
        let mut ids = vec![String::new(), "stranger".to_owned()];
        let mut answered = std::collections::BTreeSet::new();
        let mut now = 0;
        for ticket in 0..60 {
            now += below(4);
            let id = ids[below(ids.len() as u64) as usize].clone();
            let generation = u64::try_from(group.generation.0).unwrap() + below(3) / 2;
            let instance = ["", " instance=a", " instance=b"][below(3) as usize];
            let line = match below(10) {
                0..=3 => format!(
                    "{now}s join t{ticket} id={id}{instance} rebalance=5s p=range:{} {}",
                    below(2),
                    ["", "known", "skip"][below(3) as usize]
                ),
                4..=5 => format!("{now}s sync t{ticket} id={id} gen={generation}"),
                6 => format!("{now}s beat id={id} gen={generation}"),
                7 => format!("{now}s leave id={id}{instance}"),
                8 => format!("{now}s abandon t{}", below(ticket + 1)),
                _ => format!("{now}s tick"),
            };
            for answer in Event::parse(&line).run(&mut group) {
                let mut words = answer.split_whitespace();
                let Some(number) = words.next().and_then(|w| w.strip_prefix('t')) else {
                    continue;
                };
                assert!(answered.insert(number.to_owned()), "{line}: {answer}");
                if words.next() == Some("joined") {
                    ids.push(words.next().unwrap().to_owned());
                }
            }
            assert_members_are_consistent(&group);
            assert!(group.members.len() + group.pending.len() <= 4);
        }
        // Left alone, it comes to rest: every time-out passes and nobody is left.
        while let Some(deadline) = group.next_deadline() {
            group.tick(deadline);
            assert_members_are_consistent(&group);
            assert!(deadline < Duration::from_hours(1), "{group:?}");
        }
        assert!(group.is_vacant(), "{group:?}");
    }
}
