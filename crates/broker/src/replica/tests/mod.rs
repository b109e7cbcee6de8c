//! Copies of one partition on several nodes: shipped logs, copies and exchanges over the network in memory and the simulated disk; only
//! the catalog's entries are handed in.

mod control;
mod random;
mod rig;
mod scenarios;
