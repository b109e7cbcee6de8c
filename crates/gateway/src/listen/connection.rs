//! One accepted connection, as requests on it and consumers bound to it know it.

use std::net::SocketAddr;
use std::sync::{Arc, Weak};

use tokio::net::TcpStream;

use super::activity::Activity;

/// Number of a connection in the life of a process; never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u64);

/// See the file's head.
#[derive(Debug)]
pub struct Connection {
    /// Its number.
    pub id: ConnectionId,
    /// Who called.
    pub peer: SocketAddr,
    /// The address of ours that was called: what to tell this caller, since it works for it.
    pub local: SocketAddr,
    pub(crate) activity: Arc<Activity>,
    pub(crate) stream: Weak<TcpStream>,
}

impl Connection {
    /// Whether what was sent last may not have arrived: the connection failed, was reset, or an answer was given up.
    /// Asks the socket itself, so a reset counts from the moment the kernel knows of it.
    pub fn is_broken(&self) -> bool {
        if let Some(stream) = self.stream.upgrade()
            && !matches!(stream.take_error(), Ok(None))
        {
            self.activity.set_broken();
        }
        self.activity.is_broken()
    }
}
