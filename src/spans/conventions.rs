//! The names of OpenTelemetry's semantic conventions for generative AI, in one table.
//!
//! They are those of version 0.1.0 of the conventions, the first with a repository of their own
//! (github.com/open-telemetry/semantic-conventions-genai, read on 2026-11-28), which are in development. Before that version,
//! `gen_ai.usage.cache_write.input_tokens` was `gen_ai.usage.cache_creation.input_tokens`.

/// Names of attributes.
pub mod attribute {
    pub const OPERATION: &str = "gen_ai.operation.name";
    pub const PROVIDER: &str = "gen_ai.provider.name";
    pub const CONVERSATION: &str = "gen_ai.conversation.id";
    pub const COMPACTED: &str = "gen_ai.conversation.compacted";
    pub const AGENT: &str = "gen_ai.agent.name";
    pub const REQUEST_MODEL: &str = "gen_ai.request.model";
    pub const RESPONSE_MODEL: &str = "gen_ai.response.model";
    pub const FINISH_REASONS: &str = "gen_ai.response.finish_reasons";
    pub const INPUT_TOKENS: &str = "gen_ai.usage.input_tokens";
    pub const OUTPUT_TOKENS: &str = "gen_ai.usage.output_tokens";
    pub const CACHE_READ: &str = "gen_ai.usage.cache_read.input_tokens";
    pub const CACHE_WRITE: &str = "gen_ai.usage.cache_write.input_tokens";
    pub const TOOL_NAME: &str = "gen_ai.tool.name";
    pub const TOOL_TYPE: &str = "gen_ai.tool.type";
    pub const TOOL_CALL: &str = "gen_ai.tool.call.id";
    pub const ERROR: &str = "error.type";
    pub const SERVICE: &str = "service.name";
    // The conventions make these opt-in, because they have the text of the conversation.
    pub const INPUT_MESSAGES: &str = "gen_ai.input.messages";
    pub const OUTPUT_MESSAGES: &str = "gen_ai.output.messages";
    pub const TOOL_ARGUMENTS: &str = "gen_ai.tool.call.arguments";
    pub const TOOL_RESULT: &str = "gen_ai.tool.call.result";
}

/// Names of operations. A turn is the invocation of an agent.
pub mod operation {
    pub const TURN: &str = "invoke_agent";
    pub const CHAT: &str = "chat";
    pub const TOOL: &str = "execute_tool";
}

/// Own names of errors, and of a provider about which nothing is known. A failed request has the class of its failure.
pub mod own {
    pub const TOOL_ERROR: &str = "tool_error";
    pub const INTERRUPTED: &str = "interrupted";
    pub const FAILED: &str = "failed";
    pub const PROVIDER: &str = "unknown";
}

/// The names of providers, by what the name of a provider or a model begins with.
const PROVIDERS: [(&str, &str); 22] = [
    ("anthropic", "anthropic"),
    ("claude", "anthropic"),
    ("openai", "openai"),
    ("gpt-", "openai"),
    ("codex", "openai"),
    ("o1", "openai"),
    ("o3", "openai"),
    ("o4", "openai"),
    ("google", "gcp.gemini"),
    ("gemini", "gcp.gemini"),
    ("vertex", "gcp.vertex_ai"),
    ("bedrock", "aws.bedrock"),
    ("amazon-bedrock", "aws.bedrock"),
    ("azure", "azure.ai.openai"),
    ("deepseek", "deepseek"),
    ("groq", "groq"),
    ("mistral", "mistral_ai"),
    ("moonshot", "moonshot_ai"),
    ("kimi", "moonshot_ai"),
    ("xai", "x_ai"),
    ("grok", "x_ai"),
    ("cohere", "cohere"),
];

/// Returns the name of a provider, given what the record and the name of the model say. A provider that the conventions do
/// not know has its own name.
pub fn provider(given: Option<&str>, model: Option<&str>) -> String {
    let find = |text: &str| {
        let text = text.to_ascii_lowercase();
        let known = PROVIDERS.iter().find(|(begin, _)| text.starts_with(begin));
        known.map(|(_, name)| (*name).to_owned())
    };
    let given = given.filter(|text| !text.is_empty());
    let known = given.and_then(find).or_else(|| given.map(str::to_owned));
    known.or_else(|| model.and_then(find)).unwrap_or_else(|| own::PROVIDER.to_owned())
}

/// Returns the reason why a reply ended, in the words of the conventions.
pub fn finish_reason(reason: &str) -> &str {
    match reason.to_ascii_lowercase().as_str() {
        "end_turn" | "stop_sequence" | "completed" | "stop" => "stop",
        "tool_use" | "tool_calls" | "tooluse" => "tool_call",
        "max_tokens" | "max_output_tokens" | "length" => "length",
        "refusal" | "safety" | "content_filter" => "content_filter",
        _ => reason,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_provider_is_found_by_its_name_or_by_the_model() {
        for (given, model, name) in [
            (Some("anthropic"), Some("x"), "anthropic"),
            (None, Some("claude-opus-4-5"), "anthropic"),
            (None, Some("gpt-5.2-codex"), "openai"),
            (Some("google"), None, "gcp.gemini"),
            (Some("offline"), Some("offline"), "offline"),
            (None, None, "unknown"),
        ] {
            assert_eq!(provider(given, model), name);
        }
    }
}
