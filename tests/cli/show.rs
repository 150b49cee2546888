//! claw-show: all content of a transcript is shown, in three formats, and none of it controls the terminal, the
//! Markdown reader or the browser.

mod agents;
pub mod browser;
mod diff;
mod follow;
mod injected;
mod markdown;
mod output;
mod site;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use unicode_width::UnicodeWidthStr;

use assert_cmd::assert::Assert;
use predicates::str::contains;

use crate::common::{AssertExt, Sandbox};

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

/// Shows a transcript of `tests/data`.
#[track_caller]
fn show_file(name: &str, args: &[&str]) -> Assert {
    Sandbox::new().cmd("claw-show").args(args).arg(data(name)).assert()
}

/// Shows records from standard input.
#[track_caller]
fn show(records: &str, args: &[&str]) -> Assert {
    Sandbox::new().cmd("claw-show").args(args).write_stdin(records).assert()
}

fn user(text: &str) -> String {
    format!("{{\"type\":\"user\",\"content\":{}}}\n", serde_json::json!(text))
}

fn reply(text: &str) -> String {
    let text = serde_json::json!(text);
    format!("{{\"type\":\"assistant\",\"content\":[{{\"type\":\"text\",\"text\":{text}}}]}}\n")
}

fn call(id: &str) -> String {
    format!(
        "{{\"type\":\"tool_use\",\"tool_use_id\":\"{id}\",\"name\":\"f\",\"input\":{{\"n\":\"{id}\"}}}}\n"
    )
}

fn result(id: &str, text: &str) -> String {
    let text = serde_json::json!(text);
    format!("{{\"type\":\"tool_result\",\"tool_use_id\":\"{id}\",\"content\":{text}}}\n")
}

// ---- content --------------------------------------------------------------------------------

#[test]
fn output_matches_the_golden_files() {
    let full: &[&str] = &["--full"];
    for (file, args) in [
        ("everything.txt", &[][..]),
        ("everything.full.txt", full),
        ("everything.color.txt", &["--color", "always", "--limit-turns", "1"]),
        ("everything.md", &["--format", "markdown"]),
        ("everything.html", &["--format", "html"]),
    ] {
        let run = show_file("show/everything.jsonl", args).success().stderr("");
        let golden = data("show").join(file);
        if env::var_os("CLAW_BLESS").is_some() {
            fs::write(&golden, &run.get_output().stdout).expect("a golden file");
        }
        let expected = fs::read(&golden).expect("a golden file; CLAW_BLESS=1 writes it");
        assert!(run.get_output().stdout == expected, "expected: {}\n{run}", golden.display());
    }
}

#[test]
fn a_call_that_claw0_recorded_twice_is_shown_once() {
    let twice = r#"{"type":"assistant","content":[{"type":"text","text":"look"},{"type":"tool_use","id":"c1","name":"f","input":{"n":"c1"}},{"type":"tool_use","id":"c2","name":"f","input":{"n":"c2"}}]}"#;
    let records = [
        &user("q"),
        twice,
        "\n",
        &call("c1"),
        &result("c1", "r1"),
        &call("c2"),
        &result("c2", "r2"),
    ];
    show(&records.concat(), &["--width", "40"]).success().stderr("").stdout(
        "── turn 1 ──────────────────────────────\n\nuser\n  q\n\nassistant\n  look\n\n  \
         ▸ f {\"n\":\"c1\"}\n  ▸ f {\"n\":\"c2\"}\n\n  ◂ f {\"n\":\"c1\"}\n    r1\n\n  \
         ◂ f {\"n\":\"c2\"}\n    r2\n\n── 2 calls\n",
    );
}

#[test]
fn a_result_before_its_call_is_shown_in_file_order() {
    let text = |text: &str| format!("{{\"type\":\"assistant\",\"content\":\"{text}\"}}\n");
    let records =
        [&result("c1", "r1"), &user("q"), &text("look"), &call("c1"), &text("done"), &call("c2")];
    show(&records.map(String::as_str).concat(), &["--width", "40"]).success().stderr("").stdout(
        "  ◂ result of call c1, without a call\n  before it\n    r1\n\n── turn 1 \
         ──────────────────────────────\n\nuser\n  q\n\nassistant\n  look\n\n  \
         ▸ f {\"n\":\"c1\"}\n    (the result is above)\n\nassistant\n  done\n\n  \
         ▸ f {\"n\":\"c2\"}\n\n── 2 calls\n",
    );
}

#[test]
fn both_formats_of_claw0_are_shown_in_full() {
    let mut files = 0;
    for entry in walkdir::WalkDir::new(data("claw0-present"))
        .into_iter()
        .flatten()
        .chain(walkdir::WalkDir::new(data("claw0-first")).into_iter().flatten())
    {
        if entry.path().extension().is_none_or(|extension| extension != "jsonl") {
            continue;
        }
        files += 1;
        let text = fs::read_to_string(entry.path()).expect("a transcript");
        let run = show(&text, &["--full", "--width", "4000"]).success().stderr("");
        let (shown, mut calls) = (run.stdout_text(), Vec::new());
        for line in text.lines() {
            let record: serde_json::Value = serde_json::from_str(line).expect("a record");
            if record["type"] == "tool_use" {
                calls.push(record["tool_use_id"].to_string());
            }
            for content in
                [&record["content"], &record["output"]].iter().filter_map(|it| it.as_str())
            {
                for line in content.lines().filter(|line| !line.trim().is_empty()) {
                    let line = line.replace('\t', "        ");
                    let line = line.trim();
                    assert!(
                        shown.contains(line) || line.contains("  "),
                        "{}\n{run}",
                        line.to_owned()
                    );
                }
            }
        }
        let marks = shown.lines().filter(|line| line.starts_with("  ▸ ")).count();
        assert!(marks == calls.len(), "{} calls\n{run}", calls.len());
    }
    assert!(files >= 4, "only {files} transcripts");
}

#[test]
fn damaged_records_are_reported_and_the_rest_is_shown() {
    let records = [user("one"), "{\"type\":\"user\",\"content\":\"to\n".to_owned(), reply("two")];
    for format in ["text", "markdown", "html"] {
        show(&records.concat(), &["--format", format]).success().stdout(contains("one")).stdout(contains("two")).stderr("claw-show: torn-line: '<stdin>' line 2, byte 32, 28 bytes: torn after byte 28 of the line: EOF while parsing a string\nclaw-show: 1 finding\n");
    }
    show("{\"type\":\"message\",\"message\":{}}\n", &[])
        .success()
        .stderr(contains("unknown-type: '<stdin>' line 1, byte 0, 31 bytes: skipped messages"));
    show("", &[]).success().stdout("").stderr("");
    Sandbox::new()
        .cmd("claw-show")
        .arg("nowhere")
        .assert()
        .code(74)
        .stderr(contains("claw-show: cannot read 'nowhere': "));
}

#[test]
fn the_last_turns_keep_their_numbers() {
    let conversation: String =
        (1..=5).map(|n| user(&format!("q{n}")) + &reply(&format!("a{n}"))).collect();
    let turns = |args: &[&str]| {
        let lines = show(&conversation, args).success().lines().into_iter();
        lines.filter(|line| line.contains("turn")).count()
    };
    assert_eq!(turns(&["--limit-turns", "9"]), 5);
    show(&conversation, &["--limit-turns", "2", "--width", "24"]).success().stdout("── turn 4 ──────────────\n\nuser\n  q4\n\nassistant\n  a4\n\n── turn 5 ──────────────\n\nuser\n  q5\n\nassistant\n  a5\n");
    show(&conversation, &["--limit-turns", "0"]).success().stdout("");
    show(&conversation, &["--turn", "4", "--width", "24"])
        .success()
        .stdout("── turn 4 ──────────────\n\nuser\n  q4\n\nassistant\n  a4\n");
    for turn in ["0", "6"] {
        let run = show(&conversation, &["--turn", turn]).code(1).stdout("");
        run.stderr(format!("claw-show: cannot show turn {turn}: the turns are 1 to 5\n"));
    }
    show(&conversation, &["--limit-turns", "1", "--format", "html"])
        .success()
        .stdout(contains("id=\"turn-5\""));
}

#[test]
fn costs_are_shown_for_models_with_a_price() {
    let sandbox = Sandbox::new();
    sandbox.write("prices", "claude-* 3 0.3 3.75 15\n");
    let show = sandbox.cmd("claw-show").arg("--prices").arg("prices");
    show.arg(data("show/everything.jsonl"))
        .assert()
        .success()
        .stdout(contains("assistant · claude-x · 1,300 in · 120 out · 0.0057 · 00:00:34\n"))
        .stdout(contains("assistant · local · 00:05:23\n"));
    sandbox.write("prices", "claude 3\n");
    sandbox
        .cmd("claw-show")
        .args(["--prices", "prices"])
        .assert()
        .code(78)
        .stderr(contains("claw-show: cannot use prices 'prices': line 1"));
}

#[test]
fn t3_redacted_text_is_never_shown() {
    let sandbox = Sandbox::new();
    sandbox.write("patterns", "key sk-[a-z0-9]+\n");
    let secret = "sk-abc123";
    let text: String = fs::read_to_string(data("show/everything.jsonl")).expect("a transcript");
    // Put the secret into messages, inputs, results, summaries, errors and names of sessions.
    let text = text.replace("main", secret).replace("linked", secret).replace("build", secret);
    let text = text.replace("prompt is", secret).replace("Makefile", secret);
    for format in ["text", "markdown", "html"] {
        let args = ["--full", "--format", format, "--redact", "patterns"];
        let run = sandbox.cmd("claw-show").args(args).write_stdin(text.clone()).assert();
        // The redaction changes the result, so the hash in its truncation record no longer matches, but the result is
        // still marked as shortened.
        let run = run
            .success()
            .stderr("")
            .stdout(contains("REDACTED:key"))
            .stdout(contains("sent shortened: 68 of"));
        assert!(!run.stdout_text().contains(secret), "a secret was shown\n{run}");
    }
    sandbox.write("patterns", "key\n");
    sandbox.cmd("claw-show").args(["--redact", "patterns"]).assert().code(78);
}

#[test]
fn a_closed_pipe_and_a_full_disk_give_different_exit_statuses() {
    let sandbox = Sandbox::new();
    let turn = user(&"words ".repeat(500)) + &reply(&"words ".repeat(500));
    sandbox.write("s.jsonl", turn.repeat(30));
    for format in ["text", "markdown", "html"] {
        let show = format!("claw-show --format {format} s.jsonl");
        let script = format!("{{ {show}; echo $? >status; }} | head -n 1 >/dev/null");
        sandbox.sh(&script).assert().success().stderr("");
        assert_eq!(sandbox.read_text("status"), "141\n", "{format}");
        sandbox
            .sh(&format!("{show} >/dev/full"))
            .assert()
            .code(74)
            .stderr(contains("claw-show: cannot write '<stdout>': no space left"));
    }
    sandbox.sh("claw-show <&-").assert().code(74).stderr(contains("'<stdin>'"));
}

// ---- text -----------------------------------------------------------------------------------

#[test]
fn lines_are_wrapped_to_the_given_width() {
    let words = "The 日本語のテキスト、そして絵文字👩‍👩‍👧と e\u{301}\u{301} をまぜた行。 ".repeat(9);
    let records = user(&words) + &reply(&words) + &call("c") + &result("c", &words.repeat(9));
    for width in [24, 40, 79, 200] {
        for args in [&[][..], &["--full"]] {
            let run = show(&records, &[args, &["--width", &width.to_string()]].concat()).success();
            let lines = run.lines();
            let widest = lines.iter().map(|line| line.width()).max();
            assert!(widest <= Some(width) && widest > Some(width - 4), "{width}\n{run}");
            assert!(
                !lines.iter().any(|line| line.contains("\u{fffd}")),
                "a character was split\n{run}"
            );
        }
    }
    let sandbox = Sandbox::new();
    let by_variable =
        sandbox.cmd("claw-show").env("COLUMNS", "30").write_stdin(records.clone()).assert();
    let by_option = show(&records, &["--width", "30"]);
    by_variable.success().stdout(by_option.stdout_text());
}

#[test]
fn code_and_tables_are_not_wrapped() {
    let long = "x ".repeat(60);
    let text = format!("```\n{long}\n```\n| {long} |\n    {long}");
    show(&reply(&text), &["--width", "40"]).success().stdout(format!(
        "assistant\n  ```\n  {0}\n  ```\n  | {long} |\n      {0}\n",
        long.trim_end()
    ));
}

#[test]
fn long_results_are_folded_unless_full_is_given() {
    let lines: String = (1..=9).map(|n| format!("line {n}\n")).collect();
    let records = call("c") + &result("c", &lines);
    show(&records, &[]).success().stdout(contains("    line 6\n    … 3 more lines (--full)\n"));
    show(&records, &["--full"]).success().stdout(contains("    line 9\n"));
    // A note about one hidden line would take as much space as the line, so the line is shown.
    let lines: String = lines.lines().take(7).map(|line| format!("{line}\n")).collect();
    show(&(call("c") + &result("c", &lines)), &[]).success().stdout(contains("    line 7\n"));
}

#[test]
fn without_a_terminal_colours_are_used_only_on_request() {
    let colours = |run: Assert| run.success().stdout_text().matches('\u{1b}').count() > 0;
    let records = user("q");
    assert!(!colours(show(&records, &[])));
    assert!(!colours(show(&records, &["--color", "never"])));
    assert!(colours(show(&records, &["--color", "always"])));
    let sandbox = Sandbox::new();
    let asked = sandbox.cmd("claw-show").env("NO_COLOR", "1").args(["--color", "always"]);
    assert!(colours(asked.write_stdin(records).assert()));
}

#[test]
fn width_and_colours_follow_the_terminal() {
    let sandbox = Sandbox::new();
    if sandbox.sh("command -v script").assert().get_output().status.code() != Some(0) {
        crate::show::skipped("no script(1)");
        return;
    }
    sandbox.write("s.jsonl", user("q"));
    let show = |command: &str| {
        let script = format!("script -qec 'stty cols 33; {command}' /dev/null");
        sandbox.sh(&script).assert().success().stdout_text().replace("\r\n", "\n")
    };
    let rule = format!("── turn 1 {}", "─".repeat(23));
    assert!(show("claw-show s.jsonl").starts_with(&format!("\u{1b}[2m{rule}\u{1b}[0m\n")));
    assert!(show("NO_COLOR=1 claw-show s.jsonl").starts_with(&format!("{rule}\n")));
}

/// Reports that a test is skipped, and why.
#[allow(clippy::print_stdout, reason = "reports a skipped test")]
fn skipped(why: &str) {
    println!("skipped: {why}");
}

// ---- formatting -----------------------------------------------------------------------------

fn edit_call() -> String {
    let input = serde_json::json!({"path": "a.c", "old_string": "one\ntwo<b>\n", "new_string": "one\nthree\n"});
    format!("{{\"type\":\"tool_use\",\"tool_use_id\":\"e\",\"name\":\"edit\",\"input\":{input}}}\n")
}

#[test]
fn audit_30_an_edit_is_shown_as_a_diff() {
    let records = user("q") + &edit_call();
    show(&records, &[])
        .success()
        .stdout(contains("  ▸ edit\n    path: a.c\n     one\n    -two<b>\n    +three\n"));
    show(&records, &["--color", "always"])
        .success()
        .stdout(contains("\u{1b}[31m-two<b>\u{1b}[0m\n    \u{1b}[32m+three\u{1b}[0m\n"));
    show(&records, &["--format", "markdown"])
        .success()
        .stdout(contains("```diff\npath: a.c\n\n one\n-two<b>\n+three\n```\n"));
    show(&records, &["--format", "html"]).success().stdout(contains("<span class=\"same\"> one</span>\n<span class=\"removed\">-two&lt;b&gt;</span>\n<span class=\"added\">+three</span>\n"));
    // A long diff is folded, and `--full` shows all of it.
    let new: String = (0..60).map(|n| format!("{n}\\n")).collect();
    let long = edit_call().replace("one\\nthree\\n", &new);
    show(&(user("q") + &long), &[]).success().stdout(contains("more lines (--full)\n"));
    show(&(user("q") + &long), &["--full"]).success().stdout(contains("    +59\n"));
}

#[test]
fn audit_30_code_is_coloured() {
    let records = user("q")
        + &reply("See:\n\n```sh title=a\necho '<b>' # \u{1b}[31m\n```\n\n```unknown\nif\n```");
    show(&records, &["--format", "html"]).success().stdout(contains("<span class=\"name\">echo</span> <span class=\"string\">'&lt;b&gt;'</span> <span class=\"comment\"># \\u{1b}[31m</span>\n</code></pre>")).stdout(contains("<code class=\"language-unknown\">if\n</code>"));
    show(&records, &["--color", "always"]).success().stdout(contains("    \u{1b}[36mecho\u{1b}[0m \u{1b}[32m'<b>'\u{1b}[0m \u{1b}[2m# \\u{1b}[31m\u{1b}[0m\n")).stdout(contains("    \u{1b}[36mif\u{1b}[0m\n"));
    // Without colours, the code block is shown as it was written.
    show(&records, &[])
        .success()
        .stdout(contains("  ```sh title=a\n  echo '<b>' # \\u{1b}[31m\n  ```\n"));
}

#[test]
fn audit_30_the_text_format_shows_whole_commands() {
    let command = format!("for file in {}; do\n\techo $file\ndone", "a-long-name ".repeat(12));
    let input = serde_json::json!({"command": command, "content": "x\n".repeat(20)});
    let call = format!(
        "{{\"type\":\"tool_use\",\"tool_use_id\":\"c\",\"name\":\"sh\",\"input\":{input}}}\n"
    );
    let run = show(&(user("q") + &call), &["--width", "60"]).success();
    let shown = run.stdout_text();
    let run =
        run.stdout(contains("  ▸ sh\n    command:\n")).stdout(contains("echo $file\n      done\n"));
    assert!(shown.matches("a-long-name").count() == 12, "the command was cut\n{run}");
    run.stdout(contains("more lines (--full)\n"));
    // A short command is shown on the same line as the call.
    show(&(user("q") + &self::call("c")), &[]).success().stdout(contains("  ▸ f {\"n\":\"c\"}\n"));
}

#[test]
fn audit_30_prompts_are_listed_and_times_are_shown() {
    show_file("show/everything.jsonl", &["--format", "markdown"])
        .success()
        .stdout(contains("<summary>4 prompts</summary>\n\n- [Turn 1]"))
        .stdout(contains("- [Turn 4](#turn-4-2026-01-01-0006): Now push.\n"))
        .stdout(contains("\n## Turn 4, 2026-01-01 00:06\n"))
        .stdout(contains("- [Turn 3](#turn-3-2026-01-01-0004): Delete everything. (retracted)\n"));
    show_file("show/everything.jsonl", &["--format", "html"])
        .success()
        .stdout(contains("<li value=\"4\"><a href=\"#turn-4\" dir=\"auto\">Now push.</a></li>\n"))
        .stdout(contains("<time datetime=\"2026-01-01T00:06:14Z\">00:06:14</time>"));
    show_file("show/everything.jsonl", &[])
        .success()
        .stdout(contains("\nuser · 00:06:14\n"))
        .stdout(contains(" · 00:02:33\n"));
    let one = show(&user("one prompt"), &["--format", "html"]).success().stdout_text();
    assert!(!one.contains("<nav>"), "one prompt needs no list");
}

#[test]
fn audit_30_a_page_declares_its_language_and_the_languages_of_messages() {
    let japanese = "これは日本語の文章です。とても長い文章です。テストのために書きました。";
    let english = "Please read the whole file and tell me what is wrong with it.";
    let page = |records: &str| show(records, &["--format", "html"]);
    page(&(user(japanese) + &reply(english) + &reply(japanese) + &reply("`ls`")))
        .success()
        .stdout(contains("<html lang=\"ja\">"))
        .stdout(contains("<div class=\"plain\" dir=\"auto\">これは"))
        .stdout(contains("<div class=\"prose\" dir=\"auto\" lang=\"en\">"))
        .stdout(contains("<div class=\"prose\" dir=\"auto\"><p><code>ls"));
    page(&user("?")).success().stdout(contains("<html lang=\"en\">"));
    page(&user("이 파일을 고쳐 주세요")).success().stdout(contains("<html lang=\"ko\">"));
}

// ---- hostile content ------------------------------------------------------------------------

#[test]
fn no_format_passes_on_control_characters() {
    for format in ["text", "markdown", "html"] {
        for args in [&[][..], &["--full"]] {
            let run = show_file("show/hostile.jsonl", &[args, &["--format", format]].concat())
                .success()
                .stderr("");
            let text = run.stdout_text();
            let is_odd = |c: &char| {
                (c.is_control() && !matches!(c, '\n' | '\t'))
                    || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
            };
            let odd: Vec<char> = text.chars().filter(is_odd).collect();
            assert!(odd.is_empty(), "{format}: {odd:?}");
            run.stdout(contains(r"\u{1b}[31mred\u{9b}32m\r\u{7f}\u{202e}evil\u{2066}\u{0}"));
        }
    }
}

/// Parses Markdown, and returns its headings, except those in quotes and list items, and all raw HTML.
fn structure(markdown: &str) -> (Vec<(HeadingLevel, String)>, Vec<String>) {
    let (mut headings, mut html) = (Vec::new(), Vec::new());
    let (mut depth, mut in_heading) = (0, false);
    for event in Parser::new_ext(markdown, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH) {
        match event {
            Event::Start(Tag::Heading { level, .. }) if depth == 0 => {
                in_heading = true;
                headings.push((level, String::new()));
            }
            Event::End(TagEnd::Heading(_)) => in_heading = false,
            Event::Text(text) | Event::Code(text) if in_heading => {
                headings.last_mut().expect("a heading").1.push_str(&text);
            }
            Event::Html(text) | Event::InlineHtml(text) => html.push(text.trim().to_owned()),
            Event::Start(Tag::BlockQuote(_) | Tag::Item) => depth += 1,
            Event::End(TagEnd::BlockQuote(_) | TagEnd::Item) => depth -= 1,
            Event::Start(Tag::Image { .. }) => panic!("an image"),
            _ => {}
        }
    }
    (headings, html)
}

#[test]
fn s4_no_message_adds_headings_or_html_to_the_document() {
    let run = show_file("show/hostile.jsonl", &["--format", "markdown"]);
    let markdown = run.success().stdout_text();
    let (headings, html) = structure(&markdown);
    let turns: Vec<&String> =
        headings.iter().filter(|it| it.0 == HeadingLevel::H2).map(|it| &it.1).collect();
    assert_eq!(turns.len(), 14);
    for (number, turn) in (1..).zip(&turns) {
        assert!(turn.starts_with(&format!("Turn {number}, 2026-01-01 ")), "{turn}");
    }
    let others = headings.iter().filter(|it| it.0 != HeadingLevel::H2);
    for (level, heading) in others {
        let is_expected = match level {
            HeadingLevel::H1 => heading.starts_with("Session `</h1>` # *l* "),
            HeadingLevel::H3 => heading == "User" || heading == "Assistant",
            _ => false,
        };
        assert!(is_expected, "{heading}");
    }
    // Each folded part has a summary and an end, and there is no other HTML.
    let opened = html.iter().filter(|line| *line == "<details>").count();
    let closed = html.iter().filter(|line| *line == "</details>").count();
    let summaries = html.iter().filter(|line| line.starts_with("<summary>")).count();
    assert!(
        opened > 80 && (opened, opened) == (closed, summaries),
        "{opened} {closed} {summaries}"
    );
    assert_eq!(html.len(), 3 * opened, "{html:?}");
    for line in html.iter().filter(|line| line.starts_with("<summary>")) {
        assert_eq!(line.matches('<').count(), 2, "{line}");
    }
}

#[test]
fn a_very_long_text_is_shown_unchanged() {
    let text = "<b>".to_owned() + &"words and `code` ".repeat(20_000);
    show(&reply(&text), &["--format", "markdown"])
        .success()
        .stdout(contains("> ```text\n> <b>words"));
    show(&reply(&text), &["--format", "html"])
        .success()
        .stdout(contains("<pre dir=\"auto\" tabindex=\"0\">\n&lt;b&gt;words"));
}
