//! The limits of the doors that are no settings, listed for the reference page.
//!
//! Guarantees: each row shows the constant that the code obeys. A limit that users should be able to move is a setting.

use std::fmt;
use std::time::Duration;

/// One limit.
#[derive(Clone, Copy, Debug)]
pub struct Fixed {
    /// What is limited.
    pub what: &'static str,
    /// How far it may go.
    pub limit: Amount,
    /// What happens beyond.
    pub beyond: &'static str,
}

/// How much.
#[derive(Clone, Copy, Debug)]
pub enum Amount {
    /// Bytes.
    Bytes(usize),
    /// A time.
    Time(Duration),
    /// A number of things.
    Count(usize),
    /// One of so many parts of the memory for buffers.
    Share(usize),
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Bytes(bytes) if bytes >= 1 << 20 => write!(f, "{} MiB", bytes >> 20),
            Self::Bytes(bytes) => write!(f, "{} KiB", bytes >> 10),
            Self::Time(time) if time.subsec_millis() > 0 => write!(f, "{} ms", time.as_millis()),
            Self::Time(time) => write!(f, "{} s", time.as_secs()),
            Self::Count(count) => count.fmt(f),
            Self::Share(parts) => write!(f, "1/{parts} of the buffers"),
        }
    }
}

/// All of them, by the door they belong to.
pub fn limits() -> [(&'static str, Vec<Fixed>); 3] {
    [
        ("every door", crate::listen::fixed()),
        ("Kafka", crate::kafka::fixed()),
        ("HTTP", crate::http::fixed()),
    ]
}

/// A row.
pub(crate) const fn row(what: &'static str, limit: Amount, beyond: &'static str) -> Fixed {
    Fixed {
        what,
        limit,
        beyond,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_is_shown_in_the_unit_that_fits_it() {
        for (amount, text) in [
            (Amount::Bytes(32 << 10), "32 KiB"),
            (Amount::Bytes(8 << 20), "8 MiB"),
            (Amount::Time(Duration::from_secs(30)), "30 s"),
            (Amount::Time(Duration::from_millis(500)), "500 ms"),
            (Amount::Count(128), "128"),
            (Amount::Share(4), "1/4 of the buffers"),
        ] {
            assert_eq!(amount.to_string(), text);
        }
    }
}
