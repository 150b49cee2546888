//! `claw-index search`: words in several languages, filters and redaction.

use predicates::str::contains;
use serde_json::json;

use super::{index, rows, transcript};
use crate::common::{AssertExt, Sandbox};

fn user(text: &str) -> String {
    format!("{}\n", json!({"type": "user", "ts": 1_767_225_600, "content": text}))
}

#[test]
fn words_are_found_in_languages_with_and_without_spaces() {
    let sandbox = Sandbox::new();
    sandbox.write("en.jsonl", user("The context window overflows, naïvely"));
    sandbox.write("ja.jsonl", user("セッションの記録を検索します。メモリ"));
    sandbox.write("zh.jsonl", user("上下文窗口已满,请压缩会话记录"));
    sandbox.write("ko.jsonl", user("세션을 검색합니다"));
    index(&sandbox, "i.db", &["update", "."]).success();
    for (word, file) in [
        ("window", "en"),
        ("WINDOW", "en"),
        ("over*", "en"),
        ("\"context window\"", "en"),
        ("naively", "en"),
        ("検索", "ja"),
        ("索し", "ja"),
        ("メモ", "ja"),
        ("リ", "ja"),
        ("セッション", "ja"),
        ("窗口", "zh"),
        ("压缩", "zh"),
        ("满", "zh"),
        ("上下文窗口", "zh"),
        ("会话 -window", "zh"),
        ("검색", "ko"),
    ] {
        let found = index(&sandbox, "i.db", &["search", "--json", "--", word]).success().json();
        assert_eq!(found.len(), 1, "{word}: {found:?}");
        let session = found[0]["session"].as_str().expect("a path");
        assert!(session.ends_with(&format!("/{file}.jsonl")), "{word}: {session}");
        assert_eq!((&found[0]["turn"], &found[0]["role"]), (&json!(1), &json!("user")));
    }
    for word in ["windo", "indow", "文上", "口窗", "context -window"] {
        index(&sandbox, "i.db", &["search", "--", word]).code(1).stdout("");
    }
    for wrong in ["", "->", "-window"] {
        index(&sandbox, "i.db", &["search", "--", wrong])
            .code(2)
            .stderr(contains("cannot search for"));
    }
}

#[test]
fn results_can_be_filtered_and_name_the_transcript_and_the_turn() {
    let sandbox = Sandbox::new();
    sandbox.write("d/a.jsonl", transcript(10, 1));
    sandbox.write("d/b.jsonl", transcript(10, 2));
    index(&sandbox, "i.db", &["update", "d"]).success();
    let search = |args: &[&str]| {
        index(&sandbox, "i.db", &[&["search", "--json", "--limit", "500"], args].concat())
            .success()
            .json()
    };
    assert_eq!(search(&["answer"]).len(), 20);
    assert_eq!(search(&["answer", "--session", "d/a.jsonl"]).len(), 10);
    assert_eq!(search(&["answer", "--session", "main:cli:2"]).len(), 10);
    assert_eq!(search(&["f3.rs"]).len(), 4);
    assert_eq!(search(&["lines", "--role", "tool_result"]).len(), 20);
    assert_eq!(search(&["answer", "--since", "2026-01-03"]).len(), 10);
    let found = search(&["answer", "1004"]);
    assert_eq!((found.len(), &found[0]["turn"]), (1, &json!(5)));
    // Phrases are also found.
    assert!(search(&["\"a file\""]).len() > 15);
    let text = index(&sandbox, "i.db", &["search", "answer", "1004"]).success().stdout_text();
    let path = sandbox.path("d/a.jsonl").canonicalize().expect("a path");
    assert_eq!(
        text,
        format!(
            "{} turn 5, assistant, 2026-01-02T03:50:41Z\n    the answer 1004\n",
            path.display()
        )
    );
    index(&sandbox, "i.db", &["search", "--session", "none", "x"])
        .code(1)
        .stderr(contains("no session 'none'"));
    index(&sandbox, "i.db", &["search", "--session", "work", "x"]).code(1);
}

#[test]
fn text_that_redaction_removes_is_nowhere_in_the_database() {
    let sandbox = Sandbox::new();
    let secret = "hunter2secret";
    let lines = [
        json!({"type": "user", "content": format!("my key is {secret}")}),
        json!({"type": "tool_use", "tool_use_id": "t", "name": "sh", "input": {"command": format!("login {secret}")}}),
        json!({"type": "tool_result", "tool_use_id": "t", "content": format!("welcome {secret}")}),
    ];
    sandbox.write("s.jsonl", lines.map(|line| format!("{line}\n")).concat());
    sandbox.write("patterns", format!("key {secret}\n"));
    index(&sandbox, "i.db", &["update", "--redact", "patterns", "s.jsonl"]).success();
    index(&sandbox, "i.db", &["search", secret]).code(1).stdout("");
    index(&sandbox, "i.db", &["search", "REDACTED"]).success();
    for file in ["i.db", "i.db-wal"].into_iter().filter(|file| sandbox.exists(file)) {
        assert!(
            !sandbox.read(file).windows(secret.len()).any(|part| part == secret.as_bytes()),
            "{file}"
        );
    }
    // Without the patterns, the transcript is read again.
    let run = index(&sandbox, "i.db", &["update", "s.jsonl"]).success();
    run.stderr(contains("the redaction patterns have changed"));
    assert_eq!(
        rows(&sandbox, "i.db", "SELECT 1 FROM messages WHERE content LIKE '%hunter2%'").len(),
        1
    );
}

#[test]
fn control_characters_of_a_message_do_not_reach_the_terminal() {
    let sandbox = Sandbox::new();
    sandbox.write("s.jsonl", user("danger \u{1b}[31m \u{202e}red"));
    index(&sandbox, "i.db", &["update", "s.jsonl"]).success();
    for args in [
        &["search", "danger"][..],
        &["query", "SELECT content FROM messages"],
        &["search", "--json", "red"],
    ] {
        let text = index(&sandbox, "i.db", args).success().stdout_text();
        assert!(!text.contains(['\u{1b}', '\u{202e}']), "{text}");
    }
}
