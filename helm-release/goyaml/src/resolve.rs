//! What a scalar means: go-yaml v2's resolver, then what `sigs.k8s.io/yaml` makes of it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Number, Value};

use crate::Error;

/// A scalar, resolved.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Scalar {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Float(f64),
    Str(String),
    Merge,
}

const CORE: &str = "tag:yaml.org,2002:";

/// Resolves a scalar by its text, its tag, and whether it stood there plain.
pub(crate) fn resolve(text: &str, tag: Option<&str>, plain: bool) -> Result<Scalar, Error> {
    let tag = tag.filter(|tag| !tag.is_empty() && *tag != "!");
    let Some(tag) = tag else {
        return Ok(if plain { implicit(text) } else { Scalar::Str(text.into()) });
    };
    match tag.strip_prefix(CORE) {
        Some("str") => Ok(Scalar::Str(text.into())),
        Some("binary") => {
            let compact: String = text.split_ascii_whitespace().collect();
            let bytes = STANDARD.decode(compact).map_err(|_| Error::Binary)?;
            Ok(Scalar::Str(String::from_utf8_lossy(&bytes).into_owned()))
        }
        Some("merge") => Ok(Scalar::Merge),
        Some("timestamp") => Ok(Scalar::Str(text.into())),
        Some(wanted @ ("null" | "bool" | "int" | "float")) => fit(implicit(text), wanted, text),
        _ => Ok(Scalar::Str(text.into())),
    }
}

/// Whether a plain scalar of this text is read as this text: what go-yaml asks before it writes one.
pub(crate) fn reads_as_text(text: &str) -> bool {
    let text_again = matches!(implicit(text), Scalar::Str(_) | Scalar::Merge);
    text_again && !is_timestamp(text) && !is_base_60(text)
}

/// `2006-1-2`, alone or with a time: YAML 1.1 reads a date in it.
fn is_timestamp(text: &str) -> bool {
    let bytes = text.as_bytes();
    let year = bytes.iter().take_while(|b| b.is_ascii_digit()).count();
    if year != 4 || bytes.get(4) != Some(&b'-') {
        return false;
    }
    let (date, time) = match text.find(['T', 't', ' ']) {
        Some(at) => (&text[..at], text.get(at + 1..)),
        None => (text, None),
    };
    let zoned = |time: &str| chrono::DateTime::parse_from_rfc3339(&format!("2000-01-01T{time}")).is_ok();
    let bare = |time: &str| chrono::NaiveTime::parse_from_str(time, "%H:%M:%S%.f").is_ok();
    let separator = text.as_bytes().get(date.len());
    chrono::NaiveDate::parse_from_str(date, "%Y-%m-%d").is_ok()
        && time.is_none_or(|time| if separator == Some(&b' ') { bare(time) } else { zoned(time) })
}

/// `12:30`, which YAML 1.1 reads as a number to the base of 60.
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

fn fit(found: Scalar, wanted: &str, text: &str) -> Result<Scalar, Error> {
    match (&found, wanted) {
        (Scalar::Null, "null") | (Scalar::Bool(_), "bool") | (Scalar::Int(_) | Scalar::Uint(_), "int") => Ok(found),
        (Scalar::Float(_), "float") => Ok(found),
        #[expect(clippy::cast_precision_loss, reason = "Go converts the same way")]
        (Scalar::Int(n), "float") => Ok(Scalar::Float(*n as f64)),
        _ => Err(Error::Tag { found: found.tag(), text: text.into(), wanted: wanted.into() }),
    }
}

/// A plain scalar without a tag.
fn implicit(text: &str) -> Scalar {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Scalar::Null,
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => return Scalar::Bool(true),
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            return Scalar::Bool(false);
        }
        ".nan" | ".NaN" | ".NAN" => return Scalar::Float(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => return Scalar::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => return Scalar::Float(f64::NEG_INFINITY),
        "<<" => return Scalar::Merge,
        _ => {}
    }
    let looks_numeric = text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.'));
    looks_numeric.then(|| number(text)).flatten().unwrap_or_else(|| Scalar::Str(text.into()))
}

fn number(text: &str) -> Option<Scalar> {
    let plain: String = text.chars().filter(|c| *c != '_').collect();
    let (negative, digits) = match plain.as_bytes().first() {
        Some(b'-') => (true, &plain[1..]),
        Some(b'+') => (false, &plain[1..]),
        _ => (false, plain.as_str()),
    };
    integer(digits, negative).or_else(|| float(&plain))
}

/// Go's `ParseInt(…, 0, 64)`, then `ParseUint`: base by prefix, a leading zero is octal.
fn integer(digits: &str, negative: bool) -> Option<Scalar> {
    let lower = digits.to_ascii_lowercase();
    let (base, rest) = match lower.as_bytes() {
        [b'0', b'x', ..] => (16, &lower[2..]),
        [b'0', b'o', ..] => (8, &lower[2..]),
        [b'0', b'b', ..] => (2, &lower[2..]),
        [b'0', _, ..] => (8, &lower[1..]),
        _ => (10, lower.as_str()),
    };
    if rest.is_empty() || rest.starts_with(['+', '-']) {
        return None;
    }
    let size = u64::from_str_radix(rest, base).ok()?;
    match (negative, i64::try_from(size)) {
        (false, Ok(n)) => Some(Scalar::Int(n)),
        (false, Err(_)) => Some(Scalar::Uint(size)),
        (true, Ok(n)) => Some(Scalar::Int(-n)),
        (true, Err(_)) => (size == 1 << 63).then_some(Scalar::Int(i64::MIN)),
    }
}

/// go-yaml's own pattern: `[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`.
fn float(text: &str) -> Option<Scalar> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let whole = match mantissa.split_once('.') {
        Some(("", fraction)) => digits(fraction),
        Some((whole, fraction)) => digits(whole) && (fraction.is_empty() || digits(fraction)),
        None => digits(mantissa),
    };
    let scaled = exponent.is_none_or(|exponent| digits(exponent.strip_prefix(['-', '+']).unwrap_or(exponent)));
    // Go takes a number that is too large for a text.
    let number: f64 = text.parse().ok().filter(|_| whole && scaled)?;
    number.is_finite().then_some(Scalar::Float(number))
}

impl Scalar {
    fn tag(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "bool",
            Self::Int(_) | Self::Uint(_) => "int",
            Self::Float(_) => "float",
            Self::Str(_) => "str",
            Self::Merge => "merge",
        }
    }

    /// As a JSON value.
    pub(crate) fn value(self) -> Result<Value, Error> {
        Ok(match self {
            Self::Null => Value::Null,
            Self::Bool(value) => Value::Bool(value),
            Self::Int(n) => n.into(),
            Self::Uint(n) => n.into(),
            Self::Float(n) => json_float(n)?,
            Self::Str(text) => Value::String(text),
            Self::Merge => Value::String("<<".into()),
        })
    }

    /// As a JSON key.
    pub(crate) fn key(self) -> Result<String, Error> {
        match self {
            Self::Null => Err(Error::UnsupportedKey("%!s(<nil>), key: <nil>".into())),
            Self::Bool(value) => Ok(value.to_string()),
            Self::Int(n) => Ok(n.to_string()),
            Self::Uint(n) => Err(Error::UnsupportedKey(format!("uint64, key: {n:#x}"))),
            Self::Float(n) => Ok(short_float(n)),
            Self::Str(text) => Ok(text),
            Self::Merge => Ok("<<".into()),
        }
    }
}

/// Go's JSON writes a whole float without a point, so that it reads back as a whole number.
fn json_float(n: f64) -> Result<Value, Error> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if n.is_nan() {
        return Err(Error::UnsupportedNumber("NaN"));
    }
    if n.fract() == 0.0 && n.abs() <= EXACT && (n != 0.0 || n.is_sign_positive()) {
        #[expect(clippy::cast_possible_truncation, reason = "whole and within 53 bits")]
        return Ok((n as i64).into());
    }
    let sign = if n > 0.0 { "+Inf" } else { "-Inf" };
    Number::from_f64(n).map(Value::Number).ok_or(Error::UnsupportedNumber(sign))
}

/// Go's `FormatFloat(n, 'g', -1, 32)`, with YAML's words for what is no number.
fn short_float(n: f64) -> String {
    #[expect(clippy::cast_possible_truncation, reason = "Go formats keys as 32 bits")]
    let n = n as f32;
    if n.is_nan() {
        return ".nan".into();
    }
    if n.is_infinite() {
        return if n > 0.0 { ".inf" } else { "-.inf" }.into();
    }
    let text = format!("{n:e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if (-4..21).contains(&exponent) {
        return n.to_string();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}
