//! The real control plane and real Helm, for tests: etcd, kube-apiserver, its controllers, a scheduler and a node that
//! kwok plays, all on loopback, with Helm 3 and 4 as commands.
//!
//! One control plane serves a whole test run: `testcluster run -- cargo test -- --ignored` starts it, and every test
//! asks [`Cluster::shared`] for it and takes a [`Namespace`] of its own.
//!
//! ```no_run
//! # async fn test() -> anyhow::Result<()> {
//! use testcluster::{Cluster, Helm, run};
//!
//! let namespace = Cluster::shared()?.namespace("upgrade").await?;
//! run(namespace.helm(Helm::V4).args(["install", "web", "testdata/charts/feature"])).await?.ok()?;
//! # Ok(())
//! # }
//! ```

mod account;
mod cluster;
mod command;
mod control_plane;
mod namespace;
mod programs;
mod proxy;
mod volumes;
mod wait;

pub use account::Account;
pub use cluster::{Cluster, KUBECONFIG_VARIABLE};
pub use command::{Helm, Ran, run};
pub use control_plane::ControlPlane;
pub use namespace::Namespace;
pub use programs::{DIR_VARIABLE, Programs};
pub use proxy::Proxy;
pub use sandbox::faults::{Armed, Counts, Fault, Faults, Kind, Request};
pub use wait::until;
