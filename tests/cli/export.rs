//! claw-config export: settings as commands for a shell.

use assert_cmd::assert::Assert;

use crate::common::Sandbox;

/// Runs `claw-config export` in a shell; `line` has variables before "-- " and arguments after it.
fn export(sandbox: &Sandbox, line: &str) -> Assert {
    let (variables, arguments) = line.split_once("-- ").expect("a separator");
    sandbox.sh(&format!("{variables} claw-config export -- {arguments}")).assert()
}

#[test]
fn a_setting_becomes_a_variable() {
    let sandbox = Sandbox::new();
    for (line, printed) in [
        ("-- model tiny", "export CLAW_MODEL='tiny'\n"),
        ("-- model \"it's\"", "export CLAW_MODEL='it'\\''s'\n"),
        ("-- window 8000", "export CLAW_WINDOW='8000'\n"),
        ("-- temperature 0.5", "export CLAW_TEMPERATURE='0.5'\n"),
        ("-- ask yes", "export CLAW_ASK='true'\n"),
        ("-- ask false", "export CLAW_ASK='false'\n"),
        ("-- guard off", "export CLAW_GUARD='false'\n"),
        ("-- guard on", "export CLAW_GUARD='true'\n"),
        ("-- allow a,b", "export CLAW_ALLOW='a\nb\n'\n"),
        ("-- checkpoint-percents 10,90", "export CLAW_CHECKPOINT_PERCENTS='10\n90\n'\n"),
        // An empty value selects the default; without a value, the variable is unset.
        ("-- model ''", "export CLAW_MODEL=''\n"),
        ("-- allow ''", "export CLAW_ALLOW=''\n"),
        ("CLAW_MODEL=x -- model", "unset CLAW_MODEL\n"),
        // A setting clears another setting that it excludes.
        (
            "CLAW_KEY_FILE=f -- key-cmd 'cat k'",
            "export CLAW_KEY_FILE=''\nexport CLAW_KEY_CMD='cat k'\n",
        ),
    ] {
        export(&sandbox, line).success().stdout(printed).stderr("");
    }
}

#[test]
fn errors_are_reported_as_by_claw_config_set() {
    let sandbox = Sandbox::new();
    for (line, why) in [
        ("-- windo 8000", "claw-config: unknown key 'windo'; did you mean 'window'?\n"),
        ("-- windo", "claw-config: unknown key 'windo'; did you mean 'window'?\n"),
        (
            "-- window -5",
            "claw-config: invalid value '-5' for 'window': not a whole number; write digits only, without a unit\n",
        ),
        (
            "-- provider x",
            "claw-config: invalid value 'x' for 'provider': use anthropic, openai, gemini, ollama or offline\n",
        ),
        ("-- ask perhaps", "claw-config: invalid value 'perhaps' for 'ask': use true or false\n"),
    ] {
        export(&sandbox, line).code(2).stdout("").stderr(why);
    }
}

#[test]
fn any_text_survives_the_shell() {
    let sandbox = Sandbox::new();
    let text = "a 'b' \"c\" $(touch pwned) `touch pwned` \\ é\u{1b}[31m\n!";
    sandbox.write("text", text);
    let script = "change=$(claw-config export -- model \"$(cat text)\") && eval \"$change\" && printf %s \"$CLAW_MODEL\"";
    sandbox.sh(script).assert().success().stdout(text);
    assert!(!sandbox.exists("pwned"));
}
