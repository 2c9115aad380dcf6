//! Helm releases.
