//! Records that real Helm wrote, and damaged ones made from them: read as Helm reads them, and written back unharmed.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::io::Read;
use std::path::PathBuf;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use helm_release::codec;
use helm_release::release::{ApplyMethod, Content, Entry, Release, Status, Stored};
use serde_json::Value;

fn folder(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../testdata").join(name)
}

fn json(path: PathBuf) -> Value {
    serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap()
}

fn index(name: &str) -> Vec<Value> {
    json(folder(name).join("index.json")).as_array().unwrap().clone()
}

/// The text that the codec reads: a Secret's data is base64 once more.
fn stored_text(object: &Value) -> Vec<u8> {
    let text = object["data"]["release"].as_str().unwrap_or_default();
    if object["kind"] == "Secret" { STANDARD.decode(text).unwrap() } else { text.as_bytes().to_vec() }
}

fn entry(object: &Value) -> Entry {
    let labels = serde_json::from_value(object["metadata"]["labels"].clone()).unwrap_or_default();
    let key = object["metadata"]["name"].as_str().unwrap().to_owned();
    let content = match codec::decode(&stored_text(object)) {
        Ok(release) => Content::Readable(Box::new(release)),
        Err(error) => Content::Unreadable { why: error.to_string() },
    };
    Entry::place(Stored { key, labels, ..Stored::default() }, content).unwrap()
}

/// What is in a stored text, by other means than ours.
fn unpacked(text: &[u8]) -> Vec<u8> {
    let lines: Vec<u8> = text.iter().copied().filter(|b| *b != b'\n').collect();
    let packed = STANDARD.decode(lines).unwrap();
    let mut json = Vec::new();
    match flate2::read::MultiGzDecoder::new(&packed[..]).read_to_end(&mut json) {
        Ok(_) => json,
        Err(_) => packed,
    }
}

fn plain(text: &[u8]) -> Value {
    serde_json::from_slice(&unpacked(text)).unwrap()
}

#[test]
fn every_record_of_real_helm_is_read_and_written_back_to_the_byte() {
    let index = index("records");
    assert!(index.len() >= 28, "{}", index.len());
    for case in &index {
        let file = case["file"].as_str().unwrap();
        let object = json(folder("records").join(file));
        let text = stored_text(&object);
        let release = codec::decode(&text).unwrap();
        assert!(release.faults().is_empty(), "{file}: {:?}", release.faults());
        assert_eq!(release.to_json().unwrap().as_bytes(), unpacked(&text), "{file}");
        let again = codec::encode(&release).unwrap();
        assert_eq!(unpacked(again.as_bytes()), unpacked(&text), "{file}");
        assert_eq!(release.status().as_str(), case["status"].as_str().unwrap(), "{file}");
        assert_eq!(release.revision().unwrap().get(), u32::try_from(case["revision"].as_u64().unwrap()).unwrap());
        let server_side = case["apply"] == "server-side";
        assert_eq!(release.apply_method() == ApplyMethod::ServerSide, server_side, "{file}");
        let placed = entry(&object);
        assert!(placed.mismatches(&"web".parse().unwrap()).is_empty(), "{file}: {:?}", placed.stored);
    }
}

#[test]
fn every_part_of_a_record_of_real_helm_is_what_its_json_says() {
    for case in index("records") {
        let object = json(folder("records").join(case["file"].as_str().unwrap()));
        let text = stored_text(&object);
        let (release, plain) = (codec::decode(&text).unwrap(), plain(&text));
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        assert_eq!((release.name(), release.namespace()), (plain["name"].as_str(), plain["namespace"].as_str()));
        assert_eq!(release.manifest(), plain["manifest"]);
        assert_eq!(release.notes(), plain["info"]["notes"]);
        assert_eq!(release.info().description, plain["info"]["description"]);
        assert_eq!(release.config().map(parsed).unwrap_or_default(), plain["config"]);
        assert_eq!(parsed(release.chart_values().unwrap().get()), plain["chart"]["values"]);
        let (chart, metadata) = (release.chart().unwrap(), &plain["chart"]["metadata"]);
        let expected = [&metadata["name"], &metadata["version"], &metadata["appVersion"]].map(word);
        assert_eq!([chart.name, chart.version, chart.app_version], expected);
        let hooks = release.hooks();
        assert_eq!(hooks.len(), plain["hooks"].as_array().unwrap().len());
        assert!(!hooks.is_empty());
        for (hook, plain) in hooks.iter().zip(plain["hooks"].as_array().unwrap()) {
            let words = |key: &str| plain[key].as_array().into_iter().flatten().map(word).collect::<Vec<_>>();
            assert_eq!((&hook.events, &hook.delete_policies), (&words("events"), &words("delete_policies")));
            assert_eq!([&hook.name, &hook.kind, &hook.path], [&plain["name"], &plain["kind"], &plain["path"]]);
            assert_eq!(
                (hook.weight, &hook.manifest),
                (plain["weight"].as_i64().unwrap_or(0), &word(&plain["manifest"]))
            );
            assert_eq!(hook.last_run.phase, plain["last_run"]["phase"]);
            let begun = plain["last_run"]["started_at"].as_str().unwrap_or_default();
            assert_eq!(hook.last_run.started_at.is_some(), !begun.is_empty() && !begun.starts_with("0001"));
        }
    }
}

fn parsed(json: &str) -> Value {
    serde_json::from_str(json).unwrap()
}

#[test]
fn a_damaged_record_that_can_be_read_loses_nothing_when_it_is_written_back() {
    let mut closed = 0;
    for case in index("damaged") {
        let file = case["file"].as_str().unwrap();
        let object = json(folder("damaged").join(file));
        let text = stored_text(&object);
        let Ok(release) = codec::decode(&text) else { continue };
        let stored = unpacked(&text);
        // A record that is white space for the most part is written without it, as by Helm.
        let same = release.to_json().unwrap() == String::from_utf8_lossy(&stored) || file.ends_with("/bomb.json");
        assert!(same, "{file}");
        let Ok(changed) = release.with_status(Status::Failed, "Interrupted") else { continue };
        let again = codec::decode(codec::encode(&changed).unwrap().as_bytes()).unwrap();
        assert_eq!((again.status(), again.info().description.as_str()), (&Status::Failed, "Interrupted"), "{file}");
        assert_eq!(again.revision(), release.revision(), "{file}");
        let others = |release: &Release| (release.config().map(parsed), release.manifest().to_owned(), release.chart());
        assert_eq!(others(&again), others(&release), "{file}");
        closed += 1;
    }
    assert!(closed > 50, "{closed}");
}

#[test]
fn an_unreadable_record_keeps_its_place_and_says_why() {
    for case in index("damaged") {
        let file = case["file"].as_str().unwrap();
        let entry = entry(&json(folder("damaged").join(file)));
        if let Content::Unreadable { why } = &entry.content {
            assert_eq!(entry.revision.get(), 1, "{file}");
            assert!(!why.is_empty(), "{file}");
        }
    }
}

#[test]
fn a_closed_record_of_real_helm_differs_only_in_status_and_description() {
    for case in index("records") {
        let object = json(folder("records").join(case["file"].as_str().unwrap()));
        let before = codec::decode(&stored_text(&object)).unwrap();
        let after = before.with_status(Status::Failed, "Interrupted").unwrap();
        let mut expected: Value = serde_json::from_str(&before.to_json().unwrap()).unwrap();
        expected["info"]["status"] = "failed".into();
        expected["info"]["description"] = "Interrupted".into();
        let json = after.to_json().unwrap();
        assert_eq!(serde_json::from_str::<Value>(&json).unwrap(), expected);
        let status = before.status().as_str();
        let plain = |json: &str, status: &str, text: &str| {
            json.replacen(&format!("\"status\":\"{status}\""), "S", 1).replacen(
                &format!("\"description\":{text:?}"),
                "D",
                1,
            )
        };
        let old = before.to_json().unwrap();
        assert_eq!(plain(&json, "failed", "Interrupted"), plain(&old, status, &before.info().description));
    }
}

#[test]
fn a_damaged_record_is_sound_exactly_where_both_helms_list_it() {
    let index = index("damaged");
    assert!(index.len() >= 60, "{}", index.len());
    let mut wrong = Vec::new();
    for case in &index {
        let file = case["file"].as_str().unwrap();
        let object = json(folder("damaged").join(file));
        let lists = |helm: &str| case["expect"][helm]["history"] == "lists";
        assert_eq!(lists("helm3"), lists("helm4"), "{file}: the Helms differ");
        let entry = entry(&object);
        // Helm finds records by their labels alone, we by their names too.
        let label = |key: &str| entry.stored.labels.get(key).map(String::as_str);
        let labelled = label("owner") == Some("helm") && label("name") == Some("web");
        let listed = lists("helm3") || !labelled;
        if entry.sound().is_some() != listed {
            let faults = entry.release().map(Release::faults);
            wrong.push(format!("{file} ({}): helm lists: {}, ours: {faults:?}", case["how"], lists("helm3")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
