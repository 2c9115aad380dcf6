//! The Kubernetes side over `kube::Client`: requests that can be stopped, kinds, objects, permissions.
//!
//! There is no trait in front of Kubernetes: `kube::Client` is the seam. Build it with kube's `default_retry` off; what
//! may be sent twice is decided here.

mod access;
mod error;
mod mapping;
mod object;
mod parallel;
mod stop;
mod wire;

pub use access::{Access, Permission};
pub(crate) use access::{identity, lacking};
pub use error::{Cause, Error};
pub use mapping::{Kinds, Resource};
pub(crate) use object::Place;
pub use object::{Merge, WriteMode};
pub use stop::{Stop, Stopped};
pub use wire::{Requests, Wire};

pub(crate) use mapping::encode;
pub(crate) use parallel::{all, all_to_end};
pub(crate) use wire::{Call, Lines, Part, Purpose};
