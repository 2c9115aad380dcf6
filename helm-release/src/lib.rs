//! Reads, repairs and drives Helm releases.

pub mod codec;
pub mod release;
