//! `demo`: an embedded Kubernetes API, releases as real Helm left them, and this very program repairing them.

use std::fs;
use std::io::{IsTerminal, stdout};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use clap::Args;
use helm_release::action::Stop;
use sandbox::{Listening, Rules, Sandbox};
use serde_json::Value;
use tokio::process::Command;

use crate::error::{Exit, Failure};
use crate::output::{Color, print, say};

/// Stands for the file that the repair of shop/web kept.
const BACKUP: &str = "BACKUP";
/// Where it is, below the folder of the demo.
const BACKUPS: &str = "gwrepair/backups/shop";

/// Five namespaces after real Helm was killed in four of them; `testdata/demo` tells how.
const OBJECTS: &str = include_str!("../../../testdata/demo/objects.jsonl");
/// A workload takes a moment to become ready, so that waiting can be seen.
const READY_AFTER: Duration = Duration::from_millis(1500);
/// How long ago Helm was killed: long enough to be given up by everybody.
const AGE: TimeDelta = TimeDelta::hours(3);
/// What a person needs to read a headline.
const PAUSE: Duration = Duration::from_millis(1200);

const HEAD: Style = AnsiColor::Cyan.on_default().bold();
const PROMPT: Style = Style::new().bold();

/// Shows what this program does, on a cluster of its own.
///
/// Serves a Kubernetes API from memory on a loopback port, with releases as real Helm left them when it was killed, and runs
/// scan, plan, repair and scan against it. Needs no cluster, touches none, and leaves nothing behind.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  gwrepair demo            watch it
  gwrepair demo --keep     wedge the releases again afterwards, and print a kubeconfig to play with")]
pub(crate) struct Demo {
    /// Stay up afterwards, with the releases wedged again, and print a kubeconfig to play with.
    #[arg(long)]
    keep: bool,
}

/// One thing that is shown: why, what is run, and how it ends.
struct Scene {
    headline: &'static str,
    arguments: &'static [&'static str],
    exit: i32,
}

const SCENES: &[Scene] = &[
    Scene {
        headline: "Four releases whose Helm was killed. Helm has locked them for ever; which ones are they?",
        arguments: &["scan", "-A"],
        exit: 3,
    },
    Scene {
        headline: "What happened to shop/web, what would be done about it, and on what evidence?",
        arguments: &["plan", "web", "-n", "shop"],
        exit: 3,
    },
    Scene {
        headline: "Repair all four. Each needs something else.",
        arguments: &["repair", "--all", "-A", "--yes"],
        exit: 0,
    },
    Scene { headline: "Is anything still stuck?", arguments: &["scan", "-A"], exit: 0 },
    Scene {
        headline: "The history tells what was done. A later `helm upgrade` goes on from here.",
        arguments: &["history", "web", "-n", "shop"],
        exit: 0,
    },
    Scene {
        headline: "Every repair keeps what it is about to change. Undo the one of shop/web.",
        arguments: &["restore", BACKUP, "--yes"],
        exit: 0,
    },
];

/// Where the demo runs: what a command needs to reach it.
struct Stage<'a> {
    program: PathBuf,
    kubeconfig: PathBuf,
    /// Where backups go.
    home: PathBuf,
    color: Color,
    stop: &'a Stop,
}

/// Runs without a cluster: nothing but the sandbox is connected to.
pub(crate) async fn run(args: &Demo, color: Color, stop: &Stop) -> Result<Exit, Failure> {
    let dir = Scratch::new()?;
    let program = std::env::current_exe().map_err(|why| Failure::new("could not find this program").because(&why))?;
    let stage = Stage { program, kubeconfig: dir.0.join("kubeconfig"), home: dir.0.clone(), color, stop };
    let listening = stage.raise().await?;
    for scene in SCENES {
        stage.play(scene).await?;
    }
    drop(listening);
    if args.keep {
        let _listening = stage.raise().await?;
        stage.invite();
        stop.stopped().await;
    }
    Ok(Exit::Done)
}

impl Stage<'_> {
    /// A new sandbox with the wedged releases, and a kubeconfig for it.
    async fn raise(&self) -> Result<Listening, Failure> {
        let failed = |why: &(dyn std::error::Error + 'static)| Failure::new("could not start the sandbox").because(why);
        let sandbox = Sandbox::new();
        let objects: Result<Vec<Value>, _> = OBJECTS.lines().map(serde_json::from_str).collect();
        let mut objects = objects.map_err(|why| failed(&why))?;
        let newest = objects.iter().filter_map(newest).max().unwrap_or_default();
        for mut object in objects.drain(..) {
            shift(&mut object, Utc::now() - AGE - newest);
            sandbox.plant(object).map_err(|why| failed(&*why))?;
        }
        sandbox.set_rules(Rules { ready_after: READY_AFTER, ..Rules::default() });
        let listening = sandbox.listen().await.map_err(|why| failed(&why))?;
        fs::write(&self.kubeconfig, listening.kubeconfig("default").to_string()).map_err(|why| failed(&why))?;
        Ok(listening)
    }

    async fn play(&self, scene: &Scene) -> Result<(), Failure> {
        let arguments = scene.arguments.iter().map(|word| self.word(word)).collect::<Result<Vec<_>, _>>()?;
        let words = arguments.join(" ");
        print(&format!("\n{HEAD}# {}{HEAD:#}\n{PROMPT}$ gwrepair {words}{PROMPT:#}\n", scene.headline))?;
        if stdout().is_terminal() {
            let _ = self.stop.run(tokio::time::sleep(PAUSE)).await;
        }
        self.stop.check().map_err(|_| Failure::new("the demo was stopped"))?;
        let mut child = self.command(&arguments).spawn();
        let ended = match &mut child {
            Ok(child) => child.wait().await,
            Err(why) => return Err(Failure::new(format!("could not run gwrepair {words}")).because(why)),
        };
        let code = ended.ok().and_then(|status| status.code());
        if code == Some(scene.exit) {
            return Ok(());
        }
        let seen = code.map_or("by a signal".into(), |code| format!("with {code}"));
        Err(Failure::new(format!("gwrepair {words} ended {seen}, not with {}", scene.exit)))
    }

    /// A word of a command line; the name of a backup is known only once there is one.
    fn word(&self, word: &str) -> Result<String, Failure> {
        if word != BACKUP {
            return Ok(word.into());
        }
        let dir = self.home.join(BACKUPS);
        let failed = |why: &std::io::Error| Failure::new(format!("no backup in {}", dir.display())).because(why);
        let found = fs::read_dir(&dir).and_then(|mut entries| entries.next().transpose());
        let entry = found.map_err(|why| failed(&why))?;
        entry
            .map(|entry| entry.path().display().to_string())
            .ok_or_else(|| failed(&std::io::ErrorKind::NotFound.into()))
    }

    fn command(&self, arguments: &[String]) -> Command {
        let mut command = Command::new(&self.program);
        let color = match self.color {
            Color::Auto => "auto",
            Color::Always => "always",
            Color::Never => "never",
        };
        command.args(arguments).args(["--color", color]).stdin(Stdio::null());
        command.env("KUBECONFIG", &self.kubeconfig).env("XDG_DATA_HOME", &self.home).env_remove("HELM_DRIVER");
        command
    }

    fn invite(&self) {
        let path = self.kubeconfig.display();
        say(&format!(
            "\n{HEAD}# The releases are wedged again. In another terminal:{HEAD:#}\n\
             {PROMPT}  export KUBECONFIG={path}\n  gwrepair scan -A{PROMPT:#}\n\
             \nhelm and kubectl work with it too: `helm upgrade web CHART -n shop` shows the lock. Ctrl-C ends it.\n"
        ));
    }
}

/// The newest time in an object.
fn newest(value: &Value) -> Option<DateTime<Utc>> {
    match value {
        Value::Object(members) => members.values().filter_map(newest).max(),
        Value::Array(items) => items.iter().filter_map(newest).max(),
        Value::String(text) => time(text),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

/// Moves every time in an object. Those in the records' payloads stay: they are as Helm wrote them.
fn shift(value: &mut Value, by: TimeDelta) {
    match value {
        Value::Object(members) => members.values_mut().for_each(|value| shift(value, by)),
        Value::Array(items) => items.iter_mut().for_each(|value| shift(value, by)),
        Value::String(text) => {
            if let Some(time) = time(text) {
                *text = (time + by).to_rfc3339_opts(SecondsFormat::Secs, true);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn time(text: &str) -> Option<DateTime<Utc>> {
    DateTime::parse_from_rfc3339(text).ok().map(|time| time.to_utc())
}

/// A folder that goes away with the demo.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Self, Failure> {
        let dir = std::env::temp_dir().join(format!("gwrepair-demo-{}", std::process::id()));
        fs::create_dir_all(&dir)
            .map_err(|why| Failure::new(format!("could not create {}", dir.display())).because(&why))?;
        Ok(Self(dir))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Best effort: it is in a folder for what may be lost.
        let _ = fs::remove_dir_all(&self.0);
    }
}
