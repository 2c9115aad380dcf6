//! The word that a record holds.

use std::fmt;

/// The status stored in a record: every word that Helm writes, in the order of Helm's own list, and any other.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Status {
    /// `unknown`; also what Helm takes an absent status for.
    Unknown,
    /// `deployed`
    Deployed,
    /// `uninstalled`: kept history of a release that is gone.
    Uninstalled,
    /// `superseded`: a later revision took its place. Not proof that it ever worked.
    Superseded,
    /// `failed`
    Failed,
    /// `uninstalling`
    Uninstalling,
    /// `pending-install`
    PendingInstall,
    /// `pending-upgrade`
    PendingUpgrade,
    /// `pending-rollback`
    PendingRollback,
    /// A word that Helm does not write, kept verbatim.
    Other(Box<str>),
}

impl Status {
    /// The word as stored.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Unknown => "unknown",
            Self::Deployed => "deployed",
            Self::Uninstalled => "uninstalled",
            Self::Superseded => "superseded",
            Self::Failed => "failed",
            Self::Uninstalling => "uninstalling",
            Self::PendingInstall => "pending-install",
            Self::PendingUpgrade => "pending-upgrade",
            Self::PendingRollback => "pending-rollback",
            Self::Other(word) => word,
        }
    }

    /// Whether Helm takes the release for locked while its newest record says this (Helm's `IsPending`).
    ///
    /// `uninstalling` is not pending: Helm refuses install and upgrade on it for another reason.
    #[must_use]
    pub fn is_pending(&self) -> bool {
        match self {
            Self::PendingInstall | Self::PendingUpgrade | Self::PendingRollback => true,
            Self::Unknown
            | Self::Deployed
            | Self::Uninstalled
            | Self::Superseded
            | Self::Failed
            | Self::Uninstalling
            | Self::Other(_) => false,
        }
    }
}

impl From<&str> for Status {
    /// Total: a word that Helm does not write becomes [`Status::Other`].
    fn from(word: &str) -> Self {
        match word {
            "unknown" | "" => Self::Unknown,
            "deployed" => Self::Deployed,
            "uninstalled" => Self::Uninstalled,
            "superseded" => Self::Superseded,
            "failed" => Self::Failed,
            "uninstalling" => Self::Uninstalling,
            "pending-install" => Self::PendingInstall,
            "pending-upgrade" => Self::PendingUpgrade,
            "pending-rollback" => Self::PendingRollback,
            other => Self::Other(other.into()),
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_survives_a_round_trip() {
        for word in [
            "unknown",
            "deployed",
            "uninstalled",
            "superseded",
            "failed",
            "uninstalling",
            "pending-install",
            "pending-upgrade",
            "pending-rollback",
            "banana",
        ] {
            assert_eq!(Status::from(word).as_str(), word);
        }
        assert_eq!(Status::from("banana"), Status::Other("banana".into()));
    }
}
