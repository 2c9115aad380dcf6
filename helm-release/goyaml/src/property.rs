//! Directives, anchors, aliases and tags.

use crate::reader::{is_blank, is_break_or_end, is_gap, is_word, utf8_width};
use crate::scanner::{Scan, Scanner};
use crate::token::Kind;

impl Scanner<'_> {
    pub(crate) fn scan_directive(&mut self) -> Scan<Kind> {
        self.skip();
        let name = self.scan_word();
        if name.is_empty() {
            return self.fail("could not find expected directive name");
        }
        if !is_gap(self.at(0)) {
            return self.fail("found unexpected non-alphabetical character");
        }
        let directive = match name.as_str() {
            "YAML" => self.scan_version()?,
            "TAG" => self.scan_tag_directive()?,
            _ => return self.fail("found unknown directive name"),
        };
        self.skip_blanks();
        self.skip_comment();
        if !is_break_or_end(self.at(0)) {
            return self.fail("did not find expected comment or line break");
        }
        self.skip_line();
        Ok(directive)
    }

    fn scan_version(&mut self) -> Scan<Kind> {
        self.skip_blanks();
        let major = self.scan_version_number()?;
        if self.at(0) != '.' {
            return self.fail("did not find expected digit or '.' character");
        }
        self.skip();
        let minor = self.scan_version_number()?;
        Ok(Kind::Version { major, minor })
    }

    fn scan_version_number(&mut self) -> Scan<u8> {
        let mut digits = String::new();
        while self.at(0).is_ascii_digit() {
            if digits.len() == 2 {
                return self.fail("found extremely long version number");
            }
            self.read(&mut digits);
        }
        match digits.parse() {
            Ok(number) => Ok(number),
            Err(_) => self.fail("did not find expected version number"),
        }
    }

    fn scan_tag_directive(&mut self) -> Scan<Kind> {
        self.skip_blanks();
        let handle = self.scan_tag_handle()?;
        if !handle.ends_with('!') {
            return self.fail("did not find expected '!'");
        }
        if !is_blank(self.at(0)) {
            return self.fail("did not find expected whitespace");
        }
        self.skip_blanks();
        let prefix = self.scan_tag_uri("")?;
        if !is_gap(self.at(0)) {
            return self.fail("did not find expected whitespace or line break");
        }
        Ok(Kind::TagDirective { handle, prefix })
    }

    pub(crate) fn scan_anchor(&mut self, alias: bool) -> Scan<Kind> {
        self.skip();
        let name = self.scan_word();
        let c = self.at(0);
        if name.is_empty() || !is_gap(c) && !matches!(c, '?' | ':' | ',' | ']' | '}' | '%' | '@' | '`') {
            return self.fail("did not find expected alphabetic or numeric character");
        }
        Ok(if alias { Kind::Alias(name) } else { Kind::Anchor(name) })
    }

    /// `!<uri>`, `!suffix`, `!!suffix` or `!handle!suffix`; a lone `!` is a tag without handle.
    pub(crate) fn scan_tag(&mut self) -> Scan<Kind> {
        let (handle, suffix) =
            if self.at(1) == '<' { (String::new(), self.scan_verbatim_tag()?) } else { self.scan_short_tag()? };
        if !is_gap(self.at(0)) {
            return self.fail("did not find expected whitespace or line break");
        }
        Ok(Kind::Tag { handle, suffix })
    }

    fn scan_verbatim_tag(&mut self) -> Scan<String> {
        self.skip();
        self.skip();
        let uri = self.scan_tag_uri("")?;
        if self.at(0) != '>' {
            return self.fail("did not find the expected '>'");
        }
        self.skip();
        Ok(uri)
    }

    fn scan_short_tag(&mut self) -> Scan<(String, String)> {
        let handle = self.scan_tag_handle()?;
        if handle.len() > 1 && handle.ends_with('!') {
            let suffix = self.scan_tag_uri("")?;
            return Ok((handle, suffix));
        }
        let suffix = self.scan_tag_uri(&handle)?;
        Ok(if suffix.is_empty() { (suffix, "!".into()) } else { ("!".into(), suffix) })
    }

    fn scan_tag_handle(&mut self) -> Scan<String> {
        if self.at(0) != '!' {
            return self.fail("did not find expected '!'");
        }
        let mut handle = String::new();
        self.read(&mut handle);
        handle.push_str(&self.scan_word());
        if self.at(0) == '!' {
            self.read(&mut handle);
        }
        Ok(handle)
    }

    /// The rest of a tag. `head` is what was taken for a handle but belongs to it, its `!` aside.
    fn scan_tag_uri(&mut self, head: &str) -> Scan<String> {
        let mut uri = head.get(1..).unwrap_or_default().as_bytes().to_vec();
        let mut found = !head.is_empty();
        while is_word(self.at(0)) || ";/?:@&=+$,.!~*'()[]%".contains(self.at(0)) {
            if self.at(0) == '%' {
                self.scan_uri_escape(&mut uri)?;
            } else {
                uri.push(self.at(0) as u8);
                self.skip();
            }
            found = true;
        }
        if !found {
            return self.fail("did not find expected tag URI");
        }
        Ok(String::from_utf8_lossy(&uri).into_owned())
    }

    /// One character as `%`-escaped octets.
    fn scan_uri_escape(&mut self, uri: &mut Vec<u8>) -> Scan<()> {
        let first = self.scan_octet()?;
        let Some(width) = utf8_width(first) else {
            return self.fail("found an incorrect leading UTF-8 octet");
        };
        uri.push(first);
        for _ in 1..width {
            let octet = self.scan_octet()?;
            if octet & 0xc0 != 0x80 {
                return self.fail("found an incorrect trailing UTF-8 octet");
            }
            uri.push(octet);
        }
        Ok(())
    }

    fn scan_octet(&mut self) -> Scan<u8> {
        let digits = (self.at(1).to_digit(16), self.at(2).to_digit(16));
        let ('%', (Some(high), Some(low))) = (self.at(0), digits) else {
            return self.fail("did not find URI escaped octet");
        };
        (0..3).for_each(|_| self.skip());
        Ok((high << 4 | low) as u8)
    }

    fn scan_word(&mut self) -> String {
        let mut word = String::new();
        while is_word(self.at(0)) {
            self.read(&mut word);
        }
        word
    }
}
