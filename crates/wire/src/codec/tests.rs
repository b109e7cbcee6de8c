use super::*;
use proptest::prelude::*;

proptest! {
    #[test]
    fn every_codec_gives_back_what_it_took(plain in prop::collection::vec(0_u8..4, 0..200_000)) {
        let mut scratch = Scratch::default();
        for codec in Codec::ALL {
            let packed = compress(codec, &plain);
            prop_assert_eq!(decompress(codec, &packed, &mut scratch).unwrap(), &plain[..]);
        }
    }

    #[test]
    fn any_bytes_are_decompressed_or_refused(packed: Vec<u8>) {
        let mut scratch = Scratch::new(1 << 16);
        for codec in Codec::ALL {
            if let Ok(plain) = decompress(codec, &packed, &mut scratch) {
                prop_assert!(codec == Codec::None || plain.len() <= 1 << 16);
            }
        }
    }

    #[test]
    fn one_flipped_byte_is_decompressed_or_refused(at in 0_usize..1_000, bit in 0_u8..8) {
        let plain: Vec<u8> = (0..20_000_u32).map(|n| (n / 7 % 251) as u8).collect();
        let mut scratch = Scratch::new(1 << 20);
        for codec in Codec::ALL {
            let mut packed = compress(codec, &plain);
            let at = at % packed.len();
            packed[at] ^= 1 << bit;
            drop(decompress(codec, &packed, &mut scratch).map(<[u8]>::len));
        }
    }
}

#[test]
fn output_stops_exactly_at_the_limit() {
    let plain = vec![7_u8; 3 << 20];
    for codec in &Codec::ALL[1..] {
        let packed = compress(*codec, &plain);
        let mut exact = Scratch::new(plain.len());
        assert_eq!(
            decompress(*codec, &packed, &mut exact).unwrap().len(),
            plain.len(),
            "{codec:?}"
        );
        let mut below = Scratch::new(plain.len() - 1);
        assert!(
            matches!(
                decompress(*codec, &packed, &mut below),
                Err(Error::TooLarge { .. })
            ),
            "{codec:?}"
        );
    }
}

/// Small ones, large ones and the border between.
#[test]
fn a_limit_holds_to_the_byte_wherever_it_lies() {
    for limit in [
        0,
        1,
        65_536,
        out::SMALL_BYTES_MAX - 1,
        out::SMALL_BYTES_MAX,
        9 << 20,
    ] {
        for codec in &Codec::ALL[1..] {
            let mut scratch = Scratch::new(limit);
            let exact = compress(*codec, &vec![7_u8; limit]);
            let plain = decompress(*codec, &exact, &mut scratch).unwrap();
            assert_eq!(plain.len(), limit, "{codec:?}");
            let above = compress(*codec, &vec![7_u8; limit + 1]);
            let refused = decompress(*codec, &above, &mut scratch).unwrap_err();
            let said = format!("more than {limit} bytes");
            assert!(refused.to_string().contains(&said), "{codec:?}: {refused}");
            scratch.rest();
        }
    }
}

#[test]
fn a_large_buffer_is_not_kept() {
    let plain = vec![7_u8; 9 << 20];
    for codec in &Codec::ALL[1..] {
        let mut scratch = Scratch::default();
        let packed = compress(*codec, &plain);
        let given = decompress(*codec, &packed, &mut scratch).unwrap();
        assert_eq!(given.len(), plain.len());
        scratch.rest();
        assert!(scratch.out.bytes.capacity() <= KEPT_BYTES_MAX, "{codec:?}");
        assert!(
            scratch
                .zstd
                .is_none_or(|context| context.sizeof() <= KEPT_BYTES_MAX)
        );
    }
}

#[test]
fn one_large_buffer_is_filled_at_a_time_and_small_ones_beside_it() {
    use std::sync::mpsc::{RecvTimeoutError, channel};
    let large = compress(Codec::Gzip, &vec![7_u8; 9 << 20]);
    let small = compress(Codec::Gzip, &vec![7_u8; 1 << 20]);
    let mut first = Scratch::default();
    decompress(Codec::Gzip, &large, &mut first).unwrap();
    std::thread::scope(|threads| {
        let (done, is_done) = channel();
        threads.spawn(move || {
            let mut other = Scratch::default();
            for packed in [&small, &large] {
                let len = decompress(Codec::Gzip, packed, &mut other).unwrap().len();
                done.send(len).unwrap();
            }
        });
        assert_eq!(is_done.recv(), Ok(1 << 20));
        let waits = is_done.recv_timeout(std::time::Duration::from_millis(50));
        assert_eq!(waits, Err(RecvTimeoutError::Timeout));
        first.rest();
        assert_eq!(is_done.recv(), Ok(9 << 20));
    });
}

#[test]
fn cut_short_output_is_refused() {
    let plain: Vec<u8> = (0..100_000_u32).map(|n| ((n * n) >> 3) as u8).collect();
    let mut scratch = Scratch::default();
    for codec in &Codec::ALL[1..] {
        let packed = compress(*codec, &plain);
        for cut in [1, packed.len() / 2, packed.len() - 1] {
            assert!(
                decompress(*codec, &packed[..cut], &mut scratch).is_err(),
                "{codec:?} cut to {cut} of {}",
                packed.len()
            );
        }
    }
}

#[test]
fn raw_snappy_is_read_too() {
    let plain = b"some plain snappy, as librdkafka sends it, as librdkafka sends it";
    let packed = snap::raw::Encoder::new().compress_vec(plain).unwrap();
    let mut scratch = Scratch::default();
    assert_eq!(
        decompress(Codec::Snappy, &packed, &mut scratch).unwrap(),
        plain
    );
}

#[test]
fn a_snappy_length_that_lies_takes_no_memory() {
    let mut scratch = Scratch::default();
    let lie = [0xff, 0xff, 0xff, 0x0f, 0x00, 0x61];
    assert!(decompress(Codec::Snappy, &lie, &mut scratch).is_err());
    assert_eq!(scratch.out.bytes.capacity(), 0);
}
