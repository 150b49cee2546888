//! A file, or standard input, that is read line by line.

use anyhow::Context;
use clawutils::cli::{open_stdin, stdin_name};
use clawutils::exit::{Exit, fail};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

/// A file that is read line by line.
pub struct LineFile {
    name: String,
    input: BufReader<Box<dyn Read + Send>>,
    /// The byte that ends a line.
    end: u8,
}

impl LineFile {
    /// Opens a file, or standard input if the path is `-`. `end` is the byte that ends a line.
    ///
    /// # Errors
    /// Fails with 74 or 77 if it cannot be opened.
    pub fn open(path: &Path, end: u8) -> anyhow::Result<LineFile> {
        let (name, input): (String, Box<dyn Read + Send>) = if path.as_os_str() == "-" {
            // The lock of standard input stays with its thread, and a line may be read by any.
            drop(open_stdin()?);
            (stdin_name(), Box::new(std::io::stdin()))
        } else {
            let name = path.display().to_string();
            let file = File::open(path).with_context(|| format!("cannot read '{name}'"))?;
            (name, Box::new(file))
        };
        Ok(LineFile { name, input: BufReader::new(input), end })
    }

    /// Returns the next line with the byte that ends it, which is missing if the line was cut off or has more than `most`
    /// bytes; an empty line at the end of the file.
    ///
    /// # Errors
    /// Fails with 74 if the file cannot be read.
    pub fn next(&mut self, most: u64) -> anyhow::Result<Vec<u8>> {
        let mut line = Vec::new();
        let read = self.input.by_ref().take(most).read_until(self.end, &mut line);
        read.with_context(|| format!("cannot read '{}'", self.name))?;
        Ok(line)
    }

    /// Fails with 65 because of what is in the file.
    ///
    /// # Errors
    /// Always.
    pub fn refuse<T>(&self, why: &str) -> anyhow::Result<T> {
        fail(Exit::Data, format!("cannot read '{}': {why}", self.name))
    }
}
