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
    let bytes = text.as_bytes();
    let (mut all, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        if !bytes[at].is_ascii_digit() {
            at += 1;
            continue;
        }
        let start = at;
        at = end_of_digits(bytes, start);
        let in_name = start > 0 && is_name_byte(bytes, start - 1);
        let number = (!in_name).then(|| number(text, start, at)).flatten();
        at = number.map_or(at, |number| number.end);
        all.extend(number);
    }
    all
}

/// Returns true if the byte before a number joins it to a name: a letter, or a mark after a letter.
fn is_name_byte(bytes: &[u8], at: usize) -> bool {
    match bytes[at] {
        byte if byte.is_ascii_alphabetic() => true,
        b'-' | b'_' | b'.' | b'#' => at > 0 && bytes[at - 1].is_ascii_alphanumeric(),
        b'/' => at > 0 && bytes[at - 1].is_ascii_alphabetic(),
        _ => false,
    }
}

/// Returns the end of the digits that begin at `start`. Groups of three digits may be separated by a comma, a point, a
/// space, an apostrophe or an underscore.
fn end_of_digits(bytes: &[u8], start: usize) -> usize {
    let digits =
        |from: usize| bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut end = start + digits(start);
    let first = end - start;
    while first <= 3
        && bytes.get(end).is_some_and(|mark| matches!(mark, b',' | b'.' | b' ' | b'\'' | b'_'))
        && bytes.get(end) == bytes.get(start + first)
        && digits((end + 1).min(bytes.len())) == 3
    {
        end += 4;
    }
    end
}

/// Reads the number whose digits are `text[start..end]`, with its unit.
fn number(text: &str, start: usize, end: usize) -> Option<Number> {
    let digits: String = text[start..end].chars().filter(char::is_ascii_digit).collect();
    // An identifier, such as '021'.
    if digits.len() > 1 && digits.starts_with('0') {
        return None;
    }
    let mut value = digits.parse::<u64>().ok()?;
    let mut rest = &text[end..];
    let mut end = end;
    // A decimal fraction: '20.0 MB', '1.5 million'. The fraction is dropped.
    if let Some(fraction) = rest.strip_prefix('.')
        && fraction.starts_with(|c: char| c.is_ascii_digit())
    {
        let length =
            fraction.len() - fraction.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        rest = &fraction[length..];
        end += 1 + length;
    }
    let word: String = rest.trim_start().chars().take_while(|c| c.is_alphabetic()).collect();
    let is_joined = rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
    let (factor, unit) = match word.as_str() {
        "k" if is_joined => (1000, Unit::Tokens),
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
