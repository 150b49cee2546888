//! The sources of summaries: the models that the settings name, and sources that need no model.

use crate::run::CompactRun;
use clawutils::cli::summary::SummaryModel;
use clawutils::messages::Message;
use clawutils::messages::checkpoint::LatestCheckpoint;
use std::path::PathBuf;

/// One source of summaries.
#[derive(Clone, Debug)]
pub enum Source {
    /// A file from the user.
    File(PathBuf),
    /// A checkpoint that was made earlier.
    Checkpoint,
    /// A model.
    Model(Box<SummaryModel>),
    /// Extraction from the messages, without a model.
    Local,
    /// A placeholder for a missing summary.
    Stub,
}

impl Source {
    /// Returns true if the source can be tried. [`Source::Checkpoint`] needs a checkpoint among the messages.
    #[must_use]
    pub fn is_available(&self, messages: &[Message<'_>]) -> bool {
        !matches!(self, Source::Checkpoint) || LatestCheckpoint::among(messages).is_some()
    }

    /// Returns the source's name in diagnostics.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Source::File(_) => "file",
            Source::Checkpoint => "checkpoint",
            Source::Model(summariser) => &summariser.name,
            Source::Local => "local",
            Source::Stub => "stub",
        }
    }

    /// Returns the model, if the source is one that gets our prompt.
    #[must_use]
    pub fn model(&self) -> Option<&SummaryModel> {
        match self {
            Source::Model(summariser) if !summariser.by_server => Some(summariser),
            _ => None,
        }
    }
}

impl CompactRun<'_> {
    /// Returns the sources to try, in order. By default, the placeholder is one of them only if the request does not
    /// fit.
    ///
    /// # Errors
    /// Fails with 78 if the window of a model leaves no room for a prompt.
    pub(crate) fn sources(&self, is_too_long: bool) -> anyhow::Result<Vec<Source>> {
        if let Some(path) = &self.args.summary {
            return Ok(vec![Source::File(path.clone())]);
        }
        let mut sources = Vec::new();
        if self.args.sources.prefer_checkpoint {
            sources.push(Source::Checkpoint);
        }
        let models = self.models()?.into_iter();
        sources.extend(models.map(|summariser| Source::Model(Box::new(summariser))));
        let args = &self.args.sources;
        // Without options, both sources below may be used; with options, only those that the options ask for.
        let is_default = !args.no_fallback && args.fallback.is_none() && !args.emergency;
        if is_default || args.fallback.is_some() {
            sources.push(Source::Local);
        }
        if (is_default && is_too_long) || args.emergency {
            sources.push(Source::Stub);
        }
        Ok(sources)
    }

    /// Returns the models to try, in order. There are none if `--max-calls` is 0.
    ///
    /// # Errors
    /// Fails with 78 if the window of a model leaves no room for a prompt.
    pub(crate) fn models(&self) -> anyhow::Result<Vec<SummaryModel>> {
        match self.args.max_calls {
            0 => Ok(Vec::new()),
            _ => self.args.summarisers.models(self.model, self.budget),
        }
    }

    /// Returns the model of the conversation.
    pub(crate) fn main(&self) -> SummaryModel {
        SummaryModel::main(self.model, self.budget)
    }
}
