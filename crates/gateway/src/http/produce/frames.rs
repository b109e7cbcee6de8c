//! Framed bodies (`application/vnd.polar.producer.frames`): repeated {length u32 big endian, bytes}.

use super::Problem;

/// The records; the first frame that reaches beyond the body ends them with a refusal.
pub(super) fn frames(body: &[u8]) -> impl Iterator<Item = Result<&[u8], Problem>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        if at >= body.len() {
            return None;
        }
        let frame = frame(body, at);
        at = match &frame {
            Ok(frame) => at + 4 + frame.len(),
            Err(_) => body.len(),
        };
        Some(frame)
    })
}

fn frame(body: &[u8], at: usize) -> Result<&[u8], Problem> {
    let rest = &body[at..];
    let refused = |what: String| {
        Problem::bad(
            "invalid-frame",
            format!(
                "frame at byte {at} of {}: {what}; each frame is a 4-byte big-endian length and that many bytes",
                body.len()
            ),
        )
    };
    let Some((length, rest)) = rest.split_first_chunk::<4>() else {
        return Err(refused(format!(
            "{} bytes are left for its length",
            rest.len()
        )));
    };
    let length = u32::from_be_bytes(*length) as usize;
    rest.get(..length).ok_or_else(|| {
        refused(format!(
            "it announces {length} bytes, {} are left",
            rest.len()
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_taken_apart_and_a_length_beyond_the_body_is_refused() {
        let body = [0, 0, 0, 2, b'a', b'b', 0, 0, 0, 0, 0, 0, 0, 1, b'c'];
        let all: Vec<_> = frames(&body).map(Result::unwrap).collect();
        assert_eq!(all, [&b"ab"[..], b"", b"c"]);
        for wrong in [&body[..5], &body[..9], &[0xff; 4], &[0xff; 9], &[0]] {
            let last = frames(wrong).last().unwrap();
            assert_eq!(last.unwrap_err().kind, "invalid-frame", "{wrong:?}");
        }
    }
}
