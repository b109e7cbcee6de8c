//! A node as a library (assembly, configuration, commands) and the thin binary that calls it.
//!
//! Guarantees: settings, flags, commands and exit codes are each declared once; their reference pages are made from the
//! declarations. Decides nothing about records, topics or groups.

pub mod client;
pub mod commands;
pub mod config;
pub mod exit;
mod logs;
pub mod node;
pub mod output;
