//! Resolves a name to a session: an id, key or label, or else a unique prefix of one.

use super::SessionEntry;

/// Finds the session with this name: several if the name is ambiguous, and none if no session has it. If an agent has
/// several sessions with the same key, the key means the newest one.
#[must_use]
pub fn resolve<'e>(entries: &'e [SessionEntry], name: &str) -> Vec<&'e SessionEntry> {
    let found = exact(entries, name);
    if found.is_empty() && !name.is_empty() { by_prefix(entries, name) } else { found }
}

/// Finds a session by its complete id, key or label. Programs that create missing sessions use this, so that
/// a new name that is a prefix of an existing one does not select the existing session.
#[must_use]
pub fn exact<'e>(entries: &'e [SessionEntry], name: &str) -> Vec<&'e SessionEntry> {
    if name.is_empty() {
        return Vec::new();
    }
    let ids = with(entries, |entry| entry.id == name);
    let keys = newest(with(entries, |entry| entry.key == name));
    let labels = with(entries, |entry| entry.label == name);
    [ids, keys, labels].into_iter().find(|found| !found.is_empty()).unwrap_or_default()
}

fn by_prefix<'e>(entries: &'e [SessionEntry], name: &str) -> Vec<&'e SessionEntry> {
    let keys = newest(with(entries, |entry| entry.key.starts_with(name)));
    let mut found =
        with(entries, |entry| entry.id.starts_with(name) || entry.label.starts_with(name));
    for entry in keys {
        if !found.contains(&entry) {
            found.push(entry);
        }
    }
    found
}

fn with(entries: &[SessionEntry], fits: impl Fn(&SessionEntry) -> bool) -> Vec<&SessionEntry> {
    entries.iter().filter(|entry| fits(entry)).collect()
}

/// Returns the newest session of each agent and key.
fn newest(found: Vec<&SessionEntry>) -> Vec<&SessionEntry> {
    let is_newest = |entry: &&SessionEntry| {
        !found.iter().any(|other| {
            (&other.agent, &other.key) == (&entry.agent, &entry.key)
                && (other.created, &other.id) > (entry.created, &entry.id)
        })
    };
    found.iter().copied().filter(is_newest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(id: &str, key: &str, label: &str, created: i64) -> SessionEntry {
        let agent = "a".to_owned();
        SessionEntry {
            id: id.into(),
            agent,
            key: key.into(),
            label: label.into(),
            created,
            ..SessionEntry::default()
        }
    }

    #[test]
    fn v81_d63_an_exact_name_wins_over_prefixes_and_an_ambiguous_prefix_returns_all_matches() {
        let entries = [
            entry("abc", "main:cli:one", "work", 1),
            entry("abcd", "main:cli:one", "workshop", 2),
            entry("ffff", "main:web:two", "abcx", 3),
            entry("work", "", "", 4),
        ];
        let id = |name: &str| match resolve(&entries, name).as_slice() {
            [entry] => entry.id.clone(),
            [] => "-".to_owned(),
            found => format!("{}", found.len()),
        };
        for (name, expected) in [
            ("abc", "abc"),
            ("main:cli:one", "abcd"),
            ("main:cli", "abcd"),
            ("main:", "2"),
            ("workshop", "abcd"),
            ("work", "work"),
            ("worksh", "abcd"),
            ("ab", "3"),
            ("ff", "ffff"),
            ("x", "-"),
            ("", "-"),
            ("../abc", "-"),
        ] {
            assert_eq!(id(name), expected, "{name}");
        }
    }
}
