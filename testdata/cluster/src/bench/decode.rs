//! Decoding one record that is nearly as large as the API server lets it be.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};
use base64::{Engine, engine::general_purpose::STANDARD};
use http::Method;
use serde_json::Value;
use testcluster::{Cluster, Helm, run};
use tokio::process::Command;

use super::{
    seed::noise,
    table::{Bound, Row, Unit},
};

/// How often the record is decoded in one run of either program.
const TIMES: &str = "15";
/// How many ConfigMaps the chart of the record has, how many lines each, and how many words a line: what fills the
/// record is the chart's templates and the manifest made from them, as in any chart.
const MAPS: usize = 40;
const LINES: usize = 790;
const PROSE: usize = 4;
/// How large the text of the record is to be.
const SIZE: std::ops::Range<usize> = 900_000..1 << 20;

/// The programs that decode.
pub(super) struct Decoders<'a> {
    pub(super) ours: &'a Path,
    pub(super) theirs: PathBuf,
}

/// Lets ours and Helm's decoder take turns.
pub(super) async fn rows(record: &Path, decoders: &Decoders<'_>, rounds: usize) -> Result<Vec<Row>> {
    let (mut ours, mut theirs) = (Value::Null, Value::Null);
    for round in 0..rounds {
        if round.is_multiple_of(2) {
            add(&mut ours, &decode(decoders.ours, record).await?);
            add(&mut theirs, &decode(&decoders.theirs, record).await?);
        } else {
            add(&mut theirs, &decode(&decoders.theirs, record).await?);
            add(&mut ours, &decode(decoders.ours, record).await?);
        }
    }
    let mut rows = Vec::new();
    for (part, what, bound) in [
        ("parts", "decode a 1 MB record: status, manifest, hooks, config, info", Bound::Part(5.0)),
        ("whole", "decode a 1 MB record: the full tree", Bound::None),
    ] {
        for against in ["Helm 3", "Helm 4"] {
            let (ours, theirs) = (seconds(&ours[part])?, seconds(&theirs[against])?);
            rows.push(Row { what: what.into(), unit: Unit::Time, ours, against, theirs, bound });
        }
    }
    Ok(rows)
}

async fn decode(program: &Path, record: &Path) -> Result<Value> {
    let ran = run(Command::new(program).arg(record).arg(TIMES)).await?;
    Ok(serde_json::from_str(&ran.ok()?)?)
}

/// Adds the runs of one round to those of the rounds before.
fn add(all: &mut Value, round: &Value) {
    for (name, runs) in round.as_object().into_iter().flatten() {
        let runs = runs.as_array().cloned().unwrap_or_default();
        match all[name].as_array_mut() {
            Some(known) => known.extend(runs),
            None => all[name] = runs.into(),
        }
    }
}

fn seconds(runs: &Value) -> Result<Vec<f64>> {
    let runs = runs.as_array().context("not measured")?;
    runs.iter().map(|run| run.as_f64().context("no number")).collect()
}

/// Lets real Helm write the record, and keeps it as the API server returns it.
pub(super) async fn write_record(cluster: &Cluster, file: &Path) -> Result<()> {
    let namespace = cluster.namespace("decode").await?;
    let chart = namespace.dir().join("large");
    write_chart(&chart)?;
    run(namespace.helm(Helm::V4).arg("install").arg("large").arg(&chart)).await?.ok()?;
    let path = format!("{}/sh.helm.release.v1.large.v1", namespace.path("/api/v1", "secrets"));
    let (_, text) = cluster.send(Method::GET, &path, None).await?;
    let secret: Value = serde_json::from_str(&text)?;
    let size = STANDARD.decode(secret["data"]["release"].as_str().context("no release")?)?.len();
    ensure!(SIZE.contains(&size), "the record has {size} bytes");
    Ok(fs::write(file, text)?)
}

fn write_chart(dir: &Path) -> Result<()> {
    let templates = dir.join("templates");
    fs::create_dir_all(&templates)?;
    fs::write(dir.join("Chart.yaml"), "apiVersion: v2\nname: large\nversion: 1.0.0\n")?;
    fs::write(dir.join("values.yaml"), "message: hello\n")?;
    for map in 0..MAPS {
        let mut text =
            format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: large-{map}\ndata:\n  text: |\n    docs:\n");
        for line in lines(map as u64) {
            writeln!(text, "{line}")?;
        }
        fs::write(templates.join(format!("map-{map}.yaml")), text)?;
    }
    Ok(())
}

/// Keys as the YAML of charts has them.
const KEYS: [&str; 16] = [
    "description",
    "type",
    "properties",
    "items",
    "format",
    "name",
    "labels",
    "annotations",
    "metadata",
    "spec",
    "selector",
    "template",
    "value",
    "expr",
    "summary",
    "enum",
];

/// Lines as documentation in YAML has them: keys of a few, and words of which few are frequent and many are rare.
fn lines(seed: u64) -> Vec<String> {
    let bytes = noise(seed + 1, LINES * (2 + 2 * PROSE));
    let line = |bytes: &[u8]| {
        let key = KEYS[usize::from(bytes[0]) % KEYS.len()];
        let indent = " ".repeat(4 + 2 * usize::from(bytes[1] % 5));
        let word = |pair: &[u8]| format!("{:x}", usize::from(pair[0].min(pair[1])) * 2_654_435 % 0xff_ffff);
        let prose: Vec<_> = bytes[2..].chunks(2).map(word).collect();
        format!("{indent}{key}: {}", prose.join(" "))
    };
    bytes.chunks(2 + 2 * PROSE).map(line).collect()
}
