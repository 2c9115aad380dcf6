//! Kinds and the resources that serve them. Only the API groups that are asked for are looked up, so that a broken
//! aggregated API elsewhere hinders nobody.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use serde::Deserialize;
use tokio::sync::OnceCell;

use super::error::Error;
use super::parallel::all;
use super::stop::Stop;
use super::wire::{Call, Wire};

/// How a kind is served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    /// The `apiVersion`.
    pub api_version: String,
    /// The resource's name in paths.
    pub plural: String,
    /// Whether its objects live in a namespace.
    pub namespaced: bool,
}

/// The kinds that a server serves, of the API versions that were asked for.
#[derive(Debug, Clone, Default)]
pub struct Kinds {
    resources: BTreeMap<(String, String), Resource>,
}

/// What was found out about API versions, for requests that look at many releases: each version is asked about once.
#[derive(Clone, Default)]
pub(super) struct Known(Arc<Mutex<BTreeMap<String, Arc<OnceCell<Served>>>>>);

/// Kinds and how they are served.
type Served = Vec<((String, String), Resource)>;

#[derive(Deserialize)]
struct ResourceList {
    resources: Vec<Listed>,
}

#[derive(Deserialize)]
struct Listed {
    name: String,
    kind: String,
    namespaced: bool,
}

impl Kinds {
    /// Looks up `api_versions`; one that is not served leaves its kinds unknown.
    ///
    /// # Errors
    /// An API group that is needed cannot be asked: a broken aggregated API is no unknown kind.
    pub async fn discover(wire: &Wire, api_versions: &BTreeSet<String>, stop: &Stop) -> Result<Self, Error> {
        let lists = all(api_versions.iter().map(|version| resources_of(wire, version, stop)).collect()).await?;
        Ok(Self { resources: lists.into_iter().flatten().collect() })
    }

    /// How `kind` is served in `api_version`; `None` if it is not.
    #[must_use]
    pub fn get(&self, api_version: &str, kind: &str) -> Option<&Resource> {
        self.resources.get(&(api_version.into(), kind.into()))
    }
}

impl Resource {
    /// The path of the collection, or of one object in it.
    #[must_use]
    pub fn path(&self, namespace: Option<&str>, name: Option<&str>) -> String {
        let mut path = prefix(&self.api_version);
        if let Some(namespace) = namespace.filter(|_| self.namespaced) {
            path.push_str("/namespaces/");
            path.push_str(&encode(namespace));
        }
        path.push('/');
        path.push_str(&self.plural);
        if let Some(name) = name {
            path.push('/');
            path.push_str(&encode(name));
        }
        path
    }

    /// The group in `api_version`; empty for the core group.
    #[must_use]
    pub fn group(&self) -> &str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }

    /// `deployments.apps`, as in a Role.
    #[must_use]
    pub fn dotted(&self) -> String {
        if self.group().is_empty() { self.plural.clone() } else { format!("{}.{}", self.plural, self.group()) }
    }
}

impl Known {
    fn cell(&self, api_version: &str) -> Arc<OnceCell<Served>> {
        let mut cells = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(cells.entry(api_version.into()).or_default())
    }
}

async fn resources_of(wire: &Wire, api_version: &str, stop: &Stop) -> Result<Served, Error> {
    match wire.known() {
        Some(known) => known.cell(api_version).get_or_try_init(|| look_up(wire, api_version, stop)).await.cloned(),
        None => look_up(wire, api_version, stop).await,
    }
}

async fn look_up(wire: &Wire, api_version: &str, stop: &Stop) -> Result<Served, Error> {
    let call = Call::get(format!("look up the kinds of {api_version}"), prefix(api_version));
    let Some(answer) = wire.find(call, stop).await? else { return Ok(Vec::new()) };
    let list: ResourceList = answer.json()?;
    let whole = list.resources.into_iter().filter(|resource| !resource.name.contains('/'));
    Ok(whole
        .map(|resource| {
            let key = (api_version.to_owned(), resource.kind);
            let namespaced = resource.namespaced;
            (key, Resource { api_version: api_version.into(), plural: resource.name, namespaced })
        })
        .collect())
}

fn prefix(api_version: &str) -> String {
    let root = if api_version.contains('/') { "/apis/" } else { "/api/" };
    format!("{root}{}", api_version.split('/').map(encode).collect::<Vec<_>>().join("/"))
}

/// Percent-encodes what has a meaning in a path; a manifest can hold any text as a name.
pub(crate) fn encode(segment: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-._~:@!$&'()*+,;=".contains(&b);
    let one = |b: u8| if plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") };
    segment.bytes().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_leave_its_place_in_the_path() {
        let resource = Resource { api_version: "v1".into(), plural: "configmaps".into(), namespaced: true };
        assert_eq!(
            resource.path(Some("ns"), Some("../secrets/x?y")),
            "/api/v1/namespaces/ns/configmaps/..%2Fsecrets%2Fx%3Fy"
        );
        let resource = Resource { api_version: "apps/v1".into(), plural: "deployments".into(), namespaced: true };
        assert_eq!(resource.path(None, None), "/apis/apps/v1/deployments");
        assert_eq!(resource.dotted(), "deployments.apps");
    }
}
