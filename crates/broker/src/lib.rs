//! A running node: drives log, catalog, groups and tables.
