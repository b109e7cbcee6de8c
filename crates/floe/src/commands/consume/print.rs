//! Records on the standard output.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::unreadable;
use crate::client::value;
use crate::exit::Outcome;
use crate::output::Output;

/// How a record is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Its value and a line end.
    Value,
    /// Its key, a tab, its value and a line end.
    KeyAndValue,
    /// One JSON object a line, as the node gives it.
    Json,
}

/// A record as a node gives it, and where it lies.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Record<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) topic: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) partition: Option<u64>,
    #[serde(borrow)]
    pub(super) offset: &'a RawValue,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(super) timestamp: Option<&'a RawValue>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(super) key: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) value: &'a RawValue,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(super) headers: Option<&'a RawValue>,
}

/// Writes records until there are enough.
pub(super) struct Printer {
    out: Output,
    form: Form,
    left: Option<u64>,
}

impl Printer {
    pub(super) fn new(form: Form, max: Option<u64>) -> Self {
        Self {
            out: Output::stdout(),
            form,
            left: max,
        }
    }

    /// Whether enough were written.
    pub(super) fn is_full(&self) -> bool {
        self.left == Some(0)
    }

    /// Writes one record.
    pub(super) fn print(&mut self, record: &Record<'_>) -> Outcome {
        if let Some(left) = &mut self.left {
            *left = left.saturating_sub(1);
        }
        if self.form == Form::Json {
            let line = serde_json::to_vec(record).map_err(|error| unreadable(&error))?;
            return self.out.line(line);
        }
        let of = |raw: &RawValue| {
            let bytes = value::bytes(raw).map_err(|error| unreadable(&error));
            bytes.map(Option::unwrap_or_default)
        };
        if self.form == Form::KeyAndValue {
            if let Some(key) = record.key {
                self.out.bytes(&of(key)?)?;
            }
            self.out.bytes(b"\t")?;
        }
        self.out.line(of(record.value)?)
    }

    /// Hands over what was written.
    pub(super) fn flush(&mut self) -> Outcome {
        self.out.flush()
    }

    pub(super) fn finish(mut self) -> Outcome {
        self.out.flush()
    }
}
