//! Server-assigned groups: HTTP consumers register, the server deals partitions to them, they poll.

mod requests;

pub use requests::{Caller, DeliveryToken, OnNewGroup, Received, Registration};
