//! `backup`: saves releases, records and live objects, to a file.

use std::path::{Path, PathBuf};

use clap::Args;
use futures::StreamExt;
use helm_release::backup::{Backup, SavedRelease};
use serde::Serialize;

use crate::cli::{Target, Where};
use crate::error::{Exit, Failure};
use crate::output::{Cell, Table, View, Width, print, show};
use crate::saved::{Existing, write};
use crate::session::Session;

/// How many releases are read at once.
const AT_ONCE: usize = 8;

/// Saves releases to a file: all their records, and the live objects of the newest and of the last deployed revision.
///
/// The file holds Secrets: its owner alone may read it. It is whole or not there. `repair` and `restore` save by themselves
/// what they are about to change.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  gwrepair backup web -n shop -f web.json
  gwrepair backup -A -f all.json
  gwrepair backup web -n shop -f - | age -r KEY > web.json.age

Exits with 0 when all was saved, 5 when something could not be read: then there is no file.")]
pub(crate) struct BackupArgs {
    /// The releases, as NAME or NAMESPACE/NAME.
    #[arg(value_name = "RELEASE", required_unless_present_any = ["all_namespaces", "selector"])]
    #[arg(conflicts_with_all = ["all_namespaces", "selector"])]
    releases: Vec<Target>,
    #[command(flatten)]
    place: Where,
    /// The file to write; - is stdout.
    #[arg(short = 'f', long, value_name = "FILE")]
    file: PathBuf,
    /// Replace the file if it exists.
    #[arg(long)]
    force: bool,
}

pub(crate) async fn run(args: BackupArgs, session: &Session) -> Result<Exit, Failure> {
    let targets = if args.releases.is_empty() { find(&args, session).await? } else { args.releases.clone() };
    let reads = futures::stream::iter(&targets).map(|target| one(session, target));
    let backups: Vec<Result<Backup, Failure>> = reads.buffered(AT_ONCE).collect().await;
    let backups: Vec<Backup> = backups.into_iter().collect::<Result<_, _>>()?;
    let Some(taken) = backups.iter().map(|backup| backup.taken).min() else {
        session.remark("no releases");
        return Ok(Exit::Done);
    };
    let releases = backups.into_iter().flat_map(|backup| backup.releases).collect();
    let mut backup = Backup::new(taken, releases);
    backup.server = Some(session.server.clone());
    let text = backup.to_json().map_err(|why| Failure::new("could not write the backup as JSON").because(&why))?;
    if args.file == Path::new("-") {
        print(&text)?;
        return Ok(Exit::Done);
    }
    let existing = if args.force { Existing::Replace } else { Existing::Refuse };
    write(&args.file, &text, existing).map_err(|why| unwritten(&args.file, &why))?;
    show(&Saved::new(&args.file, &backup), session.format)?;
    Ok(Exit::Done)
}

async fn find(args: &BackupArgs, session: &Session) -> Result<Vec<Target>, Failure> {
    let heads = session.client.releases(&session.scope(&args.place), &session.stop).await;
    let heads = heads.map_err(|error| session.failure(&error))?;
    Ok(heads.into_iter().map(|head| Target { namespace: Some(head.namespace), name: head.name }).collect())
}

async fn one(session: &Session, target: &Target) -> Result<Backup, Failure> {
    let saved = session.client_of(target).backup(&target.name, &session.stop).await;
    match saved.map_err(|error| session.failure(&error))? {
        Some(backup) => Ok(backup),
        None => Err(session.absent(target).await),
    }
}

fn unwritten(path: &Path, why: &std::io::Error) -> Failure {
    let failure = Failure::new(format!("could not write the backup to {}", path.display())).because(why);
    let exists = why.kind() == std::io::ErrorKind::AlreadyExists;
    if exists { failure.hint("--force replaces it").exit(Exit::Usage) } else { failure }
}

/// What was saved, to be shown.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Saved<'a> {
    file: &'a Path,
    items: Vec<Item<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Item<'a> {
    namespace: &'a str,
    name: &'a str,
    records: usize,
    objects: usize,
    /// Objects whose kind is not served, so that they could not be read.
    left_out: &'a [String],
}

impl<'a> Saved<'a> {
    fn new(file: &'a Path, backup: &'a Backup) -> Self {
        let item = |release: &'a SavedRelease| Item {
            namespace: release.namespace.as_str(),
            name: release.name.as_str(),
            records: release.records.len(),
            objects: release.objects.len(),
            left_out: &release.left_out,
        };
        Self { file, items: backup.releases.iter().map(item).collect() }
    }
}

impl View for Saved<'_> {
    const KIND: &'static str = "BackupList";

    fn text(&self, _: Width) -> String {
        let mut table = Table::new(["NAMESPACE", "NAME", "RECORDS", "OBJECTS", "LEFT OUT"]);
        for item in &self.items {
            let left_out = Some(item.left_out.join(", ")).filter(|names| !names.is_empty());
            let name = [Cell::new(item.namespace), Cell::new(item.name)];
            table.row(name.into_iter().chain([item.records.into(), item.objects.into(), Cell::maybe(left_out)]));
        }
        table.text()
    }

    fn names(&self) -> Vec<String> {
        self.items.iter().map(|item| format!("{}/{}", item.namespace, item.name)).collect()
    }
}
