//! Starting, stopping, and what may not be started.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use floe_tests::batch::Record;
use floe_tests::node::floe;
use floe_tests::{Node, http, tools};

/// Exit codes as `docs/commands.md` gives them.
const CONFIGURATION: i32 = 3;
const DIRECTORY_IN_USE: i32 = 10;
const ADDRESS_UNAVAILABLE: i32 = 11;
const DIRECTORY_UNUSABLE: i32 = 12;

#[test]
fn a_node_is_ready_and_ends_in_order_on_both_signals() {
    let mut node = Node::start();
    assert!(node.stop().success(), "SIGTERM");
    node.restart();
    node.signal(rustix::process::Signal::INT);
    assert!(node.wait_end().success(), "SIGINT");
}

#[test]
fn every_http_port_answers_every_resource() {
    let node = Node::start();
    for address in [
        node.discovery_address(),
        node.produce_address(),
        node.consume_address(),
    ] {
        let brokers = http::get(&address, "/v1/brokers").expect(200).json();
        assert_eq!(brokers["length"], 1);
        assert!(brokers.get("producerBinaryPort").is_none(), "{brokers}");
        http::get(&address, "/status").expect(200);
        http::get(&address, "/v1/topic/t/messages").expect(405);
    }
    let metrics = http::get(&node.metrics_address(), "/metrics")
        .expect(200)
        .text();
    assert!(metrics.contains("# TYPE floe_"), "{metrics}");
}

#[test]
fn records_and_offsets_are_the_same_after_a_restart() {
    let mut node = Node::start();
    let mut kafka = node.kafka();
    kafka.create_topic("kept", 3);
    for partition in 0..3 {
        let records: Vec<Record> = (0..50)
            .map(|n| Record::value(format!("{partition}-{n}")).at(1_000 + n))
            .collect();
        kafka.produce("kept", partition, &records);
    }
    let before: Vec<_> = (0..3)
        .map(|partition| kafka.read_all("kept", partition, 0))
        .collect();
    for way in ["stop", "kill"] {
        if way == "stop" {
            assert!(node.stop().success());
        } else {
            node.kill();
        }
        node.restart();
        let mut kafka = node.kafka();
        for (partition, before) in before.iter().enumerate() {
            assert_eq!(
                &kafka.read_all("kept", partition as i32, 0),
                before,
                "after a {way}"
            );
        }
    }
    node.kill();
    node.verify();
}

#[test]
fn a_port_in_use_is_named_with_its_setting() {
    let mut node = Node::prepare(&[]);
    let address = node.produce_address();
    let _taken = TcpListener::bind(&address).unwrap();
    node.spawn();
    assert_eq!(
        node.wait_end().code(),
        Some(ADDRESS_UNAVAILABLE),
        "{}",
        node.log()
    );
    let port = address.rsplit(':').next().unwrap();
    assert!(
        node.log().contains(port) && node.log().contains("http.produce.port"),
        "{}",
        node.log()
    );
}

#[test]
fn a_second_process_on_a_directory_is_refused_and_the_first_goes_on() {
    let first = Node::start();
    let mut second = Node::prepare(&[]);
    second.use_data(first.data());
    second.spawn();
    assert_eq!(
        second.wait_end().code(),
        Some(DIRECTORY_IN_USE),
        "{}",
        second.log()
    );
    assert!(
        second.log().contains(&first.data().display().to_string()),
        "{}",
        second.log()
    );
    first.kafka().create_topic("still-here", 1);
}

#[test]
fn five_mistakes_of_a_configuration_are_told_at_once() {
    let mut node = Node::prepare(&[
        ("num.partition", "3"),
        ("num.partitions", "many"),
        ("kafka.port", "70000"),
        ("memory.limit.bytes", "1"),
        ("log.segment.bytes", "9XB"),
    ]);
    node.spawn();
    assert_eq!(
        node.wait_end().code(),
        Some(CONFIGURATION),
        "{}",
        node.log()
    );
    for word in [
        "num.partition",
        "many",
        "70000",
        "memory.limit.bytes",
        "9XB",
        "--set",
    ] {
        assert!(
            node.log().contains(word),
            "'{word}' is missing in {}",
            node.log()
        );
    }
}

#[test]
fn a_directory_that_cannot_be_written_is_named() {
    let mut node = Node::prepare(&[]);
    // The tests may run as root, whom no permission stops; a file in the way stops everybody.
    let blocked = node.scratch().join("file");
    std::fs::write(&blocked, "").unwrap();
    node.use_data(&blocked.join("data"));
    node.spawn();
    assert_eq!(
        node.wait_end().code(),
        Some(DIRECTORY_UNUSABLE),
        "{}",
        node.log()
    );
    assert!(
        node.log().contains(&blocked.display().to_string()),
        "{}",
        node.log()
    );
}

#[test]
fn a_node_stops_at_once_with_five_thousand_idle_connections() {
    let mut node = Node::start();
    rustix::process::setrlimit(
        rustix::process::Resource::Nofile,
        rustix::process::Rlimit {
            current: Some(16_384),
            maximum: Some(16_384),
        },
    )
    .expect("the limit of open files can be raised");
    let addresses = node.addresses();
    let sockets: Vec<_> = (0..5_000)
        .map(|index| std::net::TcpStream::connect(&addresses[index % addresses.len()]).unwrap())
        .collect();
    // Others are served meanwhile.
    node.kafka().create_topic("beside-idle", 1);
    let resident = node.resident_bytes();
    assert!(
        resident < 512 << 20,
        "{resident} bytes resident with {} idle connections",
        sockets.len()
    );
    let started = Instant::now();
    assert!(node.stop().success());
    let taken = started.elapsed();
    assert!(taken < Duration::from_secs(5), "{taken:?} to stop");
    drop(sockets);
    node.restart();
    node.kafka().topic("beside-idle");
}

#[test]
fn a_command_without_a_node_says_where_it_looked() {
    let node = Node::prepare(&[]);
    let address = node.discovery_address();
    let output = tools::output(floe().args(["topic", "list", "--server"]).arg(&address));
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains(&address), "{said}");
}
