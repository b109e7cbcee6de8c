//! The layouts of voters: an example each, and bytes that no voter sent.

use bytes::Bytes;
use floe_model::{Incarnation, NodeId};
use floe_replication::Member;

use super::*;
use crate::consensus::{Body, Configuration, Entry, Message, Payload, Position};

fn member(node: u32) -> Member {
    Member {
        node: NodeId(node),
        incarnation: Incarnation(u64::from(node) + 8),
    }
}

fn append(entries: Vec<Entry>) -> Message {
    Message {
        from: member(1),
        to: member(2),
        term: 6,
        body: Body::Append {
            after: Position { index: 4, term: 5 },
            entries,
            commit: 3,
        },
    }
}

#[test]
fn a_message_is_drawn_as_it_was() {
    let message = append(vec![Entry {
        index: 5,
        term: 6,
        payload: Payload::Command(Bytes::from_static(b"\x08\x01")),
    }]);
    let bytes = encode_message(&message);
    let expected = b"\x08\x02\
        \x12\x0b\x08\x01\x11\x09\0\0\0\0\0\0\0\
        \x1a\x0b\x08\x02\x11\x0a\0\0\0\0\0\0\0\
        \x20\x06\
        \x2a\x08\x08\x05\x10\x06\x1a\x02\x08\x01\
        \x62\x08\x0a\x04\x08\x04\x10\x05\x10\x03";
    assert_eq!(&bytes[..], expected);
    assert_eq!(decode_message(&bytes).unwrap(), message);
}

#[test]
fn an_entry_that_is_no_command_is_told_from_one() {
    let configuration = Configuration {
        voters: vec![member(1), member(3)],
        learners: vec![member(2)],
    };
    let command = encode(&Command::ReserveProducerIds(NodeId(3)));
    for payload in [
        Payload::Blank,
        Payload::Command(command),
        Payload::Known(9),
        Payload::Configuration(configuration.clone()),
    ] {
        let stored = encode_payload(&payload);
        assert_eq!(decode_payload(&stored), Ok(payload));
    }
    let stored = encode_payload(&Payload::Configuration(configuration.clone()));
    assert_eq!(
        decode(&stored),
        Err(Undecodable::Command),
        "whoever does not know it does not skip it"
    );
    let catalog = Catalog {
        configuration,
        ..Catalog::default()
    };
    assert_eq!(decode_snapshot(&encode_snapshot(&catalog)), Ok(catalog));
}

#[test]
fn a_message_with_too_much_in_it_is_refused_before_it_is_decoded() {
    let blank = |index| Entry {
        index,
        term: 6,
        payload: Payload::Blank,
    };
    let entries = |count: usize| (5..).take(count).map(blank).collect();
    let bytes = encode_message(&append(entries(ENTRIES_PER_MESSAGE_MAX)));
    assert!(decode_message(&bytes).is_ok());
    let bytes = encode_message(&append(entries(ENTRIES_PER_MESSAGE_MAX + 1)));
    assert_eq!(decode_message(&bytes), Err(Undecodable::Field("entries")));
    let bytes = vec![0; MESSAGE_BYTES_MAX + 1];
    assert_eq!(decode_message(&bytes), Err(Undecodable::Field("length")));
}

#[test]
fn a_message_of_a_newer_release_a_cut_one_and_one_without_a_body_are_refused() {
    let mut bytes = encode_message(&append(Vec::new())).to_vec();
    for cut in 0..bytes.len() {
        assert!(decode_message(&bytes[..cut]).is_err(), "{cut}");
    }
    bytes[1] = 3;
    assert_eq!(
        decode_message(&bytes),
        Err(Undecodable::Version { found: 3 })
    );
}
