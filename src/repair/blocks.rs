//! The blocks of the records: texts, images and documents, thinking and calls that a provider would refuse.

use super::program::{Context, Mended, PartKind, Program, Said, text_block, with};
use super::sheet::Sheet;
use crate::json;
use crate::json::Object;
use crate::json::write::Members;
use crate::media::Encoded;
use crate::record::content::Role;
use crate::rules::{inputs, media, names};

/// Replaces or leaves out blocks of the records that are sent.
pub(super) fn mend(
    program: &dyn Program,
    sheet: &mut Sheet<'_>,
    sent: &[usize],
    drops_thinking: bool,
) {
    let now = now(program, sheet, sent);
    for (place, row) in sent.iter().enumerate() {
        let Some(said) = program.said(sheet.text(*row)) else { continue };
        let next = sent[place + 1..].iter().find_map(|row| program.said(sheet.text(*row)));
        let (model, now) = (said.model.as_deref(), now.as_deref());
        let context = Context { role: said.role, model, now, drops_thinking };
        let (mut parts, mut reasons) = (Vec::new(), Vec::new());
        for part in &said.parts {
            let judged = match part.kind == PartKind::Other && has_no_type(part.raw) {
                true => Mended::Without(NO_TYPE.to_owned()),
                false => program.judge(part, context),
            };
            match judged {
                Mended::Fine => parts.push((part.raw.to_owned(), part.kind.clone())),
                Mended::By(block, why) => {
                    parts.push((block, part.kind.clone()));
                    reasons.push(why);
                }
                Mended::Without(why) => reasons.push(why),
            }
        }
        if ends_reply(&said, next.as_ref()) {
            while parts.last().is_some_and(|(_, kind)| *kind == PartKind::Thinking) {
                parts.pop();
                reasons.push("the reply ends in thinking; left out".to_owned());
            }
        }
        if reasons.is_empty() {
            continue;
        }
        reasons.dedup();
        let why = reasons.join("; ");
        let parts: Vec<String> = parts.into_iter().map(|(raw, _)| raw).collect();
        let text = match parts.is_empty() {
            true => program.silent(sheet.text(*row)),
            false => Some(program.with_parts(sheet.text(*row), &parts)),
        };
        sheet.put(*row, text, why);
    }
}

const NO_TYPE: &str = "a block has no type; left out";

/// Returns true for an object that is no block.
fn has_no_type(block: &str) -> bool {
    Object::parse(block).is_ok_and(|block| block.string("type").is_none())
}

/// Returns the model that wrote the last reply.
fn now(program: &dyn Program, sheet: &Sheet<'_>, sent: &[usize]) -> Option<String> {
    sent.iter().rev().find_map(|row| {
        let said = program.said(sheet.text(*row))?;
        said.model.filter(|_| said.role == Role::Assistant).map(std::borrow::Cow::into_owned)
    })
}

/// Returns true if a record is the last one of a reply.
fn ends_reply(said: &Said<'_>, next: Option<&Said<'_>>) -> bool {
    let is_more = |next: &Said<'_>| next.role == Role::Assistant && next.reply == said.reply;
    said.role == Role::Assistant && !next.is_some_and(is_more)
}

/// Judges an image or a document in the form of Anthropic's API. `text` is the type of a text block.
pub(super) fn judge_media(block: &str, text: &str) -> Mended {
    match media::judge(block).and_then(|it| it.map(media::Correction::apply).transpose()) {
        Ok(None) => Mended::Fine,
        Ok(Some(corrected)) => {
            let done = if corrected.form.is_none() { "; corrected" } else { "" };
            let why = format!("media: {}{done}", corrected.summary("written"));
            Mended::By(corrected.block, why)
        }
        Err(why) => {
            let object = Object::parse(block).ok();
            let kind = object.as_ref().and_then(|object| object.string("type"));
            let kind = kind.as_deref().unwrap_or("image");
            let what = format!("[{kind} left out: it {why}]");
            Mended::By(text_block(text, &what), format!("media: it {why}; left out"))
        }
    }
}

/// Judges an image by its media type and its data in base64, which are JSON. `with` returns the block with others.
pub(super) fn judge_base64(
    media_type: &str,
    data: &str,
    text: &str,
    with: impl FnOnce(&str, &str) -> String,
) -> Mended {
    let source =
        |it: Members| it.string("type", "base64").raw("media_type", media_type).raw("data", data);
    let mended = judge_media(&Members::of_type("image").object("source", source).into_json(), text);
    let Mended::By(own, why) = mended else { return mended };
    let object = Object::parse(&own).ok();
    let source = object.and_then(|it| Object::parse(it.get("source")?).ok());
    let block = source.and_then(|it| Some(with(it.get("media_type")?, it.get("data")?)));
    Mended::By(block.unwrap_or(own), why)
}

/// Judges the images in the list `name` of a result.
pub(super) fn judge_images(
    raw: &str,
    result: &Object<'_>,
    name: &str,
    judge: impl Fn(&str, &Object<'_>) -> Mended,
) -> Mended {
    let judge =
        |block: &str| Object::parse(block).map_or(Mended::Fine, |object| judge(block, &object));
    let list = result.get(name).and_then(|list| judge_list(list, judge));
    list.map_or(Mended::Fine, |(blocks, why)| {
        Mended::By(with(raw, &[name], &json::write::list(blocks)), why)
    })
}

/// Judges the name and the input of a call in the form of Anthropic's API; `names` has the members of both.
pub(super) fn judge_call(block: &str, name: &str, input: &str) -> Mended {
    let Ok(object) = Object::parse(block) else { return Mended::Fine };
    let own = object.string(name).unwrap_or_default();
    let (mut text, mut reasons) = (block.to_owned(), Vec::new());
    if !names::fits(&own) {
        let fitted = names::fit(&own);
        text = with(&text, &[name], &json::quote(&fitted));
        reasons.push(format!("a provider refuses the tool's name '{own}'; it is '{fitted}' now"));
    }
    if !input.is_empty() && !inputs::fits(object.get(input)) {
        let (fitted, how) = inputs::corrected(object.get(input));
        text = with(&text, &[input], &fitted);
        reasons.push(format!("the input of a call is not an object; {how}"));
    }
    if reasons.is_empty() { Mended::Fine } else { Mended::By(text, reasons.join("; ")) }
}

/// Judges the thinking of a reply by its signature or data, which is base64, and by the model that wrote it.
pub(super) fn judge_thinking(seal: Option<&str>, context: Context<'_>) -> Mended {
    let is_claude = |model: &str| model.contains("claude");
    let is_other = match (context.model, context.now) {
        (Some(own), Some(now)) => own != now && !(is_claude(own) && is_claude(now)),
        _ => false,
    };
    let seal = seal.and_then(json::string);
    Mended::Without(match seal.as_deref() {
        _ if context.role == Role::User => {
            "a user message cannot contain thinking; left out".to_owned()
        }
        _ if context.drops_thinking => "its thinking is left out, as asked".to_owned(),
        _ if is_other => {
            let model = context.model.unwrap_or_default();
            format!("its thinking is of another model, '{model}'; left out")
        }
        None | Some("") => "a thinking block has no signature; left out".to_owned(),
        Some(seal) if Encoded::new(seal).is_none() => {
            "the signature of a thinking block is not base64; left out".to_owned()
        }
        Some(_) => return Mended::Fine,
    })
}

/// Judges each block of a list, and returns the list with the changes and their reasons.
pub(super) fn judge_list(
    list: &str,
    judge: impl Fn(&str) -> Mended,
) -> Option<(Vec<String>, String)> {
    let (mut blocks, mut reasons) = (Vec::new(), Vec::new());
    for block in json::elements(list)? {
        let judged = match has_no_type(block) {
            true => Mended::Without(NO_TYPE.to_owned()),
            false => judge(block),
        };
        match judged {
            Mended::Fine => blocks.push(block.to_owned()),
            Mended::By(block, why) => {
                blocks.push(block);
                reasons.push(why);
            }
            Mended::Without(why) => reasons.push(why),
        }
    }
    (!reasons.is_empty()).then(|| (blocks, reasons.join("; ")))
}
