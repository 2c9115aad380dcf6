//! The same requests to the sandbox and to the real server: their answers are equal, but for a checked-in list of
//! differences, each with its reason. A new difference fails, and so does an entry that is none any more.
#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

mod exchange;
mod stories;

use std::collections::BTreeSet;

use anyhow::Result;
use sandbox::Sandbox;
use serde_json::{Value, json};
use testcluster::{Cluster, until};

use exchange::{Exchange, Server, Words, differences};
use stories::Story;

const KNOWN: &str = include_str!("../../conformance/known.txt");

/// A difference that is known: `STORY › STEP › POINTER`, where `*` stands for any text, and why.
struct Known {
    pattern: [&'static str; 3],
    line: &'static str,
}

#[derive(Default)]
struct Tally {
    exchanges: usize,
    equal: usize,
    listed: usize,
    used: BTreeSet<&'static str>,
    new: Vec<String>,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[ignore = "needs the real control plane"]
async fn the_sandbox_answers_as_the_real_server_does() -> Result<()> {
    let cluster = Cluster::shared()?;
    let known = known();
    let mut tally = Tally::default();
    for story in stories::all() {
        tell(&cluster, &story, &known, &mut tally).await?;
    }
    let stale: Vec<_> = known.iter().map(|known| known.line).filter(|line| !tally.used.contains(line)).collect();
    eprintln!("{} exchanges, {} equal, {} listed", tally.exchanges, tally.equal, tally.listed);
    assert!(tally.new.is_empty(), "{} new differences:\n{}", tally.new.len(), tally.new.join("\n"));
    assert!(stale.is_empty(), "no differences any more:\n{}", stale.join("\n"));
    Ok(())
}

async fn tell(cluster: &Cluster, story: &Story, known: &[Known], tally: &mut Tally) -> Result<()> {
    let namespace = cluster.namespace("conformance").await?;
    let sandbox = Sandbox::new();
    let listening = sandbox.listen().await?;
    let at =
        |url: &str, token: &str| Server { url: url.into(), token: token.into(), namespace: namespace.name().into() };
    let real = at(cluster.server(), cluster.token());
    let ours = at(&listening.url(), "sandbox");
    let client = reqwest::Client::builder().tls_danger_accept_invalid_certs(true).no_proxy().build()?;
    let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace.name()}});
    client.post(format!("{}/api/v1/namespaces", ours.url)).body(object.to_string()).send().await?.error_for_status()?;

    let (mut theirs, mut mine) = (Words::default(), Words::default());
    for exchange in &story.exchanges {
        let (a, b) = (answer(exchange, &client, &real, &theirs).await?, answer(exchange, &client, &ours, &mine).await?);
        let (a, b) = (theirs.plain(a, story.is_alive), mine.plain(b, story.is_alive));
        let mut found = Vec::new();
        differences(&a, &b, "", &mut found);
        tally.exchanges += 1;
        let mut is_listed = false;
        for (pointer, real, ours) in &found {
            match known.iter().find(|known| known.covers(&story.name, &exchange.step, pointer)) {
                Some(known) => {
                    tally.used.insert(known.line);
                    is_listed = true;
                }
                None => {
                    let short = |value: &Value| value.to_string().chars().take(300).collect::<String>();
                    let (real, ours) = (short(real), short(ours));
                    tally.new.push(format!(
                        "{} › {} › {pointer}\n    real {real}\n    ours {ours}",
                        story.name, exchange.step
                    ));
                }
            }
        }
        tally.equal += usize::from(found.is_empty());
        tally.listed += usize::from(is_listed);
    }
    Ok(())
}

/// Some things take the real server a moment; those are asked for until they are as the step says.
async fn answer(exchange: &Exchange, client: &reqwest::Client, server: &Server, words: &Words) -> Result<Value> {
    let ends: Option<fn(&Value) -> bool> = match exchange.step.split(':').next() {
        Some("until gone") => Some(|answer| answer["code"] == 404),
        Some("until served") => Some(|answer| answer["code"] == 200),
        Some("until going") => Some(|answer| answer["body"]["metadata"].get("deletionTimestamp").is_some()),
        _ => None,
    };
    let Some(ends) = ends else { return exchange.ask(client, server, words).await };
    until(&exchange.step, async || Ok(Some(exchange.ask(client, server, words).await?).filter(ends))).await
}

fn known() -> Vec<Known> {
    let lines = KNOWN.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let parse = |line: &'static str| {
        let (pattern, why) = line.split_once(" — ").unwrap_or_else(|| panic!("no reason: {line}"));
        assert!(why.len() > 10, "no reason: {line}");
        let parts: Vec<_> = pattern.split(" › ").collect();
        let pattern = <[&str; 3]>::try_from(parts).unwrap_or_else(|_| panic!("not STORY › STEP › POINTER: {line}"));
        Known { pattern, line }
    };
    lines.map(parse).collect()
}

impl Known {
    fn covers(&self, story: &str, step: &str, pointer: &str) -> bool {
        [story, step, pointer].iter().zip(self.pattern).all(|(text, pattern)| fits(pattern, text))
    }
}

/// Whether a text fits a pattern in which `*` stands for any text.
fn fits(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((head, rest)) => text.strip_prefix(head).is_some_and(|left| {
            (0..=left.len()).filter(|at| left.is_char_boundary(*at)).any(|at| fits(rest, &left[at..]))
        }),
    }
}

#[test]
fn a_star_stands_for_any_text() {
    assert!(fits("*", "") && fits("a*c", "abc") && fits("a*", "a") && fits("/body/*/x", "/body/a/b/x"));
    assert!(!fits("a*c", "abd") && !fits("a", "ab"));
}
