//! `claw-turn --dry-run`: prints the commands of a turn.

use crate::scripts::Turn;
use crate::shell::quoted;
use clawutils::provider::address;
use clawutils::settings::{Origin, Setting, SettingValue};
use std::ffi::{OsStr, OsString};

/// Returns a shell script with the settings that are not at their defaults and the pipelines that the turn would run.
pub fn plan(args: &Turn, decided: &[(Setting, SettingValue)], has_window: bool) -> String {
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
    for (comment, command) in steps(args, has_window) {
        script.push_str(&format!("# {comment}\n{command}\n"));
    }
    script
}

/// Returns the steps of the turn, each with a comment and its command.
fn steps(args: &Turn, has_window: bool) -> Vec<(&'static str, String)> {
    let settings = &args.settings;
    let session = match &args.session {
        Some(name) if crate::shell::is_path(name) => shown(OsStr::new(name)),
        Some(name) => format!("\"$(claw-session path -- {})\"", shown(OsStr::new(name))),
        None => "\"$(claw-session path -- \"$(claw-session current)\")\"".to_owned(),
    };
    let rebuild = format!("claw-rebuild --meta -- {session}");
    let append = format!("claw-append -- {session}");
    let call = &settings.call.command;
    let mut steps = Vec::new();
    let files: String =
        args.attach.iter().map(|path| format!(" --attach={}", shown(path.as_os_str()))).collect();
    match &args.message {
        _ if args.again => {}
        Some(text) => {
            let text = shown(OsStr::new(text));
            let line = format!("printf '%s\\n' {text} | claw-append --user{files} -- {session}");
            steps.push(("append the prompt", line));
        }
        None => {
            let line = format!("claw-append --user{files} -- {session}");
            steps.push(("append the prompt from standard input", line));
        }
    }
    if settings.turn.proactive && has_window {
        steps.push((
            "if the estimate reaches the window less the reserve (3), summarise before the call",
            format!("{rebuild} | claw-estimate --check"),
        ));
    }
    steps
        .push(("call the model", format!("{rebuild} | {call} | claw-append --print -- {session}")));
    if settings.turn.guard {
        steps.push((
            "on an overflow (3): shorten tool results, and call again",
            format!("{rebuild} | claw-truncate --record | {append}"),
        ));
        steps.push((
            "on a second overflow: summarise the old part, and call again",
            format!("{rebuild} | claw-compact --record | {append}"),
        ));
    }
    if settings.request.tools.is_some() {
        steps.push((
            "run the tool calls of the reply, and call again, until a reply has no tool calls",
            format!(
                "claw-rebuild --open -- {session} | claw-exec | claw-append --each -- {session}"
            ),
        ));
    }
    if settings.due.checkpoint {
        steps.push((
            "in the background: make a checkpoint, if one is due",
            format!("{rebuild} | claw-checkpoint --if-due --deadline 300 | {append}"),
        ));
    }
    if settings.turn.retry {
        steps.push((
            "in the background: make missing summaries",
            format!("claw-retry --max-calls 4 --deadline 300 -- {session}"),
        ));
    }
    steps
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
