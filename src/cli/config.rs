//! The configuration: GoClaw's `session` object, with its own keys and units.
//!
//! What a program does not know is passed over; what it knows has to be of the right kind.

use crate::cli::{read_file, variable};
use crate::exit::{Error, Exit};
use crate::json::{Object, elements, string};
use std::path::PathBuf;

/// The option that names the file.
#[derive(Clone, Debug, clap::Args)]
pub struct ConfigArgs {
    /// Configuration file, JSON (CLAW_CONFIG)
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// What a configuration says of sessions. The defaults are those of a file that says nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// `session.checkpoint`: when a checkpoint is due.
    pub checkpoint: CheckpointConfig,
    /// `session.compaction`: when and how a summary is made.
    pub compaction: CompactionConfig,
}

/// `session.checkpoint`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckpointConfig {
    /// `enabled`.
    pub enabled: bool,
    /// `tokenThresholdPercents`: shares of the window, in percent.
    pub percents: Vec<u64>,
    /// `turnThreshold`: turns since the last checkpoint; 0 is never.
    pub turns: u64,
    /// `minTokensForGen`: tokens below which none is made.
    pub min_tokens: u64,
}

impl Default for CheckpointConfig {
    fn default() -> CheckpointConfig {
        CheckpointConfig { enabled: true, percents: vec![25, 50, 75], turns: 10, min_tokens: 5000 }
    }
}

/// `session.compaction`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompactionConfig {
    /// `reserveTokens`.
    pub reserve: Option<u64>,
    /// `preferCheckpoint`.
    pub prefer_checkpoint: bool,
    /// `retryIntervalSeconds`: between two tries to mend summaries; 0 is never.
    pub retry_seconds: u64,
    /// `ollamaFailureThreshold`: failures in a row after which a source is skipped.
    pub failures: u64,
    /// `ollamaResetMinutes`: how long it is skipped.
    pub reset_minutes: u64,
    /// `ollama`: a model that is asked for summaries before that of the conversation.
    pub ollama: Option<OllamaConfig>,
}

impl Default for CompactionConfig {
    fn default() -> CompactionConfig {
        CompactionConfig {
            reserve: None,
            prefer_checkpoint: false,
            retry_seconds: 60,
            failures: 3,
            reset_minutes: 30,
            ollama: None,
        }
    }
}

/// `session.compaction.ollama`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OllamaConfig {
    /// `url`.
    pub url: Option<String>,
    /// `model`.
    pub model: String,
    /// `timeoutSeconds`.
    pub timeout_seconds: Option<u64>,
    /// `contextTokens`: its window.
    pub window: Option<u64>,
}

impl ConfigArgs {
    /// Reads the file, if one is named.
    ///
    /// # Errors
    /// 74 or 77 when it cannot be read, 78 when it is no configuration.
    pub fn read(&self) -> anyhow::Result<Config> {
        let Some(path) = self.config.clone().or_else(|| variable("CLAW_CONFIG").map(Into::into))
        else {
            return Ok(Config::default());
        };
        let bytes = read_file(&path)?;
        Config::parse(&String::from_utf8_lossy(&bytes)).map_err(|why| {
            let text = format!("cannot use configuration '{}': {why}; correct it", path.display());
            Error::new(Exit::Config, text).into()
        })
    }
}

impl Config {
    /// Reads the JSON text.
    ///
    /// # Errors
    /// Names the first key whose value is of the wrong kind.
    pub fn parse(text: &str) -> Result<Config, String> {
        let root = Object::parse(text).map_err(|error| error.to_string())?;
        let session = Section { path: String::new(), object: Some(root) }.section("session")?;
        let checkpoint = session.section("checkpoint")?;
        let compaction = session.section("compaction")?;
        Ok(Config {
            checkpoint: read_checkpoint(&checkpoint)?,
            compaction: read_compaction(&compaction)?,
        })
    }
}

fn read_checkpoint(section: &Section<'_>) -> Result<CheckpointConfig, String> {
    let usual = CheckpointConfig::default();
    let percents = section.numbers("tokenThresholdPercents")?.unwrap_or(usual.percents);
    if percents.iter().any(|percent| !(1..=100).contains(percent)) {
        return Err(section.wrong("tokenThresholdPercents", "not percents from 1 to 100"));
    }
    Ok(CheckpointConfig {
        enabled: section.switch("enabled")?.unwrap_or(usual.enabled),
        percents,
        turns: section.number("turnThreshold")?.unwrap_or(usual.turns),
        min_tokens: section.number("minTokensForGen")?.unwrap_or(usual.min_tokens),
    })
}

fn read_compaction(section: &Section<'_>) -> Result<CompactionConfig, String> {
    let usual = CompactionConfig::default();
    let ollama = section.section("ollama")?;
    // Without a model there is nobody to ask.
    let ollama = match ollama.text("model")? {
        None => None,
        Some(model) => Some(OllamaConfig {
            url: ollama.text("url")?,
            model,
            timeout_seconds: ollama.number("timeoutSeconds")?,
            window: ollama.number("contextTokens")?.filter(|window| *window > 0),
        }),
    };
    Ok(CompactionConfig {
        reserve: section.number("reserveTokens")?,
        prefer_checkpoint: section.switch("preferCheckpoint")?.unwrap_or(usual.prefer_checkpoint),
        retry_seconds: section.number("retryIntervalSeconds")?.unwrap_or(usual.retry_seconds),
        failures: section.number("ollamaFailureThreshold")?.unwrap_or(usual.failures),
        reset_minutes: section.number("ollamaResetMinutes")?.unwrap_or(usual.reset_minutes),
        ollama,
    })
}

/// An object in the configuration, and the way to it; what is not there is empty.
struct Section<'a> {
    path: String,
    object: Option<Object<'a>>,
}

impl<'a> Section<'a> {
    fn get(&self, name: &str) -> Option<&'a str> {
        self.object.as_ref()?.get(name).filter(|raw| *raw != "null")
    }

    fn wrong(&self, name: &str, what: &str) -> String {
        format!("'{}{name}' is {what}", self.path)
    }

    fn section(&self, name: &str) -> Result<Section<'a>, String> {
        let path = format!("{}{name}.", self.path);
        let Some(raw) = self.get(name) else { return Ok(Section { path, object: None }) };
        let object = Object::parse(raw).map_err(|_| self.wrong(name, "no object"))?;
        Ok(Section { path, object: Some(object) })
    }

    fn read<T>(
        &self,
        name: &str,
        what: &str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>, String> {
        let read = |raw| read(raw).ok_or_else(|| self.wrong(name, what));
        self.get(name).map(read).transpose()
    }

    fn number(&self, name: &str) -> Result<Option<u64>, String> {
        self.read(name, "no whole number", |raw| raw.parse().ok())
    }

    fn numbers(&self, name: &str) -> Result<Option<Vec<u64>>, String> {
        self.read(name, "no list of whole numbers", |raw| {
            elements(raw)?.into_iter().map(|raw| raw.parse().ok()).collect()
        })
    }

    fn switch(&self, name: &str) -> Result<Option<bool>, String> {
        self.read(name, "neither true nor false", |raw| raw.parse().ok())
    }

    /// A text that is not empty.
    fn text(&self, name: &str) -> Result<Option<String>, String> {
        let text = self.read(name, "no text", |raw| string(raw).map(|text| text.into_owned()))?;
        Ok(text.filter(|text| !text.is_empty()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goclaws_keys_and_units() {
        let text = r#"{"gateway":{"port":1},"session":{"store":"sqlite","checkpoint":{"enabled":false,
            "tokenThresholdPercents":[10,90],"turnThreshold":0,"minTokensForGen":7},
            "compaction":{"reserveTokens":30000,"preferCheckpoint":true,"retryIntervalSeconds":0,
            "ollamaFailureThreshold":2,"ollamaResetMinutes":5,"ollama":{"url":"http://box:11434",
            "model":"qwen","timeoutSeconds":120,"contextTokens":32000}}}}"#;
        let config = Config::parse(text).unwrap();
        let checkpoint =
            CheckpointConfig { enabled: false, percents: vec![10, 90], turns: 0, min_tokens: 7 };
        let ollama = OllamaConfig {
            url: Some("http://box:11434".into()),
            model: "qwen".into(),
            timeout_seconds: Some(120),
            window: Some(32000),
        };
        let compaction = CompactionConfig {
            reserve: Some(30000),
            prefer_checkpoint: true,
            retry_seconds: 0,
            failures: 2,
            reset_minutes: 5,
            ollama: Some(ollama),
        };
        assert_eq!(config, Config { checkpoint, compaction });
    }

    #[test]
    fn what_is_not_said_is_as_usual() {
        for text in ["{}", r#"{"session":null}"#, r#"{"session":{"compaction":{"ollama":{}}}}"#] {
            assert_eq!(Config::parse(text), Ok(Config::default()), "{text}");
        }
    }

    #[test]
    fn what_is_of_the_wrong_kind_is_named() {
        for (session, why) in [
            ("3", "'session' is no object"),
            (r#"{"compaction":[]}"#, "'session.compaction' is no object"),
            (
                r#"{"compaction":{"reserveTokens":"x"}}"#,
                "'session.compaction.reserveTokens' is no whole number",
            ),
            (
                r#"{"checkpoint":{"enabled":1}}"#,
                "'session.checkpoint.enabled' is neither true nor false",
            ),
            (
                r#"{"checkpoint":{"tokenThresholdPercents":[0]}}"#,
                "'session.checkpoint.tokenThresholdPercents' is not percents from 1 to 100",
            ),
            (
                r#"{"compaction":{"ollama":{"model":7}}}"#,
                "'session.compaction.ollama.model' is no text",
            ),
        ] {
            let text = format!(r#"{{"session":{session}}}"#);
            assert_eq!(Config::parse(&text), Err(why.to_owned()), "{text}");
        }
    }
}
