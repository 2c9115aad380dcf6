//! Bytes → characters: byte order marks, UTF-8, UTF-16, and what YAML allows as a character.

use crate::error::Error;

/// What a look beyond the last character yields. It cannot occur in a text: control characters are refused.
pub(crate) const END: char = '\0';

/// How many bytes Go looks at in one go. An unreadable character is reported once its window is touched, so a text that
/// is wrong earlier reports that first, and one whose first document ends earlier is not refused at all.
const WINDOW: usize = 512;

#[derive(Clone, Copy)]
enum Encoding {
    Utf8,
    Utf16Le,
    Utf16Be,
}

/// A character with the number of bytes it took, or why there is none.
type Decoded = Result<(char, usize), &'static str>;

pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    encoding: Encoding,
    /// The bytes before this one are decoded.
    decoded: usize,
    chars: Vec<char>,
    /// The characters before this one are consumed.
    next: usize,
    failure: Option<Error>,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        let (encoding, mark) = match bytes {
            [0xff, 0xfe, ..] => (Encoding::Utf16Le, 2),
            [0xfe, 0xff, ..] => (Encoding::Utf16Be, 2),
            [0xef, 0xbb, 0xbf, ..] => (Encoding::Utf8, 3),
            _ => (Encoding::Utf8, 0),
        };
        let mut reader = Self { bytes, encoding, decoded: mark, chars: Vec::new(), next: 0, failure: None };
        reader.decode_until(WINDOW);
        reader
    }

    /// The character `ahead` positions after the next one, [`END`] behind the last.
    pub(crate) fn peek(&mut self, ahead: usize) -> char {
        while self.next + ahead >= self.chars.len() && self.failure.is_none() && self.decoded < self.bytes.len() {
            self.decode_until(self.decoded + WINDOW);
        }
        self.chars.get(self.next + ahead).copied().unwrap_or(END)
    }

    pub(crate) fn advance(&mut self) {
        self.next = (self.next + 1).min(self.chars.len());
    }

    /// Why the characters read since the last call are not to be trusted, if so.
    pub(crate) fn take_failure(&mut self) -> Option<Error> {
        self.failure.take()
    }

    fn decode_until(&mut self, end: usize) {
        let end = end.min(self.bytes.len());
        self.chars.drain(..self.next);
        self.next = 0;
        while self.decoded < end {
            match self.decode() {
                Ok((c, _)) if !is_allowed(c) => {
                    return self.fail("control characters are not allowed");
                }
                Ok((_, width)) if self.decoded + width > end && end < self.bytes.len() => return,
                Ok((c, width)) => {
                    self.chars.push(c);
                    self.decoded += width;
                }
                Err(problem) => return self.fail(problem),
            }
        }
    }

    fn fail(&mut self, problem: &'static str) {
        self.failure = Some(Error::unreadable(problem));
        self.decoded = self.bytes.len();
    }

    fn decode(&self) -> Decoded {
        let rest = self.bytes.get(self.decoded..).unwrap_or_default();
        match self.encoding {
            Encoding::Utf8 => decode_utf8(rest),
            Encoding::Utf16Le => decode_utf16(rest, u16::from_le_bytes),
            Encoding::Utf16Be => decode_utf16(rest, u16::from_be_bytes),
        }
    }
}

fn decode_utf8(bytes: &[u8]) -> Decoded {
    let first = bytes.first().copied().unwrap_or_default();
    let width = utf8_width(first).ok_or("invalid leading UTF-8 octet")?;
    let sequence = bytes.get(..width).ok_or("incomplete UTF-8 octet sequence")?;
    let mut value = u32::from(first) & [0, 0x7f, 0x1f, 0x0f, 0x07][width];
    for octet in &sequence[1..] {
        if octet & 0xc0 != 0x80 {
            return Err("invalid trailing UTF-8 octet");
        }
        value = (value << 6) | u32::from(octet & 0x3f);
    }
    if width > 1 && value < [0, 0, 0x80, 0x800, 0x1_0000][width] {
        return Err("invalid length of a UTF-8 sequence");
    }
    let c = char::from_u32(value).ok_or("invalid Unicode character")?;
    Ok((c, width))
}

/// How many bytes the UTF-8 sequence has that starts with this one.
pub(crate) fn utf8_width(first: u8) -> Option<usize> {
    match first {
        0..=0x7f => Some(1),
        0xc0..=0xdf => Some(2),
        0xe0..=0xef => Some(3),
        0xf0..=0xf7 => Some(4),
        0x80..=0xbf | 0xf8..=0xff => None,
    }
}

fn decode_utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Decoded {
    let unit_at = |at: usize| Some(unit([*bytes.get(at)?, *bytes.get(at + 1)?]));
    let first = unit_at(0).ok_or("incomplete UTF-16 character")?;
    if let Some(c) = char::from_u32(u32::from(first)) {
        return Ok((c, 2));
    }
    if first & 0xfc00 == 0xdc00 {
        return Err("unexpected low surrogate area");
    }
    let second = unit_at(2).ok_or("incomplete UTF-16 surrogate pair")?;
    match char::decode_utf16([first, second]).next() {
        Some(Ok(c)) => Ok((c, 4)),
        Some(Err(_)) | None => Err("expected low surrogate area"),
    }
}

fn is_allowed(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='~' | '\u{85}' | '\u{a0}'..='\u{fffd}' | '\u{10000}'..)
}

pub(crate) fn is_break(c: char) -> bool {
    matches!(c, '\r' | '\n' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

pub(crate) fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t')
}

pub(crate) fn is_break_or_end(c: char) -> bool {
    is_break(c) || c == END
}

/// Whether a token cannot go on here: white space, a line break, or the end.
pub(crate) fn is_gap(c: char) -> bool {
    is_blank(c) || is_break_or_end(c)
}

/// What anchors, tag handles and directive names are made of.
pub(crate) fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}
