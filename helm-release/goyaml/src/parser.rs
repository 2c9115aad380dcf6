//! Tokens → events: the grammar of documents, nodes and collections.

#![expect(clippy::wildcard_enum_match_arm, reason = "every token that is not expected is an error")]

use crate::error::Error;
use crate::scanner::{Scan, Scanner};
use crate::token::{Kind, Mark, Token};

#[derive(Debug)]
pub(crate) enum Event {
    StreamStart,
    StreamEnd,
    DocumentStart,
    DocumentEnd,
    Alias { name: String },
    Scalar(Scalar),
    SequenceStart { anchor: Option<String> },
    MappingStart { anchor: Option<String> },
    CollectionEnd,
}

#[derive(Debug)]
pub(crate) struct Scalar {
    pub(crate) anchor: Option<String>,
    pub(crate) tag: String,
    pub(crate) text: String,
    /// Plain and untagged (or tagged `!`): the text decides the type.
    pub(crate) implicit: bool,
}

/// What is expected next.
#[derive(Clone, Copy)]
enum State {
    StreamStart,
    DocumentStart { implicit: bool },
    DocumentContent,
    DocumentEnd,
    BlockNode,
    BlockSequenceEntry,
    IndentlessEntry,
    BlockMappingKey,
    BlockMappingValue,
    FlowSequenceEntry { first: bool },
    FlowPairKey,
    FlowPairValue,
    FlowPairEnd,
    FlowMappingKey { first: bool },
    FlowMappingValue,
    FlowMappingNoValue,
    End,
}

/// Where a node stands, which decides what it may be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Flow,
    Block,
    /// The value of a block mapping, where `-` needs no indentation.
    BlockValue,
}

#[derive(Default)]
struct Properties {
    anchor: Option<String>,
    tag: Option<(String, String, Mark)>,
}

pub(crate) struct Parser<'a> {
    tokens: Scanner<'a>,
    state: State,
    /// Where to go on after the current node.
    returns: Vec<State>,
    /// Handle and prefix.
    tags: Vec<(String, String)>,
}

impl<'a> Parser<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { tokens: Scanner::new(bytes), state: State::StreamStart, returns: Vec::new(), tags: Vec::new() }
    }

    /// Whether the end of the stream was passed.
    pub(crate) fn is_done(&self) -> bool {
        matches!(self.state, State::End)
    }

    pub(crate) fn next(&mut self) -> Scan<Event> {
        match self.state {
            State::StreamStart => self.stream_start(),
            State::DocumentStart { implicit } => self.document_start(implicit),
            State::DocumentContent => self.document_content(),
            State::DocumentEnd => self.document_end(),
            State::BlockNode => self.node(Place::Block),
            State::BlockSequenceEntry => self.block_sequence_entry(),
            State::IndentlessEntry => self.indentless_entry(),
            State::BlockMappingKey => self.block_mapping_key(),
            State::BlockMappingValue => self.block_mapping_value(),
            State::FlowSequenceEntry { first } => self.flow_sequence_entry(first),
            State::FlowPairKey => self.flow_pair_key(),
            State::FlowPairValue => self.flow_pair_value(),
            State::FlowPairEnd => {
                self.state = State::FlowSequenceEntry { first: false };
                Ok(Event::CollectionEnd)
            }
            State::FlowMappingKey { first } => self.flow_mapping_key(first),
            State::FlowMappingValue => self.flow_mapping_value(),
            State::FlowMappingNoValue => self.empty(State::FlowMappingKey { first: false }),
            State::End => Ok(Event::StreamEnd),
        }
    }

    fn stream_start(&mut self) -> Scan<Event> {
        self.tokens.take()?;
        self.state = State::DocumentStart { implicit: true };
        Ok(Event::StreamStart)
    }

    fn document_start(&mut self, implicit: bool) -> Scan<Event> {
        while !implicit && self.sees(|kind| *kind == Kind::DocumentEnd)? {
            self.tokens.take()?;
        }
        if self.sees(|kind| *kind == Kind::StreamEnd)? {
            self.state = State::End;
            return Ok(Event::StreamEnd);
        }
        let bare = implicit && !self.sees(starts_document)?;
        self.directives()?;
        self.returns.push(State::DocumentEnd);
        if bare {
            self.state = State::BlockNode;
            return Ok(Event::DocumentStart);
        }
        if !self.sees(|kind| *kind == Kind::DocumentStart)? {
            return self.fail("did not find expected <document start>");
        }
        self.tokens.take()?;
        self.state = State::DocumentContent;
        Ok(Event::DocumentStart)
    }

    fn directives(&mut self) -> Scan<()> {
        let mut versioned = false;
        while self.sees(|kind| matches!(kind, Kind::Version { .. } | Kind::TagDirective { .. }))? {
            let Token { kind, mark } = self.tokens.take()?;
            match kind {
                Kind::Version { .. } if versioned => return fail_at(mark, "found duplicate %YAML directive"),
                Kind::Version { major: 1, minor: 1 } => versioned = true,
                Kind::TagDirective { handle, .. } if self.prefix(&handle).is_some() => {
                    return fail_at(mark, "found duplicate %TAG directive");
                }
                Kind::TagDirective { handle, prefix } => self.tags.push((handle, prefix)),
                _ => return fail_at(mark, "found incompatible YAML document"),
            }
        }
        for (handle, prefix) in [("!", "!"), ("!!", "tag:yaml.org,2002:")] {
            if self.prefix(handle).is_none() {
                self.tags.push((handle.into(), prefix.into()));
            }
        }
        Ok(())
    }

    fn prefix(&self, handle: &str) -> Option<&str> {
        self.tags.iter().find(|(known, _)| known == handle).map(|(_, prefix)| prefix.as_str())
    }

    fn document_content(&mut self) -> Scan<Event> {
        if self.sees(|kind| starts_document(kind) || matches!(kind, Kind::DocumentEnd | Kind::StreamEnd))? {
            return self.empty_node();
        }
        self.node(Place::Block)
    }

    fn document_end(&mut self) -> Scan<Event> {
        if self.sees(|kind| *kind == Kind::DocumentEnd)? {
            self.tokens.take()?;
        }
        self.tags.clear();
        self.state = State::DocumentStart { implicit: false };
        Ok(Event::DocumentEnd)
    }

    fn node(&mut self, place: Place) -> Scan<Event> {
        if self.sees(|kind| matches!(kind, Kind::Alias(_)))? {
            return self.alias();
        }
        let Properties { anchor, tag } = self.properties()?;
        let tag = match tag {
            Some((handle, suffix, mark)) => self.resolve_tag(&handle, suffix, mark)?,
            None => String::new(),
        };
        let block = place != Place::Flow;
        match &self.tokens.peek()?.kind {
            Kind::Scalar { .. } => self.scalar(anchor, tag),
            Kind::BlockEntry if place == Place::BlockValue => Ok(self.sequence(anchor, State::IndentlessEntry)),
            Kind::FlowSequenceStart => {
                self.open(|parser| parser.sequence(anchor, State::FlowSequenceEntry { first: true }))
            }
            Kind::FlowMappingStart => self.open(|parser| parser.mapping(anchor, State::FlowMappingKey { first: true })),
            Kind::BlockSequenceStart if block => self.open(|parser| parser.sequence(anchor, State::BlockSequenceEntry)),
            Kind::BlockMappingStart if block => self.open(|parser| parser.mapping(anchor, State::BlockMappingKey)),
            _ if anchor.is_some() || !tag.is_empty() => {
                self.state = self.return_state();
                let implicit = tag.is_empty();
                Ok(Event::Scalar(Scalar { anchor, tag, text: String::new(), implicit }))
            }
            _ => self.fail("did not find expected node content"),
        }
    }

    fn alias(&mut self) -> Scan<Event> {
        self.state = self.return_state();
        match self.tokens.take()?.kind {
            Kind::Alias(name) => Ok(Event::Alias { name }),
            _ => self.fail("did not find expected node content"),
        }
    }

    /// An anchor and a tag, in either order, each at most once.
    fn properties(&mut self) -> Scan<Properties> {
        let mut properties = Properties::default();
        loop {
            let wanted = match &self.tokens.peek()?.kind {
                Kind::Anchor(_) => properties.anchor.is_none(),
                Kind::Tag { .. } => properties.tag.is_none(),
                _ => false,
            };
            if !wanted {
                return Ok(properties);
            }
            let Token { kind, mark } = self.tokens.take()?;
            match kind {
                Kind::Anchor(name) => properties.anchor = Some(name),
                Kind::Tag { handle, suffix } => properties.tag = Some((handle, suffix, mark)),
                _ => return Ok(properties),
            }
        }
    }

    fn resolve_tag(&self, handle: &str, suffix: String, mark: Mark) -> Scan<String> {
        if handle.is_empty() {
            return Ok(suffix);
        }
        match self.prefix(handle).map(|prefix| format!("{prefix}{suffix}")) {
            Some(tag) if !tag.is_empty() => Ok(tag),
            _ => fail_at(mark, "found undefined tag handle"),
        }
    }

    fn scalar(&mut self, anchor: Option<String>, tag: String) -> Scan<Event> {
        self.state = self.return_state();
        match self.tokens.take()?.kind {
            Kind::Scalar { text, plain } => {
                let implicit = tag.is_empty() && plain || tag == "!";
                Ok(Event::Scalar(Scalar { anchor, tag, text, implicit }))
            }
            _ => self.fail("did not find expected node content"),
        }
    }

    fn open(&mut self, event: impl FnOnce(&mut Self) -> Event) -> Scan<Event> {
        self.tokens.take()?;
        Ok(event(self))
    }

    fn sequence(&mut self, anchor: Option<String>, state: State) -> Event {
        self.state = state;
        Event::SequenceStart { anchor }
    }

    fn mapping(&mut self, anchor: Option<String>, state: State) -> Event {
        self.state = state;
        Event::MappingStart { anchor }
    }

    fn block_sequence_entry(&mut self) -> Scan<Event> {
        match self.tokens.peek()?.kind {
            Kind::BlockEntry => {
                self.tokens.take()?;
                let absent = self.sees(|kind| matches!(kind, Kind::BlockEntry | Kind::BlockEnd))?;
                self.node_or_empty(absent, Place::Block, State::BlockSequenceEntry)
            }
            Kind::BlockEnd => self.close(),
            _ => self.fail("did not find expected '-' indicator"),
        }
    }

    fn indentless_entry(&mut self) -> Scan<Event> {
        if !self.sees(|kind| *kind == Kind::BlockEntry)? {
            self.state = self.return_state();
            return Ok(Event::CollectionEnd);
        }
        self.tokens.take()?;
        let absent = self.sees(|kind| ends_block_node(kind) || *kind == Kind::BlockEntry)?;
        self.node_or_empty(absent, Place::Block, State::IndentlessEntry)
    }

    fn block_mapping_key(&mut self) -> Scan<Event> {
        match self.tokens.peek()?.kind {
            Kind::Key => {
                self.tokens.take()?;
                let absent = self.sees(ends_block_node)?;
                self.node_or_empty(absent, Place::BlockValue, State::BlockMappingValue)
            }
            Kind::BlockEnd => self.close(),
            _ => self.fail("did not find expected key"),
        }
    }

    fn block_mapping_value(&mut self) -> Scan<Event> {
        if !self.sees(|kind| *kind == Kind::Value)? {
            return self.empty(State::BlockMappingKey);
        }
        self.tokens.take()?;
        let absent = self.sees(ends_block_node)?;
        self.node_or_empty(absent, Place::BlockValue, State::BlockMappingKey)
    }

    fn flow_sequence_entry(&mut self, first: bool) -> Scan<Event> {
        if !first && !self.sees(|kind| *kind == Kind::FlowSequenceEnd)? {
            self.separator("did not find expected ',' or ']'")?;
        }
        match self.tokens.peek()?.kind {
            Kind::FlowSequenceEnd => self.close(),
            Kind::Key => self.open(|parser| parser.mapping(None, State::FlowPairKey)),
            _ => self.node_or_empty(false, Place::Flow, State::FlowSequenceEntry { first: false }),
        }
    }

    /// The key of `[key: value]`. Where there is none, Go drops the token that stands in its place.
    fn flow_pair_key(&mut self) -> Scan<Event> {
        if self.sees(|kind| matches!(kind, Kind::Value | Kind::FlowEntry | Kind::FlowSequenceEnd))? {
            self.tokens.take()?;
            return self.empty(State::FlowPairValue);
        }
        self.node_or_empty(false, Place::Flow, State::FlowPairValue)
    }

    fn flow_pair_value(&mut self) -> Scan<Event> {
        let mut absent = !self.sees(|kind| *kind == Kind::Value)?;
        if !absent {
            self.tokens.take()?;
            absent = self.sees(|kind| matches!(kind, Kind::FlowEntry | Kind::FlowSequenceEnd))?;
        }
        self.node_or_empty(absent, Place::Flow, State::FlowPairEnd)
    }

    fn flow_mapping_key(&mut self, first: bool) -> Scan<Event> {
        if !first && !self.sees(|kind| *kind == Kind::FlowMappingEnd)? {
            self.separator("did not find expected ',' or '}'")?;
        }
        match self.tokens.peek()?.kind {
            Kind::FlowMappingEnd => self.close(),
            Kind::Key => {
                self.tokens.take()?;
                let absent = self.sees(ends_flow_pair)?;
                self.node_or_empty(absent, Place::Flow, State::FlowMappingValue)
            }
            _ => self.node_or_empty(false, Place::Flow, State::FlowMappingNoValue),
        }
    }

    fn flow_mapping_value(&mut self) -> Scan<Event> {
        let mut absent = !self.sees(|kind| *kind == Kind::Value)?;
        if !absent {
            self.tokens.take()?;
            absent = self.sees(|kind| matches!(kind, Kind::FlowEntry | Kind::FlowMappingEnd))?;
        }
        self.node_or_empty(absent, Place::Flow, State::FlowMappingKey { first: false })
    }

    fn separator(&mut self, problem: &'static str) -> Scan<()> {
        if !self.sees(|kind| *kind == Kind::FlowEntry)? {
            return self.fail(problem);
        }
        self.tokens.take()?;
        Ok(())
    }

    fn node_or_empty(&mut self, empty: bool, place: Place, then: State) -> Scan<Event> {
        if empty {
            return self.empty(then);
        }
        self.returns.push(then);
        self.node(place)
    }

    fn empty(&mut self, then: State) -> Scan<Event> {
        self.state = then;
        Ok(Event::Scalar(Scalar { anchor: None, tag: String::new(), text: String::new(), implicit: true }))
    }

    fn empty_node(&mut self) -> Scan<Event> {
        let then = self.return_state();
        self.empty(then)
    }

    fn close(&mut self) -> Scan<Event> {
        self.tokens.take()?;
        self.state = self.return_state();
        Ok(Event::CollectionEnd)
    }

    fn return_state(&mut self) -> State {
        self.returns.pop().unwrap_or(State::End)
    }

    fn sees(&mut self, test: impl FnOnce(&Kind) -> bool) -> Scan<bool> {
        Ok(test(&self.tokens.peek()?.kind))
    }

    fn fail<T>(&mut self, problem: &'static str) -> Scan<T> {
        let mark = self.tokens.peek()?.mark;
        fail_at(mark, problem)
    }
}

/// Go counts the lines of this kind of error from zero and does not print zero.
fn fail_at<T>(mark: Mark, problem: &'static str) -> Scan<T> {
    Err(Error::Syntax { line: (mark.line != 0).then_some(mark.line), problem })
}

fn starts_document(kind: &Kind) -> bool {
    matches!(kind, Kind::Version { .. } | Kind::TagDirective { .. } | Kind::DocumentStart)
}

fn ends_block_node(kind: &Kind) -> bool {
    matches!(kind, Kind::Key | Kind::Value | Kind::BlockEnd)
}

fn ends_flow_pair(kind: &Kind) -> bool {
    matches!(kind, Kind::Value | Kind::FlowEntry | Kind::FlowMappingEnd)
}
