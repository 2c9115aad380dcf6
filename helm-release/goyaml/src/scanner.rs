//! Characters → tokens: indentation, flow brackets and where a key may start.
//!
//! The rules are those of libyaml, of which Go's package is a descendant. What a single token consists of is in
//! [`scalar`](crate::scalar) and [`property`](crate::property).

use std::collections::VecDeque;

use crate::error::Error;
use crate::reader::{END, Reader, is_blank, is_break, is_break_or_end, is_gap};
use crate::token::{Kind, Mark, Token};

/// A key without `?` has to see its `:` within this many characters.
const MAX_SIMPLE_KEY: usize = 1024;

/// How deep Go lets brackets and indentation nest. Ours ends earlier (see [`crate::MAX_DEPTH`]), but only once the tokens are used.
const MAX_LEVELS: usize = 10_000;

pub(crate) type Scan<T> = Result<T, Error>;

/// A place where a key without `?` may have started; known for sure once a `:` follows.
#[derive(Clone, Copy)]
struct SimpleKey {
    possible: bool,
    required: bool,
    /// Go forgets to wait for the `:` behind empty brackets.
    forgotten: bool,
    token: usize,
    mark: Mark,
}

pub(crate) struct Scanner<'a> {
    input: Reader<'a>,
    pub(crate) mark: Mark,
    started: bool,
    tokens: VecDeque<Token>,
    /// Tokens handed out so far; the number of the first one in the queue.
    taken: usize,
    /// The column of the current block, -1 outside of any.
    pub(crate) indent: isize,
    indents: Vec<isize>,
    pub(crate) key_allowed: bool,
    /// One per open flow bracket, and one for the block context.
    keys: Vec<SimpleKey>,
}

impl<'a> Scanner<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        let key = SimpleKey { possible: false, required: false, forgotten: false, token: 0, mark: Mark::default() };
        Self {
            input: Reader::new(bytes),
            mark: Mark::default(),
            started: false,
            tokens: VecDeque::new(),
            taken: 0,
            indent: -1,
            indents: Vec::new(),
            key_allowed: true,
            keys: vec![key],
        }
    }

    /// The next token. After the last one, that one again.
    pub(crate) fn peek(&mut self) -> Scan<&Token> {
        while self.needs_more()? {
            let fetched = self.fetch();
            if let Some(failure) = self.input.take_failure() {
                return Err(failure);
            }
            fetched?;
        }
        self.tokens.front().ok_or(Error::unreadable("did not find expected <stream-start>"))
    }

    /// Takes the token that [`peek`](Self::peek) showed.
    pub(crate) fn take(&mut self) -> Scan<Token> {
        self.peek()?;
        self.taken += 1;
        self.tokens.pop_front().ok_or(Error::unreadable("did not find expected <stream-start>"))
    }

    /// Whether the first token in the queue may still get a key token in front of it.
    fn needs_more(&mut self) -> Scan<bool> {
        if self.tokens.is_empty() {
            return Ok(true);
        }
        let first = self.keys.partition_point(|key| key.token < self.taken);
        let mut head = self.keys[first..].iter().take_while(|key| key.token == self.taken);
        match head.position(|key| key.possible && !key.forgotten) {
            Some(at) => self.is_live(first + at),
            None => Ok(false),
        }
    }

    fn fetch(&mut self) -> Scan<()> {
        if !self.started {
            self.started = true;
            self.push(Kind::StreamStart, self.mark);
            return Ok(());
        }
        self.skip_to_token();
        self.unroll_indent(self.mark.column as isize);
        let c = self.at(0);
        if c == END {
            return self.fetch_stream_end();
        }
        if self.mark.column == 0 && c == '%' {
            return self.fetch_directive();
        }
        if self.at_document_marker() {
            let kind = if c == '-' { Kind::DocumentStart } else { Kind::DocumentEnd };
            return self.fetch_document_marker(kind);
        }
        self.fetch_content(c)
    }

    fn fetch_content(&mut self, c: char) -> Scan<()> {
        let gap = is_gap(self.at(1));
        let flow = self.in_flow();
        match c {
            '[' => self.fetch_flow_start(Kind::FlowSequenceStart),
            '{' => self.fetch_flow_start(Kind::FlowMappingStart),
            ']' => self.fetch_flow_end(Kind::FlowSequenceEnd),
            '}' => self.fetch_flow_end(Kind::FlowMappingEnd),
            ',' => self.fetch_flow_entry(),
            '-' if gap => self.fetch_block_entry(),
            '?' if flow || gap => self.fetch_key(),
            ':' if flow || gap => self.fetch_value(),
            '*' | '&' => self.fetch_node(|scanner| scanner.scan_anchor(c == '*')),
            '!' => self.fetch_node(Self::scan_tag),
            '|' | '>' if !flow => self.fetch_block_scalar(c == '|'),
            '\'' | '"' => self.fetch_node(|scanner| scanner.scan_quoted(c)),
            '-' | '?' | ':' => self.fetch_node(Self::scan_plain),
            '#' | '|' | '>' | '%' | '@' | '`' => self.fail("found character that cannot start any token"),
            _ if is_gap(c) => self.fail("found character that cannot start any token"),
            _ => self.fetch_node(Self::scan_plain),
        }
    }

    fn fetch_stream_end(&mut self) -> Scan<()> {
        if self.mark.column != 0 {
            self.mark.column = 0;
            self.mark.line += 1;
        }
        self.unroll_indent(-1);
        self.drop_key()?;
        self.key_allowed = false;
        self.push(Kind::StreamEnd, self.mark);
        Ok(())
    }

    fn fetch_directive(&mut self) -> Scan<()> {
        self.unroll_indent(-1);
        self.drop_key()?;
        self.key_allowed = false;
        let mark = self.mark;
        let kind = self.scan_directive()?;
        self.push(kind, mark);
        Ok(())
    }

    fn fetch_document_marker(&mut self, kind: Kind) -> Scan<()> {
        self.unroll_indent(-1);
        self.drop_key()?;
        self.key_allowed = false;
        let mark = self.mark;
        (0..3).for_each(|_| self.skip());
        self.push(kind, mark);
        Ok(())
    }

    fn fetch_flow_start(&mut self, kind: Kind) -> Scan<()> {
        self.save_key()?;
        let token = self.taken + self.tokens.len();
        self.keys.push(SimpleKey { possible: false, required: false, forgotten: false, token, mark: self.mark });
        if self.keys.len() > MAX_LEVELS + 1 {
            return self.fail("exceeded max depth of 10000");
        }
        self.key_allowed = true;
        self.push_indicator(kind);
        Ok(())
    }

    fn fetch_flow_end(&mut self, kind: Kind) -> Scan<()> {
        self.drop_key()?;
        if let [.., outer, inner] = self.keys.as_mut_slice() {
            outer.forgotten |= outer.token == inner.token;
            self.keys.pop();
        }
        self.key_allowed = false;
        self.push_indicator(kind);
        Ok(())
    }

    fn fetch_flow_entry(&mut self) -> Scan<()> {
        self.drop_key()?;
        self.key_allowed = true;
        self.push_indicator(Kind::FlowEntry);
        Ok(())
    }

    fn fetch_block_entry(&mut self) -> Scan<()> {
        let problem = "block sequence entries are not allowed in this context";
        self.open_block(Kind::BlockSequenceStart, problem)?;
        self.drop_key()?;
        self.key_allowed = true;
        self.push_indicator(Kind::BlockEntry);
        Ok(())
    }

    fn fetch_key(&mut self) -> Scan<()> {
        self.open_block(Kind::BlockMappingStart, "mapping keys are not allowed in this context")?;
        self.drop_key()?;
        self.key_allowed = !self.in_flow();
        self.push_indicator(Kind::Key);
        Ok(())
    }

    fn fetch_value(&mut self) -> Scan<()> {
        let last = self.keys.len() - 1;
        if self.is_live(last)? {
            let key = self.keys[last];
            let at = key.token.checked_sub(self.taken);
            self.insert(at, Kind::Key, key.mark);
            self.roll_indent(key.mark, at, Kind::BlockMappingStart)?;
            self.keys[last].possible = false;
            self.key_allowed = false;
        } else {
            self.open_block(Kind::BlockMappingStart, "mapping values are not allowed in this context")?;
            self.key_allowed = !self.in_flow();
        }
        self.push_indicator(Kind::Value);
        Ok(())
    }

    /// A token that may be a key: anchors, tags and all scalars on one line.
    fn fetch_node(&mut self, scan: impl FnOnce(&mut Self) -> Scan<Kind>) -> Scan<()> {
        self.save_key()?;
        self.key_allowed = false;
        let mark = self.mark;
        let kind = scan(self)?;
        self.push(kind, mark);
        Ok(())
    }

    fn fetch_block_scalar(&mut self, literal: bool) -> Scan<()> {
        self.drop_key()?;
        self.key_allowed = true;
        let mark = self.mark;
        let kind = self.scan_block_scalar(literal)?;
        self.push(kind, mark);
        Ok(())
    }

    /// White space, comments and line breaks. A tab is white space unless a key could start there.
    fn skip_to_token(&mut self) {
        loop {
            if self.mark.index == 0 && self.at(0) == '\u{feff}' {
                self.skip();
            }
            while self.at(0) == ' ' || self.at(0) == '\t' && (self.in_flow() || !self.key_allowed) {
                self.skip();
            }
            self.skip_comment();
            if !is_break(self.at(0)) {
                return;
            }
            self.skip_line();
            if !self.in_flow() {
                self.key_allowed = true;
            }
        }
    }

    fn open_block(&mut self, kind: Kind, problem: &'static str) -> Scan<()> {
        if self.in_flow() {
            return Ok(());
        }
        if !self.key_allowed {
            return self.fail(problem);
        }
        self.roll_indent(self.mark, None, kind)
    }

    fn roll_indent(&mut self, mark: Mark, at: Option<usize>, kind: Kind) -> Scan<()> {
        let column = mark.column as isize;
        if self.in_flow() || self.indent >= column {
            return Ok(());
        }
        self.indents.push(self.indent);
        self.indent = column;
        if self.indents.len() > MAX_LEVELS {
            return self.fail("exceeded max depth of 10000");
        }
        self.insert(at, kind, mark);
        Ok(())
    }

    fn unroll_indent(&mut self, column: isize) {
        if self.in_flow() {
            return;
        }
        while self.indent > column {
            self.push(Kind::BlockEnd, self.mark);
            self.indent = self.indents.pop().unwrap_or(-1);
        }
    }

    fn save_key(&mut self) -> Scan<()> {
        if self.key_allowed {
            self.drop_key()?;
            let required = !self.in_flow() && self.indent == self.mark.column as isize;
            let token = self.taken + self.tokens.len();
            if let Some(key) = self.keys.last_mut() {
                *key = SimpleKey { possible: true, required, forgotten: false, token, mark: self.mark };
            }
        }
        Ok(())
    }

    fn drop_key(&mut self) -> Scan<()> {
        match self.keys.last_mut() {
            Some(key) if key.possible && key.required => self.fail("could not find expected ':'"),
            Some(key) => {
                key.possible = false;
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Whether the place may still turn out to be a key: same line, and not too far back.
    fn is_live(&mut self, at: usize) -> Scan<bool> {
        let key = self.keys[at];
        if !key.possible {
            return Ok(false);
        }
        if key.mark.line == self.mark.line && key.mark.index + MAX_SIMPLE_KEY >= self.mark.index {
            return Ok(true);
        }
        if key.required {
            return self.fail("could not find expected ':'");
        }
        self.keys[at].possible = false;
        Ok(false)
    }

    /// Puts a token at this place of the queue, or behind it.
    fn insert(&mut self, at: Option<usize>, kind: Kind, mark: Mark) {
        let end = self.tokens.len();
        self.tokens.insert(at.unwrap_or(end).min(end), Token { kind, mark });
    }

    fn push(&mut self, kind: Kind, mark: Mark) {
        self.tokens.push_back(Token { kind, mark });
    }

    fn push_indicator(&mut self, kind: Kind) {
        self.push(kind, self.mark);
        self.skip();
    }
}

/// What the scanners of single tokens are built from.
impl Scanner<'_> {
    pub(crate) fn in_flow(&self) -> bool {
        self.keys.len() > 1
    }

    pub(crate) fn at(&mut self, ahead: usize) -> char {
        self.input.peek(ahead)
    }

    /// `---` or `...` at the start of a line.
    pub(crate) fn at_document_marker(&mut self) -> bool {
        let c = self.at(0);
        let marker = self.mark.column == 0 && matches!(c, '-' | '.');
        marker && self.at(1) == c && self.at(2) == c && is_gap(self.at(3))
    }

    pub(crate) fn skip(&mut self) {
        self.input.advance();
        self.mark.index += 1;
        self.mark.column += 1;
    }

    pub(crate) fn read(&mut self, text: &mut String) {
        text.push(self.at(0));
        self.skip();
    }

    pub(crate) fn skip_blanks(&mut self) {
        while is_blank(self.at(0)) {
            self.skip();
        }
    }

    pub(crate) fn skip_comment(&mut self) {
        if self.at(0) == '#' {
            while !is_break_or_end(self.at(0)) {
                self.skip();
            }
        }
    }

    pub(crate) fn skip_line(&mut self) {
        self.read_line(&mut String::new());
    }

    /// Takes a line break, if there is one. All are read as a line feed except Unicode's own separators.
    pub(crate) fn read_line(&mut self, text: &mut String) {
        let c = self.at(0);
        if !is_break(c) {
            return;
        }
        if c == '\r' && self.at(1) == '\n' {
            self.skip();
        }
        text.push(if matches!(c, '\u{2028}' | '\u{2029}') { c } else { '\n' });
        self.skip();
        self.mark.column = 0;
        self.mark.line += 1;
    }

    pub(crate) fn fail<T>(&self, problem: &'static str) -> Scan<T> {
        let line = (self.mark.line != 0).then_some(self.mark.line + 1);
        Err(Error::Syntax { line, problem })
    }
}
