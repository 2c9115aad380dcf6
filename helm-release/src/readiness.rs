//! stub
/// r
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Readiness {
    /// c
    Current,
    /// i
    InProgress {
        /// w
        why: String,
    },
}
/// w
#[must_use]
pub fn is_workload(_group: &str, kind: &str) -> bool {
    matches!(kind, "Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet" | "Pod" | "Job")
}
