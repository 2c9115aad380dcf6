//! Whether this identity, on this server, can do what a repair needs.

use std::collections::BTreeMap;

use chrono::{TimeDelta, Utc};
use serde::Deserialize;

use super::Client;
use super::error::Error;
use super::scan::{Namespaces, Scope};
use crate::cluster::{Access, Call, Permission, Stop};
use crate::release::{RecordKey, ReleaseName};
use crate::storage::{self, Detail, DriverKind, Kubernetes, Query};

/// What a repair would find.
#[derive(Debug, Clone)]
pub struct Diagnosis {
    /// The server's version, such as `v1.37.2`.
    pub server_version: String,
    /// The user name by which the server knows this identity; `None` where it does not tell.
    pub identity: Option<String>,
    /// How far the server's clock is ahead of this machine's; it is known to the second.
    pub clock_skew: TimeDelta,
    /// The driver that was looked at.
    pub driver: DriverKind,
    /// Records in the namespace.
    pub records: usize,
    /// Releases in the namespace.
    pub releases: usize,
    /// The release with the most records, and how many they are.
    pub largest_history: Option<(ReleaseName, usize)>,
    /// Records that the other driver holds; `None` where that may not be read.
    pub other_driver_records: Option<usize>,
    /// What this identity may do.
    pub permissions: Vec<PermissionCheck>,
}

/// One permission, and whether this identity has it.
#[derive(Debug, Clone)]
pub struct PermissionCheck {
    /// Which.
    pub permission: Permission,
    /// Whether it has it.
    pub granted: bool,
}

impl Client {
    /// Looks at the connection, the versions, the records of this namespace and the permissions on them.
    ///
    /// # Errors
    /// The server cannot be asked.
    pub async fn doctor(&self, stop: &Stop) -> Result<Diagnosis, Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Version {
            git_version: String,
        }
        let answer = self.wire.send(Call::get("ask the server for its version", "/version"), stop).await?;
        let now = Utc::now();
        let clock_skew = answer.date.map_or(TimeDelta::zero(), |date| date - now);
        let version: Version = answer.json()?;
        let scope = Scope { namespaces: Namespaces::One(self.namespace.clone()), selector: None };
        let records = self.list(&scope, "", Detail::Metadata, stop).await?;
        let mut histories = BTreeMap::<ReleaseName, usize>::new();
        for key in records.iter().filter_map(|record| record.stored.key.parse::<RecordKey>().ok()) {
            *histories.entry(key.name).or_default() += 1;
        }
        Ok(Diagnosis {
            server_version: version.git_version,
            identity: self.identity(stop).await?,
            clock_skew: TimeDelta::seconds(clock_skew.num_seconds()),
            driver: self.driver,
            records: records.len(),
            releases: histories.len(),
            largest_history: histories.into_iter().max_by_key(|(_, count)| *count),
            other_driver_records: self.other_records(stop).await?,
            permissions: self.permissions(stop).await?,
        })
    }

    async fn other_records(&self, stop: &Stop) -> Result<Option<usize>, Error> {
        let query =
            Query { namespace: Some(self.namespace.clone()), selector: "owner=helm".into(), detail: Detail::Metadata };
        let driver = Kubernetes::new(self.wire.clone(), self.driver.other());
        match storage::Driver::list(&driver, &query, stop).await {
            Ok(listing) => Ok(Some(listing.records.len())),
            Err(storage::Error::Cluster(error)) if error.code() == Some(403) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// What every repair needs: the records. What it needs of objects depends on the chart and is checked by a plan.
    async fn permissions(&self, stop: &Stop) -> Result<Vec<PermissionCheck>, Error> {
        let resource = match self.driver {
            DriverKind::Secrets => "secrets",
            DriverKind::ConfigMaps => "configmaps",
        };
        let access = Access::review(&self.wire, self.namespace.as_str(), stop).await?;
        let mut checks = Vec::new();
        for verb in ["get", "list", "create", "update", "delete"] {
            let (verb, resource, namespace) = (verb.into(), resource.into(), self.namespace.to_string());
            let permission = Permission { verb, group: String::new(), resource, namespace };
            let granted = access.grants(&permission) || permission.is_granted(&self.wire, stop).await?;
            checks.push(PermissionCheck { permission, granted });
        }
        Ok(checks)
    }
}
