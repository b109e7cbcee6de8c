//! Who is not let in, and why.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use floe_model::{Boot, Incarnation};
use floe_wire::peer::proof::Secret;
use floe_wire::peer::{Kind, frame};
use proptest::prelude::*;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::{Node, bind, dial, list, newer, start, until};
use crate::peers::conformance::{ONE, append};
use crate::peers::handshake::tests::me;
use crate::peers::message::draw;
use crate::peers::tcp::shake;
use crate::peers::{Refusal, Settings, Transport};

/// Node 2, which node 1 would dial; nobody listens as node 1.
async fn lonely(settings: Settings) -> (Node, SocketAddr) {
    let (listener, at) = bind().await;
    let (nobody, elsewhere) = bind().await;
    drop(nobody);
    let list = list(&[(1, elsewhere), (2, at)]);
    (start(me(2), listener, list, settings), at)
}

/// What a stranger gets before the connection is closed.
async fn sent_to(at: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(at).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    let mut answer = Vec::new();
    // A reset is a close, too: there may be bytes that nobody read.
    drop(stream.read_to_end(&mut answer).await);
    answer
}

#[tokio::test]
async fn strangers_are_closed_without_a_word_and_counted_by_what_they_speak() {
    let patient = Settings {
        handshake_within: Duration::from_mins(1),
        ..Settings::default()
    };
    let (node, at) = lonely(patient).await;
    let http = b"GET / HTTP/1.1\r\n\r\n";
    let tls = [0x16, 3, 1, 0, 200, 1, 0, 0, 196, 3, 3];
    let kafka = [
        0, 0, 0, 20, 0, 18, 0, 3, 0, 0, 0, 1, 0, 4, b't', b'e', b's', b't',
    ];
    let random = [0x99; 100];
    for (bytes, why) in [
        (&http[..], "http"),
        (&tls[..], "tls"),
        (&kafka[..], "kafka"),
        (&random[..], "foreign"),
    ] {
        assert_eq!(sent_to(at, bytes).await, [], "{why}");
        until(why, || node.metrics.refused_for(why) > 0).await;
    }
    assert_eq!(node.tcp.peer(ONE), None);
}

#[tokio::test]
async fn silence_and_a_hello_that_stops_are_closed_after_the_time_of_a_handshake() {
    let settings = Settings {
        handshake_within: Duration::from_millis(50),
        ..Settings::default()
    };
    let (node, at) = lonely(settings).await;
    let hello = frame::preamble(0, Kind::Hello, b"head", &[]);
    for (count, bytes) in [&b""[..], &frame::MARK[..], &hello[..]]
        .into_iter()
        .enumerate()
    {
        assert_eq!(sent_to(at, bytes).await, []);
        let refused = || node.metrics.refused_for("late") == count as u64 + 1;
        until("it is refused", refused).await;
    }
}

#[tokio::test]
async fn a_frame_of_the_handshake_that_announces_too_much_is_refused_before_it_is_read() {
    let (node, at) = lonely(Settings::default()).await;
    let long = vec![0; frame::HANDSHAKE_HEAD_BYTES_MAX + 1];
    let preamble = frame::preamble(0, Kind::Hello, &long, &[]);
    assert_eq!(sent_to(at, &preamble).await, []);
    let body = [Bytes::from_static(b"x")];
    let preamble = frame::preamble(0, Kind::Hello, b"", &body);
    assert_eq!(sent_to(at, &preamble).await, []);
    until("both refused", || node.metrics.refused_for("damaged") == 2).await;
}

#[tokio::test]
async fn who_may_not_be_connected_is_told_why() {
    let (node, at) = lonely(Settings::default()).await;
    let known = me(1);
    let mut stranger = me(1);
    stranger.secret = Secret::parse(b"what nobody else knows").unwrap();
    let mut other_release = me(1);
    other_release.versions = newer();
    for (who, to, why) in [
        (&stranger, 2, "wrong_secret"),
        (&other_release, 2, "no_common_version"),
        (&me(3), 2, "unknown_node"),
        (&me(2), 2, "duplicate_node"),
        (&known, 3, "wrong_node"),
    ] {
        let refusal = dial(who, to, at).await.map(|_| ()).unwrap_err();
        assert!(matches!(refusal, Refusal::Told(_)), "{refusal}");
        assert_eq!(refusal.name(), why);
        assert_eq!(node.metrics.refused_for(why), 1);
    }
    assert!(dial(&known, 2, at).await.is_ok());
}

#[tokio::test]
async fn a_second_process_with_the_same_id_is_refused_while_the_first_is_alive() {
    let (node, at) = lonely(Settings::default()).await;
    let _first = dial(&me(1), 2, at).await.unwrap();
    until("connected", || node.seen.is_connected(ONE)).await;
    let mut other = me(1);
    other.incarnation = Incarnation(999);
    other.process = 999;
    let mut copy = me(1);
    copy.process = 999;
    for who in [&other, &copy] {
        let refusal = dial(who, 2, at).await.map(|_| ()).unwrap_err();
        assert_eq!(refusal.name(), "duplicate_node");
    }
    assert_eq!(node.tcp.peer(ONE).unwrap().incarnation, me(1).incarnation);
}

#[tokio::test]
async fn another_life_of_a_node_is_let_in_once_the_earlier_one_is_silent() {
    let settings = Settings {
        alive_within: Duration::ZERO,
        ..Settings::default()
    };
    let (node, at) = lonely(settings).await;
    let _first = dial(&me(1), 2, at).await.unwrap();
    until("connected", || node.seen.is_connected(ONE)).await;
    let mut other = me(1);
    other.incarnation = Incarnation(999);
    let _second = loop {
        // Until a millisecond has passed.
        if let Ok(streams) = dial(&other, 2, at).await {
            break streams;
        }
    };
    until("replaced", || {
        node.tcp
            .peer(ONE)
            .is_some_and(|peer| peer.incarnation == Incarnation(999))
    })
    .await;
    assert_eq!(node.seen.lost(), ["replaced by a new connection"]);
}

#[tokio::test]
async fn a_node_that_started_again_replaces_its_earlier_process_at_once_and_never_the_reverse() {
    let (node, at) = lonely(Settings::default()).await;
    let _first = dial(&me(1), 2, at).await.unwrap();
    until("connected", || node.seen.is_connected(ONE)).await;
    let mut again = me(1);
    again.boot = Boot(me(1).boot.0 + 1);
    again.process = 999;
    let second = dial(&again, 2, at).await.unwrap();
    until("the new boot", || {
        node.tcp
            .peer(ONE)
            .is_some_and(|peer| peer.boot == again.boot)
    })
    .await;
    drop(second);
    until("it ended", || !node.seen.is_connected(ONE)).await;
    let refusal = dial(&me(1), 2, at).await.map(|_| ()).unwrap_err();
    assert_eq!(refusal.name(), "older_boot");
}

#[tokio::test]
async fn a_life_of_a_nodes_data_that_was_given_up_is_disconnected_and_refused() {
    let (node, at) = lonely(Settings::default()).await;
    let _first = dial(&me(1), 2, at).await.unwrap();
    until("connected", || node.seen.is_connected(ONE)).await;
    node.tcp.retire(ONE, me(1).incarnation);
    until("it ended", || !node.seen.is_connected(ONE)).await;
    let refusal = dial(&me(1), 2, at).await.map(|_| ()).unwrap_err();
    assert_eq!(refusal.name(), "older_incarnation");
}

/// A frame as it leaves.
fn bytes_of(message: crate::peers::Message) -> Vec<u8> {
    let drawn = draw(message);
    let mut bytes = frame::preamble(1, drawn.kind, &drawn.head, &drawn.body).to_vec();
    bytes.extend_from_slice(&drawn.head);
    bytes.extend_from_slice(&drawn.body.concat());
    bytes
}

#[tokio::test]
async fn a_changed_bit_of_a_message_ends_the_connection_and_is_never_received() {
    let (node, at) = lonely(Settings::default()).await;
    let whole = bytes_of(append(1, Bytes::from_static(b"the bytes of a batch")));
    for (count, bit) in (0..whole.len() * 8).step_by(7).enumerate() {
        let mut streams = dial(&me(1), 2, at).await.unwrap();
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        streams.data.write_all(&bytes).await.unwrap();
        until("it ended", || node.seen.lost().len() == count + 1).await;
    }
    assert_eq!(node.seen.count(), 0);
    let mut streams = dial(&me(1), 2, at).await.unwrap();
    streams.data.write_all(&whole).await.unwrap();
    until("the right one arrived", || node.seen.count() == 1).await;
}

#[tokio::test]
async fn a_frame_that_stops_half_way_and_a_late_hello_end_the_connection() {
    let settings = Settings {
        frame_within: Duration::from_millis(30),
        ..Settings::default()
    };
    let (node, at) = lonely(settings).await;
    let whole = bytes_of(append(1, Bytes::from_static(b"the bytes of a batch")));
    for (count, stop) in [3, frame::PREAMBLE_BYTES + 1, whole.len() - 1]
        .into_iter()
        .enumerate()
    {
        let mut streams = dial(&me(1), 2, at).await.unwrap();
        streams.data.write_all(&whole[..stop]).await.unwrap();
        until("it ended", || node.seen.lost().len() == count + 1).await;
        assert_eq!(node.seen.lost()[count], "a frame did not end in time");
    }
    let mut streams = dial(&me(1), 2, at).await.unwrap();
    let hello = frame::preamble(1, Kind::Hello, &[], &[]);
    streams.control.write_all(&hello).await.unwrap();
    until("it ended", || node.seen.lost().len() == 4).await;
    assert_eq!(
        node.seen.lost()[3],
        "a frame of kind Hello came after the handshake"
    );
}

#[tokio::test]
async fn a_flood_of_silent_callers_is_bounded_and_does_not_keep_a_node_out() {
    let settings = Settings {
        handshakes_max: 4,
        handshake_within: Duration::from_mins(1),
        ..Settings::default()
    };
    let (node, at) = lonely(settings).await;
    let mut callers = Vec::new();
    for _ in 0..20 {
        callers.push(TcpStream::connect(at).await.unwrap());
    }
    until("those above the bound are closed", || {
        node.metrics.refused_for("crowded") >= 16
    })
    .await;
    drop(callers);
    let _streams = loop {
        // As a node does: again, until those that were within their handshake are seen to be gone.
        if let Ok(streams) = dial(&me(1), 2, at).await {
            break streams;
        }
    };
    until("connected", || node.seen.is_connected(ONE)).await;
}

#[tokio::test]
async fn what_the_dialled_port_speaks_otherwise_is_named() {
    let (listener, at) = bind().await;
    let web = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream
            .write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            .await
            .unwrap();
        let mut rest = Vec::new();
        drop(stream.read_to_end(&mut rest).await);
    };
    let one = me(1);
    let ((), dialled) = tokio::join!(web, dial(&one, 2, at));
    let refusal = dialled.map(|_| ()).unwrap_err();
    assert_eq!(refusal.name(), "http");
}

proptest! {
    #[test]
    fn whatever_a_stranger_sends_the_handshake_ends_in_a_refusal(bytes: Vec<u8>, is_marked: bool) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let shaken = runtime.block_on(async {
            let (mut near, mut far) = tokio::io::duplex(1 << 16);
            if is_marked {
                far.write_all(&frame::MARK).await.unwrap();
            }
            far.write_all(&bytes).await.unwrap();
            far.shutdown().await.unwrap();
            shake::accept(&mut near, &me(2), None, [2; 32], |_| Ok(())).await
        });
        prop_assert!(shaken.is_err());
    }
}
