//! What a node asks of the one that leads the catalog, and is answered.
//!
//! ```text
//! Asked    {version 2, command as in an entry}
//! Answered {version 2, placed: index, term | refused: kind, leader}
//! ```
//! Guarantees: bounded before it is decoded; what a newer release asks for is refused by name, never guessed. Says nothing of what
//! came of a command: whoever asked applies the entry at that place itself, and so reads what it wrote.

use bytes::Bytes;
use floe_replication::Member;
use prost::Message as _;

use super::read::member;
use super::{Undecodable, VERSION, check, messages};
use crate::consensus::{COMMAND_BYTES_MAX, Position};

/// Bytes around a command, at most.
const AROUND_MAX: usize = 64;

/// What became of what was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answered {
    /// It stands at this place of the leader's log: agreed if an entry of that term is applied there, lost if another one is.
    Placed(Position),
    /// It was not proposed: another node leads, or nobody.
    NotLeader {
        /// Who leads, if that is known.
        leader: Option<Member>,
    },
    /// It was not proposed: too much waits, or leadership is being handed over.
    Busy,
    /// It was not proposed: the leader cannot read it, or it is too large.
    Unfit,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Asked {
    #[prost(uint32, tag = "1")]
    version: u32,
    #[prost(bytes = "bytes", tag = "2")]
    command: Bytes,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Answer {
    #[prost(uint32, tag = "1")]
    version: u32,
    #[prost(message, optional, tag = "2")]
    placed: Option<Placed>,
    #[prost(message, optional, tag = "3")]
    not_leader: Option<NotLeader>,
    #[prost(message, optional, tag = "4")]
    busy: Option<Nothing>,
    #[prost(message, optional, tag = "5")]
    unfit: Option<Nothing>,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
struct Placed {
    #[prost(uint64, tag = "1")]
    index: u64,
    #[prost(uint64, tag = "2")]
    term: u64,
}

#[derive(Clone, PartialEq, prost::Message)]
struct NotLeader {
    #[prost(message, optional, tag = "1")]
    leader: Option<messages::Member>,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
struct Nothing {}

/// Draws a command that is to be proposed.
pub fn encode_asked(command: &Bytes) -> Bytes {
    let asked = Asked {
        version: VERSION,
        command: command.clone(),
    };
    asked.encode_to_vec().into()
}

/// Reads one; the command is one that this release can apply.
pub fn decode_asked(bytes: &[u8]) -> Result<Bytes, Undecodable> {
    if bytes.len() > COMMAND_BYTES_MAX + AROUND_MAX {
        return Err(Undecodable::Field("length"));
    }
    let asked = Asked::decode(bytes)?;
    check(asked.version)?;
    super::decode(&asked.command)?;
    Ok(asked.command)
}

/// Draws an answer.
pub fn encode_answered(answered: Answered) -> Bytes {
    let mut answer = Answer {
        version: VERSION,
        ..Answer::default()
    };
    match answered {
        Answered::Placed(Position { index, term }) => {
            answer.placed = Some(Placed { index, term });
        }
        Answered::NotLeader { leader } => {
            let leader = leader.map(Into::into);
            answer.not_leader = Some(NotLeader { leader });
        }
        Answered::Busy => answer.busy = Some(Nothing {}),
        Answered::Unfit => answer.unfit = Some(Nothing {}),
    }
    answer.encode_to_vec().into()
}

/// Reads an answer.
pub fn decode_answered(bytes: &[u8]) -> Result<Answered, Undecodable> {
    if bytes.len() > AROUND_MAX {
        return Err(Undecodable::Field("length"));
    }
    let answer = Answer::decode(bytes)?;
    check(answer.version)?;
    match answer {
        Answer {
            placed: Some(Placed { index, term }),
            ..
        } if index > 0 && term > 0 => Ok(Answered::Placed(Position { index, term })),
        Answer {
            not_leader: Some(NotLeader { leader }),
            ..
        } => Ok(Answered::NotLeader {
            leader: leader.map(member),
        }),
        Answer { busy: Some(_), .. } => Ok(Answered::Busy),
        Answer { unfit: Some(_), .. } => Ok(Answered::Unfit),
        _ => Err(Undecodable::Field("answer")),
    }
}

#[cfg(test)]
mod tests {
    use floe_model::{Incarnation, NodeId};

    use super::*;
    use crate::Command;

    #[test]
    fn what_is_asked_and_answered_is_read_back_equal() {
        let command = super::super::encode(&Command::ReserveProducerIds(NodeId(3)));
        assert_eq!(decode_asked(&encode_asked(&command)), Ok(command));
        let leader = Some(Member {
            node: NodeId(2),
            incarnation: Incarnation(u64::MAX),
        });
        let term = 1 << 40;
        for answered in [
            Answered::Placed(Position { index: 7, term }),
            Answered::NotLeader { leader },
            Answered::NotLeader { leader: None },
            Answered::Busy,
            Answered::Unfit,
        ] {
            assert_eq!(decode_answered(&encode_answered(answered)), Ok(answered));
        }
    }

    #[test]
    fn bytes_of_an_answer_are_what_they_were() {
        let placed = Answered::Placed(Position { index: 5, term: 2 });
        assert_eq!(
            encode_answered(placed)[..],
            [0x08, 2, 0x12, 4, 0x08, 5, 0x10, 2]
        );
    }

    #[test]
    fn what_cannot_be_applied_is_not_taken() {
        let nonsense = encode_asked(&Bytes::from_static(b"\x08\x02"));
        assert_eq!(decode_asked(&nonsense), Err(Undecodable::Command));
        let newer = [0x08, 3, 0x22, 0];
        assert_eq!(
            decode_answered(&newer),
            Err(Undecodable::Version { found: 3 })
        );
        let nowhere = [0x08, 2, 0x12, 0];
        assert!(decode_answered(&nowhere).is_err());
        assert!(decode_asked(&vec![0; COMMAND_BYTES_MAX + AROUND_MAX + 1]).is_err());
    }
}
