//! `--list-models` and `--ask-window`: what the provider says about its models.

use crate::args::{CallArgs, named};
use crate::asking::{Asking, NoAnswer, TextAnswer};
use crate::refused_features::note_error;
use clawutils::cli::model::ModelArgs;
use clawutils::cli::{Log, Output};
use clawutils::estimate::windows::Source;
use clawutils::exit::{Exit, fail};
use clawutils::json::write::Members;
use clawutils::printable::printable_json;
use clawutils::provider::endpoint::Endpoint;
use clawutils::provider::offered::{self, MAX_ANSWER, MAX_PAGES, Offered};
use clawutils::provider::question::Question;
use clawutils::provider::{Failure, address};
use std::collections::HashSet;
use std::time::Instant;

/// The reason why a successful answer is not used.
const NO_LIST: &str = "the answer is not a list of models";

/// The endpoint whose provider is asked.
struct Asked<'e> {
    asking: Asking<'e>,
}

/// Writes the models that the provider offers as JSON lines, each with its window if the provider or the table of models
/// knows it.
///
/// # Errors
/// Status 78 if the provider has no list, 69 if it gives none.
pub fn list(args: &CallArgs, model: &ModelArgs, log: Log) -> anyhow::Result<Exit> {
    let endpoint = open(args, model)?;
    let _progress = log.wait_for("waiting for the list of models");
    let models = match Asked::new(args, &endpoint)?.list()? {
        Ok(models) => models,
        Err(failure) => {
            let text = format!("cannot list the models: {}", failure.final_message());
            return fail(failure.exit(), endpoint.without_key(&text));
        }
    };
    let lines = models.iter().map(|offered| line(offered, model));
    Output::lines(lines.collect::<anyhow::Result<Vec<_>>>()?)
}

/// Asks the provider for the window of the model, stores the answer for all programs, and writes it as a JSON line. Returns
/// 5 if the provider states no window.
///
/// # Errors
/// Status 69 if the provider gives no answer. Then nothing is stored.
pub fn ask(args: &CallArgs, model: &ModelArgs, log: Log) -> anyhow::Result<Exit> {
    let name = named(model)?;
    let endpoint = open(args, model)?;
    let _progress = log.wait_for(format!("asking for the window of {name}"));
    let found = Asked::new(args, &endpoint)?.about(&name)?;
    let stored = model.learn_window(Source::Answer, found.window, args.window.window);
    note_error(stored, log);
    Output::lines([line(&found, model)?])?;
    Ok(if found.window.is_some() { Exit::Done } else { Exit::NoGain })
}

/// Opens the endpoint with its key.
fn open(args: &CallArgs, model: &ModelArgs) -> anyhow::Result<Endpoint> {
    if model.provider().is_offline() {
        return fail(Exit::Config, "the offline provider has no models to list; see --provider");
    }
    let mut endpoint = args.connection.endpoint(model)?;
    if endpoint.urls.models.is_none() {
        let text = format!(
            "no list of models at '{}'; see the documentation of the platform for their names and windows",
            address::shown(&endpoint.base)
        );
        return fail(Exit::Config, text);
    }
    endpoint.open()?;
    Ok(endpoint)
}

/// Returns a model as a JSON object. A window that the provider does not state is taken from the table of models.
fn line(offered: &Offered, model: &ModelArgs) -> anyhow::Result<String> {
    let table = model.known(&offered.model)?.window;
    let origin = match (offered.window, table) {
        (Some(_), _) => Some("provider"),
        (None, Some(_)) => Some("table"),
        (None, None) => None,
    };
    let line = Members::new()
        .string("model", &offered.model)
        .optional(Members::number, "window", offered.window.or(table))
        .optional(Members::string, "window_origin", origin)
        .optional(Members::number, "max_output", offered.max_output)
        .into_json();
    Ok(printable_json(&line).into_owned())
}

impl<'e> Asked<'e> {
    fn new(args: &CallArgs, endpoint: &'e Endpoint) -> anyhow::Result<Asked<'e>> {
        let until = args.deadline.and_then(|most| Instant::now().checked_add(most));
        let rows = args.rows.failures.read()?;
        Ok(Asked { asking: Asking { endpoint, timeout: args.patience.timeout, until, rows } })
    }

    /// Returns the models that the provider lists; nothing if it has no list. A list that cannot be read is an error with
    /// what the server answered.
    fn list(&self) -> anyhow::Result<Result<Vec<Offered>, Failure>> {
        let mut next = offered::list(&self.asking.endpoint.urls);
        let (mut models, mut names) = (Vec::<Offered>::new(), HashSet::new());
        for _ in 0..MAX_PAGES {
            let Some(question) = next else { break };
            let answer = self.answer(&question)?;
            let page = offered::read_page(&question, &answer.text).filter(|_| answer.is_success());
            let Some(page) = page else {
                return Ok(Err(answer.failure(&self.asking.rows, NO_LIST)?));
            };
            // A page that comes again, because a server ignores the cursor or repeats it, has nothing new.
            let before = models.len();
            models.extend(page.models.into_iter().filter(|it| names.insert(it.model.clone())));
            next = page.next.filter(|_| models.len() > before);
        }
        Ok(Ok(models))
    }

    /// Returns what the provider says about a model: in its list, else elsewhere. The window is missing if it says nothing.
    fn about(&self, name: &str) -> anyhow::Result<Offered> {
        let listed = match self.list()? {
            Ok(listed) => listed,
            // A server without a list states no window there. Any other failure says nothing about the window.
            Err(failure) if matches!(failure.status, Some(200..=299 | 404 | 405 | 501)) => {
                Vec::new()
            }
            Err(failure) => {
                let text = format!("cannot ask for the window: {}", failure.final_message());
                return fail(failure.exit(), self.asking.endpoint.without_key(&text));
            }
        };
        let listed = offered::find(&listed, name);
        if let Some(found) = listed.filter(|it| it.window.is_some()) {
            return Ok(Offered { model: name.to_owned(), ..found.clone() });
        }
        for question in
            offered::further(self.asking.endpoint.protocol, &self.asking.endpoint.base, name)
        {
            let answer = self.answer(&question)?;
            let found = offered::read_further(&question, &answer.text, name);
            if let Some(found) = found.filter(|_| answer.is_success()) {
                return Ok(found);
            }
        }
        let max_output = listed.and_then(|it| it.max_output);
        Ok(Offered { model: name.to_owned(), window: None, max_output })
    }

    /// Returns the answer to a question.
    fn answer(&self, question: &Question) -> anyhow::Result<TextAnswer> {
        let text = match self.asking.answer(question, MAX_ANSWER) {
            Ok(answer) => return Ok(answer),
            Err(NoAnswer::Failed(failure)) => {
                return fail(failure.exit(), self.asking.endpoint.without_key(&failure.message));
            }
            Err(NoAnswer::Late) => "no complete answer about models in time".to_owned(),
            Err(NoAnswer::TooLong(most)) => {
                format!("the list of models is larger than {most} bytes")
            }
        };
        fail(Exit::Unavailable, text)
    }
}
