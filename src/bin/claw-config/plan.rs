//! `claw-turn --dry-run`: lists the commands of a turn as a shell script. Those that depend on an outcome are comments.

use crate::scripts::{Turn, is_path};
use clawutils::cli::options::StoreKind;
use clawutils::process::quoted;
use clawutils::provider::address;
use clawutils::settings::{Origin, Setting, SettingValue};
use std::ffi::{OsStr, OsString};

/// The file with the failure of the call.
const FAILURE: &str = "failure.json";

/// Returns a shell script with the settings that are not at their defaults and the pipelines that the turn would run.
pub fn plan(
    args: &Turn,
    decided: &[(Setting, SettingValue)],
    has_limit: bool,
    ask_window: bool,
) -> String {
    let mut script = String::new();
    for (setting, value) in decided {
        if value.origin != Origin::Default && !value.texts.is_empty() {
            let text = setting.join(&value.texts);
            let text = match setting.key.as_str() {
                "base-url" | "ollama-url" => address::shown(&text.to_string_lossy()).into(),
                _ => text,
            };
            script.push_str(&format!("export {}={}\n", setting.variable, shown(&text)));
        }
    }
    for (comment, command, is_certain) in steps(args, has_limit, ask_window) {
        let mark = if is_certain { "" } else { "#   " };
        script.push_str(&format!("# {comment}\n{mark}{command}\n"));
    }
    script
}

/// A step of the turn: a comment, its command, and true if every turn makes it.
type Step = (&'static str, String, bool);

/// Returns the steps of the turn.
fn steps(args: &Turn, has_limit: bool, ask_window: bool) -> Vec<Step> {
    let settings = &args.settings;
    let session = session(args);
    let rebuild = format!("claw-rebuild --meta -- {session}");
    let append = format!("claw-append -- {session}");
    let call = &settings.call.command;
    let step =
        |is_possible: bool, comment, command| is_possible.then_some((comment, command, false));
    let steps = [
        prompt(args, &session),
        step(
            settings.turn.proactive && has_limit,
            "before the first call, if the prompt cache has expired: shorten old results",
            format!("{rebuild} | claw-truncate --if-cold --record | {append}"),
        ),
        step(
            settings.turn.proactive && has_limit,
            "if the estimate reaches the window less the reserve (status 3) or a cut pays (status 5), summarise before the call; if the bytes reach their limit (status 4), leave images out",
            format!("{rebuild} | claw-estimate --check"),
        ),
        Some((
            "call the model",
            format!("{rebuild} | {call} --failure {FAILURE} | claw-append --print -- {session}"),
            true,
        )),
        step(
            settings.turn.guard,
            "while a refusal is about tokens (status 3), bytes (4) or a block (76): shorten results or leave blocks out, and call again",
            format!("{rebuild} | claw-truncate --record --failure {FAILURE} | {append}"),
        ),
        step(
            settings.turn.guard,
            "if that is not enough: summarise the old part, and call again",
            format!("{rebuild} | claw-compact --record --failure {FAILURE} | {append}"),
        ),
        step(
            settings.turn.guard,
            "if a block is still refused (status 76): undo what was done after the refusal",
            format!("claw-rebuild --undo refused -- {session} | {append}"),
        ),
        step(
            settings.request.tools.is_some(),
            "run the tool calls of the reply, and call again, until a reply has no tool calls",
            format!(
                "claw-rebuild --open -- {session} | claw-exec | claw-append --each -- {session}"
            ),
        ),
        step(
            settings.due.checkpoint,
            "in the background: make a checkpoint, if one is due",
            format!("{rebuild} | claw-checkpoint --if-due --deadline 300 | {append}"),
        ),
        step(
            ask_window,
            "once a week, before the call if no window is known, else in the background: ask the provider for it",
            "claw-call --ask-window --deadline 60".to_owned(),
        ),
        step(
            settings.place.store.store == StoreKind::Sqlite,
            "in the background: bring the index up to date",
            format!("claw-index update --quiet -- {session}"),
        ),
        step(
            settings.turn.retry,
            "in the background: make missing summaries",
            format!("claw-retry --max-calls 4 --deadline 300 -- {session}"),
        ),
    ];
    steps.into_iter().flatten().collect()
}

/// Returns the path of the transcript as a word for the shell.
fn session(args: &Turn) -> String {
    match &args.session {
        Some(name) if is_path(name) => shown(OsStr::new(name)),
        Some(name) => format!("\"$(claw-session path -- {})\"", shown(OsStr::new(name))),
        None => "\"$(claw-session path -- \"$(claw-session current)\")\"".to_owned(),
    }
}

/// Returns the step that appends the prompt, unless the turn is continued.
fn prompt(args: &Turn, session: &str) -> Option<Step> {
    if args.again {
        return None;
    }
    let files = args.attach.iter().map(|path| format!(" --attach={}", shown(path.as_os_str())));
    let line = format!("claw-append --user{} -- {session}", files.collect::<String>());
    Some(match &args.message {
        Some(text) => {
            let text = shown(OsStr::new(text));
            ("append the prompt", format!("printf '%s\\n' {text} | {line}"), true)
        }
        None => ("append the prompt from standard input", line, true),
    })
}

/// Returns a word for the shell, in quotes if it needs them.
fn shown(word: &OsStr) -> String {
    let text = word.to_string_lossy();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-:+=,@%".contains(c);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text.into_owned(),
        false => quoted(&OsString::from(text.as_ref())).to_string_lossy().into_owned(),
    }
}
