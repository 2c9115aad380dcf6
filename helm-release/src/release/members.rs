//! A JSON object whose members stay exactly as they were written.

use std::fmt;

use chrono::{DateTime, Utc};
use serde::de::{Deserialize, DeserializeOwned, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::value::RawValue;

use super::{go, time};

/// Members in their order, each value as the bytes that were stored.
#[derive(Debug, Clone, Default)]
pub(super) struct Members(Vec<(String, Box<RawValue>)>);

impl Members {
    pub(super) fn parse(json: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(json)
    }

    /// Every member, in its order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &RawValue)> {
        self.0.iter().map(|(key, value)| (key.as_str(), &**value))
    }

    /// The last member of that name, in any case: Go's decoder takes it so. `None` if it is absent or null.
    pub(super) fn raw(&self, name: &str) -> Option<&RawValue> {
        self.named(name).next_back().filter(|value| !is_null(value))
    }

    /// A word, a number or a flag; `None` if it cannot be read. Go takes `null` for no word about it.
    pub(super) fn read<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        let last = self.named(name).rfind(|value| !is_null(value))?;
        serde_json::from_str(last.get()).ok()
    }

    /// Text; empty if it cannot be read.
    pub(super) fn text(&self, name: &str) -> String {
        self.read(name).unwrap_or_default()
    }

    /// A time; `None` if it is not set or cannot be read.
    pub(super) fn time(&self, name: &str) -> Option<DateTime<Utc>> {
        time::set(&self.text(name))
    }

    /// A list of words; what cannot be read is left out.
    pub(super) fn texts(&self, name: &str) -> Vec<String> {
        self.list(name).iter().filter_map(|item| serde_json::from_str(item.get()).ok()).collect()
    }

    /// A list of objects; what is none is left out.
    pub(super) fn objects(&self, name: &str) -> Vec<Self> {
        self.list(name).iter().filter_map(|item| Self::parse(item.get()).ok()).collect()
    }

    /// An object; `None` if it is none.
    pub(super) fn object(&self, name: &str) -> Option<Self> {
        self.raw(name).and_then(|raw| Self::parse(raw.get()).ok())
    }

    /// Replaces the member where it stands, or appends it. Of several spellings the last stays, so that it is plain
    /// which one counts: the Helms differ there.
    pub(super) fn set(&mut self, name: &str, value: Box<RawValue>) {
        let Some(last) = self.0.iter().rposition(|(key, _)| go::is_named(key, name)) else {
            return self.0.push((name.into(), value));
        };
        self.0[last].1 = value;
        let mut at = 0..;
        self.0.retain(|(key, _)| at.next() == Some(last) || !go::is_named(key, name));
    }

    fn named(&self, name: &str) -> impl DoubleEndedIterator<Item = &RawValue> {
        self.0.iter().filter(move |(key, _)| go::is_named(key, name)).map(|(_, value)| &**value)
    }

    fn list(&self, name: &str) -> Vec<Box<RawValue>> {
        self.raw(name).and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
    }

    pub(super) fn to_raw(&self) -> Result<Box<RawValue>, serde_json::Error> {
        serde_json::value::to_raw_value(self)
    }
}

fn is_null(value: &RawValue) -> bool {
    value.get() == "null"
}

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Members;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Collect)
    }
}

impl Serialize for Members {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (key, value) in &self.0 {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(json: &str) -> Members {
        Members::parse(json).unwrap()
    }

    #[test]
    fn the_last_spelling_counts_and_null_says_nothing_of_a_word() {
        assert_eq!(members(r#"{"status":"a","STATUS":"b"}"#).text("status"), "b");
        assert_eq!(members(r#"{"Status":"a","status":null}"#).text("status"), "a");
        assert!(members(r#"{"info":{},"Info":null}"#).raw("info").is_none());
    }

    #[test]
    fn a_member_is_replaced_where_it_stands_and_its_other_spellings_go() {
        let mut changed = members(r#"{"a":1,"status":"x","b":[1.0],"Status":"y","c":2}"#);
        changed.set("status", serde_json::value::to_raw_value("z").unwrap());
        assert_eq!(serde_json::to_string(&changed).unwrap(), r#"{"a":1,"b":[1.0],"Status":"z","c":2}"#);
    }
}
