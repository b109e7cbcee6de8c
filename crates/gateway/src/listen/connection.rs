//! One accepted connection, as requests on it and consumers bound to it know it.

use std::mem::MaybeUninit;
use std::net::{Shutdown, SocketAddr};
use std::sync::{Arc, Weak};
use std::time::Duration;

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

/// Longest wait for an answer to a caller that has gone to be given up or out.
const SETTLING: Duration = Duration::from_secs(2);
/// Pause between two looks at it.
const LOOK: Duration = Duration::from_millis(1);

impl Connection {
    /// Waits, where the caller has sent its end while an answer is on its way, until that is out or given up: before,
    /// it cannot be told whether the caller had all of it first.
    pub(crate) async fn settled(&self) {
        let is_under_way = || {
            let stream = self.stream.upgrade();
            self.activity.is_answering() && stream.is_some_and(|stream| has_ended(&stream))
        };
        let settling = async {
            while is_under_way() {
                tokio::time::sleep(LOOK).await;
            }
        };
        // Not settled in time is not arrived.
        drop(tokio::time::timeout(SETTLING, settling).await);
    }

    /// Ends it: whoever reads or writes on it hears so at once.
    pub(super) fn cut(&self) {
        if let Some(stream) = self.stream.upgrade() {
            // Fails when the caller has ended it already.
            drop(SockRef::from(&*stream).shutdown(Shutdown::Both));
        }
    }

    /// Whether what was sent last may not have arrived: the connection failed, was reset, an answer was given up, or
    /// the caller hung up before all of it was sent. Asks the socket itself, so a reset or an end counts from the
    /// moment the kernel knows of it.
    pub fn is_broken(&self) -> bool {
        if let Some(stream) = self.stream.upgrade() {
            let has_failed = !matches!(SockRef::from(&*stream).take_error(), Ok(None));
            if has_failed || (self.activity.is_answering() && has_ended(&stream)) {
                self.activity.set_broken();
            }
        }
        self.activity.is_broken()
    }
}

/// Whether the caller has sent its end, and nothing before it that is not taken yet.
pub(super) fn has_ended(stream: &TcpStream) -> bool {
    let mut byte = [MaybeUninit::uninit()];
    matches!(SockRef::from(stream).peek(&mut byte), Ok(0))
}
