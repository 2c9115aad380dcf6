//! Names that are parsed once at the edge and then trusted.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use serde::de::{Deserialize, Deserializer, Error as _};
use serde::ser::{Serialize, Serializer};
use thiserror::Error;

/// The longest release name that Helm accepts, in bytes.
pub const MAX_RELEASE_NAME: usize = 53;

/// What is wrong with a name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Invalid {
    /// Not lower-case DNS-1123, or too long.
    #[error(
        "{what} {value:?} is not valid: it must be 1 to {max} lower-case letters, digits, '-'{dots}, and begin and end with a letter or digit"
    )]
    Name {
        /// What the value was meant to be.
        what: &'static str,
        /// The value as given.
        value: String,
        /// The longest accepted length in bytes.
        max: usize,
        /// `" or '.'"` where dots are accepted.
        dots: &'static str,
    },
    /// Not a whole number from 1 up.
    #[error("revision {0:?} is not valid: it must be a whole number from 1 up")]
    Revision(String),
    /// Not `sh.helm.release.v1.<name>.v<n>`.
    #[error("{0:?} is not the name of a release record")]
    Key(String),
}

/// The name of a release: DNS-1123 subdomain, at most 53 bytes (Helm's `ValidateReleaseName`).
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ReleaseName(Box<str>);

/// The namespace that holds a release's records: a DNS-1123 label.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Namespace(Box<str>);

/// The number of a revision, from 1 (wire field `version`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Revision(NonZeroU32);

/// The object name of one record: `sh.helm.release.v1.<name>.v<revision>`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RecordKey {
    /// The release.
    pub name: ReleaseName,
    /// Its revision.
    pub revision: Revision,
}

const KEY_PREFIX: &str = "sh.helm.release.v1.";

impl ReleaseName {
    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Namespace {
    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Revision {
    /// The first revision of every history.
    pub const FIRST: Self = Self(NonZeroU32::MIN);

    /// A revision by its number; `None` for 0.
    #[must_use]
    pub fn new(number: u32) -> Option<Self> {
        NonZeroU32::new(number).map(Self)
    }

    /// The number.
    #[must_use]
    pub fn get(self) -> u32 {
        self.0.get()
    }

    /// The revision after this one; `None` past `u32::MAX`.
    #[must_use]
    pub fn next(self) -> Option<Self> {
        self.0.checked_add(1).map(Self)
    }
}

impl RecordKey {
    /// The key of `revision` of `name`.
    #[must_use]
    pub fn new(name: ReleaseName, revision: Revision) -> Self {
        Self { name, revision }
    }
}

impl FromStr for ReleaseName {
    type Err = Invalid;

    fn from_str(value: &str) -> Result<Self, Invalid> {
        let valid = value.len() <= MAX_RELEASE_NAME && value.split('.').all(is_dns_label);
        if valid {
            Ok(Self(value.into()))
        } else {
            let (what, dots) = ("release name", " or '.'");
            Err(Invalid::Name { what, value: value.into(), max: MAX_RELEASE_NAME, dots })
        }
    }
}

impl FromStr for Namespace {
    type Err = Invalid;

    fn from_str(value: &str) -> Result<Self, Invalid> {
        if is_dns_label(value) {
            Ok(Self(value.into()))
        } else {
            Err(Invalid::Name { what: "namespace", value: value.into(), max: 63, dots: "" })
        }
    }
}

impl FromStr for Revision {
    type Err = Invalid;

    fn from_str(value: &str) -> Result<Self, Invalid> {
        // `parse` alone would take "+1", which Helm never writes.
        let digits = value.bytes().all(|b| b.is_ascii_digit());
        digits.then(|| value.parse().ok()).flatten().map(Self).ok_or_else(|| Invalid::Revision(value.into()))
    }
}

impl FromStr for RecordKey {
    type Err = Invalid;

    /// Splits at the *last* `.v`, so that a release named `a.v1` is told from revision 1 of `a`.
    fn from_str(value: &str) -> Result<Self, Invalid> {
        let bad = || Invalid::Key(value.into());
        let (name, revision) =
            value.strip_prefix(KEY_PREFIX).and_then(|rest| rest.rsplit_once(".v")).ok_or_else(bad)?;
        Ok(Self { name: name.parse().map_err(|_| bad())?, revision: revision.parse().map_err(|_| bad())? })
    }
}

impl fmt::Display for ReleaseName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for RecordKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{KEY_PREFIX}{}.v{}", self.name, self.revision)
    }
}

impl Serialize for ReleaseName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl Serialize for Namespace {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl Serialize for Revision {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u32(self.get())
    }
}

impl<'de> Deserialize<'de> for ReleaseName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

impl<'de> Deserialize<'de> for Namespace {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

fn is_dns_label(label: &str) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    let edge = |b: Option<&u8>| b.is_some_and(|b| *b != b'-');
    let bytes = label.as_bytes();
    bytes.len() <= 63 && bytes.iter().copied().all(inner) && edge(bytes.first()) && edge(bytes.last())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_names_release_and_revision() {
        let key: RecordKey = "sh.helm.release.v1.web.v12".parse().unwrap();
        assert_eq!((key.name.as_str(), key.revision.get()), ("web", 12));
        assert_eq!(key.to_string(), "sh.helm.release.v1.web.v12");
    }

    #[test]
    fn a_release_named_like_a_revision_of_another_keeps_its_own_records() {
        let key: RecordKey = "sh.helm.release.v1.web.v1.v3".parse().unwrap();
        assert_eq!((key.name.as_str(), key.revision.get()), ("web.v1", 3));
    }

    #[test]
    fn what_is_no_key_is_refused() {
        for bad in [
            "web.v1",
            "sh.helm.release.v1.web",
            "sh.helm.release.v1.web.v0",
            "sh.helm.release.v1.web.v-1",
            "sh.helm.release.v1.web.v+1",
            "sh.helm.release.v1.web.v2-copy",
            "sh.helm.release.v1..v1",
            "sh.helm.release.v1.web.v99999999999",
        ] {
            assert_eq!(bad.parse::<RecordKey>(), Err(Invalid::Key(bad.into())));
        }
    }

    #[test]
    fn names_follow_helm_and_kubernetes() {
        let long = "a".repeat(53);
        for good in ["web", "a", "a.b", "0-1", long.as_str()] {
            assert_eq!(good.parse::<ReleaseName>().unwrap().as_str(), good);
        }
        let longer = "a".repeat(54);
        for bad in ["", "Web", "-a", "a-", "a..b", ".a", "a b", "é", longer.as_str()] {
            assert!(bad.parse::<ReleaseName>().is_err(), "{bad:?}");
        }
        assert!("a.b".parse::<Namespace>().is_err());
    }
}
