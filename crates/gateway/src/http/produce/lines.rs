//! NDJSON bodies: one record a line; blank lines are none, and a line's end is not part of it.

/// The lines that are records, byte for byte.
pub(super) fn lines(body: &[u8]) -> impl Iterator<Item = &[u8]> {
    body.split(|byte| *byte == b'\n')
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
        .filter(|line| !line.iter().all(u8::is_ascii_whitespace))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blank_lines_are_no_records_and_line_ends_no_bytes() {
        let body = b"{\"a\":1}\n\n  \t\r\n{\"b\":2}\r\n\xff\n  x ";
        let all: Vec<_> = lines(body).collect();
        assert_eq!(all, [&b"{\"a\":1}"[..], b"{\"b\":2}", b"\xff", b"  x "]);
        assert_eq!(lines(b"\n\r\n \n").count(), 0);
    }
}
