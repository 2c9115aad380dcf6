//! Reads, explains and repairs Helm releases, compatible with the Helm SDK.
//!
//! Helm's lock is "the newest record says pending": kill Helm in the middle of an operation, and the release is locked
//! for ever. This crate decides from evidence what such a release is and what to do about it, and does it.
//!
//! # In one piece
//!
//! [`Client`] is the door: [`history`](Client::history) reads, [`plan`](Client::plan) looks and decides,
//! [`repair`](Client::repair) acts, [`restore`](Client::restore) undoes. Below, real Helm 4 was killed in the middle of an
//! upgrade; the API server is one in memory that holds what Helm left.
//!
#![cfg_attr(feature = "kube", doc = "```")]
#![cfg_attr(not(feature = "kube"), doc = "```ignore")]
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let sandbox = sandbox::Sandbox::new();
//! # for line in include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../testdata/demo/objects.jsonl")).lines() {
//! #     sandbox.plant(serde_json::from_str(line)?)?;
//! # }
//! # let kube = sandbox.client("shop");
//! use helm_release::plan::{AssumeDead, Step, Verdict};
//! use helm_release::release::{Entry, Status};
//! use helm_release::{Client, DriverKind, Intent, Outcome, Policy, RepairOptions, Stop};
//!
//! let client = Client::new(kube, "shop".parse()?, DriverKind::Secrets);
//! let (name, stop) = ("web".parse()?, Stop::never());
//!
//! // Look: all revisions, those included that cannot be read.
//! let history = client.history(&name, &stop).await?;
//! let newest = history.last().ok_or("no release")?;
//! assert_eq!(newest.status(), Some(&Status::PendingUpgrade));
//!
//! // Decide. We saw Helm die, and say so of this very record; without that, silence has to last.
//! let policy = Policy { assume_dead: AssumeDead::Shown(newest.stored.resource_version.clone()), ..Policy::default() };
//! let options = RepairOptions::default();
//! let planned = client.plan(&name, Intent::Usable, &policy, &options, &stop).await?;
//! assert_eq!(planned.plan.verdict, Verdict::Rollback);
//! assert!(matches!(planned.plan.steps[0], Step::CreateRollback { .. }));
//!
//! // Act.
//! let report = client.repair(&planned, &options, &stop, &()).await;
//! assert_eq!(report.outcome, Outcome::Repaired);
//! let history = client.history(&name, &stop).await?;
//! assert_eq!(history.last().and_then(Entry::status), Some(&Status::Deployed));
//! # Ok(())
//! # }
//! ```
//!
//! # The map
//!
//! | layer | modules | |
//! | --- | --- | --- |
//! | nouns | [`release`], [`manifest`] | what Helm stores; plain data |
//! | decisions | [`backup`], [`codec`], [`plan`], [`patch`], [`diff`], [`readiness`] | pure functions: no I/O, no clock, no logging |
//! | shell | `storage`, `cluster`, `action` | async over `kube::Client`, stoppable at every await; feature `kube` |
//!
//! With `default-features = false` the nouns and the decisions build without kube and tokio.
//!
//! # To decide without a cluster
//!
//! A plan is a value: a pure function of the history, the evidence, the intent and the policy.
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
//! # When something goes wrong
//!
//! An error says what was attempted; its sources say why. A caller needs neither text: `Error::remedy` names what to do
//! next, from the variants alone.
//!
//! | remedy | when | a controller |
//! | --- | --- | --- |
//! | `Reobserve` | somebody else was faster | looks again at once |
//! | `BackOff` | no answer, too many requests, not ready in time, stopped | tries again later |
//! | `Stall` | a permission is missing, a record or a manifest cannot be used | tells a person, and waits for a change |
//!
//! A repair that fails settles the record it had opened, and its report says what was done. One whose process is killed
//! leaves the ordinary state *interrupted*, from which the next repair goes on.
//!
//! # Time and cancellation
//!
//! Every call takes a [`Stop`]: a token, a deadline, or neither. A read is dropped where it stands, a write that is under way
//! is let end, and after the return nothing is sent. Time is the server's, from its header `Date`. `kube::Client` is the
//! seam: build it with its `default_retry` off, for what may be sent twice is decided here.
//!
//! # Types of other crates
//!
//! Meant, and part of what this crate promises: `kube::Client` as the connection, `serde_json::Value` for objects,
//! `chrono` for times, `tokio_util`'s `CancellationToken` in [`Stop`], and `futures`' boxed futures in
//! [`storage::Driver`].
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

#[cfg(feature = "kube")]
pub use action::{Client, Error, Outcome, RepairOptions, Report, Stop};
#[cfg(feature = "kube")]
pub use plan::{Intent, Policy};
#[cfg(feature = "kube")]
pub use storage::DriverKind;

/// Compiles the examples of the README.
#[cfg(all(doctest, feature = "kube"))]
#[doc = include_str!("../../README.md")]
mod readme {}
