//! Helm releases.

pub mod patch;
