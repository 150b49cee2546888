//! Sessions with poisons: something in them that a provider refuses whenever it is sent.

use serde_json::{Value, json};

use super::choices::Choices;
use super::media;

/// A session that is being made.
pub struct Session {
    pub records: Vec<Value>,
    pub tools: Vec<Value>,
    /// The number of the next call.
    next: usize,
}

/// A signature of the provider's own models.
pub const SIGNED: &str = "c2lnbmVkLWhlcmU=";

impl Session {
    fn add(&mut self, record: Value) {
        self.records.push(record);
    }

    fn user(&mut self, content: Value) {
        self.add(json!({"type": "user", "content": content}));
    }

    fn reply(&mut self, content: Value) {
        self.add(json!({"type": "assistant", "content": content}));
    }

    /// Adds a call and its result.
    fn call(&mut self, id: &str, name: &str, input: Value, result: Value) {
        self.add(json!({"type": "tool_use", "tool_use_id": id, "name": name, "input": input}));
        self.add(json!({"type": "tool_result", "tool_use_id": id, "content": result}));
    }

    /// Adds a turn with a call whose result is this.
    fn result(&mut self, result: Value) {
        let id = self.id();
        self.user(json!("Look."));
        self.call(&id, "shot", json!({}), result);
        self.reply(json!("I see."));
    }

    /// Adds a turn with a prompt of these blocks.
    fn prompt(&mut self, blocks: Value) {
        self.user(blocks);
        self.reply(json!("I see."));
    }

    fn id(&mut self) -> String {
        self.next += 1;
        format!("call_{}", self.next)
    }

    fn define(&mut self, name: &str) {
        self.tools
            .push(json!({"name": name, "input_schema": {"type": "object", "properties": {}}}));
    }
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn png(width: u32, height: u32) -> Value {
    media::image("image/png", &media::png(width, height))
}

/// Returns an image with this data.
fn raw(media_type: &str, data: &str) -> Value {
    json!({"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}})
}

fn pdf(file: &[u8]) -> Value {
    media::document(file)
}

fn thinking(signature: Value) -> Value {
    let mut block = json!({"type": "thinking", "thinking": "Let me think."});
    if signature.is_string() {
        block["signature"] = signature;
    }
    block
}

/// A poison: its name, and how it gets into a session.
pub type Poison = (&'static str, fn(&mut Session));

/// Poisons that are quick to make.
pub const POISONS: &[Poison] = &[
    ("an image of 9000 pixels", |it| it.result(json!([png(9000, 3)]))),
    ("an image of 9000 pixels in a prompt", |it| it.prompt(json!([text("See:"), png(3, 9000)]))),
    ("an image of 3000 pixels among many", |it| {
        it.result(json!([png(3000, 2)]));
        (0..21).for_each(|_| it.result(json!([text("shot"), png(2, 2)])));
    }),
    ("a PNG that is called JPEG", |it| {
        it.result(json!([media::image("image/jpeg", &media::png(4, 4))]));
    }),
    ("an image without a media type", |it| {
        let data = media::base64(&media::png(4, 4));
        it.result(json!([{"type": "image", "source": {"type": "base64", "data": data}}]));
    }),
    ("an unknown media type", |it| {
        it.prompt(json!([media::image("image/x-png", &media::png(4, 4))]));
    }),
    ("a data address as data", |it| {
        let data = media::base64(&media::png(4, 4));
        it.result(json!([raw("image/png", &format!("data:image/png;base64,{data}"))]));
    }),
    ("a data address as link", |it| {
        let url = format!("data:image/png;base64,{}", media::base64(&media::png(4, 4)));
        it.prompt(json!([{"type": "image", "source": {"type": "url", "url": url}}]));
    }),
    ("base64 for addresses", |it| {
        let data = media::base64(&media::png(40, 41)).replace('+', "-").replace('/', "_");
        it.result(json!([raw("image/png", &data)]));
    }),
    ("base64 with line breaks", |it| {
        let data = media::base64(&media::png(40, 40));
        let lines: Vec<&str> = data.as_bytes().chunks(20).map(ascii).collect();
        it.result(json!([raw("image/png", &lines.join("\r\n"))]));
    }),
    ("base64 without padding", |it| {
        let mut file = media::png(4, 4);
        file.truncate(file.len() / 3 * 3);
        file.push(0);
        let data = media::base64(&[media::png(4, 4), vec![0; 1]].concat());
        it.result(json!([raw("image/png", data.trim_end_matches('='))]));
    }),
    ("an empty image", |it| it.result(json!([text("shot"), raw("image/png", "")]))),
    ("an image that is no base64", |it| it.result(json!([raw("image/png", "<binary>")]))),
    ("a torn PNG", |it| {
        it.result(json!([media::image("image/png", &media::png(90, 90)[..60])]));
    }),
    ("a PNG with a damaged picture", |it| {
        let mut file = media::png(90, 90);
        let end = file.len() - 20;
        file[60..end].fill(0xAA);
        it.result(json!([media::image("image/png", &file)]));
    }),
    ("a torn JPEG", |it| {
        let file = b"\xff\xd8\xff\xc0\0\x0b\x08\0\x01\0\x01\x01\x01\x11\0";
        it.result(json!([media::image("image/jpeg", file)]));
    }),
    ("a torn GIF", |it| {
        it.result(json!([media::image("image/gif", b"GIF89a\x01\0\x01\0\0\0\0")]));
    }),
    ("a torn WebP", |it| {
        it.result(json!([media::image("image/webp", b"RIFF\x24\0\0\0WEBPVP8 \x18")]));
    }),
    ("an SVG", |it| {
        it.result(json!([media::image(
            "image/svg+xml",
            b"<svg xmlns='http://www.w3.org/2000/svg'/>"
        )]));
    }),
    ("a BMP", |it| {
        let mut file =
            b"BM\x3a\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0\x01\0\0\0\x01\0\0\0\x01\0\x18\0".to_vec();
        file.extend([0; 24]);
        file.extend([1, 2, 3, 0]);
        it.result(json!([media::image("image/bmp", &file)]));
    }),
    ("a TIFF", |it| it.prompt(json!([media::image("image/tiff", b"II*\0\x08\0\0\0")]))),
    ("a bomb", |it| {
        let mut file = media::png(9, 9);
        file[16..24].copy_from_slice(&[0, 0, 0xEA, 0x60, 0, 0, 0xEA, 0x60]);
        it.result(json!([media::image("image/png", &file)]));
    }),
    ("an image as a document", |it| it.prompt(json!([pdf(&media::png(4, 4))]))),
    ("a document as an image", |it| {
        it.prompt(json!([media::image("image/png", &media::pdf(1))]));
    }),
    ("a document that is text", |it| it.result(json!([pdf(b"hello")]))),
    ("a document that is nothing", |it| it.prompt(json!([text("Read."), pdf(b"")]))),
    ("a torn document", |it| {
        let file = media::pdf(5);
        it.result(json!([pdf(&file[..file.len() / 2])]));
    }),
    ("a document with a password", |it| {
        let file = String::from_utf8(media::pdf(1)).unwrap_or_default();
        it.result(json!([pdf(file.replace("/Root", "/Encrypt 9 0 R /Root").as_bytes())]));
    }),
    ("a document of 200 pages", |it| it.result(json!([pdf(&media::pdf(200))]))),
    ("a document of 700 pages", |it| it.prompt(json!([text("Read."), pdf(&media::pdf(700))]))),
    ("many documents", |it| {
        (0..5).for_each(|_| it.result(json!([pdf(&media::pdf(30))])));
    }),
    ("110 images", |it| (0..110).for_each(|_| it.result(json!([text("shot"), png(2, 2)])))),
    ("an image in a reply", |it| it.reply(json!([text("Here:"), png(2, 2)]))),
    ("an image without a source", |it| it.prompt(json!([text("See."), {"type": "image"}]))),
    ("a name with dots", |it| {
        it.define("mcp.server/tool name");
        let id = it.id();
        it.call(&id, "mcp.server/tool name", json!({}), json!("done"));
    }),
    ("names that differ in a dot", |it| {
        for name in ["mcp.a/b", "mcp.a.b", "mcp_a_b"] {
            it.define(name);
            let id = it.id();
            it.call(&id, name, json!({}), json!("done"));
        }
    }),
    ("a long name", |it| {
        let name = "mcp".repeat(30);
        it.define(&name);
        let id = it.id();
        it.call(&id, &name, json!({}), json!("done"));
    }),
    ("a very long name", |it| {
        let (id, name) = (it.id(), "mcp.".repeat(60));
        it.define(&name);
        it.call(&id, &name, json!({}), json!("done"));
    }),
    ("an empty name", |it| {
        let id = it.id();
        it.call(&id, "", json!({}), json!("done"));
    }),
    ("a name that is missing", |it| {
        let id = it.id();
        it.add(json!({"type": "tool_use", "tool_use_id": id, "input": {}}));
        it.add(json!({"type": "tool_result", "tool_use_id": id, "content": "done"}));
    }),
    ("an id with a bar", |it| it.call("call|fc_1", "f", json!({}), json!("done"))),
    ("an id with a colon", |it| it.call("functions.f:0", "f", json!({}), json!("done"))),
    ("an empty id", |it| it.call("", "f", json!({}), json!("done"))),
    ("a long id", |it| it.call(&"call_".repeat(20), "f", json!({}), json!("done"))),
    ("the same id twice", |it| {
        it.call("again", "f", json!({}), json!("one"));
        it.user(json!("More."));
        it.call("again", "f", json!({}), json!("two"));
    }),
    ("an input that is a string", |it| {
        let id = it.id();
        it.call(&id, "f", json!("{\"a\":1}"), json!("done"));
    }),
    ("an input that is no JSON", |it| {
        let id = it.id();
        it.call(&id, "f", json!("ls -l"), json!("done"));
    }),
    ("an input that is a list", |it| {
        let id = it.id();
        it.call(&id, "f", json!([1, 2]), json!("done"));
    }),
    ("an input that is null", |it| {
        let id = it.id();
        it.call(&id, "f", Value::Null, json!("done"));
    }),
    ("an input that is missing", |it| {
        let id = it.id();
        it.add(json!({"type": "tool_use", "tool_use_id": id, "name": "f"}));
        it.add(json!({"type": "tool_result", "tool_use_id": id, "content": "done"}));
    }),
    ("an input in a block that is a string", |it| {
        let id = it.id();
        it.reply(json!([{"type": "tool_use", "id": id, "name": "f", "input": "x"}]));
        it.add(json!({"type": "tool_result", "tool_use_id": id, "content": "done"}));
    }),
    ("thinking signed elsewhere", |it| {
        it.reply(json!([thinking(json!("c2lnbmVkLWVsc2V3aGVyZQ==")), text("I see.")]));
    }),
    ("thinking signed elsewhere before a call", |it| {
        let id = it.id();
        it.reply(json!([thinking(json!("c2lnbmVkLWVsc2V3aGVyZQ==")), text("I look.")]));
        it.call(&id, "f", json!({}), json!("done"));
        it.reply(json!([thinking(json!(SIGNED)), text("I see.")]));
    }),
    ("thinking of two makers", |it| {
        for _ in 0..3 {
            it.reply(json!([thinking(json!("b3RoZXI=")), thinking(json!(SIGNED)), text("So.")]));
            it.user(json!("Go on."));
        }
    }),
    ("thinking without a signature", |it| it.reply(json!([thinking(Value::Null), text("I see.")]))),
    ("thinking at the end", |it| it.reply(json!([text("I see."), thinking(json!(SIGNED))]))),
    ("redacted thinking of another maker", |it| {
        it.reply(json!([{"type": "redacted_thinking", "data": "eA=="}, text("I see.")]));
    }),
    ("half of a surrogate pair", |it| it.prompt(json!("half \u{fffd}"))),
    ("a blank text", |it| it.prompt(json!([text(" \n"), text("And?")]))),
    ("a blank reply", |it| it.reply(json!([text("  ")]))),
    ("an empty result", |it| {
        let id = it.id();
        it.call(&id, "f", json!({}), json!([]));
    }),
    ("a call without a result", |it| {
        let id = it.id();
        it.add(json!({"type": "tool_use", "tool_use_id": id, "name": "f", "input": {}}));
        it.user(json!("Stop."));
    }),
    ("a result without a call", |it| {
        it.add(json!({"type": "tool_result", "tool_use_id": "nobody", "content": "done"}));
    }),
    ("two results", |it| {
        let id = it.id();
        it.call(&id, "f", json!({}), json!("one"));
        it.add(json!({"type": "tool_result", "tool_use_id": id, "content": "two"}));
    }),
    ("two prompts", |it| {
        it.user(json!("One."));
        it.user(json!("Two."));
    }),
    ("two replies", |it| {
        it.reply(json!("One."));
        it.reply(json!("Two."));
    }),
    ("a part of OpenAI's form", |it| {
        let url = format!("data:image/png;base64,{}", media::base64(&media::png(4, 4)));
        it.prompt(json!([text("See."), {"type": "image_url", "image_url": {"url": url}}]));
    }),
    ("a part of Responses' form", |it| {
        it.prompt(json!([{"type": "input_text", "text": "And this?"}]));
    }),
    ("an unknown part", |it| it.prompt(json!([text("See."), {"type": "hologram", "data": "x"}]))),
    ("a schema without properties", |it| {
        it.tools.push(json!({"name": "look", "input_schema": {"type": "object"}}));
    }),
    ("too many tokens", |it| {
        (0..12).for_each(|n| it.result(json!(format!("line {n} of a log\n").repeat(600))));
    }),
];

/// Poisons that take a while, because they are long.
const LONG: &[Poison] = &[
    ("an image of 6 MB", |it| {
        it.result(json!([media::image("image/png", &media::png_of(6_200_000))]));
    }),
    ("screenshots of 33 MB", |it| {
        (0..40).for_each(|_| {
            it.result(json!([text("shot"), media::image("image/png", &media::png_of(850_000))]));
        });
    }),
    ("a text of 11 million characters", |it| it.result(json!("x".repeat(11_000_000)))),
];

fn ascii(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap_or_default()
}

/// One session in so many has a long poison.
const LONG_EVERY: usize = 200;
/// Makes the session of a seed.
pub fn session(choices: &mut Choices) -> (Session, Vec<&'static str>) {
    let count = 1 + choices.below(5);
    let mut poisons: Vec<&Poison> =
        (0..count).map(|_| &POISONS[choices.below(POISONS.len())]).collect();
    if choices.one_in(LONG_EVERY) {
        poisons.push(&LONG[choices.below(LONG.len())]);
    }
    (with(&poisons), poisons.iter().map(|(name, _)| *name).collect())
}

/// Makes a session with these poisons.
pub fn with(poisons: &[&Poison]) -> Session {
    let mut session = Session { records: Vec::new(), tools: Vec::new(), next: 0 };
    session.define("f");
    session.define("shot");
    session.user(json!("Begin."));
    session.reply(json!([thinking(json!(SIGNED)), text("I begin.")]));
    for (_, add) in poisons {
        session.user(json!("Go on."));
        add(&mut session);
        session.reply(json!("Done."));
    }
    session
}

/// Returns the transcript of a session. Other programs have written it, so its records have no ids.
pub fn written(session: &Session) -> Vec<u8> {
    let mut bytes = Vec::new();
    for record in &session.records {
        bytes.extend(record.to_string().bytes());
        bytes.push(b'\n');
    }
    bytes
}
