//! Empty on purpose: only the dependency is wanted.
