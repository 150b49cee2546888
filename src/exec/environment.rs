//! The environment of a tool, without variables that may hold credentials.

use std::ffi::{OsStr, OsString};

/// Prefixes of the names of variables that may hold a secret. This list and the following ones are in lower case.
const PREFIXES: [&str; 4] = ["auth_", "aws_", "azure_", "claw_key_"];
/// Strings that occur in the names of variables that may hold a secret.
const PARTS: [&str; 9] = [
    "_auth_",
    "connection_string",
    "cookie",
    "credential",
    "key",
    "kubeconfig",
    "pass",
    "secret",
    "token",
];
/// Suffixes of the names of variables that may hold a secret.
const SUFFIXES: [&str; 5] = ["_auth", "_dsn", "_pat", "_sas", "pwd"];
/// Full names of variables that may hold a secret.
const NAMES: [&str; 4] = ["claw_call", "claw_extra", "database_url", "ssh_agent_pid"];
/// Names that match one of the lists above, but are harmless.
const HARMLESS: [&str; 5] =
    ["keyboard_layout", "keymap", "oldpwd", "pwd", "tokenizers_parallelism"];

/// Returns true if a variable with this name may hold a secret or give access to one.
#[must_use]
pub fn is_secret(name: &OsStr) -> bool {
    let name = name.to_string_lossy().to_ascii_lowercase();
    let name = name.as_str();
    let looks_secret = PREFIXES.iter().any(|begin| name.starts_with(begin))
        || PARTS.iter().any(|part| name.contains(part))
        || SUFFIXES.iter().any(|end| name.ends_with(end))
        || NAMES.contains(&name);
    looks_secret && !HARMLESS.contains(&name)
}

/// Returns true if a value contains a URL with a password, such as that of a proxy or a database.
#[must_use]
pub fn holds_password(value: &OsStr) -> bool {
    let value = value.to_string_lossy();
    value.match_indices("://").any(|(at, sign)| {
        let rest = &value[at + sign.len()..];
        let authority = rest.split(['/', '?', '#', ' ', ',']).next().unwrap_or_default();
        let is_web = value[..at].ends_with("http") || value[..at].ends_with("https");
        // In an HTTP URL a user name alone may be a token: 'https://TOKEN@host'.
        authority.rsplit_once('@').is_some_and(|(user, _)| is_web || user.contains(':'))
    })
}

/// Returns the variables that tools get: those that do not look like secrets, and those named in `pass`.
#[must_use]
pub fn visible(
    all: impl Iterator<Item = (OsString, OsString)>,
    pass: &[OsString],
) -> Vec<(OsString, OsString)> {
    let is_hidden = |name: &OsStr, value: &OsStr| is_secret(name) || holds_password(value);
    all.filter(|(name, value)| !is_hidden(name, value) || pass.contains(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t_2_audit_21_variables_named_like_credentials_are_hidden_from_tools() {
        for name in [
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_AUTH_TOKEN",
            "AWS_SESSION_TOKEN",
            "AWS_PROFILE",
            "CLAW_CALL",
            "CLAW_EXTRA",
            "CLAW_KEY_CMD",
            "DATABASE_URL",
            "DB_PASS",
            "DOCKER_AUTH_CONFIG",
            "GITHUBTOKEN",
            "GITHUB_TOKEN",
            "GIT_ASKPASS",
            "GH_PAT",
            "KEY",
            "KEY_2",
            "MYSQL_PWD",
            "NPM_TOKENS",
            "PGPASSFILE",
            "PGPASSWORD",
            "SENTRY_DSN",
            "SSH_AUTH_SOCK",
            "TOKEN",
            "client_secret_2",
            "mypwd",
        ] {
            assert!(is_secret(OsStr::new(name)), "{name}");
        }
        for name in [
            "PATH",
            "PWD",
            "OLDPWD",
            "HOME",
            "LC_ALL",
            "CLAW_WORKSPACE",
            "GIT_AUTHOR_NAME",
            "HTTPS_PROXY",
            "TOKENIZERS_PARALLELISM",
            "KEYMAP",
        ] {
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

    #[test]
    fn audit_21_urls_with_passwords_are_hidden_from_tools() {
        for value in [
            "http://user:pass@proxy:3128",
            "postgres://me:pw@db/x?y",
            "https://token@github.com/a/b",
            "a, redis://:pw@cache:6379",
        ] {
            assert!(holds_password(OsStr::new(value)), "{value}");
        }
        for value in
            ["http://proxy:3128", "ssh://git@github.com/a:b", "https://x/a@b:c", "me@x.org", "://@"]
        {
            assert!(!holds_password(OsStr::new(value)), "{value}");
        }
    }
}
