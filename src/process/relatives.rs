//! Parents and descendants of processes. If the system does not list processes, only the parent of this process is
//! found.

use crate::system::{is_stopped, parent, parents};
use rustix::process::{Pid, getppid};
use std::thread;
use std::time::Duration;

/// The longest wait for processes to stop, in steps of [`PAUSE`].
const PAUSES: usize = 500;
const PAUSE: Duration = Duration::from_millis(1);

/// Adds all descendants of the processes in `members` to the list, parents before their children.
pub fn add_descendants(members: &mut Vec<Pid>) {
    let mut others = parents();
    loop {
        let before = others.len();
        others.retain(|(process, parent)| {
            let is_descendant = members.contains(parent);
            if is_descendant && !members.contains(process) {
                members.push(*process);
            }
            !is_descendant
        });
        if others.len() == before {
            return;
        }
    }
}

/// Waits until all processes that were told to stop have done so. Until then, one that is starting another process goes
/// on. Gives up after half a second, because a process that waits for a disk does not stop.
pub fn await_stop(processes: &[Pid]) {
    for _ in 0..PAUSES {
        if processes.iter().all(|process| is_stopped(*process)) {
            return;
        }
        thread::sleep(PAUSE);
    }
}

/// Returns true if a process is an ancestor of this one.
pub fn is_ancestor(process: Pid) -> bool {
    let above = std::iter::successors(getppid(), |process| parent(*process));
    above.into_iter().any(|above| above == process)
}
