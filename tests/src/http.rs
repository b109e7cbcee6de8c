//! An HTTP/1.1 client of one connection that shows everything: status, headers, raw body.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

/// What came back.
#[derive(Debug, Clone)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// Headers, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body's bytes.
    pub body: Vec<u8>,
}

impl Response {
    /// The first header of this name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(other, _)| other == name)
            .map(|(_, value)| value.as_str())
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON.
    ///
    /// # Panics
    /// When it is not.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: status {} body {}", self.status, self.text()))
    }

    /// Asserts the status.
    #[allow(
        clippy::return_self_not_must_use,
        reason = "often the status is all that is asked"
    )]
    pub fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "body: {}", self.text());
        self
    }
}

/// One connection.
#[derive(Debug)]
pub struct Client {
    address: String,
    stream: BufReader<TcpStream>,
}

impl Client {
    /// Connects.
    pub fn open(address: &str) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_mins(1)))
            .unwrap();
        stream.set_nodelay(true).unwrap();
        Self {
            address: address.to_owned(),
            stream: BufReader::new(stream),
        }
    }

    /// The socket, for bytes that are no request.
    pub fn stream(&mut self) -> &mut TcpStream {
        self.stream.get_mut()
    }

    /// Sends a request without reading its answer.
    pub fn send(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) {
        let mut head = format!("{method} {path} HTTP/1.1\r\nHost: {}\r\n", self.address);
        for (name, value) in headers {
            write!(head, "{name}: {value}\r\n").unwrap();
        }
        if !body.is_empty() || method == "POST" || method == "PUT" {
            write!(head, "Content-Length: {}\r\n", body.len()).unwrap();
        }
        head.push_str("\r\n");
        let mut message = head.into_bytes();
        message.extend_from_slice(body);
        self.stream().write_all(&message).unwrap();
    }

    /// Reads an answer; nothing when the connection was closed instead.
    pub fn receive(&mut self) -> Option<Response> {
        let mut line = String::new();
        if self.stream.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let status = line.split(' ').nth(1)?.parse().ok()?;
        let mut headers = Vec::new();
        loop {
            line.clear();
            self.stream.read_line(&mut line).ok()?;
            let Some((name, value)) = line.trim_end().split_once(':') else {
                break;
            };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let mut response = Response {
            status,
            headers,
            body: Vec::new(),
        };
        if let Some(length) = response.header("content-length") {
            response.body = vec![0; length.parse().ok()?];
            self.stream.read_exact(&mut response.body).ok()?;
        } else if response.header("transfer-encoding") == Some("chunked") {
            self.chunks(&mut response.body)?;
        } else if status != 204 && status != 304 && response.header("connection") == Some("close") {
            self.stream.read_to_end(&mut response.body).ok()?;
        }
        Some(response)
    }

    fn chunks(&mut self, body: &mut Vec<u8>) -> Option<()> {
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line).ok()?;
            let length = usize::from_str_radix(line.trim_end(), 16).ok()?;
            let mut chunk = vec![0; length + 2];
            self.stream.read_exact(&mut chunk).ok()?;
            if length == 0 {
                return Some(());
            }
            body.extend_from_slice(&chunk[..length]);
        }
    }

    /// Sends a request and reads its answer.
    pub fn call(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Response {
        self.send(method, path, headers, body);
        self.receive()
            .unwrap_or_else(|| panic!("{method} {path}: the connection was closed"))
    }
}

/// One request on a connection of its own.
pub fn request(
    address: &str,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Response {
    Client::open(address).call(method, path, headers, body)
}

/// GET on a connection of its own.
pub fn get(address: &str, path: &str) -> Response {
    request(address, "GET", path, &[], b"")
}

/// POST on a connection of its own.
pub fn post(address: &str, path: &str, content_type: &str, body: &[u8]) -> Response {
    request(
        address,
        "POST",
        path,
        &[("Content-Type", content_type)],
        body,
    )
}
