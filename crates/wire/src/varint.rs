//! Variable-length integers of Kafka's record format: base 128, least significant group first, signed ones
//! zig-zag coded (KIP-98; Protocol Buffers encoding guide).
//!
//! Readers take a position and give the next one, so that a walk over records builds nothing.

/// Reads an unsigned one of at most 32 bits; `None` if the bytes end or it has more.
#[inline]
pub fn read_u32(bytes: &[u8], at: &mut usize) -> Option<u32> {
    let wide = read_u64(bytes, at)?;
    u32::try_from(wide).ok()
}

/// Reads an unsigned one of at most 64 bits; `None` if the bytes end or it has more.
#[inline]
pub fn read_u64(bytes: &[u8], at: &mut usize) -> Option<u64> {
    // Nearly all in a batch have one to three groups: read without a loop.
    let group = |byte: u8| u64::from(byte & 0x7f);
    match *bytes.get(*at..)? {
        [a, ..] if a < 0x80 => {
            *at += 1;
            Some(u64::from(a))
        }
        [a, b, ..] if b < 0x80 => {
            *at += 2;
            Some(group(a) | group(b) << 7)
        }
        [a, b, c, ..] if c < 0x80 => {
            *at += 3;
            Some(group(a) | group(b) << 7 | group(c) << 14)
        }
        _ => read_long(bytes, at),
    }
}

fn read_long(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let mut value = 0_u64;
    for group in 0..10 {
        let byte = *bytes.get(*at)?;
        *at += 1;
        if group == 9 && byte > 1 {
            return None;
        }
        value |= u64::from(byte & 0x7f) << (7 * group);
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

/// Reads a signed one of at most 32 bits.
#[inline]
pub fn read_i32(bytes: &[u8], at: &mut usize) -> Option<i32> {
    let raw = read_u32(bytes, at)?;
    Some((raw >> 1) as i32 ^ -((raw & 1) as i32))
}

/// Reads a signed one of at most 64 bits.
#[inline]
pub fn read_i64(bytes: &[u8], at: &mut usize) -> Option<i64> {
    let raw = read_u64(bytes, at)?;
    Some((raw >> 1) as i64 ^ -((raw & 1) as i64))
}

/// Appends an unsigned one.
pub fn write_u64(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a signed one; 32-bit values are written alike.
pub fn write_i64(out: &mut Vec<u8>, value: i64) {
    write_u64(out, ((value << 1) ^ (value >> 63)) as u64);
}

/// Bytes that [`write_i64`] takes.
pub fn len_i64(value: i64) -> usize {
    let raw = ((value << 1) ^ (value >> 63)) as u64;
    (64 - (raw | 1).leading_zeros() as usize).div_ceil(7)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_is_read_back_and_has_the_length_announced(value: i64) {
            let mut out = Vec::new();
            write_i64(&mut out, value);
            prop_assert_eq!(out.len(), len_i64(value));
            let mut at = 0;
            prop_assert_eq!(read_i64(&out, &mut at), Some(value));
            prop_assert_eq!(at, out.len());
            at = 0;
            let narrow = i32::try_from(value).ok();
            prop_assert_eq!(read_i32(&out, &mut at), narrow);
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
            let mut at = 0;
            if read_u64(&bytes, &mut at).is_some() {
                prop_assert!(at <= bytes.len());
            }
        }
    }

    #[test]
    fn endless_and_cut_numbers_are_refused() {
        assert_eq!(read_u64(&[0xff; 11], &mut 0), None);
        assert_eq!(read_u32(&[0xff, 0xff, 0xff, 0xff, 0x1f], &mut 0), None);
        assert_eq!(read_u32(&[0x80], &mut 0), None);
        assert_eq!(read_u32(&[], &mut 0), None);
    }
}
