//! Estimate: messages to tokens. The one place that counts.
//!
//! What will be sent is walked by type: system, tools, every block, and a fixed cost for each message;
//! never the length of the JSON. Text is weighed by script ([`script`]), images by their size
//! ([`images`]). The trigger, the cut and the report all use this count, so they cannot disagree.
//!
//! Where a provider has counted (`_meta.usage`, or the number in a refusal), its number stands for
//! what it covered, and the estimate only for the rest. Which counts are used is decided in [`Estimate::of`]
//! alone, for every program.

pub mod budget;
mod counted;
mod families;
pub mod images;
pub mod models;
pub mod report;
pub mod script;
pub mod windows;

use crate::json::{self, Object, elements};
use crate::messages::Message;
use crate::record::content::{Block, BlockKind, Content};
use crate::record::scale::Scale;
pub use budget::Budget;
use counted::Anchor;
pub use counted::Unused;

/// Tokens that a message costs beside its content: role and turn markers. Not published by any
/// provider; chat templates of open models take 4 to 8.
const MESSAGE: u64 = 8 * script::UNIT;
/// Tokens that a call or a result costs beside its content: block markers and its id.
const CALL: u64 = 24 * script::UNIT;
/// Tokens that a request with tools costs beside them: the provider's own instructions on their use.
/// Anthropic's documentation gives 264 to 530 by model.
const TOOLS: u64 = 530 * script::UNIT;
/// A document whose pages cannot be told costs one token for so many bytes of its base64.
const DOCUMENT_BYTES: u64 = 12;

/// How text is weighed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Method {
    /// By script and kind of text.
    #[default]
    Script,
    /// claw0's: characters divided by four, block by block; for comparison only.
    Chars4,
}

/// What will be sent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Request<'r, 'a> {
    /// The messages.
    pub messages: &'r [Message<'a>],
    /// The system prompt.
    pub system: Option<&'r str>,
    /// The tools, as the JSON array that is sent.
    pub tools: Option<&'r str>,
    /// The model that is asked, if it is known: counts of another family's models are not used.
    pub model: Option<&'r str>,
}

/// Tokens by kind of content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kinds {
    /// Text of the user's and the assistant's.
    pub text: u64,
    /// Calls: names and inputs.
    pub calls: u64,
    /// Results of calls.
    pub results: u64,
    /// Thinking.
    pub thinking: u64,
    /// Images and documents.
    pub media: u64,
    /// Anything else, and the fixed cost of each message.
    pub other: u64,
}

/// What a request costs. All numbers are tokens but `bytes`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Estimate {
    /// The whole prompt: `measured` and the estimate of what it does not cover.
    pub tokens: u64,
    /// The whole prompt if no provider had counted.
    pub unmeasured: u64,
    /// What the provider counted for the system prompt, the tools and the messages up to
    /// `measured_messages`; 0 when nothing is known.
    pub measured: u64,
    /// How many messages from the first one `measured` covers.
    pub measured_messages: usize,
    /// Where nothing is measured: what `unmeasured` is multiplied by, if a count that no longer holds told it.
    pub scale: Option<Scale>,
    /// The newest count that is not used, if there is one after those that are.
    pub unused: Option<Unused>,
    /// The estimate of the system prompt.
    pub system: u64,
    /// The estimate of the tools.
    pub tools: u64,
    /// The estimates of all messages, by kind.
    pub kinds: Kinds,
    /// The estimate of each message.
    pub messages: Vec<u64>,
    /// The request's length in bytes, about: messages, system prompt and tools as they are sent.
    pub bytes: u64,
}

impl Estimate {
    /// Takes the provider's own count of the whole prompt instead.
    pub fn measure_all(&mut self, counted: u64) {
        (self.tokens, self.measured) = (counted, counted);
        self.measured_messages = self.messages.len();
        (self.scale, self.unused) = (None, None);
    }

    /// Estimates a request.
    #[must_use]
    pub fn of(request: Request<'_, '_>, method: Method) -> Estimate {
        let mut kinds = Kinds::default();
        let weights: Vec<u64> =
            request.messages.iter().map(|message| weigh(message, method, &mut kinds)).collect();
        let system = request.system.map_or(0, |system| weigh_system(system, method));
        let tools = request.tools.map_or(0, |tools| weigh_tools(tools, method));
        let weight = system + tools + weights.iter().sum::<u64>();
        let (anchor, unused) = counted::find(&request, system + tools, &weights);
        let is_scaled = anchor.is_none() && method == Method::Script;
        let scale = scale_of(request.messages).filter(|_| is_scaled);
        let json = |text: Option<&str>| text.map_or(0, str::len);
        let bytes: usize = request.messages.iter().map(|m| m.to_json().len() + 1).sum();
        Estimate {
            tokens: size(anchor, scale.unwrap_or_default(), weight),
            unmeasured: tokens(weight),
            measured: anchor.map_or(0, |anchor| anchor.tokens),
            measured_messages: anchor.map_or(0, |anchor| anchor.covered),
            scale,
            unused,
            system: tokens(system),
            tools: tokens(tools),
            kinds: kinds.in_tokens(),
            messages: weights.into_iter().map(tokens).collect(),
            bytes: (bytes + json(request.system) + json(request.tools)) as u64,
        }
    }
}

impl Kinds {
    fn in_tokens(self) -> Kinds {
        Kinds {
            text: tokens(self.text),
            calls: tokens(self.calls),
            results: tokens(self.results),
            thinking: tokens(self.thinking),
            media: tokens(self.media),
            other: tokens(self.other),
        }
    }
}

/// The size of a request: what is measured and the estimate of the rest, or else the scaled estimate.
fn size(anchor: Option<Anchor>, scale: Scale, weight: u64) -> u64 {
    match anchor {
        Some(anchor) => anchor.tokens.saturating_add(tokens(weight - anchor.weight)),
        None => scale.apply(tokens(weight)),
    }
}

/// The scale of the estimates by counts that no longer hold.
fn scale_of(messages: &[Message<'_>]) -> Option<Scale> {
    messages.first()?.meta.as_ref()?.scale
}

/// Turns estimates of one request and of changed versions of it into tokens: what a provider said of
/// the request sets how much a token of ours is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gauge {
    /// The factor of estimates where no count holds; `None` if no provider counted.
    scale: Option<Scale>,
    /// A refusal counted the whole request, so older counts are not used.
    is_told: bool,
    unused: Option<Unused>,
}

impl Gauge {
    /// A gauge for `request`. `actual` is the count that a refusal of this very request named; else
    /// what the provider counted for a part of it is used; else ours stand as they are.
    #[must_use]
    pub fn new(request: Request<'_, '_>, actual: Option<u64>) -> Gauge {
        let estimate = Estimate::of(request, Method::Script);
        let by_count = |count| Scale::new(count, estimate.unmeasured);
        let measured = (estimate.measured > 0).then(|| by_count(estimate.tokens));
        let scale = actual.map(by_count).or(measured).or(estimate.scale);
        let unused = estimate.unused.filter(|_| actual.is_none());
        Gauge { scale, is_told: actual.is_some(), unused }
    }

    /// The newest count of the request that is not used, if there is one.
    #[must_use]
    pub fn unused(&self) -> Option<Unused> {
        self.unused
    }

    /// Tokens of a request: the same as its [`Estimate`] has, unless a refusal told better.
    #[must_use]
    pub fn tokens(&self, request: Request<'_, '_>) -> u64 {
        self.tally(request).tokens()
    }

    /// The count of a request that is about to be changed, block by block.
    #[must_use]
    pub fn tally(&self, request: Request<'_, '_>) -> Tally {
        let script = Method::Script;
        let system = request.system.map_or(0, |system| weigh_system(system, script));
        let tools = request.tools.map_or(0, |tools| weigh_tools(tools, script));
        let kinds = &mut Kinds::default();
        let weights: Vec<u64> =
            request.messages.iter().map(|message| weigh(message, script, kinds)).collect();
        let base = system + tools;
        let anchor = if self.is_told { None } else { counted::find(&request, base, &weights).0 };
        Tally { gauge: *self, weight: base + weights.iter().sum::<u64>(), anchor }
    }

    /// For each message the tokens of the request without the messages before it.
    #[must_use]
    pub fn rests(&self, request: Request<'_, '_>) -> Vec<u64> {
        let mut rest = self.tally(Request { messages: &[], ..request });
        let kinds = &mut Kinds::default();
        let mut rests: Vec<u64> = Vec::with_capacity(request.messages.len());
        for message in request.messages.iter().rev() {
            rest.weight += weigh(message, Method::Script, kinds);
            rests.push(rest.tokens());
        }
        rests.reverse();
        rests
    }

    /// Tokens of one message.
    #[must_use]
    pub fn message(&self, message: &Message<'_>) -> u64 {
        self.scaled(tokens(weigh(message, Method::Script, &mut Kinds::default())))
    }

    /// Tokens of one block.
    #[must_use]
    pub fn block(&self, block: &Block<'_>) -> u64 {
        self.scaled(tokens(weight_of(block)))
    }

    /// Tokens of a text.
    #[must_use]
    pub fn text(&self, text: &str) -> u64 {
        self.scaled(tokens(script::weigh(text)))
    }

    /// Tokens for an estimate of ours.
    #[must_use]
    pub fn scaled(&self, ours: u64) -> u64 {
        self.scale.unwrap_or_default().apply(ours)
    }

    /// The scale, for messages that no count holds for any longer.
    #[must_use]
    pub fn scale(&self) -> Option<Scale> {
        self.scale
    }
}

/// A running count: what changes is weighed, and the rest is not weighed again.
#[derive(Clone, Copy, Debug)]
pub struct Tally {
    gauge: Gauge,
    weight: u64,
    anchor: Option<Anchor>,
}

impl Tally {
    /// Tokens of the whole request.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        size(self.anchor, self.gauge.scale.unwrap_or_default(), self.weight)
    }

    /// The factor of the estimates now; `None` while a count holds, and if there never was one.
    #[must_use]
    pub fn scale(&self) -> Option<Scale> {
        self.gauge.scale.filter(|_| self.anchor.is_none())
    }

    /// Returns whether one block costs less than another.
    #[must_use]
    pub fn is_smaller(&self, new: &Block<'_>, old: &Block<'_>) -> bool {
        weight_of(new) < weight_of(old)
    }

    /// Puts a block of the request in the place of another, in one of its messages. A count that covers this
    /// message no longer holds.
    pub fn replace(&mut self, message: usize, old: &Block<'_>, new: &Block<'_>) {
        self.anchor = self.anchor.filter(|anchor| anchor.covered <= message);
        self.weight = (self.weight + weight_of(new)).saturating_sub(weight_of(old));
    }
}

/// Whole tokens for a weight, rounded up.
fn tokens(weight: u64) -> u64 {
    weight.div_ceil(script::UNIT)
}

fn text(text: &str, method: Method) -> u64 {
    match method {
        Method::Script => script::weigh(text),
        Method::Chars4 => text.chars().count() as u64 / 4 * script::UNIT,
    }
}

fn weigh_system(system: &str, method: Method) -> u64 {
    match method {
        Method::Script => script::weigh(system),
        Method::Chars4 => 0,
    }
}

fn weigh_tools(tools: &str, method: Method) -> u64 {
    match method {
        Method::Script => TOOLS + script::weigh(tools),
        Method::Chars4 => 0,
    }
}

/// The weight of a message, which is also added to `kinds`.
fn weigh(message: &Message<'_>, method: Method, kinds: &mut Kinds) -> u64 {
    let overhead = if method == Method::Script { MESSAGE } else { 0 };
    kinds.other += overhead;
    let content = match &message.content {
        Content::Text(raw) => {
            let weight = text(&json::string(raw).unwrap_or_default(), method);
            kinds.text += weight;
            weight
        }
        Content::Blocks(blocks) => {
            blocks.iter().map(|block| weigh_block(block, method, kinds)).sum()
        }
    };
    overhead + content
}

fn weight_of(block: &Block<'_>) -> u64 {
    weigh_block(block, Method::Script, &mut Kinds::default())
}

fn weigh_block(block: &Block<'_>, method: Method, kinds: &mut Kinds) -> u64 {
    let Ok(object) = Object::parse(&block.raw) else { return 0 };
    let string = |name: &str| object.string(name).map_or(0, |said| text(&said, method));
    let script = method == Method::Script;
    let (kind, weight) = match block.kind {
        BlockKind::Text | BlockKind::Blank => (&mut kinds.text, string("text")),
        BlockKind::ToolUse { .. } => {
            let name = if script { CALL + string("name") } else { 0 };
            let input = object.get("input").map_or(0, |input| text(&as_sent(input), method));
            (&mut kinds.calls, name + input)
        }
        BlockKind::ToolResult { .. } => {
            let overhead = if script { CALL } else { 0 };
            let content = object.get("content").map_or(0, |raw| weigh_result(raw, method));
            (&mut kinds.results, overhead + content)
        }
        BlockKind::Thinking { .. } => {
            let is_redacted = object.get("thinking").is_none();
            let weigh = || if is_redacted { script::weigh(&block.raw) } else { string("thinking") };
            (&mut kinds.thinking, if script { weigh() } else { 0 })
        }
        BlockKind::Media => (&mut kinds.media, if script { weigh_media(&object) } else { 0 }),
        BlockKind::Other => (&mut kinds.other, if script { script::weigh(&block.raw) } else { 0 }),
    };
    *kind += weight;
    weight
}

/// JSON with its escapes of other scripts resolved, as a model reads it.
fn as_sent(json: &str) -> String {
    if !json.contains("\\u") {
        return json.to_owned();
    }
    // A value that cannot be read is weighed as it stands.
    serde_json::from_str::<serde_json::Value>(json)
        .map_or(json.to_owned(), |value| value.to_string())
}

fn weigh_result(raw: &str, method: Method) -> u64 {
    if let Some(said) = json::string(raw) {
        return text(&said, method);
    }
    if method == Method::Chars4 {
        return 0;
    }
    let blocks = elements(raw).unwrap_or_default();
    let kinds = &mut Kinds::default();
    let block = |raw| Block::parse(raw).map_or(0, |block| weigh_block(&block, method, kinds));
    blocks.into_iter().map(block).sum()
}

fn weigh_media(object: &Object<'_>) -> u64 {
    let source = object.get("source").and_then(|source| Object::parse(source).ok());
    let unknown = images::UNKNOWN * script::UNIT;
    let Some(source) = source else { return unknown };
    let data = source.string("data").unwrap_or_default();
    let is_document = object.string("type").as_deref() == Some("document");
    match source.string("type").as_deref() {
        Some("text") => script::weigh(&data),
        Some("base64") if is_document => {
            (data.len() as u64 / DOCUMENT_BYTES * script::UNIT).max(unknown)
        }
        Some("base64") => images::tokens(&data) * script::UNIT,
        _ => unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages;

    fn tokens_of(line: &str) -> u64 {
        let messages = messages::read("t", line.as_bytes()).unwrap();
        let request = Request { messages: &messages, ..Request::default() };
        Estimate::of(request, Method::Script).tokens
    }

    #[test]
    fn v35_everything_that_is_sent_counts() {
        let with = |block: &str| tokens_of(&format!(r#"{{"role":"user","content":[{block}]}}"#));
        let empty = tokens_of(r#"{"role":"user","content":""}"#);
        for block in [
            r#"{"type":"image","source":{"type":"url","url":"x"}}"#,
            r#"{"type":"image","source":{"type":"base64","media_type":"image/png","data":"eA=="}}"#,
            r#"{"type":"thinking","thinking":"some words to think","signature":"s"}"#,
            r#"{"type":"tool_use","id":"a","name":"f","input":{}}"#,
            r#"{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"words"}]}"#,
            r#"{"type":"new_kind","data":"some words"}"#,
        ] {
            assert!(with(block) > empty, "{block}");
        }
        let messages = messages::read("t", br#"{"role":"user","content":"x"}"#).unwrap();
        let bare = Request { messages: &messages, ..Request::default() };
        let count = |request| Estimate::of(request, Method::Script).tokens;
        assert!(count(Request { system: Some("be brief"), ..bare }) > count(bare));
        assert!(count(Request { tools: Some("[]"), ..bare }) > count(bare) + 264);
    }

    #[test]
    fn v36_the_newest_usage_counts_with_its_cache_fields() {
        let line = r#"{"role":"assistant","content":"a","_meta":{"id":"x","usage":{"input_tokens":10,"cache_read_input_tokens":150000,"cache_creation_input_tokens":20000,"output_tokens":500}}}"#;
        let first = format!(r#"{{"role":"user","content":"{}"}}"#, "word ".repeat(150_000));
        let text = format!("{first}\n{line}\n{}", r#"{"role":"user","content":"and now?"}"#);
        let messages = messages::read("t", text.as_bytes()).unwrap();
        let request = Request { messages: &messages, system: Some("s"), ..Request::default() };
        let estimate = Estimate::of(request, Method::Script);
        assert_eq!((estimate.measured, estimate.measured_messages), (170_510, 2));
        assert_eq!(estimate.tokens, 170_510 + estimate.messages[2]);
    }

    #[test]
    fn chars4_is_what_claw0_counts() {
        let line = r#"{"role":"user","content":[{"type":"text","text":"日本語日本語"},{"type":"text","text":"abc"},{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"not counted"}]}]}"#;
        let messages = messages::read("t", line.as_bytes()).unwrap();
        let system = Some("not counted");
        let request = Request { messages: &messages, system, ..Request::default() };
        assert_eq!(Estimate::of(request, Method::Chars4).tokens, 1);
    }

    #[test]
    fn a_refusal_that_names_the_count_sets_the_gauge() {
        let messages =
            messages::read("t", br#"{"role":"user","content":"some words here"}"#).unwrap();
        let request = Request { messages: &messages, ..Request::default() };
        let ours = Gauge::new(request, None).tokens(request);
        assert_eq!(Gauge::new(request, Some(ours * 2)).tokens(request), ours * 2);
    }
}
