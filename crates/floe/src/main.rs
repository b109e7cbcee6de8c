//! The floe binary.
fn main() {}
