//! Reads, repairs and drives Helm releases.

pub mod codec;
pub mod manifest;
pub mod patch;
pub mod plan;
pub mod readiness;
pub mod release;

#[cfg(feature = "kube")]
pub mod action;
#[cfg(feature = "kube")]
pub mod cluster;
#[cfg(feature = "kube")]
pub mod storage;
