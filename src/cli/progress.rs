//! Progress on a terminal: one line on standard error that shows what the program is waiting for.
//!
//! The line appears after a second without other output. It is erased before anything else is written to standard
//! error, when the program ends, and when a signal ends it. There is no line if standard error is not a terminal, if
//! the terminal cannot erase (`TERM`), if diagnostics are JSON, or if this program is in the background.
//!
//! Only the program that does the work shows progress: a program that reads the output of another, or has started
//! another, shows nothing while it waits.
//!
//! A process has one line. A thread draws it while there is something to show.

use crate::cli::variable;
use crate::input::{Input, total};
use crate::printable::printable;
use crate::process::signals;
use crate::transcript;
use rustix::process::getpgrp;
use rustix::termios::{LocalModes, Termios, tcgetattr, tcgetpgrp, tcgetwinsize};
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use unicode_width::UnicodeWidthChar;

/// The time before the line appears, after the start and after any other output.
const SILENCE: Duration = Duration::from_secs(1);
/// The time between two updates of the line.
const PAUSE: Duration = Duration::from_millis(200);
/// The columns of a terminal whose size is unknown.
const COLUMNS: usize = 80;
/// Erases from the cursor to the end of its line.
const ERASE: &str = "\x1b[K";

/// A function that returns the current text of the line, if there is one.
type LineText = Box<dyn FnMut() -> Option<String> + Send>;

struct LineState {
    text: Option<LineText>,
    /// The text on the terminal.
    shown: String,
    /// The time from which the line may be shown.
    from: Option<Instant>,
    has_thread: bool,
}

static STATE: Mutex<LineState> =
    Mutex::new(LineState { text: None, shown: String::new(), from: None, has_thread: false });

/// True once [`turn_off`] was called.
static IS_OFF: AtomicBool = AtomicBool::new(false);

/// Turns progress off, because a program reads the diagnostics.
pub fn turn_off() {
    IS_OFF.store(true, Ordering::Relaxed);
}

/// Shows progress until it is dropped.
#[derive(Debug)]
#[must_use = "progress ends when this is dropped"]
pub struct Progress(());

impl Progress {
    /// Shows the text that `text` returns, and updates it, for program `name`. It replaces any earlier progress.
    pub fn new(
        name: &'static str,
        mut text: impl FnMut() -> Option<String> + Send + 'static,
    ) -> Progress {
        if is_wanted() {
            let mut state = state();
            state.clear();
            state.text = Some(Box::new(move || text().map(|text| format!("{name}: {text}"))));
            state.has_thread = state.has_thread || thread::Builder::new().spawn(draw).is_ok();
        }
        Progress(())
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        stop();
    }
}

/// Erases the line before other output. It comes back after a second without output.
pub fn clear() {
    state().clear();
}

/// Erases the line and ends the progress.
pub fn stop() {
    let mut state = state();
    state.clear();
    state.text = None;
}

/// Ends the progress as [`stop`] does, when a signal ends the program. Does nothing if another thread holds the lock,
/// because that thread may be blocked on a stopped terminal.
fn stop_at_once() {
    if let Ok(mut state) = STATE.try_lock() {
        state.clear();
        state.text = None;
    }
}

/// Registers `before` to run, with the signal's number, when a signal is about to end the program. After it, the line
/// is erased and the program ends.
pub fn end_by_signals(before: fn(i32)) {
    signals::before_end(|_| stop_at_once());
    signals::before_end(before);
}

/// Returns a function that adds the time since this call to `what`, as in `waiting for x (3 s)`.
pub fn since(what: String) -> impl FnMut() -> Option<String> + Send + 'static {
    let begun = Instant::now();
    move || Some(format!("{what} ({} s)", begun.elapsed().as_secs()))
}

/// Returns a function that gives the progress text for a program that writes output while it reads `inputs`:
/// `searching` until it has read something, then how much it has read. There is no text if the output itself goes to a
/// terminal.
pub fn reading(inputs: &[Input]) -> impl FnMut() -> Option<String> + Send + 'static {
    let (inputs, is_output_shown) = (inputs.to_vec(), io::stdout().is_terminal());
    let name = match &inputs[..] {
        [input] => input.name.to_string(),
        several => format!("{} files", several.len()),
    };
    let mut searching = since(format!("searching {name}"));
    move || match inputs.iter().map(Input::position).sum() {
        _ if is_output_shown => None,
        0 => searching(),
        now => Some(part(&name, now, total(&inputs))),
    }
}

/// Describes `now` bytes as a part of `all` bytes.
fn part(name: &str, now: u64, all: u64) -> String {
    let percent = u128::from(now) * 100 / u128::from(all.max(1));
    format!("{name} {percent} % ({} of {})", size(now), size(all))
}

/// Formats a number of bytes with a unit.
fn size(bytes: u64) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB"];
    let scaled = units.iter().scan(bytes as f64, |size, unit| {
        *size /= 1024.0;
        Some((*size, unit))
    });
    let fits = scaled.take_while(|(size, unit)| *size >= 1.0 || **unit == "KiB").last();
    fits.map_or_else(String::new, |(size, unit)| format!("{size:.1} {unit}"))
}

/// Returns true if standard error is a terminal that can erase, and progress is not turned off.
fn is_wanted() -> bool {
    let can_erase = || variable("TERM").is_some_and(|term| term != "dumb");
    !IS_OFF.load(Ordering::Relaxed) && io::stderr().is_terminal() && can_erase()
}

fn state() -> MutexGuard<'static, LineState> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Draws the line until the progress ends.
fn draw() {
    loop {
        thread::sleep(PAUSE);
        let mut state = state();
        if state.text.is_none() {
            state.has_thread = false;
            break;
        }
        state.draw();
    }
}

impl LineState {
    fn clear(&mut self) {
        self.show(String::new());
        self.from = Some(Instant::now() + SILENCE);
    }

    fn draw(&mut self) {
        let text = self.text.as_mut().and_then(|text| text());
        if self.from.is_none_or(|from| Instant::now() >= from) && is_free() {
            signals::before_end(|_| stop_at_once());
            let text = text.map(|text| fitted(&printable(&text), columns()));
            self.show(text.unwrap_or_default());
        }
    }

    /// Replaces the text on the terminal.
    fn show(&mut self, text: String) {
        if text != self.shown {
            // An error in writing to standard error cannot be reported.
            let _ = io::stderr().lock().write_all(format!("\r{text}{ERASE}").as_bytes());
            self.shown = text;
        }
    }
}

/// Returns true if this program is in the foreground, and no program reads single keys from the terminal, as a pager
/// does.
fn is_free() -> bool {
    let terminal = io::stderr();
    let is_foreground = tcgetpgrp(&terminal).is_ok_and(|group| group == getpgrp());
    let reads_lines = |modes: Termios| modes.local_modes.contains(LocalModes::ICANON);
    is_foreground && tcgetattr(&terminal).is_ok_and(reads_lines)
}

fn columns() -> usize {
    let columns = tcgetwinsize(io::stderr()).map_or(0, |size| usize::from(size.ws_col));
    if columns == 0 { COLUMNS } else { columns }
}

/// Cuts `text` to the width of the terminal, less one column for the cursor.
fn fitted(text: &str, columns: usize) -> String {
    let mut room = columns.saturating_sub(1);
    for (at, c) in text.char_indices() {
        match room.checked_sub(c.width().unwrap_or(0)) {
            Some(left) => room = left,
            None => return text[..at].to_owned(),
        }
    }
    text.to_owned()
}

/// Returns a function that gives the progress text for an append, which may wait for other writers and then for the
/// disk.
pub fn appending(
    file: &Path,
    options: &transcript::AppendOptions,
) -> impl FnMut() -> Option<String> + Send + 'static {
    let (name, is_waiting) = (file.display(), options.is_waiting.clone());
    let mut locked = since(format!("waiting for the lock of '{name}'"));
    let mut writing = since(format!("writing to '{name}'"));
    move || if is_waiting.load(Ordering::Relaxed) { locked() } else { writing() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_never_wraps() {
        assert_eq!(fitted("abcdef", 80), "abcdef");
        assert_eq!(fitted("abcdef", 6), "abcde");
        assert_eq!(fitted("日本語", 6), "日本");
        assert_eq!(fitted("abc", 0), "");
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!(part("f", 0, 0), "f 0 % (0.0 KiB of 0.0 KiB)");
        assert_eq!(part("f", 1 << 29, 3 << 30), "f 16 % (512.0 MiB of 3.0 GiB)");
    }
}
