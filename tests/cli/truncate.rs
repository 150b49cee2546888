//! claw-truncate shortens long results, either in the messages or by truncation records, until the request fits.

use assert_cmd::assert::Assert;
use clawutils::shorten::HEAD_RATIO;
use predicates::str::contains;
use serde_json::{Value, json};

use crate::common::{AssertExt, Cmd, Sandbox, media};
use crate::conversations::{
    self, Conversation, append, log, rebuild, rebuild_meta, stage, undo_last, words,
};

const MARKER: &str = "left out, sha256 ";

/// Returns a conversation: a question, a call with this result, the assistant's reply to it, and a new prompt.
fn with_result(result: impl Into<Value>) -> Conversation {
    Conversation::new().user("Look.").tool(result).assistant("Seen.").user("And now?")
}

/// Returns text of exactly `characters` characters, five per token.
fn text(characters: usize) -> String {
    words(characters / 5 + 1).chars().take(characters).collect()
}

fn truncate(sandbox: &Sandbox, args: &[&str], messages: impl Into<Vec<u8>>) -> Cmd {
    sandbox.cmd("claw-truncate").args(args).write_stdin(messages)
}

/// Returns the messages of a conversation, as a user would pipe them in.
fn messages(conversation: &Conversation) -> String {
    let sandbox = Sandbox::new();
    conversation.append(&sandbox, "s.jsonl");
    rebuild(&sandbox, "s.jsonl")
}

/// Returns the results in some messages, in order.
fn results(messages: &[Value]) -> Vec<Value> {
    let blocks = messages.iter().filter_map(|message| message["content"].as_array()).flatten();
    blocks.filter(|block| block["type"] == "tool_result").map(|b| b["content"].clone()).collect()
}

/// Truncates a conversation with this result. Returns what is left of the result, if it is a string.
fn shortened(args: &[&str], result: impl Into<Value>) -> String {
    let run = truncate(&Sandbox::new(), args, messages(&with_result(result))).assert();
    let found = results(&run.json());
    found[0].as_str().unwrap_or_default().to_owned()
}

/// Splits a result into the text before the marker and the text after it.
#[track_caller]
fn ends(shown: &str) -> (&str, &str) {
    let at = shown.find("[... ").expect("a marker");
    let end = shown.rfind(" ...]").expect("the end of a marker") + " ...]".len();
    let (head, tail) = (&shown[..at], &shown[end..]);
    (head.strip_suffix('\n').unwrap_or(head), tail.strip_prefix('\n').unwrap_or(tail))
}

#[test]
fn v39_only_results_over_the_limit_change() {
    // The limit is 0.3 of the window at 4 characters per token; claw0's window of 180000 gives 216000.
    for (window, limit) in [("10000", 12_000), ("180000", 216_000)] {
        for length in [limit - 1, limit] {
            assert_eq!(shortened(&["--window", window], text(length)), text(length));
        }
        let shown = shortened(&["--window", window], text(limit + 1));
        assert!(shown.contains(MARKER) && shown.chars().count() <= limit, "{}", shown.len());
    }
}

#[test]
fn v40_l2_a_cut_moves_to_a_line_end_only_in_the_last_fifth_of_the_head() {
    let args = ["--window", "10000", "--head-ratio", "1"];
    let kept = |line_feed: Option<usize>| {
        let mut text = text(30_000).into_bytes();
        if let Some(at) = line_feed {
            text[at] = b'\n';
        }
        let shown = shortened(&args, String::from_utf8(text).expect("ASCII"));
        let (head, tail) = ends(&shown);
        assert_eq!(tail, "", "with --head-ratio 1, as in claw0, no tail is kept");
        head.len()
    };
    let longest = kept(None);
    assert!(longest > 11_000, "{longest}");
    for (at, head) in [
        (0, longest),
        (100, longest),
        (longest * 79 / 100, longest),
        (longest * 81 / 100, longest * 81 / 100),
        (longest - 1, longest - 1),
        (longest + 1, longest),
    ] {
        assert_eq!(kept(Some(at)), head, "a line feed at {at} of {longest}");
    }
}

#[test]
fn v41_d34_l2_the_end_is_kept() {
    for end in ["error: it failed at step 9", "}", "error: bad brace\n}", "nothing to see"] {
        let shown = shortened(&["--window", "10000"], format!("{}{end}", log(2000)));
        let (head, tail) = ends(&shown);
        assert!(tail.ends_with(end) && head.starts_with("step 1: "), "{end}");
        // Both are cut at line ends.
        let share = head.len() as f64 / (head.len() + tail.len()) as f64;
        assert!((share - HEAD_RATIO).abs() < 0.02 && tail.starts_with("step "), "{share}");
    }
    let all = shortened(&["--window", "10000", "--head-ratio", "0"], log(2000));
    assert!(all.starts_with("[... ") && all.ends_with("zlib.h\n"));
}

#[test]
fn v42_d36_l2_no_cut_inside_a_character_or_a_line_end() {
    for unit in ["é", "漢", "😀", "a\r\n", "x\u{301}y", "👨‍👩‍👧 "] {
        for window in 700..708 {
            let shown = shortened(&["--window", &window.to_string()], unit.repeat(2000));
            let (head, tail) = ends(&shown);
            let whole = unit.repeat(2000);
            assert!(whole.starts_with(head) && whole.ends_with(tail), "{unit:?} {window}");
            assert!(!head.ends_with('\r') && !tail.starts_with('\n'), "{unit:?} {window}");
        }
    }
}

#[test]
fn v43_d35_l4_truncating_twice_changes_nothing_more() {
    let sandbox = Sandbox::new();
    with_result(log(2000)).append(&sandbox, "s.jsonl");
    for messages in [rebuild(&sandbox, "s.jsonl"), rebuild_meta(&sandbox, "s.jsonl")] {
        let once = truncate(&sandbox, &["--window", "8000"], messages).assert().success();
        truncate(&sandbox, &["--window", "8000"], once.get_output().stdout.clone())
            .assert()
            .success()
            .stdout(once.stdout_text());
    }
}

#[test]
fn v43_d35_shortening_a_result_again_leaves_one_marker() {
    let sandbox = Sandbox::new();
    with_result(log(2000)).append(&sandbox, "s.jsonl");
    for messages in [rebuild(&sandbox, "s.jsonl"), rebuild_meta(&sandbox, "s.jsonl")] {
        let once = truncate(&sandbox, &["--window", "8000"], messages.clone()).assert();
        let further =
            truncate(&sandbox, &["--window", "4000"], once.success().get_output().stdout.clone())
                .assert()
                .success();
        let shown = results(&further.json())[0].to_string();
        assert_eq!(shown.matches(MARKER).count(), 1, "{shown}");
        // The marker still states the size of the original text.
        let bytes = format!(" of {} bytes (", log(2000).len());
        assert!(shown.contains(&bytes) && shown.contains(&digest(&sandbox, &log(2000))), "{shown}");
    }
}

/// Returns the first 16 digits of a text's SHA-256, computed by another program.
fn digest(sandbox: &Sandbox, text: &str) -> String {
    sandbox
        .sh("sha256sum | cut -c 1-16")
        .write_stdin(text)
        .assert()
        .success()
        .stdout_text()
        .trim()
        .to_owned()
}

/// Shortens `s.jsonl` for a window and stores the records. Returns the reported tokens before and after.
fn shorten(sandbox: &Sandbox, window: &str) -> (u64, u64) {
    let args = ["--window", window, "--log", "json"];
    let run = stage(sandbox, "claw-truncate", &args, "s.jsonl");
    let report: Value = serde_json::from_str(run.stderr_text()).expect("one line");
    append(sandbox, "s.jsonl", run.get_output().stdout.clone());
    let number = |name: &str| report[name].as_u64().expect("a size");
    (number("before"), number("after"))
}

/// Returns the size of the next request according to claw-estimate.
fn estimate(sandbox: &Sandbox) -> u64 {
    let messages = rebuild_meta(sandbox, "s.jsonl");
    let run = sandbox.cmd("claw-estimate").write_stdin(messages).assert();
    run.success().json_one().as_u64().expect("a number")
}

#[test]
fn audit_02_each_record_of_repeated_shortening_describes_the_original() {
    let block = |n: usize| json!({"type": "text", "text": format!("{n} {}\n", words(100))});
    let marker = "[... 5 of 9 bytes (1 lines) left out, sha256 0123456789abcdef ...]";
    let listed: Vec<Value> = (0..80).map(block).collect();
    let mut quoting = listed.clone();
    quoting[3] = json!({"type": "text", "text": marker});
    quoting[4] = json!({"type": "text", "text": format!("\n{marker}\n")});
    for list in [listed, quoting] {
        let whole: String = list.iter().filter_map(|block| block["text"].as_str()).collect();
        let sandbox = Sandbox::new();
        with_result(Value::from(list)).append(&sandbox, "s.jsonl");
        let (before, mut last) = (rebuild(&sandbox, "s.jsonl"), u64::MAX);
        for window in ["8000", "6000", "4000", "3000", "2990"] {
            let (_, after) = shorten(&sandbox, window);
            assert!(after <= last, "{window}: {last} -> {after}");
            assert_eq!(after, estimate(&sandbox), "{window}");
            last = after;
        }
        let records = sandbox.read_json("s.jsonl");
        let records = records.iter().filter(|record| record["type"] == "truncation");
        let mut targets = Vec::new();
        for record in records {
            let of = (&record["bytes"], &record["sha256"]);
            assert_eq!(of, (&json!(whole.len()), &json!(digest(&sandbox, &whole))), "{record}");
            targets.push(record["id"].clone());
        }
        assert!(targets.len() >= 4, "{targets:?}");
        for target in targets {
            append(&sandbox, "s.jsonl", json!({"type": "retract", "target": target}).to_string());
        }
        assert!(rebuild(&sandbox, "s.jsonl") == before);
    }
}

#[test]
fn audit_02_a_marker_that_a_tool_wrote_is_text() {
    // A result that looks like a shortened one, with consistent numbers.
    let marker = "[... 4000 of 4096 bytes (80 lines) left out, sha256 0123456789abcdef ...]";
    let fake = format!("{}\n{marker}\n{}", "a".repeat(48), "b".repeat(48));
    let sandbox = Sandbox::new();
    with_result(json!([{"type": "text", "text": fake}, {"type": "text", "text": log(600)}]))
        .tool(fake.repeat(200))
        .append(&sandbox, "s.jsonl");
    for window in ["6000", "3000"] {
        let (_, after) = shorten(&sandbox, window);
        assert_eq!(after, estimate(&sandbox), "{window}");
    }
    for record in sandbox.read_json("s.jsonl").iter().filter(|it| it["type"] == "omission") {
        assert_ne!(record["bytes"], 4096, "{record}");
        assert_ne!(record["sha256"], "0123456789abcdef", "{record}");
    }
    sandbox.cmd("claw-rebuild").arg("s.jsonl").assert().success().stderr("");
}

#[test]
fn audit_02_a_result_changed_by_another_program_is_not_shortened_again() {
    let sandbox = Sandbox::new();
    with_result(log(2000)).append(&sandbox, "s.jsonl");
    shorten(&sandbox, "8000");
    let changed = rebuild_meta(&sandbox, "s.jsonl").replace("step 1: ", "Step one: ");
    truncate(&sandbox, &["--window", "4000", "--record"], changed)
        .assert()
        .code(5)
        .stdout("")
        .stderr(contains("no result can be shortened: "));
}

#[test]
fn v43_text_that_only_resembles_a_marker_is_text() {
    let fake = "[... 5 of 99 bytes (1 lines) left out, sha256 0123456789abcdef ...]";
    let shown = shortened(&["--window", "4000"], format!("{fake}\n{}", log(1000)));
    let (whole, numbers) = (fake.len() + 1 + log(1000).len(), shown.matches(MARKER).count());
    assert!(numbers == 2 && shown.contains(&format!(" of {whole} bytes (")), "{shown}");
}

#[test]
fn v44_without_space_for_text_only_the_marker_is_left() {
    for args in [
        &["--window", "10000", "--max-fraction", "0"][..],
        &["--window", "10000", "--max-fraction", "0.00001"],
        &["--window", "100", "--floor", "0"],
        &["--window", "40", "--floor", "1"],
    ] {
        let shown = shortened(args, log(300));
        assert_eq!(ends(&shown), ("", ""), "{args:?}: {shown}");
    }
    // A result shorter than a marker is not changed.
    assert_eq!(shortened(&["--window", "10000", "--max-fraction", "0"], "ok"), "ok");
}

#[test]
fn v45_d33_l1_many_results_within_the_limit_are_shortened_oldest_first() {
    let sandbox = Sandbox::new();
    // Eleven results of 5300 tokens, a limit of 31200 characters each, a budget of 18200 tokens in total.
    let conversation = (0..10)
        .fold(Conversation::new().user("Look."), |conversation, _| conversation.tool(text(20_000)));
    let conversation = conversation.assistant("Done.").user("Again.").tool(text(20_000));
    conversation.append(&sandbox, "s.jsonl");
    let messages = rebuild_meta(&sandbox, "s.jsonl");
    let run = truncate(&sandbox, &["--window", "26000"], messages)
        .assert()
        .success()
        .stderr(contains("claw-truncate: shortened 9 results: "));
    let whole: Vec<bool> =
        results(&run.json()).iter().map(|shown| *shown == text(20_000)).collect();
    assert_eq!(whole, [vec![false; 9], vec![true; 2]].concat());
    let count = sandbox.cmd("claw-estimate").write_stdin(run.get_output().stdout.clone()).assert();
    assert!(count.success().json_one().as_u64() <= Some(18_200));
}

#[test]
fn l1_forty_results_of_8_kb_fit() {
    let sandbox = Sandbox::new();
    let conversation = (0..40)
        .fold(Conversation::new().user("Look."), |conversation, _| conversation.tool(text(8000)));
    conversation.append(&sandbox, "s.jsonl");
    let window = ["--model", "gpt-5", "--window", "32000"];
    let run = truncate(&sandbox, &window, rebuild(&sandbox, "s.jsonl")).assert().success();
    sandbox
        .cmd("claw-estimate")
        .arg("--check")
        .args(window)
        .write_stdin(run.get_output().stdout.clone())
        .assert()
        .success();
}

#[test]
fn v46_l5_text_image_text_stay_in_order_with_ids_and_errors() {
    let image =
        json!({"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}});
    let text_block = |text: String| json!({"type": "text", "text": text});
    let list = json!([text_block(log(600)), image, text_block(log(600)), text_block("end".into())]);
    let conversation = with_result(list).call("f", json!({})).record(
        json!({"type": "tool_result", "tool_use_id": "call_2", "content": [text_block(log(900))], "is_error": true}),
    );
    let run = truncate(&Sandbox::new(), &["--window", "8000"], messages(&conversation)).assert();
    let all = run.json();
    let shown = results(&all);
    let types = |content: &Value| -> Vec<String> {
        let blocks = content.as_array().expect("still a list").iter();
        blocks.map(|block| block["type"].as_str().unwrap_or_default().to_owned()).collect()
    };
    assert_eq!(types(&shown[0]), ["text", "image", "text", "text"], "{shown:?}");
    assert_eq!((&shown[0][1], &shown[0][3]["text"]), (&image, &json!("end")));
    assert_eq!(shown[0].to_string().matches(MARKER).count(), 1);
    assert_eq!(types(&shown[1]), ["text"]);
    let last = all.last().expect("a message").to_string();
    assert!(
        last.contains(r#""tool_use_id":"call_2""#) && last.contains(r#""is_error":true"#),
        "{last}"
    );
}

#[test]
fn v47_a_larger_window_keeps_more_but_never_more_than_the_share() {
    let whole = text(1_300_000);
    let mut before = 0;
    for window in [4_000, 8_000, 16_000, 200_000, 1_000_000] {
        let length = shortened(&["--window", &window.to_string()], whole.clone()).chars().count();
        let limit = window * 4 * 3 / 10;
        assert!(
            length > before && length <= limit && length > limit * 7 / 10,
            "{window}: {length}"
        );
        before = length;
    }
}

/// Returns the line of a message without the metadata that the stages need.
fn without_meta(line: &str) -> String {
    let (message, _) = line.rsplit_once(r#","_meta":"#).expect("a message with _meta");
    format!("{message}}}\n")
}

#[test]
fn v48_l3_record_mode_gives_the_same_messages_as_message_mode() {
    let sandbox = Sandbox::new();
    let list = json!([{"type": "text", "text": log(700)}, {"type": "text", "text": "end"}]);
    let conversation =
        with_result(log(2000)).tool(list).assistant("Done.").user("More.").tool("short");
    conversation.append(&sandbox, "s.jsonl");
    let (bytes, before) = (sandbox.read("s.jsonl"), rebuild(&sandbox, "s.jsonl"));

    let run = truncate(&sandbox, &["--window", "8000"], rebuild_meta(&sandbox, "s.jsonl")).assert();
    let expected: String = run.success().lines().iter().map(|line| without_meta(line)).collect();
    let run = stage(&sandbox, "claw-truncate", &["--window", "8000"], "s.jsonl").success();
    assert_eq!(run.json().len(), 2);
    append(&sandbox, "s.jsonl", run.get_output().stdout.clone());
    assert!(rebuild(&sandbox, "s.jsonl") == expected);

    // No record is changed, and all truncations can be undone.
    assert!(sandbox.read("s.jsonl").starts_with(&bytes));
    let records = sandbox.read_json("s.jsonl");
    for record in &records[records.len() - 2..] {
        append(&sandbox, "s.jsonl", json!({"type": "retract", "target": record["id"]}).to_string());
    }
    assert!(rebuild(&sandbox, "s.jsonl") == before);
}

#[test]
fn a_record_states_the_kept_and_the_original_size() {
    let sandbox = Sandbox::new();
    with_result(log(2000)).append(&sandbox, "s.jsonl");
    let result = sandbox.read_json("s.jsonl").remove(3);
    let run = stage(&sandbox, "claw-truncate", &["--window", "8000"], "s.jsonl");
    let record = run.success().json_one();
    let names: Vec<&String> = record.as_object().expect("an object").keys().collect();
    let mut expected = ["type", "tool_use_id", "record_id", "head", "tail", "bytes", "sha256"];
    expected.sort_unstable();
    assert_eq!(names, expected);
    assert_eq!(record["type"], "truncation");
    assert_eq!((&record["tool_use_id"], &record["record_id"]), (&json!("call_1"), &result["id"]));
    assert_eq!(
        (&record["bytes"], &record["sha256"]),
        (&json!(log(2000).len()), &json!(digest(&sandbox, &log(2000))))
    );
    let (head, tail) = (record["head"].as_u64(), record["tail"].as_u64());
    assert!(head > tail && tail > Some(0), "{record}");
}

#[test]
fn d38_l3_the_marker_names_the_command_that_shows_the_original() {
    let sandbox = Sandbox::new();
    with_result(log(2000)).append(&sandbox, "s.jsonl");
    let run = stage(&sandbox, "claw-truncate", &["--window", "8000"], "s.jsonl");
    append(&sandbox, "s.jsonl", run.success().get_output().stdout.clone());
    let messages = rebuild(&sandbox, "s.jsonl");
    let (_, rest) = messages.split_once("; all of it: ").expect("a command in the marker");
    let (command, _) = rest.split_once(" ...]").expect("the marker's end");
    assert!(command.starts_with("claw-rebuild --record "), "{command}");
    let whole = sandbox.sh(&format!("{command} s.jsonl")).assert().success().stdout_text();
    assert_eq!(whole.trim_end(), log(2000).trim_end());
}

#[test]
fn a_second_truncation_record_replaces_the_first() {
    let sandbox = Sandbox::new();
    with_result(log(2000)).append(&sandbox, "s.jsonl");
    for window in ["8000", "4000"] {
        let run = stage(&sandbox, "claw-truncate", &["--window", window], "s.jsonl");
        append(&sandbox, "s.jsonl", run.success().get_output().stdout.clone());
    }
    let messages = rebuild(&sandbox, "s.jsonl");
    assert_eq!(messages.matches(MARKER).count(), 1);
    let direct = shortened(&["--window", "4000"], log(2000)).len();
    assert!(messages.len() < direct + 1000, "the result must be about as short as after one step");
    undo_last(&sandbox, "s.jsonl");
    assert!(
        rebuild(&sandbox, "s.jsonl").len() > messages.len(),
        "the first truncation must apply again"
    );
}

#[test]
fn v37_d32_a_count_from_before_a_truncation_is_ignored_in_a_pipe_too() {
    let sandbox = Sandbox::new();
    let usage = json!({"input_tokens": 90_000, "output_tokens": 5});
    let counted = json!({"type": "assistant", "content": "Seen.", "usage": usage});
    let conversation =
        Conversation::new().user("Look.").tool(log(2000)).record(counted).user("And now?");
    conversation.append(&sandbox, "s.jsonl");
    let run = truncate(&sandbox, &["--window", "8000"], rebuild_meta(&sandbox, "s.jsonl")).assert();
    let run = sandbox
        .cmd("claw-estimate")
        .arg("--json")
        .write_stdin(run.get_output().stdout.clone())
        .assert();
    assert_eq!(run.success().json_one()["measured"], 0);
}

#[test]
fn records_cannot_be_written_without_meta() {
    let messages = messages(&with_result(log(2000)));
    truncate(&Sandbox::new(), &["--record", "--window", "8000"], messages)
        .assert()
        .code(65)
        .stdout("")
        .stderr(contains("message 1 has no _meta; give the output of claw-rebuild --meta"));
}

#[test]
fn l7_exit_5_when_nothing_can_be_shortened() {
    let sandbox = Sandbox::new();
    // If the messages fit, they are printed unchanged, and there is no record to print.
    with_result("short").append(&sandbox, "fits.jsonl");
    let fits = rebuild_meta(&sandbox, "fits.jsonl");
    truncate(&sandbox, &["--window", "8000"], fits.clone())
        .assert()
        .success()
        .stdout(fits.clone())
        .stderr(contains("claw-truncate: nothing to shorten: "));
    stage(&sandbox, "claw-truncate", &["--window", "8000"], "fits.jsonl")
        .code(5)
        .stdout("")
        .stderr(contains("no result can be shortened: "));
    // These messages do not fit, but have no result to shorten.
    Conversation::plain(4, 5000).append(&sandbox, "talk.jsonl");
    let conversation = rebuild_meta(&sandbox, "talk.jsonl");
    truncate(&sandbox, &["--window", "8000"], conversation.clone())
        .assert()
        .code(5)
        .stdout(conversation.clone())
        .stderr(contains("no result can be shortened: "))
        .stderr(contains("budget 5600"));
    stage(&sandbox, "claw-truncate", &["--window", "8000"], "talk.jsonl").code(5).stdout("");
}

#[test]
fn l7_exit_5_when_the_shortened_messages_still_exceed_the_budget() {
    let sandbox = Sandbox::new();
    Conversation::plain(4, 5000).tool(log(2000)).append(&sandbox, "s.jsonl");
    let run = truncate(&sandbox, &["--window", "8000"], rebuild_meta(&sandbox, "s.jsonl"))
        .assert()
        .code(5)
        .stderr(contains("shortened 1 result: "))
        .stderr(contains(", still over the budget of 5600"));
    assert!(run.stdout_text().contains(MARKER));
    let run = stage(&sandbox, "claw-truncate", &["--window", "8000"], "s.jsonl").code(5);
    assert_eq!(run.json_one()["type"], "truncation");
}

/// Returns an image that counts as 4784 tokens if the model is unknown.
fn image(number: u32) -> Value {
    media::image("image/png", &media::png(2000 - number, 2000))
}

/// Returns the data of an image.
fn data(number: u32) -> String {
    image(number)["source"]["data"].as_str().expect("data").to_owned()
}

/// Returns a conversation with images in two results and in a user message, and a document in the first result.
fn with_images() -> Conversation {
    let document =
        json!({"type": "document", "source": {"type": "url", "url": "https://example.org/a.pdf"}});
    let text_block = |text: &str| json!({"type": "text", "text": text});
    let first = json!([text_block("before"), image(0), text_block("after"), document]);
    let shown = json!([text_block("And this?"), image(2)]);
    Conversation::new()
        .user("Look.")
        .tool(first)
        .assistant("Seen.")
        .record(json!({"type": "user", "content": shown}))
        .tool(json!([image(1)]))
}

#[test]
fn l5_images_of_results_are_omitted_whole_and_recorded() {
    let sandbox = Sandbox::new();
    with_images().append(&sandbox, "s.jsonl");
    let before = rebuild(&sandbox, "s.jsonl");
    // 16,140 tokens; the budget is 14,000 of 20,000, so the oldest image is dropped.
    let args = ["--window", "20000"];
    let run = truncate(&sandbox, &args, rebuild_meta(&sandbox, "s.jsonl")).assert().success();
    let expected: String = run.lines().iter().map(|line| without_meta(line)).collect();
    let run = run.stderr(contains("claw-truncate: left out 1 image: "));
    assert!(!expected.contains(&data(0)) && expected.contains("a.pdf"), "{expected}");
    truncate(&sandbox, &args, run.get_output().stdout.clone())
        .assert()
        .success()
        .stdout(run.stdout_text());

    let run = stage(&sandbox, "claw-truncate", &args, "s.jsonl").success();
    let record = run.json_one();
    assert_eq!((&record["type"], &record["part"]), (&json!("omission"), &json!(1)), "{record}");
    append(&sandbox, "s.jsonl", run.get_output().stdout.clone());
    assert!(rebuild(&sandbox, "s.jsonl") == expected);

    // The line in place of the image states how to see it.
    let (_, rest) = expected.split_once("; all of it: ").expect("a command in the line");
    let (command, _) = rest.split_once(" ...]").expect("the line's end");
    let whole = sandbox.sh(&format!("{command} s.jsonl")).assert().success().stdout_text();
    assert!(whole.contains(&image(0).to_string()), "{whole}");

    // With a much smaller window, one record is written for each result. Images in the user's messages stay, whatever the budget.
    let run = stage(&sandbox, "claw-truncate", &["--window", "600"], "s.jsonl")
        .code(5)
        .stderr(contains("left out 1 document, 1 image: "))
        .stderr(contains("still over the budget"));
    append(&sandbox, "s.jsonl", run.get_output().stdout.clone());
    let shown = rebuild(&sandbox, "s.jsonl");
    let all = [data(0), "a.pdf".to_owned(), data(1), data(2)];
    let left: Vec<bool> = all.iter().map(|data| shown.contains(data)).collect();
    assert_eq!(left, [false, false, false, true], "{shown}");
    // Each step can be undone.
    for target in sandbox.read_json("s.jsonl").iter().filter(|it| it["type"] == "omission") {
        append(&sandbox, "s.jsonl", json!({"type": "retract", "target": target["id"]}).to_string());
    }
    assert!(rebuild(&sandbox, "s.jsonl") == before);
}

#[test]
fn l5_a_truncation_that_names_a_missing_image_is_reported_and_ignored() {
    let sandbox = Sandbox::new();
    with_images().append(&sandbox, "s.jsonl");
    let before = rebuild(&sandbox, "s.jsonl");
    let run = stage(&sandbox, "claw-truncate", &["--window", "20000"], "s.jsonl");
    let omission = run.success().json_one();
    // Version 0.1 wrote the names of images into the truncation record.
    let whole = json!({"type": "truncation", "tool_use_id": omission["tool_use_id"],
        "record_id": omission["record_id"], "head": 11, "tail": 0, "bytes": 11,
        "sha256": digest(&sandbox, "beforeafter")});
    let naming = |media: Value| {
        let mut record = whole.clone();
        record["media"] = media;
        record.to_string()
    };
    let name = digest(&sandbox, &image(0).to_string());
    for wrong in [json!(["0000000000000000"]), json!([name, name])] {
        append(&sandbox, "s.jsonl", naming(wrong));
        sandbox
            .cmd("claw-rebuild")
            .arg("s.jsonl")
            .assert()
            .success()
            .stdout(before.clone())
            .stderr(contains("a truncation does not fit this result"));
    }
    // A record whose `media` is not a list cannot be appended; a record without `media` omits no image.
    let wrong = naming(json!("AAAA"));
    sandbox.cmd("claw-append").arg("s.jsonl").write_stdin(wrong).assert().code(65);
    append(&sandbox, "s.jsonl", whole.to_string());
    assert!(rebuild(&sandbox, "s.jsonl") == before);
    append(&sandbox, "s.jsonl", naming(json!([name])));
    let shown = rebuild(&sandbox, "s.jsonl");
    assert!(!shown.contains(&data(0)) && shown.contains(&format!("left out, sha256 {name}")));
}

#[test]
fn l6_less_than_the_minimum_gain_changes_nothing_and_ends_with_5() {
    let sandbox = Sandbox::new();
    with_result(log(2000)).append(&sandbox, "s.jsonl");
    let messages = rebuild_meta(&sandbox, "s.jsonl");
    let run = |least: &str, args: &[&str]| {
        let args = [&["--window", "8000", "--min-gain", least], args].concat();
        truncate(&sandbox, &args, messages.clone()).assert()
    };
    let gained = run("1", &[]);
    assert!(gained.success().stdout_text().contains(MARKER));
    run("1000000", &[])
        .code(5)
        .stdout(messages.clone())
        .stderr(contains("nothing changed: would save "));
    run("1000000", &["--record"]).code(5).stdout("").stderr(contains(", less than --min-gain"));
    // If the messages fit, 0 tokens are saved, which is less than 1.
    with_result("short").append(&sandbox, "fits.jsonl");
    let fits = rebuild(&sandbox, "fits.jsonl");
    for (least, status) in [("0", 0), ("1", 5)] {
        let args = ["--window", "8000", "--min-gain", least];
        truncate(&sandbox, &args, fits.clone()).assert().code(status).stdout(fits.clone());
    }
}

#[test]
fn l6_o1_a_cut_does_not_change_in_later_turns() {
    let sandbox = Sandbox::new();
    with_result(log(2000)).append(&sandbox, "s.jsonl");
    let run = stage(&sandbox, "claw-truncate", &["--window", "8000"], "s.jsonl");
    append(&sandbox, "s.jsonl", run.success().get_output().stdout.clone());
    let before = rebuild(&sandbox, "s.jsonl");
    Conversation::new().assistant("Well.").user("More.").append(&sandbox, "s.jsonl");
    assert!(rebuild(&sandbox, "s.jsonl").starts_with(&before));
    // With the same window, a result that was cut is not shortened again.
    stage(&sandbox, "claw-truncate", &["--window", "8000"], "s.jsonl").code(5).stdout("");
}

#[test]
fn m6_every_run_logs_one_outcome_with_tokens_before_and_after() {
    let sandbox = Sandbox::new();
    let outcome = |messages: &str, args: &[&str]| {
        let args = [&["--log", "json"], args].concat();
        let run = truncate(&sandbox, &args, messages).assert();
        let report: Value = serde_json::from_str(run.stderr_text()).expect("one line");
        let sizes = (report["before"].as_u64().expect("a size"), report["after"].as_u64());
        let word = report["outcome"].as_str().unwrap_or_default().to_owned();
        (
            run.get_output().status.code().unwrap_or(-1),
            report["status"].as_u64(),
            word,
            sizes.1.expect("a size") < sizes.0,
        )
    };
    let (long, short) = (messages(&with_result(log(2000))), messages(&with_result("short")));
    let over = messages(&Conversation::plain(4, 5000).tool(log(2000)));
    let conversation = messages(&Conversation::plain(4, 5000));
    for (messages, args, expected) in [
        (&long, &["--window", "8000"][..], (0, None, "applied", true)),
        (&short, &["--window", "8000"], (0, None, "skipped", false)),
        (&short, &["--window", "8000", "--min-gain", "1"], (5, Some(5), "skipped", false)),
        (&long, &["--window", "8000", "--min-gain", "99999"], (5, Some(5), "skipped", false)),
        (&conversation, &["--window", "8000"], (5, Some(5), "skipped", false)),
        (&over, &["--window", "8000"], (5, Some(5), "failed", true)),
    ] {
        let (code, status, word, is_smaller) = outcome(messages, args);
        assert_eq!((code, status, word.as_str(), is_smaller), expected, "{args:?}");
    }
}

#[test]
fn d33_the_numbers_in_a_refusal_are_used() {
    let sandbox = Sandbox::new();
    with_result(text(7000)).append(&sandbox, "s.jsonl");
    let run = |error: Value, args: &[&str]| {
        sandbox.write("failure", format!("{error}\n"));
        stage(&sandbox, "claw-truncate", &[&["--failure", "failure"], args].concat(), "s.jsonl")
    };
    let kept = |run: &Assert| {
        assert!(run.get_output().status.success(), "{run}");
        run.json_one()["head"].as_u64()
    };
    // If no window is configured, the limit in the error is the window. Otherwise, the smaller of the two applies.
    let limit = run(json!({"type": "error", "class": "overflow", "limit": 2000}), &[]);
    let known =
        run(json!({"type": "error", "class": "overflow", "limit": 2000}), &["--window", "9000"]);
    assert_eq!(kept(&limit), kept(&known));
    // If the provider counts about seven times as many tokens as our estimate, more has to be cut.
    let error = json!({"type": "error", "class": "overflow", "limit": 6000, "actual": 10_000});
    let dense = run(error, &[]);
    assert!(kept(&dense) < Some(4000), "{}", dense.stderr_text());
    dense.stderr(contains("shortened 1 result: 10000 -> "));
    // By our own estimate, the request fits, so nothing is shortened.
    stage(&sandbox, "claw-truncate", &["--window", "6000"], "s.jsonl").code(5);
    // Without numbers, only the configured window applies.
    run(json!({"type": "error", "class": "overflow"}), &[])
        .code(78)
        .stderr(contains("window is not known"));
    sandbox.write("failure", "nonsense");
    stage(&sandbox, "claw-truncate", &["--failure", "failure"], "s.jsonl")
        .code(65)
        .stdout("")
        .stderr(contains("'failure': not an error record"));
}

#[test]
fn a_refused_request_ends_with_5_even_if_the_estimate_fits() {
    let sandbox = Sandbox::new();
    with_result("short").append(&sandbox, "s.jsonl");
    sandbox.write("failure", json!({"type": "error", "limit": 8000}).to_string());
    let messages = rebuild(&sandbox, "s.jsonl");
    truncate(&sandbox, &["--failure", "failure"], messages.clone())
        .assert()
        .code(5)
        .stdout(messages.clone());
}

#[test]
fn n5_l1_a_pinned_result_stays_whole() {
    let sandbox = Sandbox::new();
    let pinned =
        json!({"type": "tool_result", "tool_use_id": "call_1", "content": log(1000), "pin": true});
    let conversation =
        Conversation::new().user("Look.").call("read_file", json!({})).record(pinned);
    conversation.assistant("Seen.").user("More.").tool(log(1000)).append(&sandbox, "s.jsonl");
    let run = truncate(&sandbox, &["--window", "8000"], rebuild_meta(&sandbox, "s.jsonl")).assert();
    let shown = results(&run.json());
    assert!(shown[0] == log(1000) && shown[1] != log(1000), "{}", run.stderr_text());
}

#[test]
fn an_empty_or_unanswered_conversation_is_accepted() {
    truncate(&Sandbox::new(), &["--window", "8000"], "")
        .assert()
        .success()
        .stdout("")
        .stderr(contains("nothing to shorten: "));
    truncate(&Sandbox::new(), &["--window", "8000"], "nonsense\n").assert().code(65).stdout("");
    let hello = "{\"role\":\"user\",\"content\":\"hi\"}\n";
    truncate(&Sandbox::new(), &["--window", "8000"], hello).assert().success().stdout(hello);
}

#[test]
fn invalid_values_are_refused() {
    for share in ["1.5", "-0.1", "nan", "inf", "x", ""] {
        for option in ["--head-ratio", "--max-fraction"] {
            let option = format!("{option}={share}");
            truncate(&Sandbox::new(), &["--window", "8000", &option], "")
                .assert()
                .code(2)
                .stdout("");
        }
    }
    for odd in ["--floor=-1", "--min-gain=-1", "--min-gain=many"] {
        truncate(&Sandbox::new(), &["--window", "8000", odd], "").assert().code(2);
    }
    truncate(&Sandbox::new(), &["--window", "8000", "--odd"], "").assert().code(2);
    truncate(&Sandbox::new(), &[], conversations::words(3)).assert().code(65);
    truncate(&Sandbox::new(), &[], "")
        .assert()
        .code(78)
        .stderr(contains("the window is not known"));
}
