//! The bodies that Go's typed clients send as Protobuf: Helm its records, kubectl its reviews. Answers are JSON.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, SecondsFormat};
use serde_json::{Map, Value, json};

pub(crate) const CONTENT_TYPE: &str = "application/vnd.kubernetes.protobuf";
/// What every such body begins with.
const MAGIC: &[u8] = b"k8s\0";

/// A field of a message: its number, its name in JSON, what it holds.
type Field = (u64, &'static str, Holds);

#[derive(Clone, Copy)]
enum Holds {
    Text,
    Texts,
    Bytes,
    Number,
    Flag,
    Time,
    One(&'static [Field]),
    Many(&'static [Field]),
    /// From text to text.
    TextMap,
    /// From text to bytes.
    BytesMap,
}

use Holds::{Bytes, BytesMap, Flag, Many, Number, One, Text, TextMap, Texts, Time};

const ENVELOPE: &[Field] = &[(1, "type", One(&[(1, "apiVersion", Text), (2, "kind", Text)])), (2, "raw", Bytes)];
const OWNER: &[Field] = &[
    (1, "kind", Text),
    (3, "name", Text),
    (4, "uid", Text),
    (5, "apiVersion", Text),
    (6, "controller", Flag),
    (7, "blockOwnerDeletion", Flag),
];
const METADATA: &[Field] = &[
    (1, "name", Text),
    (2, "generateName", Text),
    (3, "namespace", Text),
    (5, "uid", Text),
    (6, "resourceVersion", Text),
    (8, "creationTimestamp", Time),
    (11, "labels", TextMap),
    (12, "annotations", TextMap),
    (13, "ownerReferences", Many(OWNER)),
    (14, "finalizers", Texts),
];
const SECRET: &[Field] = &[
    (1, "metadata", One(METADATA)),
    (2, "data", BytesMap),
    (3, "type", Text),
    (4, "stringData", TextMap),
    (5, "immutable", Flag),
];
const CONFIG_MAP: &[Field] =
    &[(1, "metadata", One(METADATA)), (2, "data", TextMap), (3, "binaryData", BytesMap), (4, "immutable", Flag)];
const NAMESPACE: &[Field] = &[(1, "metadata", One(METADATA))];
const ATTRIBUTES: &[Field] = &[
    (1, "namespace", Text),
    (2, "verb", Text),
    (3, "group", Text),
    (4, "version", Text),
    (5, "resource", Text),
    (6, "subresource", Text),
    (7, "name", Text),
];
const ACCESS_REVIEW: &[Field] =
    &[(1, "metadata", One(METADATA)), (2, "spec", One(&[(1, "resourceAttributes", One(ATTRIBUTES))]))];
const DELETE_OPTIONS: &[Field] = &[
    (1, "gracePeriodSeconds", Number),
    (2, "preconditions", One(&[(1, "uid", Text), (2, "resourceVersion", Text)])),
    (3, "orphanDependents", Flag),
    (4, "propagationPolicy", Text),
    (5, "dryRun", Texts),
];

/// The object in a body; none if it is broken, or of a kind that is not known here.
pub(crate) fn decode(body: &[u8]) -> Option<Value> {
    let envelope = message(body.strip_prefix(MAGIC)?, ENVELOPE)?;
    let kind = envelope["type"]["kind"].as_str()?;
    let fields = match kind {
        "ConfigMap" => CONFIG_MAP,
        "DeleteOptions" => DELETE_OPTIONS,
        "Namespace" => NAMESPACE,
        "Secret" => SECRET,
        "SelfSubjectAccessReview" => ACCESS_REVIEW,
        _ => return None,
    };
    let raw = STANDARD.decode(envelope["raw"].as_str().unwrap_or_default()).ok()?;
    let mut object = message(&raw, fields)?;
    object["apiVersion"] = envelope["type"]["apiVersion"].clone();
    object["kind"] = json!(kind);
    Some(object)
}

fn message(mut bytes: &[u8], fields: &[Field]) -> Option<Value> {
    let mut members = Map::new();
    while !bytes.is_empty() {
        let (tag, rest) = varint(bytes)?;
        let (value, rest) = payload(tag & 7, rest)?;
        bytes = rest;
        if let Some((_, name, holds)) = fields.iter().find(|(number, _, _)| *number == tag >> 3) {
            put(&mut members, name, *holds, value)?;
        }
    }
    Some(Value::Object(members))
}

/// A number, or bytes that mean what their field says.
#[derive(Clone, Copy)]
enum Payload<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

fn payload(wire: u64, bytes: &[u8]) -> Option<(Payload<'_>, &[u8])> {
    match wire {
        0 => varint(bytes).map(|(number, rest)| (Payload::Number(number), rest)),
        2 => {
            let (length, rest) = varint(bytes)?;
            let (value, rest) = rest.split_at_checked(usize::try_from(length).ok()?)?;
            Some((Payload::Bytes(value), rest))
        }
        _ => None,
    }
}

fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut number = 0;
    for (place, byte) in bytes.iter().enumerate().take(10) {
        number |= u64::from(byte & 0x7f).checked_shl(u32::try_from(place * 7).ok()?)?;
        if byte & 0x80 == 0 {
            return Some((number, bytes.get(place + 1..)?));
        }
    }
    None
}

fn put(members: &mut Map<String, Value>, name: &str, holds: Holds, payload: Payload<'_>) -> Option<()> {
    let value = match (holds, payload) {
        (Number, Payload::Number(number)) => json!(i64::from_ne_bytes(number.to_ne_bytes())),
        (Flag, Payload::Number(number)) => json!(number != 0),
        (Text, Payload::Bytes(bytes)) => json!(std::str::from_utf8(bytes).ok()?),
        (Bytes, Payload::Bytes(bytes)) => json!(STANDARD.encode(bytes)),
        (Time, Payload::Bytes(bytes)) => time(bytes)?,
        (One(fields), Payload::Bytes(bytes)) => message(bytes, fields)?,
        (Texts, Payload::Bytes(bytes)) => return push(members, name, json!(std::str::from_utf8(bytes).ok()?)),
        (Many(fields), Payload::Bytes(bytes)) => return push(members, name, message(bytes, fields)?),
        (TextMap, Payload::Bytes(bytes)) => return entry(members, name, bytes, Text),
        (BytesMap, Payload::Bytes(bytes)) => return entry(members, name, bytes, Bytes),
        _ => return None,
    };
    // Go writes texts that are empty; in JSON they are not there.
    if value != "" && !value.is_null() {
        members.insert(name.into(), value);
    }
    Some(())
}

fn push(members: &mut Map<String, Value>, name: &str, value: Value) -> Option<()> {
    members.entry(name).or_insert_with(|| json!([])).as_array_mut()?.push(value);
    Some(())
}

fn entry(members: &mut Map<String, Value>, name: &str, bytes: &[u8], holds: Holds) -> Option<()> {
    let pair = message(bytes, &[(1, "key", Text), (2, "value", holds)])?;
    let key = pair["key"].as_str().unwrap_or_default();
    let map = members.entry(name).or_insert_with(|| json!({}));
    map[key] = pair.get("value").cloned().unwrap_or(json!(""));
    Some(())
}

/// An empty time is none.
fn time(bytes: &[u8]) -> Option<Value> {
    let parts = message(bytes, &[(1, "seconds", Number), (2, "nanos", Number)])?;
    let Some(seconds) = parts["seconds"].as_i64() else { return Some(Value::Null) };
    let time = DateTime::from_timestamp(seconds, 0)?;
    Some(json!(time.to_rfc3339_opts(SecondsFormat::Secs, true)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(number: u8, value: &[u8]) -> Vec<u8> {
        let mut field = vec![number << 3 | 2, u8::try_from(value.len()).unwrap()];
        field.extend(value);
        field
    }

    #[test]
    fn a_secret_is_read() {
        let metadata = [bytes(1, b"web"), bytes(11, &[bytes(1, b"owner"), bytes(2, b"helm")].concat())].concat();
        let secret =
            [bytes(1, &metadata), bytes(2, &[bytes(1, b"k"), bytes(2, b"v")].concat()), bytes(3, b"Opaque")].concat();
        let known = [bytes(1, b"v1"), bytes(2, b"Secret")].concat();
        let body = [MAGIC.to_vec(), bytes(1, &known), bytes(2, &secret)].concat();
        let wanted = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "web", "labels": {"owner": "helm"}},
            "data": {"k": "dg=="}, "type": "Opaque",
        });
        assert_eq!(decode(&body), Some(wanted));
    }

    #[test]
    fn what_breaks_off_is_nothing() {
        let known = [bytes(1, b"v1"), bytes(2, b"Secret")].concat();
        let body = [MAGIC.to_vec(), bytes(1, &known), vec![2 << 3 | 2, 9, 1]].concat();
        for end in 0..=body.len() {
            assert_eq!(decode(&body[..end]).and_then(|object| object.get("data").cloned()), None, "{end}");
        }
        assert_eq!(decode(b"k8s\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"), None);
    }
}
