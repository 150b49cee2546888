//! Checks the names of agents and sessions, keys and labels.

/// The length limit for the name of an agent or a session, in bytes.
const MAX_NAME: usize = 64;
/// The length limit for a key or label, in bytes.
const MAX_TEXT: usize = 256;

/// Checks that `name` is a safe path component on any file system.
///
/// # Errors
/// The reason if it is not.
pub fn component(name: &str) -> Result<(), String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if name.is_empty() {
        Err("it is empty; write at least one character".to_owned())
    } else if name.len() > MAX_NAME {
        Err(format!("too long; use at most {MAX_NAME} bytes"))
    } else if !name.chars().all(is_plain) {
        Err("use only letters, digits, '.', '_' and '-'".to_owned())
    } else if name.starts_with(['-', '.']) || name.ends_with('.') {
        Err("it may not begin with '-' or '.', or end with '.'".to_owned())
    } else if is_device(name) {
        Err("reserved for a device on some systems; use another name".to_owned())
    } else {
        Ok(())
    }
}

/// Returns true for the name of a DOS device, with or without a suffix.
fn is_device(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default().to_ascii_lowercase();
    let numbered = |kind| {
        stem.strip_prefix(kind)
            .is_some_and(|rest: &str| rest.len() == 1 && rest.as_bytes()[0].is_ascii_digit())
    };
    matches!(stem.as_str(), "con" | "prn" | "aux" | "nul") || numbered("com") || numbered("lpt")
}

/// Checks a key.
///
/// # Errors
/// The reason if it is invalid.
pub fn key(text: &str) -> Result<(), String> {
    if text.trim().is_empty() {
        Err("it is empty; write at least one character".to_owned())
    } else {
        label(text)
    }
}

/// Checks a label. An empty label removes the label of a session.
///
/// # Errors
/// The reason if it is invalid.
pub fn label(text: &str) -> Result<(), String> {
    if text.len() > MAX_TEXT {
        Err(format!("too long; use at most {MAX_TEXT} bytes"))
    } else if text.chars().any(char::is_control) {
        Err("it contains control characters; remove them".to_owned())
    } else {
        Ok(())
    }
}

/// Returns the agent in a key: the first part of `AGENT:CHANNEL:PEER`, or the second part if the first is the
/// literal word `agent`, as in OpenClaw's keys.
#[must_use]
pub fn agent_of(key: &str) -> Option<&str> {
    let parts: Vec<&str> = key.split(':').collect();
    match parts.as_slice() {
        ["agent", agent, _, ..] | [agent, _, _, ..] => Some(agent),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t_4_only_safe_path_components_are_valid_names() {
        for good in ["a", "claw0", "A.b_c-d", "com", "com10", "console", "7ab2385f6138"] {
            assert_eq!(component(good), Ok(()), "{good}");
        }
        let long = "x".repeat(65);
        for bad in [
            "", ".", "..", "a/b", "../x", "/", "a\0b", "-x", ".x", "x.", "a b", "é", "NUL",
            "con.txt", "lpt1", &long,
        ] {
            assert!(component(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn v9_keys_are_text_and_never_paths() {
        for good in ["a:b", "a_b", "../x", ".", "🦞:x", "A:B"] {
            assert_eq!(key(good), Ok(()), "{good}");
        }
        for bad in ["", " ", "a\0b", "a\nb", "\u{1b}[31m", &"x".repeat(300)] {
            assert!(key(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_key_begins_with_its_agent_or_with_the_word_agent() {
        assert_eq!(agent_of("main:cli:user"), Some("main"));
        assert_eq!(agent_of("agent:main:telegram:direct:7"), Some("main"));
        assert_eq!(agent_of("agent:main:main"), Some("main"));
        assert_eq!(agent_of("a:b"), None);
    }
}
