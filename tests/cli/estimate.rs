//! claw-estimate: the number of tokens, the context window, and whether the request fits.

use assert_cmd::assert::Assert;
use predicates::str::contains;
use serde_json::{Value, json};

use crate::common::{AssertExt, Cmd, Sandbox};
use crate::conversations::{Conversation, append, rebuild_meta, stage, words};

/// Returns a user message of `n` characters.
fn message_of_length(n: usize) -> String {
    message(&"x".repeat(n))
}

fn message(text: &str) -> String {
    format!("{}\n", json!({"role": "user", "content": text}))
}

fn estimate(sandbox: &Sandbox, args: &[&str], input: &str) -> Cmd {
    sandbox.cmd("claw-estimate").args(args).write_stdin(input)
}

/// Runs claw-estimate with claw0's method, four characters per token, so that the estimate is exactly `tokens`.
fn exact(sandbox: &Sandbox, tokens: usize, args: &[&str]) -> Assert {
    estimate(sandbox, &["--method", "chars4"], &message_of_length(tokens * 4)).args(args).assert()
}

fn tokens(text: &str) -> u64 {
    let run = estimate(&Sandbox::new(), &[], &message(text)).assert();
    run.success().json_one().as_u64().unwrap_or_default()
}

#[test]
fn the_output_is_one_number() {
    let sandbox = Sandbox::new();
    estimate(&sandbox, &[], &message("hello world")).assert().success().stdout("10\n").stderr("");
    estimate(&sandbox, &[], "").assert().success().stdout("0\n").stderr("");
    sandbox.write("a", message("hello world"));
    sandbox.cmd("claw-estimate").args(["a", "a"]).assert().success().stdout("19\n");
}

#[test]
fn invalid_messages_end_with_65() {
    for input in
        ["nonsense\n", "[]\n", "{\"role\":\"king\",\"content\":\"x\"}\n", "{\"role\":\"user\"}\n"]
    {
        estimate(&Sandbox::new(), &[], input)
            .assert()
            .code(65)
            .stdout("")
            .stderr(contains("claw-estimate: "));
    }
}

#[test]
fn v33_chars4_divides_each_block_by_four_and_rounds_down() {
    let sandbox = Sandbox::new();
    for (characters, tokens) in
        [(0, "0\n"), (1, "0\n"), (3, "0\n"), (4, "1\n"), (5, "1\n"), (4000, "1000\n")]
    {
        estimate(&sandbox, &["--method", "chars4"], &message_of_length(characters))
            .assert()
            .success()
            .stdout(tokens);
    }
    let blocks = vec![json!({"type": "text", "text": "abc"}); 1000];
    let message = json!({"role": "user", "content": blocks}).to_string();
    estimate(&sandbox, &["--method", "chars4"], &message).assert().success().stdout("0\n");
    let ours = estimate(&sandbox, &[], &message).assert().success().json_one();
    assert!(ours.as_u64() >= Some(750), "{ours}");
}

#[test]
fn v34_cjk_text_and_emoji_have_about_one_token_per_character() {
    // The second number is for an unknown model: newer Claude splits Chinese into more tokens than GPT, and some
    // tokenizers split a rare emoji into its four bytes. The message itself costs a few tokens.
    for (text, gpt, unknown) in [
        ("今天天气很好我们去公园", 0.77, 1.68),
        ("今日はとても良い天気です", 0.88, 1.62),
        ("오늘은 날씨가 좋습니다", 0.53, 1.60),
        ("😀🎉🚀", 2.34, 4.14),
    ] {
        let text = text.repeat(100);
        for (model, expected) in [("gpt-5", gpt), ("my-model", unknown)] {
            let run = estimate(&Sandbox::new(), &["--model", model], &message(&text)).assert();
            let tokens = run.success().json_one().as_f64().unwrap_or_default();
            let ratio = tokens / text.chars().count() as f64;
            let is_near = (expected * 0.97..expected * 1.03).contains(&ratio);
            assert!(is_near, "{ratio} tokens per character for {model}: {text}");
        }
    }
    assert!((1300..1360).contains(&tokens(&words(1000))));
}

#[test]
fn v35_every_kind_of_block_is_counted() {
    let sandbox = Sandbox::new();
    let total = |args: &[&str], input: &str| {
        estimate(&sandbox, args, input).assert().success().json_one().as_u64().unwrap_or_default()
    };
    let one = |role: &str, block: Value| json!({"role": role, "content": [block]}).to_string();
    let image =
        json!({"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}});
    let list = json!([{"type": "text", "text": words(500)}]);
    let cases = [
        one("user", image),
        one("assistant", json!({"type": "thinking", "thinking": words(500), "signature": "s"})),
        one(
            "assistant",
            json!({"type": "tool_use", "id": "a", "name": "f", "input": {"x": words(500)}}),
        ),
        one("user", json!({"type": "tool_result", "tool_use_id": "a", "content": words(500)})),
        one("user", json!({"type": "tool_result", "tool_use_id": "a", "content": list})),
    ];
    for case in cases {
        assert!(total(&[], &case) >= 500, "{case}");
    }
    // A one-megabyte image has far fewer than a million tokens.
    let data = "A".repeat(1_000_000);
    let source = json!({"type": "base64", "media_type": "image/png", "data": data});
    let picture = total(&[], &one("user", json!({"type": "image", "source": source})));
    assert!((1..10_000).contains(&picture), "{picture}");
}

#[test]
fn the_system_prompt_and_the_tools_are_counted() {
    let sandbox = Sandbox::new();
    sandbox.write("system", words(1000));
    sandbox.write(
        "tools",
        json!([{"name": "f", "description": words(300), "input_schema": {}}]).to_string(),
    );
    let with = |args: &[&str]| {
        estimate(&sandbox, args, &message("hi")).arg("--json").assert().success().json_one()
    };
    let all = with(&["--system", "system", "--tools", "tools"]);
    let (alone, system, tools) = (&with(&[])["tokens"], &all["system"], &all["tools"]);
    assert!(system.as_u64() >= Some(1000) && tools.as_u64() >= Some(300), "{all}");
    let sum = [alone, system, tools].iter().filter_map(|n| n.as_u64()).sum::<u64>();
    // The total is rounded up once, the parts to the nearest number.
    let total = all["tokens"].as_u64().unwrap_or_default();
    assert!(sum.abs_diff(total) <= 2, "{all}");

    estimate(&sandbox, &["--system", "missing"], "")
        .assert()
        .code(74)
        .stderr(contains("'missing'"));
    sandbox.write("tools", "{}");
    estimate(&sandbox, &["--tools", "tools"], "")
        .assert()
        .code(65)
        .stderr(contains("not a JSON array"));
}

#[test]
fn json_has_the_breakdown() {
    let sandbox = Sandbox::new();
    estimate(&sandbox, &["--json", "--window", "1000"], &message("hello")).assert().success().stdout(concat!(
        r#"{"tokens":7,"measured":0,"measured_messages":0,"estimated":7,"system":0,"tools":0,"#,
        r#""user":7,"assistant":0,"results":0,"images":0,"bytes":34,"#,
        r#""window":1000,"reserve":150,"output":250,"margin":50,"prompt_budget":700,"left":843,"window_origin":"setting","family":"unknown","largest":[],"#,
        r#""messages":[{"role":"user","tokens":7}]}"#,
        "\n"
    ));
    // Without a known window, the members that depend on it are missing.
    let unknown = estimate(&sandbox, &["--json"], &message("hello")).assert().success().json_one();
    for member in ["window", "reserve", "output", "left"] {
        assert_eq!(unknown[member], Value::Null, "{member}");
    }
}

#[test]
fn v38_the_bar_has_thirty_cells_and_one_decimal() {
    let sandbox = Sandbox::new();
    let bar = |cells: usize, rest: &str| {
        format!("[{}{}] {rest}\n", "#".repeat(cells), "-".repeat(30 - cells))
    };
    for (tokens, expected) in [
        (0, bar(0, "0.0%  ~0 / 100,000 tokens")),
        (3_333, bar(0, "3.3%  ~3,333 / 100,000 tokens")),
        (3_334, bar(1, "3.3%  ~3,334 / 100,000 tokens")),
        (50_000, bar(15, "50.0%  ~50,000 / 100,000 tokens")),
        (99_950, bar(29, "100.0%  ~99,950 / 100,000 tokens")),
        (100_000, bar(30, "100.0%  ~100,000 / 100,000 tokens")),
        (250_000, bar(30, "250.0%  ~250,000 / 100,000 tokens")),
    ] {
        exact(&sandbox, tokens, &["--bar", "--window", "100000"])
            .success()
            .stdout(expected.clone());
    }
}

#[test]
fn check_ends_with_3_if_the_prompt_reaches_the_window_minus_the_reserve() {
    let sandbox = Sandbox::new();
    let why = "claw-estimate: does not fit: 850 tokens, window 1000 - reserve 150 = 850\n";
    exact(&sandbox, 849, &["--check", "--window", "1000"]).success().stdout("849\n").stderr("");
    exact(&sandbox, 850, &["--check", "--window", "1000"]).code(3).stdout("850\n").stderr(why);
    let reserve = ["--check", "--window", "1000", "--reserve", "0"];
    exact(&sandbox, 999, &reserve).success();
    exact(&sandbox, 1000, &reserve).code(3);
    // The default reserve is 15 % of the window, but at most 30000.
    exact(&sandbox, 969_999, &["--check", "--window", "1000000"]).success();
    exact(&sandbox, 970_000, &["--check", "--window", "1000000"]).code(3);
    // Without --check, the size does not matter.
    exact(&sandbox, 5000, &["--window", "1000"]).success().stdout("5000\n");
}

#[test]
fn an_unknown_window_is_reported_and_never_guessed() {
    let sandbox = Sandbox::new();
    let why = "claw-estimate: the window is not known; give --window or set CLAW_WINDOW\n";
    for args in [&["--check"][..], &["--check", "--bar"], &["--check", "--model", "my-model"]] {
        estimate(&sandbox, args, &message("hi")).assert().code(78).stdout("").stderr(why);
    }
    estimate(&sandbox, &["--model", "my-model"], &message("hi")).assert().success();
}

#[test]
fn audit_28_the_bar_of_an_unknown_window_says_how_to_set_it() {
    let sandbox = Sandbox::new();
    let bar = "~10 tokens; the window is not known: set it with --window or CLAW_WINDOW\n";
    for args in [&["--bar"][..], &["--bar", "--model", "my-model"]] {
        exact(&sandbox, 10, args).success().stdout(bar).stderr("");
        exact(&sandbox, 10, &[args, &["--parts"]].concat()).success().stdout(contains(bar));
    }
}

#[test]
fn audit_28_the_offline_provider_has_a_known_window() {
    let sandbox = Sandbox::new();
    for (args, window) in [
        (&["--provider", "offline"][..], 200_000),
        (&["--provider", "offline", "--model", "mine"], 200_000),
        (&["--provider", "offline", "--model", "gpt-4o"], 128_000),
        (&["--provider", "offline", "--window", "5000"], 5_000),
    ] {
        let args = [args, &["--json"]].concat();
        let estimate = estimate(&sandbox, &args, &message("hi")).assert().success().json_one();
        assert_eq!(estimate["window"], window, "{args:?}");
    }
}

#[test]
fn the_window_comes_from_the_option_the_environment_or_the_table() {
    let sandbox = Sandbox::new();
    let window = |cmd: Cmd| cmd.arg("--json").assert().success().json_one()["window"].clone();
    let run = |args: &[&str]| estimate(&sandbox, args, "");
    assert_eq!(window(run(&["--model", "claude-haiku-4-5"])), 200_000);
    assert_eq!(window(run(&["--model", "anthropic/Claude-Haiku-4-5-20251001"])), 200_000);
    assert_eq!(window(run(&[]).env("MODEL_ID", "claude-haiku-4-5")), 200_000);
    assert_eq!(
        window(run(&[]).env("MODEL_ID", "claude-haiku-4-5").env("CLAW_MODEL", "gpt-4o")),
        128_000
    );
    let both = |cmd: Cmd| cmd.env("CLAW_MODEL", "claude-haiku-4-5").env("CLAW_WINDOW", "9000");
    assert_eq!(window(both(run(&[]))), 9000);
    assert_eq!(window(both(run(&["--window", "7000"]))), 7000);
    run(&[]).env("CLAW_WINDOW", "many").assert().code(78).stderr(contains("'many'"));
    run(&["--window", "many"]).assert().code(2);
}

#[test]
fn the_user_can_extend_the_table() {
    let sandbox = Sandbox::new();
    sandbox.write("models", "# mine\nlocal-7b 8192 -\nclaude-haiku 90000 4096 # the proxy's\n");
    let run = |model: &str| {
        estimate(&sandbox, &["--json", "--model", model], "").env("CLAW_MODELS", "models").assert()
    };
    assert_eq!(run("local-7b-q4").success().json_one()["window"], 8192);
    assert_eq!(run("claude-haiku-4-5").success().json_one()["window"], 90_000);
    assert_eq!(run("gpt-4o").success().json_one()["window"], 128_000);
    sandbox.write("models", "local-7b\n");
    run("gpt-4o")
        .code(78)
        .stderr(contains("cannot use models 'models': line 1: 'local-7b' has no window"));
}

/// A window that a refusal stated applies to the same endpoint and model for 30 days if it is plausible. The table of
/// models applies only if its window is smaller, and a window that the user sets overrides both.
#[test]
fn audit_11_a_stated_window_is_used_if_plausible_recent_and_not_overridden() {
    let sandbox = Sandbox::new();
    // 2026-01-01, the current time in a sandbox.
    let (now, day) = (1_767_225_600, 86_400);
    let here = "http://127.0.0.1:9";
    let line = |endpoint: &str, model: &str, window: u64, age: u64| {
        let line = json!({"endpoint": endpoint, "model": model, "window": window, "ts": now - age});
        line.to_string() + "\n"
    };
    let lines = [
        line(here, "m", 5000, 2),
        line(here, "m", 6000, 1),
        line("http://127.0.0.1:8", "m", 7000, 0),
        line(here, "n", 8000, 0),
        line(here, "locked", 5, 0),
        line(here, "old", 5000, 31 * day),
        line(here, "recent", 5000, 29 * day),
        line("HTTP://API.Example:80/v1/", "dated-20260101", 5000, 0),
        line(here, "gpt-4o", 1_280_001, 0),
        "torn{".to_owned(),
    ];
    sandbox.write("state/windows.jsonl", lines.concat());
    let window = |model: &str, args: &[&str], url: &str| {
        let cmd = estimate(&sandbox, &["--json", "--model", model], "").args(args);
        cmd.env("ANTHROPIC_BASE_URL", url).assert().success().stderr("").json_one()["window"]
            .clone()
    };
    assert_eq!(window("m", &[], here), 6000, "the newest line");
    for same in ["http://127.0.0.1:9/", "http://127.0.0.1:9/v1/", "HTTP://127.0.0.1:9/v1/messages"]
    {
        assert_eq!(window("m", &[], same), 6000, "{same}");
    }
    assert_eq!(window("dated", &[], "http://api.example"), 5000, "an equivalent URL");
    assert_eq!(window("vendor/dated-20251231", &[], "http://api.example:80"), 5000);
    assert_eq!(window("m", &["--window", "9000"], here), 9000, "the option");
    assert_eq!(window("m", &["--window", "4000"], here), 4000, "the option");
    assert_eq!(window("m", &[], "http://127.0.0.1:7"), Value::Null, "another endpoint");
    assert_eq!(window("locked", &[], here), Value::Null, "implausibly small");
    assert_eq!(window("old", &[], here), Value::Null, "older than 30 days");
    assert_eq!(window("recent", &[], here), 5000);
    assert_eq!(window("gpt-4o", &[], here), 128_000, "implausibly large");
}

#[test]
fn a_window_without_room_for_a_prompt_ends_with_78_and_shows_the_calculation() {
    let sandbox = Sandbox::new();
    for (args, why) in [
        (&["--window", "1000", "--max-tokens", "950"][..], "window 1000 - answer 950 - margin 50"),
        (&["--window", "1000", "--reserve", "1000"], "window 1000 - reserve 1000"),
        (&["--window", "0"], "window 0"),
    ] {
        estimate(&sandbox, args, "")
            .assert()
            .code(78)
            .stdout("")
            .stderr(contains("nothing is left for the prompt: "))
            .stderr(contains(why));
    }
    estimate(&sandbox, &["--window", "1000", "--max-tokens", "949"], "").assert().success();
}

#[test]
fn the_reserve_comes_from_the_option_or_the_configuration() {
    let sandbox = Sandbox::new();
    sandbox.write("claw.json", r#"{"session":{"store":"x","compaction":{"reserveTokens":400}}}"#);
    let window = ["--check", "--window", "1000"];
    let config = ["--check", "--window", "1000", "--config", "claw.json"];
    exact(&sandbox, 600, &window).success();
    exact(&sandbox, 599, &config).success();
    exact(&sandbox, 600, &config).code(3).stderr(contains("reserve 400"));
    let by_environment =
        estimate(&sandbox, &window, &message_of_length(600 * 4)).args(["--method", "chars4"]);
    by_environment.env("CLAW_CONFIG", "claw.json").assert().code(3);
    exact(&sandbox, 600, &[&config[..], &["--reserve", "100"]].concat()).success();
}

#[test]
fn an_invalid_configuration_ends_with_78() {
    let sandbox = Sandbox::new();
    let run = || exact(&sandbox, 1, &["--window", "1000", "--config", "claw.json"]);
    for text in [
        "nonsense",
        "[]",
        r#"{"session":1}"#,
        r#"{"session":{"compaction":{"reserveTokens":"x"}}}"#,
        r#"{"other":1}"#,
    ] {
        sandbox.write("claw.json", text);
        run().code(78).stdout("").stderr(contains("'claw.json'"));
    }
    for text in ["{}", r#"{"session":{}}"#, r#"{"session":{"compaction":{}}}"#] {
        sandbox.write("claw.json", text);
        run().success();
    }
}

/// Returns a prompt, a long result, an answer with the provider's token counts, and a new prompt.
fn counted() -> Conversation {
    let usage = json!({
        "input_tokens": 10,
        "cache_read_input_tokens": 8000,
        "cache_creation_input_tokens": 1000,
        "output_tokens": 500,
    });
    let content = json!([{"type": "text", "text": "b"}]);
    Conversation::new()
        .user("a")
        .tool(words(9000))
        .record(json!({"type": "assistant", "content": content, "usage": usage}))
        .user("hello")
}

fn breakdown(sandbox: &Sandbox, file: &str) -> Value {
    estimate(sandbox, &["--json"], &rebuild_meta(sandbox, file)).assert().success().json_one()
}

#[test]
fn v36_the_providers_count_is_used_and_later_messages_are_estimated() {
    let sandbox = Sandbox::new();
    counted().append(&sandbox, "s.jsonl");
    let found = breakdown(&sandbox, "s.jsonl");
    assert_eq!((&found["measured"], &found["estimated"]), (&json!(9510), &json!(7)), "{found}");
    assert_eq!((&found["tokens"], &found["measured_messages"]), (&json!(9517), &json!(4)));
}

#[test]
fn v37_an_empty_usage_is_not_a_count() {
    let sandbox = Sandbox::new();
    for usage in [json!(null), json!({}), json!({"input_tokens": 0, "output_tokens": 0}), json!([])]
    {
        let file = "s.jsonl";
        sandbox.write(file, "");
        let reply = json!({"type": "assistant", "content": [], "usage": usage});
        Conversation::plain(3, 10).record(reply).user("x").append(&sandbox, file);
        assert_eq!(breakdown(&sandbox, file)["measured"], 0, "{usage}");
    }
}

#[test]
fn v37_d32_a_count_from_before_a_truncation_or_compaction_is_not_used() {
    let sandbox = Sandbox::new();
    counted().append(&sandbox, "s.jsonl");
    let run = stage(&sandbox, "claw-truncate", &["--window", "8000"], "s.jsonl");
    append(&sandbox, "s.jsonl", run.get_output().stdout.clone());
    let cut = breakdown(&sandbox, "s.jsonl");
    assert_eq!(cut["measured"], 0, "{cut}");

    counted().append(&sandbox, "c.jsonl");
    sandbox.write("summary", "They talked.");
    let run =
        stage(&sandbox, "claw-compact", &["--summary", "summary", "--window", "8000"], "c.jsonl");
    append(&sandbox, "c.jsonl", run.success().get_output().stdout.clone());
    let cut = breakdown(&sandbox, "c.jsonl");
    assert_eq!(cut["measured"], 0, "{cut}");
    // The next count is valid.
    let usage = json!({"input_tokens": 77, "output_tokens": 3});
    let next = json!({"type": "assistant", "content": "c", "usage": usage});
    append(&sandbox, "c.jsonl", next.to_string());
    assert_eq!(breakdown(&sandbox, "c.jsonl")["tokens"], 80);
}
