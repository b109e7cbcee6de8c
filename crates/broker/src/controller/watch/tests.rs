//! Two nodes that watch one another, and what lies between them.

use floe_model::Incarnation;

use super::*;

const TICK: Duration = Duration::from_millis(25);

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn peer(node: u32, boot: u32) -> Peer {
    Peer {
        node: NodeId(node),
        incarnation: Incarnation(1),
        boot: Boot(boot),
        cluster: None,
    }
}

/// Node 1 and node 2; whether what one says arrives at the other.
struct Pair {
    watches: [Watch; 2],
    now: Duration,
    arrives: [bool; 2],
    hangs: [bool; 2],
    flush_age: [Option<Duration>; 2],
    /// What node 1 says of node 2.
    changed: Vec<(NodeId, Option<Why>)>,
}

impl Pair {
    fn new() -> Self {
        let now = Duration::from_secs(100);
        let mut watches =
            [1, 2].map(|node| Watch::new(NodeId(node), Boot(1), Times::default(), now));
        watches[0].connected(peer(2, 1), now);
        watches[1].connected(peer(1, 1), now);
        Self {
            watches,
            now,
            arrives: [true; 2],
            hangs: [false; 2],
            flush_age: [None; 2],
            changed: Vec::new(),
        }
    }

    fn run(&mut self, time: Duration) {
        let until = self.now + time;
        while self.now < until {
            self.now += TICK;
            for from in 0..2 {
                if self.hangs[from] {
                    continue;
                }
                let mut changed = Vec::new();
                let beats = self.watches[from].tick(self.now, self.flush_age[from], &mut changed);
                if from == 0 {
                    self.changed.extend(changed);
                }
                let to = 1 - from;
                for (_, beat) in beats {
                    if self.arrives[from] && !self.hangs[to] {
                        self.watches[to].heard(NodeId(from as u32 + 1), &beat, self.now);
                    }
                }
            }
        }
    }

    /// How long until node 1 says something else of node 2, and what.
    fn until_changed(&mut self) -> (Duration, Option<Why>) {
        let begun = self.now;
        self.changed.clear();
        while self.changed.is_empty() {
            assert!(self.now < begun + Duration::from_mins(2), "nothing changes");
            self.run(TICK);
        }
        (self.now.saturating_sub(begun), self.changed[0].1)
    }
}

#[test]
fn nobody_is_suspected_while_all_is_well() {
    let mut pair = Pair::new();
    pair.run(Duration::from_mins(10));
    assert_eq!(pair.changed, []);
    let alive = pair.watches[0].alive();
    assert_eq!(alive, [(NodeId(1), Boot(1)), (NodeId(2), Boot(1))].into());
}

#[test]
fn a_hung_process_is_suspected_in_half_a_second_though_its_connection_stands() {
    let mut pair = Pair::new();
    pair.run(ms(1_000));
    pair.hangs[1] = true;
    let (took, why) = pair.until_changed();
    assert_eq!(why, Some(Why::Silent));
    assert!(took > ms(400) && took <= ms(625), "{took:?}");
    assert!(!pair.watches[0].alive().contains_key(&NodeId(2)));
    pair.hangs[1] = false;
    let (took, why) = pair.until_changed();
    assert_eq!(why, None);
    assert!(took <= ms(200), "{took:?}");
}

#[test]
fn a_cut_in_either_direction_is_seen_from_both_sides() {
    for cut in 0..2 {
        let mut pair = Pair::new();
        pair.run(ms(1_000));
        pair.arrives[cut] = false;
        let (took, why) = pair.until_changed();
        let expected = if cut == 0 { Why::Deaf } else { Why::Silent };
        assert_eq!(why, Some(expected));
        assert!(took <= ms(800), "{took:?}");
    }
}

#[test]
fn a_disk_that_hangs_is_seen() {
    let mut pair = Pair::new();
    pair.flush_age[1] = Some(ms(900));
    pair.run(ms(1_000));
    assert_eq!(pair.changed, []);
    pair.flush_age[1] = Some(ms(1_100));
    assert_eq!(pair.until_changed().1, Some(Why::Disk));
    pair.flush_age[1] = None;
    assert_eq!(pair.until_changed().1, None);
}

#[test]
fn a_closed_connection_alone_is_no_reason_and_one_behind_which_nobody_listens_is_at_once() {
    let mut pair = Pair::new();
    pair.run(ms(1_000));
    pair.watches[0].disconnected(NodeId(2));
    pair.run(ms(100));
    assert_eq!(pair.changed, []);
    pair.watches[0].gone(NodeId(2));
    let (took, why) = pair.until_changed();
    assert_eq!((took, why), (TICK, Some(Why::Gone)));
}

#[test]
fn the_next_process_of_a_node_is_named() {
    let mut pair = Pair::new();
    pair.run(ms(1_000));
    pair.watches[0].disconnected(NodeId(2));
    pair.watches[0].connected(peer(2, 2), pair.now);
    pair.run(ms(100));
    assert_eq!(pair.watches[0].alive()[&NodeId(2)], Boot(2));
    assert_eq!(pair.changed, []);
}

#[test]
fn one_that_flaps_has_to_be_well_for_longer_each_time() {
    let mut pair = Pair::new();
    let mut waited = Vec::new();
    for _ in 0..4 {
        pair.hangs[1] = true;
        pair.until_changed();
        pair.hangs[1] = false;
        waited.push(pair.until_changed().0);
        pair.run(ms(500));
    }
    assert!(waited[0] < ms(300), "{waited:?}");
    for (waited, least) in waited[1..].iter().zip([1_000, 2_000, 4_000]) {
        assert!(
            *waited >= ms(least) && *waited < ms(least + 300),
            "{waited:?}"
        );
    }
    pair.run(Duration::from_mins(2));
    pair.hangs[1] = true;
    pair.until_changed();
    pair.hangs[1] = false;
    assert!(pair.until_changed().0 < ms(300), "long ago is forgotten");
}

#[test]
fn a_process_that_hung_itself_blames_nobody() {
    let mut pair = Pair::new();
    pair.run(ms(1_000));
    pair.hangs[0] = true;
    pair.run(Duration::from_secs(20));
    pair.hangs[0] = false;
    pair.run(Duration::from_secs(2));
    assert_eq!(pair.changed, []);
}

#[test]
fn a_process_waits_for_the_others_before_it_judges() {
    let watch = Watch::new(NodeId(1), Boot(1), Times::default(), ms(50));
    assert!(!watch.has_looked(ms(549)));
    assert!(watch.has_looked(ms(550)));
}
