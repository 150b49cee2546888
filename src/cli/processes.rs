//! Other processes, as far as /proc tells of them; without it there seem to be none.

use rustix::process::{Pid, getppid};
use std::fs::{read_dir, read_to_string};

/// Adds the processes that these started, those that they started in turn, and so on. A parent stands before its
/// children.
pub(super) fn add_descendants(members: &mut Vec<Pid>) {
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

/// Returns whether a process started this one, or a process that did, and so on.
pub(super) fn is_above(process: Pid) -> bool {
    let above = std::iter::successors(getppid(), |process| parent(*process));
    above.into_iter().any(|above| above == process)
}

/// All processes with their parents.
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
    // The name may hold anything; behind it are the state and the parent.
    Pid::from_raw(stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()?)
}
