//! Times as Go writes them: RFC 3339, with empty text, null and year 1 all meaning "not set".

use chrono::{DateTime, Datelike, SecondsFormat, Utc};
use serde::de::{Deserialize, Deserializer, Error};

pub(super) fn optional<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<DateTime<Utc>>, D::Error> {
    match Option::<String>::deserialize(deserializer)?.as_deref() {
        None | Some("") => Ok(None),
        Some(text) => {
            let time = DateTime::parse_from_rfc3339(text).map_err(D::Error::custom)?.to_utc();
            Ok((time.year() > 1).then_some(time))
        }
    }
}

/// A time that may be unset.
pub(super) struct Optional(pub(super) Option<DateTime<Utc>>);

impl<'de> Deserialize<'de> for Optional {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        optional(deserializer).map(Self)
    }
}

/// As Helm writes `last_deployed`.
pub(super) fn to_text(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::AutoSi, true)
}
