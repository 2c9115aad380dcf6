//! The order of keys: letters behind everything else, numbers by their size.

use std::cmp::Ordering;

/// Compares two keys as go-yaml sorts them.
pub(crate) fn by_nature(a: &str, b: &str) -> Ordering {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let Some(at) = a.iter().zip(&b).position(|(a, b)| a != b) else { return a.len().cmp(&b.len()) };
    let (Some(&left), Some(&right)) = (a.get(at), b.get(at)) else { return Ordering::Equal };
    match (left.is_alphabetic(), right.is_alphabetic()) {
        (true, true) => return left.cmp(&right),
        (true, false) => return Ordering::Greater,
        (false, true) => return Ordering::Less,
        (false, false) => {}
    }
    // A zero behind another digit belongs to a number that began before: 10 against 1.
    let zero = left == '0' || right == '0';
    let before = a.get(..at).unwrap_or_default().iter().rev().take_while(|c| c.is_ascii_digit());
    let start = i64::from(zero && before.into_iter().any(|c| *c != '0'));
    let (left_number, left_length) = number(&a, at, start);
    let (right_number, right_length) = number(&b, at, start);
    left_number.cmp(&right_number).then(left_length.cmp(&right_length)).then(left.cmp(&right))
}

/// The number that stands at `at`, and how long it is; it wraps around as Go's does.
fn number(text: &[char], at: usize, start: i64) -> (i64, usize) {
    let digits = text.get(at..).unwrap_or_default().iter().map_while(|c| c.to_digit(10));
    digits
        .fold((start, 0), |(value, length), digit| (value.wrapping_mul(10).wrapping_add(i64::from(digit)), length + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_by_their_size_and_letters_last() {
        let mut keys = ["a10", "a2", "b", "a-b", "a.b", "10", "9", "A"];
        keys.sort_by(|a, b| by_nature(a, b));
        assert_eq!(keys, ["9", "10", "A", "a-b", "a.b", "a2", "a10", "b"]);
    }
}
