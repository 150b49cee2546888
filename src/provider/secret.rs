//! Keeps the key in use out of error messages and recordings.

/// The minimum length, in bytes, of a key or a prefix of a key that is hidden.
const MIN_SECRET: usize = 8;
/// The minimum length, in bytes, of a key that is hidden even if it has only lower-case letters, `-`, `_` and `.`.
const MIN_WORD_SECRET: usize = 20;

/// Returns true if `key` may be a secret. Local servers accept any key (`x`, `none`, `not-needed`); hiding such a
/// word would only garble messages.
#[must_use]
pub fn is_secret(key: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_lowercase() || b"-_.".contains(&byte);
    key.len() >= MIN_SECRET && (key.len() >= MIN_WORD_SECRET || !key.bytes().all(is_word))
}

/// Returns `text` with `key` replaced by `(hidden)`. Text that was cut off may hold only the beginning of the key, so
/// prefixes are replaced as well.
#[must_use]
pub fn hidden(text: &str, key: &str) -> String {
    let lengths = if is_secret(key) { MIN_SECRET..key.len() + 1 } else { 0..0 };
    let parts = lengths.rev().filter_map(|length| key.get(..length));
    parts.fold(text.to_owned(), |text, part| text.replace(part, "(hidden)"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn audit_21_a_plain_word_is_not_a_key() {
        for word in ["x", "none", "ollama", "lm-studio", "not-needed", "sk-no-key-required", "K3y"]
        {
            let text = format!("exceeds the available context of '{word}'");
            assert_eq!(hidden(&text, word), text);
        }
        for key in ["abcdefghijklmnopqrst", "k3y-of-8", "correct-horse-battery-staple", "PASSWORD"]
        {
            assert_eq!(hidden(&format!("no such key: {key}!"), key), "no such key: (hidden)!");
        }
    }

    #[test]
    fn the_beginning_of_a_key_is_hidden_too() {
        assert_eq!(hidden("key 12345678", "123456789"), "key (hidden)");
        assert_eq!(hidden("key 1234567", "123456789"), "key 1234567");
    }
}
