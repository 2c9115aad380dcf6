//! What goes wrong before a cluster is reached: the exit codes, and the texts that say what to do.

#![expect(clippy::unwrap_used, reason = "a test ends where its preparation fails")]

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

struct Ran {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

#[test]
fn wrong_usage_is_exit_2() {
    let lines = [
        "frobnicate",
        "scan --frobnicate",
        "plan",
        "plan Not_A_Name",
        "plan web --to 0",
        "plan web --min-age soon",
        "plan web --strategy hope",
        "repair",
        "repair web --all",
        "repair web --no-backup --backup-dir d",
        "backup web",
        "backup -f b.json",
        "backup web -A -f b.json",
        "restore",
        "repair web --parallel 0",
        "scan --as-group admins",
        "scan --storage sql",
        "scan -o xml",
        "list --filter [",
        "completions",
        "completions tcsh",
        "man",
        "get",
    ];
    for line in lines {
        let ran = gwrepair(line, None);
        assert_eq!(ran.code, Some(2), "{line}: {}", ran.stderr);
        assert!(ran.stdout.is_empty() && !ran.stderr.is_empty(), "{line}");
    }
}

#[test]
fn a_driver_out_of_reach_is_named() {
    let ran = gwrepair("scan --storage sql", None);
    assert!(ran.stderr.contains("records of the sql driver are in no cluster"), "{}", ran.stderr);
}

#[test]
fn help_and_version_are_exit_0() {
    assert_eq!(gwrepair("--version", None).code, Some(0));
    assert_eq!(gwrepair("repair -h", None).code, Some(0));
}

#[test]
fn a_missing_kubeconfig_is_named_with_the_way_out() {
    let ran = gwrepair("scan --kubeconfig no-such-file", None);
    assert_eq!(ran.code, Some(5));
    assert!(ran.stderr.starts_with("error: could not read the kubeconfig no-such-file\ncause: "), "{}", ran.stderr);
    assert!(ran.stderr.contains("hint: name another with --kubeconfig FILE"), "{}", ran.stderr);
}

#[test]
fn without_any_kubeconfig_the_places_looked_at_are_named() {
    let ran = gwrepair("scan", Some(Path::new("no-such-file")));
    assert_eq!(ran.code, Some(5));
    assert!(ran.stderr.contains("there is no kubeconfig at no-such-file (KUBECONFIG)"), "{}", ran.stderr);
}

#[test]
fn a_broken_kubeconfig_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config");
    std::fs::write(&path, "apiVersion: [").unwrap();
    let ran = gwrepair("scan", Some(&path));
    assert_eq!(ran.code, Some(5));
    assert!(ran.stderr.contains(&path.display().to_string()), "{}", ran.stderr);
}

#[test]
fn an_unknown_context_names_the_near_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = kubeconfig(folder.path(), 1);
    let ran = gwrepair("scan --context loopbak", Some(&path));
    assert_eq!(ran.code, Some(5));
    assert!(ran.stderr.contains("hint: did you mean --context loopback?"), "{}", ran.stderr);
}

#[test]
fn a_server_that_is_down_is_named_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let port = closed_port();
    let path = kubeconfig(folder.path(), port);
    for line in ["scan", "list -A", "history web", "plan web", "repair web --yes", "repair --all", "doctor"] {
        let begun = Instant::now();
        let ran = gwrepair(line, Some(&path));
        assert_eq!(ran.code, Some(5), "{line}: {}", ran.stderr);
        assert!(ran.stderr.contains(&format!("127.0.0.1:{port}")), "{line}: {}", ran.stderr);
        assert_eq!(ran.stderr.matches("refused").count(), 1, "the cause stands there once: {}", ran.stderr);
        assert!(begun.elapsed() < Duration::from_secs(5), "{line} took {:?}", begun.elapsed());
    }
}

#[test]
fn a_server_that_never_answers_is_given_up_after_the_request_timeout() {
    let folder = tempfile::tempdir().unwrap();
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let path = kubeconfig(folder.path(), silent.local_addr().unwrap().port());
    let begun = Instant::now();
    let ran = gwrepair("list --request-timeout 1s", Some(&path));
    assert_eq!(ran.code, Some(5), "{}", ran.stderr);
    assert!(begun.elapsed() < Duration::from_secs(10), "took {:?}", begun.elapsed());
}

#[test]
fn a_signal_ends_a_read_at_once_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let path = kubeconfig(folder.path(), silent.local_addr().unwrap().port());
    let mut command = Command::new(env!("CARGO_BIN_EXE_gwrepair"));
    command.args(["scan", "-A"]).env("KUBECONFIG", &path).stdin(Stdio::null()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    // Once it has connected, it listens for signals.
    let _held = silent.accept().unwrap();
    let begun = Instant::now();
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    assert!(String::from_utf8_lossy(&output.stderr).contains("stopping"), "{output:?}");
    assert!(begun.elapsed() < Duration::from_secs(5), "took {:?}", begun.elapsed());
}

#[test]
fn a_place_without_all_is_wrong_usage() {
    let folder = tempfile::tempdir().unwrap();
    let path = kubeconfig(folder.path(), closed_port());
    let ran = gwrepair("repair web -A", Some(&path));
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("hint: add --all"), "{}", ran.stderr);
}

#[test]
fn completions_need_no_cluster_and_know_every_command() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ran = gwrepair(&format!("completions {shell}"), Some(Path::new("no-such-file")));
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{shell}");
        for word in ["gwrepair", "inspect", "completions", "assume-dead"] {
            assert!(ran.stdout.contains(word), "{shell}: {word}");
        }
    }
}

#[test]
fn bash_completes_a_command_by_the_script() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("gwrepair.bash");
    std::fs::write(&script, gwrepair("completions bash", None).stdout).unwrap();
    let asked = "source \"$0\"; COMP_WORDS=(gwrepair rep); COMP_CWORD=1; _gwrepair gwrepair rep gwrepair; echo \"${COMPREPLY[@]}\"";
    let output = Command::new("bash").args(["-c", asked]).arg(&script).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "repair\n", "{output:?}");
}

#[test]
fn the_manual_has_a_page_for_every_command_and_needs_no_cluster() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("share/man1");
    let ran = gwrepair(&format!("man {}", pages.display()), Some(Path::new("no-such-file")));
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    let written: BTreeSet<_> = ran.stdout.lines().map(|line| Path::new(line).to_owned()).collect();
    let found: BTreeSet<_> = std::fs::read_dir(&pages).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(written, found);
    let names: BTreeSet<_> = found.iter().map(|path| path.file_stem().unwrap().to_str().unwrap()).collect();
    // The help texts are one for each command too.
    let help = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/help");
    for text in std::fs::read_dir(help).unwrap().map(|entry| entry.unwrap().path()) {
        let name = match text.file_stem().unwrap().to_str().unwrap() {
            "gwrepair" => "gwrepair".to_owned(),
            command => format!("gwrepair-{command}"),
        };
        assert!(names.contains(name.as_str()), "{name} has no page");
    }
    let page = std::fs::read_to_string(pages.join("gwrepair-repair.1")).unwrap();
    assert!(page.contains(".TH gwrepair-repair 1") && page.contains("assume\\-dead"), "{page}");
}

#[test]
fn a_manual_that_cannot_be_written_is_named_with_the_way_out() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let ran = gwrepair(&format!("man {}", file.display()), None);
    assert_eq!(ran.code, Some(5));
    let expected = format!("error: could not write the manual to {}\ncause: ", file.display());
    assert!(ran.stderr.starts_with(&expected) && ran.stderr.contains("hint: "), "{}", ran.stderr);
}

fn gwrepair(line: &str, kubeconfig: Option<&Path>) -> Ran {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gwrepair"));
    command.args(line.split_whitespace()).stdin(Stdio::null());
    for name in ["KUBECONFIG", "KUBERNETES_SERVICE_HOST", "HELM_DRIVER", "RUST_LOG", "CLICOLOR_FORCE"] {
        command.env_remove(name);
    }
    let output = command.envs(kubeconfig.map(|path| ("KUBECONFIG", path))).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ran { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

fn kubeconfig(folder: &Path, port: u16) -> std::path::PathBuf {
    let path = folder.join("config");
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: loopback\n\
         clusters: [{{name: c, cluster: {{server: 'http://127.0.0.1:{port}'}}}}]\n\
         users: [{{name: u, user: {{token: t}}}}]\n\
         contexts: [{{name: loopback, context: {{cluster: c, user: u}}}}]\n"
    );
    std::fs::write(&path, text).unwrap();
    path
}

/// A port that nothing listens on: it was free a moment ago.
fn closed_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}
