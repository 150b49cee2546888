//! Finds the numbers in a message, with their units: `131,072`, `131.072`, `128k`, `4.5 MB`.

/// The unit of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// Tokens, or no unit.
    Tokens,
    Bytes,
    /// Something else: characters, pixels, a date.
    Other,
}

/// A number in a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Number {
    pub(super) value: u64,
    pub(super) unit: Unit,
    /// The offset of the first digit.
    pub(super) start: usize,
    /// The offset after the last digit.
    pub(super) end: usize,
}

/// Returns the numbers in `text`. Digits inside a name, such as `gpt-5.4`, are no numbers.
pub(super) fn numbers(text: &str) -> Vec<Number> {
    let mut all = Vec::new();
    let mut at = 0;
    while let Some(found) = text[at..].find(|c: char| c.is_ascii_digit()) {
        let start = at + found;
        let end = start + length_of_digits(&text.as_bytes()[start..]);
        let is_free = !ends_in_name(&text[..start]);
        let number = is_free.then(|| number(text, start, end)).flatten();
        at = number.map_or(end, |number| number.end);
        all.extend(number);
    }
    all
}

/// Returns true if a digit after `text` belongs to a name: after a letter, or after a mark that joins it to one.
fn ends_in_name(text: &str) -> bool {
    let mut bytes = text.bytes().rev();
    match bytes.next() {
        Some(b'-' | b'_' | b'.' | b'#') => {
            bytes.next().is_some_and(|byte| byte.is_ascii_alphanumeric())
        }
        Some(b'/') => bytes.next().is_some_and(|byte| byte.is_ascii_alphabetic()),
        last => last.is_some_and(|byte| byte.is_ascii_alphabetic()),
    }
}

/// Returns the length of the digits at the beginning of `text`. Groups of three digits may be separated by a comma, a
/// point, a space, an apostrophe or an underscore.
fn length_of_digits(text: &[u8]) -> usize {
    let digits = |text: &[u8]| text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let first = digits(text);
    let mut length = first;
    if first <= 3
        && let Some(mark @ (b',' | b'.' | b' ' | b'\'' | b'_')) = text.get(first)
    {
        while text.get(length) == Some(mark) && digits(&text[length + 1..]) == 3 {
            length += 4;
        }
    }
    length
}

/// Reads the number whose digits are `text[start..end]`, with its unit.
fn number(text: &str, start: usize, end: usize) -> Option<Number> {
    let digits: String = text[start..end].chars().filter(char::is_ascii_digit).collect();
    // An identifier, such as '021'.
    if digits.starts_with('0') {
        return None;
    }
    let mut value = digits.parse::<u64>().ok()?;
    let mut rest = &text[end..];
    // A decimal fraction: '20.0 MB', '1.5 million'. The fraction is dropped.
    if let Some(fraction) = rest.strip_prefix('.')
        && fraction.starts_with(|c: char| c.is_ascii_digit())
    {
        rest = fraction.trim_start_matches(|c: char| c.is_ascii_digit());
    }
    let end = text.len() - rest.len();
    let word: String = rest.trim_start().chars().take_while(|c| c.is_alphabetic()).collect();
    let is_joined = rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
    let (factor, unit) = match word.as_str() {
        "k" => (1000, Unit::Tokens),
        "m" if is_joined => (1_000_000, Unit::Tokens),
        "b" | "byte" | "bytes" | "octets" | "字节" | "バイト" | "바이트" => {
            (1, Unit::Bytes)
        }
        "kb" | "ko" => (1000, Unit::Bytes),
        // 'KiB' is folded to 'ki_b', as names are, and ends at the mark.
        "kib" | "ki" => (1 << 10, Unit::Bytes),
        "mb" | "mo" | "mib" | "mi" | "m" => (1 << 20, Unit::Bytes),
        "gb" | "gib" | "gi" => (1 << 30, Unit::Bytes),
        word if is_other_unit(word) => (1, Unit::Other),
        word if is_joined && word.is_ascii() && !word.starts_with("token") => (1, Unit::Other),
        _ if rest.starts_with('-') && rest[1..].starts_with(|c: char| c.is_ascii_digit()) => {
            (1, Unit::Other)
        }
        _ if rest.starts_with(['%', ':', 'x', '×', '°']) && !rest.starts_with(": ") => {
            (1, Unit::Other)
        }
        _ => (1, Unit::Tokens),
    };
    value = value.checked_mul(factor)?;
    Some(Number { value, unit, start, end })
}

fn is_other_unit(word: &str) -> bool {
    const STEMS: &[&str] = &[
        "char",
        "pixel",
        "px",
        "page",
        "image",
        "second",
        "sec",
        "minute",
        "hour",
        "day",
        "ms",
        "year",
        "item",
        "element",
        "tool",
        "function",
        "request",
        "message",
        "file",
        "document",
        "caracter",
        "zeichen",
        "символ",
        "字符",
        "文字",
        "percent",
        "dollar",
        "usd",
        "times",
    ];
    STEMS.iter().any(|stem| word.starts_with(stem))
}
