//! Follows releases: a watch on their records says when to look, a clock says when to look again.
//!
//! What is on the watch is names only; each release that is touched is looked at as a scan looks at it. Objects are not
//! watched: a release that is stuck is looked at again when its plan says, and at the latest after a minute.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use futures::stream::{self, StreamExt};
use tokio::time::{Instant, sleep_until, timeout_at};

use super::Client;
use super::error::Error;
use super::newest::place;
use super::scan::{AT_ONCE, Scan, ScanItem, ScanOptions, Scope, Sight};
use crate::cluster::{self, Stop};
use crate::release::{Namespace, ReleaseName};
use crate::storage::{Detail, Kubernetes, Seen, Watch};

/// What changes without a word from the records is seen after this time.
const RECHECK: Duration = Duration::from_secs(60);
/// One operation writes several records: they are waited for, so that it is looked at once.
const SETTLE: Duration = Duration::from_millis(100);
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

type Place = (Namespace, ReleaseName);

/// What there is to tell.
#[derive(Debug)]
pub enum News {
    /// All releases were looked at, at the beginning and whenever something may have been missed: what is not listed is
    /// not stuck.
    Scan(Scan),
    /// One release was looked at.
    Release {
        /// Where its records are.
        namespace: Namespace,
        /// Which.
        name: ReleaseName,
        /// What it is now.
        sight: Sight,
    },
    /// The server could not be asked; it is asked again after a pause.
    Lost(Error),
}

/// Releases that are followed.
pub struct Follow<'a> {
    client: &'a Client,
    scope: Scope,
    options: ScanOptions,
    driver: Kubernetes,
    /// Where the next watch begins; empty where all has to be looked at anew.
    version: String,
    watch: Option<Watch>,
    /// A server that fails, or closes every watch at once, is not asked in a row.
    not_before: Instant,
    begun: bool,
    again: BTreeMap<Place, Instant>,
    news: VecDeque<News>,
    pause: Duration,
}

enum Woken {
    Due,
    Seen(Seen),
    Failed(cluster::Error),
    Closed,
}

impl Client {
    /// Follows the releases of `scope`; the first news is a scan.
    #[must_use]
    pub fn follow(&self, scope: Scope, options: ScanOptions) -> Follow<'_> {
        Follow {
            client: self,
            scope,
            options,
            driver: Kubernetes::new(self.wire.clone(), self.driver),
            version: String::new(),
            watch: None,
            not_before: Instant::now(),
            begun: false,
            again: BTreeMap::new(),
            news: VecDeque::new(),
            pause: FIRST_PAUSE,
        }
    }
}

impl Follow<'_> {
    /// Waits for the next news. A watch that ends goes on where it ended; where that is too long ago, all is looked at anew.
    ///
    /// # Errors
    /// It was stopped, it could not begin, or this identity may not go on.
    pub async fn next(&mut self, stop: &Stop) -> Result<News, Error> {
        loop {
            if let Some(news) = self.news.pop_front() {
                return Ok(news);
            }
            let Some(watch) = self.watch.as_mut() else {
                match self.open(stop).await {
                    Ok(()) => continue,
                    Err(error) if self.begun && is_too_old(error.request()) => continue,
                    Err(error) => return self.lost(error),
                }
            };
            match stop.run(wake(watch, self.again.values().min().copied())).await? {
                Woken::Due => self.look_due(stop).await?,
                Woken::Seen(seen) => self.look_touched(seen, stop).await?,
                Woken::Failed(error) => self.broke(&error),
                Woken::Closed => self.watch = None,
            }
        }
    }

    /// Goes on watching; where nothing is known, or too little, looks at everything first.
    async fn open(&mut self, stop: &Stop) -> Result<(), Error> {
        stop.run(sleep_until(self.not_before)).await?;
        self.not_before = Instant::now() + FIRST_PAUSE;
        let query = self.scope.query("", Detail::Metadata);
        if self.version.is_empty() {
            let version = self.driver.version(&query, stop).await?;
            let watch = self.driver.watch(&query, &version, stop).await?;
            let scan = self.client.scan(&self.scope, &self.options, stop).await?;
            self.again = scan.items.iter().map(|item| (item.place(), after(item))).collect();
            self.again.extend(scan.failures.iter().map(|f| ((f.namespace.clone(), f.name.clone()), later())));
            self.news.push_back(News::Scan(scan));
            (self.version, self.watch) = (version, Some(watch));
        } else {
            match self.driver.watch(&query, &self.version, stop).await.map_err(Error::from) {
                Ok(watch) => self.watch = Some(watch),
                Err(error) => {
                    if is_too_old(error.request()) {
                        self.version.clear();
                    }
                    return Err(error);
                }
            }
        }
        (self.begun, self.pause) = (true, FIRST_PAUSE);
        Ok(())
    }

    /// From the last version on the next watch tells the rest, unless that is too old.
    fn broke(&mut self, error: &cluster::Error) {
        if is_too_old(Some(error)) {
            self.version.clear();
        }
        tracing::debug!(%error, cause = %error.cause, "the watch broke");
        self.watch = None;
    }

    /// What can pass is waited for; a first failure, and a missing permission, are the caller's.
    fn lost(&mut self, error: Error) -> Result<News, Error> {
        let refused = error.request().and_then(cluster::Error::code);
        if !self.begun || error.is_stopped() || matches!(refused, Some(401 | 403)) {
            return Err(error);
        }
        self.not_before = Instant::now() + self.pause;
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        Ok(News::Lost(error))
    }

    async fn look_due(&mut self, stop: &Stop) -> Result<(), Error> {
        let now = Instant::now();
        let due = self.again.iter().filter(|(_, at)| **at <= now).map(|(place, _)| place.clone()).collect();
        self.look(due, stop).await
    }

    async fn look_touched(&mut self, seen: Seen, stop: &Stop) -> Result<(), Error> {
        let mut touched = BTreeSet::new();
        let until = Instant::now() + SETTLE;
        let mut next = Some(seen);
        while let Some(seen) = next.take() {
            if !seen.version.is_empty() {
                self.version = seen.version;
            }
            touched.extend(seen.record.as_ref().and_then(place));
            if touched.is_empty() {
                return Ok(());
            }
            let Some(watch) = self.watch.as_mut() else { break };
            match stop.run(timeout_at(until, watch.next())).await? {
                Ok(Some(Ok(seen))) => next = Some(seen),
                Ok(Some(Err(error))) => self.broke(&error),
                Ok(None) => self.watch = None,
                Err(_) => {}
            }
        }
        self.look(touched, stop).await
    }

    async fn look(&mut self, places: BTreeSet<Place>, stop: &Stop) -> Result<(), Error> {
        let (client, policy) = (self.client, &self.options.policy);
        let looks = places.into_iter().map(|(namespace, name)| async move {
            let sight = client.sight(namespace.clone(), &name, policy, stop).await;
            (namespace, name, sight)
        });
        let mut looked = stream::iter(looks).buffered(AT_ONCE);
        while let Some((namespace, name, sight)) = looked.next().await {
            let place = (namespace.clone(), name.clone());
            match &sight {
                Sight::Failed(error) if error.is_stopped() => stop.check()?,
                Sight::Failed(_) => drop(self.again.insert(place, later())),
                Sight::Stuck(item) => drop(self.again.insert(place, after(item))),
                Sight::Usable(_) | Sight::Absent => drop(self.again.remove(&place)),
            }
            self.news.push_back(News::Release { namespace, name, sight });
        }
        Ok(())
    }
}

async fn wake(watch: &mut Watch, again: Option<Instant>) -> Woken {
    let due = async {
        match again {
            Some(at) => sleep_until(at).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = due => Woken::Due,
        seen = watch.next() => match seen {
            Some(Ok(seen)) => Woken::Seen(seen),
            Some(Err(error)) => Woken::Failed(error),
            None => Woken::Closed,
        },
    }
}

fn is_too_old(error: Option<&cluster::Error>) -> bool {
    error.and_then(cluster::Error::code) == Some(410)
}

fn later() -> Instant {
    Instant::now() + RECHECK
}

/// When a stuck release is to be looked at again: its wait is over to the second, by the server's clock.
fn after(item: &ScanItem) -> Instant {
    let until = item.plan.wait.as_ref().and_then(|wait| wait.until);
    let left = until.and_then(|until| (until - item.now).to_std().ok()).map(|left| left + Duration::from_secs(1));
    Instant::now() + left.unwrap_or(RECHECK).min(RECHECK)
}
