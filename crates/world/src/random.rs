//! Chance: ids and jitter. The simulator gives a seeded one.

/// A source of random bits. Two implementations ship: [`System`] and [`Seeded`].
pub trait Random: Send + Sync + 'static {
    /// 64 random bits.
    fn next_u64(&self) -> u64;

    /// 128 random bits as bytes: a fresh id.
    fn id(&self) -> [u8; 16] {
        let mut id = [0; 16];
        id[..8].copy_from_slice(&self.next_u64().to_le_bytes());
        id[8..].copy_from_slice(&self.next_u64().to_le_bytes());
        id
    }
}

/// The kernel's generator.
#[derive(Debug, Default)]
pub struct System;

impl Random for System {
    #[allow(
        clippy::disallowed_methods,
        reason = "this is the one place that asks the kernel for chance"
    )]
    fn next_u64(&self) -> u64 {
        let mut bytes = [0; 8];
        getrandom::fill(&mut bytes).expect("the kernel gives random bytes once the machine is up");
        u64::from_le_bytes(bytes)
    }
}

/// SplitMix64 (Steele, Lea, Flood 2014): the same seed gives the same run.
#[derive(Debug)]
pub struct Seeded(std::sync::atomic::AtomicU64);

impl Seeded {
    /// From a seed.
    pub fn new(seed: u64) -> Self {
        Self(std::sync::atomic::AtomicU64::new(seed))
    }
}

impl Random for Seeded {
    fn next_u64(&self) -> u64 {
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut z = self
            .0
            .fetch_add(STEP, std::sync::atomic::Ordering::SeqCst)
            .wrapping_add(STEP);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}
