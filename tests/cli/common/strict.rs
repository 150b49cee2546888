//! A strict provider: it refuses a request by the first rule on content that the request breaks.
//!
//! The rules are those of the providers' documentation and of public reports, written without a look at the programs under
//! test. [`refusal`] words a refusal in one of several ways, which a seed chooses: with the place as Anthropic or OpenAI
//! writes it, with structured details, without a place, and in words of a gateway.

use std::collections::HashSet;
use std::io::Cursor;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use image::{ImageFormat, ImageReader};
use serde_json::{Value, json};

/// The form of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The Anthropic Messages API.
    Anthropic,
    /// Chat completions.
    Chat,
    /// Chat completions of Mistral.
    Mistral,
    /// OpenAI's Responses API.
    Responses,
    /// Gemini's API.
    Gemini,
    /// Ollama's native API.
    Ollama,
}

/// All forms.
pub const FORMS: [Form; 6] =
    [Form::Anthropic, Form::Chat, Form::Mistral, Form::Responses, Form::Gemini, Form::Ollama];

/// A part of a request, and where it is.
struct Part {
    /// The place as the API would name it.
    place: String,
    kind: Kind,
}

enum Kind {
    Text(String),
    Image {
        media_type: Option<String>,
        data: String,
    },
    Document {
        media_type: String,
        data: String,
    },
    Call {
        id: String,
        name: String,
        input: Value,
    },
    Result {
        id: String,
    },
    /// Thinking, or a reasoning item. It is refused without a signature of the provider's own.
    Thinking {
        signature: Option<String>,
    },
    Unknown,
}

/// A rule that a request breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// The name of the rule.
    pub rule: &'static str,
    /// The place, if there is one.
    pub place: Option<String>,
    /// What the provider says about it.
    pub why: String,
}

/// The most bytes of a body.
const MOST_BYTES: usize = 32_000_000;
/// The most characters of a text.
const MOST_TEXT: usize = 10_485_760;
/// The most images and documents, and the most pages of all documents.
const MOST_MEDIA: usize = 100;
/// The most images without the smaller limit on their edges.
const FEW_IMAGES: usize = 20;

/// Returns the first rule that a body breaks. `signed` are the signatures that this provider's models have written, and
/// `window` the most characters of all texts.
pub fn broken(form: Form, raw: &str, signed: &[&str], window: usize) -> Option<Broken> {
    if form == Form::Anthropic && raw.len() > MOST_BYTES {
        return Some(at("bytes", None, "the body of the request is too large"));
    }
    let Ok(body) = serde_json::from_str::<Value>(raw) else {
        return Some(at("json", None, "the body is not valid JSON"));
    };
    let parts = parts(form, &body);
    let tools = tool_names(&body);
    let one = |part: &Part| one(form, part, &parts, &tools, signed);
    definitions(form, &body)
        .or_else(|| parts.iter().find_map(one))
        .or_else(|| together(form, &body, &parts, window))
}

fn at(rule: &'static str, place: Option<&str>, why: impl Into<String>) -> Broken {
    Broken { rule, place: place.map(str::to_owned), why: why.into() }
}

/// Returns the parts of all messages.
fn parts(form: Form, body: &Value) -> Vec<Part> {
    let mut parts = Vec::new();
    let list = match form {
        Form::Responses => &body["input"],
        Form::Gemini => &body["contents"],
        _ => &body["messages"],
    };
    for (m, message) in list.as_array().into_iter().flatten().enumerate() {
        match form {
            Form::Responses => responses(m, message, &mut parts),
            Form::Gemini => gemini(m, message, &mut parts),
            Form::Anthropic => anthropic(m, message, &mut parts),
            Form::Chat | Form::Mistral => chat(m, message, &mut parts),
            Form::Ollama => ollama(m, message, &mut parts),
        }
    }
    parts
}

fn anthropic(m: usize, message: &Value, parts: &mut Vec<Part>) {
    let place = format!("messages.{m}.content");
    if let Some(text) = message["content"].as_str() {
        parts.push(Part { place, kind: Kind::Text(text.to_owned()) });
        return;
    }
    for (b, block) in message["content"].as_array().into_iter().flatten().enumerate() {
        let place = format!("{place}.{b}");
        parts.push(Part { place: place.clone(), kind: anthropic_kind(block) });
        for (p, item) in block["content"].as_array().into_iter().flatten().enumerate() {
            parts.push(Part { place: format!("{place}.content.{p}"), kind: anthropic_kind(item) });
        }
    }
}

fn anthropic_kind(block: &Value) -> Kind {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let source = &block["source"];
    match (block["type"].as_str().unwrap_or_default(), source["type"].as_str()) {
        ("text", _) => Kind::Text(text(&block["text"])),
        ("image", Some("base64")) => Kind::Image {
            media_type: Some(text(&source["media_type"])),
            data: text(&source["data"]),
        },
        ("document", Some("base64")) => {
            Kind::Document { media_type: text(&source["media_type"]), data: text(&source["data"]) }
        }
        ("document", Some("text")) => Kind::Text(text(&source["data"])),
        ("image" | "document", Some("url")) => Kind::Text("a link".to_owned()),
        ("tool_use", _) => Kind::Call {
            id: text(&block["id"]),
            name: text(&block["name"]),
            input: block["input"].clone(),
        },
        ("tool_result", _) => Kind::Result { id: text(&block["tool_use_id"]) },
        ("thinking", _) => {
            Kind::Thinking { signature: block["signature"].as_str().map(str::to_owned) }
        }
        ("redacted_thinking", _) => {
            Kind::Thinking { signature: block["data"].as_str().map(str::to_owned) }
        }
        _ => Kind::Unknown,
    }
}

fn chat(m: usize, message: &Value, parts: &mut Vec<Part>) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let place = format!("messages[{m}]");
    if message["role"] == "tool" {
        let kind = Kind::Result { id: text(&message["tool_call_id"]) };
        parts.push(Part { place: place.clone(), kind });
    }
    if let Some(words) = message["content"].as_str() {
        let (place, kind) = (format!("{place}.content"), Kind::Text(words.to_owned()));
        parts.push(Part { place, kind });
    }
    for (p, part) in message["content"].as_array().into_iter().flatten().enumerate() {
        let place = format!("{place}.content[{p}]");
        let url = part["image_url"]["url"].as_str();
        let kind = match (part["type"].as_str().unwrap_or_default(), url) {
            ("text", _) => Kind::Text(text(&part["text"])),
            ("image_url", Some(url)) => match url.strip_prefix("data:") {
                Some(rest) => {
                    let (media_type, data) = rest.split_once(";base64,").unwrap_or(("", ""));
                    Kind::Image { media_type: Some(media_type.to_owned()), data: data.to_owned() }
                }
                None => Kind::Text("a link".to_owned()),
            },
            _ => Kind::Unknown,
        };
        parts.push(Part { place, kind });
    }
    for (c, call) in message["tool_calls"].as_array().into_iter().flatten().enumerate() {
        let input = call["function"]["arguments"].as_str().unwrap_or_default();
        let kind = Kind::Call {
            id: text(&call["id"]),
            name: text(&call["function"]["name"]),
            input: serde_json::from_str(input).unwrap_or(Value::Null),
        };
        parts.push(Part { place: format!("{place}.tool_calls[{c}]"), kind });
    }
}

/// Adds the parts of an item.
fn responses(i: usize, item: &Value, parts: &mut Vec<Part>) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let place = format!("input[{i}]");
    let (content, inner) = match item["type"].as_str().unwrap_or("message") {
        "message" => (&item["content"], "content"),
        "function_call_output" => {
            let kind = Kind::Result { id: text(&item["call_id"]) };
            parts.push(Part { place: place.clone(), kind });
            (&item["output"], "output")
        }
        kind => {
            let kind = match kind {
                "function_call" => Kind::Call {
                    id: text(&item["call_id"]),
                    name: text(&item["name"]),
                    input: serde_json::from_str(&text(&item["arguments"])).unwrap_or(Value::Null),
                },
                "reasoning" => {
                    let signature = item["encrypted_content"].as_str().map(str::to_owned);
                    Kind::Thinking { signature }
                }
                _ => Kind::Unknown,
            };
            return parts.push(Part { place, kind });
        }
    };
    // The output of a call may be empty.
    if let Some(words) = content.as_str().filter(|words| inner == "content" || !words.is_empty()) {
        parts.push(Part { place: place.clone(), kind: Kind::Text(words.to_owned()) });
    }
    for (p, part) in content.as_array().into_iter().flatten().enumerate() {
        let kind = match part["type"].as_str().unwrap_or_default() {
            "input_text" if item["role"] != "assistant" => Kind::Text(text(&part["text"])),
            "output_text" if item["role"] == "assistant" => Kind::Text(text(&part["text"])),
            "input_image" if !part["detail"].is_string() => Kind::Unknown,
            "input_image" => file_of(&text(&part["image_url"]), true),
            "input_file" if part["file_url"].is_string() => Kind::Text("a link".to_owned()),
            "input_file" if !part["filename"].is_string() => Kind::Unknown,
            "input_file" => file_of(&text(&part["file_data"]), false),
            _ => Kind::Unknown,
        };
        parts.push(Part { place: format!("{place}.{inner}[{p}]"), kind });
    }
}

/// Returns the file in an address that begins with `data:`.
fn file_of(url: &str, is_image: bool) -> Kind {
    let Some((media_type, data)) =
        url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"))
    else {
        return Kind::Text("a link".to_owned());
    };
    let (media_type, data) = (media_type.to_owned(), data.to_owned());
    match is_image {
        true => Kind::Image { media_type: Some(media_type), data },
        false => Kind::Document { media_type, data },
    }
}

/// Adds the parts of a message.
fn gemini(c: usize, message: &Value, parts: &mut Vec<Part>) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    for (p, part) in message["parts"].as_array().into_iter().flatten().enumerate() {
        let (call, response, file) =
            (&part["functionCall"], &part["functionResponse"], &part["inlineData"]);
        let kind = if let Some(words) = part["text"].as_str() {
            // A summary of thoughts need not be signed: Google's clients send whole answers back.
            match part["thoughtSignature"].as_str().filter(|_| part["thought"] == true) {
                Some(own) => Kind::Thinking { signature: Some(own.to_owned()) },
                None => Kind::Text(words.to_owned()),
            }
        } else if call.is_object() {
            Kind::Call {
                id: text(&call["id"]),
                name: text(&call["name"]),
                input: call["args"].clone(),
            }
        } else if response.is_object()
            && response["response"].is_object()
            && response["name"].is_string()
        {
            Kind::Result { id: text(&response["id"]) }
        } else if file.is_object() {
            let (media_type, data) = (text(&file["mimeType"]), text(&file["data"]));
            match media_type.starts_with("image/") {
                true => Kind::Image { media_type: Some(media_type), data },
                false => Kind::Document { media_type, data },
            }
        } else if part["fileData"].is_object() {
            Kind::Text("a link".to_owned())
        } else {
            Kind::Unknown
        };
        parts.push(Part { place: format!("contents[{c}].parts[{p}]"), kind });
    }
}

fn ollama(m: usize, message: &Value, parts: &mut Vec<Part>) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let place = format!("messages[{m}]");
    for data in message["images"].as_array().into_iter().flatten() {
        let kind = Kind::Image { media_type: None, data: text(data) };
        parts.push(Part { place: place.clone(), kind });
    }
    for call in message["tool_calls"].as_array().into_iter().flatten() {
        let call = &call["function"];
        let (name, input) = (text(&call["name"]), call["arguments"].clone());
        let kind = Kind::Call { id: "0".to_owned(), name, input };
        parts.push(Part { place: place.clone(), kind });
    }
}

fn tool_names(body: &Value) -> HashSet<String> {
    let tools = body["tools"].as_array().into_iter().flatten();
    let tools = tools.flat_map(|tool| match tool["functionDeclarations"].as_array() {
        Some(functions) => functions.iter().collect(),
        None => vec![tool],
    });
    let name = |tool: &Value| {
        let name = tool["name"].as_str().or_else(|| tool["function"]["name"].as_str());
        name.map(str::to_owned)
    };
    tools.filter_map(name).collect()
}

fn is_name(form: Form, name: &str) -> bool {
    let most = if matches!(form, Form::Anthropic | Form::Gemini) { 128 } else { 64 };
    let is_fine = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let begins = |c: char| form != Form::Gemini || c.is_ascii_alphabetic() || c == '_';
    (1..=most).contains(&name.len()) && name.chars().all(is_fine) && name.starts_with(begins)
}

/// Checks the definitions of tools.
fn definitions(form: Form, body: &Value) -> Option<Broken> {
    let list = match form {
        Form::Gemini => &body["tools"][0]["functionDeclarations"],
        _ => &body["tools"],
    };
    for (t, tool) in list.as_array().into_iter().flatten().enumerate() {
        let (name, schema, place) = match form {
            Form::Responses => (&tool["name"], &tool["parameters"], format!("tools[{t}]")),
            Form::Gemini => {
                let place = format!("tools[0].function_declarations[{t}]");
                (&tool["name"], &tool["parametersJsonSchema"], place)
            }
            Form::Anthropic => (&tool["name"], &tool["input_schema"], format!("tools.{t}")),
            _ => {
                let function = &tool["function"];
                (&function["name"], &function["parameters"], format!("tools[{t}].function"))
            }
        };
        if !is_name(form, name.as_str().unwrap_or_default()) {
            return Some(at("tool-name", Some(&place), "the name of the tool has a bad form"));
        }
        if form != Form::Anthropic && schema["type"] == "object" && schema["properties"].is_null() {
            let why = "Invalid schema for function: object schema missing properties";
            return Some(at("tool-schema", Some(&place), why));
        }
    }
    None
}

/// Checks one part.
fn one(
    form: Form,
    part: &Part,
    all: &[Part],
    tools: &HashSet<String>,
    signed: &[&str],
) -> Option<Broken> {
    let place = Some(&*part.place);
    let broken = |rule, why: &str| Some(at(rule, place, why));
    match &part.kind {
        Kind::Text(text) if text.chars().count() > MOST_TEXT => {
            broken("text-length", "the text has more than 10485760 characters")
        }
        Kind::Text(text) if text.trim().is_empty() => broken("blank-text", "the text is empty"),
        Kind::Text(_) => None,
        Kind::Unknown => broken("block-type", "the type of the content part is not supported"),
        Kind::Image { media_type, data } => {
            image(form, all, media_type.as_deref(), data).and_then(|(rule, why)| broken(rule, &why))
        }
        Kind::Document { media_type, data } => {
            document(media_type, data).and_then(|(rule, why)| broken(rule, &why))
        }
        Kind::Call { id, name, input } => match () {
            () if !is_name(form, name) => broken("call-name", "the name of the tool is not valid"),
            () if !tools.is_empty() && !tools.contains(name) && name.starts_with("mcp") => {
                broken("call-unknown", "the tool that was called is not defined")
            }
            () if !is_id(form, id) => broken("call-id", "the id of the tool call has a bad form"),
            () if !input.is_object() => broken("call-input", "the input is not an object"),
            () => None,
        },
        Kind::Result { id } if !is_id(form, id) => {
            broken("result-id", "the id of the tool call has a bad form")
        }
        Kind::Result { .. } => None,
        Kind::Thinking { signature } => {
            let is_ours = signature.as_deref().is_some_and(|own| signed.contains(&own));
            (!is_ours).then(|| at("thinking", place, "Invalid `signature` in `thinking` block"))
        }
    }
}

fn is_id(form: Form, id: &str) -> bool {
    let most = if form == Form::Anthropic { 64 } else { 40 };
    let is_fine = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    match form {
        Form::Mistral => id.len() == 9 && id.chars().all(|c| c.is_ascii_alphanumeric()),
        Form::Anthropic => (1..=most).contains(&id.len()) && id.chars().all(is_fine),
        Form::Chat => (1..=most).contains(&id.chars().count()),
        Form::Responses => (1..=64).contains(&id.chars().count()),
        Form::Gemini | Form::Ollama => true,
    }
}

/// Checks the file of an image.
fn image(
    form: Form,
    all: &[Part],
    media_type: Option<&str>,
    data: &str,
) -> Option<(&'static str, String)> {
    let no = |rule, why: &str| Some((rule, why.to_owned()));
    if form == Form::Anthropic && data.len() > 5_242_880 {
        let why = format!("image exceeds 5 MB maximum: {} bytes > 5242880 bytes", data.len());
        return Some(("image-bytes", why));
    }
    let Ok(file) = STANDARD.decode(data) else {
        return no("image-base64", "the image is not valid base64");
    };
    let format = match &*file {
        [0x89, b'P', b'N', b'G', ..] => (ImageFormat::Png, "image/png"),
        [0xFF, 0xD8, ..] => (ImageFormat::Jpeg, "image/jpeg"),
        [b'G', b'I', b'F', ..] => (ImageFormat::Gif, "image/gif"),
        [b'R', b'I', b'F', b'F', ..] => (ImageFormat::WebP, "image/webp"),
        _ => return no("image-kind", "Could not process image"),
    };
    if media_type.is_some_and(|media_type| media_type != format.1) {
        return no("image-type", "the image does not have the media type that is given");
    }
    let reader = || ImageReader::with_format(Cursor::new(&file), format.0);
    let Ok((width, height)) = reader().into_dimensions() else {
        return no("image-torn", "Could not process image");
    };
    let images = all.iter().filter(|part| matches!(part.kind, Kind::Image { .. })).count();
    let most = if images > FEW_IMAGES { 2000 } else { 8000 };
    if form == Form::Anthropic && width.max(height) > most {
        let why =
            format!("At least one of the image dimensions exceed max allowed size: {most} pixels");
        return Some(("image-pixels", why));
    }
    let is_whole = file.ends_with(b"\xFF\xD9") || format.0 != ImageFormat::Jpeg;
    match reader().decode() {
        Ok(_) if is_whole => None,
        _ => no("image-torn", "Could not process image"),
    }
}

/// Checks the file of a document.
fn document(media_type: &str, data: &str) -> Option<(&'static str, String)> {
    let no = |rule, why: &str| Some((rule, why.to_owned()));
    let Ok(file) = STANDARD.decode(data) else {
        return no("document-base64", "the document is not valid base64");
    };
    let text = String::from_utf8_lossy(&file);
    match () {
        () if media_type != "application/pdf" => no("document-type", "only PDF is supported"),
        () if !text.starts_with("%PDF-") || !text.contains("%%EOF") => {
            no("document-torn", "The PDF specified was not valid.")
        }
        () if text.contains("/Encrypt") => no("document-secret", "the PDF has a password"),
        () => None,
    }
}

/// Checks what the messages have together.
fn together(form: Form, body: &Value, parts: &[Part], window: usize) -> Option<Broken> {
    let is_media = |part: &&Part| matches!(part.kind, Kind::Image { .. } | Kind::Document { .. });
    if form == Form::Anthropic && parts.iter().filter(is_media).count() > MOST_MEDIA {
        let why = format!("Too many images: at most {MOST_MEDIA} images are allowed in a request");
        return Some(at("image-number", None, why));
    }
    let pages = |part: &Part| match &part.kind {
        Kind::Document { data, .. } => {
            let file = STANDARD.decode(data).unwrap_or_default();
            String::from_utf8_lossy(&file).matches("/Type /Page ").count()
        }
        _ => 0,
    };
    if parts.iter().map(pages).sum::<usize>() > MOST_MEDIA {
        let why = format!("A maximum of {MOST_MEDIA} PDF pages may be provided.");
        return Some(at("document-pages", None, why));
    }
    let list = match form {
        Form::Responses => &body["input"],
        Form::Gemini => &body["contents"],
        _ => &body["messages"],
    };
    let messages: Vec<&Value> = list.as_array().into_iter().flatten().collect();
    if matches!(form, Form::Anthropic | Form::Gemini) {
        let roles: Vec<&str> = messages.iter().filter_map(|it| it["role"].as_str()).collect();
        if roles.first() != Some(&"user") || roles.windows(2).any(|pair| pair[0] == pair[1]) {
            return Some(at("roles", None, "roles must alternate"));
        }
    }
    if let Some(broken) = alone(form, body).or_else(|| unsigned(form, body)) {
        return Some(broken);
    }
    if let Some(broken) = unpaired(parts) {
        return Some(broken).filter(|_| form != Form::Ollama);
    }
    let length = |message: &&Value| without_media(message).to_string().len();
    let total: usize = messages.iter().map(length).sum();
    (total > window).then(|| {
        let (tokens, most) = (total / 4, window / 4);
        at("window", None, format!("prompt is too long: {tokens} tokens > {most} maximum"))
    })
}

/// Checks that an item of the model follows each reasoning item.
fn alone(form: Form, body: &Value) -> Option<Broken> {
    let items = body["input"].as_array().filter(|_| form == Form::Responses)?;
    items.iter().enumerate().find_map(|(i, item)| {
        let next = items.get(i + 1);
        let is_own = next.is_some_and(|next| {
            next["role"] == "assistant"
                || matches!(next["type"].as_str(), Some("function_call" | "reasoning"))
        });
        (item["type"] == "reasoning" && !is_own).then(|| {
            let why = "Item of type 'reasoning' was provided without its required following item.";
            at("reasoning-alone", Some(&format!("input[{i}]")), why)
        })
    })
}

/// Checks that the first call of each message of the model has a signature, as Gemini 3 demands.
fn unsigned(form: Form, body: &Value) -> Option<Broken> {
    let contents = body["contents"].as_array().filter(|_| form == Form::Gemini)?;
    contents.iter().enumerate().find_map(|(c, message)| {
        let parts = message["parts"].as_array()?.iter().enumerate();
        let (p, call) = parts.into_iter().find(|(_, part)| part["functionCall"].is_object())?;
        (!call["thoughtSignature"].is_string()).then(|| {
            let why = "Function call is missing a thought_signature in functionCall parts.";
            at("signature", Some(&format!("contents[{c}].parts[{p}]")), why)
        })
    })
}

/// Checks that each call has one result, and each result a call.
fn unpaired(parts: &[Part]) -> Option<Broken> {
    let mut open: Vec<&str> = Vec::new();
    let mut seen: HashSet<&str> = HashSet::new();
    for part in parts {
        match &part.kind {
            Kind::Call { id, .. } if !seen.insert(id) => {
                return Some(at("call-twice", Some(&part.place), "`tool_use` ids must be unique"));
            }
            Kind::Call { id, .. } => open.push(id),
            Kind::Result { id } => match open.iter().position(|call| call == id) {
                Some(found) => drop(open.remove(found)),
                None => {
                    let why = "the `tool_result` has no `tool_use` before it";
                    return Some(at("result-alone", Some(&part.place), why));
                }
            },
            _ => {}
        }
    }
    open.first().map(|id| at("call-open", None, format!("call {id} has no `tool_result`")))
}

/// Returns a value without the data of images and documents.
fn without_media(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let kept = members.iter().filter(|(name, value)| {
                !(matches!(name.as_str(), "data" | "images")
                    || matches!(name.as_str(), "url" | "image_url" | "file_data")
                        && value.as_str().is_some_and(|url| url.len() > 1000))
            });
            Value::Object(kept.map(|(name, it)| (name.clone(), without_media(it))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(without_media).collect()),
        other => other.clone(),
    }
}

/// Returns the status and the body of a refusal. `way` chooses the words and whether the place is named.
pub fn refusal(form: Form, broken: &Broken, way: usize) -> (u16, String) {
    let Broken { rule, place, why } = broken;
    if *rule == "bytes" {
        return match way % 4 {
            0 => (413, error("request_too_large", "Request exceeds the maximum size", None)),
            1 => (413, "<html><head><title>413 Payload Too Large</title></head></html>".to_owned()),
            2 => (413, String::new()),
            _ => (400, error("invalid_request_error", "request body is too large", None)),
        };
    }
    let status = [400, 422, 400, 400, 500][way % 5];
    let Some(place) = place else {
        return (
            if status == 500 { 400 } else { status },
            error("invalid_request_error", why, None),
        );
    };
    match way % 5 {
        0 => (status, error("invalid_request_error", &format!("{place}: {why}"), None)),
        1 => {
            let told = format!("Invalid value at '{place}': {why}");
            (status, error("invalid_request_error", &told, Some(json!({"param": place}))))
        }
        2 => {
            let details = json!({"details": {"error_code": "invalid_content", "paths": [place]}});
            (status, error("invalid_request_error", why, Some(details)))
        }
        3 => (status, error("invalid_request_error", why, None)),
        _ if form == Form::Ollama => (400, json!({"error": why}).to_string()),
        _ => (
            400,
            json!({"detail": format!("upstream refused the request: {place}: {why}")}).to_string(),
        ),
    }
}

fn error(kind: &str, message: &str, more: Option<Value>) -> String {
    let mut error = json!({"type": kind, "message": message});
    for (name, value) in more.as_ref().and_then(Value::as_object).into_iter().flatten() {
        error[name] = value.clone();
    }
    json!({"type": "error", "error": error}).to_string()
}
