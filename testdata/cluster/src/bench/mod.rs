//! This library against real Helm, in one run on one machine: `make bench`.

mod decode;
mod measure;
mod repair;
mod scan;
mod seed;
mod table;

use std::{env, fs, fs::File, path::PathBuf, time::Instant};

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use testcluster::{Cluster, ControlPlane, Programs};

use decode::Decoders;
pub(crate) use measure::measure;
use table::Row;

/// What to measure.
#[derive(Args)]
pub(crate) struct Options {
    /// The release build of gwrepair
    #[arg(long)]
    gwrepair: PathBuf,
    /// The release build of the library's example `decode`
    #[arg(long)]
    decode: PathBuf,
    /// How often each command is run
    #[arg(long, default_value_t = 3)]
    runs: usize,
    /// Only these parts
    #[arg(value_enum)]
    parts: Vec<Part>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Decoding one large record
    Decode,
    /// Finding what is stuck among many releases
    Scan,
    /// Repairing one release
    Repair,
}

/// Measures, and prints the table.
pub(crate) async fn run(options: &Options) -> Result<()> {
    let programs = Programs::build()?;
    let place = Place::open(&programs)?;
    let plane = ControlPlane::resume(&place.dir, &env::current_exe()?).await?;
    let rows = measured(&place, plane.cluster(), options).await;
    plane.stop().await?;
    println!("{}", table::markdown(&rows?));
    Ok(())
}

async fn measured(place: &Place, cluster: &Cluster, options: &Options) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    let wanted = |part| options.parts.is_empty() || options.parts.contains(&part);
    if wanted(Part::Decode) {
        let decoders = Decoders { ours: &options.decode, theirs: cluster.programs().dir().join("decode") };
        rows.extend(decode::rows(&place.record(cluster).await?, &decoders, options.runs).await?);
    }
    let gwrepair = options.gwrepair.canonicalize().context("no release build of gwrepair")?;
    if wanted(Part::Scan) {
        place.fill(cluster).await?;
        rows.extend(scan::rows(cluster, &gwrepair, options.runs).await?);
    }
    if wanted(Part::Repair) {
        rows.extend(repair::rows(cluster, &gwrepair, options.runs).await?);
    }
    Ok(rows)
}

/// The folder of the control plane whose records are kept from one run to the next.
struct Place {
    dir: PathBuf,
    /// What its records were made by.
    version: String,
    _lock: File,
}

impl Place {
    /// Takes the folder for this run. What another version has put there goes.
    fn open(programs: &Programs) -> Result<Self> {
        let version = format!("{} {}", seed::VERSION, fs::read_to_string(programs.dir().join("stamp"))?);
        let dir = programs.dir().with_file_name("bench");
        fs::create_dir_all(&dir)?;
        let lock = File::create(dir.with_extension("lock"))?;
        if lock.try_lock().is_err() {
            bail!("another run measures in {}", dir.display());
        }
        let place = Self { dir, version, _lock: lock };
        if !place.is_filled() {
            fs::remove_dir_all(&place.dir).with_context(|| format!("could not empty {}", place.dir.display()))?;
        }
        Ok(place)
    }

    fn stamp(&self) -> PathBuf {
        self.dir.join("seeded")
    }

    fn is_filled(&self) -> bool {
        fs::read_to_string(self.stamp()).is_ok_and(|stamp| stamp == self.version)
    }

    /// The large record; real Helm writes it once.
    async fn record(&self, cluster: &Cluster) -> Result<PathBuf> {
        let file = self.dir.join("record.json");
        if !file.exists() {
            decode::write_record(cluster, &file).await?;
        }
        Ok(file)
    }

    /// Seeds the records, unless they are there.
    async fn fill(&self, cluster: &Cluster) -> Result<()> {
        if self.is_filled() {
            return Ok(());
        }
        let began = Instant::now();
        eprintln!("seeding {} records, once", seed::RELEASES * seed::REVISIONS);
        seed::seed(cluster).await?;
        eprintln!("seeded in {:.0} s", began.elapsed().as_secs_f64());
        Ok(fs::write(self.stamp(), &self.version)?)
    }
}
