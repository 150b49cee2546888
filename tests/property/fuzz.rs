//! Runs the fuzz targets on their seeds. `make fuzz` also tries inputs that libFuzzer generates.

use std::fs;
use std::path::{Path, PathBuf};

use walkdir::{DirEntry, WalkDir};

use super::any::{self, Law};
use super::{agree, panic_of};

#[path = "../../fuzz/src/dialect.rs"]
mod dialect;
#[path = "../../fuzz/src/laws.rs"]
mod laws;
#[path = "../../fuzz/src/lines.rs"]
mod lines;
#[path = "../../fuzz/src/media.rs"]
mod media;
#[path = "../../fuzz/src/pair.rs"]
mod pair;
#[path = "../../fuzz/src/pi.rs"]
mod pi;
#[path = "../../fuzz/src/rebuild.rs"]
mod rebuild;
#[path = "../../fuzz/src/scan.rs"]
mod scan;
#[path = "../../fuzz/src/stream.rs"]
mod stream;
#[path = "../../fuzz/src/view.rs"]
mod view;

/// A fuzz target. It panics if its input breaks a law.
type Target = fn(&[u8]);

/// The targets that take arbitrary bytes, so that every transcript is a seed.
const OF_BYTES: [(&str, Target); 5] = [
    ("lines", lines::run),
    ("media", media::run),
    ("rebuild", rebuild::run),
    ("scan", scan::run),
    ("stream", stream::run),
];
/// The targets that make records from every two bytes.
const OF_PAIRS: [(&str, Target); 3] =
    [("dialect", dialect::run), ("pair", pair::run), ("pi", pi::run)];

/// Panics if a law is broken.
fn expect(law: Law) {
    if let Err(why) = law {
        panic!("{why}");
    }
}

/// Runs all targets on their seeds. Fails with a description if a law is broken, or if a target has no seeds.
pub fn seeds_break_no_law() -> Result<(), String> {
    let transcripts: Vec<_> = files("tests/data")
        .chain(files("fuzz/seeds"))
        .filter(|path| path.extension().is_some_and(|it| it == "jsonl"))
        .filter(|path| !path.starts_with(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/recall")))
        .collect();
    let seeds = |target| files(&format!("fuzz/seeds/{target}"));
    for (name, target) in OF_BYTES {
        run(name, target, transcripts.iter().cloned().chain(seeds(name)))?;
    }
    for (name, target) in OF_PAIRS {
        run(name, target, seeds(name))?;
    }
    Ok(())
}

/// Returns the files in a directory of the project.
fn files(directory: &str) -> impl Iterator<Item = PathBuf> + use<> {
    let entries = WalkDir::new(Path::new(env!("CARGO_MANIFEST_DIR")).join(directory));
    let entries = entries.into_iter().map(|entry| entry.expect("a directory that can be read"));
    entries.filter(|entry| entry.file_type().is_file()).map(DirEntry::into_path)
}

fn run(name: &str, target: Target, seeds: impl Iterator<Item = PathBuf>) -> Result<(), String> {
    let mut seeds = seeds.peekable();
    seeds.peek().ok_or_else(|| format!("target '{name}' has no seeds"))?;
    for path in seeds {
        let bytes = fs::read(&path).expect("a file that can be read");
        if let Some(why) = panic_of(|| target(&bytes)) {
            return Err(format!("target '{name}', seed '{}': {why}", path.display()));
        }
    }
    Ok(())
}
