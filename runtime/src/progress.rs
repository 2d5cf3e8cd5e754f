//! Progress display of long work: a line on the terminal that vanishes when the work is done.
//!
//! [`set_up`] sets what is shown and where. Work then creates a [`Progress`] and updates it regularly: no thread is
//! needed, and nothing is drawn before a threshold of time. Concurrent work has one line each. If progress is requested
//! without a terminal, two lines of text are printed: one when the work exceeds the threshold, and one with its
//! duration at the end.

use std::{
    ops::Range,
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use crate::{error::Error, rows::Rows, settings::ProgressChoice};

/// Where a process shows progress.
#[derive(Clone, Copy, Debug)]
pub struct ProgressOutput {
    /// The requested mode.
    pub choice: ProgressChoice,
    /// Whether standard error is a terminal now. Called only when there is something to show.
    pub is_terminal: fn() -> bool,
    /// Writes a line of text, including its line feed, where there is no terminal.
    pub write: fn(&str),
}

static OUTPUT: OnceLock<ProgressOutput> = OnceLock::new();

/// The threshold of time before work is shown, in milliseconds.
static AFTER_MS: AtomicU64 = AtomicU64::new(2000);
/// The minimum size of copies that are shown, in bytes.
static FROM_BYTES: AtomicU64 = AtomicU64::new(1 << 30);

/// The piece size of a copy that is shown and whose executor copies in one piece.
const PIECE: usize = 256 << 20;

/// Sets where progress is shown. Only the first call has an effect.
pub fn set_up(output: ProgressOutput) {
    let _ = OUTPUT.set(output);
}

/// Sets the thresholds for long and large work: for tests.
pub fn set_limits(after_ms: u64, from_bytes: u64) {
    AFTER_MS.store(after_ms, Ordering::Relaxed);
    FROM_BYTES.store(from_bytes, Ordering::Relaxed);
}

/// Work that may be shown. Dropping this removes its display.
#[derive(Debug)]
pub struct Progress {
    output: ProgressOutput,
    what: String,
    end: End,
    start: Instant,
    after: Duration,
    shown: Display,
}

/// The amount of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Unknown,
    /// Bytes, of a copy.
    Bytes(u64),
    /// Blocks, of a launch.
    Blocks(u64),
}

/// The displayed state.
#[derive(Debug)]
enum Display {
    /// Nothing yet.
    NotYet,
    /// Never shown: there is no output to draw on.
    Never,
    /// A line on the terminal that is redrawn.
    Line(ProgressBar),
    /// A line of text. Another one follows at the end.
    Text,
}

/// The lines of all work that is shown on the terminal.
fn lines() -> &'static MultiProgress {
    static LINES: OnceLock<MultiProgress> = OnceLock::new();
    LINES.get_or_init(MultiProgress::new)
}

impl Progress {
    /// Work of unknown amount, such as `compiling saxpy(float32)`. `None` if progress is off.
    pub fn of_work(what: impl FnOnce() -> String) -> Option<Self> {
        let output = *OUTPUT.get()?;
        match output.choice {
            ProgressChoice::Never => None,
            ProgressChoice::Auto | ProgressChoice::Always => {
                Some(Self::new(output, what(), End::Unknown, Duration::from_millis(AFTER_MS.load(Ordering::Relaxed))))
            }
        }
    }

    /// A launch of `blocks` blocks, such as `sanitizing saxpy`. `None` if progress is off.
    pub fn of_blocks(what: impl FnOnce() -> String, blocks: u64) -> Option<Self> {
        let mut progress = Self::of_work(what)?;
        progress.end = End::Blocks(blocks);
        Some(progress)
    }

    /// A copy of `bytes` bytes, such as `copying from host to device`. `None` if the copy is small or progress is off.
    pub fn of_copy(what: &str, bytes: u64) -> Option<Self> {
        if bytes < FROM_BYTES.load(Ordering::Relaxed) {
            return None;
        }
        let output = *OUTPUT.get()?;
        match output.choice {
            ProgressChoice::Never | ProgressChoice::Auto => None,
            ProgressChoice::Always => Some(Self::new(output, what.to_owned(), End::Bytes(bytes), Duration::ZERO)),
        }
    }

    fn new(output: ProgressOutput, what: String, end: End, after: Duration) -> Self {
        Self { output, what, end, start: Instant::now(), after, shown: Display::NotYet }
    }

    /// Updates the display. Called often, with the current stage of the work.
    pub fn look(&mut self, detail: &str) {
        if matches!(self.shown, Display::NotYet) && self.start.elapsed() >= self.after {
            self.shown = self.appear(detail);
        }
        if let Display::Line(bar) = &self.shown {
            bar.set_message(self.message(detail));
            bar.tick();
        }
    }

    /// Updates the display with the number of bytes copied.
    pub fn done(&mut self, bytes: u64) {
        self.look("");
        if let Display::Line(bar) = &self.shown {
            bar.set_position(bytes);
        }
    }

    /// Updates the display with the number of finished blocks of a launch. Called often.
    pub fn done_blocks(&mut self, blocks: u64) {
        if self.start.elapsed() < self.after {
            return;
        }
        let detail = match self.end {
            End::Blocks(all) => format!("{blocks} of {all} blocks"),
            End::Unknown | End::Bytes(_) => format!("{blocks} blocks"),
        };
        self.look(&detail);
        if let Display::Line(bar) = &self.shown {
            bar.set_position(blocks);
        }
    }

    fn appear(&self, detail: &str) -> Display {
        if (self.output.is_terminal)() {
            let all = match self.end {
                End::Bytes(all) | End::Blocks(all) => all,
                End::Unknown => 0,
            };
            let bar = lines().add(ProgressBar::new(all));
            bar.set_style(style(self.end));
            return Display::Line(bar);
        }
        match self.output.choice {
            ProgressChoice::Auto | ProgressChoice::Never => Display::Never,
            ProgressChoice::Always => {
                (self.output.write)(&format!("weft: {}\n", self.message(detail)));
                Display::Text
            }
        }
    }

    /// The displayed text, such as `compiling saxpy(float32): LLVM's passes, 3 s`.
    fn message(&self, detail: &str) -> String {
        let Self { what, start, .. } = self;
        match self.end {
            End::Bytes(total) => format!("{what}, {:.1} GB", total as f64 / 1e9),
            End::Unknown | End::Blocks(_) => format!("{what}: {detail}, {} s", start.elapsed().as_secs()),
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        match &self.shown {
            Display::NotYet | Display::Never => {}
            Display::Line(bar) => {
                bar.finish_and_clear();
                lines().remove(bar);
            }
            Display::Text => {
                let seconds = self.start.elapsed().as_secs_f64();
                (self.output.write)(&format!("weft: {}: ended after {seconds:.1} s\n", self.what));
            }
        }
    }
}

fn style(end: End) -> ProgressStyle {
    let template = match end {
        End::Bytes(_) => "{spinner} weft: {msg} {bar:24} {percent:>3} % {bytes_per_sec}",
        End::Blocks(_) => "{spinner} weft: {msg} {bar:24} {percent:>3} %",
        // `wide_msg` truncates the text at the width of the terminal.
        End::Unknown => "{spinner} weft: {wide_msg}",
    };
    ProgressStyle::with_template(template).expect("the braces are in pairs and the keys are the library's")
}

/// Copies `bytes` bytes. If the copy is shown, it calls `copy` for each piece, a range of bytes. An executor that
/// copies in pieces of its own updates a [`Progress`] instead.
pub(crate) fn copy(
    what: &str,
    bytes: usize,
    mut copy: impl FnMut(Range<usize>) -> Result<(), Error>,
) -> Result<(), Error> {
    let Some(mut progress) = Progress::of_copy(what, bytes as u64) else { return copy(0..bytes) };
    let piece = PIECE.min(bytes.div_ceil(16)).max(1);
    progress.done(0);
    for start in (0..bytes).step_by(piece) {
        let end = start.saturating_add(piece).min(bytes);
        copy(start..end)?;
        progress.done(end as u64);
    }
    Ok(())
}

/// The same for rows: `copy` receives the index of the first row of each piece.
pub(crate) fn copy_rows(
    what: &str,
    rows: &Rows,
    mut copy: impl FnMut(u64, &Rows) -> Result<(), Error>,
) -> Result<(), Error> {
    let Some(mut progress) = Progress::of_copy(what, rows.width.saturating_mul(rows.count)) else {
        return copy(0, rows);
    };
    let at_once = (PIECE as u64 / rows.width.max(1)).min(rows.count.div_ceil(16)).max(1);
    progress.done(0);
    let mut first = 0;
    while first < rows.count {
        let count = at_once.min(rows.count - first);
        copy(first, &Rows { count, ..*rows })?;
        first += count;
        progress.done(rows.width * first);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    static WRITTEN: Mutex<Vec<String>> = Mutex::new(Vec::new());

    fn output(choice: ProgressChoice) -> ProgressOutput {
        let write = |line: &str| WRITTEN.lock().expect("no thread panics with it").push(line.to_owned());
        ProgressOutput { choice, is_terminal: || false, write }
    }

    #[test]
    fn without_a_terminal_only_those_are_told_who_want_it() {
        let mut short =
            Progress::new(output(ProgressChoice::Always), "short".to_owned(), End::Unknown, Duration::from_hours(1));
        short.look("a stage");
        let mut long = Progress::new(output(ProgressChoice::Auto), "long".to_owned(), End::Unknown, Duration::ZERO);
        long.look("a stage");
        drop((short, long));
        let mut message =
            Progress::new(output(ProgressChoice::Always), "shown".to_owned(), End::Unknown, Duration::ZERO);
        message.look("a stage");
        message.look("the next");
        drop(message);
        let written = WRITTEN.lock().expect("no thread panics with it");
        let [first, last] = written.as_slice() else { panic!("two lines: {written:?}") };
        assert_eq!(first, "weft: shown: a stage, 0 s\n");
        assert!(last.starts_with("weft: shown: ended after 0.") && last.ends_with(" s\n"), "{last}");
    }

    #[test]
    fn there_is_a_style_for_each_kind() {
        let _ = [End::Unknown, End::Bytes(1), End::Blocks(1)].map(style);
    }

    #[test]
    fn a_copy_that_nobody_wants_to_see_is_one_piece() {
        let mut pieces = Vec::new();
        let copied = copy("copying", 5 << 30, |piece| {
            pieces.push((piece.start, piece.end));
            Ok(())
        });
        assert_eq!((copied, pieces), (Ok(()), vec![(0, 5 << 30)]));
    }
}
