//! The words of the person come first: what a program put into the messages of the user is folded under a line that names
//! it, and is in no title, list of prompts, snippet or listing.

use std::fs;
use std::path::Path;

use super::{data, skipped};
use crate::common::{AssertExt, Sandbox};

/// Prompts in six languages, and words that the program wraps.
const WORDS: [(&str, &str); 6] = [
    ("Fix the sum of the cart", "echo sum"),
    ("カートの合計を直してください", "合計を見せて"),
    ("请修复购物车的总价", "显示总价"),
    ("장바구니 합계를 고쳐 주세요", "합계 보기"),
    ("Исправь сумму в корзине", "покажи сумму"),
    ("Corrige le total du panier", "montre le total"),
];
/// The sessions of each program, and logs of requests.
const SESSIONS: [&str; 11] = [
    "claude-code",
    "claude-code-titled",
    "claw0",
    "codex",
    "codex-old",
    "copilot",
    "gemini",
    "gemini-cli",
    "openai",
    "openclaw",
    "pi",
];
/// The word that all text of programs in the sessions has.
const ADDED: &str = "ADDED";

/// Returns a session of `tests/data/dialects/injected` with these words in it.
fn session(name: &str, (prompt, typed): (&str, &str)) -> String {
    let text =
        fs::read_to_string(data(&format!("dialects/injected/{name}.jsonl"))).expect("a session");
    text.replace("@PROMPT@", prompt).replace("@TYPED@", typed)
}

/// Returns the options for reading a session whose program cannot be detected.
fn from(name: &str) -> &'static [&'static str] {
    match name {
        "gemini" => &["--from", "gemini"],
        "openai" => &["--from", "openai"],
        _ => &[],
    }
}

/// Returns a page without its folded parts, which may have folded parts themselves.
fn unfolded(page: &str) -> String {
    let (mut text, mut depth) = (String::new(), 0);
    for (index, part) in page.split("<details").enumerate() {
        depth += usize::from(index > 0);
        for (index, part) in part.split("</details>").enumerate() {
            depth -= usize::from(index > 0);
            text.push_str(if depth == 0 { part } else { "" });
        }
    }
    assert_eq!(depth, 0, "each part ends");
    text
}

/// Returns the text between two marks.
fn between<'t>(text: &'t str, from: &str, to: &str) -> &'t str {
    let rest = text.split_once(from).map_or("", |(_, rest)| rest);
    rest.split_once(to).map_or(rest, |(inner, _)| inner)
}

#[test]
fn audit_42_nothing_that_a_program_added_is_shown_outside_folds_in_six_languages() {
    let sandbox = Sandbox::new();
    for name in SESSIONS {
        for words @ (prompt, typed) in WORDS {
            sandbox.write("s.jsonl", session(name, words));
            let show = |format: &str| {
                let cmd = sandbox.cmd("claw-show").args(["--format", format, "s.jsonl"]);
                cmd.args(from(name)).assert().success().stdout_text()
            };
            let (page, text) = (show("html"), show("text"));
            let (open, markdown) = (unfolded(&page), show("markdown"));
            for (format, shown) in
                [("html", &open), ("text", &text), ("markdown", &unfolded(&markdown))]
            {
                assert!(!shown.contains(ADDED), "{name}, {format}:\n{shown}");
                assert!(shown.contains(prompt) && shown.contains(typed), "{name}:\n{shown}");
            }
            // Nothing is lost: it is in the folds.
            assert!(page.contains(ADDED) && markdown.contains(ADDED), "{name}");
            let full = sandbox.cmd("claw-show").args(["--full", "s.jsonl"]).args(from(name));
            let full = full.assert().success().stdout_text();
            assert!(full.contains(ADDED), "{name}:\n{full}");

            let title = if name.ends_with("titled") || name == "codex-old" {
                "Shop repairs"
            } else {
                prompt
            };
            assert_eq!(between(&page, "<h1 dir=\"auto\">", "</h1>"), title, "{name}");
            let prompts = between(&page, "<nav>", "</nav>");
            assert!(!prompts.contains(ADDED), "{name}:\n{prompts}");
            // The first words of the first turn are those of the person.
            let first = between(&page, "id=\"turn-1\"", "</section>");
            let own = between(between(first, "class=\"plain\"", "</div>"), ">", "<");
            let command = if name.starts_with("claude") { "/model opus" } else { prompt };
            assert_eq!(own, command, "{name}:\n{first}");
        }
    }
}

#[test]
fn audit_42_a_fold_names_what_the_program_added() {
    let sandbox = Sandbox::new();
    sandbox.write("s.jsonl", session("claude-code", WORDS[0]));
    let text = sandbox.cmd("claw-show").arg("s.jsonl").assert().success().stdout_text();
    let line = "(added by the program: environment, agents, caveat · 7 lines)";
    assert!(text.contains(line), "{text}");
    for name in ["note, task notification", "open file", "queued message", "interruption"] {
        assert!(text.contains(&format!("(added by the program: {name}")), "{name}\n{text}");
    }
}

#[test]
fn audit_42_a_turn_begins_with_the_words_of_a_person() {
    let sandbox = Sandbox::new();
    for name in SESSIONS {
        let turns = match name {
            "claude-code" | "claude-code-titled" => 4,
            "codex" => 3,
            _ => 2,
        };
        sandbox.write("s.jsonl", session(name, WORDS[0]));
        let cmd = sandbox.cmd("claw-show").args(["--format", "html", "s.jsonl"]);
        let page = cmd.args(from(name)).assert();
        let found = page.stdout_text().matches("<section class=\"turn\"").count();
        assert_eq!(found, turns, "{name}:\n{page}");
    }
}

#[test]
fn audit_42_to_do_lists_plans_and_subagents_are_shown_as_what_they_are() {
    let call = |id: &str, name: &str, input: &str| {
        format!(
            "{{\"type\":\"tool_use\",\"tool_use_id\":\"{id}\",\"name\":\"{name}\",\"input\":{input}}}\n"
        )
    };
    let records = [
        "{\"type\":\"user\",\"content\":\"go\"}\n".to_owned(),
        call("a", "TodoWrite", r#"{"todos":[{"content":"Read <b>","status":"completed"},{"content":"Write","status":"in_progress"}]}"#),
        call("b", "ExitPlanMode", r##"{"plan":"# The plan\n1. Begin"}"##),
        call("c", "Agent", r#"{"subagent_type":"Explore","description":"Count files","prompt":"Count all files"}"#),
    ]
    .concat();
    let sandbox = Sandbox::new();
    let show = |format: &str| {
        let cmd = sandbox.cmd("claw-show").args(["--format", format]).write_stdin(&*records);
        cmd.assert().success().stdout_text()
    };
    let page = show("html");
    let open = unfolded(&page);
    for shown in [
        "→ TodoWrite · 1 of 2 done",
        "<li class=\"Done\"><span aria-hidden=\"true\">[x]</span> <span dir=\"auto\">Read &lt;b&gt;</span> <small>done</small></li>",
        "→ ExitPlanMode · plan",
        "<li>Begin</li>",
    ] {
        assert!(open.contains(shown), "{shown}\n{open}");
    }
    assert!(page.contains("<summary>→ Agent · subagent Explore: Count files</summary>"), "{page}");
    assert!(page.contains("Count all files") && !open.contains("Count all files"), "{page}");
    let text = show("text");
    for shown in ["▸ TodoWrite · 1 of 2 done\n    [x] Read <b>\n    [>] Write", "1. Begin"] {
        assert!(text.contains(shown), "{shown}\n{text}");
    }
    let markdown = show("markdown");
    assert!(markdown.contains("- [x] Read \\<b\\>\n- [ ] Write (in progress)"), "{markdown}");
}

#[test]
fn audit_42_searches_and_listings_have_the_words_of_the_person() {
    let sandbox = Sandbox::new();
    for (name, words) in ["claude-code", "codex", "codex-old", "pi"].into_iter().zip(WORDS) {
        sandbox.write(&format!("{name}.jsonl"), session(name, words));
    }
    sandbox
        .sh("claw-session import claude-code.jsonl codex.jsonl codex-old.jsonl pi.jsonl")
        .assert()
        .success();
    let list = sandbox.sh("claw-session list").assert().success().stdout_text();
    for title in [WORDS[0].0, WORDS[1].0, "Shop repairs", WORDS[3].0] {
        assert!(list.contains(title), "{title}\n{list}");
    }
    assert!(!list.contains(ADDED), "{list}");
    let json = sandbox.sh("claw-session list --json").assert().success().stdout_text();
    assert!(json.contains(&format!("\"title\":\"{}\"", WORDS[3].0)), "{json}");

    sandbox
        .sh("claw-index --db i.db update claude-code.jsonl codex.jsonl codex-old.jsonl pi.jsonl")
        .assert()
        .success();
    sandbox.sh("claw-index --db i.db search added").assert().code(1).stdout("");
    let found = sandbox.sh("claw-index --db i.db search cart").assert().success().stdout_text();
    assert!(found.contains(WORDS[0].0) && !found.contains(ADDED), "{found}");
    let query = "claw-index --db i.db query --format csv \"SELECT count(*) FROM messages WHERE role = 'user' AND content LIKE '%ADDED%'\"";
    sandbox.sh(query).assert().success().stdout("count(*)\r\n0\r\n");
    // An update that reads the sessions again removes what it added before.
    sandbox.sh("claw-index --db i.db update --full codex.jsonl pi.jsonl").assert().success();
    sandbox.sh("claw-index --db i.db search added").assert().code(1);
}

#[test]
fn audit_42_sessions_of_the_real_programs_begin_with_the_words_of_the_person() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/corpus");
    if !corpus.is_dir() {
        return skipped("no corpus of sessions");
    }
    let sandbox = Sandbox::new();
    for (name, prompt) in [
        ("claude-code/01-main", "Hello, what can you do?"),
        ("claude-code/02-compacted", "Hello, what can you do?"),
        ("claude-code/08-rewound", "This is interactive turn one."),
        ("claude-code/10-v2.0.76-main", "Hello, what can you do?"),
        ("codex/01-main", "Hello, what can you do?"),
        ("codex/05-errors", "Start of the error session. エラーの練習。"),
        ("codex/08-v0.80.0-main", "Hello, what can you do?"),
        ("pi/01-main", "Hello, what can you do?"),
    ] {
        let show = |format: &str| {
            let cmd = sandbox.cmd("claw-show").args(["--format", format]);
            cmd.arg(corpus.join(name).join("session.jsonl")).assert().stdout_text()
        };
        let open = unfolded(&show("html"));
        let first = between(&open, "id=\"turn-1\"", "</section>");
        assert!(first.contains(&format!(">{prompt}</div>")), "{name}:\n{first}");
        let text = show("text");
        for tag in [
            "system-reminder",
            "environment_context",
            "local-command",
            "INSTRUCTIONS",
            "turn_aborted",
        ] {
            let tag = format!("{tag}>");
            assert!(!text.contains(&format!("<{tag}")), "{name}: {tag}\n{text}");
            assert!(!open.contains(&format!("&lt;{tag}")), "{name}: {tag}");
        }
    }
}
