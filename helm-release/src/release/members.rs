//! A JSON object whose members stay exactly as they were written.

use std::fmt;

use serde::de::{Deserialize, DeserializeOwned, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::value::RawValue;

/// Members in their order, each value as the bytes that were stored.
#[derive(Debug, Clone, Default)]
pub(super) struct Members(Vec<(String, Box<RawValue>)>);

impl Members {
    pub(super) fn parse(json: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(json)
    }

    /// The last member of that name, in any case: Go's decoder takes it so.
    pub(super) fn raw(&self, name: &str) -> Option<&RawValue> {
        let found = self.0.iter().rfind(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| &**value).filter(|value| value.get() != "null")
    }

    /// The member as a value; `None` if it is absent or null.
    pub(super) fn read<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, serde_json::Error> {
        self.raw(name).map(|raw| serde_json::from_str(raw.get())).transpose()
    }

    /// Replaces the member where it stands, or appends it.
    pub(super) fn set(&mut self, name: &str, value: Box<RawValue>) {
        match self.0.iter_mut().rfind(|(key, _)| key.eq_ignore_ascii_case(name)) {
            Some((_, old)) => *old = value,
            None => self.0.push((name.into(), value)),
        }
    }

    pub(super) fn to_raw(&self) -> Result<Box<RawValue>, serde_json::Error> {
        serde_json::value::to_raw_value(self)
    }
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
