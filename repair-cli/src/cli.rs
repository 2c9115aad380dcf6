//! The grammar of the command line. Words are parsed here, at the edge, into the library's types.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};
use helm_release::action::{Client, RepairOptions};
use helm_release::plan::{AssumeDead, Policy, Strategy};
use helm_release::release::{Invalid, Namespace, ReleaseName, Revision};
use helm_release::storage::DriverKind;

use crate::command::{
    backup, completions, demo, diff, doctor, get, history, inspect, list, man, plan, repair, restore, scan, status,
};
use crate::output::{Color, Format};

/// Finds, explains and repairs Helm releases that are stuck.
///
/// A release is stuck when its newest record says pending-install, pending-upgrade, pending-rollback or uninstalling
/// and whoever wrote it is gone: every later `helm upgrade` is then refused. `scan` finds such releases, `plan` explains what
/// would be done and on what evidence, `repair` does it after asking. Nothing is written to a cluster before the plan has
/// been shown and confirmed.
#[derive(Debug, Parser)]
#[command(name = "gwrepair", version, max_term_width = 100, arg_required_else_help = true)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

const EXAMPLES: &str = "\
Examples:
  gwrepair demo                             see all of it at work, without a cluster
  gwrepair scan -A                          which releases are stuck, anywhere
  gwrepair plan web -n shop                 what would be done about one, and why
  gwrepair repair web -n shop               do it, after asking
  gwrepair repair --all -A --yes            repair all that are stuck, without asking

Exit codes:
  0    done, or nothing to do
  2    wrong usage, or a confirmation was needed and there is no terminal
  3    stuck releases exist (scan), a repair is due (plan), some remain (repair --all), or something
       differs (diff --exit-code)
  4    refused or waiting: a decision or a consent is missing; the text says which flag gives it
  5    failed; what was and was not done is printed, and where the backup lies
  130  interrupted; the record is settled";

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    #[command(flatten)]
    Cluster(Box<Command>),
    Demo(demo::Demo),
    Completions(completions::Completions),
    Man(man::Man),
}

/// What to do with a cluster.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Scan(scan::Scan),
    Inspect(inspect::Inspect),
    Plan(plan::PlanArgs),
    Repair(repair::Repair),
    Backup(backup::BackupArgs),
    Restore(restore::Restore),
    History(history::History),
    List(list::List),
    Status(status::Status),
    #[command(subcommand)]
    Get(get::Get),
    Diff(diff::Diff),
    Doctor(doctor::Doctor),
}

/// Flags that every command takes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    /// The kubeconfig file, instead of KUBECONFIG or the one in the home directory.
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig to use.
    #[arg(long, alias = "kube-context", global = true, value_name = "NAME")]
    pub(crate) context: Option<String>,
    /// The cluster of the kubeconfig to use.
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) cluster: Option<String>,
    /// The user of the kubeconfig to use.
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) user: Option<String>,
    /// The user to impersonate.
    #[arg(long = "as", global = true, value_name = "USER")]
    pub(crate) as_user: Option<String>,
    /// A group to impersonate; may be repeated.
    #[arg(long, global = true, value_name = "GROUP", requires = "as_user")]
    pub(crate) as_group: Vec<String>,
    /// How long one request may take, such as 30s; 0 means for ever.
    #[arg(long, global = true, value_name = "DURATION", default_value = "1m", value_parser = duration)]
    pub(crate) request_timeout: Duration,
    /// The namespace, instead of the context's own.
    #[arg(short, long, global = true, value_name = "NAME")]
    pub(crate) namespace: Option<Namespace>,
    /// Where Helm keeps its records: secret or configmap.
    #[arg(long, global = true, value_name = "DRIVER", env = "HELM_DRIVER", hide_env_values = true)]
    #[arg(default_value_t = DriverKind::Secrets)]
    pub(crate) storage: DriverKind,
    /// How to show the result: table, wide, json, yaml, or name (NAMESPACE/NAME, which every command takes).
    #[arg(short, long, global = true, value_enum, value_name = "FORMAT", default_value_t, hide_possible_values = true)]
    pub(crate) output: Format,
    /// When to colour: auto, always or never. NO_COLOR works too.
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t, hide_possible_values = true)]
    pub(crate) color: Color,
    /// Log more to stderr; may be repeated. RUST_LOG works too.
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub(crate) verbose: u8,
    /// Print no progress, and log errors only.
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
}

/// Which releases a command that looks at many looks at.
#[derive(Debug, Args)]
pub(crate) struct Where {
    /// In all namespaces, whatever --namespace says.
    #[arg(short = 'A', long)]
    pub(crate) all_namespaces: bool,
    /// Only those whose records carry these labels, such as key=value.
    #[arg(short = 'l', long, value_name = "SELECTOR")]
    pub(crate) selector: Option<String>,
}

/// A release on the command line: `NAME`, or `NAMESPACE/NAME` as `-o name` prints it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) namespace: Option<Namespace>,
    pub(crate) name: ReleaseName,
}

impl FromStr for Target {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        match text.split_once('/') {
            Some((namespace, name)) => Ok(Self { namespace: Some(namespace.parse()?), name: name.parse()? }),
            None => Ok(Self { namespace: None, name: text.parse()? }),
        }
    }
}

/// How to repair, and what is allowed: the flags of `plan` and `repair`.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "How to repair")]
pub(crate) struct PolicyFlags {
    /// What to do, instead of what the evidence says.
    #[arg(long, value_enum, value_name = "HOW", default_value_t)]
    strategy: How,
    /// The revision to go back to, instead of the one that is found.
    #[arg(long, value_name = "REVISION")]
    to: Option<Revision>,
    /// Take your word that whoever wrote the pending record is dead.
    #[arg(long)]
    pub(crate) assume_dead: bool,
    /// How long an author who would be writing must have been silent.
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = duration)]
    min_age: Duration,
    /// How long an author who may be waiting must have been silent.
    #[arg(long, value_name = "DURATION", default_value = "60m", value_parser = duration)]
    foreign_timeout: Duration,
    /// How long to wait for objects to be ready, and for hooks to end.
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = duration)]
    timeout: Duration,
    /// Wait until the workloads are ready (the default).
    #[arg(long, overrides_with = "no_wait")]
    wait: bool,
    /// Do not wait until the workloads are ready.
    #[arg(long, overrides_with = "wait")]
    no_wait: bool,
    /// Delete a hook of the interrupted operation that is still running. It may be a schema migration.
    #[arg(long)]
    stop_hooks: bool,
    /// Delete hook objects that their own policy leaves.
    #[arg(long)]
    delete_hooks: bool,
    /// Go on although the server does not serve the kind of an old object.
    #[arg(long)]
    skip_unknown_kinds: bool,
    /// Take fields over from other field managers.
    #[arg(long)]
    force_conflicts: bool,
    /// Go on although another deployer keeps the objects.
    #[arg(long)]
    override_deployer: bool,
    /// Save and delete the newest record if it cannot be read.
    #[arg(long)]
    pub(crate) quarantine: bool,
    /// Guarded kinds that may be deleted, such as persistentvolumeclaim.
    #[arg(long, value_name = "KIND", value_delimiter = ',')]
    allow_delete: Vec<String>,
    /// Go back to a revision that is only suspected of having worked, where nothing better is found.
    #[arg(long)]
    allow_suspect_target: bool,
    /// Write under this field manager, instead of the one that the live objects show.
    #[arg(long, value_name = "NAME")]
    field_manager: Option<String>,
}

/// [`Strategy`] as a word of the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum How {
    /// By the evidence.
    #[default]
    Auto,
    /// Go back to the last good revision, whatever is already done.
    Rollback,
    /// Delete what the interrupted operation created, whatever lives.
    Uninstall,
    /// Bring the record forward, if the cluster holds its manifest.
    Finish,
    /// Only mark the interrupted record failed.
    Unlock,
}

impl PolicyFlags {
    /// The policy. `--assume-dead` is bound to a record only once that record has been shown.
    pub(crate) fn policy(&self) -> Policy {
        Policy {
            strategy: self.strategy.into(),
            to: self.to,
            assume_dead: AssumeDead::No,
            min_age: self.min_age,
            foreign_timeout: self.foreign_timeout,
            allow_delete: self.allow_delete.iter().map(|kind| kind.to_lowercase()).collect(),
            allow_suspect_target: self.allow_suspect_target,
            stop_hooks: self.stop_hooks,
            delete_hooks: self.delete_hooks,
            skip_unknown_kinds: self.skip_unknown_kinds,
            override_deployer: self.override_deployer,
            quarantine: self.quarantine,
            wait: !self.no_wait,
        }
    }

    /// How a repair runs.
    pub(crate) fn options(&self) -> RepairOptions {
        RepairOptions { timeout: self.timeout, wait: !self.no_wait, force_conflicts: self.force_conflicts }
    }

    /// How long to wait for what is not over.
    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// The client that writes under the field manager that was asked for.
    pub(crate) fn client(&self, client: Client) -> Client {
        match &self.field_manager {
            Some(manager) => client.with_field_manager(manager),
            None => client,
        }
    }
}

impl From<How> for Strategy {
    fn from(how: How) -> Self {
        match how {
            How::Auto => Self::Auto,
            How::Rollback => Self::Rollback,
            How::Uninstall => Self::Uninstall,
            How::Finish => Self::Finish,
            How::Unlock => Self::Unlock,
        }
    }
}

/// A length of time as Go writes it: `90s`, `1h30m`, `0`. A bare number is seconds, as in kubectl's `--request-timeout`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let bad = || format!("{text:?} is no duration: write 30s, 5m or 1h30m");
    if let Ok(seconds) = text.parse() {
        return Ok(Duration::from_secs(seconds));
    }
    let mut rest = text;
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(bad)?;
        let (number, tail) = rest.split_at(digits);
        let letters = tail.find(|c: char| c.is_ascii_digit()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(letters);
        let number: u64 = number.parse().map_err(|_| bad())?;
        total = total.checked_add(unit_of(unit, number).ok_or_else(bad)?).ok_or_else(bad)?;
        rest = tail;
    }
    if text.is_empty() { Err(bad()) } else { Ok(total) }
}

fn unit_of(unit: &str, number: u64) -> Option<Duration> {
    match unit {
        "ms" => Some(Duration::from_millis(number)),
        "s" => Some(Duration::from_secs(number)),
        "m" => number.checked_mul(60).map(Duration::from_secs),
        "h" => number.checked_mul(3600).map(Duration::from_secs),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_grammar_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn durations_are_those_of_go() {
        let seconds = |text| duration(text).map(|d| d.as_secs());
        assert_eq!(seconds("90s"), Ok(90));
        assert_eq!(seconds("1h30m"), Ok(5400));
        assert_eq!(seconds("0"), Ok(0));
        assert_eq!(seconds("45"), Ok(45));
        assert_eq!(duration("1500ms"), Ok(Duration::from_millis(1500)));
        for bad in ["", "m", "5x", "-5m", "1.5h", "5m 3s", "99999999999999999999h"] {
            assert!(duration(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_release_may_carry_its_namespace() {
        let target: Target = "shop/web".parse().unwrap();
        assert_eq!((target.namespace.unwrap().as_str(), target.name.as_str()), ("shop", "web"));
        assert!("shop/".parse::<Target>().is_err());
        assert_eq!("web".parse::<Target>().unwrap().namespace, None);
    }

    #[test]
    fn the_flags_of_repair_become_a_policy() {
        let line = "gwrepair plan web --strategy rollback --to 3 --no-wait --allow-delete PersistentVolumeClaim,Secret";
        let cli = Cli::try_parse_from(line.split(' ')).unwrap();
        let Verb::Cluster(command) = cli.verb else { panic!("not a plan") };
        let Command::Plan(args) = *command else { panic!("not a plan") };
        let policy = args.policy.policy();
        assert_eq!((policy.strategy, policy.to), (Strategy::Rollback, Revision::new(3)));
        assert!(!policy.wait && policy.allow_delete.contains("persistentvolumeclaim"));
    }

    #[test]
    fn the_defaults_are_the_librarys_own() {
        let cli = Cli::try_parse_from(["gwrepair", "plan", "web"]).unwrap();
        let Verb::Cluster(command) = cli.verb else { panic!("not a plan") };
        let Command::Plan(args) = *command else { panic!("not a plan") };
        assert_eq!(args.policy.policy(), Policy::default());
        assert_eq!(args.policy.options().timeout, RepairOptions::default().timeout);
    }

    #[test]
    fn helms_word_for_the_context_is_taken() {
        let cli = Cli::try_parse_from(["gwrepair", "scan", "--kube-context", "prod"]).unwrap();
        assert_eq!(cli.global.context.as_deref(), Some("prod"));
    }
}
