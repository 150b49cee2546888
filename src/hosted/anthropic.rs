//! Reads the blocks of Anthropic's own tools (`content_block.py` and `beta_content_block.py` in anthropic 2.14.0).

use super::{HostedAct, reading};
use crate::json::{Object, elements};

/// Returns what a block of this type says.
pub(super) fn act(kind: &str, block: &Object<'_>) -> Option<HostedAct> {
    let string = |name: &str| block.string(name).unwrap_or_default();
    let input = || block.get("input").and_then(reading::input);
    match kind {
        "server_tool_use" => Some(HostedAct { input: input(), ..HostedAct::of(&string("name")) }),
        "mcp_tool_use" => {
            let tool = format!("MCP tool {}/{}", string("server_name"), string("name"));
            Some(HostedAct { tool, input: input(), ..HostedAct::default() })
        }
        "mcp_tool_listing" => {
            let tool = format!("MCP tools of {}", string("mcp_server_name"));
            let mut act = HostedAct { tool, is_result: true, ..HostedAct::default() };
            names(block).iter().for_each(|name| act.say(name));
            Some(act)
        }
        "compaction" => {
            let mut act = HostedAct::of("summary by the provider");
            act.say(&string("content"));
            (!act.output.is_empty()).then_some(act)
        }
        "container_upload" => {
            Some(HostedAct { input: Some(string("file_id").into()), ..HostedAct::of(kind) })
        }
        "fallback" => {
            let model = |name: &str| {
                let info = block.get(name).and_then(|raw| Object::parse(raw).ok());
                info.and_then(|it| Some(it.string("model")?.into_owned())).unwrap_or_default()
            };
            let input = Some(format!("from {} to {}", model("from"), model("to")));
            Some(HostedAct { input, ..HostedAct::of("change of the model") })
        }
        _ => result(kind.strip_suffix("_tool_result")?, block),
    }
}

/// Returns the result of a tool. A block that has nothing readable says at least that there was a result.
fn result(tool: &str, block: &Object<'_>) -> Option<HostedAct> {
    let tool = if tool == "mcp" { "MCP tool" } else { tool };
    let mut act = HostedAct { is_result: true, ..HostedAct::of(tool) };
    act.answer(block.get("content")?);
    if block.is_true("is_error") {
        act.failure = Some(super::one_line(&std::mem::take(&mut act.output)));
    }
    let is_sealed = act.sources.is_empty() && act.output.is_empty() && act.failure.is_none();
    if is_sealed && block.text().contains("\"encrypted_") {
        act.say("[only its provider can read it]");
    }
    Some(act)
}

/// Returns the names in the list `tools`.
fn names(block: &Object<'_>) -> Vec<String> {
    let tools = block.get("tools").and_then(elements).unwrap_or_default();
    tools
        .into_iter()
        .filter_map(|raw| Some(Object::parse(raw).ok()?.string("name")?.into()))
        .collect()
}
