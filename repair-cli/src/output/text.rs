//! Words on a page: wrapping, times, emphasis.

use anstyle::{AnsiColor, Style};
use chrono::{DateTime, TimeDelta, Timelike, Utc};

/// No line of prose is longer.
const COLUMNS: usize = 100;

/// What a piece of text is, and so how it is coloured. Without colour it reads the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Emphasis {
    None,
    Strong,
    Faint,
    Good,
    Warn,
    Bad,
}

impl Emphasis {
    pub(crate) fn paint(self, text: &str) -> String {
        let style = self.style();
        if text.is_empty() || style == Style::new() { text.into() } else { format!("{style}{text}{style:#}") }
    }

    /// By the word of a status, a state, an outcome or a readiness.
    pub(crate) fn of_status(word: &str) -> Self {
        match word {
            "deployed" | "healthy" | "freed" | "repaired" | "Current" | "yes" => Self::Good,
            "failed" | "unreadable" | "inconsistent" | "refused" | "no" => Self::Bad,
            "superseded" | "uninstalled" | "absent" | "nothing-to-do" => Self::Faint,
            "untidy" | "undecided" | "uninstalling" | "interrupted" | "interrupted-uninstall" | "in-progress" => {
                Self::Warn
            }
            "pending-install" | "pending-upgrade" | "pending-rollback" => Self::Warn,
            "waiting" | "changed" | "cancelled" | "Terminating" => Self::Warn,
            _ => Self::None,
        }
    }

    fn style(self) -> Style {
        let color = |color: AnsiColor| color.on_default();
        match self {
            Self::None => Style::new(),
            Self::Strong => Style::new().bold(),
            Self::Faint => Style::new().dimmed(),
            Self::Good => color(AnsiColor::Green),
            Self::Warn => color(AnsiColor::Yellow),
            Self::Bad => color(AnsiColor::Red).bold(),
        }
    }
}

/// A page of prose: headings, paragraphs, items; wrapped.
#[derive(Default)]
pub(crate) struct Page(String);

impl Page {
    /// A heading, after an empty line unless it is the first.
    pub(crate) fn heading(&mut self, text: &str) {
        self.gap();
        self.0.push_str(&Emphasis::Strong.paint(text));
        self.0.push('\n');
    }

    /// A wrapped paragraph that stands out.
    pub(crate) fn lead(&mut self, text: &str) {
        for line in wrap("", &plain(text)).lines() {
            self.0.push_str(&Emphasis::Strong.paint(line));
            self.0.push('\n');
        }
    }

    pub(crate) fn gap(&mut self) {
        if !self.0.is_empty() {
            self.0.push('\n');
        }
    }

    /// A wrapped paragraph whose first line begins with `lead`; the others are indented as far.
    pub(crate) fn item(&mut self, lead: &str, text: &str) {
        self.0.push_str(&wrap(lead, &plain(text)));
    }

    /// A line that is not wrapped: a command to be copied.
    pub(crate) fn verbatim(&mut self, text: &str) {
        self.0.push_str(text);
        self.0.push('\n');
    }

    pub(crate) fn push(&mut self, text: &str) {
        self.0.push_str(text);
    }

    pub(crate) fn into_text(self) -> String {
        self.0
    }
}

fn wrap(lead: &str, text: &str) -> String {
    let indent = lead.chars().count();
    let mut lines = vec![lead.to_owned()];
    let mut used = indent;
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let width = word.chars().count();
        if used > indent && used + 1 + width > COLUMNS {
            lines.push(" ".repeat(indent));
            used = indent;
        }
        if let Some(line) = lines.last_mut() {
            let space = if used > indent { " " } else { "" };
            line.push_str(space);
            line.push_str(word);
            used += space.len() + width;
        }
    }
    lines.iter().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// Text without control characters: what a record says cannot steer the terminal.
pub(crate) fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// A length of time as kubectl prints ages.
pub(crate) fn age(length: TimeDelta) -> String {
    let (seconds, minutes, hours) = (length.num_seconds(), length.num_minutes(), length.num_hours());
    let two = |large: i64, unit: char, small: i64, rest: char| match small {
        0 => format!("{large}{unit}"),
        _ => format!("{large}{unit}{small}{rest}"),
    };
    match hours {
        _ if seconds < -1 => "<invalid>".into(),
        _ if seconds < 120 => format!("{}s", seconds.max(0)),
        _ if minutes < 10 => two(minutes, 'm', seconds % 60, 's'),
        _ if minutes < 180 => format!("{minutes}m"),
        ..8 => two(hours, 'h', minutes % 60, 'm'),
        8..48 => format!("{hours}h"),
        48..192 => two(hours / 24, 'd', hours % 24, 'h'),
        192..17520 => format!("{}d", hours / 24),
        17520..70080 => two(hours / 24 / 365, 'y', hours / 24 % 365, 'd'),
        70080.. => format!("{}y", hours / 24 / 365),
    }
}

/// How long ago something was.
pub(crate) fn ago(then: DateTime<Utc>, now: DateTime<Utc>) -> String {
    age(now - then)
}

/// A moment, to the second.
pub(crate) fn stamp(time: DateTime<Utc>) -> String {
    time.format("%FT%TZ").to_string()
}

/// A moment as Go's `time.ANSIC` has it: Helm's `history` and `status`.
pub(crate) fn go_ansic(time: DateTime<Utc>) -> String {
    time.format("%a %b %e %T %Y").to_string()
}

/// A moment as Go's `Time.String` has it: Helm's `list`.
pub(crate) fn go_string(time: DateTime<Utc>) -> String {
    let digits = format!("{:09}", time.nanosecond());
    let digits = digits.trim_end_matches('0');
    let dot = if digits.is_empty() { "" } else { "." };
    format!("{}{dot}{digits} +0000 UTC", time.format("%F %T"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_those_of_kubectl() {
        let cases = [
            (-5, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (312, "5m12s"),
            (600, "10m"),
            (10799, "179m"),
            (10800, "3h"),
            (11100, "3h5m"),
            (28800, "8h"),
            (172799, "47h"),
            (172800, "2d"),
            (176400, "2d1h"),
            (691200, "8d"),
            (63072000, "2y"),
            (63158400, "2y1d"),
            (252288000, "8y"),
        ];
        for (seconds, expected) in cases {
            assert_eq!(age(TimeDelta::seconds(seconds)), expected, "{seconds}");
        }
    }

    #[test]
    fn times_are_those_of_go() {
        let at = |nanos| DateTime::from_timestamp(1_796_082_246, nanos).unwrap();
        assert_eq!(go_string(at(502_888_190)), "2026-11-30 23:44:06.50288819 +0000 UTC");
        assert_eq!(go_string(at(0)), "2026-11-30 23:44:06 +0000 UTC");
        assert_eq!(go_ansic(at(0)), "Mon Nov 30 23:44:06 2026");
        assert_eq!(stamp(at(0)), "2026-11-30T23:44:06Z");
    }

    #[test]
    fn prose_is_wrapped_under_its_own_beginning() {
        let text = wrap("  1. ", &"word ".repeat(30));
        let lines: Vec<_> = text.lines().collect();
        assert!(lines.iter().all(|line| line.chars().count() <= 100), "{text}");
        assert!(lines[0].starts_with("  1. word") && lines[1].starts_with("     word"), "{text}");
    }

    #[test]
    fn a_word_longer_than_a_line_stays_whole() {
        let long = "x".repeat(150);
        assert_eq!(wrap("- ", &format!("a {long}")), format!("- a\n  {long}\n"));
    }
}
