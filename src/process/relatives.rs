//! Parents and descendants of processes, from /proc. Without /proc, only the parent of this process
//! is found.

use rustix::process::{Pid, getppid};
use std::fs::{read_dir, read_to_string};

/// Adds all descendants of `members` to it, parents before their children.
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

/// Returns all processes with their parents.
fn parents() -> Vec<(Pid, Pid)> {
    let entries = read_dir("/proc").into_iter().flatten().flatten();
    let process = |entry: std::fs::DirEntry| {
        let process = Pid::from_raw(entry.file_name().to_str()?.parse().ok()?)?;
        Some((process, parent(process)?))
    };
    entries.filter_map(process).collect()
}

fn parent(process: Pid) -> Option<Pid> {
    let stat = read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name of the program may contain any character, including ')'. The state and the parent
    // come after it.
    Pid::from_raw(stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()?)
}
