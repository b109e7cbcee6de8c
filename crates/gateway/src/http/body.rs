//! Reading a request's body: bounded before it is read, while it comes, and after it is decompressed.
//!
//! Guarantees: a body that declares too much is refused before a byte of it is read; one that declares nothing is read
//! up to the limit; one that stops coming, or never ends, is given up. Memory is taken from the pool as bytes arrive,
//! not as they are announced, so idle callers hold nothing up. Compressed bodies (`Content-Encoding: gzip` or `zstd`,
//! RFC 9110 8.4) count as what they become. Whatever other coding a body came in is refused, never taken for the body.

use std::io::Read;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use floe_world::{Buffer, Pool};
use http_body_util::BodyExt;

use super::problem::{self, Problem};
use crate::listen::Limits;

/// What a body may take.
#[derive(Clone, Debug)]
pub(crate) struct Bounds {
    /// Bytes, before and after decompression.
    pub(crate) bytes: usize,
    /// The setting that says so, if one does.
    pub(crate) setting: Option<&'static str>,
    /// Between two pieces.
    pub(crate) stall: Duration,
    /// In all.
    pub(crate) time: Duration,
    /// Where its memory comes from.
    pub(crate) pool: Pool,
}

/// Largest body that describes something: a registration, a topic.
pub(super) const DOCUMENT_BYTES_MAX: usize = 64 * 1024;
/// First piece of a body; larger ones follow as it comes.
const FIRST_BYTES: usize = 4096;
/// How long a body waits for memory.
pub(super) const MEMORY_WAIT: Duration = Duration::from_secs(5);

impl Bounds {
    pub(crate) fn new(bytes: usize, limits: &Limits, pool: Pool) -> Self {
        Self {
            bytes,
            setting: None,
            stall: limits.body_stall,
            time: limits.body,
            pool,
        }
    }

    /// The same, by a setting that an operator can raise.
    pub(crate) fn set_by(self, setting: &'static str) -> Self {
        Self {
            setting: Some(setting),
            ..self
        }
    }

    fn empty(&self) -> Problem {
        self.refusal("the body is empty: send one")
    }

    /// `told` is what the body says of itself, or what is known of it where reading ended.
    fn too_large(&self, told: &str) -> Problem {
        let raise = self.setting.map(|setting| format!(", or raise {setting}"));
        let raise = raise.unwrap_or_default();
        self.refusal(&format!("the body {told}: send less per request{raise}"))
    }

    fn refusal(&self, why: &str) -> Problem {
        Problem::bad(
            "invalid-length",
            format!(
                "Content length must be greater than 0 and at most {} bytes; {why}",
                self.bytes
            ),
        )
        .with("limit", self.bytes)
    }
}

/// Refuses a body in a transfer coding that nothing here undoes, which is any but `chunked` (RFC 9112, 6.1). One that does
/// not end with `chunked` has no end that could be told, and is refused below, with 400.
pub(super) async fn check_transfer(request: Request, next: Next) -> Response {
    let codings = list(request.headers(), &header::TRANSFER_ENCODING);
    if codings.is_empty() || codings == ["chunked"] {
        return next.run(request).await;
    }
    let codings = codings.join(", ");
    Problem::new(
        StatusCode::NOT_IMPLEMENTED,
        "unsupported-transfer-coding",
        format!(
            "Transfer-Encoding '{}' is not supported; send the body chunked or with its Content-Length, and compressed with \
             Content-Encoding gzip or zstd, or not at all",
            problem::shown(&codings)
        ),
    )
    .into_response()
}

/// The elements of a header that is a list, over all its lines, in lower case (RFC 9110, 5.6.1).
fn list(headers: &HeaderMap, name: &HeaderName) -> Vec<String> {
    let lines = headers.get_all(name).iter();
    let elements = lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b','));
    elements
        .map(|element| String::from_utf8_lossy(element).trim().to_ascii_lowercase())
        .filter(|element| !element.is_empty())
        .collect()
}

/// Reads a body that must not be empty.
pub(crate) async fn read(
    headers: &HeaderMap,
    body: Body,
    bounds: &Bounds,
) -> Result<Bytes, Problem> {
    let bytes = read_any(headers, body, bounds).await?;
    if bytes.is_empty() {
        return Err(bounds.empty());
    }
    Ok(bytes)
}

/// Reads a body that may be empty.
pub(crate) async fn read_any(
    headers: &HeaderMap,
    body: Body,
    bounds: &Bounds,
) -> Result<Bytes, Problem> {
    let declared = headers
        .get(header::CONTENT_LENGTH)
        .and_then(|v| v.to_str().ok())
        .and_then(|v| v.parse::<u64>().ok());
    if let Some(declared) = declared.filter(|declared| *declared > bounds.bytes as u64) {
        return Err(bounds.too_large(&format!("has {declared}")));
    }
    let encoding = Encoding::of(headers)?;
    let declared = declared.map_or(bounds.bytes, |d| d as usize);
    let raw = tokio::time::timeout(bounds.time, collect(body, declared, bounds))
        .await
        .map_err(|_| {
            late(format!(
                "the body did not end within {} s",
                bounds.time.as_secs()
            ))
        })??;
    if encoding == Encoding::Identity || raw.is_empty() {
        return Ok(raw);
    }
    let out = piece(&bounds.pool, bounds.bytes).await?;
    encoding.decode(&raw, out, bounds)
}

async fn collect(mut body: Body, declared: usize, bounds: &Bounds) -> Result<Bytes, Problem> {
    let mut gathered: Option<Buffer> = None;
    let mut len = 0;
    loop {
        let frame = tokio::time::timeout(bounds.stall, body.frame())
            .await
            .map_err(|_| {
                late(format!(
                    "nothing of the body came for {} s",
                    bounds.stall.as_secs()
                ))
            })?;
        let Some(frame) = frame else { break };
        let frame = frame.map_err(|e| {
            Problem::bad(
                "incomplete-body",
                format!("the body broke off: {e}; send it again"),
            )
        })?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        if len + data.len() > bounds.bytes {
            return Err(bounds.too_large("has more"));
        }
        let mut into = match gathered.take() {
            Some(into) if into.len() >= len + data.len() => into,
            smaller => {
                let wish = smaller.as_ref().map_or(FIRST_BYTES, |s| s.len() * 8);
                let mut larger =
                    piece(&bounds.pool, wish.min(declared).max(len + data.len())).await?;
                if let Some(smaller) = smaller {
                    larger[..len].copy_from_slice(&smaller[..len]);
                }
                larger
            }
        };
        into[len..len + data.len()].copy_from_slice(&data);
        len += data.len();
        gathered = Some(into);
    }
    Ok(gathered.map_or_else(Bytes::new, |g| g.freeze(len)))
}

/// A piece, after a bounded wait.
pub(crate) async fn piece(pool: &Pool, len: usize) -> Result<Buffer, Problem> {
    if let Some(piece) = pool.try_get(len) {
        return Ok(piece);
    }
    // A piece is the next power of two, at most twice as large.
    if len > pool.limit() / 2 {
        return Err(Problem::later(
            format!(
                "the memory budget has {} bytes for requests, {len} are needed; send less, or raise the memory limit",
                pool.limit()
            ),
            60,
        ));
    }
    tokio::time::timeout(MEMORY_WAIT, pool.get(len))
        .await
        .map_err(|_| {
            Problem::later(
                "the memory for requests and answers is in use; try again in a second",
                1,
            )
        })
}

fn late(what: String) -> Problem {
    Problem::new(
        StatusCode::REQUEST_TIMEOUT,
        "slow-body",
        what + "; send it without pauses, or in smaller pieces",
    )
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Encoding {
    Identity,
    Gzip,
    Zstd,
}

impl Encoding {
    fn of(headers: &HeaderMap) -> Result<Self, Problem> {
        let mut codings = list(headers, &header::CONTENT_ENCODING);
        codings.retain(|coding| coding != "identity");
        let codings: Vec<&str> = codings.iter().map(String::as_str).collect();
        match codings[..] {
            [] => Ok(Self::Identity),
            ["gzip" | "x-gzip"] => Ok(Self::Gzip),
            ["zstd"] => Ok(Self::Zstd),
            _ => Err(Problem::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "unsupported-encoding",
                format!(
                    "Content-Encoding '{}' is not supported; use gzip, zstd or none",
                    problem::shown(&codings.join(", "))
                ),
            )),
        }
    }

    fn decode(self, raw: &[u8], mut out: Buffer, bounds: &Bounds) -> Result<Bytes, Problem> {
        let limit = bounds.bytes.min(out.len());
        let decoded = match self {
            Self::Identity => Ok(None),
            Self::Gzip => inflate(raw, &mut out[..limit]),
            Self::Zstd => match zstd::bulk::decompress_to_buffer(raw, &mut out[..limit]) {
                Ok(len) => Ok(Some(len)),
                Err(e) if e.to_string().contains("too small") => Ok(None),
                Err(e) => Err(e),
            },
        };
        match decoded {
            Ok(Some(len)) => Ok(out.freeze(len)),
            Ok(None) => Err(bounds.too_large("decompresses to more")),
            Err(e) => Err(Problem::bad(
                "undecodable-body",
                format!("the body does not decompress as its Content-Encoding says: {e}"),
            )),
        }
    }
}

/// Fills `out`; `None` when there is more than fits.
fn inflate(raw: &[u8], out: &mut [u8]) -> std::io::Result<Option<usize>> {
    let mut decoder = flate2::bufread::MultiGzDecoder::new(raw);
    let mut len = 0;
    loop {
        if len == out.len() {
            return Ok((decoder.read(&mut [0; 1])? == 0).then_some(len));
        }
        match decoder.read(&mut out[len..])? {
            0 => return Ok(Some(len)),
            read => len += read,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;
    use hyper::body::Frame;
    use std::io::Write;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    fn bounds(bytes: usize) -> Bounds {
        Bounds {
            bytes,
            setting: Some("http.produce.body.max.bytes"),
            stall: Duration::from_millis(20),
            time: Duration::from_millis(200),
            pool: Pool::new(16 * 1024 * 1024),
        }
    }

    fn encoded(encoding: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(header::CONTENT_ENCODING, HeaderValue::from_static(encoding))])
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        out.write_all(bytes).unwrap();
        out.finish().unwrap()
    }

    #[tokio::test]
    async fn a_declared_length_above_the_limit_is_refused_before_a_byte_is_read() {
        let headers = HeaderMap::from_iter([(header::CONTENT_LENGTH, HeaderValue::from(11))]);
        let unread = chunks(Vec::new(), true);
        let problem = read(&headers, unread, &bounds(10)).await.unwrap_err();
        assert_eq!(problem.status, StatusCode::BAD_REQUEST);
        assert_eq!(
            problem.detail,
            "Content length must be greater than 0 and at most 10 bytes; the body has 11: send less per request, or \
             raise http.produce.body.max.bytes"
        );
    }

    /// Chunks, then the end or silence for ever.
    struct Chunks(std::vec::IntoIter<Vec<u8>>, bool);

    impl axum::body::HttpBody for Chunks {
        type Data = Bytes;
        type Error = std::convert::Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
            match self.0.next() {
                Some(chunk) => Poll::Ready(Some(Ok(Frame::data(chunk.into())))),
                None if self.1 => Poll::Pending,
                None => Poll::Ready(None),
            }
        }
    }

    fn chunks(chunks: Vec<Vec<u8>>, silent: bool) -> Body {
        Body::new(Chunks(chunks.into_iter(), silent))
    }

    #[tokio::test]
    async fn a_body_without_length_is_read_up_to_the_limit_and_not_beyond() {
        let none = HeaderMap::new();
        let exact = chunks(vec![vec![1; 5000], vec![2; 5000]], false);
        let read_back = read(&none, exact, &bounds(10_000)).await.unwrap();
        assert_eq!(
            (read_back.len(), read_back[4999], read_back[5000]),
            (10_000, 1, 2)
        );
        let above = chunks(vec![vec![1; 5000], vec![2; 5001]], true);
        assert!(read(&none, above, &bounds(10_000)).await.is_err());
        let empty = chunks(Vec::new(), false);
        let problem = read(&none, empty, &bounds(10)).await.unwrap_err();
        assert_eq!(problem.kind, "invalid-length");
        assert_eq!(
            problem.detail,
            "Content length must be greater than 0 and at most 10 bytes; the body is empty: send one"
        );
    }

    #[tokio::test]
    async fn a_body_that_stops_coming_is_given_up() {
        let silent = chunks(vec![vec![1; 10]], true);
        let problem = read(&HeaderMap::new(), silent, &bounds(100))
            .await
            .unwrap_err();
        assert_eq!(
            (problem.status, problem.kind),
            (StatusCode::REQUEST_TIMEOUT, "slow-body")
        );
    }

    #[tokio::test]
    async fn compressed_bodies_count_as_what_they_become() {
        let plain = vec![b'x'; 100_000];
        for (encoding, packed) in [
            ("gzip", gzip(&plain)),
            ("zstd", zstd::bulk::compress(&plain, 3).unwrap()),
        ] {
            let whole = read(&encoded(encoding), packed.clone().into(), &bounds(100_000)).await;
            assert_eq!(whole.unwrap(), plain);
            let bomb = read(&encoded(encoding), packed.clone().into(), &bounds(99_999)).await;
            assert_eq!(bomb.unwrap_err().kind, "invalid-length", "{encoding}");
            let garbage = read(&encoded(encoding), vec![7; 50].into(), &bounds(100)).await;
            assert_eq!(garbage.unwrap_err().kind, "undecodable-body", "{encoding}");
            let cut = packed[..packed.len() - 3].to_vec();
            let cut = read(&encoded(encoding), cut.into(), &bounds(100_000)).await;
            assert_eq!(cut.unwrap_err().kind, "undecodable-body", "{encoding}");
        }
    }

    #[tokio::test]
    async fn a_body_in_another_or_a_second_coding_is_refused_by_name() {
        let two = HeaderMap::from_iter(["identity", "gzip", "zstd"].map(|coding| {
            let name = header::CONTENT_ENCODING;
            (name, HeaderValue::from_static(coding))
        }));
        let lines = [(two, "gzip, zstd")];
        let alone = ["br", "gzip, gzip", "gzip;q=1"].map(|value| (encoded(value), value));
        for (headers, named) in lines.into_iter().chain(alone) {
            let refused = read(&headers, vec![1].into(), &bounds(9)).await;
            let problem = refused.unwrap_err();
            assert_eq!(problem.status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
            let expected =
                format!("Content-Encoding '{named}' is not supported; use gzip, zstd or none");
            assert_eq!(problem.detail, expected);
        }
        let plain = read(&encoded("Identity, "), vec![1].into(), &bounds(9)).await;
        assert_eq!(&plain.unwrap()[..], [1]);
    }

    #[tokio::test]
    async fn without_memory_a_body_is_refused_after_a_wait_and_holds_nothing() {
        let mut bounds = bounds(4096);
        bounds.pool = Pool::new(8192);
        bounds.time = Duration::from_secs(20);
        let held = bounds.pool.try_get(8192).unwrap();
        let none = HeaderMap::new();
        let waiting = read(&none, vec![1; 10].into(), &bounds);
        let freed = async {
            tokio::task::yield_now().await;
            drop(held);
        };
        let (body, ()) = tokio::join!(waiting, freed);
        assert_eq!(body.unwrap().len(), 10);
        assert_eq!(bounds.pool.used(), 0);
    }
}
