//! Reads the numbers of a message that no row of the table knows: which one is the limit, which one the prompt, and
//! which one the requested output.

use super::digits::{Number, Unit, numbers};
use super::sentence::Words;
use super::words::{LIMIT, OUTPUT, TOO_LONG, TOO_MUCH};
use crate::provider::refusal::bounded;
use crate::provider::refusal::text::Numbers;

/// The smallest number that is taken for a count of tokens; smaller ones count something else.
const SMALLEST: u64 = 16;
/// The number of bytes before a number in which the words that explain it stand.
const BEFORE: usize = 48;
/// The number of bytes after a number in which the words that explain it stand.
const AFTER: usize = 24;

/// Words before a number that is the size of the prompt, if no word for a limit stands before it too.
const ACTUAL_NOUNS: &[&str] =
    &["total", "prompt", "input", "request", "with", "入力", "リクエスト", "입력", "요청"];
/// Words before a number that is the size of the prompt.
#[rustfmt::skip]
const ACTUAL: &[&str] = &[
    "has", "have", "contains", "contain", "containing", "requested", "got", "received", "passed", "given", "you", "your", "current", "actual", "sent", "used", "resulted in", "counted", "found", "provided", "estimated", "is now", "were", "was", "of text",
    "contient", "compte", "demande", "votre", "enthalt", "umfasst", "hat", "ihre", "tiene", "contiene", "solicitado", "su", "tem", "contem", "seu", "sua", "содержит", "получено", "ваш", "запрошено", "длина", "длиной",
    "当前", "實際", "实际", "共", "请求了", "收到", "您的", "输入长度为", "现在", "現在", "実際", "현재",
];
/// Words directly before a number that is the limit, whatever follows it.
#[rustfmt::skip]
const LIMIT_BEFORE: &[&str] = &[
    "limit of", "budget of", "limit is", "maximum of", "maximum is", "max of", "max is", "window of", "window is", "context length of", "context length is", "context size of", "context of", "up to", "at most", "supports", "capacity of", "no more than",
    "limite de", "limite est", "maximum de", "fenetre de", "kontextlange von", "fenster von", "grenze von", "limit von", "limite es", "maximo de", "ventana de", "maximo e", "janela de", "лимит", "до", "не более", "максимум",
];
/// Words after a number that is the size of the prompt.
const ACTUAL_AFTER: &[&str] = &[
    "exceed*",
    "given",
    "requested",
    "were",
    "was",
    "provided",
    "received",
    "in the",
    "in your",
    "of input",
    "input",
    "passed",
    "sent",
    "prompt",
    "depass*",
    "uberschreit*",
    "uberstei*",
    "exced*",
    "supera*",
    "ultrapass*",
    "превыш*",
    "超过",
    "超出",
    "exceeding",
];
/// Words after a number that is the limit.
const LIMIT_AFTER: &[&str] = &[
    "maximum",
    "max",
    "limit*",
    "allowed",
    "を超え",
    "を上回",
    "を超過",
    "초과*",
    "을 초과*",
    "를 초과*",
    "maximal*",
    "以内",
    "以下",
    "まで",
    "的上限",
    "的限制",
    "上限",
];

/// Reads the numbers of tokens in `text`, which must be folded.
pub(super) fn tokens(text: &str) -> Numbers {
    let all = numbers(text);
    let counts = |it: &&Number| it.unit == Unit::Tokens && it.value >= SMALLEST;
    assign(text, &all.iter().copied().filter(|it| counts(&it)).collect::<Vec<_>>())
}

/// Reads the numbers of bytes in `text`, which must be folded.
pub(super) fn bytes(text: &str) -> Numbers {
    let all = numbers(text);
    let in_bytes: Vec<Number> = all.iter().copied().filter(|it| it.unit == Unit::Bytes).collect();
    assign(text, &in_bytes)
}

/// Returns true if `text` compares two numbers, of which the first is larger: `9 > 5`.
pub(super) fn compares(text: &str) -> bool {
    let all = numbers(text);
    let is_more = |pair: &[Number]| {
        let between = text.get(pair[0].end..pair[1].start).unwrap_or_default();
        between.contains('>') && pair[0].value > pair[1].value
    };
    all.windows(2).any(is_more)
}

/// Decides what each number means.
fn assign(text: &str, all: &[Number]) -> Numbers {
    let mut found = Numbers::default();
    // A gateway has shortened the text, and the number may have had more digits.
    if ["...", "…"]
        .into_iter()
        .flat_map(|mark| text.match_indices(mark))
        .any(|(at, _)| text[..at].ends_with(|last: char| last.is_ascii_digit()))
    {
        return found;
    }
    let (mut limits, mut actuals, mut open) = (Vec::new(), Vec::new(), Vec::new());
    for (at, number) in all.iter().enumerate() {
        let from = if at == 0 { 0 } else { all[at - 1].end };
        let to = all.get(at + 1).map_or(text.len(), |next| next.start);
        match label(text, number, from, to) {
            Label::Requested => found.requested = found.requested.or(Some(number.value)),
            Label::Limit => limits.push(number.value),
            Label::Actual => actuals.push(number.value),
            Label::None => open.push(number.value),
        }
    }
    // A prompt that was refused is larger than the limit, unless the requested output makes up the difference.
    let mut distinct: Vec<u64> = limits.iter().chain(&actuals).chain(&open).copied().collect();
    distinct.sort_unstable();
    distinct.dedup();
    match (distinct.as_slice(), found.requested) {
        ([], _) => {}
        ([one], _) => match (limits.first(), actuals.first()) {
            (Some(_), _) => found.limit = Some(*one),
            (None, Some(_)) => found.input = Some(*one),
            (None, None) => {}
        },
        (&[small, large], Some(output))
            if limits.first().is_none_or(|limit| *limit == large)
                && small.saturating_add(output) > large =>
        {
            (found.input, found.limit) = (Some(small), Some(large));
        }
        (&[small, large], _) => (found.input, found.limit) = (Some(large), Some(small)),
        (all, output) => {
            let limit = limits.first().copied();
            // The total of the prompt and the output is no size of the prompt.
            let is_total = |value: u64| {
                output.is_some_and(|output| all.contains(&value.saturating_sub(output)))
            };
            let pick = |list: &[u64]| {
                list.iter().copied().filter(|it| Some(*it) != limit).find(|it| !is_total(*it))
            };
            found.limit = limit;
            found.input = limit.and_then(|_| pick(&actuals).or_else(|| pick(&open)));
        }
    }
    found
}

enum Label {
    Limit,
    Actual,
    Requested,
    None,
}

/// Returns the meaning of a number by the words around it. `from` and `to` are the ends of its neighbours.
fn label(text: &str, number: &Number, from: usize, to: usize) -> Label {
    let mut from = from.max(number.start.saturating_sub(BEFORE))..=number.start;
    let before = from.find_map(|from| text.get(from..number.start)).unwrap_or_default();
    let after = bounded(&text[number.end..to], AFTER);
    // The words after a punctuation mark belong to the next number.
    let after = after.split([',', ';', '(', ')', '.']).next().unwrap_or_default();
    let (words, next) = (Words::of(before), Words::of(after));
    let sign = before.trim_end();
    let is_after = |list: &[&'static str]| words.last_before(list, words.len()) == Some(sign.len());
    if is_after(LIMIT_BEFORE) || ends_range(text, number) {
        return Label::Limit;
    }
    if sign.ends_with('+') {
        return Label::Requested;
    }
    if after.trim_start().starts_with(['>', '+']) {
        return Label::Actual;
    }
    if next.any(OUTPUT) || is_last(&words, OUTPUT, &[LIMIT, ACTUAL]) {
        return Label::Requested;
    }
    if sign.ends_with('>') || sign.ends_with("<=") || sign.ends_with(">=") {
        return Label::Limit;
    }
    if after.starts_with('/') {
        return Label::Actual;
    }
    if next.any(LIMIT_AFTER) {
        return Label::Limit;
    }
    if next.any(ACTUAL_AFTER) {
        return Label::Actual;
    }
    // The nearest clause comes first.
    let clause = before.rsplit([',', ';', ':', '(']).next().unwrap_or_default();
    by_nouns(&Words::of(clause)).or_else(|| by_nouns(&words)).unwrap_or(Label::None)
}

/// Returns true if the number ends a range that begins with 0 or 1: `[1, 8192]`, `between 1 and 8192`, `1~8192`.
fn ends_range(text: &str, number: &Number) -> bool {
    const JOINTS: &[&str] = &[
        ",", "-", "–", "~", "～", "..", "to", "and", "et", "und", "bis", "y", "a", "e", "и", "до",
        "到", "至",
    ];
    let before = text[..number.start].trim_end();
    let first = JOINTS.iter().find_map(|joint| before.strip_suffix(joint)).map(str::trim_end);
    let first = first.and_then(|first| first.strip_suffix(['0', '1']));
    first.is_some_and(|rest| !rest.ends_with(char::is_alphanumeric))
}

/// Returns the meaning of a number by the words before it.
fn by_nouns(words: &Words<'_>) -> Option<Label> {
    let end = words.len();
    let last = |lists: &[&[&'static str]]| {
        lists.iter().filter_map(|list| words.last_before(list, end)).max()
    };
    let (limit, actual) = (last(&[LIMIT, TOO_MUCH, TOO_LONG]), last(&[ACTUAL]));
    if actual > limit {
        return Some(Label::Actual);
    }
    limit.map(|_| Label::Limit).or_else(|| last(&[ACTUAL_NOUNS]).map(|_| Label::Actual))
}

/// Returns true if the last entry of `list` stands after those of the other lists.
fn is_last(words: &Words<'_>, list: &[&'static str], others: &[&[&'static str]]) -> bool {
    let Some(own) = words.last_before(list, words.len()) else { return false };
    others.iter().filter_map(|other| words.last_before(other, words.len())).all(|it| it <= own)
}

#[cfg(test)]
mod tests {
    use super::super::sentence::fold;
    use super::*;

    const fn n(number: u64) -> Option<u64> {
        if number == 0 { None } else { Some(number) }
    }

    #[test]
    #[rustfmt::skip]
    fn the_limit_the_prompt_and_the_output_are_told_apart() {
        for (text, actual, limit, requested) in [
            ("Token limit exceeded: 300000 > 200000", 300_000, 200_000, 0),
            ("input length and max_tokens exceed context limit (i.e 156321 + 48384 > 200000)", 156_321, 200_000, 48_384),
            ("maximum context length of 131072 tokens. You requested a total of 150000 tokens", 150_000, 131_072, 0),
            ("prompt (8500 tokens) exceeds the available context size (8192 tokens)", 8500, 8192, 0),
            ("the limit is 8,192 tokens, 9,000 given", 9000, 8192, 0),
            ("Current length is 143425 while limit is 131072", 143_425, 131_072, 0),
            ("context window of 128k tokens exceeded", 0, 128_000, 0),
            ("le contexte de 131 072 jetons est dépassé: 140 000 jetons", 140_000, 131_072, 0),
            ("Kontextlänge 131.072 überschritten (Anfrage: 140.000 Token)", 140_000, 131_072, 0),
            ("入力は9000トークンで、上限の8192トークンを超えています", 9000, 8192, 0),
            ("you have 7000 input tokens and asked for 4000 output tokens, the window is 10000", 7000, 10_000, 4000),
            ("gpt-5.4 of 2026-01-01 has no numbers", 0, 0, 0),
            ("gpt4096, qwen-16000, phi_32000, v.64000, req#90000 and team/70000 read at most 8192 tokens", 0, 8192, 0),
            ("request 0219000: the limit is 8192 tokens", 0, 8192, 0),
            ("the limit is 8192 tokens, and 40000 characters were sent", 0, 8192, 0),
            ("since 2026-11-28 the limit is 8192 tokens", 0, 8192, 0),
            ("the limit is 128 K tokens", 0, 128_000, 0),
            ("10000 tokens in total: 9000 in the prompt and 1000 for the output, the limit is 8192", 9000, 8192, 1000),
            ("the limit is too low for your 9000 tokens", 9000, 0, 0),
            ("max_tokens=9000, the prompt has 4000 tokens of a window of 8192", 4000, 8192, 9000),
            ("入力は９０００トークンで、上限の８１９２トークンを超えています", 9000, 8192, 0),
            ("prompt tokens > 8192", 0, 8192, 0),
            ("prompt tokens <= 8192", 0, 8192, 0),
            ("the prompt is not in 1~8192", 0, 8192, 0),
            ("the prompt grew from 10 to 9000 tokens", 9000, 0, 0),
            ("the prompt has 9000 tokens and that is more than this model reads at its maximum", 9000, 0, 0),
            ("the prompt has 9000 tokens", 9000, 0, 0),
            ("9,000/8,192 tokens", 9000, 8192, 0),
            ("a prompt of 2.5m tokens, the limit is 1m tokens", 2_000_000, 1_000_000, 0),
            ("the limit is 8192tokens, got 9000tokens", 9000, 8192, 0),
            ("request 9000f of the client: the limit is 8192 tokens", 0, 8192, 0),
            ("150% of the context length of 8192 tokens", 0, 8192, 0),
            ("the limit is 8192 tokens: 9000 in the prompt, 1000 for the output, 10000 in total", 9000, 8192, 1000),
        ] {
            let found = tokens(&fold(text));
            let expected = Numbers { input: n(actual), limit: n(limit), requested: n(requested), ..Numbers::default() };
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    #[rustfmt::skip]
    fn bytes_are_read_with_their_units() {
        for (text, actual, limit) in [
            ("Maximum request body size 1048576 bytes exceeded, got 2000000 bytes", 2_000_000, 1 << 20),
            ("request body exceeds 10 MB", 0, 10 << 20),
            ("request body exceeds 10 M", 0, 10 << 20),
            ("request body exceeds 2 GB", 0, 2 << 30),
            ("request body exceeds 512 KB", 0, 512_000),
            ("request body exceeds 512 KiB", 0, 512 << 10),
            ("request body exceeds 512kib", 0, 512 << 10),
            ("request body exceeds 4.5MiB", 0, 4 << 20),
            ("request body exceeds 2 GiB", 0, 2 << 30),
            ("request body exceeds 512000 bytes", 0, 512_000),
            ("body too large: 20.5MB, limit 4.5MB", 20 << 20, 4 << 20),
            ("the limit is 8192 tokens", 0, 0),
        ] {
            let found = bytes(&fold(text));
            assert_eq!((found.input, found.limit), (n(actual), n(limit)), "{text}");
        }
    }
}
