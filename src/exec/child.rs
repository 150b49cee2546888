//! Runs tools as child processes. Each tool leads its own process group, which is killed when the call ends.

use crate::exec::output::ToolOutput;
use crate::process::signals::{await_own_signal, is_interrupted};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::Duration;

/// The longest wait for the end of the output after a tool has ended. A process that has left the group may keep the
/// pipe open.
const GRACE: Duration = Duration::from_millis(300);
/// The number of bytes that are read at once.
const PART: usize = 64 * 1024;
/// The most that a pipe can hold, in bytes, unless its user is privileged.
const MAX_PIPE: usize = 1024 * 1024;

/// The running process groups.
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

    /// Starts a group. Returns `None` after [`Groups::end_all`], which would not kill a group that starts later.
    fn start(&self, command: &mut Command) -> Option<io::Result<Child>> {
        let mut state = self.state();
        if state.is_ending {
            return None;
        }
        let child = command.process_group(0).spawn();
        state.running.extend(child.as_ref().ok().map(Pid::from_child));
        Some(child)
    }

    /// Kills the remaining processes of a group. The leader must not have been waited for yet, so that its process id
    /// cannot have been reused.
    fn end(&self, leader: Pid) {
        let mut state = self.state();
        let _ = kill_process_group(leader, Signal::KILL);
        state.running.remove(&leader);
    }

    /// Kills all groups and prevents new ones from starting.
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

/// A tool that has ended, with its output.
#[derive(Debug)]
pub struct EndedTool {
    /// The exit status of its process.
    pub status: ExitStatus,
    /// True if it exceeded the time limit and was killed.
    pub is_late: bool,
    /// Its standard output.
    pub stdout: Arc<Mutex<ToolOutput>>,
    /// Its standard error.
    pub stderr: Arc<Mutex<ToolOutput>>,
}

impl EndedTool {
    /// Returns an output as text.
    #[must_use]
    pub fn text(output: &Mutex<ToolOutput>) -> String {
        lock(output).text()
    }

    /// Returns true if it wrote more to standard output than the limit.
    #[must_use]
    pub fn is_endless(&self) -> bool {
        lock(&self.stdout).is_endless()
    }
}

/// Runs `command` with `input` on its standard input. Returns `None` if [`Groups::end_all`] kept it from starting or
/// killed it.
///
/// # Errors
/// Fails if the command cannot be started or waited for.
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
    // A tool need not read its input, so a write error is ignored; its exit status decides.
    thread::spawn(move || stdin.map(|mut stdin| stdin.write_all(input.as_bytes())));
    let [stdout, stderr] = outputs.map(|output| Arc::new(Mutex::new(output)));
    let (from_out, from_err) = (child.stdout.take(), child.stderr.take());
    let drains = [
        from_out.map(|pipe| Drain::begin(pipe.into(), &stdout)),
        from_err.map(|pipe| Drain::begin(pipe.into(), &stderr)),
    ];
    let end = watch(leader);
    let is_late = end.recv_timeout(timeout).is_err();
    groups.end(leader);
    let status = child.wait()?;
    drains.into_iter().flatten().for_each(Drain::finish);
    if !is_late {
        await_own_signal(status);
    }
    let is_ours = is_interrupted(status) || status.signal() == Some(Signal::KILL.as_raw());
    let was_stopped = is_ours && groups.state().is_ending;
    Ok((!was_stopped).then_some(EndedTool { status, is_late, stdout, stderr }))
}

/// Waits in a thread until a process has ended, without reaping it.
fn watch(process: Pid) -> Receiver<()> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let wait = || waitid(WaitId::Pid(process), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
        while wait().is_err_and(|error| error == rustix::io::Errno::INTR) {}
        // After a timeout, the receiver may be gone already.
        let _ = sender.send(());
    });
    receiver
}

/// A pipe that a thread reads to its end or up to the limit of `into`.
#[derive(Debug)]
struct Drain {
    /// The pipe, until the thread closes it. At the limit, that stops the tool.
    pipe: Weak<File>,
    into: Arc<Mutex<ToolOutput>>,
    end: Receiver<()>,
}

impl Drain {
    fn begin(pipe: OwnedFd, into: &Arc<Mutex<ToolOutput>>) -> Drain {
        let (sender, end) = channel();
        let pipe = Arc::new(File::from(pipe));
        let drain = Drain { pipe: Arc::downgrade(&pipe), into: Arc::clone(into), end };
        let into = Arc::clone(into);
        thread::spawn(move || {
            let mut buffer = vec![0; PART];
            while is_readable(&pipe, None) && take_part(&pipe, &into, &mut buffer) {}
            drop(pipe);
            let _ = sender.send(());
        });
        drain
    }

    /// Waits for the end of the output of a tool that has ended. After [`GRACE`], takes what the pipe has, because the
    /// thread may only be late: it waits for a disk, or for a processor.
    fn finish(self) {
        if self.end.recv_timeout(GRACE).is_err()
            && let Some(pipe) = self.pipe.upgrade()
        {
            let mut buffer = vec![0; PART];
            let mut parts = MAX_PIPE / PART;
            while parts > 0
                && is_readable(&pipe, Some(&NOW))
                && take_part(&pipe, &self.into, &mut buffer)
            {
                parts -= 1;
            }
        }
    }
}

/// The timeout of a call that does not wait.
const NOW: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// Returns true once a pipe has data or has ended; false if that takes longer than the timeout.
fn is_readable(pipe: &File, timeout: Option<&Timespec>) -> bool {
    loop {
        match poll(&mut [PollFd::new(pipe, PollFlags::IN)], timeout) {
            Err(rustix::io::Errno::INTR) => {}
            ready => return ready.is_ok_and(|count| count > 0),
        }
    }
}

/// Takes a part of the output, unless another thread has taken it. Returns false at the end and at the limit.
fn take_part(mut pipe: &File, into: &Mutex<ToolOutput>, buffer: &mut [u8]) -> bool {
    // The lock is held from the read on, so that parts are taken in order, and none is missing while it is not held.
    let mut into = lock(into);
    if !is_readable(pipe, Some(&NOW)) {
        return true;
    }
    match pipe.read(buffer) {
        Ok(0) => false,
        Ok(count) => into.take(&buffer[..count]),
        Err(error) => error.kind() == io::ErrorKind::Interrupted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_complete_even_if_its_reader_is_late() {
        let (reader, mut writer) = io::pipe().unwrap();
        writer.write_all(&[b'x'; 60_000]).unwrap();
        let into = Arc::new(Mutex::new(ToolOutput::new(100_000, None)));
        let pipe = Arc::new(File::from(OwnedFd::from(reader)));
        let (_sender, end) = channel();
        Drain { pipe: Arc::downgrade(&pipe), into: Arc::clone(&into), end }.finish();
        assert_eq!(EndedTool::text(&into).len(), 60_000);
    }
}
