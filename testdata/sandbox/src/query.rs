//! What a URL asks for.

use std::collections::BTreeMap;

use serde_json::Value;

/// The parameters of a query; of one that is given twice, the first counts.
#[derive(Debug, Default)]
pub(crate) struct Query(BTreeMap<String, String>);

/// What a label selector or a field selector asks of an object.
#[derive(Debug)]
pub(crate) struct Selector(Vec<Term>);

#[derive(Debug)]
enum Term {
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
    Exists(String),
    Absent(String),
}

impl Query {
    pub(crate) fn parse(text: &str) -> Self {
        let mut pairs = BTreeMap::new();
        for pair in text.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            pairs.entry(decode(name)).or_insert_with(|| decode(value));
        }
        Self(pairs)
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    pub(crate) fn is_true(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| value == "true" || value == "1")
    }
}

fn decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let (mut decoded, mut at) = (Vec::new(), 0);
    while let Some(byte) = bytes.get(at) {
        let hex = text.get(at + 1..at + 3).and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match (byte, hex) {
            (b'%', Some(byte)) => {
                decoded.push(byte);
                at += 3;
            }
            (b'+', _) => {
                decoded.push(b' ');
                at += 1;
            }
            _ => {
                decoded.push(*byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

impl Selector {
    /// # Errors
    /// The words of what is wrong.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut terms = Vec::new();
        for term in split(text) {
            terms.push(parse(term.trim()).ok_or_else(|| format!("unable to parse requirement: {term:?}"))?);
        }
        Ok(Self(terms))
    }

    /// What is asked about.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|term| match term {
            Term::In(name, _) | Term::NotIn(name, _) | Term::Exists(name) | Term::Absent(name) => name.as_str(),
        })
    }

    /// By labels.
    pub(crate) fn accepts_labels(&self, object: &Value) -> bool {
        self.accepts(|name| object["metadata"]["labels"].get(name).and_then(Value::as_str))
    }

    /// By fields: whatever leads to a text, as `metadata.name` or `type`.
    pub(crate) fn accepts_fields(&self, object: &Value) -> bool {
        let text = |path: &str| {
            let found = object.pointer(&format!("/{}", path.replace('.', "/")));
            Some(found.and_then(Value::as_str).unwrap_or_default())
        };
        self.accepts(text)
    }

    fn accepts<'a>(&self, value: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.0.iter().all(|term| match term {
            Term::In(name, wanted) => value(name).is_some_and(|value| wanted.iter().any(|word| word == value)),
            Term::NotIn(name, others) => !value(name).is_some_and(|value| others.iter().any(|word| word == value)),
            Term::Exists(name) => value(name).is_some(),
            Term::Absent(name) => value(name).is_none(),
        })
    }
}

/// At the commas that stand in no parentheses.
fn split(text: &str) -> Vec<&str> {
    let (mut terms, mut depth, mut begin) = (Vec::new(), 0, 0);
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                terms.push(&text[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    terms.push(&text[begin..]);
    terms.retain(|term| !term.trim().is_empty());
    terms
}

fn parse(term: &str) -> Option<Term> {
    let words = |list: &str| -> Option<Vec<String>> {
        let list = list.trim().strip_prefix('(')?.strip_suffix(')')?;
        Some(list.split(',').map(|word| word.trim().to_owned()).collect())
    };
    let name = |text: &str| Some(text.trim().to_owned()).filter(|name| is_name(name));
    if let Some((key, list)) = term.split_once(" notin ") {
        return Some(Term::NotIn(name(key)?, words(list)?));
    }
    if let Some((key, list)) = term.split_once(" in ") {
        return Some(Term::In(name(key)?, words(list)?));
    }
    if let Some((key, value)) = term.split_once("!=") {
        return Some(Term::NotIn(name(key)?, vec![value.trim().to_owned()]));
    }
    if let Some((key, value)) = term.split_once("==").or_else(|| term.split_once('=')) {
        return Some(Term::In(name(key)?, vec![value.trim().to_owned()]));
    }
    match term.strip_prefix('!') {
        Some(key) => Some(Term::Absent(name(key)?)),
        None => Some(Term::Exists(name(term)?)),
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn selectors_are_those_of_kubectl() {
        let object = json!({"metadata": {"name": "a", "labels": {"owner": "helm", "status": "deployed"}}});
        let accepts = |text: &str| Selector::parse(text).unwrap().accepts_labels(&object);
        for text in
            ["owner=helm", "owner==helm,status", "status in (failed, deployed)", "x!=y", "!x", "status notin (a,b)"]
        {
            assert!(accepts(text), "{text}");
        }
        for text in ["owner=x", "!owner", "x", "status notin (deployed)", "owner=helm,x=y"] {
            assert!(!accepts(text), "{text}");
        }
        assert!(Selector::parse("a b c").is_err());
        assert!(Selector::parse("metadata.name=a").unwrap().accepts_fields(&object));
    }

    #[test]
    fn parameters_are_decoded() {
        let query = Query::parse("labelSelector=a%3Db%2Cc+in+%28d%29&limit=5&x");
        assert_eq!(query.get("labelSelector"), Some("a=b,c in (d)"));
        assert_eq!((query.get("limit"), query.get("x")), (Some("5"), None));
    }
}
