//! Consumer groups, by whatever door their members came.

/// The node's consumer groups.
#[derive(Debug, Default)]
pub struct Groups;
