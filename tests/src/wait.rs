//! Waiting for a state.

use std::time::{Duration, Instant};

/// Longer than anything here takes on a loaded machine of two cores.
pub const DEADLINE: Duration = Duration::from_mins(1);

/// Asks until `probe` has an answer.
///
/// # Panics
/// When there is none by the deadline: the state named by `what` did not come.
pub fn until<T>(what: &str, probe: impl FnMut() -> Option<T>) -> T {
    until_within(DEADLINE, what, probe)
}

/// As [`until`], with a deadline of its own: for promises that are about time.
///
/// # Panics
/// When there is no answer by the deadline.
pub fn until_within<T>(deadline: Duration, what: &str, mut probe: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(answer) = probe() {
            return answer;
        }
        assert!(
            started.elapsed() < deadline,
            "after {:?} still waiting for {what}",
            started.elapsed()
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}
