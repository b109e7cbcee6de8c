//! What commands print: tables for people, JSON for programs, and a quiet end when the reader has gone.

use std::io::{self, IsTerminal, Write};

use comfy_table::{Table, presets};
use serde_json::Value;

use crate::exit::{Code, Failure, Outcome};

/// The standard output, buffered.
pub struct Output {
    out: io::BufWriter<io::StdoutLock<'static>>,
}

impl Output {
    /// The standard output of this process.
    pub fn stdout() -> Self {
        Self {
            out: io::BufWriter::with_capacity(64 * 1024, io::stdout().lock()),
        }
    }

    /// Whether a person looks at it.
    pub fn is_terminal() -> bool {
        io::stdout().is_terminal()
    }

    /// Bytes and a line end.
    pub fn line(&mut self, line: impl AsRef<[u8]>) -> Outcome {
        let written = self.out.write_all(line.as_ref());
        ended(written.and_then(|()| self.out.write_all(b"\n")))
    }

    /// Bytes as they are.
    pub fn bytes(&mut self, bytes: &[u8]) -> Outcome {
        ended(self.out.write_all(bytes))
    }

    /// Hands over what is buffered.
    pub fn flush(&mut self) -> Outcome {
        ended(self.out.flush())
    }

    /// A value as JSON with line breaks.
    pub fn json(&mut self, value: &Value) -> Outcome {
        self.line(format!("{value:#}"))?;
        self.flush()
    }

    /// A table with a heading; `empty` is said instead of a table without rows.
    pub fn table(&mut self, heading: &[&str], rows: Vec<Vec<String>>, empty: &str) -> Outcome {
        if rows.is_empty() {
            self.line(empty)?;
            return self.flush();
        }
        let mut table = Table::new();
        table.load_preset(presets::NOTHING);
        table.set_header(heading.iter().map(|word| word.to_uppercase()));
        for row in rows {
            table.add_row(row);
        }
        // Columns stand two apart and begin at the left margin.
        for column in table.column_iter_mut() {
            column.set_padding((0, 2));
        }
        for line in table.lines() {
            self.line(line.trim_end())?;
        }
        self.flush()
    }
}

/// The next program in a pipe that has read enough is a quiet end, not a failure.
fn ended(written: io::Result<()>) -> Outcome {
    written.map_err(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => Failure::new(Code::Done, ""),
        _ => Failure::failed(format!("cannot write to the standard output: {error}")),
    })
}

/// A number with a comma every three digits, for people.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_grouped_by_three() {
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (1000, "1,000"),
            (1_234_567, "1,234,567"),
        ] {
            assert_eq!(grouped(number), text);
        }
    }
}
