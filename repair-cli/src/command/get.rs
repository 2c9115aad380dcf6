//! `get`: one part of a stored revision, as Helm prints it.

use clap::{Args, Subcommand};
use helm_release::release::{ApplyMethod, Entry, Release, Revision};
use serde::Serialize;
use serde_json::{Map, Value};

use super::status::Shown;
use crate::cli::Target;
use crate::error::{Exit, Failure};
use crate::output::{Format, View, Width, json, print, show, stamp, yaml};
use crate::session::{Session, entry, readable};

/// Prints one part of a stored revision.
///
/// Manifest, hooks, notes, values and record are printed as they are, without a document around them.
#[derive(Debug, Subcommand)]
pub(crate) enum Get {
    /// Everything that is known of a revision.
    All(Which),
    /// The objects, as they were rendered.
    Manifest(Which),
    /// The hooks, as they were rendered.
    Hooks(Which),
    /// The notes of the chart.
    Notes(Which),
    /// The values that the user gave.
    Values(Values),
    /// Chart, versions, labels and times.
    Metadata(Which),
    /// The record itself, decoded: the JSON that Helm stored.
    Record(Which),
}

/// Which revision.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Example:
  gwrepair get all web -n shop --revision 3")]
pub(crate) struct Which {
    /// The release, as NAME or NAMESPACE/NAME.
    #[arg(value_name = "RELEASE")]
    release: Target,
    /// This revision instead of the newest.
    #[arg(long, value_name = "REVISION")]
    revision: Option<Revision>,
}

/// Which values of which revision.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  gwrepair get values web -n shop
  gwrepair get values web -n shop --all -o yaml")]
pub(crate) struct Values {
    #[command(flatten)]
    which: Which,
    /// The values that the templates saw: the chart's own with the user's over them.
    #[arg(short, long)]
    all: bool,
}

pub(crate) async fn run(args: Get, session: &Session) -> Result<Exit, Failure> {
    let which = match &args {
        Get::All(which) | Get::Manifest(which) | Get::Hooks(which) | Get::Notes(which) => which,
        Get::Metadata(which) | Get::Record(which) => which,
        Get::Values(values) => &values.which,
    };
    let history = session.history(&which.release).await?;
    let entry = entry(&history, which.revision)?;
    let release = readable(entry)?;
    match &args {
        Get::All(_) => print(&all(history.namespace.as_str(), entry, release)?),
        Get::Manifest(_) => print(&format!("{}\n", release.manifest().trim_end())),
        Get::Hooks(_) => print(&hooks(release)),
        Get::Notes(_) => print(&Shown::new(history.namespace.as_str(), entry.revision, release).notes()),
        Get::Values(values) => print(&self::values(release, values.all, session.format)?),
        Get::Metadata(_) => show(&Metadata::new(history.namespace.as_str(), entry, release), session.format),
        Get::Record(_) => print(&record(release, session.format)?),
    }?;
    Ok(Exit::Done)
}

fn all(namespace: &str, entry: &Entry, release: &Release) -> Result<String, Failure> {
    let shown = Shown::new(namespace, entry.revision, release);
    let chart = release.chart().unwrap_or_default();
    let about = format!("CHART: {}\nVERSION: {}\nAPP_VERSION: {}\n", chart.name, chart.version, chart.app_version);
    let user = yaml(&user_values(release)?)?;
    let computed = yaml(&computed_values(release)?)?;
    Ok(format!(
        "{}USER-SUPPLIED VALUES:\n{user}\nCOMPUTED VALUES:\n{computed}\nHOOKS:\n{}MANIFEST:\n{}\n\n{}",
        shown.head(&about),
        hooks(release),
        release.manifest().trim_end(),
        shown.notes()
    ))
}

fn hooks(release: &Release) -> String {
    let hooks = release.hooks();
    hooks.iter().map(|hook| format!("---\n# Source: {}\n{}\n", hook.path, hook.manifest.trim_end())).collect()
}

fn values(release: &Release, all: bool, format: Format) -> Result<String, Failure> {
    let (heading, values) = if all {
        ("COMPUTED VALUES:\n", computed_values(release)?)
    } else {
        ("USER-SUPPLIED VALUES:\n", user_values(release)?)
    };
    match format {
        Format::Json => json(&values),
        Format::Yaml => yaml(&values),
        Format::Table | Format::Wide | Format::Name => Ok(heading.to_owned() + &yaml(&values)?),
    }
}

fn user_values(release: &Release) -> Result<Value, Failure> {
    release.config().map_or(Ok(Value::Null), |text| parse(text, "values"))
}

fn computed_values(release: &Release) -> Result<Value, Failure> {
    let chart = release.chart_values().map_or(Ok(Value::Null), |raw| parse(raw.get(), "default values"))?;
    let Value::Object(mut values) = user_values(release)? else { return Ok(chart) };
    if let Value::Object(defaults) = chart {
        coalesce(&mut values, defaults);
    }
    Ok(Value::Object(values))
}

/// Puts the chart's own values under the user's. A user's null takes a default away.
fn coalesce(values: &mut Map<String, Value>, defaults: Map<String, Value>) {
    for (key, default) in defaults {
        match (values.get_mut(&key), default) {
            (None, default) => {
                values.insert(key, default);
            }
            (Some(Value::Null), _) => {
                values.remove(&key);
            }
            (Some(Value::Object(inner)), Value::Object(defaults)) => coalesce(inner, defaults),
            (Some(_), _) => {}
        }
    }
}

fn record(release: &Release, format: Format) -> Result<String, Failure> {
    let text = release.to_json().map_err(|why| Failure::new("could not write the record").because(&why))?;
    match format {
        Format::Yaml => yaml(&parse(&text, "record")?),
        Format::Table | Format::Wide | Format::Json | Format::Name => Ok(text + "\n"),
    }
}

fn parse(text: &str, what: &str) -> Result<Value, Failure> {
    serde_json::from_str(text)
        .map_err(|why| Failure::new(format!("could not read the {what} of the record")).because(&why))
}

/// What Helm's `get metadata` tells, with Helm's names.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    name: String,
    chart: String,
    version: String,
    app_version: String,
    labels: std::collections::BTreeMap<String, String>,
    namespace: String,
    revision: Revision,
    status: String,
    deployed_at: Option<String>,
    apply_method: &'static str,
}

impl Metadata {
    fn new(namespace: &str, entry: &Entry, release: &Release) -> Self {
        let chart = release.chart().unwrap_or_default();
        Self {
            name: release.name().unwrap_or_default().into(),
            chart: chart.name,
            version: chart.version,
            app_version: chart.app_version,
            labels: entry.stored.labels.clone(),
            namespace: namespace.into(),
            revision: entry.revision,
            status: release.status().to_string(),
            deployed_at: release.info().last_deployed.map(stamp),
            apply_method: match release.apply_method() {
                ApplyMethod::ClientSide => "csa",
                ApplyMethod::ServerSide => "ssa",
            },
        }
    }
}

impl View for Metadata {
    const KIND: &'static str = "Metadata";

    fn text(&self, _: Width) -> String {
        let labels: Vec<String> = self.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let method = if self.apply_method == "ssa" { "server-side apply" } else { "client-side apply" };
        format!(
            "NAME: {}\nCHART: {}\nVERSION: {}\nAPP_VERSION: {}\nLABELS: {}\nNAMESPACE: {}\nREVISION: {}\nSTATUS: {}\n\
             DEPLOYED_AT: {}\nAPPLY_METHOD: {method}\n",
            self.name,
            self.chart,
            self.version,
            self.app_version,
            labels.join(","),
            self.namespace,
            self.revision,
            self.status,
            self.deployed_at.as_deref().unwrap_or_default()
        )
    }

    fn names(&self) -> Vec<String> {
        vec![format!("{}/{}", self.namespace, self.name)]
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn release(value: Value) -> Release {
        Release::parse(&value.to_string()).unwrap()
    }

    #[test]
    fn computed_values_are_the_charts_under_the_users() {
        let release = release(json!({
            "info": {}, "config": {"a": 1, "gone": null, "deep": {"x": 2, "off": null}, "own": null},
            "chart": {"values": {"a": 0, "b": 3, "gone": 4, "deep": {"x": 0, "y": 5, "off": 6}}},
        }));
        let expected = json!({"a": 1, "b": 3, "deep": {"x": 2, "y": 5}, "own": null});
        assert_eq!(computed_values(&release).unwrap(), expected);
    }

    #[test]
    fn values_carry_no_document_around_them() {
        let release = release(json!({"info": {}, "config": {"image": "nginx"}}));
        let text = values(&release, false, Format::Json).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), json!({"image": "nginx"}));
        assert_eq!(values(&release, false, Format::Yaml).unwrap(), "image: nginx\n");
        assert_eq!(values(&release, true, Format::Table).unwrap(), "COMPUTED VALUES:\nimage: nginx\n");
    }

    #[test]
    fn hooks_carry_their_source() {
        let hook = json!({"name": "h", "kind": "Job", "path": "web/templates/h.yaml", "manifest": "kind: Job\n"});
        let text = hooks(&release(json!({"info": {}, "hooks": [hook]})));
        assert_eq!(text, "---\n# Source: web/templates/h.yaml\nkind: Job\n");
    }
}
