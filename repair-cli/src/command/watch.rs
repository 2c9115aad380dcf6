//! `scan --watch`: what is stuck, then a line for each change.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use helm_release::action::{News, Scope, Sight};
use helm_release::release::{Namespace, ReleaseName};
use serde::Serialize;

use super::scan::{Found, GONE, Item, Scan, complete, options};
use crate::error::{Exit, Failure};
use crate::output::{Format, View, Width, follow, print};
use crate::session::{Session, line};

/// The state of a release that was stuck and is not.
const FREED: &str = "freed";

/// Wide enough for most names, so that later lines stand under the first ones.
const WIDTHS: [usize; 8] = [16, 20, 8, 16, 12, 6, 13, 20];

/// A change, to be shown as a line.
#[derive(Debug, Serialize)]
struct Event {
    event: &'static str,
    #[serde(flatten)]
    item: Item,
    #[serde(skip)]
    now: DateTime<Utc>,
}

/// What is shown so far.
struct Board<'a> {
    args: &'a Scan,
    session: &'a Session,
    known: BTreeMap<String, Item>,
}

/// Shows what is there, then what changes, until it is stopped or nobody reads on.
pub(super) async fn run(args: &Scan, session: &Session, scope: &Scope) -> Result<Exit, Failure> {
    let mut news = session.client.follow(scope.clone(), options(args));
    let mut board = Board { args, session, known: BTreeMap::new() };
    let mut first = true;
    loop {
        let reads_on = match news.next(&session.stop).await {
            Ok(News::Scan(scan)) => {
                let found = complete(args, session, scope, scan).await?;
                found.remarks(session);
                let reads_on = if first { board.begin(&found)? } else { board.again(found)? };
                first = false;
                reads_on
            }
            Ok(News::Release { namespace, name, sight }) => board.look(&namespace, &name, sight)?,
            Ok(News::Lost(error)) => {
                session.remark(&format!("note: {}; trying again", line(&error)));
                true
            }
            Err(error) if error.is_stopped() => return Ok(Exit::Interrupted),
            Err(error) => return Err(session.failure(&error)),
        };
        if !reads_on {
            return Ok(Exit::Done);
        }
    }
}

impl Board<'_> {
    /// The table, or a line for each release; whether somebody reads on.
    fn begin(&mut self, found: &Found) -> Result<bool, Failure> {
        match self.session.format {
            Format::Table | Format::Wide => {
                let items = found.items.iter().map(|item| (item.id(), item.clone()));
                self.known.extend(items);
                print(&found.table(self.session.format == Format::Wide).at_least(&WIDTHS).text())?;
                Ok(true)
            }
            Format::Json | Format::Yaml | Format::Name => {
                found.items.iter().try_fold(true, |reads_on, item| Ok(reads_on && self.show(item.clone())?))
            }
        }
    }

    /// All was looked at anew: what is not listed is not stuck.
    fn again(&mut self, found: Found) -> Result<bool, Failure> {
        let listed: Vec<String> = found.items.iter().map(Item::id).collect();
        // With --all every release is listed: one that is not is gone.
        let state = if self.args.all { GONE } else { FREED };
        let missing = self.known.values().filter(|item| !listed.contains(&item.id()));
        let freed: Vec<Item> = missing.map(|item| item.left(state)).collect();
        let mut changed = freed.into_iter().chain(found.items);
        changed.try_fold(true, |reads_on, item| Ok(reads_on && self.show(item)?))
    }

    fn look(&mut self, namespace: &Namespace, name: &ReleaseName, sight: Sight) -> Result<bool, Failure> {
        let id = format!("{namespace}/{name}");
        match sight {
            Sight::Stuck(item) => self.show(Item::stuck(*item)),
            Sight::Usable(entry) => self.show(Item::usable(namespace, name, &entry)),
            Sight::Absent => match self.known.get(&id).map(|item| item.left(GONE)) {
                Some(gone) => self.show(gone),
                None => Ok(true),
            },
            Sight::Failed(error) => {
                self.session.remark(&format!("not looked at: {id}: {}", line(&error)));
                Ok(true)
            }
        }
    }

    /// Shows what is new of a release; whether somebody reads on.
    fn show(&mut self, item: Item) -> Result<bool, Failure> {
        let before = self.known.get(&item.id());
        let Some(event) = event(before, &item, self.args.all) else { return Ok(true) };
        if item.is_gone() || !item.stuck && !self.args.all {
            self.known.remove(&item.id());
        } else {
            self.known.insert(item.id(), item.clone());
        }
        let mut item = item;
        if event == "freed" && !item.is_gone() {
            item.state = FREED;
        }
        follow(&Event { event, item, now: Utc::now() }, self.session.format)
    }
}

/// What to call a change; `None` where there is none to show.
fn event(before: Option<&Item>, after: &Item, all: bool) -> Option<&'static str> {
    match before {
        Some(before) if before == after => None,
        Some(before) if before.stuck && !after.stuck => Some("freed"),
        None if after.stuck => Some("stuck"),
        Some(before) if !before.stuck && after.stuck => Some("stuck"),
        None if all => Some("usable"),
        None => None,
        Some(_) => Some("changed"),
    }
}

impl View for Event {
    const KIND: &'static str = "ScanEvent";

    fn text(&self, width: Width) -> String {
        let table = Found::of(vec![self.item.clone()], self.now).table(width == Width::Wide);
        table.at_least(&WIDTHS).without_head().text()
    }

    fn names(&self) -> Vec<String> {
        vec![self.item.id()]
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn item(state: &'static str, stuck: bool) -> Item {
        Item::sample("web", state, stuck)
    }

    #[test]
    fn a_change_has_a_name_and_what_does_not_change_is_not_shown() {
        let (waiting, dead, fine) = (item("in-progress", true), item("interrupted", true), item("healthy", false));
        assert_eq!(event(None, &waiting, false), Some("stuck"));
        assert_eq!(event(Some(&waiting), &waiting, false), None);
        assert_eq!(event(Some(&waiting), &dead, false), Some("changed"));
        assert_eq!(event(Some(&dead), &fine, false), Some("freed"));
        assert_eq!(event(Some(&dead), &dead.left(GONE), false), Some("freed"));
        assert_eq!(event(None, &fine, false), None);
    }

    #[test]
    fn with_all_what_is_not_stuck_is_followed_too() {
        let (fine, failed) = (item("healthy", false), item("not-stuck", false));
        assert_eq!(event(None, &fine, true), Some("usable"));
        assert_eq!(event(Some(&fine), &failed, true), Some("changed"));
        assert_eq!(event(Some(&fine), &item("interrupted", true), true), Some("stuck"));
    }

    #[test]
    fn lines_that_come_one_by_one_line_up() {
        let head = Found::of(Vec::new(), Utc::now()).table(false).at_least(&WIDTHS).text();
        let line = Event { event: "stuck", item: item("interrupted", true), now: Utc::now() }.text(Width::Normal);
        let at = |text: &str, word: &str| anstream::adapter::strip_str(text).to_string().find(word);
        assert_eq!(at(&head, "STATE"), at(&line, "interrupted"), "{head}{line}");
        assert_eq!(at(&head, "NEXT"), at(&line, "rollback to 3"), "{head}{line}");
    }

    #[test]
    fn a_line_of_json_is_the_item_and_what_happened() {
        let event = Event { event: "freed", item: item("freed", false), now: Utc::now() };
        let value = serde_json::to_value(&event).unwrap();
        assert_eq!(
            (&value["event"], &value["state"], &value["name"]),
            (&json!("freed"), &json!("freed"), &json!("web"))
        );
    }
}
