//! Reads the parts of Gemini's own tools, and what an answer says about its sources (`types.py` in google-genai 3.6.1).

use super::{HostedAct, HostedSource, reading, strings};
use crate::json::{Object, elements};

/// Returns what a part says; `None` for any other part.
pub(super) fn act(part: &Object<'_>) -> Option<HostedAct> {
    let object = |name: &str| part.get(name).and_then(|raw| Object::parse(raw).ok());
    if let Some(code) = object("executableCode") {
        let input = code.get("code").and_then(reading::input);
        return Some(HostedAct { input, ..HostedAct::of("code execution") });
    }
    if let Some(result) = object("codeExecutionResult") {
        let mut act = HostedAct { is_result: true, ..HostedAct::of("code execution") };
        act.say(&result.string("output").unwrap_or_default());
        let outcome = result.string("outcome").unwrap_or_default();
        act.failure =
            outcome.strip_prefix("OUTCOME_").filter(|it| *it != "OK").map(str::to_lowercase);
        return Some(act);
    }
    let tool = |of: &Object<'_>| of.string("toolType").unwrap_or_default().to_lowercase();
    if let Some(call) = object("toolCall") {
        let input = call.get("args").and_then(reading::input);
        return Some(HostedAct { input, ..HostedAct::of(&tool(&call)) });
    }
    let response = object("toolResponse")?;
    let mut act = HostedAct { is_result: true, ..HostedAct::of(&tool(&response)) };
    act.answer(response.get("response")?);
    Some(act)
}

/// Returns the sources in the metadata of an answer: those of a search, of quotations, or of pages.
pub(super) fn sources(metadata: &Object<'_>) -> Option<HostedAct> {
    let mut act = HostedAct::of("sources");
    let queries = ["webSearchQueries", "imageSearchQueries", "retrievalQueries"];
    let queries: Vec<String> =
        queries.into_iter().filter_map(|name| metadata.get(name)).flat_map(strings).collect();
    if !queries.is_empty() {
        act.tool = "search".to_owned();
        act.input = Some(queries.join("\n"));
    }
    for name in ["groundingChunks", "citations", "urlMetadata"] {
        for raw in metadata.get(name).and_then(elements).unwrap_or_default() {
            let Ok(chunk) = Object::parse(raw) else { continue };
            act.cite(source(chunk));
        }
    }
    (act.input.is_some() || !act.sources.is_empty()).then_some(act)
}

/// Returns the source of a chunk, which has one member for its kind, or is the source itself.
fn source(chunk: Object<'_>) -> HostedSource {
    let kinds = ["web", "retrievedContext", "maps", "image"];
    let inner = kinds.into_iter().find_map(|kind| Object::parse(chunk.get(kind)?).ok());
    reading::source(&inner.unwrap_or(chunk))
}

#[cfg(test)]
mod tests {
    use crate::hosted::text;
    use crate::json::Object;

    fn shown(block: &str) -> Option<String> {
        text(&Object::parse(block).unwrap())
    }

    fn part(part: &str) -> Option<String> {
        shown(&format!(r#"{{"type":"reasoning","part":{part}}}"#))
    }

    #[test]
    fn the_parts_and_sources_of_gemini_are_text() {
        for (own, expected) in [
            (
                r#"{"executableCode":{"code":"print(1)\n","language":"PYTHON"}}"#,
                "[code execution: print(1)]",
            ),
            (
                r#"{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"1\n"}}"#,
                "[result of code execution]\n  1",
            ),
            (
                r#"{"codeExecutionResult":{"outcome":"OUTCOME_DEADLINE_EXCEEDED"}}"#,
                "[code execution failed: deadline_exceeded]",
            ),
            (
                r#"{"toolCall":{"id":"a","toolType":"GOOGLE_SEARCH_WEB","args":{"query":"rust"}}}"#,
                "[google search web: rust]",
            ),
            (
                r#"{"toolResponse":{"id":"a","toolType":"URL_CONTEXT","response":{"results":[{"url":"https://a.example","title":"A","text":"words"}]}}}"#,
                "[result of url context]\n1. A <https://a.example>\n   \"words\"",
            ),
        ] {
            assert_eq!(part(own).as_deref(), Some(expected), "{own}");
        }
        assert_eq!(part(r#"{"text":"hm","thought":true}"#), None);
        for (own, expected) in [
            (
                r#""groundingMetadata":{"webSearchQueries":["rust"],"groundingChunks":[{"web":{"uri":"https://a.example","title":"A"}},{"retrievedContext":{"title":"doc","text":"words"}}],"groundingSupports":[]}"#,
                "[search: rust]\n[result of search]\n1. A <https://a.example>\n2. doc\n   \"words\"",
            ),
            (
                r#""citationMetadata":{"citations":[{"startIndex":1,"endIndex":5,"uri":"https://c.example"}]}"#,
                "[sources]\n1. <https://c.example>",
            ),
            (
                r#""urlContextMetadata":{"urlMetadata":[{"retrievedUrl":"https://u.example","urlRetrievalStatus":"URL_RETRIEVAL_STATUS_SUCCESS"}]}"#,
                "[sources]\n1. <https://u.example>",
            ),
            (
                r#""annotations":[{"type":"url_citation","start_index":0,"end_index":3,"title":"A","url":"https://a.example"},{"type":"url_citation","start_index":5,"end_index":9,"title":"A","url":"https://a.example"},{"type":"file_citation","file_id":"f","filename":"b.pdf","index":2}]"#,
                "[sources]\n1. A <https://a.example>\n2. b.pdf",
            ),
        ] {
            let block = format!(r#"{{"type":"reasoning","api":"x",{own}}}"#);
            assert_eq!(shown(&block).as_deref(), Some(expected), "{own}");
        }
    }
}
