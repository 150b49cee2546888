//! What a program waits for, on a terminal: one line on standard error, after a second of silence.
//!
//! The line is gone before anything else is written there, and at the end. It is for whoever sits in front of
//! the terminal: where standard error is none, where that cannot erase (`TERM`), where diagnostics are JSON and
//! in the background nothing is shown. A program shows what it waits for outside of itself: who reads the
//! output of another leaves the line to that one, and so does who runs another.
//!
//! A signal that ends the program takes the line off the terminal, too.
//!
//! There is one line in a process. A thread draws it, which is there while there is something to show, and
//! programs that end within a second write nothing.

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

/// How long nothing is shown, from the beginning and from anything else that is written.
const SILENCE: Duration = Duration::from_secs(1);
/// How often is looked whether there is something new to show.
const PAUSE: Duration = Duration::from_millis(200);
/// The columns of a terminal that does not tell.
const COLUMNS: usize = 80;
/// Erases from the cursor to the end of its line.
const ERASE: &str = "\x1b[K";

/// Gives what the line says at this moment, if anything.
type LineText = Box<dyn FnMut() -> Option<String> + Send>;

struct LineState {
    text: Option<LineText>,
    /// What the terminal shows now.
    shown: String,
    /// When something may be shown.
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

/// Something that a program waits for, until this is dropped.
#[derive(Debug)]
#[must_use = "what is dropped at once is never shown"]
pub struct Progress(());

impl Progress {
    /// Shows what `text` gives, as often as that changes, on behalf of program `name`. It takes the place of
    /// what was shown before.
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

/// Takes the line off the terminal, for something else that is about to be written; it comes back after a
/// second of silence.
pub fn clear() {
    state().clear();
}

/// Takes the line off the terminal for good.
pub fn stop() {
    let mut state = state();
    state.clear();
    state.text = None;
}

/// The same for a program that a signal ends: it waits for no terminal that is held up.
fn stop_at_once() {
    if let Ok(mut state) = STATE.try_lock() {
        state.clear();
        state.text = None;
    }
}

/// Runs `before`, with the signal's number, when a signal is about to end the program; then the line goes and
/// the program ends.
pub fn end_by_signals(before: fn(i32)) {
    signals::before_end(|_| stop_at_once());
    signals::before_end(before);
}

/// A text with the time that has passed since it was given: `waiting for x (3 s)`.
pub fn since(what: String) -> impl FnMut() -> Option<String> + Send + 'static {
    let begun = Instant::now();
    move || Some(format!("{what} ({} s)", begun.elapsed().as_secs()))
}

/// How far into its inputs a program is that writes what it makes of them on the way; before that, it looks for
/// where to begin. A terminal that shows what it writes needs nothing more.
pub fn reading(inputs: &[Input]) -> impl FnMut() -> Option<String> + Send + 'static {
    let (inputs, is_shown) = (inputs.to_vec(), io::stdout().is_terminal());
    let name = match &inputs[..] {
        [input] => input.name.to_string(),
        several => format!("{} files", several.len()),
    };
    let mut searching = since(format!("searching {name}"));
    move || match inputs.iter().map(Input::position).sum() {
        _ if is_shown => None,
        0 => searching(),
        now => Some(part(&name, now, total(&inputs))),
    }
}

/// How much of `all` bytes `now` is.
fn part(name: &str, now: u64, all: u64) -> String {
    let percent = u128::from(now) * 100 / u128::from(all.max(1));
    format!("{name} {percent} % ({} of {})", size(now), size(all))
}

/// A number of bytes as people say it.
fn size(bytes: u64) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB"];
    let scaled = units.iter().scan(bytes as f64, |size, unit| {
        *size /= 1024.0;
        Some((*size, unit))
    });
    let fits = scaled.take_while(|(size, unit)| *size >= 1.0 || **unit == "KiB").last();
    fits.map_or_else(String::new, |(size, unit)| format!("{size:.1} {unit}"))
}

/// Whether somebody looks on who can be shown a line that goes away again.
fn is_wanted() -> bool {
    let can_erase = || variable("TERM").is_some_and(|term| term != "dumb");
    !IS_OFF.load(Ordering::Relaxed) && io::stderr().is_terminal() && can_erase()
}

fn state() -> MutexGuard<'static, LineState> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Draws until there is nothing more to show.
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

    /// Puts a text in the place of what is shown.
    fn show(&mut self, text: String) {
        if text != self.shown {
            // Nobody is left to tell when standard error itself is gone.
            let _ = io::stderr().lock().write_all(format!("\r{text}{ERASE}").as_bytes());
            self.shown = text;
        }
    }
}

/// Whether the terminal is free for a line: neither the user has put another program before this one, nor reads
/// one keys from it, as a pager does that this one writes to.
fn is_free() -> bool {
    let terminal = io::stderr();
    let is_before = tcgetpgrp(&terminal).is_ok_and(|group| group == getpgrp());
    let reads_lines = |modes: Termios| modes.local_modes.contains(LocalModes::ICANON);
    is_before && tcgetattr(&terminal).is_ok_and(reads_lines)
}

fn columns() -> usize {
    let told = tcgetwinsize(io::stderr()).map_or(0, |size| usize::from(size.ws_col));
    if told == 0 { COLUMNS } else { told }
}

/// As much of a text as has room on a line with the cursor behind it.
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

/// Returns the text about an append that takes long: it waits for other writers, and then for the disk.
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
    fn sizes_are_as_people_say_them() {
        assert_eq!(part("f", 0, 0), "f 0 % (0.0 KiB of 0.0 KiB)");
        assert_eq!(part("f", 1 << 29, 3 << 30), "f 16 % (512.0 MiB of 3.0 GiB)");
    }
}
