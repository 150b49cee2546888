//! claw-compact: the order in which the sources of a summary are tried, what each source gets, and the models that
//! are skipped after failures.

/// The requests for summaries: their content, number and preview.
mod asking;
/// The position of the cut with explicit options, and in an emergency.
mod cut;

use assert_cmd::assert::Assert;
use predicates::str::contains;
use serde_json::{Value, json};

use crate::common::{AssertExt, Sandbox};
use crate::conversations::{Conversation, append, rebuild, undo_last, words};
use crate::summaries::{calls, compact, compacted, covered, legal, with_model};

/// Returns messages as `claw-rebuild --meta` writes them, without a transcript.
fn lines(conversation: &[(&str, String)]) -> String {
    let line = |(n, (role, text)): (usize, &(&str, String))| {
        let meta = json!({"id": format!("id{n}"), "offset": n * 100, "end": n * 100 + 100});
        format!("{}\n", json!({"role": role, "content": text, "_meta": meta}))
    };
    conversation.iter().enumerate().map(line).collect()
}

/// Returns `n` messages with alternating roles and `length` words each.
fn conversation(n: usize, length: usize) -> String {
    let message = |n| (["user", "assistant"][n % 2], format!("message {n}: {}", words(length)));
    lines(&(0..n).map(message).collect::<Vec<_>>())
}

fn run(sandbox: &Sandbox, args: &[&str], messages: &str) -> Assert {
    let args = [&["--log", "json"], args].concat();
    sandbox.cmd("claw-compact").args(args).write_stdin(messages).assert()
}

/// Runs claw-compact at a given time, in seconds after a fixed start.
fn run_at(sandbox: &Sandbox, seconds: u64, args: &[&str], messages: &str) -> Assert {
    let cmd = sandbox.cmd("claw-compact").args(args).write_stdin(messages);
    cmd.env("SOURCE_DATE_EPOCH", (1_767_225_600 + seconds).to_string()).assert()
}

/// Checks that a summary was applied, and returns the diagnostic about it.
#[track_caller]
fn applied(run: &Assert) -> Value {
    assert!(run.get_output().status.success(), "{run}");
    let last = run.stderr_text().lines().last().unwrap_or_default();
    let outcome: Value = serde_json::from_str(last).expect("an outcome");
    assert_eq!(outcome["outcome"], "applied");
    outcome
}

fn show(sandbox: &Sandbox, args: &[&str], messages: &str) -> Value {
    run(sandbox, &[&["--show"], args].concat(), messages).success().json_one()
}

fn configure(sandbox: &Sandbox, compaction: &Value) {
    let config = json!({"session": {"compaction": compaction}});
    sandbox.write("config", config.to_string());
}

// ---- checkpoints -----------------------------------------------------------------------------

/// Returns messages with a checkpoint in their metadata.
fn with_checkpoint(messages: &str, covers: &str, tokens: u64) -> String {
    let (first, rest) = messages.split_once('\n').expect("messages");
    let mut first: Value = serde_json::from_str(first).expect("a message");
    first["_meta"]["checkpoint"] = json!({"id": "c", "is_current": true, "summary": "So far.",
        "tokens_at_checkpoint": tokens, "covers_up_to": covers});
    format!("{first}\n{rest}")
}

#[test]
fn v73_a_checkpoint_must_cover_at_least_half_of_the_tokens_rounded_down() {
    let sandbox = with_model();
    let (mut odd, mut even) = (0, 0);
    for more in 0..4 {
        let messages = conversation(12, 60).replacen("message 0:", &words(more), 1);
        let before = show(&sandbox, &[], &messages)["tokens_before"].as_u64().expect("a number");
        *[&mut even, &mut odd][(before % 2) as usize] += 1;
        // Checkpoints that cover from 49.9 % to 50.1 % of the tokens.
        for (tokens, is_used) in [
            (before * 499 / 1000 - 1, false),
            (before / 2 - 1, false),
            (before / 2, true),
            (before / 2 + 1, true),
            (before * 501 / 1000 + 1, true),
        ] {
            let messages = with_checkpoint(&messages, "id7", tokens);
            let args = ["--prefer-checkpoint", "--max-calls", "0", "--no-fallback"];
            let run = run(&sandbox, &args, &messages);
            if is_used {
                assert_eq!(applied(&run)["strategy"], "checkpoint");
            } else {
                run.code(5).stdout("").stderr(contains("no checkpoint covers enough"));
            }
        }
    }
    assert!(odd > 0 && even > 0, "expected odd and even sizes: {odd} {even}");
    assert_eq!(calls(&sandbox), 0);
}

#[test]
fn v73_a_checkpoint_replaces_exactly_the_messages_that_it_covers() {
    let sandbox = with_model();
    let messages = with_checkpoint(&conversation(10, 60), "id1", u64::MAX);
    let after = run(&sandbox, &["--prefer-checkpoint"], &messages);
    assert_eq!(applied(&after)["strategy"], "checkpoint");
    // Two messages are covered, and all others are unchanged.
    let kept: Vec<Value> = after.json().into_iter().skip(2).collect();
    let before: Vec<Value> = conversation(10, 60)
        .lines()
        .map(|line| serde_json::from_str(line).expect("a message"))
        .collect();
    assert_eq!(kept.len(), 8);
    for (kept, before) in kept.iter().zip(&before[2..]) {
        assert_eq!(kept["content"], before["content"]);
    }
}

#[test]
fn audit_05_a_fresh_checkpoint_keeps_the_newest_messages() {
    let sandbox = with_model();
    let kept = |count: usize, args: &[&str]| {
        let last = format!("id{}", count - 1);
        let messages = with_checkpoint(&conversation(count, 300), &last, u64::MAX);
        let args = [&["--record", "--prefer-checkpoint", "--no-fallback"], args].concat();
        let record = run(&sandbox, &args, &messages).success().json_one();
        assert_eq!(record["strategy"], "checkpoint");
        let first = record["first_kept_entry_id"].as_str().expect("an id").to_owned();
        count - first[2..].parse::<usize>().expect("a number")
    };
    for (count, stays) in [(6, 4), (7, 4), (12, 4), (24, 4), (25, 5), (40, 8)] {
        assert_eq!(kept(count, &[]), stays, "{count}");
        assert_eq!(kept(count, &["--window", "100000"]), stays, "{count}");
    }
    // If those messages do not fit into the window, fewer are kept.
    for (window, stays) in [("3300", 4), ("2800", 3), ("2300", 2)] {
        assert_eq!(kept(12, &["--window", window]), stays, "{window}");
    }
}

#[test]
fn a_checkpoint_replaces_only_what_it_covers() {
    let sandbox = with_model();
    let conversation =
        Conversation::plain(4, 200).user("x").tool(words(200)).assistant("y").user("z");
    (0..3)
        .fold(conversation, |conversation, _| conversation.tool(words(200)))
        .append(&sandbox, "s.jsonl");
    let ids: Vec<Value> =
        sandbox.read_json("s.jsonl").iter().map(|record| record["id"].clone()).collect();
    let before = rebuild(&sandbox, "s.jsonl");
    let checkpoint = |covers: &Value| {
        json!({"type": "checkpoint", "summary": "So far.", "tokens_at_checkpoint": 1 << 20,
            "covers_up_to": covers, "topics": ["t"]})
        .to_string()
    };
    // The checkpoint ends after a call without its result, so the cut is before the call.
    append(&sandbox, "s.jsonl", checkpoint(&ids[5]));
    let args = ["--prefer-checkpoint", "--max-calls", "0", "--no-fallback"];
    let record = compact(&sandbox, &args).success().json_one();
    assert_eq!((&record["strategy"], covered(&sandbox, &record)), (&json!("checkpoint"), 5));
    assert_eq!(record["summary"], "So far.\n\nTopics: t");
    // A retracted checkpoint is not used.
    undo_last(&sandbox, "s.jsonl");
    assert_ne!(compact(&sandbox, &args).stdout("").get_output().status.code(), Some(0));
    assert_eq!(rebuild(&sandbox, "s.jsonl"), before);
    // A checkpoint that covers only messages that an earlier compaction covers is not used either.
    append(&sandbox, "s.jsonl", checkpoint(&ids[1]));
    compacted(&sandbox, &["--no-prefer-checkpoint"]);
    legal(&sandbox);
    compact(&sandbox, &args).code(5).stdout("").stderr(contains("no checkpoint covers enough"));
    append(&sandbox, "s.jsonl", checkpoint(&json!("nowhere")));
    compact(&sandbox, &args).code(5).stdout("").stderr(contains("no checkpoint covers enough"));
    assert_eq!(calls(&sandbox), 1);
}

#[test]
fn a_checkpoint_that_repeats_a_message_is_not_used() {
    let sandbox = with_model();
    let mut messages = vec![("user", words(60)), ("assistant", "So far.".to_owned())];
    messages.extend((0..8).map(|n: usize| (["user", "assistant"][n % 2], words(60))));
    let messages = with_checkpoint(&lines(&messages), "id3", 1 << 20);
    let args = ["--prefer-checkpoint", "--max-calls", "0", "--no-fallback"];
    run(&sandbox, &args, &messages)
        .code(5)
        .stdout("")
        .stderr(contains("it repeats a message of the conversation"));
}

// ---- the order of the sources ----------------------------------------------------------------

#[test]
fn sources_are_tried_in_order_and_each_failure_is_reported() {
    let sandbox = with_model();
    let messages = with_checkpoint(&conversation(12, 300), "nowhere", 1 << 20);
    for (n, status) in ["69", "75", "77"].iter().enumerate() {
        sandbox.write(&format!("status.{}", n + 1), status);
    }
    let vias = ["--via", "ollama:a:7b", "--via", "openai:b", "--via", "main"];
    let args = [&["--prefer-checkpoint", "--no-fallback"], &vias[..]].concat();
    let run = sandbox
        .cmd("claw-compact")
        .args(&args)
        .write_stdin(messages.clone())
        .assert()
        .code(77)
        .stdout("");
    let reported: Vec<&str> = run.stderr_text().lines().collect();
    let expected = [
        "no summary from checkpoint: no checkpoint covers enough for the rest to fit; trying ollama:a:7b",
        "no summary from ollama:a:7b: cannot get a summary: 'claw-call' ended with status 69; trying openai:b",
        "no summary from openai:b: cannot get a summary: 'claw-call' ended with status 75; trying main",
        "cannot get a summary: 'claw-call' ended with status 77",
    ];
    assert_eq!(reported, expected.map(|text| format!("claw-compact: {text}")));
    let first = |n| sandbox.read_text(&format!("args.{n}")).lines().collect::<Vec<_>>().join(" ");
    assert_eq!(
        first(1),
        "--max-tokens 2048 --provider ollama --model a:7b --base-url http://127.0.0.1:11434"
    );
    assert!(first(2).starts_with("--max-tokens 2048 --provider openai --model b --base-url "));
    assert_eq!(first(3), "--max-tokens 2048");

    // After the models come the sources that need no call: `local`, or else a stub. With --max-calls 0, only
    // those are tried.
    for n in 4..=9 {
        sandbox.write(&format!("status.{n}"), "69");
    }
    for (more, strategy) in
        [(&["--emergency"][..], "stub"), (&["--emergency", "--fallback", "local"], "local")]
    {
        let outcome = applied(&self::run(&sandbox, &[&vias[..], more].concat(), &messages));
        assert_eq!(
            (&outcome["strategy"], &outcome["source"]),
            (&json!(strategy), &json!(strategy))
        );
        let spent = calls(&sandbox);
        let outcome =
            applied(&self::run(&sandbox, &[&["--max-calls", "0"], more].concat(), &messages));
        assert_eq!((&outcome["strategy"], calls(&sandbox)), (&json!(strategy), spent));
    }
}

#[test]
fn the_configured_model_is_asked_before_the_model_of_the_conversation() {
    let sandbox = with_model();
    let ollama =
        json!({"url": "http://box:1", "model": "q", "timeoutSeconds": 120, "contextTokens": 32000});
    configure(&sandbox, &json!({"preferCheckpoint": true, "ollama": ollama}));
    sandbox.write("status.1", "69");
    let args = ["--config", "config", "--model", "big"];
    let sources = show(&sandbox, &args, &conversation(12, 300))["sources"].clone();
    assert_eq!(sources, json!(["checkpoint", "ollama:q", "main", "local"]));
    let run = run(&sandbox, &args, &conversation(12, 300));
    assert_eq!((&applied(&run)["source"], calls(&sandbox)), (&json!("main"), 2));
    let args = |n| {
        let given = sandbox.read_text(&format!("args.{n}")).lines().collect::<Vec<_>>().join(" ");
        given.trim_end_matches(" --log json").to_owned()
    };
    assert_eq!(
        args(1),
        "--max-tokens 2048 --provider ollama --model q --base-url http://box:1 --window 32000 --timeout 120"
    );
    assert_eq!(args(2), "--max-tokens 2048 --model big");
    // A window that is too small for a summary is an error.
    configure(&sandbox, &json!({"ollama": {"model": "q", "contextTokens": 1}}));
    self::run(&sandbox, &["--config", "config"], &conversation(12, 300)).code(78).stdout("");
}

#[test]
fn settings_of_the_main_model_are_not_passed_to_other_models() {
    let sandbox = with_model();
    sandbox.write("status.1", "69");
    let own = ["CLAW_KEY_FILE", "CLAW_KEY_CMD", "CLAW_BASE_URL", "CLAW_WINDOW"];
    let call = r#"env >"env.$(cat calls 2>/dev/null)"; claw-call"#;
    let args = ["--call", call, "--via", "anthropic:small", "--via", "main"];
    let cmd = sandbox.cmd("claw-compact").args(args).write_stdin(conversation(12, 300));
    let cmd = own.iter().fold(cmd, |cmd, name| cmd.env(name, "100000"));
    cmd.env("ANTHROPIC_BASE_URL", "http://usual").assert().success();
    let (other, main) = (sandbox.read_text("env."), sandbox.read_text("env.1"));
    for name in own {
        let has = |env: &str| env.lines().any(|line| line == format!("{name}=100000"));
        // claw-compact passes the window as an option instead.
        assert!(!has(&other) && (has(&main) || name == "CLAW_WINDOW"), "{name}");
    }
    let url = "--base-url\nhttp://usual\n";
    assert!(
        sandbox.read_text("args.1").ends_with(url) && !sandbox.read_text("args.2").contains(url)
    );
}

// ---- the circuit breaker ---------------------------------------------------------------------

#[test]
fn v74_a_model_that_failed_three_times_is_skipped_for_thirty_minutes() {
    let sandbox = with_model();
    let messages = conversation(12, 60);
    sandbox.write("status", "69");
    let try_at = |seconds: u64, args: &[&str], is_asked: bool, why: &str| {
        let before = calls(&sandbox);
        let run = run_at(&sandbox, seconds, &[args, &["--no-fallback"]].concat(), &messages);
        // If another model gives no summary, the model of the conversation is asked.
        let is_main_asked = !args.contains(&"main") && run.get_output().status.code() != Some(0);
        let expected = usize::from(is_asked) + usize::from(is_main_asked);
        assert_eq!(calls(&sandbox) - before, expected, "{why}: {}", run.stderr_text());
        run
    };
    let q = ["--via", "ollama:q"];
    for n in 0..3 {
        try_at(n, &q, true, "fewer than three").code(69);
    }
    try_at(3, &q, false, "one second after the third failure")
        .code(69)
        .stdout("")
        .stderr(contains("skipping 'ollama:q' for 1799 s: it failed 3 times in a row"));
    try_at(2 + 1799, &q, false, "29:59").code(69);
    try_at(2 + 1800, &q, false, "30:00").code(69);
    // Another model or address counts separately, and the model of the conversation is always asked.
    try_at(4, &["--via", "ollama:r"], true, "another model").code(69);
    let elsewhere =
        sandbox.cmd("claw-compact").args(q).arg("--no-fallback").env("OLLAMA_HOST", "box:1");
    elsewhere.write_stdin(messages.clone()).assert().code(69);
    assert!(sandbox.read_text("args.12").contains("http://box:1"));
    for n in 0..4 {
        try_at(n, &["--via", "main"], true, "main").code(69);
    }
    // Failures are stored on disk. The count restarts after a pause and after a success.
    let log = sandbox.read_text("state/attempts.jsonl");
    assert_eq!(log.lines().filter(|line| line.contains("ollama:q@http://127")).count(), 3);
    try_at(2 + 1801, &q, true, "30:01").code(69);
    try_at(2 + 1802, &q, true, "the second one").code(69);
    sandbox.write("status", "0");
    try_at(2 + 1803, &q, true, "the third one succeeds").success();
    sandbox.write("status", "69");
    for n in 0..3 {
        try_at(2000 + n, &q, true, "after a success").code(69);
    }
    try_at(2003, &q, false, "three in a row again").code(69);
}

#[test]
fn v74_the_configuration_sets_the_number_of_failures_and_the_pause() {
    let sandbox = with_model();
    sandbox.write("status", "69");
    let ollama = json!({"model": "q"});
    configure(
        &sandbox,
        &json!({"ollamaFailureThreshold": 1, "ollamaResetMinutes": 1, "ollama": ollama}),
    );
    let args = ["--config", "config", "--no-fallback"];
    for (seconds, asked) in [(0, 2), (60, 1), (61, 2)] {
        let before = calls(&sandbox);
        run_at(&sandbox, seconds, &args, &conversation(12, 60))
            .code(69)
            .stderr(contains("; trying main"));
        assert_eq!(calls(&sandbox) - before, asked, "{seconds}");
    }
    configure(&sandbox, &json!({"ollamaFailureThreshold": 0, "ollama": ollama}));
    let before = calls(&sandbox);
    run_at(&sandbox, 62, &args, &conversation(12, 60)).code(69);
    assert_eq!(calls(&sandbox) - before, 2, "a threshold of 0 must disable skipping");
}

#[test]
fn v74_a_model_that_was_not_asked_has_not_failed() {
    let sandbox = with_model();
    sandbox.write("status", "69");
    for args in [["--max-calls", "1"], ["--deadline", "0.0001"]] {
        let args = [&args[..], &["--via", "openai:a", "--via", "ollama:q"]].concat();
        assert_ne!(run(&sandbox, &args, &conversation(12, 60)).get_output().status.code(), Some(0));
    }
    let log = sandbox.read_text("state/attempts.jsonl");
    assert!(log.contains("openai:a") && !log.contains("ollama:q"), "{log}");
}

#[test]
fn v74_reaching_a_limit_is_not_a_failure_of_the_model() {
    let sandbox = with_model();
    // The request does not fit, and no call is left for half of it.
    sandbox.write("status", "3");
    let args = ["--max-calls", "1", "--via", "openai:a", "--no-fallback"];
    let run = run(&sandbox, &args, &conversation(12, 60));
    assert!(run.stderr_text().contains("no call is left: --max-calls is 1"), "{run}");
    assert_eq!(calls(&sandbox), 1);
    assert!(!sandbox.exists("state/attempts.jsonl"));
}

#[test]
fn v74_a_damaged_log_of_attempts_is_not_a_failure() {
    let sandbox = with_model();
    let line = |ts: &str| {
        let key = "summary:ollama:q@http://127.0.0.1:11434";
        format!("{{\"key\":\"{key}\",\"ts\":{ts},\"ok\":false}}\n")
    };
    let hostile = [
        b"{\"key\":\"summary:ollama:q@h".to_vec(),
        b"\xff\xfe\0\0\n[]\n{}\nnull\n{\"key\":7,\"ts\":\"x\",\"ok\":3}\n".to_vec(),
        format!("{}\n", "[".repeat(100_000)).into_bytes(),
        // Invalid times, and times of a clock that was ahead.
        line("1e999").repeat(4).into_bytes(),
        line("NaN").repeat(4).into_bytes(),
        line("4000000000").repeat(4).into_bytes(),
        line("1e300").repeat(4).into_bytes(),
    ];
    for (n, bytes) in hostile.iter().enumerate() {
        sandbox.write("state/attempts.jsonl", bytes);
        let outcome = applied(&run(&sandbox, &["--via", "ollama:q"], &conversation(12, 60)));
        assert_eq!((&outcome["source"], calls(&sandbox)), (&json!("ollama:q"), n + 1));
        let log = sandbox.read("state/attempts.jsonl");
        assert!(
            log.starts_with(bytes) && log.ends_with(b"\"ok\":true}\n"),
            "the line must be complete"
        );
    }
    sandbox.sh("rm state/attempts.jsonl; mkdir state/attempts.jsonl").assert().success();
    run(&sandbox, &["--via", "ollama:q"], &conversation(12, 60)).success();
    let cmd =
        sandbox.cmd("claw-compact").args(["--via", "ollama:q"]).write_stdin(conversation(12, 60));
    cmd.env("CLAW_STATE_DIR", "/dev/null/x").assert().success();
}

#[test]
fn v74_sixteen_concurrent_programs_lose_no_line_of_the_log() {
    let sandbox = with_model();
    sandbox.write("m", conversation(12, 60));
    let script = "for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do
        claw-compact --via ollama:q$n --call 'exit 69 #' <m 2>/dev/null & done; wait";
    sandbox.sh(script).assert().success();
    let log = sandbox.read_json("state/attempts.jsonl");
    let mut keys: Vec<String> = log.iter().map(|line| line["key"].to_string()).collect();
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), 16, "{log:?}");
}

/// The environment variables that name a model are for the conversation. They give no default for another provider, so
/// `--via` must also state the model.
#[test]
fn m7_a_model_of_another_provider_must_be_named() {
    let sandbox = with_model();
    Conversation::plain(8, 200).append(&sandbox, "s.jsonl");
    for (via, why) in [
        ("ollama", "no model; write ollama:MODEL"),
        ("openai:", "no model; write openai:MODEL"),
        (
            "nobody:x",
            "use main, provider or PROVIDER:MODEL with anthropic, openai, gemini, ollama or offline",
        ),
    ] {
        compact(&sandbox, &["--via", via]).code(2).stdout("").stderr(contains(why));
    }
    compact(&sandbox, &["--via", "offline"]).success();
}
