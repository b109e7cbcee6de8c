//! The HTTP door's limits that are no settings; see [`crate::fixed`].

use super::body::{DOCUMENT_BYTES_MAX, MEMORY_WAIT};
use super::consumer::SESSION_MAX;
use super::query::PARAMETERS_MAX;
use super::read::{RECORDS_DEFAULT, RECORDS_MAX};
use super::{ANSWER_BYTES_MAX, ANSWERS_SHARE, BODIES_SHARE, WAIT_MAX};
use crate::fixed::{Amount, Fixed, row};

pub(crate) fn fixed() -> Vec<Fixed> {
    vec![
        row("`wait` of a long poll", Amount::Time(WAIT_MAX), "400"),
        row(
            "records of an answer in bytes, unless one alone is larger",
            Amount::Bytes(ANSWER_BYTES_MAX),
            "the rest comes with the next read",
        ),
        row(
            "`max` of a plain read",
            Amount::Count(RECORDS_MAX as usize),
            "400",
        ),
        row(
            "records of a plain read without `max`",
            Amount::Count(RECORDS_DEFAULT as usize),
            "the rest comes with the next read",
        ),
        row(
            "body of a registration or of a new topic",
            Amount::Bytes(DOCUMENT_BYTES_MAX),
            "400",
        ),
        row(
            "parameters of a query",
            Amount::Count(PARAMETERS_MAX),
            "400",
        ),
        row(
            "`sessionTimeout` of a consumer",
            Amount::Time(SESSION_MAX),
            "400",
        ),
        row(
            "bodies of all requests",
            Amount::Share(BODIES_SHARE),
            "the next one waits",
        ),
        row(
            "wait of a body for memory",
            Amount::Time(MEMORY_WAIT),
            "503",
        ),
        row(
            "answers of all requests",
            Amount::Share(ANSWERS_SHARE),
            "answers get smaller, then 503",
        ),
    ]
}
