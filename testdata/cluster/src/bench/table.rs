//! The table: ours, Helm's, the ratio between them, and the bound that it has to keep.

use super::measure::Taken;

/// What a number counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// Seconds.
    Time,
    /// Bytes.
    Memory,
    /// Requests.
    Requests,
}

/// How ours has to stand to Helm's.
#[derive(Clone, Copy, Debug)]
pub(super) enum Bound {
    /// At most Helm's figure divided by this.
    Part(f64),
    /// At most this number, whatever Helm's is.
    AtMost(f64),
    /// Shown beside the others.
    None,
}

/// One row.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) what: String,
    pub(super) unit: Unit,
    pub(super) ours: Vec<f64>,
    pub(super) against: &'static str,
    pub(super) theirs: Vec<f64>,
    pub(super) bound: Bound,
}

/// The times of runs.
pub(super) fn seconds(runs: &[Taken]) -> Vec<f64> {
    runs.iter().map(|run| run.seconds).collect()
}

/// The peaks of runs.
pub(super) fn peaks(runs: &[Taken]) -> Vec<f64> {
    runs.iter().map(|run| run.peak).collect()
}

/// The rows as Markdown.
pub(super) fn markdown(rows: &[Row]) -> String {
    let head = "| what | gwrepair | against | Helm | Helm / gwrepair | bound | |\n| --- | --- | --- | --- | --- | --- | --- |\n";
    rows.iter().fold(head.to_owned(), |text, row| text + &row.line())
}

impl Row {
    /// Whether the bound is kept, by the medians; `None` where there is none.
    pub(super) fn is_met(&self) -> Option<bool> {
        let (ours, theirs) = (median(&self.ours), median(&self.theirs));
        match self.bound {
            Bound::Part(part) => Some(ours * part <= theirs),
            Bound::AtMost(most) => Some(ours <= most),
            Bound::None => None,
        }
    }

    fn line(&self) -> String {
        let bound = match self.bound {
            Bound::Part(part) => format!("≥ {part}"),
            Bound::AtMost(most) => format!("at most {most}"),
            Bound::None => "–".into(),
        };
        let met = self.is_met().map_or("", |met| if met { "met" } else { "**missed**" });
        let ratio = median(&self.theirs) / median(&self.ours);
        let (ours, theirs) = (self.unit.text(&self.ours), self.unit.text(&self.theirs));
        format!("| {} | {ours} | {} | {theirs} | {ratio:.2} | {bound} | {met} |\n", self.what, self.against)
    }
}

impl Unit {
    /// The median, and the least where it is another.
    fn text(self, figures: &[f64]) -> String {
        let (median, least) = (self.one(median(figures)), self.one(least(figures)));
        if median == least { median } else { format!("{median} (least {least})") }
    }

    fn one(self, figure: f64) -> String {
        match self {
            Self::Time if figure >= 1.0 => format!("{figure:.1} s"),
            Self::Time => format!("{:.1} ms", figure * 1e3),
            Self::Memory => format!("{:.1} MiB", figure / f64::from(1 << 20)),
            Self::Requests => format!("{figure}"),
        }
    }
}

fn median(figures: &[f64]) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    let half = sorted.len() / 2;
    match sorted.get(half) {
        Some(upper) if sorted.len().is_multiple_of(2) => f64::midpoint(sorted[half - 1], *upper),
        Some(middle) => *middle,
        None => f64::NAN,
    }
}

fn least(figures: &[f64]) -> f64 {
    figures.iter().copied().fold(f64::NAN, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(ours: &[f64], theirs: &[f64], bound: Bound) -> Row {
        let what = "scan".into();
        Row { what, unit: Unit::Time, ours: ours.into(), against: "Helm 4", theirs: theirs.into(), bound }
    }

    #[test]
    fn a_bound_is_kept_or_missed_by_the_medians() {
        let met = row(&[0.1, 0.9, 0.2], &[26.0, 20.0], Bound::Part(100.0));
        assert_eq!(
            met.line(),
            "| scan | 200.0 ms (least 100.0 ms) | Helm 4 | 23.0 s (least 20.0 s) | 115.00 | ≥ 100 | met |\n"
        );
        assert_eq!(row(&[0.3], &[26.0], Bound::Part(100.0)).is_met(), Some(false));
        assert_eq!(row(&[20.0], &[1.0], Bound::AtMost(20.0)).is_met(), Some(true));
        assert_eq!(row(&[20.0], &[1.0], Bound::None).is_met(), None);
    }

    #[test]
    fn a_row_that_was_never_measured_keeps_no_bound() {
        assert_eq!(row(&[], &[1.0], Bound::Part(1.0)).is_met(), Some(false));
    }
}
