//! Values to block-style YAML as go-yaml v2 writes it: what may stand plain, what is quoted and how, where lines fold.

use serde_json::{Map, Value};

use crate::number::shortest_g;
use crate::order::sorted;
use crate::resolve::reads_as_text;
use crate::style::{Analysis, Style, is_break, is_printable};

/// Lines of plain and quoted text fold at the first space behind this column.
const WIDTH: usize = 80;
/// A longer key is written with `?` before it.
const LONGEST_SIMPLE_KEY: usize = 128;
const STEP: usize = 2;

/// Writes the document of one value.
pub(crate) fn document(value: &Value) -> String {
    let mut writer = Writer { out: String::new(), column: 0, whitespace: true, indention: true };
    writer.node(value, None, Place::Root);
    writer.indent(0);
    writer.out
}

/// Where a node stands: it decides how a sequence in it is indented.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Root,
    Key,
    Mapping,
    Sequence,
}

/// Text so far, and what stands before the next character.
struct Writer {
    out: String,
    column: usize,
    /// Whether a space or a line start is before it.
    whitespace: bool,
    /// Whether only indentation and indicators are before it on its line.
    indention: bool,
}

impl Writer {
    /// `indent` is that of the enclosing collection; none at the root.
    fn node(&mut self, value: &Value, indent: Option<usize>, place: Place) {
        match value {
            Value::Null => self.plain("null", 0, false),
            Value::Bool(value) => self.plain(&value.to_string(), 0, false),
            Value::Number(number) => self.plain(&number_text(number), 0, false),
            Value::String(text) => self.text(text, indent.map_or(STEP, |indent| indent + STEP), place),
            Value::Array(items) if items.is_empty() => self.flow("[]"),
            Value::Object(map) if map.is_empty() => self.flow("{}"),
            Value::Array(items) => self.sequence(items, indent, place),
            Value::Object(map) => self.mapping(map, indent.map_or(0, |indent| indent + STEP)),
        }
    }

    fn sequence(&mut self, items: &[Value], indent: Option<usize>, place: Place) {
        // A sequence that is a mapping's value is not indented further.
        let hangs = place == Place::Mapping && !self.indention;
        let indent = indent.map_or(0, |indent| if hangs { indent } else { indent + STEP });
        for item in items {
            self.indent(indent);
            self.indicator("-", true, true);
            self.node(item, Some(indent), Place::Sequence);
        }
    }

    fn mapping(&mut self, map: &Map<String, Value>, indent: usize) {
        for (key, value) in sorted(map.iter()) {
            self.indent(indent);
            if is_simple_key(key) {
                self.text(key, indent + STEP, Place::Key);
                self.indicator(":", false, false);
            } else {
                self.indicator("?", true, true);
                self.text(key, indent + STEP, Place::Mapping);
                self.indent(indent);
                self.indicator(":", true, true);
            }
            self.node(value, Some(indent), Place::Mapping);
        }
    }

    fn text(&mut self, text: &str, indent: usize, place: Place) {
        let (key, analysis) = (place == Place::Key, Analysis::of(text));
        match Style::choose(&analysis, wanted(text), key) {
            Style::Plain => self.plain(text, indent, !key),
            Style::Single => self.single(text, indent, !key),
            Style::Double => self.double(text, indent, !key),
            Style::Literal => self.literal(text, indent),
        }
    }

    fn plain(&mut self, text: &str, indent: usize, folds: bool) {
        self.space();
        self.folded(text, indent, folds, |_, _| false);
        (self.whitespace, self.indention) = (false, false);
    }

    fn single(&mut self, text: &str, indent: usize, folds: bool) {
        self.indicator("'", true, false);
        self.folded(text, indent, folds, |writer, c| {
            if c == '\'' {
                writer.put('\'');
            }
            true
        });
        self.indicator("'", false, false);
    }

    /// Plain and single-quoted text: a lone space behind the width becomes a line break, a break becomes two.
    fn folded(&mut self, text: &str, indent: usize, folds: bool, quoted: impl Fn(&mut Self, char) -> bool) {
        let (mut spaces, mut breaks) = (false, false);
        let mut rest = text.chars().peekable();
        let mut first = true;
        while let Some(c) = rest.next() {
            if c == ' ' {
                let inner = !first && rest.peek().is_some();
                let lone = !spaces && rest.peek() != Some(&' ');
                if folds && lone && inner && self.column > WIDTH {
                    self.indent(indent);
                } else {
                    self.put(c);
                }
                spaces = true;
            } else if is_break(c) {
                if !breaks && c == '\n' {
                    self.line_break();
                }
                self.write_break(c);
                (self.indention, breaks) = (true, true);
            } else {
                if breaks {
                    self.indent(indent);
                }
                quoted(self, c);
                self.put(c);
                (self.indention, spaces, breaks) = (false, false, false);
            }
            first = false;
        }
    }

    fn double(&mut self, text: &str, indent: usize, folds: bool) {
        self.indicator("\"", true, false);
        // Behind a byte order mark Go takes every character for one.
        let marked = text.starts_with('\u{feff}');
        let mut spaces = false;
        let mut rest = text.chars().peekable();
        let mut first = true;
        while let Some(c) = rest.next() {
            if marked || !is_printable(c) || is_break(c) || c == '"' || c == '\\' {
                escape(c).chars().for_each(|c| self.put(c));
                spaces = false;
            } else if c == ' ' && folds && !spaces && self.column > WIDTH && !first && rest.peek().is_some() {
                self.indent(indent);
                if rest.peek() == Some(&' ') {
                    self.put('\\');
                }
                spaces = true;
            } else {
                self.put(c);
                spaces = c == ' ';
            }
            first = false;
        }
        self.indicator("\"", false, false);
    }

    fn literal(&mut self, text: &str, indent: usize) {
        self.indicator("|", true, false);
        if text.starts_with(|c| c == ' ' || is_break(c)) {
            self.put('2');
        }
        let mut from_end = text.chars().rev();
        match (from_end.next().is_some_and(is_break), from_end.next().is_none_or(is_break)) {
            (false, _) => self.put('-'),
            (true, true) => self.put('+'),
            (true, false) => {}
        }
        self.line_break();
        (self.indention, self.whitespace) = (true, true);
        let mut breaks = true;
        for c in text.chars() {
            if is_break(c) {
                self.write_break(c);
                (self.indention, breaks) = (true, true);
            } else {
                if breaks {
                    self.indent(indent);
                }
                self.put(c);
                (self.indention, breaks) = (false, false);
            }
        }
    }

    fn flow(&mut self, brackets: &str) {
        self.indicator(brackets, true, false);
    }

    fn indicator(&mut self, text: &str, spaced: bool, keeps_indention: bool) {
        if spaced {
            self.space();
        }
        text.chars().for_each(|c| self.put(c));
        self.whitespace = false;
        self.indention = self.indention && keeps_indention;
    }

    fn space(&mut self) {
        if !self.whitespace {
            self.put(' ');
        }
    }

    /// Begins a line, unless one has just begun, and indents it.
    fn indent(&mut self, indent: usize) {
        if !self.indention || self.column > indent || (self.column == indent && !self.whitespace) {
            self.line_break();
        }
        while self.column < indent {
            self.put(' ');
        }
        (self.whitespace, self.indention) = (true, true);
    }

    fn put(&mut self, c: char) {
        self.out.push(c);
        self.column += 1;
    }

    fn line_break(&mut self) {
        self.out.push('\n');
        self.column = 0;
    }

    fn write_break(&mut self, c: char) {
        self.out.push(c);
        self.column = 0;
    }
}

/// What go-yaml's encoder asks for, before the emitter has its say.
fn wanted(text: &str) -> Style {
    if text.contains('\n') {
        Style::Literal
    } else if reads_as_text(text) {
        Style::Plain
    } else {
        Style::Double
    }
}

fn is_simple_key(key: &str) -> bool {
    key.len() <= LONGEST_SIMPLE_KEY && !key.contains(is_break)
}

fn escape(c: char) -> String {
    let short = match c {
        '\0' => '0',
        '\x07' => 'a',
        '\x08' => 'b',
        '\t' => 't',
        '\n' => 'n',
        '\x0b' => 'v',
        '\x0c' => 'f',
        '\r' => 'r',
        '\x1b' => 'e',
        '"' | '\\' => c,
        '\u{85}' => 'N',
        '\u{a0}' => '_',
        '\u{2028}' => 'L',
        '\u{2029}' => 'P',
        other => {
            return match u32::from(other) {
                code @ 0..=0xff => format!("\\x{code:02X}"),
                code @ 0x100..=0xffff => format!("\\u{code:04X}"),
                code => format!("\\U{code:08X}"),
            };
        }
    };
    format!("\\{short}")
}

fn number_text(number: &serde_json::Number) -> String {
    match (number.as_i64(), number.as_u64(), number.as_f64()) {
        (Some(n), _, _) => n.to_string(),
        (_, Some(n), _) => n.to_string(),
        (_, _, Some(n)) => shortest_g(n),
        (None, None, None) => number.to_string(),
    }
}
