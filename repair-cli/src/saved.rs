//! Where a record is kept that is deleted because it cannot be read.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy as _;

/// Keeps `record` in the user's data folder. Nobody else may read it: it can hold Secrets.
pub(crate) fn keep(release: &str, key: &str, record: &str) -> io::Result<PathBuf> {
    let base = etcetera::choose_base_strategy().map_err(|why| io::Error::new(io::ErrorKind::NotFound, why))?;
    keep_in(&base.data_dir().join("gwrepair").join("quarantine"), release, key, record)
}

fn keep_in(folder: &Path, release: &str, key: &str, record: &str) -> io::Result<PathBuf> {
    let namespace = release.split('/').next().unwrap_or_default();
    let folder = folder.join(namespace);
    DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
    for copy in 1.. {
        let number = if copy == 1 { String::new() } else { format!(".{copy}") };
        let path = folder.join(format!("{key}{number}"));
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
            Ok(mut file) => {
                file.write_all(record.as_bytes())?;
                file.sync_all()?;
                return Ok(path);
            }
            // Kept before: that one stays too.
            Err(why) if why.kind() == io::ErrorKind::AlreadyExists => {}
            Err(why) => return Err(why),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_record_is_kept_for_its_owner_only_and_never_over_another() {
        let folder = tempfile::tempdir().unwrap();
        let first = keep_in(folder.path(), "shop/web", "sh.helm.release.v1.web.v4", "one").unwrap();
        let second = keep_in(folder.path(), "shop/web", "sh.helm.release.v1.web.v4", "two").unwrap();
        assert_eq!(std::fs::read_to_string(&first).unwrap(), "one");
        assert_eq!(std::fs::read_to_string(&second).unwrap(), "two");
        assert_eq!(std::fs::metadata(&first).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(first.ends_with("shop/sh.helm.release.v1.web.v4"));
    }
}
