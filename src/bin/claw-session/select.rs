//! Selects sessions by name, by label, and with a query of the index.

use crate::place::SessionPlace;
use clawutils::exit::{Error, Exit, fail};
use clawutils::json::{self, Object};
use clawutils::process::{self, ChildLimits};
use glob::Pattern;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// The options that select sessions.
#[derive(Clone, Debug, clap::Args)]
pub struct Selection {
    /// Ids, keys or labels of sessions, or the beginning of one; or paths of transcripts
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Select the sessions whose label matches PATTERN, in which * stands for any text
    #[arg(long, value_name = "PATTERN")]
    label: Option<String>,
    /// Select the sessions whose paths are in the first column of this query of the index
    #[arg(long, value_name = "SQL")]
    query: Option<String>,
}

impl Selection {
    /// Returns the name of the only session.
    ///
    /// # Errors
    /// Fails with 2 if the selection is not a single name.
    pub fn only(&self) -> anyhow::Result<&str> {
        match (self.names.as_slice(), &self.label, &self.query) {
            ([name], None, None) => Ok(name),
            (_, None, None) => fail(Exit::Usage, "this form takes one session; name one"),
            _ => {
                let help = "omit --label and --query, and name the session";
                fail(Exit::Usage, format!("this form takes one session; {help}"))
            }
        }
    }

    /// Returns the paths of the selected sessions, each once: those that are named, those with the label, and those of the
    /// query.
    ///
    /// # Errors
    /// Fails with 1 if none is selected or a name is not found, and with 2 if nothing selects or the query is invalid.
    pub fn paths(&self, place: &SessionPlace) -> anyhow::Result<Vec<PathBuf>> {
        let Selection { names, label, query } = self;
        if names.is_empty() && label.is_none() && query.is_none() {
            return fail(Exit::Usage, "no session is named; name one, or give --label or --query");
        }
        let (mut paths, mut seen) = (Vec::new(), HashSet::new());
        for name in names {
            paths.push(place.path(name)?);
        }
        if let Some(label) = label {
            let invalid =
                |error| Error::new(Exit::Usage, format!("invalid pattern '{label}': {error}"));
            let pattern = Pattern::new(label).map_err(invalid)?;
            let entries = place.entries()?.into_iter();
            let matching = entries.filter(|entry| pattern.matches(&entry.label));
            paths.extend(matching.filter(|it| !it.label.is_empty()).map(|entry| entry.path));
        }
        if let Some(query) = query {
            paths.extend(found(place, query)?);
        }
        paths.retain(|path| seen.insert(path.canonicalize().unwrap_or_else(|_| path.clone())));
        if paths.is_empty() {
            return fail(Exit::Failed, "no session is selected; see claw-session list");
        }
        Ok(paths)
    }
}

/// Returns the paths that a query of the index finds. It runs claw-index, so that claw-session needs no SQLite.
fn found(place: &SessionPlace, query: &str) -> anyhow::Result<Vec<PathBuf>> {
    let given = place.index.database.store_path.clone();
    let database = given.unwrap_or_else(|| place.workspace.join(".sessions/index.db"));
    let database = database.to_string_lossy();
    let arguments =
        ["--db", &database, "query", "--format", "json", "--", query].map(str::to_owned);
    let ended = process::run("claw-index", &arguments, Vec::new(), ChildLimits::default())?;
    if ended.exit() != Some(Exit::Done) {
        return Err(ended.failure("claw-index", "cannot select sessions"));
    }
    let text = String::from_utf8_lossy(&ended.stdout);
    let path = |line: &str| {
        let row = Object::parse(line).ok()?;
        let path = json::string(row.members().next()?.value)?.into_owned();
        Some(Path::new(&path).to_owned())
    };
    let paths: Option<Vec<PathBuf>> = text.lines().map(path).collect();
    match paths {
        Some(paths) => Ok(paths),
        None => {
            let help = "select the key of the table sessions";
            fail(Exit::Usage, format!("the first column of the query has no paths; {help}"))
        }
    }
}
