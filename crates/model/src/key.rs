//! Which partition a key belongs to: the same answer over every door, and the one of Kafka's default
//! partitioner: `toPositive(murmur2(key)) mod N`.

use crate::PartitionIndex;

/// MurmurHash2, 32 bit, seed `0x9747b28c`, as Kafka's clients compute it.
pub fn murmur2(data: &[u8]) -> i32 {
    const M: u32 = 0x5bd1_e995;
    const R: u32 = 24;
    let mut hash = 0x9747_b28c_u32 ^ data.len() as u32;
    let mut words = data.chunks_exact(4);
    for word in &mut words {
        let mut k = u32::from_le_bytes([word[0], word[1], word[2], word[3]]).wrapping_mul(M);
        k ^= k >> R;
        hash = hash.wrapping_mul(M) ^ k.wrapping_mul(M);
    }
    let rest = words.remainder();
    if !rest.is_empty() {
        for (place, byte) in rest.iter().enumerate() {
            hash ^= u32::from(*byte) << (8 * place);
        }
        hash = hash.wrapping_mul(M);
    }
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(M);
    (hash ^ (hash >> 15)) as i32
}

/// The partition of `key` among `partitions` (at least 1).
pub fn partition_for_key(key: &[u8], partitions: u32) -> PartitionIndex {
    assert!(partitions > 0, "a topic has at least one partition");
    PartitionIndex((murmur2(key) & 0x7fff_ffff) as u32 % partitions)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn murmur2_equals_kafkas_published_vectors() {
        // org.apache.kafka.common.utils.UtilsTest
        assert_eq!(murmur2(b"21"), -973_932_308);
        assert_eq!(murmur2(b"foobar"), -790_332_482);
        assert_eq!(murmur2(b"a-little-bit-long-string"), -985_981_536);
        assert_eq!(murmur2(b"a-little-bit-longer-string"), -1_486_304_829);
    }

    #[test]
    fn a_key_maps_to_the_same_partition_of_one_and_inside_any_count() {
        assert_eq!(partition_for_key(b"x", 1), PartitionIndex(0));
        for n in 1..50 {
            assert!(partition_for_key(b"some key", n).0 < n);
        }
    }
}
