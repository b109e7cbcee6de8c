//! A partition's log turned into a table: the fold, its snapshot, its compaction.
