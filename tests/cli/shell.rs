//! claw-config shell: translates the command line of a script into code that sets the same values in every shell,
//! whatever text the values contain.

use assert_cmd::assert::Assert;
use predicates::str::contains;

use crate::common::Sandbox;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

/// The shells to test.
const SHELLS: [&[&str]; 3] = [&["dash"], &["bash"], &["busybox", "sh"]];

/// Returns the shells that are installed. In CI, a missing shell is a failure.
#[allow(clippy::print_stderr, reason = "the test reports that it was skipped")]
fn installed_shells() -> Vec<&'static [&'static str]> {
    let is_installed = |shell: &&[&str]| {
        let run = Sandbox::new().sh("command -v \"$1\"").arg("sh").arg(shell[0]).assert();
        let is_installed = run.get_output().status.success();
        assert!(is_installed || std::env::var_os("CI").is_none(), "no {} in CI", shell[0]);
        if !is_installed {
            eprintln!("skipped: no {}", shell[0]);
        }
        is_installed
    };
    SHELLS.into_iter().filter(is_installed).collect()
}

/// A script that evaluates its settings, prints the values that it received, each followed by a NUL byte, and copies
/// standard input, to which the settings redirect the message.
const SCRIPT: &str = r#"
settings=$(claw-config shell turn -- "$@") || exit
eval "$settings"
printf '%s\0' "$session" "$message" "${CLAW_SYSTEM-unset}" "${CLAW_MODEL-unset}" "${CLAW_KEY_CMD-unset}"
export settings
env -0 | grep -z '^CLAW_MODEL=' || printf '\0'
cat
"#;

/// Runs the script with these arguments in a shell.
fn evaluate(sandbox: &Sandbox, shell: &[&str], arguments: &[OsString]) -> Assert {
    let script = sandbox.path("script");
    let cmd = sandbox.sh("exec \"$@\"").arg("sh").args(shell).arg(script);
    cmd.args(["--provider", "offline"]).args(arguments).assert()
}

/// Returns strings that a shell or a parser could misinterpret.
fn hostile() -> Vec<Vec<u8>> {
    let mut all: Vec<Vec<u8>> = [
        "plain",
        "two words",
        " both ends ",
        "it's",
        "''",
        "'; echo broken; '",
        "\"$HOME\"",
        "$(id)",
        "`id`",
        "\\",
        "\\n",
        "ends in a line feed\n",
        "\n\n",
        "a\nb",
        "*",
        "~",
        "-",
        "--",
        "--model",
        "-m",
        "=",
        "a=b",
        "é",
        "日本語",
        "\u{1f600}",
        "\t",
        "\r",
        "\u{7f}",
        "\u{1b}[31m",
        "!",
        "#",
        "&",
        ";",
        "%s",
        "%d\\0",
        "{",
        "(",
    ]
    .map(|text| text.as_bytes().to_vec())
    .to_vec();
    // Pseudorandom bytes other than NUL.
    let mut state = 1u32;
    for length in [1, 7, 64, 300] {
        let byte = |state: &mut u32| {
            *state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            ((*state >> 24) as u8).max(1)
        };
        all.push((0..length).map(|_| byte(&mut state)).collect());
    }
    all
}

/// Linux limits each argument, and each environment variable, to 128 KiB.
#[test]
fn a_message_as_long_as_an_argument_can_be_is_accepted() {
    let message = "'".repeat((128 << 10) - 1);
    for shell in installed_shells() {
        let sandbox = Sandbox::new();
        let script =
            "exec \"$@\" \"$(command -v claw-turn)\" --no-checkpoint -m \"$(cat)\" s.jsonl";
        let cmd = sandbox.sh(script).arg("sh").args(shell).env("CLAW_PROVIDER", "offline");
        // If `message` were still exported when the script sets it, the long text would have to fit into the
        // environment.
        let cmd = cmd.env("message", "exported");
        cmd.write_stdin(message.as_str()).assert().success();
        assert!(sandbox.read_json("s.jsonl")[0]["content"] == message.as_str(), "{shell:?}");
    }
}

#[test]
fn any_text_reaches_a_script_unchanged() {
    let sandbox = Sandbox::new();
    sandbox.write("script", SCRIPT);
    sandbox.write("system", "Be brief.");
    for shell in installed_shells() {
        assert_values_arrive(&sandbox, shell);
    }
}

fn assert_values_arrive(sandbox: &Sandbox, shell: &[&str]) {
    for text in hostile() {
        let value = OsString::from_vec(text.clone());
        // Messages and model names must be UTF-8, so bytes that are not UTF-8 are not passed.
        let is_text = std::str::from_utf8(&text).is_ok();
        let mut joined = OsString::from("--message=");
        joined.push(&value);
        let mut arguments = vec![OsString::from("./s.jsonl"), joined];
        if is_text {
            let mut joined = OsString::from("--model=");
            joined.push(&value);
            arguments.push(joined);
        } else {
            arguments.pop();
            arguments.extend(["--message".into(), "m".into()]);
        }
        arguments.extend(["--system".into(), "system".into()]);
        let run = evaluate(sandbox, shell, &arguments).success();
        let got: Vec<&[u8]> = run.get_output().stdout.split(|byte| *byte == 0).collect();
        let message: &[u8] = if is_text { &text } else { b"m" };
        assert_eq!(got[0], b"./s.jsonl", "{shell:?} {value:?}");
        assert_eq!(got[1], message, "{shell:?} {value:?}");
        assert_eq!(got[6], [message, b"\n"].concat(), "{shell:?} {value:?}");
        // Paths are made absolute, because the programs that a script runs may run in another directory.
        let system = sandbox.path("system");
        assert_eq!(got[2], system.as_os_str().as_encoded_bytes(), "{shell:?} {value:?}");
        if is_text {
            assert_eq!(got[3], text, "{shell:?} {value:?}");
            assert_eq!(got[5], [b"CLAW_MODEL=", text.as_slice()].concat(), "{shell:?} {value:?}");
        }
    }
}

/// An empty list must not count as a missing option: without `--allow`, every tool is allowed.
#[test]
fn an_empty_list_is_refused_and_blanks_around_commas_are_ignored() {
    let sandbox = Sandbox::new();
    let shell = |args: &[&str]| {
        let args = [&["shell", "turn", "--", "--provider", "offline", "s.jsonl"], args].concat();
        sandbox.cmd("claw-config").args(&args)
    };
    shell(&["--allow", ""])
        .assert()
        .code(2)
        .stderr(contains("claw-turn: a value is required for --allow; "));
    for text in [",", " , ", "\n"] {
        shell(&[])
            .env("CLAW_ALLOW", text)
            .assert()
            .code(78)
            .stdout("")
            .stderr(contains("claw-turn: a value is required for CLAW_ALLOW; "));
    }
    for json in [r#"{"allow":[]}"#, r#"{"allow":[""]}"#] {
        sandbox.write("c.json", json);
        shell(&["--config", "c.json"])
            .assert()
            .code(78)
            .stderr(contains("'allow' has an empty value; "));
    }
    let list = sandbox.cmd("claw-config").args(["get", "deny"]).env("CLAW_DENY", "foo, bar ,baz");
    list.assert().success().stdout("foo\nbar\nbaz\n");
}

#[test]
fn a_file_that_cannot_be_edited_is_not_changed() {
    let sandbox = Sandbox::new();
    let config = |args: &[&str]| sandbox.cmd("claw-config").args(args).assert();
    let set = "mkfifo pipe; : >pipe & claw-config --config pipe set model x";
    sandbox
        .sh(set)
        .assert()
        .code(74)
        .stderr(contains("cannot change 'pipe': not a regular file; "));
    sandbox.sh("test -p pipe").assert().success();
    let profiles = r#"{"profiles":{"a":{"model":"x"}}}"#;
    sandbox.write("c.json", profiles);
    config(&["--config", "c.json", "unset", "profiles"])
        .code(2)
        .stderr(contains("is not a setting"));
    assert_eq!(sandbox.read_text("c.json"), profiles);
    // An empty file is valid and has no settings.
    sandbox.write("c.json", "");
    config(&["--config", "c.json", "get", "provider"]).stderr("");
    sandbox.write("c.json", b"{\"model\":\"a\xff\"}");
    config(&["--config", "c.json", "list"]).code(78).stderr(contains("not UTF-8; correct it"));
}
