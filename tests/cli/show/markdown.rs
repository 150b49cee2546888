//! `claw-show --markdown`: a reply is laid out for a terminal while it arrives.

use predicates::str::contains;

use crate::common::{AssertExt, Sandbox};

/// Checks the layout of `text`.
#[track_caller]
fn assert_layout(text: &str, args: &[&str], expected: &str) {
    Sandbox::new()
        .cmd("claw-show")
        .arg("--markdown")
        .args(args)
        .write_stdin(text)
        .assert()
        .success()
        .stderr("")
        .stdout(expected.to_owned());
}

const TEXT: &str = "# A *title*\n\nSome **bold words** and `code`, これは**「永久」**です, \
    [here](https://x.org).\n\n- one two three four five six seven eight\n  - [x] nested\n\n> said\n\n\
    | a | n |\n|---|--:|\n| `x` | 12 |\n\n```sh\nls   -l\n```\n";

#[test]
fn audit_29_markdown_is_laid_out_for_a_terminal() {
    assert_layout(
        TEXT,
        &["--width", "30"],
        "# A *title*\n\nSome **bold words** and\n`code`, これは**「永久」**です\n, [here](https://x.org).\n\n- one two three four five six\n  \
         seven eight\n  - [x] nested\n\n> said\n\na   │  n\n────┼───\n`x` │ 12\n\n```sh\nls   -l\n```\n",
    );
    let args = ["--width", "30", "--color", "always"];
    let run = Sandbox::new()
        .cmd("claw-show")
        .arg("--markdown")
        .args(args)
        .write_stdin(TEXT)
        .assert()
        .success();
    let shown = run.stdout_text();
    for part in [
        "\u{1b}[1;4mA \u{1b}[0m\u{1b}[1;3;4mtitle\u{1b}[0m\n",
        "\u{1b}[1mbold words\u{1b}[0m",
        "\u{1b}[1m「永久」\u{1b}[0mです",
        "\u{1b}[4mhere\u{1b}[0m\n\u{1b}[2m(https://x.org)",
        "\n• one two three",
        "\n  • [x] nested",
        "\u{1b}[2m│ \u{1b}[0msaid",
        "ls   -l",
    ] {
        assert!(shown.contains(part), "{part:?}\n{run}");
    }
}

#[test]
fn audit_29_control_characters_are_shown_escaped() {
    assert_layout(
        "a\u{1b}[31m\u{202e}b\r\nc\rd\u{0}\n",
        &[],
        "a\\u{1b}[31m\\u{202e}b\nc\\rd\\u{0}\n",
    );
    assert_layout("no end", &[], "no end\n");
    assert_layout("", &[], "");
    assert_layout("bad \u{fffd} bytes", &[], "bad \u{fffd} bytes\n");
}

#[test]
fn audit_29_rows_are_shown_while_the_text_arrives() {
    // Each part is sent once a row of the part before it has been shown.
    let script = r#"
        until_seen () { while ! grep -q "$1" out; do sleep 0.01; done }
        : >out
        {
            printf 'Words of a long paragraph in one line that are '
            printf 'wrapped while it goes on and on and on'
            until_seen 'Words of a long'
            printf ', to its end.\n\n- a first item\n- a second one\n'
            until_seen 'a first item'
            printf '\n```\nline 1\nline 2\n'
            until_seen 'line 2'
            printf '```\n'
        } | claw-show --markdown --width 30 >out
        cat out"#;
    Sandbox::new().sh(script).assert().success().stdout("Words of a long paragraph in\none line that are wrapped\nwhile it goes on and on and\non, to its end.\n\n\
         - a first item\n- a second one\n\n```\nline 1\nline 2\n```\n");
}

#[test]
fn audit_29_memory_is_bounded_and_the_reader_may_exit_early() {
    for endless in
        ["tr '\\0' a", "tr '\\0' '\\n'", "sed 's/./- word\\n/g'", "sed '1s/^/```\\n/; s/./x/g'"]
    {
        let script = format!(
            "ulimit -v 100000; {{ head -c 150000 /dev/zero | {endless}; echo; echo end; }} | \
             claw-show --markdown | tail -n 1"
        );
        Sandbox::new().sh(&script).assert().success().stderr("").stdout("end\n");
    }
    let script = "{ yes '# word'; } | { claw-show --markdown; echo $? >status; } | head -n 1";
    let sandbox = Sandbox::new();
    sandbox.sh(script).assert().success().stderr("").stdout("# word\n");
    assert_eq!(sandbox.read_text("status"), "141\n");
}

#[test]
fn audit_29_conflicting_options_are_refused() {
    Sandbox::new()
        .cmd("claw-show")
        .args(["--markdown", "x.md"])
        .assert()
        .code(2)
        .stderr(contains("claw-show: cannot use --markdown with files: it reads standard input"));
    Sandbox::new().cmd("claw-show").args(["--markdown", "--follow"]).assert().code(2);
    Sandbox::new()
        .cmd("claw-show")
        .arg("--markdown")
        .env("COLUMNS", "24")
        .write_stdin("some words that are wrapped here")
        .assert()
        .success()
        .stdout("some words that are\nwrapped here\n");
}
