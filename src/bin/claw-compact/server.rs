//! Gets the summary that the server of the conversation's model makes of its own, by `claw-call --compact`.

use clawutils::cli::budget::RequestArgs;
use clawutils::cli::log::StageOutcome;
use clawutils::cli::summary::SummaryModel;
use clawutils::cli::{diagnostics, progress};
use clawutils::compact::call_budget::CallBudget;
use clawutils::compact::own::{self, OwnSummary};
use clawutils::exit::{Error, Exit, fail};
use clawutils::messages::Message;
use clawutils::process::{self, ChildLimits};
use clawutils::settings::groups::REQUEST;

/// Asks the server for its own summary of `covered`. The request has the system prompt and the tools of `request`.
///
/// # Errors
/// Fails with 5 if the request does not fit or no calls are left, 69 if there is no summary in the answer or the time limit is
/// reached, and otherwise with the status of the command.
pub(super) fn ask(
    command: &str,
    summariser: &SummaryModel,
    request: &RequestArgs,
    covered: &[Message<'_>],
    call_budget: &CallBudget,
) -> anyhow::Result<OwnSummary> {
    call_budget.take()?;
    let limits = ChildLimits { until: call_budget.until(), without: &REQUEST, with: &[] };
    let arguments = arguments(summariser, request);
    // The command shows its own progress.
    progress::stop();
    let ended = process::run(command, &arguments, own::request(covered).into_bytes(), limits)?;
    match ended.exit() {
        Some(Exit::Done) => {
            OwnSummary::read(&String::from_utf8_lossy(&ended.stdout)).map_err(|why| {
                let text = format!("summary from '{command}' rejected: {why}");
                Error::new(Exit::Unavailable, text).with(StageOutcome::Refused.member()).into()
            })
        }
        Some(Exit::Overflow | Exit::TooLarge) => {
            fail(Exit::NoGain, "the summary request does not fit the context window")
        }
        _ => Err(ended.failure(command, "cannot get a summary")),
    }
}

/// Returns the arguments of `claw-call`: the model, its window, the files of the request, and the format of diagnostics.
fn arguments(summariser: &SummaryModel, request: &RequestArgs) -> Vec<String> {
    let path = |path: &std::path::PathBuf| path.display().to_string();
    let given = [
        ("--system", request.system.as_ref().map(path)),
        ("--tools", request.tools.as_ref().map(path)),
        ("--window", summariser.window.map(|budget| budget.window.to_string())),
        ("--log", diagnostics::is_json().then(|| "json".to_owned())),
    ];
    let given = given.into_iter().filter_map(|(name, value)| Some([name.to_owned(), value?]));
    let own = ["--compact".to_owned()].into_iter().chain(summariser.model.arguments());
    own.chain(given.flatten()).collect()
}
