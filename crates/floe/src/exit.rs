//! Exit codes, and failures as a command's user sees them.
//!
//! Guarantees: each reason that a script would treat differently has a code of its own; codes never change meaning.

use std::fmt;

/// Why a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// All done; also a node that was told to stop, and a reader whose output was closed by the next program.
    Done = 0,
    /// The command failed; the message says why.
    Failed = 1,
    /// The command line cannot be understood.
    Usage = 2,
    /// The configuration has mistakes.
    Configuration = 3,
    /// No node answers at the address.
    Unreachable = 4,
    /// The node refused: not there, there already, not allowed.
    Refused = 5,
    /// Another process uses the data directory.
    DirectoryInUse = 10,
    /// An address or port is taken or may not be used.
    AddressUnavailable = 11,
    /// The data directory cannot be made, read or written.
    DirectoryUnusable = 12,
    /// The data directory belongs to another cluster or node.
    ForeignDirectory = 13,
    /// The data directory was written by a newer release.
    NewerFormat = 14,
    /// Data is damaged.
    Damaged = 15,
    /// A write or flush failed; nothing was acknowledged after it.
    DiskFailed = 16,
    /// A signal ended it before its work was done.
    Interrupted = 130,
}

/// All codes with what they say, for the reference page.
pub const CODES: [(Code, &str); 14] = [
    (
        Code::Done,
        "done; also a node told to stop by SIGINT or SIGTERM, and a reader whose output was closed (`floe consume t | head`)",
    ),
    (Code::Failed, "the command failed; the message says why"),
    (Code::Usage, "the command line cannot be understood"),
    (
        Code::Configuration,
        "the configuration has mistakes; all of them are listed",
    ),
    (
        Code::Unreachable,
        "no node answers at the address (`--server`)",
    ),
    (
        Code::Refused,
        "the node refused: not there, there already, not allowed",
    ),
    (
        Code::DirectoryInUse,
        "another process uses the data directory",
    ),
    (
        Code::AddressUnavailable,
        "an address or port is taken or may not be used",
    ),
    (
        Code::DirectoryUnusable,
        "the data directory cannot be made, read or written",
    ),
    (
        Code::ForeignDirectory,
        "the data directory belongs to another cluster or node",
    ),
    (
        Code::NewerFormat,
        "the data directory was written by a newer release",
    ),
    (Code::Damaged, "data is damaged; the message says where"),
    (
        Code::DiskFailed,
        "a write or flush failed; nothing was acknowledged after it, and a restart comes back from what the disk holds",
    ),
    (
        Code::Interrupted,
        "a signal ended it before its work was done (`floe produce`); the message says what is acknowledged",
    ),
];

/// A command that did not do what it was asked.
#[derive(Debug)]
pub struct Failure {
    /// For scripts.
    pub code: Code,
    /// For people: what happened, to which thing, what to do.
    pub message: String,
}

/// What a command returns.
pub type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    /// With this code and message.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }

    /// Something without a code of its own.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(Code::Failed, message)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_reasons_share_a_code() {
        for (at, (code, _)) in CODES.iter().enumerate() {
            assert!(CODES[..at].iter().all(|(other, _)| other != code));
        }
    }
}
