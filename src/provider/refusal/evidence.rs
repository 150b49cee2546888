//! Judges a refusal that no rule knows, by what it says: words for a thing that has a size, words for too much, and
//! numbers, in the languages that providers use. What the caller knows about the request is weighed by [`super::Failure::weigh`].
//!
//! Only the provider's own words count, as in [`super::text`]: a quotation is left out, and reading stops where a
//! sentence about a tool, an output or a value introduces one. Words for a rate, a quota, a key or a time limit speak
//! against an overflow, and so do the names of other parameters, and things that are not the prompt.
//!
//! The judgement is never certain. A wrong one costs a step that can be undone and one more request; a missed one ends
//! the session.

mod digits;
mod numbers;
mod sentence;
mod words;

use super::opening;
use super::text::Numbers;
use sentence::{Words, fold};
use words::{
    BODY, CONTEXT, LENGTH, LIMIT, MEDIA, NOT_TAKEN, OTHER, OUTPUT, PARAMETER, PROMPT, RATE,
    REQUEST, REQUESTS, SETTING, SHORTEN, SHORTER, SIZE, SOURCE, SPACE, SUSPECT, TOKENS, TOO_LITTLE,
    TOO_LONG, TOO_MUCH, UNRELATED, WHOLE,
};

/// The number of bytes of a message that are read. Providers state what is wrong at the beginning.
const READ_BYTES: usize = 1200;
/// The longest name, in bytes, that may stand in quotation marks without being a quotation.
const NAME_BYTES: usize = 40;
/// The smallest number that counts as a window on its own.
const MIN_LIMIT: u64 = 256;
/// The smallest output limit that is believed.
const MIN_CAP: u64 = 16;

/// The quantity that is too much, according to a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Excess {
    /// The prompt, in tokens.
    Tokens,
    /// The body, in bytes.
    Bytes,
    /// The request, in tokens or bytes.
    Either,
    /// The requested output, in tokens.
    Output,
}

/// The meaning of a message, as far as its words and numbers tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Judgement {
    pub(super) excess: Excess,
    /// The words that decided.
    pub(super) why: String,
    /// The numbers, in tokens.
    pub(super) numbers: Numbers,
}

/// Judges the message of a refusal. Returns `None` unless it says that the request is too large.
pub(super) fn judge(text: &str) -> Option<Judgement> {
    let own = own_words(text);
    let all = Words::of(&own);
    if is_rate(&all) || all.any(UNRELATED) {
        return None;
    }
    let sentences = sentences(&own);
    let found = sentences.iter().find_map(|sentence| excess(&Words::of(sentence), sentence));
    // The thing and its limit may stand in two sentences.
    let Finding { excess, thing, too } = found.or_else(|| together(&all, &own))?;
    if too == "too small" && all.any(TOO_LITTLE) {
        return None;
    }
    let why = format!("it says '{}' and '{}'", plain(thing), plain(too));
    let numbers = numbers::tokens(&own);
    match excess {
        Excess::Output => {
            let cap = numbers.limit.filter(|cap| *cap >= MIN_CAP)?;
            let requested = numbers.requested.or(numbers.input);
            let numbers = Numbers { cap: Some(cap), requested, ..Numbers::default() };
            Some(Judgement { excess, why, numbers })
        }
        Excess::Tokens => Some(Judgement { excess, why, numbers }),
        Excess::Bytes | Excess::Either => {
            Some(Judgement { excess, why, numbers: Numbers::default() })
        }
    }
}

/// Returns the limit in bytes that a message states.
pub(super) fn limit_in_bytes(text: &str) -> Option<u64> {
    numbers::bytes(&own_words(text)).limit
}

/// Returns the word of a message that makes a block of the request suspect.
pub(super) fn suspect_block(text: &str) -> Option<&'static str> {
    let own = own_words(text);
    Words::of(&own).find(SUSPECT)
}

/// Returns the word of a message that names media.
pub(super) fn media(text: &str) -> Option<&'static str> {
    let own = own_words(text);
    Words::of(&own).find(MEDIA)
}

/// Returns the word of a message that names media, if the message says that they cannot be read.
pub(super) fn media_not_taken(text: &str) -> Option<&'static str> {
    let own = own_words(text);
    let all = Words::of(&own);
    all.find(MEDIA).filter(|_| all.any(NOT_TAKEN) && !is_unrelated(text))
}

/// Returns true if the message names something that a user sets, such as the model or a parameter.
pub(super) fn is_about_setting(text: &str) -> bool {
    let own = own_words(text);
    Words::of(&own).any(SETTING)
}

/// Returns true if the message says that the request is about a rate, a key or a time limit.
pub(super) fn is_unrelated(text: &str) -> bool {
    let own = own_words(text);
    let all = Words::of(&own);
    // The word for an output alone may be that of a tool.
    let limits: Vec<_> = OUTPUT.iter().copied().filter(|it| it.contains("token")).collect();
    is_rate(&all) || all.any(UNRELATED) || all.any(PARAMETER) || all.any(&limits)
}

/// Returns true if the message is about a rate, a quota or an account.
fn is_rate(words: &Words<'_>) -> bool {
    words.any(RATE) || words.any(REQUESTS) && !words.any(&["per request", "each request"])
}

/// The quantity that is too much, according to a sentence, and the words that say so.
struct Finding {
    excess: Excess,
    thing: &'static str,
    too: &'static str,
}

/// Judges one sentence.
fn excess(words: &Words<'_>, sentence: &str) -> Option<Finding> {
    let find = |excess, thing, too| Some(Finding { excess, thing, too });
    let is_symbolic = sentence.contains(" > ") && numbers::tokens(sentence) == Numbers::default();
    let compared = (is_symbolic || numbers::compares(sentence)).then_some(">");
    let (long, much) = (words.find(TOO_LONG), words.find(TOO_MUCH).or(compared));
    let prompt = words.find(PROMPT);
    if is_too_little(words) && long.is_none() {
        return None;
    }
    if words.any(OUTPUT) && !words.any(CONTEXT) {
        let stated = long.or(much).or_else(|| words.find(LIMIT))?;
        return find(Excess::Output, words.find(OUTPUT)?, stated);
    }
    if words.any(PARAMETER) && !words.any(CONTEXT) {
        return None;
    }
    let is_about_other = words.any(OTHER) && !words.any(TOKENS) && !is_about_prompt(words);
    if is_about_other {
        return None;
    }
    let too = long.or(much);
    let in_bytes = numbers::bytes(sentence) != Numbers::default();
    if let Some(body) = words.find(BODY).or_else(|| words.find(REQUEST).filter(|_| in_bytes))
        && prompt.is_none()
        && let Some(too) = too.or_else(|| words.find(LIMIT).filter(|_| in_bytes))
    {
        return find(Excess::Bytes, body, too);
    }
    if let Some(prompt) = prompt {
        if let Some(too) = too.or_else(|| words.find(SHORTEN)) {
            return find(Excess::Tokens, prompt, too);
        }
        // A refusal that only states the limit.
        let states_limit = numbers::tokens(sentence).limit.is_some_and(|limit| limit >= MIN_LIMIT);
        let limit = words.find(LIMIT).filter(|_| states_limit && !is_too_little(words))?;
        return find(Excess::Tokens, prompt, limit);
    }
    let Some(request) = words.find(REQUEST) else {
        // A sentence that names nothing else is about the prompt. A name in quotation marks leaves two spaces.
        let is_bare = !sentence.contains("  ") && !words.any(&["value*"]);
        let length = words.find(LENGTH).filter(|_| is_bare)?;
        return find(Excess::Tokens, length, too?);
    };
    if let Some(long) = long.or_else(|| words.find(SHORTER)) {
        return find(Excess::Tokens, request, long);
    }
    if let Some(much) = much {
        let is_either = words.any(SPACE) && words.any(WHOLE);
        let excess = if is_either { Excess::Either } else { Excess::Tokens };
        let is_sized = words.any(SPACE) || words.any(SIZE);
        return is_sized.then_some(Finding { excess, thing: request, too: much });
    }
    let found = numbers::tokens(sentence);
    let is_more = is_more(&found) && found.limit.is_some_and(|limit| limit >= MIN_LIMIT);
    let shorten = || words.find(SHORTEN);
    let too = words.find(LIMIT).filter(|_| is_more).or_else(shorten).filter(|_| words.any(SIZE))?;
    find(Excess::Tokens, request, too)
}

/// Judges a message as a whole, in which one sentence names the prompt and another says that it is too much.
fn together(all: &Words<'_>, own: &str) -> Option<Finding> {
    let is_other = all.any(OTHER) || all.any(OUTPUT) || all.any(PARAMETER) || is_too_little(all);
    let prompt = all.find(PROMPT).filter(|_| !is_other)?;
    let is_more = is_more(&numbers::tokens(own)) && all.any(TOKENS);
    let compared = || is_more.then_some("two numbers");
    let too = all.find(TOO_LONG).or_else(|| all.find(TOO_MUCH)).or_else(compared)?;
    Some(Finding { excess: Excess::Tokens, thing: prompt, too })
}

fn is_more(found: &Numbers) -> bool {
    found.input.zip(found.limit).is_some_and(|(input, limit)| input > limit)
}

/// Returns true if the sentence names a minimum.
fn is_too_little(words: &Words<'_>) -> bool {
    words.any(TOO_LITTLE)
}

/// Returns true if it is the prompt that is too long, although the sentence also names something else: the word next to
/// the words for too long decides.
fn is_about_prompt(words: &Words<'_>) -> bool {
    let Some(too) = words.last_of(TOO_LONG) else { return false };
    let near = |list: &[&'static str]| words.last_before(list, too);
    near(PROMPT).or(near(REQUEST)) > near(OTHER)
}

/// Returns the evidence of a single word of the vocabulary.
pub(super) fn says(word: &str) -> String {
    format!("it says '{}'", plain(word))
}

/// Returns an entry of the vocabulary without the marks of its stems.
fn plain(entry: &str) -> String {
    entry.replace('*', "")
}

/// Returns the provider's own words in `text`, folded: without the prefixes of gateways and without quotations.
fn own_words(text: &str) -> String {
    let text = opening::all(text).last().copied().unwrap_or_default();
    let folded = fold(super::bounded(text, READ_BYTES));
    let own = without_quotations(&folded);
    let mut end = 0;
    for (at, mark, after) in boundaries(&own) {
        let sentence = &own[end..at];
        let words = Words::of(sentence);
        let says_enough = excess(&words, sentence).is_some();
        if words.any(SOURCE) && !says_enough {
            return own[..at].to_owned();
        }
        if mark != ':' {
            end = after;
        }
    }
    own
}

/// Returns the places in `text` where a sentence ends or a colon stands: the offset of the mark, the mark, and the
/// offset after it.
fn boundaries(text: &str) -> Vec<(usize, char, usize)> {
    let mut all = Vec::new();
    for (at, mark) in text.char_indices() {
        let after = at + mark.len_utf8();
        let is_spaced = text[after..].chars().next().is_none_or(char::is_whitespace);
        let is_end = match mark {
            '.' | ':' | '?' => is_spaced,
            ';' | '!' | '\n' | '。' | '；' | '！' | '？' => true,
            _ => false,
        };
        if is_end {
            all.push((at, mark, after));
        }
    }
    all
}

fn sentences(text: &str) -> Vec<&str> {
    let mut start = 0;
    let mut all = Vec::new();
    for (at, _, after) in boundaries(text).into_iter().filter(|(_, mark, _)| *mark != ':') {
        all.push(&text[start..at]);
        start = after;
    }
    all.push(&text[start..]);
    all
}

/// Removes quotations from a folded text. A name in quotation marks stays, such as that of a parameter, unless it says
/// that something is too much. A quotation without an end, and JSON, end the text.
fn without_quotations(text: &str) -> String {
    let mut own = String::with_capacity(text.len());
    let mut rest = text;
    let mut last = ' ';
    while let Some(first) = rest.chars().next() {
        let inside = &rest[first.len_utf8()..];
        let is_joined = first == '\'' && last.is_alphanumeric();
        let Some(close) = closing(first).filter(|_| !is_joined) else {
            if first == '{' || (first == '[' && inside.trim_start().starts_with(['{', '"', '\''])) {
                break;
            }
            own.push(first);
            last = first;
            rest = inside;
            continue;
        };
        let Some(end) = end_of_quotation(inside, close) else { break };
        let is_bare = |c: char| !c.is_whitespace() && closing(c).is_none();
        let is_name = end <= NAME_BYTES && inside[..end].chars().all(is_bare);
        // A quotation may contain the mark itself, so it ends at the last one.
        let end = if is_name { end } else { inside.rfind(close).unwrap_or(end) };
        let quoted = &inside[..end];
        let words = Words::of(quoted);
        own.push(' ');
        if is_name && !words.any(TOO_LONG) && !words.any(TOO_MUCH) {
            own.push_str(quoted);
        }
        own.push(' ');
        last = ' ';
        rest = &inside[end + close.len_utf8()..];
    }
    own
}

/// Returns the mark that closes a quotation that `open` opens.
fn closing(open: char) -> Option<char> {
    match open {
        '"' | '\'' | '`' => Some(open),
        '“' => Some('”'),
        '«' => Some('»'),
        '„' => Some('“'),
        '「' => Some('」'),
        '『' => Some('』'),
        _ => None,
    }
}

/// Returns the offset of the mark that closes a quotation. An apostrophe inside a word closes none.
fn end_of_quotation(text: &str, close: char) -> Option<usize> {
    let follows = |at: usize| text[at + close.len_utf8()..].chars().next();
    let ends = |at: &usize| close != '\'' || !follows(*at).is_some_and(char::is_alphanumeric);
    text.match_indices(close).map(|(at, _)| at).find(ends)
}

#[cfg(test)]
mod tests;
