//! Takes a list apart while it comes: one item at a time, so that no more than one is held.

use serde::Deserialize;
use serde::de::Error as _;

/// A `List` in JSON of which a part has come.
#[derive(Default)]
pub(super) struct Items {
    /// The list without its items.
    frame: Vec<u8>,
    /// As much of an item as has come.
    item: Vec<u8>,
    depth: usize,
    place: Place,
    text: Text,
}

#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Place {
    #[default]
    Frame,
    /// Between the items.
    List,
    Item,
}

/// Whether brackets count.
#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Text {
    #[default]
    Outside,
    Inside,
    /// Behind a backslash.
    Escaped,
}

/// The depth between the items of a list: in its object, and in an array there.
const BETWEEN: usize = 2;

impl Items {
    /// Takes in what has come and hands each item that is complete to `take`.
    ///
    /// # Errors
    /// That of `take`.
    pub(super) fn feed(
        &mut self,
        mut bytes: &[u8],
        mut take: impl FnMut(&[u8]) -> Result<(), serde_json::Error>,
    ) -> Result<(), serde_json::Error> {
        while let Some(byte) = bytes.first() {
            let taken = if self.text == Text::Inside { plain(bytes) } else { 0 };
            if taken > 0 {
                self.keep(&bytes[..taken]);
                bytes = &bytes[taken..];
                continue;
            }
            let whole = self.step(*byte);
            if whole {
                take(&self.item)?;
                self.item.clear();
            }
            bytes = &bytes[1..];
        }
        Ok(())
    }

    /// # Errors
    /// What came is no whole list.
    pub(super) fn end(&self) -> Result<(), serde_json::Error> {
        #[derive(Deserialize)]
        struct Frame {
            #[serde(default)]
            metadata: Metadata,
            #[serde(rename = "items")]
            _items: Option<[(); 0]>,
        }
        #[derive(Deserialize, Default)]
        struct Metadata {
            #[serde(default)]
            r#continue: String,
        }
        let frame: Frame = serde_json::from_slice(&self.frame)?;
        if frame.metadata.r#continue.is_empty() {
            return Ok(());
        }
        Err(serde_json::Error::custom("a part of the list where all of it was asked for"))
    }

    fn keep(&mut self, bytes: &[u8]) {
        match self.place {
            Place::Frame | Place::List => self.frame.extend_from_slice(bytes),
            Place::Item => self.item.extend_from_slice(bytes),
        }
    }

    /// Takes in one byte; whether it is the last of an item.
    fn step(&mut self, byte: u8) -> bool {
        match self.text {
            Text::Inside | Text::Escaped => {
                self.keep(&[byte]);
                self.text = match (self.text, byte) {
                    (Text::Inside, b'\\') => Text::Escaped,
                    (Text::Inside, b'"') => Text::Outside,
                    (Text::Inside | Text::Escaped | Text::Outside, _) => Text::Inside,
                };
                false
            }
            Text::Outside => self.bracket(byte),
        }
    }

    fn bracket(&mut self, byte: u8) -> bool {
        match byte {
            b'"' => self.text = Text::Inside,
            b'{' | b'[' => {
                if self.place == Place::List && byte == b'{' {
                    self.place = Place::Item;
                }
                self.depth += 1;
                if self.place == Place::Frame && self.depth == BETWEEN && byte == b'[' {
                    self.keep(&[byte]);
                    self.place = Place::List;
                    return false;
                }
            }
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                if self.place == Place::List {
                    self.place = Place::Frame;
                } else if self.place == Place::Item && self.depth == BETWEEN {
                    self.keep(&[byte]);
                    self.place = Place::List;
                    return true;
                }
            }
            b',' if self.place == Place::List => return false,
            _ => {}
        }
        self.keep(&[byte]);
        false
    }
}

/// How many bytes at the front are nothing but text.
fn plain(bytes: &[u8]) -> usize {
    bytes.iter().position(|byte| matches!(byte, b'"' | b'\\')).unwrap_or(bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The items of a list that comes in parts of `size` bytes.
    fn items(list: &str, size: usize) -> Result<Vec<String>, serde_json::Error> {
        let (mut items, mut found) = (Items::default(), Vec::new());
        for part in list.as_bytes().chunks(size) {
            items.feed(part, |item| {
                found.push(String::from_utf8_lossy(item).into_owned());
                Ok(())
            })?;
        }
        items.end().map(|()| found)
    }

    #[test]
    fn a_list_comes_apart_wherever_it_is_cut() {
        let list =
            r#"{"kind":"List","metadata":{"a":[{}],"b":"]}"}, "items": [ {"x":{"y":["}"]}} , {"z":"\\\"{"},{}] }"#;
        let expected = [r#"{"x":{"y":["}"]}}"#, r#"{"z":"\\\"{"}"#, "{}"];
        for size in 1..=list.len() {
            assert_eq!(items(list, size).unwrap(), expected, "{size}");
        }
    }

    #[test]
    fn a_list_without_items_is_a_list() {
        for list in [r#"{"items":null}"#, r#"{"items":[]}"#, "{}"] {
            assert!(items(list, 3).unwrap().is_empty(), "{list}");
        }
    }

    #[test]
    fn what_is_no_whole_list_is_an_error() {
        for list in [
            "",
            "[]x",
            r#"{"items":[{}"#,
            r#"{"items":[{},{"a":"#,
            r#"{"items":[1]}"#,
            r#"{"metadata":{"continue":"x"}}"#,
        ] {
            assert!(items(list, 4).is_err(), "{list}");
        }
    }
}
