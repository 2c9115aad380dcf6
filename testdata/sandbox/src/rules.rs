//! How workloads come to life: the script that stands for scheduler, node and controllers.

use std::time::Duration;

use serde_json::Value;

/// How long things take. An object's label [`POD_LABEL`] overrides it, as on the real test cluster.
#[derive(Debug, Clone)]
pub struct Rules {
    /// From the write of a workload until it is ready.
    pub ready_after: Duration,
    /// From the start of a Job until it has completed.
    pub complete_after: Duration,
    /// From the creation of a claim until it is bound.
    pub bound_after: Duration,
    /// From the deletion of a Pod, or of a namespace that is empty, until it is gone.
    pub gone_after: Duration,
}

/// On the Pod template of a workload: `never-ready`, `crash`, `fail` or `linger`.
pub const POD_LABEL: &str = "testcluster/pod";

/// What becomes of a Pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It becomes ready, or completes.
    Well,
    /// It runs and never becomes ready.
    NeverReady,
    /// It ends with an error.
    Fails,
    /// It runs and does not end.
    Lingers,
}

impl Default for Rules {
    /// Everything at once.
    fn default() -> Self {
        let at_once = Duration::ZERO;
        Self { ready_after: at_once, complete_after: at_once, bound_after: at_once, gone_after: at_once }
    }
}

impl Fate {
    /// By the labels of a Pod or of a Pod template.
    pub(crate) fn of(metadata: &Value) -> Self {
        match metadata["labels"][POD_LABEL].as_str() {
            Some("never-ready" | "crash") => Self::NeverReady,
            Some("fail") => Self::Fails,
            Some("linger") => Self::Lingers,
            Some(_) | None => Self::Well,
        }
    }
}
