//! Functions that differ between operating systems: [`linux`] implements them for Linux, and [`portable`] for every
//! other Unix. Tests on Linux run both.

#[cfg(any(target_os = "linux", test))]
mod linux;
#[cfg(any(not(target_os = "linux"), test))]
mod portable;

#[cfg(target_os = "linux")]
use linux as system;
#[cfg(not(target_os = "linux"))]
use portable as system;

pub(crate) use system::{
    holders, is_ignored, is_stopped, link_unnamed, open_below, parent, parents, sync_file_system,
    unnamed_file,
};

use std::os::fd::OwnedFd;

/// The directory with the sessions in a workspace.
pub(crate) const SESSIONS: &str = ".sessions";

/// A file that was opened below a directory.
#[derive(Debug)]
pub(crate) struct OpenedBelow {
    /// The file.
    pub(crate) file: OwnedFd,
    /// True if the file is a `.sessions` directory or is inside one, whatever path or links led there.
    pub(crate) is_among_sessions: bool,
}

#[cfg(test)]
mod tests;
