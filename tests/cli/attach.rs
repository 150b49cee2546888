//! Files attached to a prompt, and the commands that `claw-turn --dry-run` prints.

use assert_cmd::assert::Assert;
use predicates::str::contains;
use serde_json::json;

use crate::common::{AssertExt, Sandbox, media};

/// File names, files, and the block type and media type they are attached with.
fn files() -> [(&'static str, Vec<u8>, &'static str, &'static str); 5] {
    let jpeg = b"\xff\xd8\xff\xc0\0\x0b\x08\0\x01\0\x01\x01\x01\x11\0\xff\xd9";
    let webp = b"RIFF\x11\0\0\0WEBPVP8L\x05\0\0\0\x2f\0\0\0\0";
    [
        ("a.png", media::png(1, 1), "image", "image/png"),
        ("b", jpeg.to_vec(), "image", "image/jpeg"),
        ("c.txt", b"GIF89a\x01\0\x01\0\0\0\0;".to_vec(), "image", "image/gif"),
        ("d.webp", webp.to_vec(), "image", "image/webp"),
        ("e f.pdf", media::pdf(1), "document", "application/pdf"),
    ]
}

fn append(sandbox: &Sandbox, files: &[&str]) -> Assert {
    let files = files.iter().flat_map(|file| ["--attach", file]);
    sandbox
        .cmd("claw-append")
        .arg("--user")
        .args(files)
        .arg("s.jsonl")
        .write_stdin("Look.\n")
        .assert()
}

#[test]
fn the_first_bytes_of_an_attachment_determine_its_type() {
    let sandbox = Sandbox::new();
    for (name, bytes, kind, media_type) in files() {
        sandbox.write(name, &bytes);
        append(&sandbox, &[name]).success().stderr("");
        let record = sandbox.read_json("s.jsonl").pop().expect("a record");
        let block = &record["content"][0];
        assert_eq!(
            (&block["type"], &block["source"]["media_type"]),
            (&json!(kind), &json!(media_type))
        );
        assert_eq!(record["content"][1], json!({"type": "text", "text": "Look."}));
        let data = block["source"]["data"].as_str().expect("data");
        let decoded = sandbox
            .sh("base64 -d")
            .write_stdin(data)
            .assert()
            .success()
            .get_output()
            .stdout
            .clone();
        assert_eq!(decoded, bytes);
    }
    sandbox.write("notes \"1\".md", "# Notes\n庭\n");
    append(&sandbox, &["notes \"1\".md", "a.png"]).success();
    let record = sandbox.read_json("s.jsonl").pop().expect("a record");
    assert_eq!(record["content"][0]["text"], "File 'notes \"1\".md':\n\n# Notes\n庭\n");
    assert_eq!(record["content"][1]["type"], "image");
    sandbox.cmd("claw-check").arg("s.jsonl").assert().success();
}

#[test]
fn a_file_that_cannot_be_attached_is_reported_and_nothing_is_written() {
    let sandbox = Sandbox::new();
    sandbox.write("empty", "");
    sandbox.write("odd", b"\x00\xff\xfe");
    for (file, status, why) in [
        ("none", 74, "cannot read 'none': no such file"),
        ("empty", 65, "cannot attach 'empty': the file is empty; "),
        (
            "odd",
            65,
            "cannot attach 'odd': unknown type; give PNG, JPEG, GIF, WebP, PDF or UTF-8 text",
        ),
    ] {
        append(&sandbox, &[file]).code(status).stderr(contains(why));
        let turn = sandbox.cmd("claw-turn").args(["--provider", "offline", "-m", "x", "s.jsonl"]);
        turn.args(["--attach", file])
            .assert()
            .code(status)
            .stderr(contains(format!("claw-turn: {why}")));
        assert!(!sandbox.exists("s.jsonl"));
    }
}

#[test]
fn a_turn_sends_the_attachments() {
    let sandbox = Sandbox::new();
    sandbox.write("it's.txt", "The shed is green.");
    let turn =
        sandbox.cmd("claw-turn").args(["--provider", "offline", "--no-checkpoint", "s.jsonl"]);
    turn.args(["--attach", "it's.txt", "-m", "What colour?"]).assert().success();
    let prompt = &sandbox.read_json("s.jsonl")[0]["content"];
    assert_eq!(prompt[0]["text"], "File 'it's.txt':\n\nThe shed is green.");
    assert_eq!(prompt[1]["text"], "What colour?");
}

/// A dry run writes nothing. It prints a script that does what a turn does whose call succeeds; all other commands are comments.
#[test]
fn the_commands_of_a_dry_run_can_be_run() {
    let sandbox = Sandbox::new();
    let args = ["--dry-run", "--provider", "offline", "-m", "it's two\nlines", "./a b.jsonl"];
    let run = sandbox.cmd("claw-turn").args(args).assert();
    let script = run.success().stderr("").stdout_text();
    assert!(!sandbox.exists("a b.jsonl"));
    let commands: Vec<&str> = script.lines().filter(|line| line.contains("claw-")).collect();
    assert!(
        commands
            .iter()
            .any(|line| line.contains("| claw-call --failure failure.json | claw-append --print")),
        "{script}"
    );
    assert!(script.contains("export CLAW_PROVIDER=offline\n"), "{script}");
    let run = sandbox.sh(&script).assert().success();
    run.stdout("Reply to 1 message: lines\n").stderr("");
    let records = sandbox.read_json("a b.jsonl");
    assert_eq!(records.len(), 2, "{records:?}");
    assert_eq!(records[0]["content"], "it's two\nlines");
    let secret = ["--dry-run", "--base-url", "https://me:pass@a.example", "--provider", "openai"];
    let run = sandbox.cmd("claw-turn").args(secret).args(["--model", "x", "s.jsonl"]).assert();
    assert!(!run.stdout_text().contains("pass") && !run.stderr_text().contains("pass@"));
}
