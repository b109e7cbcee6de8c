//! One accepted connection, as requests on it and consumers bound to it know it.

use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::sync::{Arc, Weak};

use socket2::SockRef;
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
    /// Whether what was sent last may not have arrived: the connection failed, was reset, an answer was given up, or
    /// the caller hung up before all of it was sent. Asks the socket itself, so a reset or an end counts from the
    /// moment the kernel knows of it.
    pub fn is_broken(&self) -> bool {
        if let Some(stream) = self.stream.upgrade() {
            let socket = SockRef::from(&*stream);
            let mut byte = [MaybeUninit::uninit()];
            let has_failed = !matches!(socket.take_error(), Ok(None));
            if has_failed
                || (self.activity.is_answering() && matches!(socket.peek(&mut byte), Ok(0)))
            {
                self.activity.set_broken();
            }
        }
        self.activity.is_broken()
    }
}
