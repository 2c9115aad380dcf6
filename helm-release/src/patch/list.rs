//! Merging lists: what identifies an element, and in which order elements end up.
//!
//! Kubernetes sorts with comparisons that answer "before" for equal elements, so elements with the same merge key change
//! places. The insertion sort here gives the same result for the short lists (up to twelve elements) that Go also
//! sorts by insertion; longer lists differ only if they contain duplicates.

use super::error::Error;
use super::text::{Type, go_text, list_text, map_text};
use serde_json::{Map, Value};

/// An object's fields.
pub(super) type Fields = Map<String, Value>;

/// A list's elements.
pub(super) type List = Vec<Value>;

/// The common type of all elements.
///
/// # Errors
/// [`Error::ListOfLists`], [`Error::MixedList`], or [`Error::NoElements`] if there are none.
pub(super) fn element_type(lists: &[&[Value]]) -> Result<Type, Error> {
    let mut types = lists.iter().flat_map(|list| list.iter()).map(Type::of);
    match types.next() {
        None => Err(Error::NoElements),
        Some(Type::List) => Err(Error::ListOfLists),
        Some(first) if types.all(|other| other == first) => Ok(first),
        Some(_) => Err(Error::MixedList { lists: format!("[{}]", joined(lists)) }),
    }
}

/// The element as an object.
pub(super) fn as_map(element: &Value) -> Result<&Fields, Error> {
    element.as_object().ok_or_else(|| wrong_type(Type::Map, element))
}

/// What identifies an object of a merging list.
pub(super) fn merge_key<'a>(fields: &'a Fields, key: &str) -> Result<&'a Value, Error> {
    fields.get(key).ok_or_else(|| Error::NoMergeKey { element: map_text(fields), key: key.to_owned() })
}

/// Whether two elements stand for the same thing; scalars if `key` is empty.
pub(super) fn same_element(left: &Value, right: &Value, key: &str) -> Result<bool, Error> {
    if key.is_empty() {
        return Ok(left == right);
    }
    Ok(merge_key(as_map(left)?, key)? == merge_key(as_map(right)?, key)?)
}

/// The index of the object with that merge key.
pub(super) fn position_of(list: &[Value], key: &str, value: &Value) -> Result<Option<usize>, Error> {
    for (index, element) in list.iter().enumerate() {
        if as_map(element)?.get(key) == Some(value) {
            return Ok(Some(index));
        }
    }
    Ok(None)
}

/// Scalars in the order of their texts.
pub(super) fn sorted_scalars(list: &[Value]) -> List {
    let mut sorted = list.to_vec();
    sorted.sort_by_cached_key(go_text);
    sorted
}

/// Objects with the texts of their merge keys, in the order of these.
pub(super) fn sorted_maps<'a>(list: &'a [Value], key: &str) -> Result<Vec<(String, &'a Fields)>, Error> {
    let mut sorted = Vec::with_capacity(list.len());
    for element in list {
        let fields = as_map(element)?;
        sorted.push((go_text(fields.get(key).unwrap_or(&Value::Null)), fields));
    }
    insertion_sort(&mut sorted, |left, right| left.0 <= right.0);
    Ok(sorted)
}

/// Drops later duplicates of scalars, filling each gap with the last element.
pub(super) fn without_duplicates(mut list: List) -> List {
    let mut index = 0;
    while index < list.len() {
        let mut other = index + 1;
        while other < list.len() {
            if list[index] == list[other] {
                list.swap_remove(other);
            } else {
                other += 1;
            }
        }
        index += 1;
    }
    list
}

/// Elements in the order in which `order` names them; objects to delete come last.
///
/// # Errors
/// Whatever [`merge_key`] says about any element of the two lists, if they hold objects.
pub(super) fn in_order(list: List, order: &[Value], key: &str, kind: Type) -> Result<List, Error> {
    let mut deletions = Vec::new();
    let mut kept = Vec::with_capacity(list.len());
    if kind == Type::Map {
        for element in list.iter().chain(order) {
            merge_key(as_map(element)?, key)?;
        }
        (deletions, kept) = list.into_iter().partition(is_deletion);
    } else {
        kept.extend(list);
    }
    let mut placed: Vec<_> = kept.into_iter().map(|element| (place(order, &element, key, kind), element)).collect();
    insertion_sort(&mut placed, |left, right| match (left.0, right.0) {
        (Some(left), Some(right)) => left < right,
        _ => true,
    });
    Ok(placed.into_iter().map(|(_, element)| element).chain(deletions).collect())
}

/// A merged list in its final order: what `wanted` names as it names it, all else as in `live`.
///
/// # Errors
/// As [`in_order`].
pub(super) fn arranged(merged: List, wanted: &[Value], live: &[Value], key: &str, kind: Type) -> Result<List, Error> {
    let (named, others) = split_by_presence(merged, wanted, key)?;
    let named = in_order(named, wanted, key, kind)?;
    let others = in_order(others, live, key, kind)?;
    Ok(interleave(others, named, live, key, kind))
}

/// Splits into the elements that `named` contains and all others.
fn split_by_presence(list: List, named: &[Value], key: &str) -> Result<(List, List), Error> {
    if key.is_empty() {
        return Ok(list.into_iter().partition(|element| named.contains(element)));
    }
    let (mut present, mut others) = (Vec::new(), Vec::new());
    for element in list {
        let identity = merge_key(as_map(&element)?, key)?;
        match position_of(named, key, identity)? {
            Some(_) => present.push(element),
            None => others.push(element),
        }
    }
    Ok((present, others))
}

/// Interleaves elements only the live list has with those of the patch.
///
/// Both keep their own order; a live element goes before the first patch element that follows it in the live list.
fn interleave(live: List, patch: List, live_order: &[Value], key: &str, kind: Type) -> List {
    let mut result = Vec::with_capacity(live.len() + patch.len());
    let mut live = live.into_iter().peekable();
    for element in patch {
        let limit = place(live_order, &element, key, kind);
        let precedes = |other: &Value| match (place(live_order, other, key, kind), limit) {
            (Some(place), Some(limit)) => place < limit,
            _ => false,
        };
        while let Some(earlier) = live.next_if(precedes) {
            result.push(earlier);
        }
        result.push(element);
    }
    result.extend(live);
    result
}

/// Whether an element is only there to have its counterpart deleted.
pub(super) fn is_deletion(element: &Value) -> bool {
    element.get("$patch").is_some_and(|directive| directive == "delete")
}

pub(super) fn wrong_type(expected: Type, found: &Value) -> Error {
    Error::WrongType { expected: expected.word(), received: Type::of(found).word() }
}

fn place(order: &[Value], element: &Value, key: &str, kind: Type) -> Option<usize> {
    if kind != Type::Map {
        return order.iter().position(|other| other == element);
    }
    order.iter().position(|other| other.get(key) == element.get(key))
}

/// Go's insertion sort: moves an element forward as long as `before` says so.
fn insertion_sort<T>(list: &mut [T], before: impl Fn(&T, &T) -> bool) {
    for end in 1..list.len() {
        let mut index = end;
        while index > 0 && before(&list[index], &list[index - 1]) {
            list.swap(index, index - 1);
            index -= 1;
        }
    }
}

fn joined(lists: &[&[Value]]) -> String {
    let texts = lists.iter().map(|list| list_text(list));
    texts.collect::<Vec<_>>().join(" ")
}
