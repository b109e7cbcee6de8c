//! What a log is opened with.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use floe_model::NodeId;
use floe_world::{Clock, Disk, Pool, Random};

/// The world and the settings of one log.
pub struct Setup {
    /// Where the files are.
    pub disk: Arc<dyn Disk>,
    /// The directory of this log.
    pub dir: PathBuf,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Chance.
    pub random: Arc<dyn Random>,
    /// Memory of the tail: runs being filled, written and served to readers.
    pub tail: Pool,
    /// Memory of reads from disk.
    pub reads: Pool,
    /// Settings.
    pub config: Config,
}

/// Settings of one log.
#[derive(Clone, Debug)]
pub struct Config {
    /// Given to a fresh directory; another one's directory is refused. `None`: drawn at format, any accepted.
    pub cluster: Option<[u8; 16]>,
    /// A fresh directory belongs to no cluster (zeros) until [`Log::adopt`](crate::Log::adopt) says which; one of any is opened.
    pub joins: bool,
    /// Given to a fresh directory; another one's directory is refused.
    pub node: NodeId,
    /// Size of the journal ring; fixed when the directory is formatted.
    pub ring_bytes: u64,
    /// `log.segment.bytes`: a segment file is rolled at this size.
    pub segment_bytes: u64,
    /// `log.roll.ms`: and at this age.
    pub segment_age: Duration,
    /// A partition's share of a group from which it goes to its segment at once.
    pub large_append_bytes: usize,
    /// Largest group that the journal composes, 8 MiB at most; the ring is at least eight times as large.
    pub group_bytes_max: usize,
    /// Largest batch that is accepted.
    pub batch_bytes_max: usize,
    /// `message.decompressed.max.bytes`: of a batch that decompresses to more, times are known by its header only.
    pub decompressed_bytes_max: usize,
    /// Largest run: unit of segment writes and of tail memory.
    pub run_bytes_max: usize,
    /// A checkpoint is written so long after the last append.
    pub checkpoint_idle: Duration,
    /// Threads that write segments.
    pub segment_threads: usize,
    /// Threads that read from disk.
    pub reader_threads: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            cluster: None,
            joins: false,
            node: NodeId(0),
            ring_bytes: 1 << 30,
            segment_bytes: 256 << 20,
            segment_age: Duration::from_hours(7 * 24),
            large_append_bytes: 64 << 10,
            group_bytes_max: 4 << 20,
            batch_bytes_max: floe_model::limits::BATCH_BYTES_MAX,
            decompressed_bytes_max: floe_wire::codec::DECOMPRESSED_BYTES_MAX,
            run_bytes_max: 2 << 20,
            checkpoint_idle: Duration::from_mins(1),
            segment_threads: 2,
            reader_threads: 2,
        }
    }
}
