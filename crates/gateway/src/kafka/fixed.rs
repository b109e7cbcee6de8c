//! The Kafka door's limits that are no settings; see [`crate::fixed`].

use super::answer::ANSWER_BYTES_MAX;
use super::connection::{SCARCE_BYTES_PER_TICK, SCARCE_TICKS, TICK};
use super::door::{ANSWERS_SHARE, LARGE_BYTES, LARGE_MAX};
use super::fetch::WAIT_MAX;
use super::request::CONTROL_FRAME_BYTES_MAX;
use crate::fixed::{Amount, Fixed, row};

pub(crate) fn fixed() -> Vec<Fixed> {
    vec![
        row(
            "frame of another API than Produce",
            Amount::Bytes(CONTROL_FRAME_BYTES_MAX),
            "the connection is closed",
        ),
        row(
            "answer without records",
            Amount::Bytes(ANSWER_BYTES_MAX),
            "the connection is closed; ask for fewer things at once",
        ),
        row(
            "wait of a Fetch",
            Amount::Time(WAIT_MAX),
            "it is answered with what is there",
        ),
        row(
            "frame that is decoded beside any number of others",
            Amount::Bytes(LARGE_BYTES),
            "it waits for one of the places of the next row",
        ),
        row(
            "larger frames decoded at once",
            Amount::Count(LARGE_MAX),
            "the next one waits",
        ),
        row(
            "answers of all connections waiting to be taken",
            Amount::Share(ANSWERS_SHARE),
            "a caller that takes nothing for the time of the next row is closed",
        ),
        row(
            "patience while memory is short",
            Amount::Time(TICK),
            "a caller that takes nothing, or sends less of a frame than the next rows say, is closed",
        ),
        row(
            "bytes of a frame in that time",
            Amount::Bytes(SCARCE_BYTES_PER_TICK),
            "see the row before",
        ),
        row(
            "parts of a frame, one of which has to come in that time",
            Amount::Count(SCARCE_TICKS),
            "see the rows before",
        ),
    ]
}
