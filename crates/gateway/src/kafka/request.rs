//! One request: its header, its undecoded body, and where it came from.

use std::net::SocketAddr;

use bytes::Bytes;
use floe_wire::frame::{self, RequestHeader};
use kacrab_protocol::ProtocolError;

use super::api::{Api, Key};

/// Frames of all APIs but Produce end here: decoded messages take many times their bytes.
pub(super) const CONTROL_FRAME_BYTES_MAX: usize = 1024 * 1024;

/// Why a connection is closed instead of answered.
#[derive(Debug, thiserror::Error)]
pub(super) enum Close {
    /// Not a Kafka frame.
    #[error(transparent)]
    Frame(#[from] frame::Error),
    /// No such API here.
    #[error("API key {0} is not spoken here")]
    UnknownApi(i16),
    /// A version outside the advertised range.
    #[error("{api} version {version} is not spoken here ({min} to {max} are)")]
    Version {
        /// Name of the API.
        api: &'static str,
        /// The version asked in.
        version: i16,
        /// Lowest spoken.
        min: i16,
        /// Highest spoken.
        max: i16,
    },
    /// The body does not decode.
    #[error("{api} version {version} does not decode: {reason}")]
    Undecodable {
        /// Name of the API.
        api: &'static str,
        /// Its version.
        version: i16,
        /// What the decoder says.
        reason: String,
    },
    /// A large frame of an API that has no use for one.
    #[error("{api} request of {bytes} bytes; the limit is {limit}")]
    TooLarge {
        /// Name of the API.
        api: &'static str,
        /// Bytes of the frame.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// An answer that the message definitions do not allow: a bug, kept to this connection.
    #[error("{api} version {version}: answer does not encode: {reason}")]
    Unencodable {
        /// Name of the API.
        api: &'static str,
        /// Its version.
        version: i16,
        /// What the encoder says.
        reason: String,
    },
    /// A produce with acks=0 failed; the protocol has no other way to tell.
    #[error("produce with acks=0 failed: {0}")]
    Unacknowledged(String),
}

impl Close {
    /// Its kind, for the log's sake and as a label of the metrics.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Frame(_) => "frame",
            Self::UnknownApi(_) => "api",
            Self::Version { .. } => "version",
            Self::Undecodable { .. } => "undecodable",
            Self::TooLarge { .. } => "too-large",
            Self::Unencodable { .. } => "unencodable",
            Self::Unacknowledged(_) => "unacknowledged",
        }
    }
}

/// See the file's head.
pub(super) struct Request {
    pub(super) api: &'static Api,
    pub(super) version: i16,
    pub(super) header: RequestHeader,
    /// Everything behind the header.
    pub(super) body: Bytes,
    pub(super) caller: Caller,
}

/// Where a request came from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Caller {
    /// Its address.
    pub(super) peer: SocketAddr,
    /// The address of ours it called.
    pub(super) local: SocketAddr,
}

impl Request {
    /// From a whole frame without its length.
    pub(super) fn parse(frame: &Bytes, caller: Caller) -> Result<Self, Close> {
        let flexible = |key, version| Api::find(key).is_some_and(|api| api.is_flexible(version));
        let (header, at) = frame::request_header(frame, flexible)?;
        let api = Api::find(header.api_key).ok_or(Close::UnknownApi(header.api_key))?;
        let version = header.api_version;
        // ApiVersions is answered in any version: it is how clients learn ours (KIP-511).
        if !api.takes(version) && api.key != Key::ApiVersions {
            return Err(Close::Version {
                api: api.name,
                version,
                min: api.min,
                max: api.max,
            });
        }
        if api.key != Key::Produce && frame.len() > CONTROL_FRAME_BYTES_MAX {
            return Err(Close::TooLarge {
                api: api.name,
                bytes: frame.len(),
                limit: CONTROL_FRAME_BYTES_MAX,
            });
        }
        Ok(Self {
            api,
            version,
            header,
            body: frame.slice(at..),
            caller,
        })
    }

    /// Decodes the body.
    pub(super) fn read<T>(
        &self,
        decode: impl FnOnce(&mut Bytes, i16) -> Result<T, ProtocolError>,
    ) -> Result<T, Close> {
        decode(&mut self.body.clone(), self.version).map_err(|e| self.undecodable(&e))
    }

    /// Closes for a body that does not decode.
    pub(super) fn undecodable(&self, reason: &dyn std::error::Error) -> Close {
        let mut text = reason.to_string();
        if let Some(source) = reason.source() {
            text = format!("{text}: {source}");
        }
        Close::Undecodable {
            api: self.api.name,
            version: self.version,
            reason: text,
        }
    }

    /// Whether the answer has tagged fields.
    pub(super) fn is_flexible(&self) -> bool {
        self.api.is_flexible(self.version)
    }
}
