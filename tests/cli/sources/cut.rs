//! The position of the cut with explicit options, and in an emergency.

use predicates::str::contains;
use serde_json::json;

use super::{conversation, lines, run, show};
use crate::common::AssertExt;
use crate::conversations::{Conversation, rebuild_meta, words};
use crate::summaries::{calls, compacted, covered, legal, with_model};

// ---- the cut ---------------------------------------------------------------------------------

#[test]
fn v49_classic_cuts_as_claw0_does() {
    let sandbox = with_model();
    // The unit tests in src/compact/cut.rs check the whole table. A small window does not move this cut.
    for (n, covered) in [(5, 0), (6, 2), (9, 4), (100, 50)] {
        for window in [&[][..], &["--window", "4000"]] {
            let args = [&["--classic", "--show"], window].concat();
            let run = run(&sandbox, &args, &conversation(n, 60));
            if covered == 0 {
                run.code(5).stdout("").stderr(contains("nothing to gain"));
                continue;
            }
            let shown = run.success().json_one();
            assert_eq!(shown["covered"].as_array().map(Vec::len), Some(covered), "{n}");
            assert_eq!(shown["kept"].as_array().map(Vec::len), Some(n - covered), "{n}");
        }
    }
}

#[test]
fn v50_classic_moves_the_cut_only_to_keep_a_pair_together() {
    let sandbox = with_model();
    let kinds = "uacrCRucracrCRuacrua";
    Conversation::of(kinds, 60).append(&sandbox, "s.jsonl");
    let messages: Vec<String> =
        rebuild_meta(&sandbox, "s.jsonl").lines().map(|line| format!("{line}\n")).collect();
    for n in 6..=messages.len() {
        let whole = messages[..n].concat();
        let at = (n / 2).max(2).min(n - (n / 5).max(4));
        let is_result = |at: usize| messages[at].contains("tool_result");
        let forward = (at..n).find(|at| !is_result(*at));
        let expected = forward.or_else(|| (2..at).rev().find(|at| !is_result(*at)));
        let shown = show(&sandbox, &["--classic"], &whole);
        assert_eq!(shown["covered"].as_array().map(Vec::len), expected, "{n}");
    }
}

#[test]
fn keep_tokens_keeps_the_newest_messages_of_that_size() {
    let sandbox = with_model();
    let messages = conversation(30, 60);
    let kept = |args: &[&str]| {
        let shown = show(&sandbox, args, &messages);
        let kept = shown["kept"].as_array().expect("a list").clone();
        kept.iter().map(|message| message["tokens"].as_u64().expect("a number")).collect::<Vec<_>>()
    };
    for tokens in [1, 100, 500, 1000] {
        let kept = kept(&["--keep-tokens", &tokens.to_string()]);
        let (all, rest) = (kept.iter().sum::<u64>(), kept[1..].iter().sum::<u64>());
        // The tokens of each message are rounded up.
        assert!(all + 10 >= tokens && rest < tokens + 10, "{tokens}: {all}, {rest}");
    }
    assert_eq!(kept(&["--keep-tokens", "0"]).len(), 1);
    // If messages with that many tokens do not fit, fewer messages are kept. If all messages are to be kept, nothing can be compacted.
    let fewer = kept(&["--keep-tokens", "1000", "--window", "1500"]);
    assert!(fewer.len() > 1 && fewer.iter().sum::<u64>() < 900, "{fewer:?}");
    for tokens in ["100000", "18446744073709551615"] {
        run(&sandbox, &["--keep-tokens", tokens], &messages).code(5).stdout("");
    }
    run(&sandbox, &["--keep-tokens", "1", "--classic"], &messages).code(2);
}

#[test]
fn v52_a_message_that_is_too_large_by_itself_is_reported() {
    let sandbox = with_model();
    let messages = lines(&[("user", words(9000))]);
    run(&sandbox, &["--window", "8000", "--emergency"], &messages)
        .code(3)
        .stdout("")
        .stderr(contains("(record 'id0') alone has 11"));
    assert_eq!(calls(&sandbox), 0);
}

// ---- the emergency ---------------------------------------------------------------------------

#[test]
fn an_emergency_keeps_the_newest_fifth_and_the_protected_messages() {
    let sandbox = with_model();
    sandbox.write("status", "69");
    let conversation = Conversation::new()
        .user("Never push to main.")
        .assistant("Yes.")
        .record(json!({"type": "user", "content": "The id is 4f6c-77.", "pin": true}))
        .tool(words(100));
    let conversation = (0..20).fold(conversation, |conversation, n| {
        conversation.assistant(&words(60)).user(&format!("And {n}?"))
    });
    conversation.append(&sandbox, "s.jsonl");
    let before = legal(&sandbox).len();
    let record = compacted(&sandbox, &["--emergency"]);
    assert_eq!(
        (&record["strategy"], &record["needs_summary_retry"]),
        (&json!("stub"), &json!(true))
    );
    assert_eq!(before - covered(&sandbox, &record), (before / 5).max(4));
    assert_eq!(record["pinned"], json!(["The id is 4f6c-77."]));
    assert_eq!(record["kept_user"][0], "Never push to main.");
    assert_eq!(record["details"]["read_files"], json!(["src/file_1.rs"]));
    let text = legal(&sandbox)[0].to_string();
    let count = covered(&sandbox, &record);
    assert!(text.contains(&format!("({count} messages were left out here without a summary")));
    assert!(text.contains("Never push") && text.contains("4f6c-77"));
    sandbox.cmd("claw-check").arg("s.jsonl").assert().success().stdout("");
    // At least four messages are kept, and a compaction that saves no tokens is not made.
    let few = lines(&(0..8).map(|n| (["user", "assistant"][n % 2], words(60))).collect::<Vec<_>>());
    let run = run(&sandbox, &["--record", "--emergency"], &few);
    assert_eq!(run.success().json_one()["first_kept_entry_id"], "id4");
    super::run(&sandbox, &["--emergency"], &super::conversation(8, 1)).code(5).stdout("");
}
