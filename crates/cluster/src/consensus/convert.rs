//! Our values as the library's and back.
//!
//! Guarantees: what comes from a peer or from disk is built here field by field; nothing of it is parsed by the library. A change
//! of configuration carries the new configuration as its context, in our encoding; the library's own form of the change is
//! made anew by everyone who applies it.

use floe_replication::Member;
use raft::eraftpb::{
    self, ConfChangeSingle, ConfChangeType, ConfChangeV2, ConfState, EntryType, MessageType,
};

use super::configuration::{Move, id_of};
use super::{Body, Configuration, Entry, Message, Payload, Position, Snapshot};
use crate::format;

/// The library's mark of an election that the leader asked for.
const TRANSFER: &[u8] = raft::CAMPAIGN_TRANSFER;

pub(super) fn entry_into(entry: &Entry) -> eraftpb::Entry {
    let mut out = eraftpb::Entry {
        index: entry.index,
        term: entry.term,
        ..eraftpb::Entry::default()
    };
    match &entry.payload {
        Payload::Blank => {}
        Payload::Command(command) => out.data = command.clone(),
        Payload::Known(_) => out.data = format::encode_payload(&entry.payload),
        Payload::Configuration(configuration) => {
            out.set_entry_type(EntryType::EntryConfChangeV2);
            out.context = format::encode_configuration(configuration);
        }
    }
    out
}

pub(super) fn entry_from(entry: &eraftpb::Entry) -> Entry {
    let payload = match entry.get_entry_type() {
        EntryType::EntryNormal => format::decode_payload(&entry.data)
            .expect("what is no command was encoded by this process"),
        EntryType::EntryConfChange | EntryType::EntryConfChangeV2 => Payload::Configuration(
            format::decode_configuration(&entry.context)
                .expect("the context of a change was encoded by this process"),
        ),
    };
    Entry {
        index: entry.index,
        term: entry.term,
        payload,
    }
}

pub(super) fn state_of(configuration: &Configuration) -> ConfState {
    let ids = |members: &[Member]| members.iter().copied().map(id_of).collect();
    ConfState {
        voters: ids(&configuration.voters),
        learners: ids(&configuration.learners),
        ..ConfState::default()
    }
}

/// One change each, so that none needs a joint configuration.
pub(super) fn change_of(step: Move) -> ConfChangeV2 {
    let (kind, member) = match step {
        Move::Voter(member) => (ConfChangeType::AddNode, member),
        Move::Learner(member) => (ConfChangeType::AddLearnerNode, member),
        Move::Gone(member) => (ConfChangeType::RemoveNode, member),
    };
    let mut single = ConfChangeSingle {
        node_id: id_of(member),
        ..ConfChangeSingle::default()
    };
    single.set_change_type(kind);
    let mut change = ConfChangeV2::default();
    change.set_changes(vec![single].into());
    change
}

pub(super) fn snapshot_into(snapshot: &Snapshot) -> eraftpb::Snapshot {
    let mut out = eraftpb::Snapshot {
        data: snapshot.data.clone(),
        ..eraftpb::Snapshot::default()
    };
    let metadata = out.mut_metadata();
    metadata.index = snapshot.at.index;
    metadata.term = snapshot.at.term;
    metadata.set_conf_state(state_of(&snapshot.configuration));
    out
}

/// `name`: the member of an id that a snapshot taken in names.
pub(super) fn snapshot_from(
    snapshot: &eraftpb::Snapshot,
    name: impl Fn(u64) -> Member,
) -> Snapshot {
    let metadata = snapshot.get_metadata();
    let state = metadata.get_conf_state();
    let members = |ids: &[u64]| {
        let mut members: Vec<Member> = ids.iter().copied().map(&name).collect();
        members.sort_unstable();
        members
    };
    Snapshot {
        at: Position {
            index: metadata.index,
            term: metadata.term,
        },
        configuration: Configuration {
            voters: members(&state.voters),
            learners: members(&state.learners),
        },
        data: snapshot.data.clone(),
    }
}

pub(super) fn message_into(message: &Message) -> eraftpb::Message {
    let mut out = eraftpb::Message {
        from: id_of(message.from),
        to: id_of(message.to),
        term: message.term,
        ..eraftpb::Message::default()
    };
    let kind = body_into(&message.body, &mut out);
    out.set_msg_type(kind);
    out
}

fn body_into(body: &Body, out: &mut eraftpb::Message) -> MessageType {
    match body {
        Body::Stand {
            is_pre_vote,
            is_transfer,
            last,
            commit,
        } => {
            (out.index, out.log_term) = (last.index, last.term);
            (out.commit, out.commit_term) = (commit.index, commit.term);
            if *is_transfer {
                out.context = TRANSFER.into();
            }
            if *is_pre_vote {
                MessageType::MsgRequestPreVote
            } else {
                MessageType::MsgRequestVote
            }
        }
        Body::Voted {
            is_pre_vote,
            is_granted,
            commit,
        } => {
            out.reject = !is_granted;
            (out.commit, out.commit_term) = (commit.index, commit.term);
            if *is_pre_vote {
                MessageType::MsgRequestPreVoteResponse
            } else {
                MessageType::MsgRequestVoteResponse
            }
        }
        Body::Append {
            after,
            entries,
            commit,
        } => {
            (out.index, out.log_term, out.commit) = (after.index, after.term, *commit);
            let entries: Vec<_> = entries.iter().map(entry_into).collect();
            out.set_entries(entries.into());
            MessageType::MsgAppend
        }
        Body::Appended { stored, commit } => {
            (out.index, out.commit) = (*stored, *commit);
            MessageType::MsgAppendResponse
        }
        Body::Rejected {
            after,
            hint,
            commit,
        } => {
            (out.index, out.commit, out.reject) = (*after, *commit, true);
            (out.reject_hint, out.log_term) = (hint.index, hint.term);
            MessageType::MsgAppendResponse
        }
        Body::Heartbeat { commit, context } => {
            (out.commit, out.context) = (*commit, context.clone());
            MessageType::MsgHeartbeat
        }
        Body::Alive { commit, context } => {
            (out.commit, out.context) = (*commit, context.clone());
            MessageType::MsgHeartbeatResponse
        }
        Body::Install(snapshot) => {
            out.set_snapshot(snapshot_into(snapshot));
            MessageType::MsgSnapshot
        }
        Body::StandNow => MessageType::MsgTimeoutNow,
        Body::Read { context } => {
            out.set_entries(vec![carrier(context)].into());
            MessageType::MsgReadIndex
        }
        Body::ReadAt { context, index } => {
            out.index = *index;
            out.set_entries(vec![carrier(context)].into());
            MessageType::MsgReadIndexResp
        }
    }
}

/// The library carries what names a read as an entry's data.
fn carrier(context: &bytes::Bytes) -> eraftpb::Entry {
    eraftpb::Entry {
        data: context.clone(),
        ..eraftpb::Entry::default()
    }
}

/// What the library wants sent, or `None` for what nobody sends: it was asked for by a message of ours that has no such answer.
/// `snapshot`: the one that is sent, with its members.
pub(super) fn body_from(message: &eraftpb::Message, snapshot: Option<&Snapshot>) -> Option<Body> {
    let commit = Position {
        index: message.commit,
        term: message.commit_term,
    };
    let at = Position {
        index: message.index,
        term: message.log_term,
    };
    let context = || {
        let first = message.entries.first();
        first.map(|entry| entry.data.clone()).unwrap_or_default()
    };
    let kind = message.get_msg_type();
    Some(match kind {
        MessageType::MsgRequestVote | MessageType::MsgRequestPreVote => Body::Stand {
            is_pre_vote: kind == MessageType::MsgRequestPreVote,
            is_transfer: message.context == TRANSFER,
            last: at,
            commit,
        },
        MessageType::MsgRequestVoteResponse | MessageType::MsgRequestPreVoteResponse => {
            Body::Voted {
                is_pre_vote: kind == MessageType::MsgRequestPreVoteResponse,
                is_granted: !message.reject,
                commit,
            }
        }
        MessageType::MsgAppend => Body::Append {
            after: at,
            entries: message.entries.iter().map(entry_from).collect(),
            commit: message.commit,
        },
        MessageType::MsgAppendResponse if message.reject => Body::Rejected {
            after: message.index,
            hint: Position {
                index: message.reject_hint,
                term: message.log_term,
            },
            commit: message.commit,
        },
        MessageType::MsgAppendResponse => Body::Appended {
            stored: message.index,
            commit: message.commit,
        },
        MessageType::MsgHeartbeat => Body::Heartbeat {
            commit: message.commit,
            context: message.context.clone(),
        },
        MessageType::MsgHeartbeatResponse => Body::Alive {
            commit: message.commit,
            context: message.context.clone(),
        },
        MessageType::MsgSnapshot => Body::Install(snapshot?.clone()),
        MessageType::MsgTimeoutNow => Body::StandNow,
        MessageType::MsgReadIndex => Body::Read { context: context() },
        MessageType::MsgReadIndexResp => Body::ReadAt {
            context: context(),
            index: message.index,
        },
        _ => return None,
    })
}
