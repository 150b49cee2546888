//! Recognises secrets, so that they are never recorded.
//!
//! A provider may repeat a key in an error, and a user may have pasted one into a prompt. Everything that would be
//! written is therefore searched for the keys in use and for the patterns of known kinds of keys, even if they contain
//! JSON escapes. A secret that a stream delivers a few characters per event is not detected.

use crate::provider::secret;
use regex::Regex;
use std::borrow::Cow;

/// The number of characters shown of a secret that was found.
const SHOWN: usize = 6;

/// Matches the beginning of a word. In JSON, an escape such as `\n` may directly precede the word.
const BEGIN: &str = r"(?:\\[bfnrt]|(?-u:\b))";

/// The kinds of secrets: a name, a flag (true if a secret must start at the beginning of a word), and a pattern.
/// Ordinary text (`risk-...`, `Bearer $KEY`) must not match, because a match stops the recording.
const KINDS: [(&str, bool, &str); 25] = [
    ("an Anthropic key", false, r"sk-ant-[A-Za-z0-9_-]{10}"),
    ("an OpenRouter key", false, r"sk-or-v1-[A-Za-z0-9]{10}"),
    ("an API key", true, r"sk-[A-Za-z0-9_-]{20}"),
    ("a bearer token", true, r"Bearer [A-Za-z0-9._~+/=-]{16}"),
    ("the name of an organization", true, r"org-[A-Za-z0-9]{16}"),
    ("an AWS key", true, r"A(?:KIA|SIA)[A-Z0-9]{16}"),
    (
        "an AWS secret key",
        false,
        r#"(?i:aws_secret_access_key|SecretAccessKey)["' ]*[:=]["' ]*[A-Za-z0-9/+]{40}"#,
    ),
    ("a Google key", true, r"AIza[A-Za-z0-9_-]{35}"),
    ("a Google key", true, r"AQ\.[A-Za-z0-9_-]{30}"),
    ("a Bedrock key", true, r"ABSK[A-Za-z0-9+/=]{40}"),
    ("a Bedrock key", true, r"bedrock-api-key-[A-Za-z0-9+/=]{40}"),
    ("a Google token", true, r"ya29\.[A-Za-z0-9_-]{20}"),
    ("a Groq key", true, r"gsk_[A-Za-z0-9]{20}"),
    ("an xAI key", true, r"xai-[A-Za-z0-9]{20}"),
    ("a Hugging Face token", true, r"hf_[A-Za-z0-9]{30}"),
    ("an NVIDIA key", true, r"nvapi-[A-Za-z0-9_-]{20}"),
    ("a Perplexity key", true, r"pplx-[A-Za-z0-9]{20}"),
    ("a Replicate token", true, r"r8_[A-Za-z0-9]{30}"),
    ("a GitHub token", true, r"gh[pousr]_[A-Za-z0-9]{36}"),
    ("a GitHub token", true, r"github_pat_[A-Za-z0-9_]{22}"),
    ("a GitLab token", true, r"gl(?:pat|oas|dt|rt|cbt|ptt|ft|imt|agent|soat)-[A-Za-z0-9_-]{20}"),
    ("a Slack token", true, r"xox[a-z]-[A-Za-z0-9-]{10}"),
    ("a JSON web token", true, r"eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10}"),
    ("a Stripe key", true, r"[sr]k_live_[A-Za-z0-9]{20}"),
    ("a private key", false, r"-----BEGIN [A-Z ]*PRIVATE KEY-----"),
];

/// A search for secrets.
#[derive(Debug)]
pub(super) struct Secrets {
    keys: Vec<String>,
    kinds: Vec<(&'static str, Regex)>,
}

impl Secrets {
    /// Returns a search for these keys and for all known kinds of secrets.
    pub(super) fn new(mut keys: Vec<String>) -> Secrets {
        keys.retain(|key| secret::is_secret(key));
        let kinds = KINDS.iter().filter_map(|(kind, is_word, pattern)| {
            let begin = if *is_word { BEGIN } else { "" };
            Some((*kind, Regex::new(&format!("{begin}({pattern})")).ok()?))
        });
        Secrets { keys, kinds: kinds.collect() }
    }

    /// Returns a description of a secret in `text`, if there is one: its kind and its first characters. The key in
    /// use is not shown.
    pub(super) fn find(&self, text: &str) -> Option<String> {
        self.find_plain(text).or_else(|| match decoded(text) {
            Cow::Borrowed(_) => None,
            Cow::Owned(decoded) => self.find_plain(&decoded),
        })
    }

    fn find_plain(&self, text: &str) -> Option<String> {
        // The key in use is not shown at all: the first characters of a short key reveal too much.
        if self.keys.iter().any(|key| text.contains(key.as_str())) {
            return Some("the key in use".to_owned());
        }
        self.kinds.iter().find_map(|(kind, regex)| {
            let found = regex.captures(text)?.get(1)?.as_str();
            let begin: String = found.chars().take(SHOWN).collect();
            Some(format!("what looks like {kind} ('{begin}…')"))
        })
    }
}

/// Decodes all JSON escapes of ASCII characters in `text`, which need not be JSON.
fn decoded(text: &str) -> Cow<'_, str> {
    if !text.contains('\\') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((plain, escape)) = rest.split_once('\\') {
        out.push_str(plain);
        let (c, length) = unescaped(escape);
        out.push(c);
        rest = escape.get(length..).unwrap_or_default();
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// Returns the character that an escape stands for (a space for `\n` and the like), and its length in bytes after
/// the backslash. If it is not an escape of an ASCII character, the backslash is kept.
fn unescaped(escape: &str) -> (char, usize) {
    match escape.bytes().next() {
        Some(b'b' | b'f' | b'n' | b'r' | b't') => (' ', 1),
        Some(byte @ (b'"' | b'\\' | b'/')) => (char::from(byte), 1),
        Some(b'u') => {
            let code = escape.get(1..5).and_then(|hex| u8::from_str_radix(hex, 16).ok());
            code.filter(u8::is_ascii).map_or(('\\', 0), |code| (char::from(code), 5))
        }
        _ => ('\\', 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(text: &str) -> Option<String> {
        Secrets::new(vec!["local/key+1".to_owned(), "ollama".to_owned()]).find(text)
    }

    /// One sample of each kind, assembled at run time so that secret scanners do not report this file.
    fn samples() -> [String; 25] {
        let tail = |count: usize| "A1b2".repeat(10)[..count].to_owned();
        [
            format!("sk-ant-{}", tail(10)),
            format!("sk-or-v1-{}", tail(10)),
            format!("sk-{}", tail(20)),
            format!("Bearer {}", tail(16)),
            format!("org-{}", tail(16)),
            format!("AKIA{}", tail(16).to_uppercase()),
            format!("aws_secret_access_key = '{}", tail(40)),
            format!("AIza{}", tail(35)),
            format!("AQ.{}", tail(30)),
            format!("ABSK{}", tail(40)),
            format!("bedrock-api-key-{}", tail(40)),
            format!("ya29.{}", tail(20)),
            format!("gsk_{}", tail(20)),
            format!("xai-{}", tail(20)),
            format!("hf_{}", tail(30)),
            format!("nvapi-{}", tail(20)),
            format!("pplx-{}", tail(20)),
            format!("r8_{}", tail(30)),
            format!("ghp_{}", tail(36)),
            format!("github_pat_{}", tail(22)),
            format!("glpat-{}", tail(20)),
            format!("xoxb-{}", tail(10)),
            format!("eyJ{0}.eyJ{0}.{0}", tail(10)),
            format!("sk_live_{}", tail(20)),
            format!("-----BEGIN RSA {} KEY-----", "PRIVATE"),
        ]
    }

    #[test]
    fn each_kind_is_found_and_only_its_beginning_is_shown() {
        for (sample, (kind, ..)) in samples().iter().zip(KINDS) {
            let shown = format!("what looks like {kind} ('{}…')", &sample[..SHOWN]);
            for text in [
                sample.clone(),
                format!("{{\"a\":\"{sample}\"}}"),
                format!("{{\"a\":\"x\\n{sample}\"}}"),
                format!(r#"{{"a":"{{\"b\":\"x\\n{sample}\"}}"}}"#),
                format!("\"\\u00{:02x}{}\"", sample.as_bytes()[0], &sample[1..]),
            ] {
                assert_eq!(find(&text), Some(shown.clone()), "{text}");
            }
            let short = &sample[..sample.len() - 1];
            assert_eq!(find(short), None, "{short}");
        }
    }

    #[test]
    fn audit_21_all_prefixes_of_a_kind_are_found() {
        let tail = "A1b2".repeat(10);
        for begin in
            ["gho_", "ghu_", "ghs_", "ghr_", "glrt-", "gldt-", "xoxp-", "xoxa-", "rk_live_"]
        {
            assert!(find(&format!("{begin}{tail}")).is_some(), "{begin}");
        }
        assert!(find(&format!("ASIA{}", tail.to_uppercase())).is_some());
    }

    #[test]
    fn a_key_in_use_is_found_in_any_notation_and_never_shown() {
        for text in ["xlocal/key+1x", r#""local\/key+1""#, r#""local\u002Fkey\u002b1""#] {
            assert_eq!(find(text).as_deref(), Some("the key in use"), "{text}");
        }
        assert_eq!(find("ollama"), None, "too short to be a secret");
    }

    #[test]
    fn ordinary_text_is_not_a_secret() {
        for text in [
            "a risk-management-and-compliance-handbook",
            "export KEY=sk-ant-... and send 'Bearer $KEY'",
            "https://example.org-chart",
            "-----BEGIN CERTIFICATE-----",
            "\\u00zz \\u12 \\ \\é \\ud800 sk-\\",
        ] {
            assert_eq!(find(text), None, "{text}");
        }
    }
}
