//! Parents and descendants of processes. If the system does not list processes, only the parent of this process is
//! found.

use crate::system::{parent, parents};
use rustix::process::{Pid, getppid};

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

/// Returns true if a process is an ancestor of this one.
pub fn is_ancestor(process: Pid) -> bool {
    let above = std::iter::successors(getppid(), |process| parent(*process));
    above.into_iter().any(|above| above == process)
}
