//! `--show`: describes the compaction as one JSON object, without calling a model.

use crate::run::CompactRun;
use crate::sources::Source;
use clawutils::cli::Output;
use clawutils::compact::request::SummaryPrompt;
use clawutils::compact::{CutPlan, Task};
use clawutils::exit::Exit;
use clawutils::json::write::Members;
use clawutils::messages::Message;
use clawutils::record::content::Role;

impl CompactRun<'_> {
    /// Writes the description of `planned`.
    pub(crate) fn show(
        &self,
        task: &Task<'_, '_>,
        planned: &CutPlan,
        prompt: SummaryPrompt<'_>,
    ) -> anyhow::Result<Exit> {
        let sources = self.sources(self.is_too_long(task, planned))?;
        // The pieces for the first model.
        let model = sources.iter().find_map(Source::model);
        let pieces =
            model.map(|summariser| self.pieces(summariser, task, planned, prompt)).transpose()?;
        let first = pieces.as_ref().and_then(|pieces| pieces.iter().next());
        let request = first.map(|piece| {
            let text = prompt.request(planned.earlier.as_deref(), &piece.text);
            Message::text(Role::User, &text).to_line()
        });
        let (calls, left_out) = pieces.map_or((0, 0), |pieces| (pieces.calls(), pieces.left_out));
        let (covered, kept) = task.messages.split_at(planned.at);
        let add = |it: Members, message| add_message(it, task, planned, message);
        // Assume the longest summary that is allowed.
        let after = task.tokens(&task.apply(planned, "")) + task.most_tokens(planned);
        let plan = Members::new()
            .number("tokens_before", planned.before)
            .number("tokens_after", after)
            .or_null(Members::number, "target", task.target)
            .objects("covered", covered, add)
            .objects("kept", kept, add)
            .strings("kept_user", &planned.kept_user)
            .strings("pinned", &planned.pinned)
            .object("details", |it| planned.details.add_to(it))
            .strings("sources", sources.iter().map(Source::name))
            .number("calls", calls)
            .number("left_out", left_out)
            .list("request", request);
        Output::lines([plan.into_json()])
    }
}

/// Adds a message: the id of its first record, its role, its tokens, and `stays` if its text is kept verbatim.
fn add_message(
    members: Members,
    task: &Task<'_, '_>,
    planned: &CutPlan,
    message: &Message<'_>,
) -> Members {
    let meta = message.meta.as_ref();
    let is_kept = || message.is_from_user() && planned.kept_user.contains(&message.content.text());
    let is_pinned = meta.is_some_and(|meta| meta.pin);
    members
        .optional(Members::string, "id", meta.map(|meta| &*meta.id))
        .string("role", message.role.name())
        .number("tokens", task.gauge.message(message))
        .flag("stays", is_pinned || is_kept())
}
