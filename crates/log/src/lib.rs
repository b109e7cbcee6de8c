//! One node's partitions on one disk: journal, segments, indexes, recovery, retention.
