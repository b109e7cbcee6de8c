//! Ports for a node.
//!
//! Guarantees: the system said a moment ago that the port is free, and no other test process took it since.
//! They lie below the range that the system gives to outgoing connections: a client that keeps connecting to a
//! killed node would otherwise sooner or later be given that very port as its own end, connect to itself, and
//! keep the node from coming back.

use std::fs::File;
use std::net::TcpListener;
use std::sync::atomic::{AtomicU16, Ordering};

const FIRST: u16 = 12_000;
const LAST: u16 = 32_000;

/// A port held for this process until the value is dropped.
#[derive(Debug)]
pub struct Port {
    number: u16,
    _held: File,
}

impl Port {
    /// Takes a free port.
    ///
    /// # Panics
    /// When none is free.
    pub fn free() -> Self {
        static NEXT: AtomicU16 = AtomicU16::new(0);
        let folder = std::env::temp_dir().join("floe-test-ports");
        std::fs::create_dir_all(&folder).unwrap();
        let span = LAST - FIRST;
        let offset = (std::process::id() as u16).wrapping_mul(257) % span;
        for _ in 0..span {
            let step = NEXT.fetch_add(1, Ordering::Relaxed);
            let number = FIRST + (offset + step % span) % span;
            let held = File::create(folder.join(number.to_string())).unwrap();
            let operation = rustix::fs::FlockOperation::NonBlockingLockExclusive;
            if rustix::fs::flock(&held, operation).is_err() {
                continue;
            }
            if TcpListener::bind(("127.0.0.1", number)).is_ok() {
                return Self {
                    number,
                    _held: held,
                };
            }
        }
        panic!("no port between {FIRST} and {LAST} is free");
    }

    /// The number.
    pub fn number(&self) -> u16 {
        self.number
    }

    /// `127.0.0.1:number`.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.number)
    }
}
