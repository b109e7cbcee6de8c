//! Handshakes step by step, honest and not.

use super::*;

const CLUSTER: ClusterId = ClusterId([7; 16]);

pub(in crate::peers) fn me(node: u32) -> Me {
    Me {
        node: NodeId(node),
        incarnation: Incarnation(u64::from(node) + 100),
        boot: Boot(node + 10),
        process: u64::from(node) + 1_000,
        secret: Secret::parse(b"what all nodes know").unwrap(),
        versions: Versions::OURS,
    }
}

fn errand(to: u32) -> Errand {
    Errand {
        to: NodeId(to),
        lane: Lane::Data,
        set: 5,
        nonce: [1; NONCE_BYTES],
    }
}

/// Both sides' results, as far as they come.
struct Sides {
    dialler: Result<Claim, Refusal>,
    acceptor: Result<Claim, Refusal>,
}

fn shake(dialler: (&Me, Option<ClusterId>), acceptor: (&Me, Option<ClusterId>)) -> Sides {
    let unreached = || Err(Refusal::Closed);
    let dialling = Dialling::new(dialler.0, dialler.1, errand(2));
    let heard = Accepting::new(acceptor.0, acceptor.1, dialling.hello(), [2; NONCE_BYTES]);
    let accepting = match heard {
        Ok(accepting) => accepting,
        Err(refusal) => {
            return Sides {
                dialler: unreached(),
                acceptor: Err(refusal),
            };
        }
    };
    let (proving, proof) = match dialling.challenged(accepting.challenge()) {
        Ok(proven) => proven,
        Err(refusal) => {
            return Sides {
                dialler: Err(refusal),
                acceptor: unreached(),
            };
        }
    };
    match accepting.proven(&proof) {
        Ok((claim, welcome)) => Sides {
            dialler: proving.welcomed(&welcome),
            acceptor: Ok(claim),
        },
        Err(refusal) => Sides {
            dialler: unreached(),
            acceptor: Err(refusal),
        },
    }
}

fn name(side: &Result<Claim, Refusal>) -> &'static str {
    side.as_ref().map_or_else(Refusal::name, |_| "proven")
}

#[test]
fn two_nodes_that_know_the_secret_learn_who_the_other_is() {
    let (one, two) = (me(1), me(2));
    let sides = shake((&one, Some(CLUSTER)), (&two, Some(CLUSTER)));
    let claim = |me: &Me| Claim {
        node: me.node,
        incarnation: me.incarnation,
        boot: me.boot,
        process: me.process,
        cluster: Some(CLUSTER),
        version: 1,
        lane: Lane::Data,
        set: 5,
    };
    assert_eq!(sides.dialler.unwrap(), claim(&two));
    assert_eq!(sides.acceptor.unwrap(), claim(&one));
}

#[test]
fn a_node_that_is_in_no_cluster_yet_speaks_to_one_that_is_and_learns_which() {
    let (one, two) = (me(1), me(2));
    let sides = shake((&one, None), (&two, Some(CLUSTER)));
    assert_eq!(sides.dialler.unwrap().cluster, Some(CLUSTER));
    assert_eq!(sides.acceptor.unwrap().cluster, None);
}

#[test]
fn another_secret_another_cluster_and_another_node_are_refused_by_name() {
    let (one, two) = (me(1), me(2));
    let mut stranger = me(1);
    stranger.secret = Secret::parse(b"what nobody else knows").unwrap();
    let known = Some(CLUSTER);
    let sides = shake((&stranger, known), (&two, known));
    assert_eq!(name(&sides.acceptor), "wrong_secret");
    let other = Some(ClusterId([8; 16]));
    let sides = shake((&one, other), (&two, known));
    assert_eq!(name(&sides.acceptor), "wrong_cluster");
    let text = sides.acceptor.unwrap_err().to_string();
    assert!(
        text.contains("08080808") && text.contains("07070707"),
        "{text}"
    );
    let sides = shake((&one, known), (&me(3), known));
    let text = sides.acceptor.unwrap_err().to_string();
    assert!(
        text.starts_with("node 2 was meant, node 3 is there; correct the addresses"),
        "{text}"
    );
}

#[test]
fn an_acceptor_that_does_not_know_the_secret_is_found_out() {
    let one = me(1);
    let mut impostor = me(2);
    impostor.secret = Secret::parse(b"what nobody else knows").unwrap();
    let dialling = Dialling::new(&one, None, errand(2));
    let hello = dialling.hello().to_vec();
    let accepting = Accepting::new(&impostor, None, &hello, [2; NONCE_BYTES]).unwrap();
    let challenge = accepting.challenge().to_vec();
    let (proving, _) = dialling.challenged(&challenge).unwrap();
    let mac = proof::prove(&impostor.secret, Role::Acceptor, &hello, &challenge);
    let refusal = proving.welcomed(&sealed(mac)).unwrap_err();
    assert_eq!(refusal.name(), "wrong_secret");
}

#[test]
fn a_proof_sent_back_as_the_welcome_is_a_wrong_one() {
    let (one, two) = (me(1), me(2));
    let dialling = Dialling::new(&one, None, errand(2));
    let accepting = Accepting::new(&two, None, dialling.hello(), [2; NONCE_BYTES]).unwrap();
    let (proving, proof) = dialling.challenged(accepting.challenge()).unwrap();
    let refusal = proving.welcomed(&proof).unwrap_err();
    assert_eq!(refusal.name(), "wrong_secret");
}

#[test]
fn a_recorded_handshake_sent_again_is_refused_since_the_nonce_is_another() {
    let (one, two) = (me(1), me(2));
    let dialling = Dialling::new(&one, None, errand(2));
    let hello = dialling.hello().to_vec();
    let first = Accepting::new(&two, None, &hello, [2; NONCE_BYTES]).unwrap();
    let (_, proof) = dialling.challenged(first.challenge()).unwrap();
    assert!(first.proven(&proof).is_ok());
    let again = Accepting::new(&two, None, &hello, [3; NONCE_BYTES]).unwrap();
    let refusal = again.proven(&proof).map(|_| ()).unwrap_err();
    assert_eq!(refusal.name(), "wrong_secret");
}

#[test]
fn nothing_claimed_can_be_changed_on_the_way() {
    let (one, two) = (me(1), me(2));
    let hello = Dialling::new(&one, Some(CLUSTER), errand(2))
        .hello()
        .to_vec();
    let mut noticed = 0;
    for bit in 0..hello.len() * 8 {
        let mut changed = hello.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        let dialling = Dialling::new(&one, Some(CLUSTER), errand(2));
        let Ok(accepting) = Accepting::new(&two, Some(CLUSTER), &changed, [2; NONCE_BYTES]) else {
            noticed += 1;
            continue;
        };
        let challenged = dialling.challenged(accepting.challenge());
        let Ok((_, proof)) = challenged else {
            noticed += 1;
            continue;
        };
        let refusal = accepting.proven(&proof).map(|_| ()).unwrap_err();
        assert_eq!(refusal.name(), "wrong_secret", "bit {bit}");
        noticed += 1;
    }
    assert_eq!(noticed, hello.len() * 8);
}

#[test]
fn a_node_of_a_newer_protocol_is_spoken_to_if_it_can_and_refused_by_name_if_not() {
    let two = me(2);
    let mut newer = me(1);
    newer.versions = Versions { min: 1, max: 3 };
    let sides = shake((&newer, None), (&two, None));
    assert_eq!(sides.dialler.unwrap().version, 1);
    newer.versions = Versions { min: 2, max: 3 };
    let sides = shake((&newer, None), (&two, None));
    let text = sides.acceptor.unwrap_err().to_string();
    assert!(
        text.contains("speaks versions 2 to 3") && text.contains("this one 1"),
        "{text}"
    );
    let sides = shake((&two, None), (&newer, None));
    assert_eq!(name(&sides.acceptor), "no_common_version");
}

#[test]
fn an_acceptor_that_chooses_another_version_than_the_highest_common_one_is_refused() {
    let mut one = me(1);
    one.versions = Versions { min: 1, max: 3 };
    let two = me(2);
    let dialling = Dialling::new(&one, None, errand(2));
    let accepting = Accepting::new(&two, None, dialling.hello(), [2; NONCE_BYTES]).unwrap();
    let mut challenge = head::Challenge::decode(accepting.challenge()).unwrap();
    challenge.version_max = 3;
    let refusal = dialling.challenged(&challenge.encode_to_vec());
    let refusal = refusal.map(|_| ()).unwrap_err();
    assert!(matches!(refusal, Refusal::Invalid("version")), "{refusal}");
}

#[test]
fn what_is_told_of_a_refusal_is_heard_as_the_same_one() {
    let one = me(1);
    let told = [
        Refusal::NoCommonVersion {
            ours: Versions { min: 2, max: 3 },
            theirs: Versions::OURS,
        },
        Refusal::WrongCluster {
            ours: None,
            theirs: None,
        },
        Refusal::WrongSecret,
        Refusal::WrongNode {
            meant: NodeId(2),
            is: None,
        },
        Refusal::UnknownNode(one.node),
        Refusal::DuplicateNode(one.node),
        Refusal::OlderIncarnation {
            node: one.node,
            incarnation: one.incarnation,
        },
        Refusal::OlderBoot {
            node: one.node,
            boot: one.boot,
        },
    ];
    for refusal in told {
        let said = refusal.told(Versions { min: 2, max: 3 }).unwrap();
        let heard = Refusal::heard(&said, &one, Some(NodeId(2)));
        assert!(matches!(heard, Refusal::Told(_)));
        assert_eq!(heard.name(), refusal.name());
    }
    assert!(Refusal::Late.told(Versions::OURS).is_none());
    let unknown = head::Refused {
        reason: 99,
        ..head::Refused::default()
    };
    let heard = Refusal::heard(&unknown, &one, None);
    assert!(heard.to_string().contains("reason 99"), "{heard}");
}

#[test]
fn heads_of_the_handshake_fit_their_limit() {
    let mut one = me(1);
    one.node = NodeId(u32::MAX);
    one.boot = Boot(u32::MAX);
    one.versions = Versions { min: 1, max: 255 };
    let hello = Dialling::new(&one, Some(CLUSTER), errand(u32::MAX));
    let most = floe_wire::peer::frame::HANDSHAKE_HEAD_BYTES_MAX;
    assert!(hello.hello().len() * 2 < most, "{}", hello.hello().len());
}
