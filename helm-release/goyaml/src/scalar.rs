//! Scalars: plain, quoted and block text, with YAML's folding of line breaks.

use crate::reader::{END, is_blank, is_break, is_break_or_end, is_gap};
use crate::scanner::{Scan, Scanner};
use crate::token::Kind;

/// White space between two words of a scalar. One line break is a space, more of them are themselves less one.
#[derive(Default)]
struct Gap {
    blanks: String,
    broken: bool,
    first_break: String,
    more_breaks: String,
}

impl Gap {
    fn flush(&mut self, text: &mut String) {
        if !self.broken {
            text.push_str(&self.blanks);
        } else if self.first_break.starts_with('\n') && self.more_breaks.is_empty() {
            text.push(' ');
        } else {
            if !self.first_break.starts_with('\n') {
                text.push_str(&self.first_break);
            }
            text.push_str(&self.more_breaks);
        }
        *self = Self::default();
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Chomp {
    Strip,
    Clip,
    Keep,
}

impl Scanner<'_> {
    pub(crate) fn scan_plain(&mut self) -> Scan<Kind> {
        let mut text = String::new();
        let mut gap = Gap::default();
        let indent = self.indent + 1;
        while !self.at_document_marker() && self.at(0) != '#' {
            if !self.at_plain_end() {
                gap.flush(&mut text);
            }
            while !self.at_plain_end() {
                self.read(&mut text);
            }
            if !is_blank(self.at(0)) && !is_break(self.at(0)) {
                break;
            }
            self.scan_gap(&mut gap, Some(indent))?;
            if !self.in_flow() && (self.mark.column as isize) < indent {
                break;
            }
        }
        if gap.broken {
            self.key_allowed = true;
        }
        Ok(Kind::Scalar { text, plain: true })
    }

    fn at_plain_end(&mut self) -> bool {
        let c = self.at(0);
        is_gap(c) || c == ':' && is_gap(self.at(1)) || self.in_flow() && matches!(c, ',' | '?' | '[' | ']' | '{' | '}')
    }

    pub(crate) fn scan_quoted(&mut self, quote: char) -> Scan<Kind> {
        self.skip();
        let mut text = String::new();
        let mut gap = Gap::default();
        loop {
            if self.at_document_marker() {
                return self.fail("found unexpected document indicator");
            }
            if self.at(0) == END {
                return self.fail("found unexpected end of stream");
            }
            gap.broken = self.scan_quoted_word(quote, &mut text)?;
            if self.at(0) == quote {
                self.skip();
                return Ok(Kind::Scalar { text, plain: false });
            }
            self.scan_gap(&mut gap, None)?;
            gap.flush(&mut text);
        }
    }

    /// Up to white space or the closing quote. True if it ended with an escaped line break, which swallows what follows.
    fn scan_quoted_word(&mut self, quote: char, text: &mut String) -> Scan<bool> {
        while !is_gap(self.at(0)) {
            let (c, next) = (self.at(0), self.at(1));
            if c == '\'' && quote == '\'' && next == '\'' {
                text.push('\'');
                self.skip();
                self.skip();
            } else if c == quote {
                break;
            } else if c == '\\' && quote == '"' && is_break(next) {
                self.skip();
                self.skip_line();
                return Ok(true);
            } else if c == '\\' && quote == '"' {
                self.scan_escape(next, text)?;
            } else {
                self.read(text);
            }
        }
        Ok(false)
    }

    fn scan_escape(&mut self, c: char, text: &mut String) -> Scan<()> {
        let digits = match c {
            'x' => 2,
            'u' => 4,
            'U' => 8,
            _ => 0,
        };
        if digits > 0 {
            self.skip();
            self.skip();
            return self.scan_code_point(digits, text);
        }
        let Some(meaning) = unescape(c) else {
            return self.fail("found unknown escape character");
        };
        text.push(meaning);
        self.skip();
        self.skip();
        Ok(())
    }

    fn scan_code_point(&mut self, digits: usize, text: &mut String) -> Scan<()> {
        let mut value = 0;
        for at in 0..digits {
            let Some(digit) = self.at(at).to_digit(16) else {
                return self.fail("did not find expected hexdecimal number");
            };
            value = (value << 4) | digit;
        }
        let Some(c) = char::from_u32(value) else {
            return self.fail("found invalid Unicode character escape code");
        };
        text.push(c);
        (0..digits).for_each(|_| self.skip());
        Ok(())
    }

    /// White space and line breaks inside a scalar. A plain one does not allow a tab left of its `indent`.
    fn scan_gap(&mut self, gap: &mut Gap, indent: Option<isize>) -> Scan<()> {
        loop {
            let c = self.at(0);
            if is_break(c) && gap.broken {
                self.read_line(&mut gap.more_breaks);
            } else if is_break(c) {
                gap.broken = true;
                gap.blanks.clear();
                self.read_line(&mut gap.first_break);
            } else if !is_blank(c) {
                return Ok(());
            } else if !gap.broken {
                self.read(&mut gap.blanks);
            } else if c == '\t' && indent.is_some_and(|indent| (self.mark.column as isize) < indent) {
                return self.fail("found a tab character that violates indentation");
            } else {
                self.skip();
            }
        }
    }

    pub(crate) fn scan_block_scalar(&mut self, literal: bool) -> Scan<Kind> {
        self.skip();
        let (chomp, increment) = self.scan_block_header()?;
        let mut indent = increment.map_or(0, |increment| self.indent.max(0) as usize + increment);
        let (mut text, mut line_break, mut breaks) = (String::new(), String::new(), String::new());
        self.scan_block_breaks(&mut indent, &mut breaks)?;
        let mut was_blank = false;
        while self.mark.column == indent && self.at(0) != END {
            let blank = is_blank(self.at(0));
            if literal || was_blank || blank || !line_break.starts_with('\n') {
                text.push_str(&line_break);
            } else if breaks.is_empty() {
                text.push(' ');
            }
            text.push_str(&breaks);
            line_break.clear();
            breaks.clear();
            was_blank = blank;
            while !is_break_or_end(self.at(0)) {
                self.read(&mut text);
            }
            self.read_line(&mut line_break);
            self.scan_block_breaks(&mut indent, &mut breaks)?;
        }
        if chomp != Chomp::Strip {
            text.push_str(&line_break);
        }
        if chomp == Chomp::Keep {
            text.push_str(&breaks);
        }
        Ok(Kind::Scalar { text, plain: false })
    }

    /// What may follow `|` or `>`: `+` or `-`, and a digit for the indentation, in either order.
    fn scan_block_header(&mut self) -> Scan<(Chomp, Option<usize>)> {
        let mut chomp = self.scan_chomp();
        let increment = self.scan_increment()?;
        if chomp.is_none() && increment.is_some() {
            chomp = self.scan_chomp();
        }
        self.skip_blanks();
        self.skip_comment();
        if !is_break_or_end(self.at(0)) {
            return self.fail("did not find expected comment or line break");
        }
        self.skip_line();
        Ok((chomp.unwrap_or(Chomp::Clip), increment))
    }

    fn scan_chomp(&mut self) -> Option<Chomp> {
        let chomp = match self.at(0) {
            '+' => Chomp::Keep,
            '-' => Chomp::Strip,
            _ => return None,
        };
        self.skip();
        Some(chomp)
    }

    fn scan_increment(&mut self) -> Scan<Option<usize>> {
        match self.at(0) {
            '0' => self.fail("found an indentation indicator equal to 0"),
            c @ '1'..='9' => {
                self.skip();
                Ok(Some(c as usize - '0' as usize))
            }
            _ => Ok(None),
        }
    }

    /// Indentation and empty lines; the first line with text tells an indentation that is not known (zero) yet.
    fn scan_block_breaks(&mut self, indent: &mut usize, breaks: &mut String) -> Scan<()> {
        let mut widest = 0;
        loop {
            while (*indent == 0 || self.mark.column < *indent) && self.at(0) == ' ' {
                self.skip();
            }
            widest = widest.max(self.mark.column);
            if (*indent == 0 || self.mark.column < *indent) && self.at(0) == '\t' {
                return self.fail("found a tab character where an indentation space is expected");
            }
            if !is_break(self.at(0)) {
                break;
            }
            self.read_line(breaks);
        }
        if *indent == 0 {
            *indent = widest.max((self.indent + 1).max(1) as usize);
        }
        Ok(())
    }
}

/// What a backslash and this character stand for. Unlike later YAML and JSON, Go knows no `\/`.
fn unescape(c: char) -> Option<char> {
    Some(match c {
        '0' => '\0',
        'a' => '\x07',
        'b' => '\x08',
        't' | '\t' => '\t',
        'n' => '\n',
        'v' => '\x0b',
        'f' => '\x0c',
        'r' => '\r',
        'e' => '\x1b',
        ' ' | '"' | '\'' | '\\' => c,
        'N' => '\u{85}',
        '_' => '\u{a0}',
        'L' => '\u{2028}',
        'P' => '\u{2029}',
        _ => return None,
    })
}
