//! Gemini's API, at Google's own address and on Vertex AI.

mod reply;
mod request;
mod stream;

use crate::json::Object;
use crate::json::write::Members;
use crate::provider::address::{self, Platform};
use crate::provider::api::{Api, Urls};
use crate::provider::batch::{BatchService, GeminiBatches};
use crate::provider::collect::Collect;
use crate::provider::{ModelRequest, Reply};
pub(super) use request::{contents, origins};

/// The default base URL.
pub const BASE_URL: &str = "https://generativelanguage.googleapis.com/v1beta";

/// The protocol on a platform.
pub struct Gemini(pub Platform);

impl Api for Gemini {
    fn urls(&self, base: &str, model: &str) -> Urls {
        let url = |method: &str| match self.0 {
            Platform::Vertex => {
                let (models, query) = address::vertex_parent(base, "google");
                let name = address::segment(model.rsplit('/').next().unwrap_or_default());
                format!("{models}/{name}:{method}{query}")
            }
            _ => address::with_ending(&parent(base), &format!("/{}:{method}", resource(model))),
        };
        let models = || {
            let list = address::with_ending(&parent(base), "/models");
            address::with_parameter(&list, "pageSize=1000")
        };
        Urls {
            reply: url("generateContent"),
            stream: address::with_parameter(&url("streamGenerateContent"), "alt=sse"),
            count: Some(url("countTokens")),
            models: (self.0 != Platform::Vertex).then(models),
        }
    }

    fn body(&self, request: &ModelRequest<'_, '_>) -> String {
        request::body(request)
    }

    fn least_budget(&self) -> Option<u64> {
        Some(1)
    }

    /// Google's own endpoint takes a whole request with the name of the model in it, Vertex AI takes what counts
    /// (`_CountTokensConfig_to_mldev` and `_CountTokensParameters_to_vertex` in `models.py` of google-genai 3.6.1).
    fn count_body(&self, body: &Object<'_>, model: &str) -> String {
        let is_counted = |name: &str| matches!(name, "contents" | "systemInstruction" | "tools");
        let members = body.members().filter(|member| is_counted(&member.name()));
        match self.0 {
            Platform::Vertex => members.fold(Members::new(), Members::member),
            _ => Members::new().object("generateContentRequest", |it| {
                members.fold(it.string("model", &resource(model)), Members::member)
            }),
        }
        .into_json()
    }

    fn batches(&self, base: &str, model: &str) -> Option<Box<dyn BatchService>> {
        let own = self.0 != Platform::Vertex;
        own.then(|| Box::new(GeminiBatches::of(&parent(base), &resource(model))) as _)
    }

    fn read(&self, answer: &Object<'_>) -> Result<Reply, String> {
        reply::read(answer)
    }

    fn collect(&self) -> Box<dyn Collect> {
        Box::<stream::GeminiStream>::default()
    }
}

/// Returns the URL under which the models are.
fn parent(base: &str) -> String {
    let (path, query) = address::split_query(base);
    let path = path.find("/models/").map_or(path, |at| &path[..at]);
    let has_version = address::Address::parse(path).path.split('/').any(address::is_version);
    let version = if has_version { "" } else { "/v1beta" };
    [path, version, query].concat()
}

/// Returns the name of a model with its collection: `models/NAME`, or `tunedModels/NAME`.
fn resource(model: &str) -> String {
    let name = model.strip_prefix("google/").unwrap_or(model);
    let (collection, name) = name.split_once('/').unwrap_or(("models", name));
    format!("{}/{}", address::segment(collection), address::segment(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_counts_is_sent_to_be_counted() {
        let body =
            r#"{"contents":[1],"generationConfig":{},"systemInstruction":{"a":2},"tools":[3]}"#;
        let counted = |platform| Gemini(platform).count_body(&Object::parse(body).unwrap(), "m");
        let parts = r#""contents":[1],"systemInstruction":{"a":2},"tools":[3]}"#;
        assert_eq!(counted(Platform::Vertex), ["{", parts].concat());
        let begin = r#"{"generateContentRequest":{"model":"models/m","#;
        assert_eq!(counted(Platform::Own), [begin, parts, "}"].concat());
    }

    #[test]
    fn the_model_and_the_method_are_in_the_url() {
        const GOOGLE: &str = "https://generativelanguage.googleapis.com/v1beta/models/m";
        const VERTEX: &str = "https://eu-aiplatform.googleapis.com/v1/projects/p/locations/eu/publishers/google/models/m";
        for (base, model, expected) in [
            ("https://generativelanguage.googleapis.com", "m", GOOGLE),
            (BASE_URL, "models/m", GOOGLE),
            ("https://generativelanguage.googleapis.com/v1beta/", "google/m", GOOGLE),
            (&*format!("{GOOGLE}:generateContent"), "m", GOOGLE),
            ("https://eu-aiplatform.googleapis.com/v1/projects/p/locations/eu", "m", VERTEX),
            (
                "https://eu-aiplatform.googleapis.com/v1/projects/p/locations/eu/publishers/google/",
                "m",
                VERTEX,
            ),
            ("http://localhost:1", "tunedModels/x", "http://localhost:1/v1beta/tunedModels/x"),
            ("http://localhost:1", "a b?", "http://localhost:1/v1beta/models/a%20b%3F"),
        ] {
            let urls = Gemini(Platform::at(base)).urls(base, model);
            assert_eq!(urls.reply, format!("{expected}:generateContent"), "{base}");
            assert_eq!(urls.stream, format!("{expected}:streamGenerateContent?alt=sse"));
            assert_eq!(urls.count, Some(format!("{expected}:countTokens")));
            assert_eq!(urls.models.is_none(), expected == VERTEX, "{base}");
        }
        let urls = Gemini(Platform::Own).urls("https://x/v1beta?key=k", "m");
        assert_eq!(urls.stream, "https://x/v1beta/models/m:streamGenerateContent?key=k&alt=sse");
    }
}
