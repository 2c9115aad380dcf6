//! Where backups are kept: files that their owner alone may read, for they hold Secrets.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use clap::Args;
use etcetera::BaseStrategy as _;
use helm_release::backup::Backup;

/// Whether and where what is about to be changed is kept: flags of every command that writes.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct KeepFlags {
    /// Where to keep what is about to be changed, instead of the user's data folder.
    #[arg(long, value_name = "DIR", conflicts_with = "no_backup")]
    backup_dir: Option<PathBuf>,
    /// Keep nothing: what is done cannot be undone by `restore`.
    #[arg(long)]
    pub(crate) no_backup: bool,
}

/// Keeps backups as the flags say.
#[derive(Debug, Clone, Default)]
pub(crate) struct Keeper {
    flags: KeepFlags,
    server: String,
}

/// What is done about a file that is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Existing {
    /// It stays, and nothing is written.
    Refuse,
    /// It is replaced.
    Replace,
}

impl KeepFlags {
    pub(crate) fn keeper(&self, server: &str) -> Keeper {
        Keeper { flags: self.clone(), server: server.into() }
    }

    fn folder(&self) -> io::Result<PathBuf> {
        if let Some(folder) = &self.backup_dir {
            return std::path::absolute(folder);
        }
        let base = etcetera::choose_base_strategy().map_err(|why| io::Error::new(io::ErrorKind::NotFound, why))?;
        Ok(base.data_dir().join("gwrepair").join("backups"))
    }
}

impl Keeper {
    /// Keeps one backup in a file of its own, and says which.
    pub(crate) fn keep(&self, mut backup: Backup) -> io::Result<Option<PathBuf>> {
        if self.flags.no_backup {
            return Ok(None);
        }
        backup.server = Some(self.server.clone());
        let Some(release) = backup.releases.first() else { return Ok(None) };
        let folder = self.flags.folder()?.join(release.namespace.as_str());
        let name = format!("{}-{}", release.name, backup.taken.format("%Y%m%dT%H%M%SZ"));
        DirBuilder::new().recursive(true).mode(0o700).create(&folder).map_err(|why| at(&folder, &why))?;
        keep_in(&folder, &name, &backup.to_json()?).map(Some)
    }
}

fn keep_in(folder: &Path, name: &str, text: &str) -> io::Result<PathBuf> {
    for copy in 1.. {
        let number = if copy == 1 { String::new() } else { format!(".{copy}") };
        let path = folder.join(format!("{name}{number}.json"));
        match write(&path, text, Existing::Refuse) {
            Ok(()) => return Ok(path),
            // Kept before: that one stays too.
            Err(why) if why.kind() == io::ErrorKind::AlreadyExists => {}
            Err(why) => return Err(why),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Writes a file that is whole or not there: a temporary one beside it takes its name once all of it is on the disk.
pub(crate) fn write(path: &Path, text: &str, existing: Existing) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = path.file_name().ok_or(io::ErrorKind::InvalidFilename)?.to_string_lossy();
    let temporary = folder.join(format!(".{name}.{}.part", std::process::id()));
    let written = fill(&temporary, text).and_then(|()| place(&temporary, path, existing));
    // Gone already where it was renamed.
    let _ = fs::remove_file(&temporary);
    written.map_err(|why| at(path, &why))?;
    // Not every file system can do that; the file itself is safe.
    let _ = File::open(folder).and_then(|folder| folder.sync_all());
    Ok(())
}

fn fill(temporary: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(temporary)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// A link, unlike a rename, takes no name that is taken; where there are no links, a look before has to do.
fn place(temporary: &Path, path: &Path, existing: Existing) -> io::Result<()> {
    if existing == Existing::Replace {
        return fs::rename(temporary, path);
    }
    match fs::hard_link(temporary, path) {
        Err(why) if why.kind() != io::ErrorKind::AlreadyExists && !fs::exists(path)? => fs::rename(temporary, path),
        linked => linked,
    }
}

fn at(path: &Path, why: &io::Error) -> io::Error {
    io::Error::new(why.kind(), format!("{}: {why}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_backup_is_for_its_owner_only_and_never_over_another() {
        let folder = tempfile::tempdir().unwrap();
        let first = keep_in(folder.path(), "web-1", "one").unwrap();
        let second = keep_in(folder.path(), "web-1", "two").unwrap();
        assert_eq!(fs::read_to_string(&first).unwrap(), "one");
        assert_eq!(fs::read_to_string(&second).unwrap(), "two");
        assert_eq!(fs::metadata(&first).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(names(folder.path()), ["web-1.2.json", "web-1.json"]);
    }

    #[test]
    fn a_file_that_is_there_is_replaced_only_on_a_word() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("b.json");
        fs::write(&path, "old").unwrap();
        let why = write(&path, "new", Existing::Refuse).unwrap_err();
        assert_eq!((why.kind(), fs::read_to_string(&path).unwrap().as_str()), (io::ErrorKind::AlreadyExists, "old"));
        write(&path, "new", Existing::Replace).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(names(folder.path()), ["b.json"]);
    }

    #[test]
    fn a_folder_that_is_not_there_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let why = write(&folder.path().join("no/b.json"), "x", Existing::Refuse).unwrap_err();
        assert!(why.to_string().contains("no/b.json: No such file"), "{why}");
    }
}
