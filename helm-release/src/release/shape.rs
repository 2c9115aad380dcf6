//! The Go types that Helm decodes a record into. Where one member does not fit, Helm hides the whole record, so that a
//! record is sound only if every member fits: for the newest Helm 3 as for the newest Helm 4.
//!
//! Nothing is built: a member is walked through once.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::{go, time};

/// What JSON has to be. Go takes `null` for all of it.
pub(super) enum Shape {
    /// Anything.
    Any,
    /// Nothing but `null`: an interface that Go cannot make a value for.
    Never,
    Text,
    /// A whole number in digits.
    Whole,
    /// A whole number, however it is written: Helm 4 reads `info` by way of floats.
    Integral,
    Flag,
    /// A time as Go reads it.
    Time,
    /// A time, or empty text for none.
    TimeOrEmpty,
    /// Base64, or a list of small numbers.
    Bytes,
    /// A small number.
    Byte,
    List(&'static Self),
    Map(&'static Self),
    /// Members by name in any case; others are passed over.
    Struct(&'static [(&'static str, Self)]),
}

use Shape::{Any, Byte, Bytes, Flag, Integral, List, Map, Never, Struct, Text, Time, TimeOrEmpty, Whole};

/// The members of a release.
pub(super) const RELEASE: &[(&str, Shape)] = &[
    ("name", Text),
    ("info", INFO),
    ("chart", CHART),
    ("config", Map(&Any)),
    ("manifest", Text),
    ("hooks", List(&HOOK)),
    ("version", Whole),
    ("namespace", Text),
    ("apply_method", Text),
];

const INFO: Shape = Struct(&[
    ("first_deployed", TimeOrEmpty),
    ("last_deployed", TimeOrEmpty),
    ("deleted", TimeOrEmpty),
    ("description", Text),
    ("status", Text),
    ("rollback_revision", Integral),
    ("notes", Text),
    ("resources", Map(&List(&Never))),
]);

const CHART: Shape = Struct(&[
    ("metadata", METADATA),
    ("lock", Struct(&[("generated", Time), ("digest", Text), ("dependencies", List(&DEPENDENCY))])),
    ("templates", List(&FILE)),
    ("values", Map(&Any)),
    ("schema", Bytes),
    ("schemamodtime", Time),
    ("files", List(&FILE)),
    ("modtime", Time),
]);

const METADATA: Shape = Struct(&[
    ("name", Text),
    ("home", Text),
    ("sources", List(&Text)),
    ("version", Text),
    ("description", Text),
    ("keywords", List(&Text)),
    ("maintainers", List(&Struct(&[("name", Text), ("email", Text), ("url", Text)]))),
    ("icon", Text),
    ("apiVersion", Text),
    ("condition", Text),
    ("tags", Text),
    ("appVersion", Text),
    ("deprecated", Flag),
    ("annotations", Map(&Text)),
    ("kubeVersion", Text),
    ("dependencies", List(&DEPENDENCY)),
    ("type", Text),
]);

const DEPENDENCY: Shape = Struct(&[
    ("name", Text),
    ("version", Text),
    ("repository", Text),
    ("condition", Text),
    ("tags", List(&Text)),
    ("enabled", Flag),
    ("import-values", List(&Any)),
    ("alias", Text),
]);

const FILE: Shape = Struct(&[("name", Text), ("data", Bytes), ("modtime", Time)]);

const HOOK: Shape = Struct(&[
    ("name", Text),
    ("kind", Text),
    ("path", Text),
    ("manifest", Text),
    ("events", List(&Text)),
    ("last_run", Struct(&[("started_at", TimeOrEmpty), ("completed_at", TimeOrEmpty), ("phase", Text)])),
    ("weight", Whole),
    ("delete_policies", List(&Text)),
    ("output_log_policies", List(&Text)),
]);

/// The name that Go knows a member of `members` by, and what it has to be.
pub(super) fn find(members: &'static [(&'static str, Shape)], member: &str) -> Option<&'static (&'static str, Shape)> {
    members.iter().find(|(name, _)| go::is_named(member, name))
}

impl Shape {
    /// # Errors
    /// `json` does not fit.
    pub(super) fn check(&'static self, json: &RawValue) -> Result<(), serde_json::Error> {
        if matches!(self, Text) && is_plain_text(json.get()) {
            return Ok(());
        }
        self.deserialize(&mut serde_json::Deserializer::from_str(json.get()))
    }

    /// What each item of a list has to be; `None` if it may be no list.
    fn item(&'static self) -> Option<&'static Self> {
        match self {
            List(item) => Some(item),
            Bytes => Some(&Byte),
            Any | Never | Text | Whole | Integral | Flag | Time | TimeOrEmpty | Byte | Map(_) | Struct(_) => None,
        }
    }

    /// What a member of an object has to be; `None` if it may be no object.
    fn member(&'static self, name: &str) -> Option<&'static Self> {
        match self {
            Map(value) => Some(value),
            Struct(members) => Some(find(members, name).map_or(&Any, |(_, shape)| shape)),
            Any | Never | Text | Whole | Integral | Flag | Time | TimeOrEmpty | Bytes | Byte | List(_) => None,
        }
    }

    fn takes_number(&self, number: i64) -> bool {
        matches!(self, Whole | Integral) || matches!(self, Byte) && (0..256).contains(&number)
    }

    fn takes_text(&self, text: &str) -> bool {
        match self {
            Text => true,
            Time => time::parse(text).is_some(),
            TimeOrEmpty => text.is_empty() || time::parse(text).is_some(),
            Bytes => go::base64(text.as_bytes()).is_ok(),
            Any | Never | Whole | Integral | Flag | Byte | List(_) | Map(_) | Struct(_) => false,
        }
    }
}

/// Whether a JSON value is text without so much as one half of a surrogate pair, which alone can be wrong with text. A
/// manifest is long, and to look for those is quicker than to take its escapes apart.
fn is_plain_text(json: &str) -> bool {
    json.starts_with('"') && !json.contains("\\ud") && !json.contains("\\uD")
}

impl<'de> DeserializeSeed<'de> for &'static Shape {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        if matches!(self, Any) {
            return deserializer.deserialize_ignored_any(IgnoredAny).map(|_| ());
        }
        deserializer.deserialize_any(Walk(self))
    }
}

struct Walk(&'static Shape);

impl Walk {
    fn fits<E: Error>(&self, fits: bool, found: serde::de::Unexpected<'_>) -> Result<(), E> {
        if fits { Ok(()) } else { Err(E::invalid_type(found, self)) }
    }
}

impl<'de> Visitor<'de> for Walk {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Any => "anything",
            Never => "null",
            Text => "text",
            Whole | Integral => "a whole number",
            Flag => "true or false",
            Time | TimeOrEmpty => "a time",
            Bytes => "base64",
            Byte => "a number below 256",
            List(_) => "a list",
            Map(_) | Struct(_) => "an object",
        })
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        self.fits(matches!(self.0, Flag), serde::de::Unexpected::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        self.fits(self.0.takes_number(value), serde::de::Unexpected::Signed(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        let fits = i64::try_from(value).is_ok_and(|value| self.0.takes_number(value));
        self.fits(fits, serde::de::Unexpected::Unsigned(value))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<(), E> {
        let fits = matches!(self.0, Integral) && value.fract() == 0.0 && value.abs() < 2_f64.powi(63);
        self.fits(fits, serde::de::Unexpected::Float(value))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        self.fits(self.0.takes_text(text), serde::de::Unexpected::Str(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let Some(item) = self.0.item() else {
            return Err(A::Error::invalid_type(serde::de::Unexpected::Seq, &self));
        };
        while list.next_element_seed(item)?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            let Some(shape) = self.0.member(&key) else {
                return Err(A::Error::invalid_type(serde::de::Unexpected::Map, &self));
            };
            map.next_value_seed(shape)?;
        }
        self.fits(matches!(self.0, Map(_) | Struct(_)), serde::de::Unexpected::Map)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(shape: &'static Shape, json: &str) -> bool {
        shape.check(serde_json::from_str(json).unwrap()).is_ok()
    }

    #[test]
    fn what_go_reads_fits_and_what_it_does_not_read_does_not() {
        for (shape, json) in [
            (&Whole, "-3"),
            (&Integral, "1.0"),
            (&Bytes, r#""eA==""#),
            (&Bytes, "[0,255,null]"),
            (&TimeOrEmpty, r#""""#),
            (&INFO, r#"{"Status":"x","other":[1],"resources":{"a":[null]}}"#),
            (&CHART, r#"{"metadata":null,"values":{"deep":[{}]}}"#),
        ] {
            assert!(fits(shape, json) && fits(shape, "null"), "{json}");
        }
        for (shape, json) in [
            (&Text, r#""\ud800""#), // stricter than Go
            (&Whole, "1.0"),
            (&Whole, "9223372036854775808"),
            (&Integral, "1.5"),
            (&Bytes, r#""eA""#),
            (&Bytes, "[256]"),
            (&Time, r#""""#),
            (&INFO, r#"{"STATUS":1}"#),
            (&INFO, r#"{"resources":{"a":[{}]}}"#),
            (&CHART, r#"{"metadata":{"maintainers":["x"]}}"#),
        ] {
            assert!(!fits(shape, json), "{json}");
        }
    }
}
