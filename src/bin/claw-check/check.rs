//! Checks the access modes of transcript files.

use anyhow::Context;
use clawutils::finding::{Finding, Place, rules};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

/// Returns a finding for each regular file among `files` whose mode gives access to users other than the owner.
///
/// # Errors
/// Fails with 74 or 77 if the mode of a file cannot be read.
pub fn check_modes(files: &[PathBuf]) -> anyhow::Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for path in files.iter().filter(|path| path.as_os_str() != "-") {
        let meta =
            std::fs::metadata(path).with_context(|| format!("cannot read '{}'", path.display()))?;
        let mode = meta.permissions().mode() & 0o777;
        if meta.is_file() && mode & 0o077 != 0 {
            let (input, length) = (path.display().to_string().into(), meta.len());
            findings.push(Finding {
                rule: &rules::OPEN_MODE,
                place: Place { input, line: None, offset: 0, length },
                id: None,
                message: format!("its mode is {mode:04o}; chmod 600 keeps it private"),
            });
        }
    }
    Ok(findings)
}
