//! The guard in claw-cookbook(7), for programs that call the model themselves: the text of the page carries a session through a
//! request that is too long, one with too many bytes, and one with a block that is refused.

use serde_json::{Value, json};

use crate::common::provider::{FakeProvider, Step};
use crate::common::{AssertExt, Cmd, Sandbox, media};
use crate::conversations::{Conversation, builds, chat};
use crate::man;

/// Writes the script of the page into a file.
fn write_guard(sandbox: &Sandbox) {
    let commands = man::commands_of("claw-cookbook.7");
    let example = commands.iter().find(|example| example.command.starts_with("cat >guard "));
    let command = &example.expect("the script in the page").command;
    let lines = command.lines().count() - 2;
    assert_eq!(lines, 20, "the page says that the script has 20 lines");
    sandbox.sh(command).assert().success();
}

fn guard(sandbox: &Sandbox, provider: &FakeProvider, prompt: &str) -> Cmd {
    let ask = r#"printf '%s' "$1" | claw-append --user s.jsonl && sh guard s.jsonl"#;
    sandbox.sh(ask).args(["sh", prompt]).envs(provider.env())
}

fn shots(count: usize, bytes: usize) -> Conversation {
    (0..count).fold(Conversation::new(), |it, n| {
        let shot = json!([media::image("image/png", &media::png_of(bytes))]);
        it.user(&format!("Step {n}.")).tool(shot).assistant("I see.")
    })
}

/// Returns a provider that refuses the first request, because it is too long.
fn overflowing() -> FakeProvider {
    let provider = FakeProvider::new();
    provider.script(Step::Overflow);
    provider
}

fn has_many_bytes(body: &Value) -> Option<Step> {
    let is_large = body.to_string().len() > 300_000;
    is_large.then(|| Step::error(413, "request_too_large", "Request exceeds the maximum size"))
}

fn has_an_image(body: &Value) -> Option<Step> {
    let is_there = body.to_string().contains(r#""type":"image""#);
    is_there.then(|| Step::error(400, "invalid_request_error", "Could not process image"))
}

#[test]
fn the_guard_of_the_page_carries_a_session_through_three_kinds_of_refusal() {
    let cases: [(&str, Conversation, FakeProvider); 4] = [
        ("results that are too long", builds(), overflowing()),
        ("a conversation that is too long", chat(), overflowing()),
        ("too many bytes", shots(12, 60_000), FakeProvider::new().refusing(has_many_bytes)),
        ("a block", shots(2, 4000), FakeProvider::new().refusing(has_an_image)),
    ];
    for (name, conversation, provider) in cases {
        let sandbox = Sandbox::new();
        write_guard(&sandbox);
        conversation.append(&sandbox, "s.jsonl");
        let before = sandbox.read("s.jsonl");
        let run = guard(&sandbox, &provider, "What now?").assert();
        assert!(run.get_output().status.success(), "{name}: {}", run.stderr_text());
        assert!(run.stdout_text().contains("What now?"), "{name}: {}", run.stdout_text());
        assert!(sandbox.read("s.jsonl").starts_with(&before), "{name}");
        let calls = provider.requests();
        assert!((2..=8).contains(&calls.len()), "{name}: {} calls", calls.len());
        assert!(calls.windows(2).all(|pair| pair[0].body != pair[1].body), "{name}");
        // The next turn is not refused.
        guard(&sandbox, &provider, "And now?").assert().success().stderr("");
        assert_eq!(provider.requests().len(), calls.len() + 1, "{name}");
        provider.all_legal();
    }
}

#[test]
fn the_guard_of_the_page_does_not_repeat_what_no_stage_cures() {
    let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
    write_guard(&sandbox);
    provider.script(Step::error(400, "invalid_request_error", "model: unknown-model"));
    guard(&sandbox, &provider, "Hello?").assert().code(76).stdout("");
    assert_eq!(provider.requests().len(), 1);
}
