//! The type of a scalar: what its text means unless a tag or quotes say otherwise (YAML 1.1, as Go reads it).

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use crate::error::Error;
use crate::parser::Scalar;
use crate::timestamp::is_timestamp;
use crate::value::Data;

const STR: &str = "tag:yaml.org,2002:str";
const BOOL: &str = "tag:yaml.org,2002:bool";
const INT: &str = "tag:yaml.org,2002:int";
const FLOAT: &str = "tag:yaml.org,2002:float";
const NULL: &str = "tag:yaml.org,2002:null";
const TIMESTAMP: &str = "tag:yaml.org,2002:timestamp";
const BINARY: &str = "tag:yaml.org,2002:binary";

/// What a text stands for.
#[derive(Debug, Clone, PartialEq)]
enum Resolved {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Float(f64),
    /// A date or time. It stays text, but must be quoted to remain a string elsewhere.
    Timestamp,
    Text,
}

/// What a scalar of a document stands for.
pub(crate) fn scalar(scalar: &Scalar) -> Result<Data, Error> {
    let text = scalar.text.as_str();
    let data = match scalar.tag.as_str() {
        "" if scalar.implicit => plain(text),
        "" | STR => Resolved::Text,
        BINARY => return decode_base64(text).map(Data::Str),
        BOOL => tagged(BOOL, text)?,
        INT => tagged(INT, text)?,
        FLOAT => tagged(FLOAT, text)?,
        NULL => tagged(NULL, text)?,
        TIMESTAMP => tagged(TIMESTAMP, text)?,
        _ => Resolved::Text,
    };
    Ok(match data {
        Resolved::Null => Data::Null,
        Resolved::Bool(it) => Data::Bool(it),
        Resolved::Int(it) => Data::Int(it),
        Resolved::Uint(it) => Data::Uint(it),
        Resolved::Float(it) => Data::Float(it),
        Resolved::Timestamp | Resolved::Text => Data::Str(text.into()),
    })
}

/// Whether a plain scalar of this text is read as this text: what go-yaml asks before it writes one.
pub(crate) fn reads_as_text(text: &str) -> bool {
    plain(text) == Resolved::Text && !is_base_60(text)
}

/// `12:30`, which YAML 1.1 reads as a number to the base of 60. Go writes it quoted but reads it as text.
fn is_base_60(text: &str) -> bool {
    let digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit() || b == b'_');
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let Some((whole, rest)) = unsigned.split_once(':') else { return false };
    let (sixties, fraction) = rest.split_once('.').unwrap_or((rest, ""));
    let sixty = |part: &str| match part.as_bytes() {
        [ones] => ones.is_ascii_digit(),
        [tens, ones] => (b'0'..=b'5').contains(tens) && ones.is_ascii_digit(),
        _ => false,
    };
    whole.starts_with(|c: char| c.is_ascii_digit())
        && digits(whole)
        && sixties.split(':').all(sixty)
        && digits(fraction)
}

/// The meaning of a plain scalar.
fn plain(text: &str) -> Resolved {
    if let Some(word) = word(text) {
        return word;
    }
    match text.bytes().next() {
        Some(b'.') => fraction(text).map_or(Resolved::Text, Resolved::Float),
        Some(b'+' | b'-' | b'0'..=b'9') if is_timestamp(text) => Resolved::Timestamp,
        Some(b'+' | b'-' | b'0'..=b'9') => number(&text.replace('_', "")).unwrap_or(Resolved::Text),
        _ => Resolved::Text,
    }
}

/// The meaning of a scalar with an explicit tag, which the text must fit.
fn tagged(tag: &'static str, text: &str) -> Result<Resolved, Error> {
    let mut found = plain(text);
    if found == Resolved::Timestamp && tag != TIMESTAMP {
        found = Resolved::Text;
    }
    if let (FLOAT, Resolved::Int(it)) = (tag, &found) {
        return Ok(Resolved::Float(*it as f64));
    }
    if tag_of(&found) == tag {
        return Ok(found);
    }
    Err(Error::Tag { found: short(tag_of(&found)), text: text.into(), wanted: short(tag) })
}

fn tag_of(found: &Resolved) -> &'static str {
    match found {
        Resolved::Null => NULL,
        Resolved::Bool(_) => BOOL,
        Resolved::Int(_) | Resolved::Uint(_) => INT,
        Resolved::Float(_) => FLOAT,
        Resolved::Timestamp => TIMESTAMP,
        Resolved::Text => STR,
    }
}

fn short(tag: &str) -> &'static str {
    match tag {
        NULL => "!!null",
        BOOL => "!!bool",
        INT => "!!int",
        FLOAT => "!!float",
        TIMESTAMP => "!!timestamp",
        _ => "!!str",
    }
}

fn word(text: &str) -> Option<Resolved> {
    Some(match text {
        "" | "~" | "null" | "Null" | "NULL" => Resolved::Null,
        "y" | "Y" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" | "true" | "True" | "TRUE" => Resolved::Bool(true),
        "n" | "N" | "no" | "No" | "NO" | "off" | "Off" | "OFF" | "false" | "False" | "FALSE" => Resolved::Bool(false),
        ".nan" | ".NaN" | ".NAN" => Resolved::Float(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => Resolved::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => Resolved::Float(f64::NEG_INFINITY),
        _ => return None,
    })
}

fn number(text: &str) -> Option<Resolved> {
    let (negative, unsigned) = match text.as_bytes() {
        [b'-', ..] => (true, &text[1..]),
        [b'+', ..] => (false, &text[1..]),
        _ => (false, text),
    };
    let signed = unsigned.len() != text.len();
    if let Some(magnitude) = magnitude(unsigned) {
        if let Some(it) = with_sign(magnitude, negative) {
            return Some(Resolved::Int(it));
        }
        if !signed {
            return Some(Resolved::Uint(magnitude));
        }
    }
    decimal(text).map(Resolved::Float).or_else(|| odd_binary(text))
}

/// An integer without sign in the notation its prefix names; a bare leading zero is octal.
fn magnitude(text: &str) -> Option<u64> {
    let (digits, radix) = match text.as_bytes() {
        [b'0', b'x' | b'X', ..] => (&text[2..], 16),
        [b'0', b'o' | b'O', ..] => (&text[2..], 8),
        [b'0', b'b' | b'B', ..] => (&text[2..], 2),
        [b'0', _, ..] => (&text[1..], 8),
        _ => (text, 10),
    };
    digits.bytes().all(|digit| digit.is_ascii_alphanumeric()).then(|| u64::from_str_radix(digits, radix).ok())?
}

fn with_sign(magnitude: u64, negative: bool) -> Option<i64> {
    if negative { 0i64.checked_sub_unsigned(magnitude) } else { i64::try_from(magnitude).ok() }
}

/// `0b` followed by a sign: no Go integer, but read as one.
fn odd_binary(text: &str) -> Option<Resolved> {
    let digits = text.strip_prefix("0b")?;
    i64::from_str_radix(digits, 2).ok().map(Resolved::Int)
}

/// A number that starts with a point. Unlike elsewhere an underscore has to stand between digits.
fn fraction(text: &str) -> Option<f64> {
    let digit = |c: Option<&u8>| c.is_some_and(u8::is_ascii_digit);
    let bytes = text.as_bytes();
    let misplaced =
        |(at, c): (usize, &u8)| *c == b'_' && !(at > 0 && digit(bytes.get(at - 1)) && digit(bytes.get(at + 1)));
    if bytes.iter().enumerate().any(misplaced) { None } else { decimal(&text.replace('_', "")) }
}

/// Digits with an optional point and exponent, finite.
fn decimal(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let plain = unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    let allowed = unsigned.bytes().all(|c| c.is_ascii_digit() || matches!(c, b'.' | b'e' | b'E' | b'+' | b'-'));
    if !plain || !allowed {
        return None;
    }
    text.parse().ok().filter(|it: &f64| it.is_finite())
}

fn decode_base64(text: &str) -> Result<String, Error> {
    let config = GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::RequireCanonical);
    let one_line = text.replace(['\r', '\n'], "");
    let bytes = GeneralPurpose::new(&STANDARD, config).decode(one_line).map_err(|_| Error::Base64)?;
    Ok(replace_invalid(&bytes))
}

/// JSON has no bytes: each one that is no UTF-8 becomes a replacement character.
fn replace_invalid(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    text
}
