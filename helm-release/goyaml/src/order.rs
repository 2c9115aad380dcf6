//! The order of keys: letters behind everything else, numbers by their size.

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::sync::LazyLock;

use regex::Regex;

// Unicode's categories, which Go goes by: the standard library's "alphabetic" and "numeric" are wider.
static LETTER: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\p{L}").ok());
static DIGIT: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\p{Nd}").ok());

/// Sorts entries by their keys.
///
/// Go's order runs in circles (`19 < 1a < 3t < 19`), which the standard library's sort answers with a panic. Merging gives
/// some order then; Go's own changes from run to run.
pub(crate) fn sorted<'a, T>(entries: impl Iterator<Item = (&'a String, T)>) -> impl Iterator<Item = (&'a String, T)> {
    let mut runs: VecDeque<VecDeque<_>> =
        entries.map(|(key, value)| VecDeque::from([(key.chars().collect::<Vec<_>>(), key, value)])).collect();
    while runs.len() > 1 {
        let Some((left, right)) = runs.pop_front().zip(runs.pop_front()) else { break };
        runs.push_back(merge(left, right));
    }
    runs.into_iter().flatten().map(|(_, key, value)| (key, value))
}

fn merge<K, T>(
    mut left: VecDeque<(Vec<char>, K, T)>,
    mut right: VecDeque<(Vec<char>, K, T)>,
) -> VecDeque<(Vec<char>, K, T)> {
    let mut merged = VecDeque::with_capacity(left.len() + right.len());
    while let Some((a, b)) = left.front().zip(right.front()) {
        let from = if by_nature(&b.0, &a.0).is_lt() { &mut right } else { &mut left };
        merged.extend(from.pop_front());
    }
    merged.append(&mut left);
    merged.append(&mut right);
    merged
}

/// Compares two keys as go-yaml sorts them.
fn by_nature(a: &[char], b: &[char]) -> Ordering {
    let Some(at) = a.iter().zip(b).position(|(a, b)| a != b) else { return a.len().cmp(&b.len()) };
    let (Some(&left), Some(&right)) = (a.get(at), b.get(at)) else { return Ordering::Equal };
    match (is_letter(left), is_letter(right)) {
        (true, true) => return left.cmp(&right),
        (true, false) => return Ordering::Greater,
        (false, true) => return Ordering::Less,
        (false, false) => {}
    }
    // A zero behind another digit belongs to a number that began before: 10 against 1.
    let zero = left == '0' || right == '0';
    let mut before = a.get(..at).unwrap_or_default().iter().rev().take_while(|c| is_digit(**c));
    let start = i64::from(zero && before.any(|c| *c != '0'));
    let (left_number, left_length) = number(a, at, start);
    let (right_number, right_length) = number(b, at, start);
    left_number.cmp(&right_number).then(left_length.cmp(&right_length)).then(left.cmp(&right))
}

/// The number that stands at `at`, and how long it is. It wraps around, and foreign digits count by their distance from
/// zero, as in Go.
fn number(text: &[char], at: usize, start: i64) -> (i64, usize) {
    let digits = text.get(at..).unwrap_or_default().iter().take_while(|c| is_digit(**c));
    digits.fold((start, 0), |(value, length), digit| {
        let digit = i64::from(u32::from(*digit)) - i64::from(u32::from('0'));
        (value.wrapping_mul(10).wrapping_add(digit), length + 1)
    })
}

fn is_letter(c: char) -> bool {
    if c.is_ascii() { c.is_ascii_alphabetic() } else { is(&LETTER, c) }
}

fn is_digit(c: char) -> bool {
    if c.is_ascii() { c.is_ascii_digit() } else { is(&DIGIT, c) }
}

fn is(category: &Option<Regex>, c: char) -> bool {
    category.as_ref().is_some_and(|category| category.is_match(c.encode_utf8(&mut [0; 4])))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(keys: &[&str]) -> Vec<String> {
        let keys: Vec<String> = keys.iter().map(|key| String::from(*key)).collect();
        sorted(keys.iter().map(|key| (key, ()))).map(|(key, ())| key.clone()).collect()
    }

    #[test]
    fn numbers_go_by_their_size_and_letters_last() {
        let keys = order(&["a10", "a2", "b", "a-b", "a.b", "10", "9", "A"]);
        assert_eq!(keys, ["9", "10", "A", "a-b", "a.b", "a2", "a10", "b"]);
    }

    #[test]
    fn marks_and_roman_numbers_are_no_letters() {
        assert_eq!(order(&["a", "\u{903}", "\u{2167}", "\u{24d0}"]), ["\u{903}", "\u{2167}", "\u{24d0}", "a"]);
    }

    #[test]
    fn keys_whose_order_runs_in_circles_are_all_there() {
        let keys: Vec<String> = (1..500_u64).map(|n| format!("{:x}", n.wrapping_mul(0x9e37_79b9_7f4a_7c15))).collect();
        let mut all = order(&keys.iter().map(String::as_str).collect::<Vec<_>>());
        all.sort();
        let mut expected = keys;
        expected.sort();
        assert_eq!(all, expected);
    }
}
