//! What Helm stores: a release, its revisions, their status and hooks. Plain data.

pub(crate) mod go;
mod history;
mod hook;
mod members;
mod name;
mod shape;
mod status;
mod time;

pub use history::{Content, Entry, History, Mismatch, Stored};
pub use hook::{Hook, LastRun};
pub use name::{Invalid, MAX_RELEASE_NAME, Namespace, RecordKey, ReleaseName, Revision};
pub use status::Status;

use std::sync::OnceLock;

use chrono::{DateTime, Utc};
use serde_json::value::{RawValue, to_raw_value};

use members::Members;

/// One stored revision.
///
/// # Guarantees
/// Only what is asked for is decoded. What is not changed through this type keeps its bytes: number text, unknown
/// members and the chart survive a round trip.
#[derive(Debug, Clone)]
pub struct Release {
    members: Members,
    revision: Option<Revision>,
    name: Option<String>,
    namespace: Option<String>,
    info: Info,
    faults: Vec<Fault>,
    manifest: OnceLock<String>,
}

/// The part of a record that says how its operation went.
#[derive(Debug, Clone, Default)]
pub struct Info {
    /// When the release was first installed, by the clock of the client that wrote it.
    pub first_deployed: Option<DateTime<Utc>>,
    /// When this revision was written, by the clock of the client that wrote it: for display, never for deciding.
    pub last_deployed: Option<DateTime<Utc>>,
    /// When it was uninstalled with its history kept.
    pub deleted: Option<DateTime<Utc>>,
    /// What Helm says of the operation. Users can set it: a hint, not proof.
    pub description: String,
    /// The word; absent in a record that somebody edited.
    pub status: Option<Status>,
    /// Which revision a rollback goes back to; 0 if none. Helm 4 writes it, Helm 3 does not.
    pub rollback_revision: u32,
}

/// A member whose type is not the one that Helm reads. Helm hides the whole record because of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Where: `hooks`, `version`, `info`.
    pub path: &'static str,
    /// What the decoder said.
    pub why: String,
}

/// Who applied a revision's objects, and so how they are merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ApplyMethod {
    /// `csa`, or no word at all (Helm 3): three-way merge by the client.
    ClientSide,
    /// `ssa`: server-side apply.
    ServerSide,
}

/// What a record tells of its chart without building it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChartInfo {
    /// The chart's name.
    pub name: String,
    /// The chart's version.
    pub version: String,
    /// The version of what it installs.
    pub app_version: String,
}

/// What a rollback record takes from elsewhere than its target.
#[derive(Debug, Clone)]
pub struct RollbackHeader {
    /// Its own revision.
    pub revision: Revision,
    /// The release's first installation, from the record that was current.
    pub first_deployed: Option<DateTime<Utc>>,
    /// Now.
    pub now: DateTime<Utc>,
    /// What it says of itself.
    pub description: String,
    /// How its objects are applied, where that is not how its target's were.
    pub apply_method: ApplyMethod,
}

impl ApplyMethod {
    /// Its word in a record.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ClientSide => "csa",
            Self::ServerSide => "ssa",
        }
    }
}

/// As long as `Preparing upgrade`, which Helm's own pending records say.
const SHORT_DESCRIPTION: usize = 17;

impl Release {
    /// Reads a record's JSON.
    ///
    /// Members of the wrong type do not fail: they are listed by [`Release::faults`].
    ///
    /// # Errors
    /// The text is not one JSON object.
    pub fn parse(json: &str) -> Result<Self, serde_json::Error> {
        let members = Members::parse(json)?;
        let mut faults: Vec<_> = members.iter().filter_map(|(member, value)| fault(member, value)).collect();
        if members.raw("info").is_none() {
            // Every Helm command panics on it (observed), so it is no ordinary absence.
            faults.push(Fault { path: "info", why: "is missing".into() });
        }
        let info = members.object("info").map(|info| Info::read(&info)).unwrap_or_default();
        let (name, namespace) = (members.read("name"), members.read("namespace"));
        let number: Option<i64> = members.read("version");
        let revision = number.and_then(|number| u32::try_from(number).ok()).and_then(Revision::new);
        Ok(Self { members, revision, name, namespace, info, faults, manifest: OnceLock::new() })
    }

    /// The release's name as the payload says.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The namespace as the payload says.
    #[must_use]
    pub fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    /// The revision as the payload says.
    #[must_use]
    pub fn revision(&self) -> Option<Revision> {
        self.revision
    }

    /// How the operation went.
    #[must_use]
    pub fn info(&self) -> &Info {
        &self.info
    }

    /// The status; Helm takes an absent one for `unknown`.
    #[must_use]
    pub fn status(&self) -> &Status {
        self.info.status.as_ref().unwrap_or(&Status::Unknown)
    }

    /// Members that Helm could not read.
    #[must_use]
    pub fn faults(&self) -> &[Fault] {
        &self.faults
    }

    /// The objects as YAML, without hooks. A missing manifest is an empty one.
    #[must_use]
    pub fn manifest(&self) -> &str {
        self.manifest.get_or_init(|| self.members.text("manifest"))
    }

    /// The hooks; empty where they cannot be read, which [`Release::faults`] then says.
    #[must_use]
    pub fn hooks(&self) -> Vec<Hook> {
        self.members.objects("hooks").iter().map(Hook::read).collect()
    }

    /// The notes that the chart printed.
    #[must_use]
    pub fn notes(&self) -> String {
        self.members.object("info").map(|info| info.text("notes")).unwrap_or_default()
    }

    /// The user's values as JSON text, if there are any.
    #[must_use]
    pub fn config(&self) -> Option<&str> {
        self.members.raw("config").map(RawValue::get)
    }

    /// The chart's own default values as JSON text, if there are any.
    #[must_use]
    pub fn chart_values(&self) -> Option<Box<RawValue>> {
        self.members.object("chart").and_then(|chart| chart.raw("values").map(ToOwned::to_owned))
    }

    /// Name and versions of the chart; `None` where the record has no chart metadata (Helm shows `MISSING`).
    #[must_use]
    pub fn chart(&self) -> Option<ChartInfo> {
        let metadata = self.members.object("chart")?.object("metadata")?;
        let (name, version, app_version) =
            (metadata.text("name"), metadata.text("version"), metadata.text("appVersion"));
        Some(ChartInfo { name, version, app_version })
    }

    /// How this revision's objects were applied.
    #[must_use]
    pub fn apply_method(&self) -> ApplyMethod {
        match self.members.text("apply_method").as_str() {
            "ssa" => ApplyMethod::ServerSide,
            _ => ApplyMethod::ClientSide,
        }
    }

    /// The same record with another status and description; every other byte stays.
    ///
    /// # Errors
    /// `info` is not an object, so there is nothing to change in place.
    pub fn with_status(&self, status: Status, description: &str) -> Result<Self, serde_json::Error> {
        let mut info: Members = match self.members.raw("info") {
            Some(raw) => serde_json::from_str(raw.get())?,
            None => Members::default(),
        };
        info.set("description", to_raw_value(description)?);
        info.set("status", to_raw_value(status.as_str())?);
        let mut changed = self.clone();
        changed.members.set("info", info.to_raw()?);
        changed.info.description = description.into();
        changed.info.status = Some(status);
        Ok(changed)
    }

    /// The same record saying of itself no more than fits beside Helm's own words: where each byte counts.
    ///
    /// # Errors
    /// `info` is not an object, so there is nothing to change in place.
    pub fn with_short_description(&self) -> Result<Self, serde_json::Error> {
        let text = &self.info.description;
        let cut = text.char_indices().nth(SHORT_DESCRIPTION).map_or(text.as_str(), |(end, _)| &text[..end]);
        let words = cut.rsplit_once(' ').map_or(cut, |(words, _)| words);
        let short = if cut.len() < text.len() { words.trim_end_matches([':', ',']) } else { cut };
        self.with_status(self.status().clone(), short)
    }

    /// What fills the record: the name of each part, and its JSON.
    pub(crate) fn parts(&self) -> Vec<(String, String)> {
        let chart = self.members.object("chart").unwrap_or_default();
        let part = |name: &str, of: &Members, member: &str| Some((name.to_owned(), of.raw(member)?.get().to_owned()));
        let whole = [
            part("the manifest", &self.members, "manifest"),
            part("the hooks", &self.members, "hooks"),
            part("the values", &self.members, "config"),
            part("the notes", &self.members.object("info").unwrap_or_default(), "notes"),
            part("the default values of the chart", &chart, "values"),
            part("the schema of the chart", &chart, "schema"),
        ];
        let files = [chart.objects("templates"), chart.objects("files")].concat();
        let files = files.iter().filter_map(|file| part(&file.text("name"), file, "data"));
        whole.into_iter().flatten().chain(files).collect()
    }

    /// The `pending-rollback` record that goes back to this revision, as Helm's `prepareRollback` builds it: chart,
    /// values, manifest, hooks and notes of the target; never rendered again.
    ///
    /// # Errors
    /// This record has no revision or its `info` is not an object.
    pub fn to_rollback(&self, header: &RollbackHeader) -> Result<Self, serde_json::Error> {
        let mut info = Members::default();
        if let Some(first) = header.first_deployed {
            info.set("first_deployed", to_raw_value(&time::to_text(first))?);
        }
        info.set("last_deployed", to_raw_value(&time::to_text(header.now))?);
        info.set("description", to_raw_value(&header.description)?);
        info.set("status", to_raw_value(Status::PendingRollback.as_str())?);
        if let Some(target) = self.revision {
            info.set("rollback_revision", to_raw_value(&target.get())?);
        }
        let notes = self.notes();
        if !notes.is_empty() {
            info.set("notes", to_raw_value(&notes)?);
        }
        let mut members = self.members.clone();
        members.set("info", info.to_raw()?);
        members.set("version", to_raw_value(&header.revision.get())?);
        if self.apply_method() != header.apply_method {
            members.set("apply_method", to_raw_value(header.apply_method.as_str())?);
        }
        Self::parse(&serde_json::to_string(&members)?)
    }

    /// The JSON to store.
    ///
    /// # Errors
    /// None in practice: the members were JSON when they were read.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(&self.members)
    }
}

/// What Helm finds wrong with a member, if it knows it.
fn fault(member: &str, value: &RawValue) -> Option<Fault> {
    let (path, shape) = shape::find(shape::RELEASE, member)?;
    shape.check(value).err().map(|why| Fault { path, why: why.to_string() })
}

impl Info {
    /// What can be read of it.
    fn read(info: &Members) -> Self {
        let rollback: Option<f64> = info.read("rollback_revision");
        Self {
            first_deployed: info.time("first_deployed"),
            last_deployed: info.time("last_deployed"),
            deleted: info.time("deleted"),
            description: info.text("description"),
            status: info.read::<String>("status").map(|word| Status::from(word.as_str())),
            rollback_revision: rollback.map(|number| number as u32).unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORD: &str = r#"{"name":"web","info":{"first_deployed":"2026-01-01T00:00:00Z","last_deployed":"2026-01-02T00:00:00.5+01:00","deleted":"","description":"Preparing upgrade","status":"pending-upgrade","x":1e400},"chart":{"metadata":{"name":"c","version":"1.0","appVersion":"2"},"big":12345678901234567890123},"config":{"n":1.0},"manifest":"---\n# Source\n","version":3,"namespace":"ns","future":{"a":[1.10]}}"#;

    #[test]
    fn only_the_asked_for_fields_are_changed() {
        let changed = Release::parse(RECORD).unwrap().with_status(Status::Failed, "interrupted").unwrap();
        let expected = RECORD.replace("Preparing upgrade", "interrupted").replace("pending-upgrade", "failed");
        assert_eq!(changed.to_json().unwrap(), expected);
        assert_eq!(changed.status(), &Status::Failed);
    }

    #[test]
    fn a_short_description_ends_with_a_word_and_what_is_short_stays() {
        let short = |text: &str| {
            let release = Release::parse(RECORD).unwrap().with_status(Status::Failed, text).unwrap();
            release.with_short_description().unwrap().info().description.clone()
        };
        assert_eq!(short("Interrupted upgrade: marked as failed"), "Interrupted");
        assert_eq!(short("Interrupted: the server did not answer"), "Interrupted: the");
        assert_eq!(short("Rollback to 12345"), "Rollback to 12345");
        assert_eq!(short("Ωμέγα-και-άλλα-πολλά"), "Ωμέγα-και-άλλα-πο");
        assert_eq!(short(""), "");
    }

    #[test]
    fn the_readable_part_is_read() {
        let release = Release::parse(RECORD).unwrap();
        assert_eq!(release.revision(), Revision::new(3));
        assert_eq!(release.status(), &Status::PendingUpgrade);
        assert_eq!(release.info().last_deployed.unwrap().to_rfc3339(), "2026-01-01T23:00:00.500+00:00");
        assert_eq!(release.info().deleted, None);
        assert_eq!(release.chart().unwrap().app_version, "2");
        assert_eq!(release.apply_method(), ApplyMethod::ClientSide);
        assert!(release.faults().is_empty());
    }

    #[test]
    fn wrongly_typed_members_are_named_and_the_rest_is_read() {
        let record = r#"{"name":"r","version":"1","info":{"status":"deployed","last_deployed":5},"hooks":[{"last_run":"x"}],"chart":null}"#;
        let release = Release::parse(record).unwrap();
        let paths: Vec<_> = release.faults().iter().map(|fault| fault.path).collect();
        assert_eq!(paths, ["version", "info", "hooks"]);
        assert_eq!(release.status(), &Status::Deployed);
        assert_eq!(release.chart(), None);
    }

    #[test]
    fn a_null_info_is_a_fault_and_no_panic() {
        let release = Release::parse(r#"{"name":"r","version":1,"info":null}"#).unwrap();
        assert_eq!(release.status(), &Status::Unknown);
        assert_eq!(release.faults()[0].path, "info");
        assert_eq!(release.manifest(), "");
    }

    #[test]
    fn a_rollback_record_carries_its_target_and_its_own_header() {
        let target = Release::parse(RECORD).unwrap();
        let header = RollbackHeader {
            revision: Revision::new(5).unwrap(),
            first_deployed: target.info().first_deployed,
            now: DateTime::UNIX_EPOCH,
            description: "Rollback to 3".into(),
            apply_method: ApplyMethod::ClientSide,
        };
        let record = target.to_rollback(&header).unwrap();
        assert_eq!(record.status(), &Status::PendingRollback);
        assert_eq!((record.revision(), record.info().rollback_revision), (Revision::new(5), 3));
        assert!(record.to_json().unwrap().contains("12345678901234567890123"));
        assert_eq!(record.manifest(), target.manifest());
    }
}
