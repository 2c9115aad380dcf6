//! Finding what is stuck among 5,000 releases, beside Helm's own list of them.

use std::path::Path;

use anyhow::Result;
use testcluster::{Cluster, Helm};
use tokio::process::Command;

use super::{
    measure::{Taken, taken},
    table::{Bound, Row, Unit, peaks, seconds},
};

/// What `gwrepair scan` ends with where something is stuck.
const FOUND: i32 = 3;

/// One comparison.
struct Pair {
    ours: &'static [&'static str],
    theirs: &'static [&'static str],
    faster: f64,
    smaller: f64,
}

const PAIRS: &[Pair] = &[
    Pair { ours: &["scan", "-A"], theirs: &["list", "-A", "--pending"], faster: 100.0, smaller: 100.0 },
    Pair { ours: &["scan", "-A", "--deep"], theirs: &["list", "-A"], faster: 5.0, smaller: 20.0 },
];

const HELMS: &[(&str, Helm)] = &[("Helm 3", Helm::V3), ("Helm 4", Helm::V4)];

/// Measures every comparison `runs` times.
pub(super) async fn rows(cluster: &Cluster, gwrepair: &Path, runs: usize) -> Result<Vec<Row>> {
    let namespace = cluster.namespace("scan").await?;
    let mut rows = Vec::new();
    for pair in PAIRS {
        for (against, helm) in HELMS {
            let mut ours = namespace.command(gwrepair);
            ours.args(pair.ours);
            let mut theirs = namespace.helm(*helm);
            theirs.args(pair.theirs);
            let (ours, theirs) = alternately((&ours, FOUND), (&theirs, 0), runs).await?;
            let what = |of: &str| format!("`{}`: {of}", pair.ours.join(" "));
            let row = |of, unit, ours, theirs, part| Row {
                what: what(of),
                unit,
                ours,
                against,
                theirs,
                bound: Bound::Part(part),
            };
            rows.push(row("time", Unit::Time, seconds(&ours), seconds(&theirs), pair.faster));
            rows.push(row("memory", Unit::Memory, peaks(&ours), peaks(&theirs), pair.smaller));
        }
    }
    Ok(rows)
}

/// Runs ours before and after theirs each time: what else the machine does falls on both. The first run of ours, which
/// finds the server cold, does not count.
async fn alternately(ours: (&Command, i32), theirs: (&Command, i32), runs: usize) -> Result<(Vec<Taken>, Vec<Taken>)> {
    taken(ours.0, ours.1).await?;
    let (mut first, mut second) = (Vec::new(), Vec::new());
    for _ in 0..runs {
        first.push(taken(ours.0, ours.1).await?);
        second.push(taken(theirs.0, theirs.1).await?);
        first.push(taken(ours.0, ours.1).await?);
    }
    Ok((first, second))
}
