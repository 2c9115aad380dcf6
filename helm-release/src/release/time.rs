//! Times as Go reads and writes them: RFC 3339, with empty text, null and year 1 all meaning "not set".

use chrono::{DateTime, Datelike, SecondsFormat, Utc};

/// A time as Go's decoder reads it, which is stricter than ours: `T` and `Z` in capitals, and no leap second.
pub(super) fn parse(text: &str) -> Option<DateTime<Utc>> {
    let time = DateTime::parse_from_rfc3339(text).ok()?.to_utc();
    let strict = text.get(10..11) == Some("T") && !text.ends_with('z') && text.get(17..19) != Some("60");
    strict.then_some(time)
}

/// The same where the zero time means none.
pub(super) fn set(text: &str) -> Option<DateTime<Utc>> {
    parse(text).filter(|time| time.year() > 1)
}

/// As Helm writes `last_deployed`.
pub(super) fn to_text(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::AutoSi, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_go_reads_is_a_time() {
        for good in ["2026-01-02T03:04:05Z", "2026-01-02T03:04:05.123456789+01:00", "0001-01-01T00:00:00Z"] {
            assert!(parse(good).is_some(), "{good}");
        }
        for bad in ["", "yesterday", "2026-01-02 03:04:05Z", "2026-01-02T03:04:05z", "2026-01-02T03:04:60Z"] {
            assert!(parse(bad).is_none(), "{bad}");
        }
        assert_eq!(set("0001-01-01T00:00:00Z"), None);
    }
}
