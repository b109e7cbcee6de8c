//! The wish to stop, told to every listener, connection and waiting request at once.
//!
//! Guarantees: phases only go forward; a listener whose `Stopper` is dropped stops too. Waits for nobody itself.

use tokio::sync::watch;

/// How far stopping has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Nobody asked.
    Serving,
    /// No new connections and requests; those in flight may end; long polls answer now.
    Draining,
    /// Everything is cut.
    Stopped,
}

/// The hand that stops.
#[derive(Debug)]
pub struct Stopper(watch::Sender<Phase>);

/// What is held by those who must hear of it. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Stop(watch::Receiver<Phase>);

impl Stopper {
    /// A pair.
    pub fn new() -> (Self, Stop) {
        let (sender, receiver) = watch::channel(Phase::Serving);
        (Self(sender), Stop(receiver))
    }

    /// Goes on to `phase`; an earlier one changes nothing.
    pub fn advance(&self, phase: Phase) {
        self.0.send_if_modified(|now| {
            let later = phase > *now;
            if later {
                *now = phase;
            }
            later
        });
    }
}

impl Stop {
    /// How far it has come.
    pub fn phase(&self) -> Phase {
        if self.0.has_changed().is_err() {
            return Phase::Stopped;
        }
        *self.0.borrow()
    }

    /// Ends once `phase` is reached.
    pub async fn reached(&self, phase: Phase) {
        let mut receiver = self.0.clone();
        // An error means that the stopper is gone: that is a stop, too.
        drop(receiver.wait_for(|now| *now >= phase).await);
    }
}
