//! A document as Go holds it: keys of any type, integers and floats apart.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use crate::number::shortest_g;

#[derive(Debug, Clone)]
pub(crate) enum Data {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Float(f64),
    Str(String),
    Sequence(Vec<Self>),
    Mapping(BTreeMap<Key, Self>),
}

/// A scalar as a key. Equal keys of different types are different keys.
#[derive(Debug, Clone)]
pub(crate) enum Key {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Float(f64),
    Str(String),
}

impl Data {
    /// As a key, unless it is a collection.
    pub(crate) fn into_key(self) -> Result<Key, Self> {
        Ok(match self {
            Self::Null => Key::Null,
            Self::Bool(it) => Key::Bool(it),
            Self::Int(it) => Key::Int(it),
            Self::Uint(it) => Key::Uint(it),
            Self::Float(it) => Key::Float(it),
            Self::Str(it) => Key::Str(it),
            Self::Sequence(_) | Self::Mapping(_) => return Err(self),
        })
    }

    /// The value in Go's syntax, as its error messages quote it.
    pub(crate) fn go_syntax(&self) -> String {
        if matches!(self, Self::Null) {
            return "<nil>".into();
        }
        let mut text = String::new();
        // Writing to a string does not fail.
        _ = write_data(&mut text, self);
        text
    }
}

impl Key {
    /// Which type Go prints before which others.
    fn rank(&self) -> u8 {
        match self {
            Self::Null => 0,
            Self::Str(_) => 1,
            Self::Int(_) => 2,
            Self::Uint(_) => 3,
            Self::Float(_) => 4,
            Self::Bool(_) => 5,
        }
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Bool(a), Self::Bool(b)) => a.cmp(b),
            (Self::Int(a), Self::Int(b)) => a.cmp(b),
            (Self::Uint(a), Self::Uint(b)) => a.cmp(b),
            (Self::Float(a), Self::Float(b)) => a.total_cmp(b),
            (Self::Str(a), Self::Str(b)) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Key {}

fn write_data(out: &mut String, data: &Data) -> fmt::Result {
    match data {
        Data::Null => out.write_str("interface {}(nil)"),
        Data::Bool(it) => write!(out, "{it}"),
        Data::Int(it) => write!(out, "{it}"),
        Data::Uint(it) => write!(out, "{it:#x}"),
        Data::Float(it) => out.write_str(&shortest_g(*it)),
        Data::Str(it) => write_quoted(out, it),
        Data::Sequence(items) => {
            out.write_str("[]interface {}{")?;
            for (at, item) in items.iter().enumerate() {
                out.write_str(if at == 0 { "" } else { ", " })?;
                write_data(out, item)?;
            }
            out.write_char('}')
        }
        Data::Mapping(entries) => {
            out.write_str("map[interface {}]interface {}{")?;
            for (at, (key, value)) in entries.iter().enumerate() {
                out.write_str(if at == 0 { "" } else { ", " })?;
                write_key(out, key)?;
                out.write_char(':')?;
                write_data(out, value)?;
            }
            out.write_char('}')
        }
    }
}

fn write_key(out: &mut String, key: &Key) -> fmt::Result {
    match key {
        Key::Null => out.write_str("interface {}(nil)"),
        Key::Bool(it) => write!(out, "{it}"),
        Key::Int(it) => write!(out, "{it}"),
        Key::Uint(it) => write!(out, "{it:#x}"),
        Key::Float(it) => out.write_str(&shortest_g(*it)),
        Key::Str(it) => write_quoted(out, it),
    }
}

fn write_quoted(out: &mut String, text: &str) -> fmt::Result {
    out.write_char('"')?;
    for c in text.chars() {
        match c {
            '"' | '\\' => write!(out, "\\{c}"),
            '\x07' => out.write_str("\\a"),
            '\x08' => out.write_str("\\b"),
            '\x0c' => out.write_str("\\f"),
            '\n' => out.write_str("\\n"),
            '\r' => out.write_str("\\r"),
            '\t' => out.write_str("\\t"),
            '\x0b' => out.write_str("\\v"),
            ' '..='~' => out.write_char(c),
            '\0'..='\x7f' => write!(out, "\\x{:02x}", c as u32),
            _ if c.escape_debug().len() == 1 => out.write_char(c),
            '\0'..='\u{ffff}' => write!(out, "\\u{:04x}", c as u32),
            _ => write!(out, "\\U{:08x}", c as u32),
        }?;
    }
    out.write_char('"')
}
