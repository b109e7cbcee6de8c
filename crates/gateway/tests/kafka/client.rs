//! A Kafka client of a few lines: frames out, frames in, nothing hidden.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use kacrab_protocol::ProtocolError;
use kacrab_protocol::version::{request_header_version, response_header_version};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Longer than any wait a test expects.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct Client {
    pub(crate) stream: TcpStream,
    correlation: i32,
}

/// A frame with its length, for a message encoded by `write`.
pub(crate) fn frame(
    key: i16,
    version: i16,
    correlation: i32,
    write: impl FnOnce(&mut BytesMut, i16) -> Result<(), ProtocolError>,
) -> Bytes {
    let mut out = BytesMut::new();
    out.put_i32(0);
    out.put_i16(key);
    out.put_i16(version);
    out.put_i32(correlation);
    out.put_i16(4);
    out.extend_from_slice(b"test");
    if request_header_version(key, version) == 2 {
        out.put_u8(0);
    }
    write(&mut out, version).unwrap();
    let length = out.len() as i32 - 4;
    out[..4].copy_from_slice(&length.to_be_bytes());
    out.freeze()
}

impl Client {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        Self {
            stream: TcpStream::connect(address).await.unwrap(),
            correlation: 0,
        }
    }

    pub(crate) async fn send_raw(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
    }

    /// Sends bytes, if the node still takes them.
    pub(crate) async fn try_send_raw(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.stream.write_all(bytes).await
    }

    /// Sends a request; its correlation id.
    pub(crate) async fn send(
        &mut self,
        key: i16,
        version: i16,
        write: impl FnOnce(&mut BytesMut, i16) -> Result<(), ProtocolError>,
    ) -> i32 {
        self.correlation += 1;
        let frame = frame(key, version, self.correlation, write);
        self.send_raw(&frame).await;
        self.correlation
    }

    /// The next frame: its correlation id, and what is behind it.
    pub(crate) async fn receive(&mut self) -> (i32, Bytes) {
        let mut length = [0; 4];
        timeout(PATIENCE, self.stream.read_exact(&mut length))
            .await
            .unwrap()
            .unwrap();
        let mut body = vec![0; i32::from_be_bytes(length) as usize];
        timeout(PATIENCE, self.stream.read_exact(&mut body))
            .await
            .unwrap()
            .unwrap();
        let mut body = Bytes::from(body);
        (body.get_i32(), body)
    }

    /// Sends a request and decodes its answer.
    pub(crate) async fn ask<T>(
        &mut self,
        key: i16,
        version: i16,
        write: impl FnOnce(&mut BytesMut, i16) -> Result<(), ProtocolError>,
        read: impl FnOnce(&mut Bytes, i16) -> Result<T, ProtocolError>,
    ) -> T {
        let sent = self.send(key, version, write).await;
        let (correlation, mut body) = self.receive().await;
        assert_eq!(correlation, sent);
        if response_header_version(key, version) == 1 {
            assert_eq!(body.get_u8(), 0);
        }
        let answer = read(&mut body, version).unwrap();
        assert!(body.is_empty(), "bytes behind the answer");
        answer
    }

    /// Waits until the other side closes, throwing away what still comes.
    pub(crate) async fn closed(&mut self) {
        let mut rest = [0; 4096];
        let closing = async { while let Ok(1..) = self.stream.read(&mut rest).await {} };
        timeout(PATIENCE, closing).await.unwrap();
    }
}
