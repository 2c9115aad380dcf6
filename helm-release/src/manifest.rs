//! stub
use serde::Serialize;
/// id
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct ObjectId {
    /// g
    pub group: String,
    /// k
    pub kind: String,
    /// ns
    pub namespace: Option<String>,
    /// n
    pub name: String,
}
impl std::fmt::Display for ObjectId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.kind, self.name)
    }
}
