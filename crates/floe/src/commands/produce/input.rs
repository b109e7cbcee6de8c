//! The standard input in pieces of whole lines.

use std::io::{self, Read as _};

use tokio::sync::mpsc;

/// Bytes read at once.
const PIECE_BYTES: usize = 256 * 1024;
/// Longest line; a node refuses larger records by default anyway.
const LINE_BYTES_MAX: usize = 64 << 20;

/// Whole lines, the last of the input perhaps without its end; or why there are no more.
pub(super) type Piece = io::Result<Vec<u8>>;

/// Reads to the end, or until nobody wants more.
pub(super) fn read(pieces: &mpsc::Sender<Piece>) {
    let mut input = io::stdin().lock();
    let mut rest = Vec::new();
    loop {
        let filled = rest.len();
        rest.resize(filled + PIECE_BYTES, 0);
        let piece = match input.read(&mut rest[filled..]) {
            Ok(0) => {
                rest.truncate(filled);
                if !rest.is_empty() {
                    // Nobody there means that sending has failed and says so.
                    drop(pieces.blocking_send(Ok(rest)));
                }
                return;
            }
            Ok(count) => {
                rest.truncate(filled + count);
                let Some(end) = rest.iter().rposition(|byte| *byte == b'\n') else {
                    if rest.len() > LINE_BYTES_MAX {
                        let error = format!("a line is longer than {LINE_BYTES_MAX} bytes");
                        drop(pieces.blocking_send(Err(io::Error::other(error))));
                        return;
                    }
                    continue;
                };
                let next = rest.split_off(end + 1);
                Ok(std::mem::replace(&mut rest, next))
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                rest.truncate(filled);
                continue;
            }
            Err(error) => Err(error),
        };
        let is_last = piece.is_err();
        if pieces.blocking_send(piece).is_err() || is_last {
            return;
        }
    }
}
