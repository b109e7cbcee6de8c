//! `advertised.listeners`: the addresses that callers are told, in Kafka's form with a name for each door.
//!
//! Guarantees: what is taken can be told as it stands: a host that is one, a port that is one, each door once, and one
//! host for both HTTP doors, since `GET /v1/brokers` has room for one. Does not ask whether a host exists.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

use super::kind::Refusal;

/// Nothing is advertised: each caller is told the address it called, which works for it.
const CALLED: &str = "called";
/// Kafka's name of its listener without encryption.
const KAFKA: &str = "PLAINTEXT";
const PRODUCE: &str = "HTTP_PRODUCE";
const CONSUME: &str = "HTTP_CONSUME";
/// What is allowed, in words that fit after "use".
pub(super) const ALLOWED: &str = "called, or NAME://HOST:PORT with commas between; NAME is PLAINTEXT, HTTP_PRODUCE or HTTP_CONSUME";
/// Longest DNS name (RFC 1035, 2.3.4, as text).
const NAME_BYTES_MAX: usize = 253;
/// Longest part of a DNS name.
const LABEL_BYTES_MAX: usize = 63;

/// What callers are told; where nothing is, the address they called.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Advertised {
    /// Host, without brackets, and port of the Kafka door.
    pub kafka: Option<(String, u16)>,
    /// The HTTP doors.
    pub http: Option<AdvertisedHttp>,
}

/// Where the HTTP doors are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdvertisedHttp {
    /// Host, without brackets.
    pub host: String,
    /// Port for producers.
    pub produce_port: u16,
    /// Port for consumers.
    pub consume_port: u16,
}

impl Advertised {
    /// Reads the words of a list.
    pub(super) fn parse(words: &[&str]) -> Result<Self, Refusal> {
        if words == [CALLED] {
            return Ok(Self::default());
        }
        let (mut kafka, mut produce, mut consume) = (None, None, None);
        for word in words {
            let (name, host, port) = listener(word)?;
            let place = match name {
                KAFKA => &mut kafka,
                PRODUCE => &mut produce,
                CONSUME => &mut consume,
                other => return Err(unknown(other)),
            };
            if place.replace((host, port)).is_some() {
                return Err(refusal(
                    format!("{name} is given twice"),
                    "give each name once",
                ));
            }
        }
        let http = match (produce, consume) {
            (None, None) => None,
            (Some((host, produce_port)), Some((other, consume_port))) if host == other => {
                Some(AdvertisedHttp {
                    host,
                    produce_port,
                    consume_port,
                })
            }
            _ => {
                return Err(refusal(
                    format!("{PRODUCE} and {CONSUME} do not name one host"),
                    "give both, with the same host: GET /v1/brokers tells one host and two ports",
                ));
            }
        };
        Ok(Self { kafka, http })
    }
}

impl fmt::Display for Advertised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut words = Vec::new();
        if let Some((host, port)) = &self.kafka {
            words.push(format!("{KAFKA}://{}:{port}", bracketed(host)));
        }
        if let Some(http) = &self.http {
            let host = bracketed(&http.host);
            words.push(format!("{PRODUCE}://{host}:{}", http.produce_port));
            words.push(format!("{CONSUME}://{host}:{}", http.consume_port));
        }
        if words.is_empty() {
            return f.write_str(CALLED);
        }
        f.write_str(&words.join(","))
    }
}

/// A host as it stands before a port.
pub fn bracketed(host: &str) -> String {
    if host.contains(':') {
        format!("[{host}]")
    } else {
        host.to_owned()
    }
}

/// Name, host without brackets, and port.
fn listener(word: &str) -> Result<(&str, String, u16), Refusal> {
    let parts = word
        .split_once("://")
        .and_then(|(name, address)| Some((name, address.rsplit_once(':')?)));
    let Some((name, (host, port))) = parts else {
        return Err(refusal(
            format!("'{word}' is not NAME://HOST:PORT"),
            &format!("use {ALLOWED}"),
        ));
    };
    let port_number = match port.parse::<u16>() {
        Ok(number) if number > 0 && port.bytes().all(|b| b.is_ascii_digit()) => number,
        _ => {
            return Err(refusal(
                format!("'{port}' in '{word}' is not a port that can be called"),
                "use 1 to 65535",
            ));
        }
    };
    Ok((name, checked_host(host, word)?, port_number))
}

fn checked_host(host: &str, word: &str) -> Result<String, Refusal> {
    let bare = host.strip_prefix('[').and_then(|h| h.strip_suffix(']'));
    let address = match bare {
        Some(inner) => inner.parse::<Ipv6Addr>().ok().map(IpAddr::from),
        None => host.parse().ok().filter(IpAddr::is_ipv4),
    };
    match address {
        Some(address) if address.is_unspecified() => Err(refusal(
            format!("nobody can call {address}, which means all addresses of a machine"),
            "give the name or the address by which clients reach this node",
        )),
        Some(address) => Ok(address.to_string()),
        None if bare.is_none() && is_dns_name(host) => Ok(host.to_owned()),
        None => Err(refusal(
            format!("'{host}' in '{word}' is not a host"),
            "use a name of letters, digits, hyphens and dots (at most 253), an IPv4 address, or an IPv6 address in \
             brackets",
        )),
    }
}

/// RFC 1123, 2.1; underscores, too, since container networks give such names. One of digits and dots only is a broken
/// IPv4 address.
fn is_dns_name(host: &str) -> bool {
    let is_label = |label: &str| {
        (1..=LABEL_BYTES_MAX).contains(&label.len())
            && label
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    host.len() <= NAME_BYTES_MAX
        && host.split('.').all(is_label)
        && !host.bytes().all(|b| b.is_ascii_digit() || b == b'.')
}

fn unknown(name: &str) -> Refusal {
    refusal(
        format!("there is no door '{name}'"),
        "use PLAINTEXT for Kafka, HTTP_PRODUCE and HTTP_CONSUME for HTTP; encrypted doors are not offered yet",
    )
}

fn refusal(problem: String, remedy: &str) -> Refusal {
    Refusal {
        problem,
        remedy: remedy.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Advertised, String> {
        let words: Vec<&str> = text.split(',').collect();
        Advertised::parse(&words).map_err(|r| format!("{}; {}", r.problem, r.remedy))
    }

    #[test]
    fn what_is_taken_is_shown_as_it_would_be_written() {
        for text in [
            "called",
            "PLAINTEXT://kafka.example:9092",
            "PLAINTEXT://[2001:db8::1]:65535",
            "PLAINTEXT://floe_1:1,HTTP_PRODUCE://10.0.0.7:80,HTTP_CONSUME://10.0.0.7:80",
        ] {
            assert_eq!(parse(text).unwrap().to_string(), text);
        }
        let one = parse("PLAINTEXT://[::1]:9092").unwrap();
        assert_eq!(one.kafka, Some(("::1".to_owned(), 9092)));
    }

    #[test]
    fn a_host_is_taken_up_to_its_longest_and_refused_one_past_it() {
        let name = |last: usize| {
            let label = "a".repeat(LABEL_BYTES_MAX);
            let host = format!("{label}.{label}.{label}.{}", "b".repeat(last));
            (host.len(), format!("PLAINTEXT://{host}:9092"))
        };
        let (length, longest) = name(61);
        assert_eq!(length, NAME_BYTES_MAX);
        assert!(parse(&longest).is_ok());
        assert!(parse(&name(62).1).is_err());
        let label = |length: usize| format!("PLAINTEXT://{}:1", "a".repeat(length));
        assert!(parse(&label(LABEL_BYTES_MAX)).is_ok());
        assert!(parse(&label(LABEL_BYTES_MAX + 1)).is_err());
    }

    #[test]
    fn a_port_is_taken_at_both_ends_and_refused_beyond_them() {
        for port in ["1", "65535"] {
            assert!(parse(&format!("PLAINTEXT://a:{port}")).is_ok(), "{port}");
        }
        for port in ["0", "65536", "", "+1", "x"] {
            let refused = parse(&format!("PLAINTEXT://a:{port}")).unwrap_err();
            assert!(refused.ends_with("use 1 to 65535"), "{refused}");
        }
    }

    #[test]
    fn what_no_caller_could_use_is_refused_with_what_to_write() {
        for (text, words) in [
            ("", "'' is not NAME://HOST:PORT"),
            ("kafka.example:9092", "is not NAME://HOST:PORT"),
            ("PLAINTEXT://0.0.0.0:9092", "nobody can call 0.0.0.0"),
            ("PLAINTEXT://[::]:9092", "nobody can call ::"),
            (
                "PLAINTEXT://:9092",
                "'' in 'PLAINTEXT://:9092' is not a host",
            ),
            ("PLAINTEXT://1.2.3:9092", "is not a host"),
            ("PLAINTEXT://::1:9092", "is not a host"),
            ("PLAINTEXT://[a.b]:9092", "is not a host"),
            ("PLAINTEXT://a b:9092", "is not a host"),
            ("PLAINTEXT://-a:9092", "is not a host"),
            ("SSL://a:9093", "there is no door 'SSL'"),
            ("called,PLAINTEXT://a:1", "'called' is not NAME://HOST:PORT"),
            (
                "PLAINTEXT://a:1,PLAINTEXT://b:1",
                "PLAINTEXT is given twice",
            ),
            ("HTTP_PRODUCE://a:1", "do not name one host"),
            (
                "HTTP_PRODUCE://a:1,HTTP_CONSUME://b:1",
                "do not name one host",
            ),
        ] {
            let refused = parse(text).unwrap_err();
            assert!(refused.contains(words), "{text}: {refused}");
        }
    }
}
