//! What the catalog persists: commands, snapshots, descriptors.

use floe_cluster::format;

/// Any of the three: it is decoded or refused, and what is decoded is read the same once it is written again.
pub(crate) fn catalog(bytes: &[u8]) {
    if let Ok(command) = format::decode(bytes) {
        let again = format::encode(&command);
        assert_eq!(format::decode(&again).as_ref(), Ok(&command));
    }
    if let Ok(descriptor) = format::decode_descriptor(bytes) {
        let again = format::encode_descriptor(&descriptor);
        assert_eq!(format::decode_descriptor(&again), Ok(descriptor));
    }
    if let Ok(catalog) = format::decode_snapshot(bytes) {
        let again = format::encode_snapshot(&catalog);
        assert_eq!(format::decode_snapshot(&again).as_ref(), Ok(&catalog));
    }
}
