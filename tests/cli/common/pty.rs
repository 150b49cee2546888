//! Runs a program on a pseudo-terminal, types keys and reads the screen.
//!
//! [`Pty::run`] starts a command in a new session whose controlling terminal is a new pseudo-terminal. The three
//! standard streams and `/dev/tty` are that terminal, and control characters such as `CTRL_C` send signals to the
//! foreground processes. A shell can redirect any of the streams:
//!
//! ```ignore
//! let mut pty = Pty::run(sandbox.sh("claw-call <messages >reply"), (80, 24));
//! pty.wait_for("waiting").press(CTRL_C);
//! pty.end().killed_by(2);
//! assert_eq!(pty.screen(), "^C");
//! ```
//!
//! [`Pty::output`] returns everything the terminal has received, and [`Pty::screen`] what it shows. Queries of the
//! cursor position are answered. A wait that times out panics with the output and the screen.

use super::{Arc, Cmd, GRACE, Path, TIMEOUT, TempDir, assert_that, by, in_thread, kill_group};
use assert_cmd::assert::Assert;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::Receiver;
use std::sync::{Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};
use vt100::{Callbacks, Parser, Screen};

/// The interrupt key: SIGINT for the foreground processes, unless the terminal is in raw mode.
pub const CTRL_C: &str = "\x03";
/// The end-of-file key, at the beginning of a line.
pub const CTRL_D: &str = "\x04";
/// The key that ends a line.
pub const ENTER: &str = "\r";

/// Returns true if a program can be run on a terminal here; otherwise prints that the test is skipped.
#[expect(clippy::print_stdout, reason = "the test reports that it was skipped")]
pub fn can_run() -> bool {
    let found = Command::new("setsid").arg("--version").stdout(Stdio::null()).status().is_ok();
    if !found {
        println!("skipped: no setsid(1)");
    }
    found
}

/// A program on a terminal. Dropping it kills the program with its process group.
pub struct Pty {
    controller: File,
    leader: u32,
    exit: Receiver<ExitStatus>,
    shown: Arc<(Mutex<TerminalState>, Condvar)>,
    /// The position in the output from which [`Pty::wait_for`] searches.
    from: usize,
    timeout: Duration,
    command: String,
    /// Keeps the directory until the program has ended.
    root: Arc<TempDir>,
    has_ended: bool,
}

/// The output of the program and the state of the terminal.
struct TerminalState {
    output: Vec<u8>,
    terminal: Parser<Answers>,
    is_over: bool,
}

impl Pty {
    /// Starts a command on a terminal with this many columns and rows. `TERM` is `xterm-256color` unless the test
    /// sets it. To type, use [`Pty::press`]; [`Cmd::write_stdin`] must not have set an input.
    #[track_caller]
    pub fn run(mut cmd: Cmd, (columns, rows): (u16, u16)) -> Pty {
        assert!(cmd.stdin.is_none(), "use Pty::press to type on a terminal");
        if cmd.command.get_envs().all(|(name, _)| name != "TERM") {
            cmd = cmd.env("TERM", "xterm-256color");
        }
        let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC);
        let controller = File::from(controller.expect("a new terminal"));
        grantpt(&controller).and_then(|()| unlockpt(&controller)).expect("an unlocked terminal");
        resize(&controller, columns, rows);
        let name = ptsname(&controller, Vec::new()).expect("a terminal with a name");
        let end = open(Path::new(name.to_str().expect("a name in UTF-8")));
        let end = || Stdio::from(end.try_clone().expect("a descriptor"));
        // Only a session leader without a terminal can get one, so setsid(1) starts the program.
        let own = cmd.command.get_envs().filter_map(|(name, value)| Some((name, value?)));
        let mut command = Command::new("setsid");
        command
            .arg("--ctty")
            .arg(cmd.command.get_program())
            .args(cmd.command.get_args())
            .env_clear()
            .envs(own)
            .current_dir(cmd.root.path())
            .stdin(end())
            .stdout(end())
            .stderr(end());
        let child = command.spawn();
        let line = format!("{command:?}");
        // The command holds the terminal open, which would hide the end of the program.
        drop(command);
        let mut child = child.unwrap_or_else(|e| panic!("start {line} on a terminal: {e}"));
        let side = |size| NonZeroU16::new(size).expect("a size");
        let terminal = Parser::new_with_callbacks(side(rows), side(columns), 0, Answers::default());
        let shown = TerminalState { output: Vec::new(), terminal, is_over: false };
        let shown = Arc::new((Mutex::new(shown), Condvar::new()));
        watch(controller.try_clone().expect("a descriptor"), Arc::clone(&shown));
        Pty {
            controller,
            leader: child.id(),
            exit: in_thread(move || child.wait().expect("the status of a child")),
            shown,
            from: 0,
            timeout: TIMEOUT.min(cmd.timeout),
            command: line,
            root: cmd.root,
            has_ended: false,
        }
    }

    /// Types these keys.
    #[track_caller]
    pub fn press(&mut self, keys: &str) -> &mut Pty {
        self.controller.write_all(keys.as_bytes()).expect("a terminal to type on");
        self
    }

    /// Waits until the terminal has received this text, from the program or as the echo of keys. The search begins
    /// after the text of the previous wait.
    #[track_caller]
    pub fn wait_for(&mut self, text: &str) -> &mut Pty {
        let from = self.from;
        let find = |shown: &TerminalState| {
            let found = memchr::memmem::find(&shown.output[from..], text.as_bytes());
            found.map(|at| from + at + text.len())
        };
        self.from = self.wait(&format!("{text:?}"), find);
        self
    }

    /// Waits until `holds` returns true for the screen.
    #[track_caller]
    pub fn wait_until(&mut self, what: &str, holds: impl Fn(&str) -> bool) -> &mut Pty {
        let look = |shown: &TerminalState| holds(&shown.screen()).then_some(());
        self.wait(&format!("a screen with {what}"), look);
        self
    }

    /// Changes the size of the terminal, which sends SIGWINCH to the program.
    pub fn resize(&mut self, columns: u16, rows: u16) -> &mut Pty {
        resize(&self.controller, columns, rows);
        let side = |size| NonZeroU16::new(size).expect("a size");
        self.lock().terminal.set_size(side(rows), side(columns));
        self
    }

    /// Returns everything the terminal has received so far, including echoed keys. Lines end with `\r\n`.
    pub fn output(&self) -> String {
        String::from_utf8_lossy(&self.lock().output).into_owned()
    }

    /// Returns the lines that the terminal shows, without blanks at their ends and without blank lines at the end.
    pub fn screen(&self) -> String {
        self.lock().screen()
    }

    /// Waits for the end of the program. The standard output in the result is everything that the terminal
    /// received.
    #[track_caller]
    pub fn end(&mut self) -> Assert {
        self.wait("the end", |shown| shown.is_over.then_some(()));
        let Some(exit) = by(Instant::now() + self.timeout, &self.exit) else {
            self.fail("still running, although it closed its terminal")
        };
        self.has_ended = true;
        let stdout = self.lock().output.clone();
        assert_that(Output { status: exit, stdout, stderr: Vec::new() }, self.command.clone())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, TerminalState> {
        self.shown.0.lock().expect("a screen")
    }

    #[track_caller]
    fn wait<T>(&self, what: &str, look: impl Fn(&TerminalState) -> Option<T>) -> T {
        let deadline = Instant::now() + self.timeout;
        let mut shown = self.lock();
        let why = loop {
            if let Some(found) = look(&shown) {
                return found;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if shown.is_over {
                break format!("it ended without {what}");
            }
            if left.is_zero() {
                break format!("waited {:?} for {what}", self.timeout);
            }
            shown = self.shown.1.wait_timeout(shown, left).expect("a screen").0;
        };
        drop(shown);
        self.fail(&why)
    }

    #[track_caller]
    fn fail(&self, why: &str) -> ! {
        let (command, output, screen) = (&self.command, self.output(), self.screen());
        panic!("{why}\ncommand: {command}\n--- output\n{output:?}\n--- screen\n{screen}\n---")
    }
}

impl Drop for Pty {
    fn drop(&mut self) {
        if !self.has_ended && self.exit.try_recv().is_err() {
            kill_group(self.leader);
            let _ = by(Instant::now() + GRACE, &self.exit);
        }
    }
}

impl TerminalState {
    fn screen(&self) -> String {
        let contents = self.terminal.screen().contents();
        let lines: Vec<&str> = contents.lines().map(str::trim_end).collect();
        lines.join("\n").trim_end().to_owned()
    }
}

/// The terminal's answers to queries of the cursor position.
#[derive(Default)]
struct Answers(Vec<u8>);

impl Callbacks for Answers {
    fn unhandled_csi(
        &mut self,
        screen: &mut Screen,
        _: Option<u8>,
        _: Option<u8>,
        params: &[&[u16]],
        last: char,
    ) {
        if (params, last) == (&[&[6]], 'n') {
            let (row, column) = screen.cursor_position();
            self.0.extend(format!("\x1b[{};{}R", row + 1, column + 1).into_bytes());
        }
    }
}

/// Collects the output of the program in a thread until no process has the terminal open.
fn watch(mut controller: File, shown: Arc<(Mutex<TerminalState>, Condvar)>) {
    thread::spawn(move || {
        let mut buffer = [0; 4096];
        loop {
            // Reading fails once no process has the terminal open.
            let count = controller.read(&mut buffer).unwrap_or(0);
            let mut shown_now = shown.0.lock().expect("a screen");
            shown_now.output.extend_from_slice(&buffer[..count]);
            shown_now.terminal.process(&buffer[..count]);
            let answers = std::mem::take(&mut shown_now.terminal.callbacks_mut().0);
            shown_now.is_over = count == 0;
            drop(shown_now);
            shown.1.notify_all();
            if count == 0 {
                break;
            }
            let _ = controller.write_all(&answers);
        }
    });
}

fn open(path: &Path) -> File {
    let flags = rustix::fs::OFlags::NOCTTY.bits().cast_signed();
    let opened = OpenOptions::new().read(true).write(true).custom_flags(flags).open(path);
    opened.expect("the other end of a terminal")
}

fn resize(controller: &File, columns: u16, rows: u16) {
    let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(controller, size).expect("a terminal of that size");
}

mod tests {
    use super::super::{AssertExt, Sandbox};
    use super::*;
    use predicates::str::contains;

    const SIZE: (u16, u16) = (40, 5);

    #[test]
    fn a_program_has_the_terminal_and_its_size() {
        let (sandbox, script) =
            (Sandbox::new(), "tty -s && echo $TERM; stty size; echo x >/dev/tty");
        if can_run() {
            let mut pty = Pty::run(sandbox.sh(script), SIZE);
            pty.end().success().stdout("xterm-256color\r\n5 40\r\nx\r\n");
        }
    }

    #[test]
    fn keys_reach_the_program_and_texts_are_waited_for_in_order() {
        let sandbox = Sandbox::new();
        if can_run() {
            let script = r#"while printf '> ' && read -r line; do echo "[$line]"; done; echo over"#;
            let mut pty = Pty::run(sandbox.sh(script), SIZE);
            pty.wait_for("> ").press("one\r").wait_for("[one]").wait_for("> ").press(CTRL_D);
            pty.end().success();
            assert_eq!(pty.screen(), "> one\n[one]\n> over");
        }
    }

    #[test]
    fn ctrl_c_ends_the_foreground_process() {
        let sandbox = Sandbox::new();
        if can_run() {
            let mut pty = Pty::run(sandbox.sh("echo ready; exec sleep 600"), SIZE);
            pty.wait_for("ready").press(CTRL_C);
            pty.end().killed_by(2);
        }
    }

    #[test]
    fn the_screen_shows_the_effect_of_control_sequences() {
        let sandbox = Sandbox::new();
        if can_run() {
            let script = r"printf 'waiting\r\033[K'; echo done; read -r line; stty size";
            let mut pty = Pty::run(sandbox.sh(script), SIZE);
            pty.wait_until("only the line 'done'", |screen| screen == "done");
            pty.resize(70, 9)
                .press(ENTER)
                .end()
                .success()
                .stdout(contains("waiting"))
                .stdout(contains("9 70"));
            assert_eq!(pty.screen(), "done\n\n9 70");
        }
    }

    #[test]
    fn a_query_of_the_cursor_position_is_answered() {
        let sandbox = Sandbox::new();
        if can_run() {
            let script =
                r"stty raw -echo; printf 'ab\033[6n'; dd bs=6 count=1 2>/dev/null | tail -c 4";
            let mut pty = Pty::run(sandbox.sh(script), SIZE);
            pty.end().success().stdout(contains("1;3R"));
        }
    }
}
