//! A node as a library (assembly, configuration, commands) and the thin binary that calls it.
