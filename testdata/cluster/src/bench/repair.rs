//! Repairing one release, beside what a person would do with Helm in the same state.

use std::path::Path;

use anyhow::{Result, ensure};
use testcluster::{Cluster, Counts, Fault, Helm, Namespace, Proxy, run};
use tokio::process::Command;

use super::{
    measure::{Taken, taken},
    table::{Bound, Row, Unit, peaks, seconds},
};

const CHART: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../charts/guarded");
/// What the chart makes: ten ConfigMaps, and a Deployment.
const VALUES: &str = "guarded=null,maps={a,b,c,d,e,f,g,h,i,j}";
const OBJECTS: f64 = 11.0;
/// The write that Helm is killed at: its record and some of the objects are written.
const KILLED_AT: usize = 7;
const REPAIR: &[&str] = &["repair", "web", "--assume-dead", "--yes", "--no-wait", "-q"];

const HELMS: &[(&str, Helm)] = &[("Helm 3", Helm::V3), ("Helm 4", Helm::V4)];

/// A way to leave a release stuck, and Helm's command that gets it out.
struct Case {
    what: &'static str,
    /// What Helm ends before the one that is killed.
    before: Option<&'static [&'static str]>,
    killed: &'static [&'static str],
    theirs: &'static [&'static str],
}

const CASES: &[Case] = &[
    Case {
        what: "an upgrade killed mid-apply, rolled back",
        before: Some(&["install", "web", CHART, "--set=message=one"]),
        killed: &["upgrade", "web", CHART, "--set=message=two"],
        theirs: &["rollback", "web", "1"],
    },
    Case {
        what: "a first install killed mid-apply, uninstalled",
        before: None,
        killed: &["install", "web", CHART, "--set=message=one,pod=never-ready"],
        theirs: &["uninstall", "web"],
    },
];

/// Measures every case `runs` times in time and memory, and counts the requests of one more run of each.
pub(super) async fn rows(cluster: &Cluster, gwrepair: &Path, runs: usize) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for case in CASES {
        for (against, helm) in HELMS {
            let bench = Bench { cluster, gwrepair, case, helm: *helm };
            let (mut ours, mut theirs) = (Vec::new(), Vec::new());
            for run in 0..runs {
                if run.is_multiple_of(2) {
                    ours.push(bench.timed(Side::Ours).await?);
                    theirs.push(bench.timed(Side::Theirs).await?);
                } else {
                    theirs.push(bench.timed(Side::Theirs).await?);
                    ours.push(bench.timed(Side::Ours).await?);
                }
            }
            let counts = (bench.counted(Side::Ours).await?, bench.counted(Side::Theirs).await?);
            rows.extend(case.rows(against, (&ours, &theirs), counts));
        }
    }
    Ok(rows)
}

impl Case {
    fn rows(&self, against: &'static str, taken: (&[Taken], &[Taken]), counts: (Counts, Counts)) -> [Row; 4] {
        let row = |of: &str, unit, ours, theirs, bound| Row {
            what: format!("{}: {of}", self.what),
            unit,
            ours,
            against,
            theirs,
            bound,
        };
        let writes = |counts: Counts| vec![counts.writes() as f64];
        let reads = |counts: Counts| vec![(counts.get + counts.dry_run + counts.review) as f64];
        let most = Bound::AtMost(2.0 * OBJECTS + 15.0);
        [
            row("time", Unit::Time, seconds(taken.0), seconds(taken.1), Bound::Part(1.0)),
            row("memory", Unit::Memory, peaks(taken.0), peaks(taken.1), Bound::Part(3.0)),
            row("writes", Unit::Requests, writes(counts.0), writes(counts.1), Bound::Part(1.0)),
            row("reads, dry runs and reviews", Unit::Requests, reads(counts.0), reads(counts.1), most),
        ]
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Ours,
    Theirs,
}

struct Bench<'a> {
    cluster: &'a Cluster,
    gwrepair: &'a Path,
    case: &'a Case,
    helm: Helm,
}

impl Bench<'_> {
    async fn timed(&self, side: Side) -> Result<Taken> {
        let namespace = self.wedged().await?;
        taken(&self.way_out(side, &namespace), 0).await
    }

    async fn counted(&self, side: Side) -> Result<Counts> {
        let namespace = self.wedged().await?;
        let proxy = Proxy::start(&namespace).await?;
        proxy.run(&mut self.way_out(side, &namespace)).await?.ok()?;
        Ok(proxy.counts())
    }

    fn way_out(&self, side: Side, namespace: &Namespace) -> Command {
        let (mut command, arguments) = match side {
            Side::Ours => (namespace.command(self.gwrepair), REPAIR),
            Side::Theirs => (namespace.helm(self.helm), self.case.theirs),
        };
        command.args(arguments);
        command
    }

    /// A namespace in which the release is stuck.
    async fn wedged(&self) -> Result<Namespace> {
        let namespace = self.cluster.namespace("repair").await?;
        if let Some(arguments) = self.case.before {
            run(namespace.helm(self.helm).args(arguments).args(["--set", VALUES])).await?.ok()?;
        }
        let proxy = Proxy::start(&namespace).await?;
        let killed = proxy.at_write(KILLED_AT, Fault::KillBefore);
        let ran = proxy.run(namespace.helm(self.helm).args(self.case.killed).args(["--set", VALUES])).await?;
        ensure!(killed.is_reached() && ran.code.is_none(), "not killed: {ran:?}");
        Ok(namespace)
    }
}
