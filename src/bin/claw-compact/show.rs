//! `--show`: what a compaction would do, as one JSON object; nothing is called.

use crate::compact::Run;
use crate::sources::Source;
use anyhow::Context;
use clawutils::cli::Output;
use clawutils::compact::request::SummaryPrompt;
use clawutils::compact::{CutPlan, Task};
use clawutils::exit::Exit;
use clawutils::json::quote;
use clawutils::messages::Message;
use clawutils::record::content::Role;
use std::io::Write;

impl Run<'_> {
    /// Writes it.
    pub(crate) fn show(
        &self,
        task: &Task<'_, '_>,
        planned: &CutPlan,
        prompt: SummaryPrompt<'_>,
    ) -> anyhow::Result<Exit> {
        let sources = self.sources(self.is_too_long(task, planned))?;
        // What the first of the models would be asked, if there is one.
        let model = sources.iter().find_map(Source::model);
        let pieces = model.map(|asked| self.pieces(asked, task, planned, prompt)).transpose()?;
        let first = pieces.as_ref().and_then(|pieces| pieces.iter().next());
        let request = first.map(|piece| {
            let text = prompt.request(planned.earlier.as_deref(), &piece.text);
            Message::say(Role::User, &text).to_line()
        });
        let (calls, left_out) = pieces.map_or((0, 0), |pieces| (pieces.calls(), pieces.left_out));
        let sources: Vec<String> = sources.iter().map(|source| quote(source.name())).collect();
        let (covered, kept) = task.messages.split_at(planned.at);
        let list = |messages: &[Message<'_>]| -> String {
            let shown = messages.iter().map(|message| shown(task, planned, message));
            shown.collect::<Vec<_>>().join(",")
        };
        let texts =
            |texts: &[String]| texts.iter().map(|text| quote(text)).collect::<Vec<_>>().join(",");
        let members = [
            format!(r#""tokens_before":{}"#, planned.before),
            // With the longest summary that it may get.
            format!(
                r#""tokens_after":{}"#,
                task.tokens(&task.apply(planned, "")) + task.most_tokens(planned)
            ),
            format!(r#""target":{}"#, task.target.map_or("null".into(), |t| t.to_string())),
            format!(r#""covered":[{}]"#, list(covered)),
            format!(r#""kept":[{}]"#, list(kept)),
            format!(r#""kept_user":[{}]"#, texts(&planned.kept_user)),
            format!(r#""pinned":[{}]"#, texts(&planned.pinned)),
            format!(r#""details":{}"#, planned.details.to_json()),
            format!(r#""sources":[{}]"#, sources.join(",")),
            format!(r#""calls":{calls}"#),
            format!(r#""left_out":{left_out}"#),
            format!(r#""request":[{}]"#, request.unwrap_or_default()),
        ];
        let mut out = Output::open();
        writeln!(out, "{{{}}}", members.join(",")).context("cannot write '<stdout>'")?;
        out.finish()?;
        Ok(Exit::Done)
    }
}

/// A message: who speaks, its first record, its size, and whether its words stay in any case.
fn shown(task: &Task<'_, '_>, planned: &CutPlan, message: &Message<'_>) -> String {
    let meta = message.meta.as_ref();
    let id = meta.map(|meta| format!(r#""id":{},"#, quote(&meta.id))).unwrap_or_default();
    let is_kept =
        || message.is_said_by_user() && planned.kept_user.contains(&message.content.says());
    let is_pinned = meta.is_some_and(|meta| meta.pin);
    let stays = if is_pinned || is_kept() { r#","stays":true"# } else { "" };
    let tokens = task.gauge.message(message);
    format!(r#"{{{id}"role":"{}","tokens":{tokens}{stays}}}"#, message.role)
}
