//! The kinds of value a setting can have: how each is written, checked and explained.
//!
//! Guarantees: a refusal says what was found, what is allowed and how to write it. Does not know which settings exist.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;

use super::listeners::{self, Advertised};

/// What may be written for a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `true` or `false`.
    Switch,
    /// A whole number in a unit, both ends allowed.
    Number {
        /// What is counted; empty for a plain number.
        unit: &'static str,
        /// Smallest allowed.
        min: i64,
        /// Largest allowed.
        max: i64,
    },
    /// A size: bytes as a whole number, or text such as `384MiB`.
    Bytes {
        /// Smallest allowed.
        min: i64,
        /// Largest allowed.
        max: i64,
    },
    /// One word of a list.
    Choice(&'static [&'static str]),
    /// A directory.
    Directory,
    /// Loopback addresses.
    Addresses,
    /// What callers are told about where to call.
    Listeners,
    /// The id of a cluster, or `any`.
    Cluster,
    /// A filter of log lines: a level, or `target=level` pairs.
    Filter,
}

/// A checked value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// Of a switch.
    Switch(bool),
    /// Of a number or a size in bytes.
    Number(i64),
    /// Of a choice or a filter.
    Text(String),
    /// Of a directory.
    Directory(PathBuf),
    /// Of addresses.
    Addresses(Vec<IpAddr>),
    /// Of advertised listeners.
    Listeners(Advertised),
}

/// A value as it was written, before it is checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Written {
    /// Of the configuration file: a whole number.
    Number(i64),
    /// Of the configuration file: `true` or `false`.
    Switch(bool),
    /// Of the configuration file: a string.
    Text(String),
    /// Of the configuration file: an array of strings.
    List(Vec<String>),
    /// Of the configuration file: something no setting takes, by its name in TOML.
    Foreign(&'static str),
    /// Of the environment or a flag, where everything is text.
    Bare(String),
}

/// Why a value is refused: what is wrong, and what to write instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What is wrong.
    pub problem: String,
    /// What to do.
    pub remedy: String,
}

impl Kind {
    /// Checks what was written.
    pub fn check(self, written: &Written) -> Result<Value, Refusal> {
        match self {
            Self::Switch => match written {
                Written::Switch(on) => Some(*on),
                Written::Bare(text) => text.parse().ok(),
                _ => None,
            }
            .map(Value::Switch)
            .ok_or_else(|| self.mismatch(written)),
            Self::Number { min, max, .. } => match written {
                Written::Number(number) => self.within(*number, min, max),
                Written::Bare(text) => match text.parse() {
                    Ok(number) => self.within(number, min, max),
                    Err(_) => Err(self.mismatch(written)),
                },
                _ => Err(self.mismatch(written)),
            },
            Self::Bytes { min, max } => match written {
                Written::Number(number) => self.within(*number, min, max),
                Written::Bare(text) | Written::Text(text) => match bytes(text) {
                    Some(number) => self.within(number, min, max),
                    None => Err(self.mismatch(written)),
                },
                _ => Err(self.mismatch(written)),
            },
            Self::Choice(words) => match written {
                Written::Text(text) | Written::Bare(text) if words.contains(&text.as_str()) => {
                    Ok(Value::Text(text.clone()))
                }
                _ => Err(self.mismatch(written)),
            },
            Self::Directory => match written {
                Written::Text(text) | Written::Bare(text) if !text.is_empty() => {
                    Ok(Value::Directory(PathBuf::from(text)))
                }
                _ => Err(self.mismatch(written)),
            },
            Self::Addresses => self.addresses(written),
            Self::Listeners => {
                let words = words(written).ok_or_else(|| self.mismatch(written))?;
                Advertised::parse(&words).map(Value::Listeners)
            }
            Self::Cluster => match written {
                Written::Text(text) | Written::Bare(text)
                    if text == ANY_CLUSTER || cluster_id(text).is_some() =>
                {
                    Ok(Value::Text(text.clone()))
                }
                _ => Err(self.mismatch(written)),
            },
            Self::Filter => match written {
                Written::Text(text) | Written::Bare(text) if is_filter(text) => {
                    Ok(Value::Text(text.clone()))
                }
                _ => Err(self.mismatch(written)),
            },
        }
    }

    fn within(self, number: i64, min: i64, max: i64) -> Result<Value, Refusal> {
        if (min..=max).contains(&number) {
            return Ok(Value::Number(number));
        }
        Err(Refusal {
            problem: format!("{number} is out of range"),
            remedy: format!("use {self}"),
        })
    }

    fn addresses(self, written: &Written) -> Result<Value, Refusal> {
        let words = words(written).ok_or_else(|| self.mismatch(written))?;
        let parsed: Option<Vec<IpAddr>> = words.iter().map(|word| word.parse().ok()).collect();
        let Some(addresses) = parsed.filter(|list| !list.is_empty()) else {
            return Err(self.mismatch(written));
        };
        match addresses.iter().find(|address| !address.is_loopback()) {
            Some(outside) => Err(Refusal {
                problem: format!("{outside} is reachable from other machines"),
                remedy: "developer mode has no authentication and listens on loopback only: \
                         use 127.0.0.1, ::1 or both"
                    .to_owned(),
            }),
            None => Ok(Value::Addresses(addresses)),
        }
    }

    fn mismatch(self, written: &Written) -> Refusal {
        Refusal {
            problem: format!("{written} is not allowed"),
            remedy: format!("use {self}"),
        }
    }
}

/// The words of a list: of an array, or of text with commas between.
fn words(written: &Written) -> Option<Vec<&str>> {
    match written {
        Written::List(list) => Some(list.iter().map(String::as_str).collect()),
        Written::Text(text) | Written::Bare(text) => Some(text.split(',').map(str::trim).collect()),
        _ => None,
    }
}

/// What is allowed, in words that fit after "use".
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Switch => f.write_str("true or false"),
            Self::Number { unit, min, max } => {
                write!(f, "a whole number from {min} to {max}")?;
                match unit {
                    "" => Ok(()),
                    unit => write!(f, " ({unit})"),
                }
            }
            Self::Bytes { min, max } => write!(
                f,
                "bytes from {} to {}, as a number or like \"64MiB\"",
                size(min),
                size(max)
            ),
            Self::Choice(words) => f.write_str(&words.join(" or ")),
            Self::Directory => f.write_str("the path of a directory"),
            Self::Addresses => f.write_str("loopback addresses such as 127.0.0.1 and ::1"),
            Self::Listeners => f.write_str(listeners::ALLOWED),
            Self::Cluster => {
                f.write_str("any, or an id of 32 hexadecimal digits as GET /status tells it")
            }
            Self::Filter => f.write_str(
                "a level (error, warn, info, debug, trace) or pairs like \"info,floe_log=debug\"",
            ),
        }
    }
}

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Switch(on) => on.fmt(f),
            Self::Text(text) | Self::Bare(text) => write!(f, "{text:?}"),
            Self::List(list) => write!(f, "{list:?}"),
            Self::Foreign(name) => write!(f, "a value of type {name}"),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Switch(on) => on.fmt(f),
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => f.write_str(text),
            Self::Directory(path) => path.display().fmt(f),
            Self::Addresses(list) => {
                let words: Vec<String> = list.iter().map(ToString::to_string).collect();
                f.write_str(&words.join(","))
            }
            Self::Listeners(advertised) => advertised.fmt(f),
        }
    }
}

/// Takes a directory of whatever cluster.
pub const ANY_CLUSTER: &str = "any";

/// The bytes of a cluster's id, from its 32 hexadecimal digits.
pub fn cluster_id(text: &str) -> Option<[u8; 16]> {
    let is_hex = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let id = u128::from_str_radix(text, 16).ok()?;
    is_hex.then_some(id.to_be_bytes())
}

/// `level`, or `target=level`, or several of them with commas between.
fn is_filter(text: &str) -> bool {
    text.split(',').all(|part| {
        let (target, level) = part.split_once('=').unwrap_or(("floe", part));
        !target.is_empty() && ["off", "error", "warn", "info", "debug", "trace"].contains(&level)
    })
}

const UNITS: [(&str, u32); 4] = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];

/// Reads `1048576`, `1024KiB`, `1MiB`; `None` for anything else or more than 63 bits.
fn bytes(text: &str) -> Option<i64> {
    let text = text.trim();
    for (unit, shift) in UNITS {
        if let Some(number) = text.strip_suffix(unit) {
            return number.trim().parse::<i64>().ok()?.checked_mul(1 << shift);
        }
    }
    text.parse().ok()
}

/// A size as a person writes it: the largest unit that divides it.
pub fn size(bytes: i64) -> String {
    if bytes > 0 {
        for (unit, shift) in UNITS {
            if bytes % (1 << shift) == 0 {
                return format!("{} {unit}", bytes >> shift);
            }
        }
    }
    bytes.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NUMBER: Kind = Kind::Number {
        unit: "ms",
        min: 1,
        max: 10,
    };
    const SIZE: Kind = Kind::Bytes {
        min: 1024,
        max: 1 << 30,
    };

    fn bare(text: &str) -> Written {
        Written::Bare(text.to_owned())
    }

    #[test]
    fn a_size_is_bytes_or_a_number_with_a_binary_unit() {
        for (text, value) in [("2048", 2048), ("4KiB", 4096), ("3 MiB", 3 << 20)] {
            assert_eq!(SIZE.check(&bare(text)), Ok(Value::Number(value)), "{text}");
        }
        for text in ["4kb", "MiB", "", "1.5MiB", "99999999999TiB"] {
            assert!(SIZE.check(&bare(text)).is_err(), "{text}");
        }
        assert_eq!(size(3 << 20), "3 MiB");
        assert_eq!(size(1_048_588), "1048588");
    }

    #[test]
    fn a_refusal_names_the_value_and_the_range() {
        let refusal = NUMBER.check(&Written::Number(11)).unwrap_err();
        assert_eq!(refusal.problem, "11 is out of range");
        assert_eq!(refusal.remedy, "use a whole number from 1 to 10 (ms)");
        let refusal = NUMBER.check(&Written::Text("5".into())).unwrap_err();
        assert_eq!(refusal.problem, "\"5\" is not allowed");
    }

    #[test]
    fn an_address_beyond_loopback_is_refused() {
        let refusal = Kind::Addresses.check(&bare("0.0.0.0")).unwrap_err();
        assert!(refusal.problem.contains("0.0.0.0"));
        assert!(Kind::Addresses.check(&bare("127.0.0.1, ::1")).is_ok());
        assert!(Kind::Addresses.check(&bare("")).is_err());
    }

    #[test]
    fn each_kind_refuses_the_types_of_the_others() {
        let foreign = Written::Foreign("datetime");
        for kind in [
            Kind::Switch,
            NUMBER,
            SIZE,
            Kind::Choice(&["a"]),
            Kind::Directory,
            Kind::Addresses,
            Kind::Listeners,
            Kind::Filter,
            Kind::Cluster,
        ] {
            assert!(kind.check(&foreign).is_err(), "{kind}");
        }
        let id = "000102030405060708090a0b0c0d0e0f";
        assert_eq!(cluster_id(id).unwrap()[15], 15);
        assert!(Kind::Cluster.check(&bare(id)).is_ok());
        assert!(
            Kind::Cluster
                .check(&bare("+0102030405060708090a0b0c0d0e0f0"))
                .is_err()
        );
        assert!(Kind::Switch.check(&Written::Number(1)).is_err());
        assert!(Kind::Filter.check(&bare("loud")).is_err());
        assert!(Kind::Filter.check(&bare("warn,floe=debug")).is_ok());
    }
}
