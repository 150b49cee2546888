//! What a tool sees of the environment: nothing that names a key.

use std::ffi::{OsStr, OsString};

/// What the name of a secret begins with, holds or ends with, in small letters.
const BEGINS: [&str; 3] = ["aws_", "azure_", "claw_key_"];
const HOLDS: [&str; 6] = ["apikey", "api_key", "credential", "passwd", "password", "secret"];
const ENDS: [&str; 4] = ["_auth", "_key", "_pat", "_token"];
/// Whole names.
const IS: [&str; 4] = ["key", "ssh_auth_sock", "ssh_agent_pid", "token"];

/// Whether a variable of this name may hold a secret, or lead to one.
#[must_use]
pub fn is_secret(name: &OsStr) -> bool {
    let name = name.to_string_lossy().to_ascii_lowercase();
    BEGINS.iter().any(|begin| name.starts_with(begin))
        || HOLDS.iter().any(|part| name.contains(part))
        || ENDS.iter().any(|end| name.ends_with(end))
        || IS.contains(&name.as_str())
}

/// The variables that a tool gets: all but those that may be secrets, and of those the ones in `let_through`.
#[must_use]
pub fn visible(
    all: impl Iterator<Item = (OsString, OsString)>,
    let_through: &[OsString],
) -> Vec<(OsString, OsString)> {
    all.filter(|(name, _)| !is_secret(name) || let_through.contains(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t_2_what_names_a_key_is_kept_from_tools() {
        for name in [
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_AUTH_TOKEN",
            "AWS_SESSION_TOKEN",
            "AWS_PROFILE",
            "CLAW_KEY_CMD",
            "GITHUB_TOKEN",
            "client_secret_2",
            "PGPASSWORD",
            "SSH_AUTH_SOCK",
            "GH_PAT",
            "TOKEN",
        ] {
            assert!(is_secret(OsStr::new(name)), "{name}");
        }
        for name in ["PATH", "HOME", "LC_ALL", "CLAW_WORKSPACE", "TOKENIZERS_PARALLELISM", "KEYMAP"]
        {
            assert!(!is_secret(OsStr::new(name)), "{name}");
        }
        let all = || ["A_TOKEN", "B_TOKEN", "C"].map(|name| (name.into(), "x".into())).into_iter();
        let names = |through: &[OsString]| -> Vec<_> {
            visible(all(), through).into_iter().map(|(name, _)| name).collect()
        };
        assert_eq!(
            (names(&[]), names(&["B_TOKEN".into()])),
            (vec!["C".into()], vec!["B_TOKEN".into(), "C".into()])
        );
    }
}
