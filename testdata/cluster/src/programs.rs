//! Where the built programs are, and how they come to be there.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};

/// The environment variable that names the folder of the built programs.
pub const DIR_VARIABLE: &str = "TESTCLUSTER_DIR";

const CRATE: &str = env!("CARGO_MANIFEST_DIR");

/// The folder that holds the control plane, kwok, kubectl and Helm 3 and 4.
#[derive(Clone, Debug)]
pub struct Programs(PathBuf);

impl Programs {
    /// The folder that [`DIR_VARIABLE`] names, or `cluster/bin` in the target folder.
    #[must_use]
    pub fn locate() -> Self {
        let target = || match env::var_os("CARGO_TARGET_DIR") {
            Some(dir) => PathBuf::from(dir),
            None => Path::new(CRATE).join("../../target"),
        };
        Self(env::var_os(DIR_VARIABLE).map_or_else(|| target().join("cluster/bin"), PathBuf::from))
    }

    /// Builds what is missing or stale. Takes minutes when nothing was ever built, and no time when all is there.
    ///
    /// # Errors
    /// Go is missing or too old, or the build fails; what to do is on standard error.
    pub fn build() -> Result<Self> {
        let programs = Self::locate();
        let script = Path::new(CRATE).join("build.sh");
        let status = Command::new(script).arg(&programs.0).status().context("could not start build.sh")?;
        ensure!(status.success(), "could not build the control plane");
        Ok(Self(programs.0.canonicalize()?))
    }

    /// The folder itself.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.0
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

/// The kwok stages, in the order of their names.
pub(crate) fn stages() -> Result<Vec<PathBuf>> {
    let mut files =
        Path::new(CRATE).join("stages").read_dir()?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    files.sort();
    Ok(files)
}
