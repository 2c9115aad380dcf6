//! Helm releases.

pub mod patch;
pub mod readiness;
