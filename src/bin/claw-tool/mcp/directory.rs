//! A directory of tools, in which those of one server are updated. Other files are never changed.

use crate::mcp::definition::Definition;
use anyhow::Context;
use clawutils::exit::{Exit, fail};
use clawutils::new_file::{NewFile, SHARED};
use clawutils::process::quoted;
use clawutils::record::digest;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The mode of an executable, before the umask.
const EXECUTABLE: u32 = 0o777;

/// The directory, and the server whose tools are written.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    /// The command of the server, for a shell.
    command: OsString,
    /// The beginning of each executable that calls this server.
    head: String,
}

impl Directory {
    /// Creates the directory if it does not exist.
    ///
    /// # Errors
    /// If it cannot be created, or the working directory is unknown.
    pub fn open(path: &Path, command: &[OsString]) -> anyhow::Result<Self> {
        fs::create_dir_all(path)
            .with_context(|| format!("cannot create the directory '{}'", path.display()))?;
        let mut words = command.to_vec();
        // A tool runs in the workspace.
        if let Some(program) = words.first_mut().filter(|it| it.as_bytes().contains(&b'/')) {
            *program = std::path::absolute(&*program)?.into_os_string();
        }
        let words: Vec<OsString> = words.iter().map(|word| quoted(word)).collect();
        let command = words.join(OsStr::new(" "));
        let server = digest(&command.to_string_lossy());
        let head = format!("#!/bin/sh\n# A tool of server {server}, written by claw-tool mcp.\n");
        Ok(Self { path: path.to_owned(), command, head })
    }

    /// Writes tools, and removes those that the server no longer offers.
    ///
    /// # Errors
    /// Status 2 if another file has the name of a tool; nothing is written then. 74 if a file cannot be written.
    pub fn write(&self, tools: &[Definition]) -> anyhow::Result<()> {
        for tool in tools {
            let path = self.path.join(&tool.name);
            let is_taken = path.symlink_metadata().is_ok() || self.json(&tool.name).exists();
            if is_taken && !self.owns(&path)? {
                let why = "a file that is not from this server has this name";
                return fail(
                    Exit::Usage,
                    format!("cannot write '{}': {why}; give --prefix", path.display()),
                );
            }
        }
        self.remove_others(tools)?;
        for tool in tools {
            let path = self.path.join(&tool.name);
            write(&path, EXECUTABLE, &self.script(&tool.original))?;
            write(&self.json(&tool.name), SHARED, tool.json().as_bytes())?;
        }
        Ok(())
    }

    fn json(&self, name: &str) -> PathBuf {
        self.path.join([name, ".json"].concat())
    }

    /// Returns the executable of a tool.
    fn script(&self, tool: &str) -> Vec<u8> {
        let name = quoted(OsStr::new(tool));
        let parts = [self.head.as_bytes(), b"exec claw-tool mcp --call=", name.as_bytes()];
        [&parts.concat(), &b" -- "[..], self.command.as_bytes(), b"\n"].concat()
    }

    /// Returns true if a file is an executable that calls this server.
    fn owns(&self, path: &Path) -> anyhow::Result<bool> {
        if !path.symlink_metadata().is_ok_and(|it| it.is_file()) {
            return Ok(false);
        }
        let mut begin = Vec::new();
        let read = File::open(path)
            .and_then(|file| file.take(self.head.len() as u64).read_to_end(&mut begin));
        read.with_context(|| format!("cannot read '{}'", path.display()))?;
        Ok(begin == self.head.as_bytes())
    }

    /// Removes the tools of this server that are not among `tools`.
    fn remove_others(&self, tools: &[Definition]) -> anyhow::Result<()> {
        let cannot = || format!("cannot read the directory '{}'", self.path.display());
        for entry in fs::read_dir(&self.path).with_context(cannot)? {
            let path = entry.with_context(cannot)?.path();
            let Some(name) = path.file_name().and_then(OsStr::to_str) else { continue };
            if tools.iter().any(|tool| tool.name == name) || !self.owns(&path)? {
                continue;
            }
            for path in [self.json(name), path.clone()] {
                match fs::remove_file(&path) {
                    Err(error) if error.kind() != ErrorKind::NotFound => {
                        let cannot = format!("cannot remove '{}'", path.display());
                        return Err(error).context(cannot);
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }
}

fn write(path: &Path, mode: u32, content: &[u8]) -> anyhow::Result<()> {
    let written = || -> io::Result<()> {
        let mut file = NewFile::create(path, mode)?;
        file.write_all(content)?;
        file.finish(true)
    };
    written().with_context(|| format!("cannot write '{}'", path.display()))
}
