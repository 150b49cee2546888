//! Decodes Python's notation for bytes and dictionaries, which gateways written in Python put into their messages.

use crate::json::quote;

/// Decodes the Python string at the beginning of `text`. Returns it with the text that follows.
pub(super) fn string(text: &str) -> Option<(String, &str)> {
    let mark = text.bytes().next().filter(|mark| matches!(mark, b'\'' | b'"'))?;
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes().enumerate().skip(1);
    while let Some((at, byte)) = rest.next() {
        match byte {
            _ if byte == mark => {
                return Some((String::from_utf8_lossy(&bytes).into_owned(), &text[at + 1..]));
            }
            b'\\' => bytes.extend(escape(&mut rest.by_ref().map(|(_, byte)| byte))),
            _ => bytes.push(byte),
        }
    }
    // The message was cut off inside the string.
    Some((String::from_utf8_lossy(&bytes).into_owned(), ""))
}

/// Decodes an escape: returns the byte for the characters after the backslash.
fn escape(rest: &mut impl Iterator<Item = u8>) -> Option<u8> {
    match rest.next()? {
        b'n' => Some(b'\n'),
        b'r' => Some(b'\r'),
        b't' => Some(b'\t'),
        b'x' => {
            let mut digit = || char::from(rest.next()?).to_digit(16);
            u8::try_from(digit()? * 16 + digit()?).ok()
        }
        other => Some(other),
    }
}

/// Converts `text`, which must begin with a Python dictionary, to JSON. Text after the dictionary is converted along
/// with it, and the result is not checked; the caller parses it.
pub(super) fn dictionary(text: &str) -> Option<String> {
    let mut rest = text.starts_with("{'").then_some(text)?;
    let mut json = String::with_capacity(text.len());
    while let Some(first) = rest.chars().next() {
        if let Some((text, after)) = string(rest) {
            json.push_str(&quote(&text));
            rest = after;
            continue;
        }
        let words = [("None", "null"), ("True", "true"), ("False", "false")];
        let word = words.into_iter().find(|(python, _)| rest.starts_with(python));
        match word {
            Some((python, word)) => {
                json.push_str(word);
                rest = &rest[python.len()..];
            }
            None => {
                json.push(first);
                rest = &rest[first.len_utf8()..];
            }
        }
    }
    Some(json)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dictionary_becomes_json() {
        let text =
            r#"{'error': {'message': "it's \"é\"", 'code': None, 'n': [1, True]}} and so on"#;
        let json =
            r#"{"error": {"message": "it's \"é\"", "code": null, "n": [1, true]}} and so on"#;
        assert_eq!(dictionary(text).as_deref(), Some(json));
        assert_eq!(dictionary("no dictionary"), None);
    }

    #[test]
    fn a_string_is_decoded_up_to_its_end() {
        assert_eq!(string(r"'\xc3\xa9\n\'' more"), Some(("é\n'".to_owned(), " more")));
        assert_eq!(string("'cut"), Some(("cut".to_owned(), "")));
        assert_eq!(string("none"), None);
    }
}
