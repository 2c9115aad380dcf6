//! How the fields of the built-in kinds merge, as the real server's OpenAPI tells (`api/schema.jsonl`).

use std::collections::HashMap;
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::Value;

/// A struct of the API.
#[derive(Debug, Deserialize)]
pub(crate) struct Type {
    name: String,
    #[serde(default)]
    atomic: bool,
    #[serde(default)]
    fields: HashMap<String, Field>,
    #[serde(default)]
    kinds: Vec<Kind>,
}

#[derive(Debug, Deserialize)]
struct Kind {
    group: String,
    version: String,
    kind: String,
}

/// A field of a struct.
#[derive(Debug, Deserialize)]
pub(crate) struct Field {
    #[serde(default)]
    of: Of,
    r#type: Option<String>,
    #[serde(default)]
    list: ListKind,
    #[serde(default)]
    pub(crate) keys: Vec<String>,
    #[serde(default)]
    map: String,
    #[serde(default)]
    strategy: String,
    /// The field that a strategic merge tells elements apart by.
    #[serde(default)]
    pub(crate) key: String,
    /// Whether Go writes it although it is empty.
    #[serde(default)]
    pub(crate) present: bool,
    pub(crate) default: Option<Value>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Of {
    #[default]
    One,
    List,
    Map,
}

/// How a list is owned and merged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ListKind {
    /// As a whole.
    #[default]
    Atomic,
    /// By its elements' values.
    Set,
    /// By its elements' keys.
    Map,
}

/// What is known of a place in an object.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Shape {
    /// A struct.
    Struct(&'static Type),
    /// A map; its field says what its values are.
    Map(&'static Field),
    /// A list; its field says what its elements are.
    List(&'static Field),
    /// Owned as a whole, whatever it holds.
    Whole,
    /// Nothing is known: maps are merged, lists are taken as a whole.
    Free,
}

static TYPES: LazyLock<HashMap<String, Type>> = LazyLock::new(|| {
    let lines = include_str!("../api/schema.jsonl").lines();
    let types = lines.filter_map(|line| serde_json::from_str::<Type>(line).ok());
    types.map(|known| (known.name.clone(), known)).collect()
});

static KINDS: LazyLock<HashMap<(&str, &str, &str), &Type>> = LazyLock::new(|| {
    let all = TYPES.values().flat_map(|known| known.kinds.iter().map(move |kind| (kind, known)));
    all.map(|(kind, known)| ((kind.group.as_str(), kind.version.as_str(), kind.kind.as_str()), known)).collect()
});

impl Shape {
    /// The shape of a kind; free for custom resources.
    pub(crate) fn of(group: &str, version: &str, kind: &str) -> Self {
        KINDS.get(&(group, version, kind)).map_or(Self::Free, |known| Self::Struct(known))
    }

    /// The shape of a member of a struct or a map.
    pub(crate) fn member(self, name: &str) -> Self {
        match self {
            Self::Struct(known) => match known.fields.get(name) {
                Some(field) => field.shape(),
                // Custom resources have metadata like all others.
                None => Self::Free,
            },
            Self::Map(field) => field.element(),
            Self::Free if name == "metadata" => metadata(),
            Self::List(_) | Self::Whole | Self::Free => Self::Free,
        }
    }

    /// The field of a struct.
    pub(crate) fn field(self, name: &str) -> Option<&'static Field> {
        match self {
            Self::Struct(known) => known.fields.get(name),
            Self::Map(_) | Self::List(_) | Self::Whole | Self::Free => None,
        }
    }

    /// The fields that Go writes although they are empty.
    pub(crate) fn present(self) -> impl Iterator<Item = (&'static str, &'static Field)> {
        let fields = match self {
            Self::Struct(known) => Some(&known.fields),
            Self::Map(_) | Self::List(_) | Self::Whole | Self::Free => None,
        };
        let named = fields.into_iter().flatten().map(|(name, field)| (name.as_str(), field));
        named.filter(|(_, field)| field.present)
    }
}

impl Field {
    fn shape(&'static self) -> Shape {
        match self.of {
            Of::List => Shape::List(self),
            Of::Map if self.map == "atomic" => Shape::Whole,
            Of::Map => Shape::Map(self),
            Of::One if self.map == "atomic" => Shape::Whole,
            Of::One => self.element(),
        }
    }

    /// The shape of the elements of a list or a map, or of what stands here.
    pub(crate) fn element(&'static self) -> Shape {
        match self.r#type.as_ref().and_then(|name| TYPES.get(name)) {
            Some(known) if known.atomic => Shape::Whole,
            Some(known) if !known.fields.is_empty() => Shape::Struct(known),
            Some(_) | None => Shape::Free,
        }
    }

    pub(crate) fn list(&self) -> ListKind {
        self.list
    }

    pub(crate) fn is_list(&self) -> bool {
        self.of == Of::List
    }

    /// The word of OpenAPI for what stands here; none for structs, lists and maps.
    pub(crate) fn scalar(&self) -> Option<&str> {
        let word = self.r#type.as_deref().filter(|_| self.of == Of::One);
        word.filter(|word| ["string", "integer", "number", "boolean"].contains(word))
    }

    /// Whether a strategic merge patch says so.
    pub(crate) fn has_strategy(&self, word: &str) -> bool {
        self.strategy.split(',').any(|strategy| strategy == word)
    }
}

/// The shape of `metadata`.
pub(crate) fn metadata() -> Shape {
    TYPES.get("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta").map_or(Shape::Free, Shape::Struct)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_read_and_every_name_in_it_known() {
        assert_eq!(TYPES.len(), include_str!("../api/schema.jsonl").lines().count());
        let words = ["string", "integer", "number", "boolean", "object", "array"];
        for field in TYPES.values().flat_map(|known| known.fields.values()) {
            if let Some(name) = &field.r#type {
                assert!(words.contains(&name.as_str()) || TYPES.contains_key(name), "{name}");
            }
        }
    }

    #[test]
    fn containers_are_told_apart_by_name_and_ports_by_two_keys() {
        let pod = Shape::of("", "v1", "Pod").member("spec");
        let containers = pod.field("containers").unwrap();
        assert_eq!((containers.list(), containers.keys.as_slice()), (ListKind::Map, &["name".to_owned()][..]));
        let ports = containers.element().field("ports").unwrap();
        assert_eq!(ports.keys, ["containerPort", "protocol"]);
    }
}
