//! How strategic merge treats each field of the built-in kinds: a table generated from the Go types.

use super::Error;
use std::collections::HashMap;
use std::sync::LazyLock;

/// A place in the type tree of a built-in kind.
///
/// The table mirrors the scheme Helm converts manifests with: client-go's, and `apiextensions.k8s.io` in both versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schema(Shape);

impl Schema {
    /// The schema of a built-in kind; `None` for custom resources and kinds of other APIs.
    pub fn of(api_version: &str, kind: &str) -> Option<Self> {
        let id = TABLE.kinds.get(&(api_version, kind))?;
        Some(Self(Shape::Struct(*id)))
    }

    /// The built-in kinds as pairs of `apiVersion` and `kind`, in no particular order.
    pub fn kinds() -> impl Iterator<Item = (&'static str, &'static str)> {
        TABLE.kinds.keys().copied()
    }

    /// The place of the object in field `name`, and how to merge it.
    pub(super) fn object_field(self, name: &str) -> Result<(Self, Merging), Error> {
        let field = self.field(name)?;
        Ok((Self(field.shape), field.merging))
    }

    /// The place of the elements of the list in field `name`, and how to merge the list.
    pub(super) fn list_field(self, name: &str) -> Result<(Self, Merging), Error> {
        let field = self.field(name)?;
        match field.shape {
            Shape::List(Element::List) => Err(Error::ListOfListsField),
            Shape::List(Element::Struct(id)) => Ok((Self(Shape::Struct(id)), field.merging)),
            Shape::List(Element::Opaque(word)) => Ok((Self(Shape::Opaque(word)), field.merging)),
            Shape::Struct(_) | Shape::Opaque(_) => Err(Error::NotAList),
        }
    }

    /// The Go word for what is here.
    pub(super) fn word(self) -> &'static str {
        match self.0 {
            Shape::Struct(_) => "struct",
            Shape::List(_) => "slice",
            Shape::Opaque(word) => word,
        }
    }

    /// Like Go's JSON decoder: the exact name, else the first that differs only in case.
    fn field(self, name: &str) -> Result<&'static Field, Error> {
        let Shape::Struct(id) = self.0 else {
            return Err(Error::Opaque { shape: self.word() });
        };
        let owner = &TABLE.types[id];
        let exact = owner.fields.iter().find(|field| field.name == name);
        let folded = || owner.fields.iter().find(|field| field.name.eq_ignore_ascii_case(name));
        exact.or_else(folded).ok_or_else(|| Error::UnknownField { owner: owner.name, field: name.to_owned() })
    }
}

/// How a field is merged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Merging {
    pub(super) strategy: Strategy,
    /// Whether fields absent from the wanted value are cleared (`retainKeys`).
    pub(super) retain_keys: bool,
    /// The field that tells elements of a merging list apart; empty for lists of scalars.
    pub(super) key: &'static str,
}

/// What happens to a map or list that exists already.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Strategy {
    /// Maps are merged, lists replaced.
    #[default]
    Default,
    /// Lists are merged.
    Merge,
    /// Maps and lists are replaced.
    Replace,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Struct(usize),
    List(Element),
    Opaque(&'static str),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Element {
    Struct(usize),
    List,
    Opaque(&'static str),
}

#[derive(Debug)]
struct Field {
    name: &'static str,
    shape: Shape,
    merging: Merging,
}

#[derive(Debug)]
struct Type {
    name: &'static str,
    fields: Vec<Field>,
}

#[derive(Debug, Default)]
struct Table {
    kinds: HashMap<(&'static str, &'static str), usize>,
    types: Vec<Type>,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let mut table = Table::default();
    for line in include_str!("schema.txt").lines() {
        let mut words = line.split(' ');
        match words.next() {
            Some("kind") => table.kinds.extend(parse_kind(words)),
            Some("type") => table.types.push(parse_type(words)),
            _ => {}
        }
    }
    table
});

fn parse_kind(mut words: impl Iterator<Item = &'static str>) -> Option<((&'static str, &'static str), usize)> {
    let (api_version, kind) = words.next()?.rsplit_once('/')?;
    let id = words.next()?.parse().ok()?;
    Some(((api_version.trim_start_matches('/'), kind), id))
}

fn parse_type(mut words: impl Iterator<Item = &'static str>) -> Type {
    Type { name: words.next().unwrap_or_default(), fields: words.filter_map(parse_field).collect() }
}

fn parse_field(text: &'static str) -> Option<Field> {
    let (name, rest) = text.split_once('=')?;
    let mut parts = rest.split(':');
    Some(Field {
        name,
        shape: parse_shape(parts.next()?),
        merging: parse_merging(parts.next().unwrap_or_default(), parts.next().unwrap_or_default()),
    })
}

fn parse_shape(text: &'static str) -> Shape {
    match (text.strip_prefix("[]"), text.parse()) {
        (Some(element), _) => Shape::List(parse_element(element)),
        (None, Ok(id)) => Shape::Struct(id),
        (None, Err(_)) => Shape::Opaque(text),
    }
}

fn parse_element(text: &'static str) -> Element {
    match text {
        "slice" => Element::List,
        "-" => Element::Opaque("string"),
        _ => text.parse().map_or(Element::Opaque(text), Element::Struct),
    }
}

fn parse_merging(strategies: &str, key: &'static str) -> Merging {
    let has = |word| strategies.split(',').any(|strategy| strategy == word);
    let strategy = match () {
        () if has("merge") => Strategy::Merge,
        () if has("replace") => Strategy::Replace,
        () => Strategy::Default,
    };
    Merging { strategy, retain_keys: has("retainKeys"), key }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn containers_merge_by_name_and_volumes_also_retain_keys() {
        let deployment = Schema::of("apps/v1", "Deployment").unwrap();
        let (spec, _) = deployment.object_field("spec").unwrap();
        let (template, _) = spec.object_field("template").unwrap();
        let (pod, _) = template.object_field("spec").unwrap();
        let (container, containers) = pod.list_field("containers").unwrap();
        let (_, volumes) = pod.list_field("volumes").unwrap();
        let (_, ports) = container.list_field("ports").unwrap();

        let by = |key, retain_keys| Merging { strategy: Strategy::Merge, retain_keys, key };
        assert_eq!(containers, by("name", false));
        assert_eq!(volumes, by("name", true));
        assert_eq!(ports, by("containerPort", false));
    }

    #[test]
    fn every_number_in_the_table_names_a_type() {
        let known = |id: usize| id < TABLE.types.len();
        assert!(TABLE.kinds.values().all(|id| known(*id)));
        for field in TABLE.types.iter().flat_map(|owner| &owner.fields) {
            if let Shape::Struct(id) | Shape::List(Element::Struct(id)) = field.shape {
                assert!(known(id), "{} points to {id}", field.name);
            }
        }
    }

    #[test]
    fn custom_resources_have_no_schema() {
        assert_eq!(Schema::of("gateway.example.com/v1", "Gateway"), None);
        assert!(Schema::kinds().count() > 150);
    }

    #[test]
    fn core_kinds_are_found_by_their_bare_version() {
        assert!(Schema::of("v1", "Service").is_some());
        assert!(Schema::of("apiextensions.k8s.io/v1", "CustomResourceDefinition").is_some());
    }
}
