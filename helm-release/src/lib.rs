//! Reads, explains and repairs Helm releases, compatible with the Helm SDK.
//!
//! Helm's lock is "the newest record says pending": kill Helm in the middle of an operation, and the release is locked
//! for ever. This crate decides from evidence what such a release is and what to do about it, and does it.
//!
//! # The map
//!
//! | layer | modules | |
//! | --- | --- | --- |
//! | nouns | [`release`], [`manifest`] | what Helm stores; plain data |
//! | decisions | [`backup`], [`codec`], [`plan`], [`patch`], [`diff`], [`readiness`] | pure functions: no I/O, no clock, no logging |
//! | shell | `storage`, `cluster`, `action` | async over `kube::Client`, stoppable at every await; feature `kube` |
//!
//! Start at `action::Client`: `plan` looks and decides, `repair` acts, `restore` undoes. With `default-features = false` the nouns and the
//! decisions build without kube and tokio.
//!
//! # A decision
//!
//! ```
//! use chrono::TimeDelta;
//! use helm_release::codec;
//! use helm_release::plan::{Author, Evidence, Intent, NamespacePhase, Policy, Verdict, decide};
//! use helm_release::release::{Content, Entry, History, Status, Stored};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // What Helm 4 left in ConfigMaps when it was killed in the middle of an upgrade.
//! let record = |file: &str, key: &str| -> Result<Entry, Box<dyn std::error::Error>> {
//!     let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../testdata/records/helm4-ssa-configmap");
//!     let object: serde_json::Value = serde_json::from_slice(&std::fs::read(format!("{folder}/{file}"))?)?;
//!     let release = codec::decode(object["data"]["release"].as_str().ok_or("no record")?.as_bytes())?;
//!     let stored = Stored { key: key.into(), ..Stored::default() };
//!     Ok(Entry::place(stored, Content::Readable(Box::new(release))).ok_or("no revision")?)
//! };
//! let deployed = record("deployed.json", "sh.helm.release.v1.web.v1")?;
//! let pending = record("pending-upgrade.json", "sh.helm.release.v1.web.v2")?;
//! assert_eq!(pending.status(), Some(&Status::PendingUpgrade));
//! let written = pending.release().and_then(|release| release.info().last_deployed).ok_or("no time")?;
//! let history = History::new("web".parse()?, "shop".parse()?, vec![deployed, pending]);
//!
//! // Its author may be at work: two minutes of silence prove nothing.
//! let evidence = Evidence {
//!     now: written + TimeDelta::minutes(2),
//!     author: Author { last_sign: Some(written), ..Author::default() },
//!     hooks: vec![],
//!     objects: vec![],
//!     deployer: None,
//!     namespace: NamespacePhase::Active,
//!     unknown_kinds: vec![],
//!     elsewhere: None,
//!     weaker: vec![],
//! };
//! let plan = decide(&history, &evidence, Intent::Usable, &Policy::default());
//! assert_eq!(plan.verdict, Verdict::Wait);
//! # Ok(())
//! # }
//! ```
//!
//! # What it is not
//!
//! No wrapper around the `helm` binary, and no second Helm: it renders, installs and upgrades nothing yet. It does not
//! exclude a foreign Helm, which knows no lock but its own.

pub mod backup;
pub mod codec;
pub mod diff;
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

/// Compiles the examples of the README.
#[cfg(all(doctest, feature = "kube"))]
#[doc = include_str!("../../README.md")]
mod readme {}
