//! Tools that run: each leads a process group of its own, and nothing in that group outlives its call.

use crate::exec::output::ToolOutput;
use crate::process::signals::{await_own_signal, is_interrupted};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use std::collections::HashSet;
use std::io::{self, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// How long output is waited for that a process holds open which left the group.
const GRACE: Duration = Duration::from_millis(300);

/// The process groups that run now.
#[derive(Debug, Default)]
pub struct Groups {
    state: Mutex<GroupsState>,
}

#[derive(Debug, Default)]
struct GroupsState {
    running: HashSet<Pid>,
    is_ending: bool,
}

impl Groups {
    fn state(&self) -> MutexGuard<'_, GroupsState> {
        lock(&self.state)
    }

    /// Starts a group; `None` once all are ended. No group is started that [`Groups::end_all`] does not see.
    fn start(&self, command: &mut Command) -> Option<io::Result<Child>> {
        let mut state = self.state();
        if state.is_ending {
            return None;
        }
        let child = command.process_group(0).spawn();
        state.running.extend(child.as_ref().ok().map(Pid::from_child));
        Some(child)
    }

    /// Kills what is left of a group. Its leader was not waited for yet, so the number is still its own.
    fn end(&self, leader: Pid) {
        let mut state = self.state();
        let _ = kill_process_group(leader, Signal::KILL);
        state.running.remove(&leader);
    }

    /// Kills all groups, and lets no other begin.
    pub fn end_all(&self) {
        let mut state = self.state();
        state.is_ending = true;
        for leader in &state.running {
            let _ = kill_process_group(*leader, Signal::KILL);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How a tool ended, and what it wrote.
#[derive(Debug)]
pub struct EndedTool {
    /// How its process ended.
    pub status: ExitStatus,
    /// It was killed since it took too long.
    pub is_late: bool,
    /// What it wrote to standard output.
    pub stdout: Arc<Mutex<ToolOutput>>,
    /// What it wrote to standard error.
    pub stderr: Arc<Mutex<ToolOutput>>,
}

impl EndedTool {
    /// What an output of it says.
    #[must_use]
    pub fn text(output: &Mutex<ToolOutput>) -> String {
        lock(output).text()
    }

    /// Whether it wrote more than is read.
    #[must_use]
    pub fn is_endless(&self) -> bool {
        lock(&self.stdout).is_endless()
    }
}

/// Runs `command` with `input` on its standard input. `None` when it was not started, or not left to end,
/// because all groups were ended.
///
/// # Errors
/// When it cannot be started or waited for.
pub fn run(
    groups: &Groups,
    mut command: Command,
    input: String,
    timeout: Duration,
    outputs: [ToolOutput; 2],
) -> io::Result<Option<EndedTool>> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let Some(child) = groups.start(&mut command) else { return Ok(None) };
    let mut child = child?;
    let leader = Pid::from_child(&child);
    let stdin = child.stdin.take();
    // A tool that does not read its input has its reasons; its status tells them.
    thread::spawn(move || stdin.map(|mut stdin| stdin.write_all(input.as_bytes())));
    let [stdout, stderr] = outputs.map(|output| Arc::new(Mutex::new(output)));
    let (from_out, from_err) = (child.stdout.take(), child.stderr.take());
    let waits = [drain(from_out, &stdout), drain(from_err, &stderr)];
    let end = watch(leader);
    let is_late = end.recv_timeout(timeout).is_err();
    groups.end(leader);
    let status = child.wait()?;
    for wait in waits {
        // What was written by then is there, too.
        let _ = wait.recv_timeout(GRACE);
    }
    if !is_late {
        await_own_signal(status);
    }
    let is_ours = is_interrupted(status) || status.signal() == Some(Signal::KILL.as_raw());
    let was_stopped = is_ours && groups.state().is_ending;
    Ok((!was_stopped).then_some(EndedTool { status, is_late, stdout, stderr }))
}

/// Waits in a thread until a process has ended, and leaves it to be waited for.
fn watch(process: Pid) -> Receiver<()> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let wait = || waitid(WaitId::Pid(process), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
        while wait().is_err_and(|error| error == rustix::io::Errno::INTR) {}
        // After the timeout nobody listens.
        let _ = sender.send(());
    });
    receiver
}

/// Reads a pipe to its end in a thread.
fn drain(pipe: Option<impl Read + Send + 'static>, into: &Arc<Mutex<ToolOutput>>) -> Receiver<()> {
    let (sender, receiver) = channel();
    let into = Arc::clone(into);
    thread::spawn(move || {
        let mut buffer = vec![0; 64 * 1024];
        if let Some(mut pipe) = pipe {
            loop {
                match pipe.read(&mut buffer) {
                    Ok(0) => break,
                    // What is not taken ends: the pipe is closed.
                    Ok(count) if !lock(&into).take(&buffer[..count]) => break,
                    Err(error) if error.kind() != io::ErrorKind::Interrupted => break,
                    _ => {}
                }
            }
        }
        let _ = sender.send(());
    });
    receiver
}
