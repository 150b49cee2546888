//! A reply of a model: its text and its tool calls.

use clawutils::input::Input;
use clawutils::input::lines::Lines;
use clawutils::json::write::Members;
use clawutils::json::{self, Object};
use clawutils::provider::cassette::canonical_text;
use clawutils::record::content::{Block, BlockKind, Content};
use clawutils::record::{Body, Record};
use clawutils::usage::Counts;
use std::borrow::Cow;

/// A tool call of a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolCall {
    /// The name of the tool.
    pub name: String,
    /// The input as canonical JSON: equal inputs have the same text.
    pub input: String,
}

/// A reply. Thinking and the ids of calls are not part of it, because they differ each time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    /// The text.
    pub text: String,
    /// The tool calls, in order.
    pub calls: Vec<ToolCall>,
}

impl Reply {
    /// Adds the content of a record, if it belongs to a reply.
    pub fn take(&mut self, body: &Body<'_>) {
        match body {
            Body::Assistant { content, .. } => self.take_content(content),
            Body::ToolUse { name, input, .. } => self.take_call(name, input),
            _ => {}
        }
    }

    fn take_content(&mut self, content: &Content<'_>) {
        let text = content.text();
        if !self.text.is_empty() && !text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(&text);
        content.blocks().iter().for_each(|block| self.take_block(block));
    }

    /// Adds a block if it is a tool call. Transcripts of other programs have tool calls in the content.
    fn take_block(&mut self, block: &Block<'_>) {
        if let BlockKind::ToolUse { .. } = block.kind {
            let member = |name| block.member(name).unwrap_or("{}");
            self.take_call(member("name"), member("input"));
        }
    }

    /// Adds a call. Its name and its input are JSON.
    fn take_call(&mut self, name: &str, input: &str) {
        let name = json::string(name).map(Cow::into_owned).unwrap_or_default();
        self.calls.push(ToolCall { name, input: canonical_text(input) });
    }

    /// Adds the text and the calls to a JSON object.
    pub fn add_to(&self, members: Members) -> Members {
        members.string("text", &self.text).objects("calls", &self.calls, |members, call| {
            members.string("name", &call.name).raw("input", &call.input)
        })
    }

    /// Parses the members that [`Reply::add_to`] writes.
    pub fn parse(object: &Object<'_>) -> Option<Reply> {
        let call = |raw: &str| {
            let object = Object::parse(raw).ok()?;
            let name = object.string("name")?.into_owned();
            Some(ToolCall { name, input: canonical_text(object.get("input")?) })
        };
        let calls = json::elements(object.get("calls")?)?;
        let calls = calls.into_iter().map(call).collect::<Option<_>>()?;
        Some(Reply { text: object.string("text")?.into_owned(), calls })
    }
}

/// A new reply, with its model and its token counts.
#[derive(Clone, Debug, Default)]
pub struct NewReply {
    /// The reply.
    pub reply: Reply,
    /// The model that replied, if the provider named it.
    pub model: Option<String>,
    /// The tokens that the provider counted.
    pub counts: Option<Counts>,
}

impl NewReply {
    /// Reads the records that `claw-call` writes. Returns `None` if there is no reply among them.
    pub fn read(records: Vec<u8>) -> Option<NewReply> {
        let input = Input::memory("<reply>", records);
        let mut lines = Lines::of(&input);
        let (mut new, mut is_reply) = (NewReply::default(), false);
        while let Some(batch) = lines.batch().ok()? {
            for record in batch.filter_map(|line| Record::new(line.ok()?).ok()) {
                new.reply.take(&record.body);
                if let Body::Assistant { usage, model, .. } = &record.body {
                    is_reply = true;
                    let name = model.as_deref().and_then(json::string).map(Cow::into_owned);
                    new.model = name.or(new.model);
                    let counts = usage.as_deref().and_then(Counts::read);
                    let before = new.counts.unwrap_or_default();
                    new.counts = counts.map(|counts| before + counts).or(new.counts);
                }
            }
        }
        is_reply.then_some(new)
    }
}
