//! What the connections between nodes obey, and where their secret comes from.

use std::time::Duration;

use floe_world::memory;

use super::Lane;

/// `peer.port`.
pub const PORT_DEFAULT: u16 = 9255;

/// Times and sizes; the defaults are for nodes in one data centre.
#[derive(Clone, Debug)]
pub struct Settings {
    /// A connection that is not proven after this long is closed; also the longest wait for a dial.
    pub handshake_within: Duration,
    /// Connections that may be within their handshake at once; a further one is closed.
    pub handshakes_max: usize,
    /// First pause before dialling again; doubles, with chance in it.
    pub redial_min: Duration,
    /// Longest pause before dialling again.
    pub redial_max: Duration,
    /// After this long without a frame on the control connection both are closed; heartbeats are to be far more frequent.
    pub silence_max: Duration,
    /// A frame that began must end after this long, and a tenth of a second for each 10 KB of it.
    pub frame_within: Duration,
    /// After this long without the other side taking a byte the connections are closed.
    pub stall_max: Duration,
    /// While an earlier process of a node was heard this recently, another one with its id is refused.
    pub alive_within: Duration,
    /// Most bytes on their way to one node on the data connection; a message above that is refused. One always fits.
    pub data_queue_bytes: usize,
    /// The same on the control connection.
    pub control_queue_bytes: usize,
    /// Largest body of a frame, sent or taken; the largest batch and the largest request must fit.
    pub body_bytes_max: usize,
    /// Memory for bodies from one node on the data connection that are not dropped yet. Nothing more is read above that.
    pub data_receive_bytes: usize,
    /// The same on the control connection.
    pub control_receive_bytes: usize,
    /// The same complaint is logged once in this time.
    pub complain_every: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            handshake_within: Duration::from_secs(2),
            handshakes_max: 64,
            redial_min: Duration::from_millis(50),
            redial_max: Duration::from_millis(500),
            silence_max: Duration::from_secs(5),
            frame_within: Duration::from_secs(5),
            stall_max: Duration::from_secs(5),
            alive_within: Duration::from_secs(2),
            data_queue_bytes: 16 << 20,
            control_queue_bytes: 4 << 20,
            body_bytes_max: 100 << 20,
            data_receive_bytes: 16 << 20,
            control_receive_bytes: 4 << 20,
            complain_every: Duration::from_mins(1),
        }
    }
}

impl Settings {
    /// The bound of the queue of a connection.
    pub(super) fn queue_bytes_of(&self, lane: Lane) -> usize {
        match lane {
            Lane::Control => self.control_queue_bytes,
            Lane::Data => self.data_queue_bytes,
        }
    }

    /// The largest body that goes on a connection, if the other nodes are set as this one.
    pub(super) fn body_bytes_max_of(&self, lane: Lane) -> usize {
        let share = match lane {
            Lane::Control => self.control_receive_bytes,
            Lane::Data => self.data_receive_bytes,
        };
        body_bytes_max(self.body_bytes_max, share)
    }
}

/// The largest body that is within the limit and that a share of so many bytes can hand out.
pub(super) fn body_bytes_max(limit: usize, share: usize) -> usize {
    let by_memory = if share > memory::LARGEST_CLASS {
        share - share % memory::ALIGNMENT
    } else {
        1 << share.max(memory::ALIGNMENT).ilog2()
    };
    limit.min(by_memory)
}
