//! See `floe_fuzz_targets::http_produce`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| floe_fuzz_targets::http_produce(data));
