//! What voters store and say, drawn: entries, configurations, messages.
//!
//! Guarantees: a message from a peer is bounded before it is decoded: its bytes, its number of entries, its configurations; what
//! this makes of it is at most some tens of MiB beyond its bytes, whatever they are. A version above the one here is refused.

use bytes::Bytes;
use floe_model::{Incarnation, NodeId};
use floe_replication::Member;
use prost::Message as _;
use prost::encoding::{DecodeContext, decode_key, skip_field};

use super::{Undecodable, VERSION, check, list, members, messages};
use crate::consensus::{Body, Configuration, Entry, Message, Payload, Position, Snapshot};

/// Bytes of a message between voters: a snapshot of a large catalog fits.
pub const MESSAGE_BYTES_MAX: usize = 64 << 20;
/// Entries in a message.
pub const ENTRIES_PER_MESSAGE_MAX: usize = 1 << 16;
/// Bytes of a configuration.
const CONFIGURATION_BYTES_MAX: usize = 4 << 10;
/// Bytes that name a read.
const CONTEXT_BYTES_MAX: usize = 64;
/// The field of a message that holds its entries.
const ENTRIES_TAG: u32 = 5;

/// An entry as stored, seen only as far as it is no command. 30 and 31 are no fields of `Record`.
#[derive(Clone, PartialEq, prost::Message)]
struct Recorded {
    #[prost(uint32, tag = "1")]
    version: u32,
    #[prost(message, optional, tag = "30")]
    configuration: Option<messages::Configuration>,
    #[prost(uint64, optional, tag = "31")]
    committed: Option<u64>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Sent {
    #[prost(uint32, tag = "1")]
    version: u32,
    #[prost(message, optional, tag = "2")]
    from: Option<messages::Member>,
    #[prost(message, optional, tag = "3")]
    to: Option<messages::Member>,
    #[prost(uint64, tag = "4")]
    term: u64,
    #[prost(message, repeated, tag = "5")]
    entries: Vec<SentEntry>,
    #[prost(
        oneof = "sent::Body",
        tags = "10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20"
    )]
    body: Option<sent::Body>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct SentEntry {
    #[prost(uint64, tag = "1")]
    index: u64,
    #[prost(uint64, tag = "2")]
    term: u64,
    /// As stored: see [`encode_payload`].
    #[prost(bytes = "bytes", tag = "3")]
    payload: Bytes,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
struct At {
    #[prost(uint64, tag = "1")]
    index: u64,
    #[prost(uint64, tag = "2")]
    term: u64,
}

mod sent {
    use bytes::Bytes;

    use super::At;

    #[derive(Clone, PartialEq, prost::Oneof)]
    pub(super) enum Body {
        #[prost(message, tag = "10")]
        Stand(Stand),
        #[prost(message, tag = "11")]
        Voted(Voted),
        #[prost(message, tag = "12")]
        Append(Append),
        #[prost(message, tag = "13")]
        Appended(Appended),
        #[prost(message, tag = "14")]
        Rejected(Rejected),
        #[prost(message, tag = "15")]
        Heartbeat(Heartbeat),
        #[prost(message, tag = "16")]
        Alive(Heartbeat),
        #[prost(message, tag = "17")]
        Install(Install),
        #[prost(message, tag = "18")]
        StandNow(StandNow),
        #[prost(message, tag = "19")]
        Read(Read),
        #[prost(message, tag = "20")]
        ReadAt(Read),
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Stand {
        #[prost(bool, tag = "1")]
        pub(super) is_pre_vote: bool,
        #[prost(bool, tag = "2")]
        pub(super) is_transfer: bool,
        #[prost(message, optional, tag = "3")]
        pub(super) last: Option<At>,
        #[prost(message, optional, tag = "4")]
        pub(super) commit: Option<At>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Voted {
        #[prost(bool, tag = "1")]
        pub(super) is_pre_vote: bool,
        #[prost(bool, tag = "2")]
        pub(super) is_granted: bool,
        #[prost(message, optional, tag = "3")]
        pub(super) commit: Option<At>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Append {
        #[prost(message, optional, tag = "1")]
        pub(super) after: Option<At>,
        #[prost(uint64, tag = "2")]
        pub(super) commit: u64,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Appended {
        #[prost(uint64, tag = "1")]
        pub(super) stored: u64,
        #[prost(uint64, tag = "2")]
        pub(super) commit: u64,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Rejected {
        #[prost(uint64, tag = "1")]
        pub(super) after: u64,
        #[prost(message, optional, tag = "2")]
        pub(super) hint: Option<At>,
        #[prost(uint64, tag = "3")]
        pub(super) commit: u64,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Heartbeat {
        #[prost(uint64, tag = "1")]
        pub(super) commit: u64,
        #[prost(bytes = "bytes", tag = "2")]
        pub(super) context: Bytes,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Install {
        #[prost(message, optional, tag = "1")]
        pub(super) at: Option<At>,
        #[prost(bytes = "bytes", tag = "2")]
        pub(super) configuration: Bytes,
        #[prost(bytes = "bytes", tag = "3")]
        pub(super) data: Bytes,
    }

    #[derive(Clone, Copy, PartialEq, prost::Message)]
    pub(super) struct StandNow {}

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Read {
        #[prost(bytes = "bytes", tag = "1")]
        pub(super) context: Bytes,
        #[prost(uint64, tag = "2")]
        pub(super) index: u64,
    }
}

/// What a log's stream holds of an entry, beside index and term.
pub fn encode_payload(payload: &Payload) -> Bytes {
    match payload {
        Payload::Blank => Bytes::new(),
        Payload::Command(command) => command.clone(),
        Payload::Configuration(configuration) => {
            let recorded = Recorded {
                version: VERSION,
                configuration: Some(drawn(configuration)),
                committed: None,
            };
            recorded.encode_to_vec().into()
        }
        Payload::Known(committed) => {
            let recorded = Recorded {
                version: VERSION,
                configuration: None,
                committed: Some(*committed),
            };
            recorded.encode_to_vec().into()
        }
    }
}

/// Reads what [`encode_payload`] drew; a command is not looked into.
pub fn decode_payload(bytes: &Bytes) -> Result<Payload, Undecodable> {
    if bytes.is_empty() {
        return Ok(Payload::Blank);
    }
    let recorded = Recorded::decode(&bytes[..])?;
    check(recorded.version)?;
    Ok(match (recorded.configuration, recorded.committed) {
        (Some(configuration), _) => Payload::Configuration(read(&configuration)?),
        (None, Some(committed)) => Payload::Known(committed),
        (None, None) => Payload::Command(bytes.clone()),
    })
}

/// Draws a configuration by itself.
pub fn encode_configuration(configuration: &Configuration) -> Bytes {
    drawn(configuration).encode_to_vec().into()
}

/// Reads a configuration.
pub fn decode_configuration(bytes: &[u8]) -> Result<Configuration, Undecodable> {
    if bytes.len() > CONFIGURATION_BYTES_MAX {
        return Err(Undecodable::Field("configuration"));
    }
    read(&messages::Configuration::decode(bytes)?)
}

/// As a snapshot of the catalog has it.
pub(super) fn recorded(configuration: &Configuration) -> Option<messages::Configuration> {
    (!configuration.is_empty()).then(|| drawn(configuration))
}

/// From a snapshot of the catalog.
pub(super) fn unrecorded(
    recorded: Option<messages::Configuration>,
) -> Result<Configuration, Undecodable> {
    recorded.map_or_else(|| Ok(Configuration::default()), |recorded| read(&recorded))
}

fn drawn(configuration: &Configuration) -> messages::Configuration {
    messages::Configuration {
        voters: list(&configuration.voters),
        learners: list(&configuration.learners),
    }
}

fn read(drawn: &messages::Configuration) -> Result<Configuration, Undecodable> {
    let configuration = Configuration {
        voters: members(&drawn.voters),
        learners: members(&drawn.learners),
    };
    configuration
        .check()
        .map_err(|_| Undecodable::Field("configuration"))?;
    Ok(configuration)
}

/// Draws a message.
pub fn encode_message(message: &Message) -> Bytes {
    let (body, entries) = body_of(&message.body);
    let sent = Sent {
        version: VERSION,
        from: Some(message.from.into()),
        to: Some(message.to.into()),
        term: message.term,
        entries,
        body: Some(body),
    };
    sent.encode_to_vec().into()
}

/// Reads a message from a peer, whose bytes may be anything.
pub fn decode_message(bytes: &[u8]) -> Result<Message, Undecodable> {
    if bytes.len() > MESSAGE_BYTES_MAX {
        return Err(Undecodable::Field("length"));
    }
    if count(bytes, ENTRIES_TAG)? > ENTRIES_PER_MESSAGE_MAX {
        return Err(Undecodable::Field("entries"));
    }
    let sent = Sent::decode(bytes)?;
    check(sent.version)?;
    let entries = sent.entries.into_iter().map(|entry| {
        Ok(Entry {
            index: entry.index,
            term: entry.term,
            payload: decode_payload(&entry.payload)?,
        })
    });
    let entries = entries.collect::<Result<_, Undecodable>>()?;
    let body = sent.body.ok_or(Undecodable::Command)?;
    Ok(Message {
        from: member(sent.from)?,
        to: member(sent.to)?,
        term: sent.term,
        body: body_from(body, entries)?,
    })
}

/// How often a field stands in a message, before anything is made of it.
fn count(mut bytes: &[u8], wanted: u32) -> Result<usize, Undecodable> {
    let mut found = 0;
    while !bytes.is_empty() {
        let (tag, kind) = decode_key(&mut bytes)?;
        skip_field(kind, tag, &mut bytes, DecodeContext::default())?;
        found += usize::from(tag == wanted);
    }
    Ok(found)
}

fn body_of(body: &Body) -> (sent::Body, Vec<SentEntry>) {
    let mut sent = Vec::new();
    let body = match body {
        Body::Stand {
            is_pre_vote,
            is_transfer,
            last,
            commit,
        } => sent::Body::Stand(sent::Stand {
            is_pre_vote: *is_pre_vote,
            is_transfer: *is_transfer,
            last: Some((*last).into()),
            commit: Some((*commit).into()),
        }),
        Body::Voted {
            is_pre_vote,
            is_granted,
            commit,
        } => sent::Body::Voted(sent::Voted {
            is_pre_vote: *is_pre_vote,
            is_granted: *is_granted,
            commit: Some((*commit).into()),
        }),
        Body::Append {
            after,
            entries,
            commit,
        } => {
            sent.extend(entries.iter().map(|entry| SentEntry {
                index: entry.index,
                term: entry.term,
                payload: encode_payload(&entry.payload),
            }));
            sent::Body::Append(sent::Append {
                after: Some((*after).into()),
                commit: *commit,
            })
        }
        Body::Appended { stored, commit } => sent::Body::Appended(sent::Appended {
            stored: *stored,
            commit: *commit,
        }),
        Body::Rejected {
            after,
            hint,
            commit,
        } => sent::Body::Rejected(sent::Rejected {
            after: *after,
            hint: Some((*hint).into()),
            commit: *commit,
        }),
        Body::Heartbeat { commit, context } => sent::Body::Heartbeat(beat(*commit, context)),
        Body::Alive { commit, context } => sent::Body::Alive(beat(*commit, context)),
        Body::Install(snapshot) => sent::Body::Install(sent::Install {
            at: Some(snapshot.at.into()),
            configuration: encode_configuration(&snapshot.configuration),
            data: snapshot.data.clone(),
        }),
        Body::StandNow => sent::Body::StandNow(sent::StandNow {}),
        Body::Read { context } => sent::Body::Read(sent::Read {
            context: context.clone(),
            index: 0,
        }),
        Body::ReadAt { context, index } => sent::Body::ReadAt(sent::Read {
            context: context.clone(),
            index: *index,
        }),
    };
    (body, sent)
}

fn body_from(body: sent::Body, entries: Vec<Entry>) -> Result<Body, Undecodable> {
    if !entries.is_empty() && !matches!(body, sent::Body::Append(_)) {
        return Err(Undecodable::Field("entries"));
    }
    Ok(match body {
        sent::Body::Stand(stand) => Body::Stand {
            is_pre_vote: stand.is_pre_vote,
            is_transfer: stand.is_transfer,
            last: place(stand.last),
            commit: place(stand.commit),
        },
        sent::Body::Voted(voted) => Body::Voted {
            is_pre_vote: voted.is_pre_vote,
            is_granted: voted.is_granted,
            commit: place(voted.commit),
        },
        sent::Body::Append(append) => Body::Append {
            after: place(append.after),
            entries,
            commit: append.commit,
        },
        sent::Body::Appended(appended) => Body::Appended {
            stored: appended.stored,
            commit: appended.commit,
        },
        sent::Body::Rejected(rejected) => Body::Rejected {
            after: rejected.after,
            hint: place(rejected.hint),
            commit: rejected.commit,
        },
        sent::Body::Heartbeat(beat) => Body::Heartbeat {
            commit: beat.commit,
            context: bounded(beat.context)?,
        },
        sent::Body::Alive(beat) => Body::Alive {
            commit: beat.commit,
            context: bounded(beat.context)?,
        },
        sent::Body::Install(install) => Body::Install(Snapshot {
            at: place(install.at),
            configuration: decode_configuration(&install.configuration)?,
            data: install.data,
        }),
        sent::Body::StandNow(_) => Body::StandNow,
        sent::Body::Read(read) => Body::Read {
            context: bounded(read.context)?,
        },
        sent::Body::ReadAt(read) => Body::ReadAt {
            context: bounded(read.context)?,
            index: read.index,
        },
    })
}

fn beat(commit: u64, context: &Bytes) -> sent::Heartbeat {
    sent::Heartbeat {
        commit,
        context: context.clone(),
    }
}

fn bounded(context: Bytes) -> Result<Bytes, Undecodable> {
    if context.len() > CONTEXT_BYTES_MAX {
        return Err(Undecodable::Field("context"));
    }
    Ok(context)
}

fn member(drawn: Option<messages::Member>) -> Result<Member, Undecodable> {
    let drawn = drawn.ok_or(Undecodable::Field("member"))?;
    Ok(Member {
        node: NodeId(drawn.node),
        incarnation: Incarnation(drawn.incarnation),
    })
}

impl From<Position> for At {
    fn from(position: Position) -> Self {
        Self {
            index: position.index,
            term: position.term,
        }
    }
}

fn place(at: Option<At>) -> Position {
    at.map_or_else(Position::default, |at| Position {
        index: at.index,
        term: at.term,
    })
}
