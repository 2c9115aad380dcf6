//! Records that real Helm wrote, and damaged ones made from them: read as Helm reads them, and written back unharmed.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

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

fn unpacked(text: &[u8]) -> String {
    use std::io::Read;
    let packed = STANDARD.decode(text).unwrap();
    let mut json = String::new();
    flate2::read::MultiGzDecoder::new(&packed[..]).read_to_string(&mut json).unwrap();
    json
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
        assert_eq!(release.to_json().unwrap(), unpacked(&text), "{file}");
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
