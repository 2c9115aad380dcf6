//! `diff`: what differs between two revisions, or between a revision and what runs.

use clap::Args;
use helm_release::diff::{Change, Difference, Part, between};
use helm_release::release::{Entry, History, Revision, Status};
use serde::Serialize;
use serde_json::Value;
use similar::TextDiff;

use crate::cli::Target;
use crate::error::{Exit, Failure};
use crate::output::{Emphasis, View, Width, plain, show};
use crate::session::{Session, entry, readable};

/// Shows what differs between two revisions of a release, or between a revision and what runs.
///
/// Without flags: from the revision before the newest to the newest. `--revision A`: from A to the newest. `--revision A --to B`: from
/// A to B. What only the later one says is marked +, what only the earlier one says is marked -.
///
/// `--live` compares the newest deployed revision, or `--revision A`, with the cluster. Marked - is what the manifest makes of an
/// object, marked + is what is live. What differs is found by dry-running what a repair would do; only fields are shown that
/// the manifest sets, or that a repair would change. Objects that are missing, and those that other revisions left behind, are
/// shown too.
///
/// Values of Secrets are hidden, in every format.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  gwrepair diff web -n shop
  gwrepair diff web -n shop --revision 3 --to 5
  gwrepair diff web -n shop --live
  gwrepair diff web -n shop --live --exit-code -o name

Exits with 0, whether or not something differs; with --exit-code 3 when something does.")]
pub(crate) struct Diff {
    /// The release, as NAME or NAMESPACE/NAME.
    #[arg(value_name = "RELEASE")]
    release: Target,
    /// The revision to start from.
    #[arg(long, value_name = "REVISION")]
    revision: Option<Revision>,
    /// The revision to go to, instead of the newest.
    #[arg(long, value_name = "REVISION", requires = "revision", conflicts_with = "live")]
    to: Option<Revision>,
    /// Compare with what runs.
    #[arg(long)]
    live: bool,
    /// Leave hooks out.
    #[arg(long)]
    no_hooks: bool,
    /// Show the values of Secrets.
    #[arg(long)]
    show_secrets: bool,
    /// How many equal lines to show around each difference.
    #[arg(short = 'U', long, value_name = "LINES", default_value_t = 3)]
    unified: usize,
    /// Exit with 3 when something differs.
    #[arg(long)]
    exit_code: bool,
}

/// What differs, to be shown.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown {
    namespace: String,
    name: String,
    from: Side,
    to: Side,
    items: Vec<Item>,
    /// Where weaker evidence had to be used.
    weaker: Vec<String>,
}

/// One side of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
enum Side {
    Revision(Revision),
    Live(bool),
}

#[derive(Debug, Serialize)]
struct Item {
    #[serde(flatten)]
    difference: Difference,
    /// As text in unified form.
    diff: String,
}

pub(crate) async fn run(args: Diff, session: &Session) -> Result<Exit, Failure> {
    let history = session.history(&args.release).await?;
    let mut shown = if args.live { live(&args, session, &history).await? } else { revisions(&args, &history)? };
    shown.finish(&args);
    show(&shown, session.format)?;
    for weak in &shown.weaker {
        session.remark(&format!("note: {weak}"));
    }
    if shown.items.is_empty() {
        session.remark(&shown.equal());
    }
    Ok(if args.exit_code && !shown.items.is_empty() { Exit::Due } else { Exit::Done })
}

fn revisions(args: &Diff, history: &History) -> Result<Shown, Failure> {
    let to = entry(history, args.to)?;
    let from = match args.revision {
        Some(revision) => entry(history, Some(revision))?,
        None => before(history, to)?,
    };
    let items = between(readable(from)?, readable(to)?, &history.namespace).map_err(|why| {
        let pair = format!("revisions {} and {}", from.revision, to.revision);
        Failure::new(format!("could not compare {pair} of {:?}", history.name.as_str())).because(&why)
    })?;
    Ok(Shown::new(history, Side::Revision(from.revision), Side::Revision(to.revision), items))
}

fn before<'a>(history: &'a History, newest: &Entry) -> Result<&'a Entry, Failure> {
    let below = history.entries().iter().rev().find(|entry| entry.revision < newest.revision);
    below.ok_or_else(|| {
        Failure::new(format!("release {:?} has no revision before {}", history.name.as_str(), newest.revision))
            .hint("--live compares it with what runs")
    })
}

async fn live(args: &Diff, session: &Session, history: &History) -> Result<Shown, Failure> {
    let record = match args.revision {
        Some(revision) => entry(history, Some(revision))?,
        None => deployed(history)?,
    };
    readable(record)?;
    let drift = session.client_of(&args.release).drift(history, record.revision, &session.stop).await;
    let drift = drift.map_err(|error| session.failure(&error))?;
    let shown = Shown::new(history, Side::Revision(record.revision), Side::Live(true), drift.differences);
    Ok(Shown { weaker: drift.weaker, ..shown })
}

fn deployed(history: &History) -> Result<&Entry, Failure> {
    let deployed = history.entries().iter().rev().find(|entry| entry.status() == Some(&Status::Deployed));
    deployed.ok_or_else(|| {
        let numbers: Vec<String> = history.entries().iter().map(|entry| entry.revision.to_string()).collect();
        Failure::new(format!("no revision of release {:?} is deployed", history.name.as_str()))
            .hint(format!("--revision names the one to compare with: {}", numbers.join(", ")))
    })
}

impl Shown {
    fn new(history: &History, from: Side, to: Side, differences: Vec<Difference>) -> Self {
        let items = differences.into_iter().map(|difference| Item { difference, diff: String::new() }).collect();
        let (namespace, name) = (history.namespace.to_string(), history.name.to_string());
        Self { namespace, name, from, to, items, weaker: Vec::new() }
    }

    /// Hides what is not to be shown, and puts the rest into words.
    fn finish(&mut self, args: &Diff) {
        if args.no_hooks {
            self.items.retain(|item| item.difference.part != Part::Hook);
        }
        let (from, to) = (self.from.word(), self.to.word());
        for item in &mut self.items {
            if !args.show_secrets {
                item.difference.conceal();
            }
            item.diff = unified(&item.difference, args.unified, &from, &to);
        }
    }

    fn equal(&self) -> String {
        match self.to {
            Side::Live(_) => format!("no differences: the cluster holds {}", self.from.word()),
            Side::Revision(_) => format!("no differences between {} and {}", self.from.word(), self.to.word()),
        }
    }
}

/// The differences of one object as text.
fn unified(difference: &Difference, radius: usize, from: &str, to: &str) -> String {
    let text = |side: &Option<Value>| side.as_ref().map(goyaml::emit).unwrap_or_default();
    let (before, after) = (text(&difference.before), text(&difference.after));
    let diff = TextDiff::from_lines(before.as_str(), after.as_str());
    diff.unified_diff().context_radius(radius).header(from, to).to_string()
}

impl Side {
    fn word(self) -> String {
        match self {
            Self::Revision(revision) => format!("revision {revision}"),
            Self::Live(_) => "live".into(),
        }
    }
}

impl Item {
    /// A headline, and the lines that differ.
    fn text(&self) -> String {
        let Difference { object, part, change, note, .. } = &self.difference;
        let place = object.namespace.as_ref().map(|namespace| format!(" in namespace {namespace}")).unwrap_or_default();
        let hook = if *part == Part::Hook { " (hook)" } else { "" };
        let note = note.as_ref().map(|note| format!(": {note}")).unwrap_or_default();
        let headline = plain(&format!("{object}{place}{hook} {}{note}", word(*change)));
        let lines: String = self.diff.lines().map(|line| painted(line) + "\n").collect();
        Emphasis::Strong.paint(&headline) + "\n" + &lines
    }
}

fn painted(line: &str) -> String {
    let emphasis = match line.as_bytes() {
        [b'-', b'-', b'-', b' ', ..] | [b'+', b'+', b'+', b' ', ..] => Emphasis::Strong,
        [b'-', ..] => Emphasis::Bad,
        [b'+', ..] => Emphasis::Good,
        [b'@', ..] => Emphasis::Faint,
        _ => Emphasis::None,
    };
    emphasis.paint(&plain(line))
}

/// What became of an object, after its name.
fn word(change: Change) -> &'static str {
    match change {
        Change::Added => "is added",
        Change::Removed => "is removed",
        Change::Changed => "is changed",
        Change::Missing => "is missing in the cluster",
        Change::Drifted => "is not as the manifest says",
        Change::Leaked => "was left behind",
        Change::Unserved => "is of a kind that is not served",
    }
}

impl View for Shown {
    const KIND: &'static str = "Diff";

    fn text(&self, _: Width) -> String {
        self.items.iter().map(Item::text).collect::<Vec<_>>().join("\n")
    }

    /// The objects that differ, as kubectl names them.
    fn names(&self) -> Vec<String> {
        self.items.iter().map(|item| item.difference.object.to_string()).collect()
    }
}

#[cfg(test)]
mod tests {
    use helm_release::release::{Content, Release, Stored};
    use serde_json::json;

    use super::*;

    fn record(revision: u32, status: &str, message: &str, password: &str) -> Entry {
        let manifest = format!(
            "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\ndata: {{message: {message}}}\n\
             ---\napiVersion: v1\nkind: Secret\nmetadata: {{name: s}}\nstringData: {{password: {password}}}\n"
        );
        let release = json!({"name": "web", "version": revision, "info": {"status": status}, "manifest": manifest});
        let release = Release::parse(&release.to_string()).unwrap();
        let stored = Stored { key: format!("sh.helm.release.v1.web.v{revision}"), ..Stored::default() };
        Entry::place(stored, Content::Readable(Box::new(release))).unwrap()
    }

    fn history(entries: Vec<Entry>) -> History {
        History::new("web".parse().unwrap(), "shop".parse().unwrap(), entries)
    }

    fn two() -> History {
        history(vec![record(1, "superseded", "one", "hush"), record(3, "deployed", "two", "secret")])
    }

    fn args(line: &str) -> Diff {
        use clap::Parser;
        let words = ["gwrepair", "diff", "web"].into_iter().chain(line.split_whitespace());
        let crate::cli::Verb::Cluster(command) = crate::cli::Cli::try_parse_from(words).unwrap().verb else { panic!() };
        let crate::cli::Command::Diff(args) = *command else { panic!("{command:?}") };
        args
    }

    fn shown(history: &History, line: &str) -> Shown {
        let args = args(line);
        let mut shown = revisions(&args, history).unwrap();
        shown.finish(&args);
        shown
    }

    #[test]
    fn the_newest_revision_is_compared_with_the_one_before_it() {
        let expected = "\
configmap/a is changed
--- revision 1
+++ revision 3
@@ -1,6 +1,6 @@
 apiVersion: v1
 data:
-  message: one
+  message: two
 kind: ConfigMap
 metadata:
   name: a

secret/s is changed
--- revision 1
+++ revision 3
@@ -3,4 +3,4 @@
 metadata:
   name: s
 stringData:
-  password: '*** (before)'
+  password: '*** (after)'
";
        let text = shown(&two(), "").text(Width::Normal);
        assert_eq!(anstream::adapter::strip_str(&text).to_string(), expected);
    }

    #[test]
    fn secrets_are_hidden_in_every_format_unless_they_are_asked_for() {
        let json = |line: &str| serde_json::to_string(&shown(&two(), line)).unwrap();
        assert!(!json("").contains("hush") && !json("").contains("secret\""), "{}", json(""));
        assert!(json("--show-secrets").contains("hush"));
    }

    #[test]
    fn revisions_are_named_as_helm_diff_names_them() {
        let sides = |line: &str| {
            let shown = shown(&two(), line);
            (shown.from.word(), shown.to.word(), shown.names())
        };
        let both = || vec!["configmap/a".to_owned(), "secret/s".to_owned()];
        assert_eq!(sides("--revision 1"), ("revision 1".into(), "revision 3".into(), both()));
        assert_eq!(sides("--revision 3 --to 1"), ("revision 3".into(), "revision 1".into(), both()));
        assert_eq!(shown(&two(), "--revision 3").equal(), "no differences between revision 3 and revision 3");
    }

    #[test]
    fn what_cannot_be_compared_names_the_way_out() {
        let one = history(vec![record(1, "failed", "one", "x")]);
        let text = |failure: Failure| anstream::adapter::strip_str(&failure.text()).to_string();
        let nothing_before = text(revisions(&args(""), &one).unwrap_err());
        assert!(
            nothing_before.contains("no revision before 1") && nothing_before.contains("--live"),
            "{nothing_before}"
        );
        assert!(text(deployed(&one).unwrap_err()).contains("hint: --revision names the one to compare with: 1"));
        assert!(text(revisions(&args("--revision 7"), &one).unwrap_err()).contains("there are the revisions 1"));
    }

    #[test]
    fn the_json_has_the_documented_members() {
        let value = serde_json::to_value(shown(&two(), "")).unwrap();
        assert_eq!((&value["from"], &value["to"]), (&json!({"revision": 1}), &json!({"revision": 3})));
        let item = &value["items"][0];
        assert_eq!((&item["change"], &item["part"]), (&"changed".into(), &"manifest".into()));
        assert_eq!(item["object"], json!({"group": "", "kind": "ConfigMap", "name": "a"}));
        assert_eq!(
            (&item["before"]["data"]["message"], &item["after"]["data"]["message"]),
            (&"one".into(), &"two".into())
        );
    }
}
