//! Where summaries may come from: models, by option and configuration, and those that ask nobody.

use crate::compact::CompactRun;
use clawutils::cli::summary::SummaryModel;
use clawutils::messages::Message;
use clawutils::messages::checkpoint::LatestCheckpoint;
use std::path::PathBuf;

/// One source of summaries.
#[derive(Clone, Debug)]
pub enum Source {
    /// A file of the user's.
    File(PathBuf),
    /// A checkpoint that is there already.
    Checkpoint,
    /// A model that is asked.
    Model(Box<SummaryModel>),
    /// Put together without a model.
    Local,
    /// A note that there is no summary yet.
    Stub,
}

impl Source {
    /// Whether there is such a source for these messages at all.
    #[must_use]
    pub fn is_there(&self, messages: &[Message<'_>]) -> bool {
        !matches!(self, Source::Checkpoint) || LatestCheckpoint::among(messages).is_some()
    }

    /// How it is named in diagnostics.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Source::File(_) => "file",
            Source::Checkpoint => "checkpoint",
            Source::Model(asked) => &asked.name,
            Source::Local => "local",
            Source::Stub => "stub",
        }
    }

    /// The model that is asked, if it is one.
    #[must_use]
    pub fn model(&self) -> Option<&SummaryModel> {
        match self {
            Source::Model(asked) => Some(asked),
            _ => None,
        }
    }
}

impl CompactRun<'_> {
    /// All sources, in the order in which they are tried. By default nothing is left out without a summary from
    /// a request that fits.
    ///
    /// # Errors
    /// 78 when one of the models cannot be.
    pub(crate) fn sources(&self, is_too_long: bool) -> anyhow::Result<Vec<Source>> {
        if let Some(path) = &self.args.summary {
            return Ok(vec![Source::File(path.clone())]);
        }
        let mut sources = Vec::new();
        if self.args.sources.prefer_checkpoint {
            sources.push(Source::Checkpoint);
        }
        let models = self.models()?.into_iter();
        sources.extend(models.map(|asked| Source::Model(Box::new(asked))));
        let args = &self.args.sources;
        // Naming one of the two leaves the other out.
        let is_default = !args.no_fallback && args.fallback.is_none() && !args.emergency;
        if is_default || args.fallback.is_some() {
            sources.push(Source::Local);
        }
        if (is_default && is_too_long) || args.emergency {
            sources.push(Source::Stub);
        }
        Ok(sources)
    }

    /// Returns the models that are asked, in order. None at all where no call may be spent.
    ///
    /// # Errors
    /// 78 when the window of one leaves no room.
    pub(crate) fn models(&self) -> anyhow::Result<Vec<SummaryModel>> {
        match self.args.max_calls {
            0 => Ok(Vec::new()),
            _ => self.args.summarisers.models(self.model, self.budget),
        }
    }

    /// The model of the conversation.
    pub(crate) fn main(&self) -> SummaryModel {
        SummaryModel::main(self.model, self.budget)
    }
}
