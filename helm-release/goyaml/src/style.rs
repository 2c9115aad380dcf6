//! How a text may be written: go-yaml's analysis of its characters, and the choice that follows.

/// The way a text is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    Plain,
    Single,
    Double,
    Literal,
}

/// What a text allows.
#[derive(Debug, Default)]
pub(crate) struct Analysis {
    multiline: bool,
    plain: bool,
    single: bool,
    block: bool,
    empty: bool,
}

/// What stands where in a text.
#[derive(Default)]
struct Seen {
    indicator: bool,
    special: bool,
    breaks: bool,
    edge_blank: bool,
    trailing_space: bool,
    space_after_break: bool,
    break_after_space: bool,
}

impl Analysis {
    pub(crate) fn of(text: &str) -> Self {
        if text.is_empty() {
            return Self { plain: true, single: true, empty: true, ..Self::default() };
        }
        let seen = Seen::of(text);
        let writable = !seen.break_after_space && !seen.special;
        Self {
            multiline: seen.breaks,
            plain: writable && !seen.indicator && !seen.edge_blank && !seen.space_after_break && !seen.breaks,
            single: writable && !seen.space_after_break,
            block: writable && !seen.trailing_space,
            empty: false,
        }
    }
}

impl Seen {
    fn of(text: &str) -> Self {
        let mut seen = Self { indicator: text.starts_with("---") || text.starts_with("..."), ..Self::default() };
        let mut before = None;
        let mut rest = text.chars().peekable();
        while let Some(c) = rest.next() {
            let next = rest.peek().copied();
            let blank_next = next.is_none_or(|next| next == ' ' || next == '\t');
            seen.indicator |= is_indicator(c, before, blank_next);
            seen.special |= !is_printable(c);
            let edge = before.is_none() || next.is_none();
            if c == ' ' {
                seen.edge_blank |= edge;
                seen.trailing_space |= next.is_none();
                seen.space_after_break |= before.is_some_and(is_break);
            } else if is_break(c) {
                seen.breaks = true;
                seen.edge_blank |= edge;
                seen.break_after_space |= before == Some(' ');
            }
            before = Some(c);
        }
        seen
    }
}

/// Whether a character here would mean something to a reader of plain text.
fn is_indicator(c: char, before: Option<char>, blank_next: bool) -> bool {
    match (c, before) {
        ('#' | ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%' | '@' | '`', None) => true,
        ('?' | ':' | '-', None) | (':', Some(_)) => blank_next,
        ('#', Some(before)) => before == ' ' || before == '\t' || is_break(before),
        _ => false,
    }
}

impl Style {
    /// The wanted style, unless the text or its place as a key forbids it.
    pub(crate) fn choose(analysis: &Analysis, wanted: Self, key: bool) -> Self {
        match if key && analysis.multiline { Self::Double } else { wanted } {
            Self::Plain if analysis.plain && !(analysis.empty && key) => Self::Plain,
            Self::Plain | Self::Single if analysis.single => Self::Single,
            Self::Literal if analysis.block && !key => Self::Literal,
            Self::Plain | Self::Single | Self::Double | Self::Literal => Self::Double,
        }
    }
}

/// Line breaks of YAML 1.1.
pub(crate) fn is_break(c: char) -> bool {
    matches!(c, '\r' | '\n' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// What go-yaml v2 writes as it is: nothing beyond the basic plane.
pub(crate) fn is_printable(c: char) -> bool {
    matches!(c, '\n' | ' '..='~' | '\u{a0}'..='\u{fffd}') && c != '\u{feff}'
}
