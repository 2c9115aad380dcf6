//! From kubeconfig and flags to a client. Errors name the file and the way out.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};

use crate::cli::Global;
use crate::error::Failure;
use crate::nearest::nearest;
use crate::transport;

/// A server that is there answers a connect at once; one that is not should be told soon.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A client, and what is known of the other end.
pub(crate) struct Connection {
    pub(crate) client: kube::Client,
    /// The context's namespace.
    pub(crate) namespace: String,
    /// The server's address.
    pub(crate) server: String,
}

/// Connects as kubectl would: nothing is sent yet.
pub(crate) async fn connect(global: &Global) -> Result<Connection, Failure> {
    let mut config = config(global).await?;
    config.default_retry = false;
    config.connect_timeout = Some(CONNECT_TIMEOUT);
    config.read_timeout = Some(global.request_timeout).filter(|timeout| !timeout.is_zero());
    config.reset_reader_on_write = true;
    if let Some(user) = &global.as_user {
        config.auth_info.impersonate = Some(user.clone());
        config.auth_info.impersonate_groups = Some(global.as_group.clone()).filter(|groups| !groups.is_empty());
    }
    let namespace = Some(config.default_namespace.clone()).filter(|namespace| !namespace.is_empty());
    let server = config.cluster_url.to_string();
    let client = transport::client(config).map_err(|why| {
        let attempt = format!("could not prepare the connection to {server}");
        Failure::new(attempt).because(&why).hint("the credentials of the kubeconfig's user cannot be used as they are")
    })?;
    Ok(Connection { client, namespace: namespace.unwrap_or_else(|| "default".into()), server })
}

async fn config(global: &Global) -> Result<Config, Failure> {
    let sources = Sources::find(global.kubeconfig.clone());
    let Some((kubeconfig, files)) = sources.read()? else { return in_cluster(&sources) };
    let options = KubeConfigOptions {
        context: global.context.clone(),
        cluster: global.cluster.clone(),
        user: global.user.clone(),
    };
    let contexts: Vec<String> = kubeconfig.contexts.iter().map(|context| context.name.clone()).collect();
    let loaded = Config::from_custom_kubeconfig(kubeconfig, &options).await;
    loaded.map_err(|why| unusable(&why, &files, &contexts))
}

/// Where a kubeconfig is looked for.
#[derive(Debug, PartialEq, Eq)]
enum Sources {
    /// Named by `--kubeconfig`: it must be there.
    Flag(PathBuf),
    /// Named by `KUBECONFIG`, as kubectl takes it: those that are missing are passed over.
    Environment(Vec<PathBuf>),
    /// In the home directory.
    Home(Option<PathBuf>),
}

impl Sources {
    fn find(flag: Option<PathBuf>) -> Self {
        match flag {
            Some(path) => Self::Flag(path),
            None => Self::from_environment(env::var_os("KUBECONFIG").as_deref(), env::home_dir()),
        }
    }

    fn from_environment(variable: Option<&OsStr>, home: Option<PathBuf>) -> Self {
        let paths = variable.into_iter().flat_map(env::split_paths);
        let paths: Vec<PathBuf> = paths.filter(|path| !path.as_os_str().is_empty()).collect();
        if paths.is_empty() { Self::Home(home.map(|home| home.join(".kube/config"))) } else { Self::Environment(paths) }
    }

    /// The merged kubeconfig and its files; `None` where there is no file at all.
    fn read(&self) -> Result<Option<(Kubeconfig, String)>, Failure> {
        let paths = match self {
            Self::Flag(path) => vec![path.clone()],
            Self::Environment(paths) => paths.iter().filter(|path| path.exists()).cloned().collect(),
            Self::Home(path) => path.iter().filter(|path| path.exists()).cloned().collect(),
        };
        if paths.is_empty() {
            return Ok(None);
        }
        let mut merged = Kubeconfig::default();
        for path in &paths {
            merged =
                Kubeconfig::read_from(path).and_then(|next| merged.merge(next)).map_err(|why| broken(path, &why))?;
        }
        Ok(Some((merged, list(&paths))))
    }
}

/// Without a kubeconfig there is only the cluster that we may run in.
fn in_cluster(sources: &Sources) -> Result<Config, Failure> {
    let looked_for = match sources {
        Sources::Flag(path) => path.display().to_string(),
        Sources::Environment(paths) => format!("{} (KUBECONFIG)", list(paths)),
        Sources::Home(path) => path.as_ref().map_or("~/.kube/config".into(), |path| path.display().to_string()),
    };
    Config::incluster().map_err(|_| {
        Failure::new("could not find a cluster to connect to")
            .cause(format!("there is no kubeconfig at {looked_for}, and this is not a pod of a cluster"))
            .hint("name one with --kubeconfig FILE or KUBECONFIG=FILE")
    })
}

fn broken(path: &Path, why: &KubeconfigError) -> Failure {
    let failure = Failure::new(format!("could not read the kubeconfig {}", path.display()));
    let failure =
        if let KubeconfigError::ReadConfig(source, _) = why { failure.because(source) } else { failure.because(why) };
    failure.hint("name another with --kubeconfig FILE or KUBECONFIG=FILE")
}

/// The files could be read, but what they say cannot be used.
#[expect(clippy::wildcard_enum_match_arm, reason = "kube's own list, of which only three have a better way out")]
fn unusable(why: &KubeconfigError, files: &str, contexts: &[String]) -> Failure {
    let failure = Failure::new(format!("could not use the kubeconfig {files}"));
    match why {
        KubeconfigError::CurrentContextNotSet => {
            failure.cause("it sets no current context").hint(format!("--context NAME picks one{}", known(contexts)))
        }
        KubeconfigError::LoadContext(name) => {
            let near = nearest(name, contexts);
            let hint = near.map_or_else(
                || format!("--context NAME picks one{}", known(contexts)),
                |near| format!("did you mean --context {near}?"),
            );
            failure.cause(format!("it has no context {name:?}")).hint(hint)
        }
        KubeconfigError::LoadClusterOfContext(name) => {
            failure.cause(format!("it has no cluster {name:?}")).hint("--cluster NAME or --context NAME picks another")
        }
        other => failure.because(other).hint("name another with --context NAME or --kubeconfig FILE"),
    }
}

fn known(contexts: &[String]) -> String {
    if contexts.is_empty() { "; it knows none".into() } else { format!(": {}", contexts.join(", ")) }
}

fn list(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(failure: &Failure) -> String {
        anstream::adapter::strip_str(&failure.text()).to_string()
    }

    #[test]
    fn kubeconfig_may_name_several_files_and_empty_ones_are_passed_over() {
        let joined = env::join_paths(["a", "", "b"]).unwrap();
        let sources = Sources::from_environment(Some(&joined), None);
        assert_eq!(sources, Sources::Environment(vec!["a".into(), "b".into()]));
    }

    #[test]
    fn an_empty_variable_means_the_home_directory() {
        let sources = Sources::from_environment(Some(OsStr::new("")), Some("/h".into()));
        assert_eq!(sources, Sources::Home(Some("/h/.kube/config".into())));
    }

    #[test]
    fn a_missing_file_is_an_error_only_where_it_was_asked_for() {
        let missing = PathBuf::from("no-such-kubeconfig");
        assert!(Sources::Environment(vec![missing.clone()]).read().is_ok_and(|read| read.is_none()));
        let text = plain(&Sources::Flag(missing).read().unwrap_err());
        assert!(
            text.starts_with("error: could not read the kubeconfig no-such-kubeconfig\ncause: No such file"),
            "{text}"
        );
        assert!(text.contains("hint: name another with --kubeconfig FILE"), "{text}");
    }

    #[test]
    fn a_broken_file_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("config");
        std::fs::write(&path, "clusters: {").unwrap();
        let text = plain(&Sources::Flag(path.clone()).read().unwrap_err());
        assert!(
            text.starts_with(&format!("error: could not read the kubeconfig {}\ncause: ", path.display())),
            "{text}"
        );
    }

    #[test]
    fn the_first_file_that_sets_something_wins() {
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str, context: &str| {
            let path = directory.path().join(name);
            std::fs::write(&path, format!("current-context: {context}\n")).unwrap();
            path
        };
        let sources = Sources::Environment(vec![file("a", "one"), "missing".into(), file("b", "two")]);
        let (merged, _) = sources.read().unwrap().unwrap();
        assert_eq!(merged.current_context.as_deref(), Some("one"));
    }

    #[test]
    fn an_unknown_context_is_answered_with_a_near_one() {
        let contexts = ["production".to_owned(), "staging".to_owned()];
        let text = plain(&unusable(&KubeconfigError::LoadContext("prodution".into()), "f", &contexts));
        assert!(text.ends_with("cause: it has no context \"prodution\"\nhint: did you mean --context production?\n"));
        let text = plain(&unusable(&KubeconfigError::CurrentContextNotSet, "f", &contexts));
        assert!(text.ends_with("hint: --context NAME picks one: production, staging\n"), "{text}");
    }
}
