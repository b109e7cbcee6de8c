//! ApiVersions (key 18, versions 0 to 4; KIP-35, KIP-511): what is spoken here. The first request of every client.
//!
//! A version that is not known is answered too, in version 0 with UNSUPPORTED_VERSION: the client comes again with
//! one that is.

use floe_wire::ErrorCode;
use kacrab_protocol::generated::api_versions_request::ApiVersionsRequestData;
use kacrab_protocol::generated::api_versions_response::{ApiVersion, ApiVersionsResponseData};

use super::answer::{Answer, NONE, code};
use super::api::{APIS, Api, Key};
use super::request::{Close, Request};

pub(super) fn handle(request: &Request) -> Result<Answer, Close> {
    if !request.api.takes(request.version) {
        let message = ApiVersionsResponseData::default()
            .with_error_code(code(ErrorCode::UnsupportedVersion))
            .with_api_keys(
                APIS.iter()
                    .filter(|api| api.key == Key::ApiVersions)
                    .map(entry)
                    .collect(),
            );
        return Answer::encode_as(request, 0, |out, version| message.write(out, version));
    }
    let asked = request.read(ApiVersionsRequestData::read)?;
    let is_named = request.version < 3
        || (is_software_name(asked.client_software_name.as_str())
            && is_software_name(asked.client_software_version.as_str()));
    let message = if is_named {
        // Tagged fields keep their defaults and so stay away: librdkafka before 2.2 cannot skip them.
        ApiVersionsResponseData::default()
            .with_error_code(NONE)
            .with_api_keys(APIS.iter().map(entry).collect())
    } else {
        ApiVersionsResponseData::default().with_error_code(code(ErrorCode::InvalidRequest))
    };
    Answer::encode(request, |out, version| message.write(out, version))
}

fn entry(api: &Api) -> ApiVersion {
    ApiVersion::default()
        .with_api_key(api.key as i16)
        .with_min_version(api.advertised_min())
        .with_max_version(api.max)
}

/// `[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?` (KIP-511).
fn is_software_name(name: &str) -> bool {
    let is_edge = |b: Option<&u8>| b.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = name.as_bytes();
    is_edge(bytes.first())
        && is_edge(bytes.last())
        && bytes
            .iter()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn software_names_follow_kip_511() {
        for name in ["librdkafka", "v2.0.2", "a", "apache-kafka-java", "4.4.0"] {
            assert!(is_software_name(name), "{name}");
        }
        for name in ["", "-a", "a.", "a b", "a/b", "é"] {
            assert!(!is_software_name(name), "{name}");
        }
    }
}
