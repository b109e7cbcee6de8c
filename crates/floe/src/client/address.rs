//! The address of a node's HTTP port, as `--server` takes it: `http://host:port`, `host:port` or `host`.

use std::fmt;
use std::str::FromStr;

/// Port when none is said: discovery and status.
const PORT_DEFAULT: u16 = 9250;

/// A node's HTTP port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// Name or IP address, without brackets.
    pub host: String,
    /// Port.
    pub port: u16,
}

impl Address {
    /// Host and port as they stand in a URL.
    pub fn authority(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("'{text}' is not an address; write http://127.0.0.1:9250");
        if text.starts_with("https://") {
            return Err(format!("'{text}': a node speaks plain HTTP; write http://"));
        }
        let rest = text.strip_prefix("http://").unwrap_or(text);
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (host, port) = if let Some(inner) = rest.strip_prefix('[') {
            let (host, after) = inner.split_once(']').ok_or_else(wrong)?;
            (host, after.strip_prefix(':'))
        } else {
            match rest.rsplit_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (rest, None),
            }
        };
        let port = match port {
            Some(port) => port.parse().map_err(|_| wrong())?,
            None => PORT_DEFAULT,
        };
        if host.is_empty() || host.contains(['/', ' ', '?', '#', '@']) {
            return Err(wrong());
        }
        Ok(Self {
            host: host.to_owned(),
            port,
        })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}", self.authority())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_a_url_or_a_host_with_or_without_port() {
        for (text, shown) in [
            ("http://127.0.0.1:9250", "http://127.0.0.1:9250"),
            ("http://localhost/", "http://localhost:9250"),
            ("[::1]:80", "http://[::1]:80"),
            ("node-0.floe", "http://node-0.floe:9250"),
        ] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), shown);
        }
        for text in ["", "https://a", "a:b", "a/b", "[::1", "http://:1"] {
            assert!(text.parse::<Address>().is_err(), "{text}");
        }
    }
}
