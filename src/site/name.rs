//! The names of the pages of sessions.

use std::collections::HashSet;

/// The length limit of a name, in bytes.
const LONGEST: usize = 80;
/// The names that sessions cannot have, because other pages have them.
const TAKEN: [&str; 2] = ["index", "statistics"];

/// Returns the name for a session with this id and the id of its subagent: letters, digits, `-` and `_`.
pub fn of(id: &str, agent: Option<&str>) -> String {
    let id = [id, agent.unwrap_or_default()].join("-");
    let safe = |c: char| if c.is_ascii_alphanumeric() || "-_".contains(c) { c } else { '-' };
    let name: String = id.chars().map(safe).take(LONGEST).collect();
    let name = name.trim_matches('-');
    match name {
        "" => "session".to_owned(),
        name if TAKEN.contains(&&*name.to_ascii_lowercase()) => format!("session-{name}"),
        name => name.to_owned(),
    }
}

/// Returns `name` or, if it is taken, the name with a number. File systems may ignore case, so names that differ only in case
/// are the same.
pub fn unused(name: &str, taken: &mut HashSet<String>) -> String {
    let names = std::iter::once(name.to_owned()).chain((2..).map(|n| format!("{name}-{n}")));
    let mut free = names.filter(|name| taken.insert(name.to_ascii_lowercase()));
    free.next().unwrap_or_default()
}

/// Returns true for a name that [`unused`] may have made. Names that are read from a file are checked.
pub fn is_safe(name: &str) -> bool {
    let is_safe = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    !name.is_empty()
        && name.len() <= LONGEST + 20
        && name.chars().all(is_safe)
        && !TAKEN.contains(&&*name.to_ascii_lowercase())
}

/// Returns the name of the file of a page, counted from 1.
pub fn file(name: &str, part: usize) -> String {
    if part < 2 { format!("{name}.html") } else { format!("{name}.{part}.html") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_safe_and_unused() {
        for (id, agent, name) in [
            ("a81f-1043", None, "a81f-1043"),
            ("a81f", Some("a34c"), "a81f-a34c"),
            ("../../etc/passwd", None, "etc-passwd"),
            ("a/b\\c\0d\n", None, "a-b-c-d"),
            ("", None, "session"),
            ("index", None, "session-index"),
            ("Index", None, "session-Index"),
            ("日本", None, "session"),
            (".hidden", None, "hidden"),
        ] {
            assert_eq!(of(id, agent), name, "{id}");
            assert!(is_safe(name), "{name}");
        }
        let mut taken = HashSet::new();
        let names = ["a", "A", "a", "b"].map(|name| unused(name, &mut taken));
        assert_eq!(names, ["a", "A-2", "a-3", "b"]);
        assert!(of(&"x".repeat(500), None).len() <= LONGEST);
        assert!(!is_safe("../a") && !is_safe("a.html") && !is_safe("index") && !is_safe(""));
        assert_eq!((file("a", 1), file("a", 2)), ("a.html".to_owned(), "a.2.html".to_owned()));
    }
}
