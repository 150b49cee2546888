//! `claw-config shell`: parses and checks the command line of a script, and prints shell code for it to `eval`.
//!
//! Nothing is printed unless the whole command line is valid. The settings given on the command line become exported
//! variables, for the programs that the script runs; values that only the script needs become plain variables.

use crate::plan::plan;
use crate::program::not_found;
use crate::scripts::{COMMANDS, Chat, Retry, Turn, TurnSettings, is_path};
use crate::value::absolute;
use anyhow::Context;
use clap::Parser;
use clawutils::cli::model::{ModelArgs, state_dir};
use clawutils::cli::options::PlaceArgs;
use clawutils::cli::{Output, arguments, attach, diagnostics};
use clawutils::exec::tools::Directory;
use clawutils::exit::{Exit, fail};
use clawutils::json::write::Members;
use clawutils::printable::printable;
use clawutils::process::quoted;
use clawutils::provider::Provider;
use clawutils::settings::decide::{CommandLineError, Parsed};
use clawutils::settings::mistakes::{self, one_of};
use clawutils::settings::{Origin, Setting, SettingValue};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// Print shell code that sets the options of a script
#[derive(Clone, Debug, clap::Args)]
pub struct Shell {
    /// Script whose options are read
    script: Script,
    /// Arguments of the script
    #[arg(value_name = "ARGUMENT", last = true)]
    arguments: Vec<OsString>,
}

/// The scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Script {
    Turn,
    Retry,
    Chat,
}

impl Shell {
    /// Prints shell code. `options` go before the arguments of the script. Errors are reported under the name
    /// of the script.
    ///
    /// # Errors
    /// Fails with 74 if standard output cannot be written to.
    pub fn run(&self, options: Vec<OsString>) -> anyhow::Result<Exit> {
        let arguments = [options, self.arguments.clone()].concat();
        let (name, printed) = match self.script {
            Script::Turn => ("claw-turn", read("claw-turn", &arguments, turn)),
            Script::Retry => ("claw-retry", read("claw-retry", &with_pause(&arguments), retry)),
            Script::Chat => ("claw-chat", read("claw-chat", &arguments, chat)),
        };
        match printed {
            Ok(text) => text.print(),
            Err(error) => Ok(diagnostics::report(name, &error)),
        }
    }
}

/// Parses `arguments` as the arguments of script `name`, and returns the shell code that `print` makes from
/// them.
fn read<A: Parser>(
    name: &str,
    arguments: &[OsString],
    print: fn(&A, &Decided, &mut ShellCode) -> anyhow::Result<()>,
) -> anyhow::Result<ShellCode> {
    let line: Vec<OsString> = [name.into()].into_iter().chain(arguments.iter().cloned()).collect();
    let mut parsed = match arguments::read::<A>(&line) {
        Ok(parsed) => parsed,
        Err(CommandLineError::Config(error)) => return Err(error),
        Err(CommandLineError::Usage(command, error)) if error.use_stderr() => {
            return fail(Exit::Usage, mistakes::usage_error(&error, &command, &line));
        }
        Err(CommandLineError::Usage(_, help)) => {
            let mut text = ShellCode::default();
            text.add("printf '%s' ").add(quoted(help.to_string().as_ref())).add("\nexit 0\n");
            return Ok(text);
        }
    };
    let mut text = ShellCode::default();
    text.exports(&parsed);
    let arguments = A::from_arg_matches_mut(&mut parsed.matches)?;
    print(&arguments, &parsed.settings, &mut text)?;
    Ok(text)
}

/// Settings with their values.
type Decided = [(Setting, SettingValue)];

/// Shell code.
#[derive(Debug, Default)]
pub struct ShellCode(OsString);

impl ShellCode {
    fn add(&mut self, piece: impl AsRef<OsStr>) -> &mut ShellCode {
        self.0.push(piece);
        self
    }

    /// Adds the assignment of a variable.
    fn set(&mut self, name: &str, value: impl AsRef<OsStr>) {
        self.0.push(name);
        self.0.push("=");
        self.0.push(quoted(value.as_ref()));
        self.0.push("\n");
    }

    /// Adds the assignment of `yes` or `no` to a variable.
    fn set_switch(&mut self, name: &str, is_on: bool) {
        self.set(name, if is_on { "yes" } else { "no" });
    }

    /// Adds code that makes a message the script's standard input. The code so far is stored in the variable
    /// `settings`, which the script exports. The message is kept out of that variable, because Linux limits an
    /// environment variable to 128 KiB.
    fn set_input(&mut self, message: &str) {
        let settings = std::mem::take(self).0;
        self.set("settings", settings);
        self.add("eval \"$settings\"\n");
        // If the environment had a variable `message`, the assignment would also export the new value.
        self.unset("message");
        self.set("message", message);
        self.add("exec <<END\n$message\nEND\n");
    }

    /// Adds the command that unsets a variable.
    pub fn unset(&mut self, name: &str) {
        self.add("unset ").add(name).add("\n");
    }

    /// Adds exports of the settings on the command line.
    pub fn exports(&mut self, parsed: &Parsed) {
        let given = parsed.settings.iter().filter(|(_, value)| value.origin == Origin::Flag);
        for (setting, value) in given {
            self.0.push("export ");
            // The script may run programs in another directory.
            let texts = value.texts.iter().map(|text| absolute(setting, text.clone()));
            self.set(&setting.variable, setting.join(&texts.collect::<Vec<_>>()));
        }
    }

    /// Writes the code to standard output.
    pub fn print(&self) -> anyhow::Result<Exit> {
        let mut out = Output::open();
        out.write_all(self.0.as_bytes())?;
        out.finish()?;
        Ok(Exit::Done)
    }
}

fn turn(args: &Turn, decided: &Decided, text: &mut ShellCode) -> anyhow::Result<()> {
    let settings = &args.settings;
    let is_given = |keys: &[&str]| {
        let mut flags = decided.iter().filter(|(_, value)| value.origin == Origin::Flag);
        flags.any(|(setting, _)| keys.contains(&setting.key.as_str()))
    };
    let permits = ["allow", "deny", "ask", "pass-env", "jobs", "exec-timeout"];
    if is_given(&permits) && settings.request.tools.is_none() {
        return fail(Exit::Usage, "options for tools need --tools; see claw-turn --help");
    }
    let session = args.session.clone().unwrap_or_default();
    if session.is_empty() && !args.current {
        return fail(Exit::Usage, "a value is required for SESSION; see claw-turn --help");
    }
    if is_path(&session) && is_given(&["reset", "idle"]) {
        return fail(
            Exit::Usage,
            format!(
                "--reset and --idle need a session name, but '{session}' is a path; leave them out"
            ),
        );
    }
    if settings.limit_turns.limit_turns == Some(0) {
        return fail(Exit::Usage, "invalid value '0' for --limit-turns: use 1 or more");
    }
    let has_limit = check(settings)?;
    let ask_window = asks_window(settings)?;
    set_attached(&args.attach, text)?;
    if args.dry_run {
        let plan = plan(args, decided, has_limit, ask_window.is_some());
        text.add("printf '%s' ").add(quoted(plan.as_ref())).add("\nexit 0\n");
        return Ok(());
    }
    report_default_model(&settings.model, &session);
    text.set("session", &session);
    text.set("again", again(args));
    text.set("undo", undo(args));
    text.set("prompt", if args.again { "again" } else { "input" });
    text.set("kept", if args.again { "the turn is not finished" } else { "the prompt is kept" });
    let uses_claw_call = settings.call.command.contains("claw-call");
    text.set_switch("stream", args.reply.stream && uses_claw_call);
    text.set_switch("markdown", args.reply.markdown);
    text.set_switch("cost", args.reply.cost);
    text.set_switch("proactive", settings.turn.proactive && has_limit);
    text.set("ask_window", ask_window.unwrap_or("no"));
    text.set_switch("wants_proactive", settings.turn.proactive);
    text.set_switch("guard", settings.turn.guard);
    text.set_switch("checkpoint", settings.due.checkpoint);
    text.set_switch("retry", settings.turn.retry);
    text.set_switch("tools", settings.request.tools.is_some());
    text.set("max_rounds", settings.turn.max_rounds.to_string());
    call(&settings.call.command, text);
    if let Some(message) = &args.message {
        text.set_input(message);
    }
    Ok(())
}

/// Returns when the provider should be asked for the window, if it should: no window is set, the provider was not asked in the
/// last week, and the turn uses the network. It is asked before the turn if no window is known, else after it, in the
/// background.
fn asks_window(settings: &TurnSettings) -> anyhow::Result<Option<&'static str>> {
    let TurnSettings { model, turn, call, cassette, budget, .. } = settings;
    let is_live = call.command == "claw-call"
        && cassette.replay.is_none()
        && cassette.record.is_none()
        && !model.provider().is_offline();
    let is_wanted = turn.ask_window && budget.window.window.is_none();
    if !(is_live && is_wanted && model.is_window_due()?) {
        return Ok(None);
    }
    Ok(Some(if model.window(None)?.is_none() { "before" } else { "after" }))
}

fn retry(args: &Retry, _: &Decided, text: &mut ShellCode) -> anyhow::Result<()> {
    check_command(&args.call.command)?;
    args.summarisers.models(&args.model, None)?;
    for path in args.sessions.iter().filter(|session| is_path(session)) {
        File::open(path).with_context(|| format!("cannot read '{path}'"))?;
    }
    let every = match args.every {
        None => String::new(),
        Some(None) => args.pause.retry_interval.to_string(),
        Some(Some(seconds)) => seconds.to_string(),
    };
    text.set("every", every);
    let calls = args.max_calls.map(|most| format!("--max-calls={most}"));
    let time = args.deadline.map(|longest| format!("--deadline={}", longest.as_secs_f64()));
    text.set("limits", calls.into_iter().chain(time).collect::<Vec<_>>().join(" "));
    text.add("set --");
    for session in &args.sessions {
        text.add(" ").add(quoted(session.as_ref()));
    }
    text.add("\n");
    Ok(())
}

fn chat(args: &Chat, _: &Decided, text: &mut ShellCode) -> anyhow::Result<()> {
    let Chat { chat, settings, .. } = args;
    check_values(settings)?;
    if !args.new && args.session.as_deref() == Some("") {
        return fail(Exit::Usage, "a value is required for SESSION; see claw-chat --help");
    }
    set_attached(&args.attach, text)?;
    text.set("session", args.session.clone().unwrap_or_default());
    text.set_switch("new", args.new);
    let history = state_dir().filter(|_| chat.history).map(|dir| dir.join("chat_history"));
    text.set("history", history.unwrap_or_default());
    text.set("model", printable(&described(&settings.model)).into_owned());
    text.set("commands", COMMANDS);
    let PlaceArgs { workspace, agent, .. } = &settings.place;
    let workspace = std::path::absolute(&workspace.workspace).unwrap_or_default();
    text.set("place", workspace.join(agent.as_deref().unwrap_or_default()));
    text.set_switch("stream", chat.stream);
    text.set_switch("markdown", chat.markdown);
    // The offline provider costs nothing.
    text.set_switch("cost", chat.cost && !settings.model.provider().is_offline());
    Ok(())
}

/// Checks the files to attach, and adds `set --` with a claw-append option for each.
fn set_attached(files: &[PathBuf], text: &mut ShellCode) -> anyhow::Result<()> {
    text.add("set --");
    for file in files {
        attach::block(file)?;
        let mut option = OsString::from("--attach=");
        option.push(file);
        text.add(" ").add(quoted(&option));
    }
    text.add("\n");
    Ok(())
}

/// Describes the model to the user.
fn described(model: &ModelArgs) -> String {
    match model.model() {
        Some(name) => format!("model {name} ({})", model.provider().name()),
        None => "no model is set; /model NAME sets one".to_owned(),
    }
}

/// Checks everything that would otherwise fail only after the prompt is stored. Returns true if the window or the limit in
/// bytes is known.
fn check(settings: &TurnSettings) -> anyhow::Result<bool> {
    let has_limit = check_values(settings)?;
    let TurnSettings { model, call, .. } = settings;
    if settings.request.tools.is_some() {
        settings.place.workspace.require()?;
    }
    if call.command == "claw-call" {
        let endpoint = settings.connection.endpoint(model)?;
        endpoint.check()?;
        if settings.cassette.replay.is_none() {
            let checked = endpoint.require_key();
            if checked.is_err() && model.provider.is_none() {
                explain_providers();
            }
            checked?;
        }
        if model.model().is_none() {
            return fail(Exit::Config, "no model is named; give --model or set CLAW_MODEL");
        }
    }
    Ok(has_limit)
}

/// Checks the values of settings and the files that they name. Returns true if the window or the limit
/// in bytes is known.
fn check_values(settings: &TurnSettings) -> anyhow::Result<bool> {
    let TurnSettings { model, request, budget, call, .. } = settings;
    request.read()?;
    settings.body.read()?;
    settings.limits.prices(model)?;
    settings.failures.read()?;
    let budget = budget.budget(model, None)?;
    settings.summarisers.models(model, budget)?;
    if let Some(tools) = &request.tools {
        Directory::open(tools)?;
    }
    check_command(&call.command)?;
    Ok(budget.is_some() || model.byte_limit()?.is_some())
}

/// Explains how to choose a provider.
fn explain_providers() {
    let keys = Provider::by_key().filter_map(|provider| provider.key_variables("").first());
    let keys = one_of(&keys.collect::<Vec<_>>());
    for line in [
        &*format!("to call a provider: set {keys} to your key"),
        "to use a model on this machine: start Ollama, and give --provider ollama --model NAME",
        "to try it without a model: give --provider offline",
    ] {
        diagnostics::say("claw-turn", line);
    }
}

/// Reports which default model is used, on the first turn of a new transcript.
fn report_default_model(model: &ModelArgs, session: &str) {
    let is_new = is_path(session) && !std::path::Path::new(session).exists();
    if !is_new || model.named_model().is_some() || model.provider() == Provider::Offline {
        return;
    }
    if let Some(name) = model.model() {
        let provider = model.provider().name();
        diagnostics::say(
            "claw-turn",
            &format!("using {name} from {provider}; --model or CLAW_MODEL selects another"),
        );
    }
}

/// Checks that the shell finds the program of a command. `claw-call` is not checked, to save starting a
/// shell.
fn check_command(command: &str) -> anyhow::Result<()> {
    if command == "claw-call" || not_found(command).is_none() {
        return Ok(());
    }
    fail(
        Exit::Config,
        format!("cannot run '{command}': no such program; check --call and CLAW_CALL"),
    )
}

/// Adds the shell function `call`, which calls the model; its first arguments are `--failure FILE`. Another program than
/// claw-call may write no error record, and without one, only an overflow (3) is understood.
fn call(command: &str, text: &mut ShellCode) {
    let body = match command {
        "claw-call" => r#"claw-call "$@""#.to_owned(),
        _ => {
            let record = Members::of_type("error").string("class", "too-large").into_line();
            let foreign = r#"sh -c "$CLAW_CALL \"\$@\"" sh "$@""#;
            let too_large = r#"{ set -- "$?" "$2"; test "$1" -ne 4 || test -s "$2" || echo"#;
            format!(r#"{foreign} || {too_large} '{}' >"$2"; return "$1"; }}"#, record.trim_end())
        }
    };
    text.add("export ");
    text.set("CLAW_CALL", command);
    text.add("call () { ").add(&body).add("; }\n");
}

/// Returns a text as a word for the shell.
fn word(text: &str) -> String {
    quoted(text.as_ref()).display().to_string()
}

/// Returns the command that continues a turn, for the user to type.
fn again(args: &Turn) -> String {
    let session = match &args.session {
        Some(session) if session.starts_with('-') => format!("-- {}", word(session)),
        Some(session) => word(session),
        None => "--continue".to_owned(),
    };
    format!("claw-turn --again {session}")
}

/// Returns the command that undoes the newest turn, for the user to type.
fn undo(args: &Turn) -> String {
    let transcript = match &args.session {
        Some(session) if is_path(session) => word(session),
        Some(name) => format!("\"$(claw-session path -- {})\"", word(name)),
        None => "\"$(claw-session path \"$(claw-session current)\")\"".to_owned(),
    };
    format!("claw-rebuild --undo turn -- {transcript} | claw-append -- {transcript}")
}

/// Joins `--every` and a number that follows it into one argument: the number is optional, so clap requires `=`.
fn with_pause(arguments: &[OsString]) -> Vec<OsString> {
    let mut joined: Vec<OsString> = Vec::new();
    let options = arguments.iter().take_while(|argument| *argument != "--").count();
    for argument in &arguments[..options] {
        let is_number = argument.to_str().is_some_and(|text| text.parse::<u64>().is_ok());
        match joined.last_mut().filter(|last| *last == "--every" && is_number) {
            Some(last) => {
                last.push("=");
                last.push(argument);
            }
            None => joined.push(argument.clone()),
        }
    }
    joined.extend_from_slice(&arguments[options..]);
    joined
}
