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
//! | decisions | [`codec`], [`plan`], [`patch`], [`readiness`] | pure functions: no I/O, no clock, no logging |
//! | shell | `storage`, `cluster`, `action` | async over `kube::Client`, stoppable at every await; feature `kube` |
//!
//! Start at `action::Client`: `plan` looks and decides, `repair` acts. With `default-features = false` the nouns and the
//! decisions build without kube and tokio.
//!
//! # A decision
//!
//! ```
//! use chrono::{DateTime, TimeDelta};
//! use helm_release::plan::{Author, Evidence, Intent, NamespacePhase, Policy, Verdict, decide};
//! use helm_release::release::{Content, Entry, History, Release, Stored};
//!
//! // Its author may be at work: two minutes of silence prove nothing.
//! let record = |revision: u32, status: &str| {
//!     let json = format!(r#"{{"name":"web","version":{revision},"info":{{"status":"{status}"}}}}"#);
//!     let release = Release::parse(&json).expect("an object");
//!     let key = format!("sh.helm.release.v1.web.v{revision}");
//!     Entry::place(Stored { key, ..Stored::default() }, Content::Readable(Box::new(release))).expect("a revision")
//! };
//! let records = vec![record(1, "deployed"), record(2, "pending-upgrade")];
//! let history = History::new("web".parse()?, "shop".parse()?, records);
//! let now = DateTime::UNIX_EPOCH + TimeDelta::days(1);
//! let evidence = Evidence {
//!     now,
//!     author: Author { last_sign: Some(now - TimeDelta::minutes(2)), ..Author::default() },
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
//! # Ok::<(), helm_release::release::Invalid>(())
//! ```
//!
//! # What it is not
//!
//! No wrapper around the `helm` binary, and no second Helm: it renders, installs and upgrades nothing yet. It does not
//! exclude a foreign Helm, which knows no lock but its own.

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
