//! The name that a person may have meant.

/// The nearest of `known`, if one is near: at most a third of its letters differ.
pub(crate) fn nearest<'a, T: AsRef<str> + 'a>(given: &str, known: impl IntoIterator<Item = &'a T>) -> Option<&'a str> {
    let known = known.into_iter().map(AsRef::as_ref);
    let rated = known.map(|name| (distance(given, name), name));
    let near =
        rated.filter(|(far, name)| *far > 0 && (*far <= name.chars().count().div_ceil(3) || name.contains(given)));
    near.min_by_key(|(far, name)| (*far, name.len())).map(|(_, name)| name)
}

/// How many letters must be put in, taken out, replaced or swapped with their neighbour.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let replaced = last[j] + usize::from(x != y);
            let mut least = replaced.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && a[i - 1] == *y && b[j - 1] == *x {
                least = least.min(before[j - 1] + 1);
            }
            row.push(least);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_swapped_lost_or_added_are_seen_through() {
        let known = ["web".to_owned(), "payments".to_owned(), "payments-db".to_owned()];
        assert_eq!(nearest("wbe", &known), Some("web"));
        assert_eq!(nearest("paymnts", &known), Some("payments"));
        assert_eq!(nearest("payment", &known), Some("payments"));
    }

    #[test]
    fn what_is_far_is_not_proposed() {
        assert_eq!(nearest("grafana", &["web".to_owned(), "db".to_owned()]), None);
        assert_eq!(nearest("web", &["web".to_owned()]), None);
    }

    #[test]
    fn a_part_of_a_name_is_near() {
        assert_eq!(nearest("gateway", &["prod-gateway-eu".to_owned()]), Some("prod-gateway-eu"));
    }

    #[test]
    fn distances_are_counted_by_letter() {
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("ab", "ba"), 1);
        assert_eq!(distance("é", "e"), 1);
    }
}
