//! Progress of repairs on stderr: one live line on a terminal, one line a step otherwise.

use std::io::{self, IsTerminal, Write, stderr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use helm_release::action::{Event, Events};
use helm_release::backup::Backup;

use crate::command::restore;
use crate::explain::short;
use crate::output::{plain, say};
use crate::saved::Keeper;

const FRAMES: [char; 4] = ['|', '/', '-', '\\'];
const FRAME: Duration = Duration::from_millis(120);

/// Where the progress of all repairs of one run is shown.
pub(crate) struct Board {
    mode: Mode,
    started: Instant,
    state: Mutex<State>,
}

/// How progress is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Not at all.
    Silent,
    /// One line a step.
    Lines,
    /// One line that is drawn again and again.
    Live,
}

#[derive(Default)]
struct State {
    running: Vec<Running>,
    done: usize,
    total: usize,
    frame: usize,
}

/// A repair that is under way.
struct Running {
    id: String,
    steps: usize,
    at: usize,
    step: String,
    detail: String,
}

/// The progress of one repair.
pub(crate) struct Track {
    board: Arc<Board>,
    id: String,
    keeper: Keeper,
}

/// Draws until it is dropped.
pub(crate) struct Drawing {
    board: Arc<Board>,
    task: Option<tokio::task::JoinHandle<()>>,
}

impl Mode {
    /// Live on a terminal that can move its cursor.
    pub(crate) fn choose(quiet: bool) -> Self {
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        match (quiet, stderr().is_terminal() && !dumb) {
            (true, _) => Self::Silent,
            (false, true) => Self::Live,
            (false, false) => Self::Lines,
        }
    }
}

impl Board {
    /// For `total` repairs.
    pub(crate) fn new(mode: Mode, total: usize) -> Arc<Self> {
        let state = State { total, ..State::default() };
        Arc::new(Self { mode, started: Instant::now(), state: Mutex::new(state) })
    }

    /// Begins one of `steps` steps.
    pub(crate) fn track(self: &Arc<Self>, id: String, steps: usize, keeper: Keeper) -> Track {
        let running = Running { id: id.clone(), steps, at: 0, step: "looking again".into(), detail: String::new() };
        self.lock().running.push(running);
        Track { board: self.clone(), id, keeper }
    }

    /// Draws the live line until the answer is dropped.
    pub(crate) fn draw(self: &Arc<Self>) -> Drawing {
        let board = self.clone();
        let task = (self.mode == Mode::Live).then(|| {
            tokio::spawn(async move {
                loop {
                    board.frame();
                    tokio::time::sleep(FRAME).await;
                }
            })
        });
        Drawing { board: self.clone(), task }
    }

    /// The line never wraps, so that it can be drawn over. That it cannot be drawn is nothing to tell anybody.
    fn frame(&self) {
        let line = {
            let mut state = self.lock();
            state.frame += 1;
            state.line(self.started.elapsed())
        };
        let _ = write!(stderr(), "\r\x1b[?7l{line}\x1b[K\x1b[?7h");
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn line(&self, elapsed: Duration) -> String {
        let frame = FRAMES.get(self.frame % FRAMES.len()).copied().unwrap_or('|');
        let seconds = elapsed.as_secs();
        let time = format!("{}:{:02}", seconds / 60, seconds % 60);
        let count = if self.total > 1 { format!("{}/{} done  ", self.done, self.total) } else { String::new() };
        let running = match self.running.as_slice() {
            [] => "looking".into(),
            [one] => one.line(),
            several => several.iter().map(Running::brief).collect::<Vec<_>>().join("  "),
        };
        format!("{frame} {time}  {count}{running}")
    }

    fn running(&mut self, id: &str) -> Option<&mut Running> {
        self.running.iter_mut().find(|running| running.id == id)
    }
}

impl Running {
    fn line(&self) -> String {
        let detail = if self.detail.is_empty() { String::new() } else { format!(" ({})", self.detail) };
        format!("{}  {}{detail}", self.brief(), self.step)
    }

    fn brief(&self) -> String {
        if self.at == 0 { self.id.clone() } else { format!("{} {}/{}", self.id, self.at, self.steps) }
    }

    fn begin(&mut self, step: String) {
        self.at += 1;
        self.step = step;
        self.detail.clear();
    }

    fn apply(&mut self, event: &Event<'_>) {
        match event {
            Event::StepStarted { step } => self.begin(short(step)),
            Event::Restoring { step } => self.begin(restore::short(step)),
            Event::StepEnded { .. } => self.detail.clear(),
            Event::Objects { done, total } => self.detail = format!("{done} of {total} objects"),
            Event::Ready { ready, total, waiting_for } => {
                let waiting = waiting_for.first().map(|object| format!(", waiting for {object}")).unwrap_or_default();
                self.detail = plain(&format!("{ready} of {total} ready{waiting}"));
            }
        }
    }
}

impl Events for Track {
    fn event(&self, event: &Event<'_>) {
        let mut state = self.board.lock();
        let Some(running) = state.running(&self.id) else { return };
        running.apply(event);
        if self.board.mode == Mode::Lines
            && let Event::StepStarted { .. } | Event::Restoring { .. } = event
        {
            say(&format!("{}: step {}/{}: {}\n", running.id, running.at, running.steps, running.step));
        }
    }

    fn keep(&self, backup: Backup) -> io::Result<Option<PathBuf>> {
        self.keeper.keep(backup)
    }
}

impl Drop for Track {
    fn drop(&mut self) {
        let mut state = self.board.lock();
        state.running.retain(|running| running.id != self.id);
        state.done += 1;
    }
}

impl Drop for Drawing {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
            // A frame that is being drawn holds the lock of stderr, so this comes after it.
            let _ = write!(stderr(), "\r\x1b[K");
        }
        self.board.lock().running.clear();
    }
}

#[cfg(test)]
mod tests {
    use helm_release::plan::Step;
    use helm_release::release::Revision;

    use super::*;

    #[test]
    fn the_live_line_says_which_step_and_what_it_waits_for() {
        let board = Board::new(Mode::Silent, 1);
        let track = board.track("shop/web".into(), 7, Keeper::default());
        track.event(&Event::StepStarted { step: &Step::AwaitReady { revision: Revision::FIRST } });
        track.event(&Event::Ready { ready: 2, total: 3, waiting_for: &["Deployment/web".into()] });
        let line = board.lock().line(Duration::from_secs(74));
        let expected = "| 1:14  shop/web 1/7  wait until the workloads of revision 1 are ready \
                        (2 of 3 ready, waiting for Deployment/web)";
        assert_eq!(line, expected);
    }

    #[test]
    fn several_repairs_share_the_line() {
        let board = Board::new(Mode::Silent, 3);
        drop(board.track("a/a".into(), 1, Keeper::default()));
        let _b = board.track("b/b".into(), 2, Keeper::default());
        let c = board.track("c/c".into(), 2, Keeper::default());
        c.event(&Event::StepStarted { step: &Step::DeleteRecord { revision: Revision::FIRST } });
        assert_eq!(board.lock().line(Duration::ZERO), "| 0:00  1/3 done  b/b  c/c 1/2");
    }
}
