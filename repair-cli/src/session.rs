//! What every command works with: a client, a place, and when to stop.

use helm_release::action::{self, Client, Namespaces, Scope, Stop};
use helm_release::plan::{Plan, State};
use helm_release::release::{Entry, History, Namespace, ReleaseName, Revision};
use tokio_util::sync::CancellationToken;

use crate::again::Again;
use crate::cli::{Global, Target, Where};
use crate::connect::connect;
use crate::error::{Failure, causes};
use crate::nearest::nearest;
use crate::output::{Format, say};

/// One run of the program.
pub(crate) struct Session {
    pub(crate) client: Client,
    pub(crate) namespace: Namespace,
    pub(crate) server: String,
    pub(crate) again: Again,
    pub(crate) format: Format,
    pub(crate) stop: Stop,
    quiet: bool,
}

impl Session {
    pub(crate) async fn open(global: &Global, again: Again, token: CancellationToken) -> Result<Self, Failure> {
        let connection = connect(global).await?;
        let namespace = match &global.namespace {
            Some(namespace) => namespace.clone(),
            None => connection.namespace.parse().map_err(|why| {
                Failure::new("could not use the context's namespace").because(&why).hint("-n NAMESPACE names another")
            })?,
        };
        Ok(Self {
            client: Client::new(connection.client, namespace.clone(), global.storage),
            namespace,
            server: connection.server,
            again,
            format: global.output,
            stop: Stop::new(token, None),
            quiet: global.quiet,
        })
    }

    /// A remark on stderr, unless `-q`.
    pub(crate) fn remark(&self, text: &str) {
        if !self.quiet {
            say(&format!("{text}\n"));
        }
    }

    pub(crate) fn is_quiet(&self) -> bool {
        self.quiet
    }

    pub(crate) fn failure(&self, error: &action::Error) -> Failure {
        Failure::action(error, &self.server)
    }

    /// Who this identity is to the server. A courtesy: where it cannot be asked, the text does without.
    pub(crate) async fn identity(&self) -> Option<String> {
        self.client.identity(&self.stop).await.ok().flatten()
    }

    pub(crate) fn scope(&self, place: &Where) -> Scope {
        let namespaces = if place.all_namespaces { Namespaces::All } else { Namespaces::One(self.namespace.clone()) };
        Scope { namespaces, selector: place.selector.clone() }
    }

    /// Where a release is looked for.
    pub(crate) fn namespace_of(&self, target: &Target) -> Namespace {
        target.namespace.clone().unwrap_or_else(|| self.namespace.clone())
    }

    pub(crate) fn client_of(&self, target: &Target) -> Client {
        self.client.in_namespace(self.namespace_of(target))
    }

    /// The history of a release that must exist.
    pub(crate) async fn history(&self, target: &Target) -> Result<History, Failure> {
        let history = self.client_of(target).history(&target.name, &self.stop).await;
        let history = history.map_err(|error| self.failure(&error))?;
        if history.is_empty() { Err(self.absent(target).await) } else { Ok(history) }
    }

    /// The failure of a release that does not exist, with the one that may have been meant.
    pub(crate) async fn absent(&self, target: &Target) -> Failure {
        let namespace = self.namespace_of(target);
        let failure = Failure::new(format!("release {:?} not found in namespace {namespace}", target.name.as_str()));
        match self.meant(&namespace, &target.name).await {
            Some(hint) => failure.hint(hint),
            None => failure.hint(format!("gwrepair list -n {namespace} shows what is there; -A looks everywhere")),
        }
    }

    /// A release that is not there is nothing to do; but its name may be wrong.
    pub(crate) async fn hint_at_names(&self, plan: &Plan) {
        if plan.state == State::Absent
            && let Some(hint) = self.meant(&plan.namespace, &plan.name).await
        {
            self.remark(&format!("hint: {hint}"));
        }
    }

    /// A near name here, else the same name elsewhere. Both are courtesies: what cannot be read is passed over.
    async fn meant(&self, namespace: &Namespace, name: &ReleaseName) -> Option<String> {
        let heads = |namespaces| async {
            let scope = Scope { namespaces, selector: None };
            self.client.releases(&scope, &self.stop).await.unwrap_or_default()
        };
        let here = heads(Namespaces::One(namespace.clone())).await;
        let names: Vec<&str> = here.iter().map(|head| head.name.as_str()).collect();
        if let Some(near) = nearest(name.as_str(), &names) {
            return Some(format!("did you mean {near}?"));
        }
        let everywhere = heads(Namespaces::All).await;
        let twin = everywhere.iter().find(|head| head.name == *name)?;
        Some(format!("there is one in namespace {}: -n {0}", twin.namespace))
    }
}

/// The newest record, or the one of the revision that was asked for.
pub(crate) fn entry(history: &History, wanted: Option<Revision>) -> Result<&Entry, Failure> {
    let found = match wanted {
        Some(revision) => history.get(revision),
        None => history.last(),
    };
    found.ok_or_else(|| {
        let which = wanted.map(|revision| format!("revision {revision} of ")).unwrap_or_default();
        let numbers: Vec<String> = history.entries().iter().map(|entry| entry.revision.to_string()).collect();
        Failure::new(format!("{which}release {:?} not found", history.name.as_str()))
            .hint(format!("there are the revisions {}", numbers.join(", ")))
    })
}

/// A record that must be readable.
pub(crate) fn readable(entry: &Entry) -> Result<&helm_release::release::Release, Failure> {
    use helm_release::release::Content;
    match &entry.content {
        Content::Readable(release) => Ok(release),
        Content::Unreadable { why } => {
            Err(Failure::new(format!("record {} cannot be read", entry.stored.key)).cause(why.clone()))
        }
    }
}

/// An error of the library as one line.
pub(crate) fn line(error: &action::Error) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {}", causes(source)),
        None => error.to_string(),
    }
}
