//! The fuzz targets: each takes bytes a stranger could send or a disk could give back, and asserts what must hold
//! whatever they are. A panic is a finding.
//!
//! Guarantees: what the fuzzer runs and what `tests/replay.rs` runs over the kept corpora is the same code.

mod batches;
mod bodies;
mod catalogs;
mod directories;
mod journals;
mod requests;

pub use batches::record_batch;
pub use bodies::http_produce;
pub use journals::journal;
pub use requests::kafka_request;

/// A target by name.
pub type Target = (&'static str, fn(&[u8]));

/// Every target; the names are those of `fuzz/Cargo.toml` and of the folders of `fuzz/corpus`.
pub const TARGETS: [Target; 4] = [
    ("kafka_request", kafka_request),
    ("record_batch", record_batch),
    ("journal", journal),
    ("http_produce", http_produce),
];
