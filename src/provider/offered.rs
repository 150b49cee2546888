//! The models that a provider offers: the questions to ask it, and what its answers say about a model.
//!
//! Providers agree on a list of models, and on little else: each has its own names for the window. `WINDOWS` and
//! `OUTPUTS` are the table of these names. A server for one model (llama.cpp) states its window elsewhere, so there
//! are further questions for servers whose list states none.

use crate::estimate::models;
use crate::estimate::windows::MIN_WINDOW;
use crate::json::write::Members;
use crate::json::{self, Object};
use crate::provider::address::{self, Address};
use crate::provider::api::Urls;
use crate::provider::protocol::Protocol;
use crate::provider::question::Question;
use crate::usage::count;

/// The longest answer that is read, in bytes. OpenRouter's list of 400 models has about 1 MB.
pub const MAX_ANSWER: usize = 16 * 1024 * 1024;
/// The largest number of pages of a list.
pub const MAX_PAGES: usize = 20;

/// The paths of the members that state the window, in tokens. The first of them that a model has applies, except that
/// of OpenRouter's two the smaller one does. Sources, read on 28 November 2026:
/// - `loaded_context_length`, `max_context_length`: LM Studio, `/api/v0/models`; Mistral has the latter as well
/// - `max_model_len`: vLLM and SGLang
/// - `top_provider.context_length`, `context_length`: OpenRouter; Together and Fireworks have the latter
/// - `context_window`: Groq
/// - `max_input_tokens`: Anthropic (`types/model_info.py` of anthropic 2.14.0), LiteLLM's proxy
/// - `inputTokenLimit`: Gemini (`types.py` of google-genai 3.6.1), whose answer has room of its own
/// - `meta.n_ctx`: llama.cpp; `n_ctx_train` beside it is what the model could have
/// - `default_generation_settings.n_ctx`: llama.cpp, `/props`
/// - `capabilities.limits.max_context_window_tokens`: GitHub Copilot
const WINDOWS: [&[&str]; 11] = [
    &["loaded_context_length"],
    &["max_model_len"],
    &["top_provider", "context_length"],
    &["context_length"],
    &["context_window"],
    &["max_input_tokens"],
    &["inputTokenLimit"],
    &["max_context_length"],
    &["meta", "n_ctx"],
    &["default_generation_settings", "n_ctx"],
    &["capabilities", "limits", "max_context_window_tokens"],
];

/// The paths of the members that state the longest answer, in tokens. The sources are those of [`WINDOWS`].
const OUTPUTS: [&[&str]; 6] = [
    &["top_provider", "max_completion_tokens"],
    &["max_completion_tokens"],
    &["outputTokenLimit"],
    &["max_output_tokens"],
    &["max_tokens"],
    &["capabilities", "limits", "max_output_tokens"],
];

/// A model that a provider offers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Offered {
    /// The model's name in requests. Empty in an answer that is about the only model of a server.
    pub model: String,
    /// The window in tokens, if the provider states it.
    pub window: Option<u64>,
    /// The longest answer in tokens, if the provider states it.
    pub max_output: Option<u64>,
}

/// The models of one page of a list, and the question for the next page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The models, in the order of the list.
    pub models: Vec<Offered>,
    /// The question for the next page, unless this is the last one.
    pub next: Option<Question>,
}

/// Returns the question for the list of models, if the provider has one. Vertex AI and Bedrock list models elsewhere, and
/// without windows.
#[must_use]
pub fn list(urls: &Urls) -> Option<Question> {
    urls.models.clone().map(Question::get)
}

/// Returns the questions for a model whose window is not in the list of the server at `base`.
///
/// The list of Ollama has no windows; what it says about a model (`/api/show`) has. The other servers that people run
/// themselves know their window, but not in OpenAI's list: LM Studio has it in a list of its own, llama.cpp in the
/// properties of the model that it serves. Servers of providers have neither, and OpenAI's states no windows at all.
#[must_use]
pub fn further(protocol: Protocol, base: &str, model: &str) -> Vec<Question> {
    let root = address::place(base);
    match protocol {
        Protocol::Ollama => {
            let body = Members::new().string("model", model);
            vec![Question::post(format!("{root}/api/show"), body)]
        }
        Protocol::Chat | Protocol::Responses if !is_openai(base) => vec![
            Question::get(format!("{root}/api/v0/models")),
            Question::get(format!("{root}/props?model={}", address::segment(model))),
        ],
        Protocol::Chat | Protocol::Responses => Vec::new(),
        Protocol::Anthropic | Protocol::AnthropicOnVertex | Protocol::AnthropicOnBedrock => {
            Vec::new()
        }
        Protocol::Gemini | Protocol::GeminiOnVertex => Vec::new(),
    }
}

fn is_openai(base: &str) -> bool {
    Address::parse(base).is_below("openai.com") || address::is_azure(base)
}

/// Reads a page of a list of models: the objects in the member `data` or `models`. Returns `None` if the answer is no list.
#[must_use]
pub fn read_page(question: &Question, answer: &str) -> Option<Page> {
    let object = Object::parse(answer.trim()).ok()?;
    let list = ["data", "models"].into_iter().find_map(|name| json::elements(object.get(name)?))?;
    let models = list.into_iter().filter_map(|entry| read(&Object::parse(entry).ok()?));
    Some(Page { models: models.collect(), next: next(question, &object) })
}

/// Returns the question for the next page: Anthropic's lists say `has_more` and `last_id`, Gemini's `nextPageToken`.
fn next(question: &Question, page: &Object<'_>) -> Option<Question> {
    let (parameter, token) = match page.string("nextPageToken") {
        Some(token) => ("pageToken", token),
        None => ("after_id", page.string("last_id").filter(|_| page.is_true("has_more"))?),
    };
    if token.is_empty() {
        return None;
    }
    // The parameter of the page before is the last one.
    let url = question.url.split(&format!("&{parameter}=")).next()?;
    Some(Question::get(format!("{url}&{parameter}={}", address::segment(&*token))))
}

/// Reads what an answer says about one model. Returns `None` if it names none.
fn read(entry: &Object<'_>) -> Option<Offered> {
    let name = ["id", "name", "model"].into_iter().find_map(|name| entry.string(name))?;
    let model = name.strip_prefix("models/").unwrap_or(&name).to_owned();
    Some(Offered { model, ..facts(entry) })
}

/// Reads the answer to one of the [`further`] questions about `model`. Returns `None` if it says nothing about the window.
#[must_use]
pub fn read_further(question: &Question, answer: &str, model: &str) -> Option<Offered> {
    let object = Object::parse(answer.trim()).ok()?;
    let found = match read_page(question, answer) {
        Some(page) => find(&page.models, model)?.clone(),
        None => facts(&object),
    };
    let stated = Offered { window: found.window.or_else(|| of_ollama(&object)), ..found };
    stated.window.is_some().then(|| Offered { model: model.to_owned(), ..stated })
}

/// Returns the entry for a model: the one with its name, else the one that is the same model with another date.
#[must_use]
pub fn find<'o>(offered: &'o [Offered], model: &str) -> Option<&'o Offered> {
    let exact = offered.iter().find(|it| it.model == model);
    exact.or_else(|| offered.iter().find(|it| models::is_same(&it.model, model)))
}

fn facts(entry: &Object<'_>) -> Offered {
    let numbers = |paths: &[&[&str]]| -> Vec<u64> {
        paths.iter().filter_map(|path| number(entry, path)).filter(|it| *it > 0).collect()
    };
    let mut windows = numbers(&WINDOWS);
    windows.retain(|window| *window >= MIN_WINDOW);
    // OpenRouter states the window of the model and that of its first provider.
    let window = match entry.get("top_provider") {
        Some(_) => windows.into_iter().min(),
        None => windows.first().copied(),
    };
    Offered { model: String::new(), window, max_output: numbers(&OUTPUTS).first().copied() }
}

/// Returns the window of a model in Ollama: the `num_ctx` of its definition. The length that the model was trained for
/// (`model_info`) is not it: Ollama allocates what a request names, and the whole length may not fit in memory.
fn of_ollama(answer: &Object<'_>) -> Option<u64> {
    let parameters = answer.string("parameters")?;
    let mut words = parameters.split_whitespace().skip_while(|word| *word != "num_ctx");
    count(words.nth(1)?).filter(|window| *window >= MIN_WINDOW)
}

/// Returns the number of tokens at a path of members. Some gateways write numbers as text.
fn number(object: &Object<'_>, path: &[&str]) -> Option<u64> {
    match path {
        [] => None,
        [name] => {
            let raw = object.get(name)?;
            count(json::string(raw).as_deref().unwrap_or(raw))
        }
        [name, rest @ ..] => number(&Object::parse(object.get(name)?).ok()?, rest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question() -> Question {
        Question::get("https://host/v1/models?limit=1000".to_owned())
    }

    #[test]
    fn each_provider_states_the_window_under_its_own_name() {
        // Made after the answers that the sources of the table describe.
        for (entry, window, max_output) in [
            (
                r#"{"id":"m","max_input_tokens":1000000,"max_tokens":128000}"#,
                Some(1_000_000),
                Some(128_000),
            ),
            (
                r#"{"name":"models/m","inputTokenLimit":1048576,"outputTokenLimit":65536}"#,
                Some(1_048_576),
                Some(65_536),
            ),
            (
                r#"{"id":"m","context_length":400000,"top_provider":{"context_length":272000,"max_completion_tokens":null}}"#,
                Some(272_000),
                None,
            ),
            (
                r#"{"id":"m","context_window":131072,"max_completion_tokens":32768}"#,
                Some(131_072),
                Some(32_768),
            ),
            (
                r#"{"id":"m","max_context_length":131072,"loaded_context_length":4096}"#,
                Some(4096),
                None,
            ),
            (
                r#"{"id":"m","object":"model","owned_by":"vllm","max_model_len":32768}"#,
                Some(32_768),
                None,
            ),
            (r#"{"id":"m","meta":{"n_ctx_train":131072}}"#, None, None),
            (r#"{"id":"m","meta":{"n_ctx":8192,"n_ctx_train":131072}}"#, Some(8192), None),
            (r#"{"id":"m","object":"model","created":1,"owned_by":"openai"}"#, None, None),
            (r#"{"id":"m","context_length":0}"#, None, None),
            (r#"{"id":"m","context_length":4096.0,"max_tokens":"512"}"#, Some(4096), Some(512)),
            (r#"{"id":"m","context_length":"8192"}"#, Some(8192), None),
            // Implausible ones, which are not stored either.
            (r#"{"id":"m","context_length":1023}"#, None, None),
            (r#"{"id":"m","context_length":-4096}"#, None, None),
            (r#"{"id":"m","context_length":1e300,"max_input_tokens":9000}"#, Some(9000), None),
            (r#"{"id":"m","context_length":"many"}"#, None, None),
        ] {
            for name in ["data", "models"] {
                let answer = format!(r#"{{"{name}":[{entry},7]}}"#);
                let page = read_page(&question(), &answer).unwrap();
                let expected = Offered { model: "m".to_owned(), window, max_output };
                assert_eq!(page, Page { models: vec![expected], next: None }, "{entry}");
            }
        }
        assert_eq!(read_page(&question(), "<html>"), None);
        assert_eq!(read_page(&question(), r#"{"error":"no"}"#), None);
    }

    #[test]
    fn a_list_may_have_several_pages() {
        for (answer, next) in [
            (
                r#"{"data":[],"has_more":true,"last_id":"a/b"}"#,
                Some("https://host/v1/models?limit=1000&after_id=a%2Fb"),
            ),
            (r#"{"data":[],"has_more":false,"last_id":"a"}"#, None),
            (
                r#"{"models":[],"nextPageToken":"x=&"}"#,
                Some("https://host/v1/models?limit=1000&pageToken=x%3D%26"),
            ),
            (r#"{"models":[],"nextPageToken":""}"#, None),
        ] {
            let second = read_page(&question(), answer).unwrap().next;
            assert_eq!(second.as_ref().map(|it| it.url.as_str()), next, "{answer}");
            // The parameter of a page replaces that of the page before.
            if let Some(second) = second {
                let third = read_page(&second, answer).unwrap().next.unwrap();
                assert_eq!(third, second);
            }
        }
    }

    #[test]
    fn servers_without_a_window_in_their_list_are_asked_elsewhere() {
        let urls = |protocol, base| {
            let asked = further(protocol, base, "a b");
            asked.into_iter().map(|it| (it.url, it.body.map(|body| body.text))).collect::<Vec<_>>()
        };
        let get = |url: &str| (url.to_owned(), None);
        assert_eq!(
            urls(Protocol::Chat, "http://127.0.0.1:8080/v1/chat/completions"),
            [
                get("http://127.0.0.1:8080/api/v0/models"),
                get("http://127.0.0.1:8080/props?model=a%20b")
            ]
        );
        assert_eq!(
            urls(Protocol::Ollama, "http://127.0.0.1:11434/"),
            [("http://127.0.0.1:11434/api/show".to_owned(), Some(r#"{"model":"a b"}"#.to_owned()))]
        );
        assert_eq!(urls(Protocol::Chat, "https://api.openai.com"), []);
        assert_eq!(urls(Protocol::Responses, "https://x.openai.azure.com"), []);
        assert_eq!(urls(Protocol::Gemini, "https://generativelanguage.googleapis.com"), []);

        let read =
            |answer: &str| read_further(&question(), answer, "m").map(|it| (it.model, it.window));
        let found = |window| Some(("m".to_owned(), Some(window)));
        let props = r#"{"default_generation_settings":{"id":0,"n_ctx":2048},"total_slots":4}"#;
        assert_eq!(read(props), found(2048));
        let studio = r#"{"data":[{"id":"n","max_context_length":9000},{"id":"m","max_context_length":8000}]}"#;
        assert_eq!(read(studio), found(8000));
        let show = |parameters: &str| {
            format!(
                r#"{{"parameters":"{parameters}","model_info":{{"llama.context_length":131072}}}}"#
            )
        };
        assert_eq!(
            read(&show(r#"stop \"<x>\"\nnum_ctx                        8192\ntop_k 4"#)),
            found(8192)
        );
        assert_eq!(read(&show("top_k 4")), None, "the server decides what it allocates");
        assert_eq!(read(r#"{"error":"not found"}"#), None);
    }

    #[test]
    fn a_model_is_found_by_its_name_or_without_its_date() {
        let offered = |model: &str| Offered { model: model.to_owned(), ..Offered::default() };
        let list =
            [offered("claude-x-20260101"), offered("claude-x"), offered("claude-y-20260101")];
        assert_eq!(find(&list, "claude-x"), Some(&list[1]));
        assert_eq!(find(&list, "claude-y"), Some(&list[2]));
        assert_eq!(find(&list, "claude-z"), None);
    }
}
