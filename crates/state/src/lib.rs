//! A partition's log turned into a table: the fold, its snapshots, its compaction.
//!
//! ```text
//!   log   … | k1=a | k2=b | k1=c | k2=∅ |            table   k1=c
//!             ▲                         ▲
//!             older good snapshot       applied offset
//! ```
//!
//! Guarantees: a [`Table`] equals the fold of its log up to its applied offset, after any crash: it is the newest good
//! snapshot plus the records after it, and what the older good snapshot covers is all that may be deleted of the log.
//!
//! Compaction so far is exactly that: the log's prefix below the older good snapshot goes, whole segments at a time;
//! the rows that live are in both snapshots. So a Kafka client that reads such a topic from its start finds the recent
//! changes, not every row. Rewriting segments record by record comes with compacted topics of users.

mod snapshot;
mod snapshots;
mod table;
#[cfg(test)]
mod tests;

pub use snapshot::Unusable;
pub use snapshots::{Error, Snapshots};
pub use table::{Damaged, Table};
