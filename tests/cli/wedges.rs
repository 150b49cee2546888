//! Sessions with something in them that the provider refuses on every turn: the guard removes it once, the next turn is
//! not refused, the transcript keeps the original, and undo brings it back.

use predicates::str::contains;
use serde_json::{Value, json};

use crate::common::provider::{FakeProvider, Step};
use crate::common::shapes::Shape;
use crate::common::strict::{self, Form};
use crate::common::{AssertExt, Cmd, Sandbox, media};
use crate::conversations::{Conversation, append, words};
use crate::poisons;

fn image(bytes: usize) -> Value {
    media::image("image/png", &media::png_of(bytes))
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn user(content: Value) -> Value {
    json!({"type": "user", "content": content})
}

fn thought(text: &str) -> Value {
    let thinking = json!({"type": "thinking", "thinking": text, "signature": "signed-elsewhere"});
    json!({"type": "assistant", "content": [thinking, json!({"type": "text", "text": "Let me look."})]})
}

/// Returns the place of the first block, or item of a result, that `is` accepts.
fn place(body: &Value, is: fn(&Value) -> bool) -> Option<String> {
    for (m, message) in body["messages"].as_array()?.iter().enumerate() {
        for (b, block) in message["content"].as_array().into_iter().flatten().enumerate() {
            if is(block) {
                return Some(format!("messages.{m}.content.{b}"));
            }
            for (p, part) in block["content"].as_array().into_iter().flatten().enumerate() {
                if is(part) {
                    return Some(format!("messages.{m}.content.{b}.tool_result.content.{p}"));
                }
            }
        }
    }
    None
}

fn refused(message: &str) -> Step {
    Step::error(400, "invalid_request_error", message)
}

fn is_image(block: &Value) -> bool {
    block["type"] == "image"
}

fn is_document(block: &Value) -> bool {
    block["type"] == "document"
}

fn is_thinking(block: &Value) -> bool {
    block["type"] == "thinking"
}

fn has_poison(block: &Value) -> bool {
    block["input"]["poison"].is_string()
        || block["text"] == "poison"
        || block["content"] == "poison"
}

/// Returns the refusal of a request that the provider does not accept.
type Refuse = fn(&Value) -> Option<Step>;

/// A session, and what its provider refuses.
type Wedge = (&'static str, Conversation, Refuse);

fn wedges() -> Vec<Wedge> {
    let shots = |count: usize, bytes: usize| {
        (0..count).fold(Conversation::new(), |it, n| {
            it.user(&format!("Step {n}."))
                .tool(json!([text("shot"), image(bytes)]))
                .assistant("I see.")
        })
    };
    let document = media::document(&media::pdf(2));
    let thoughts = || {
        Conversation::new()
            .user("Begin.")
            .record(thought("one"))
            .call("shot", json!({}))
            .result("done")
            .record(thought("two"))
            .user("Go on.")
            .assistant("I see.")
    };
    vec![
        ("an image at a place", shots(2, 4000), |body| {
            let place = place(body, is_image)?;
            Some(refused(&format!(
                "{place}.image.source.base64.data: At least one of the image dimensions exceed max allowed size: 8000 pixels"
            )))
        }),
        ("an image without a place", shots(2, 4000), |body| {
            place(body, is_image).map(|_| refused("Could not process image"))
        }),
        ("an image, counted differently", shots(2, 4000), |body| {
            place(body, is_image).map(|_| {
                refused("messages.1.content.0: image exceeds 5 MB maximum: 7340032 bytes > 5242880")
            })
        }),
        (
            "an image in a prompt",
            Conversation::new()
                .record(user(json!([text("Look."), image(4000)])))
                .assistant("I see."),
            |body| {
                let place = place(body, is_image)?;
                Some(refused(&format!(
                    "{place}.image.source.base64: image exceeds 5 MB maximum: 7340032 bytes > 5242880 bytes"
                )))
            },
        ),
        (
            "a document",
            Conversation::new().user("Begin.").tool(json!([document])).assistant("I see."),
            |body| {
                let place = place(body, is_document)?;
                Some(refused(&format!(
                    "{place}.document.source.base64.data: The PDF specified was not valid."
                )))
            },
        ),
        (
            "a document without a place",
            Conversation::new().user("Begin.").tool(json!([document])).assistant("I see."),
            |body| place(body, is_document).map(|_| refused("The PDF specified was not valid.")),
        ),
        ("thinking at places", thoughts(), |body| {
            let place = place(body, is_thinking)?;
            Some(refused(&format!("{place}: Invalid `signature` in `thinking` block")))
        }),
        ("thinking without a place", thoughts(), |body| {
            place(body, is_thinking).map(|_| refused("Invalid signature in thinking block"))
        }),
        (
            "an input",
            Conversation::new()
                .user("Begin.")
                .assistant("I look.")
                .call("f", json!({"poison": "x"}))
                .result("done")
                .assistant("I see."),
            |body| {
                let place = place(body, has_poison)?;
                Some(refused(&format!(
                    "{place}.tool_use.input: Input should be a valid dictionary"
                )))
            },
        ),
        (
            "a result",
            Conversation::new().user("Begin.").tool("poison").assistant("I see."),
            |body| {
                let place = place(body, has_poison)?;
                Some(refused(&format!("{place}.tool_result.content: not accepted")))
            },
        ),
        (
            "a text",
            Conversation::new()
                .record(user(json!([text("Look."), text("poison")])))
                .assistant("I see."),
            |body| {
                let place = place(body, has_poison)?;
                Some(refused(&format!("{place}.text: not accepted")))
            },
        ),
        ("bytes, as the API says it", shots(12, 60_000), |body| {
            let is_large = body.to_string().len() > 300_000;
            is_large
                .then(|| Step::error(413, "request_too_large", "Request exceeds the maximum size"))
        }),
        ("bytes, as a gateway says it", shots(12, 60_000), |body| {
            let headers = vec![("content-type".to_owned(), "text/html".to_owned())];
            let page = "<html><head><title>413 Request Entity Too Large</title></head></html>";
            let is_large = body.to_string().len() > 300_000;
            is_large.then(|| Step::Raw { status: 413, headers, body: page.into() })
        }),
    ]
}

fn turn(sandbox: &Sandbox, provider: &FakeProvider, prompt: &str) -> Cmd {
    let args = ["--no-checkpoint", "--max-retries", "0", "-m", prompt, "s.jsonl"];
    sandbox.cmd("claw-turn").envs(provider.env()).args(args)
}

fn rebuild(sandbox: &Sandbox, file: &str) -> String {
    sandbox.cmd("claw-rebuild").arg(file).assert().success().stdout_text()
}

#[test]
fn no_session_stays_wedged() {
    for (name, conversation, refuses) in wedges() {
        let (sandbox, provider) = (Sandbox::new(), FakeProvider::new().refusing(refuses));
        conversation.append(&sandbox, "s.jsonl");
        let before = sandbox.read("s.jsonl");
        let run = turn(&sandbox, &provider, "What now?").assert();
        assert!(run.get_output().status.success(), "{name}: {}", run.stderr_text());
        let first = provider.requests();
        assert!((2..=8).contains(&first.len()), "{name}: {} calls", first.len());
        assert!(first.windows(2).all(|pair| pair[0].body != pair[1].body), "{name}");
        let told = run.stderr_text();
        assert!(
            told.contains("claw-truncate: left out ") && told.contains("claw-rebuild --record "),
            "{name}: {told}"
        );
        // The next turn is not refused.
        turn(&sandbox, &provider, "And now?").assert().success().stderr("");
        assert_eq!(provider.requests().len(), first.len() + 1, "{name}");
        assert!(sandbox.read("s.jsonl").starts_with(&before), "{name}");
        provider.all_legal();
        // Undo brings everything back.
        let records = sandbox.read_json("s.jsonl");
        let is_view =
            |record: &&Value| record["type"] != "omission" && record["type"] != "truncation";
        let plain: String = records.iter().filter(is_view).map(|it| format!("{it}\n")).collect();
        sandbox.write("plain.jsonl", plain);
        loop {
            let undo = sandbox.cmd("claw-rebuild").args(["--undo", "cut", "s.jsonl"]).assert();
            if undo.get_output().status.code() == Some(5) {
                break;
            }
            append(&sandbox, "s.jsonl", undo.success().stdout_text());
        }
        assert_eq!(rebuild(&sandbox, "s.jsonl"), rebuild(&sandbox, "plain.jsonl"), "{name}");
        sandbox.cmd("claw-check").arg("s.jsonl").assert().success();
    }
}

#[test]
fn steps_that_do_not_help_against_a_block_are_undone() {
    let provider = FakeProvider::new().refusing(|_| Some(refused("Could not process image")));
    let sandbox = Sandbox::new();
    let result = json!([text("shot"), image(4000)]);
    Conversation::new().user("Begin.").tool(result).assistant("I see.").append(&sandbox, "s.jsonl");
    let before = rebuild(&sandbox, "s.jsonl");
    let run = turn(&sandbox, &provider, "What now?").assert().code(76);
    let told = run.stderr_text();
    assert!(told.contains("no step cured the refusal, so the steps are undone"), "{told}");
    assert!(
        told.contains("change the model or a setting, and continue with: claw-turn --again"),
        "{told}"
    );
    assert!(rebuild(&sandbox, "s.jsonl").starts_with(&before), "{told}");
}

#[test]
fn a_refusal_that_no_step_cures_is_not_repeated() {
    for message in ["temperature: Input should be less than 1", "model: unknown-model"] {
        let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
        provider.script(refused(message));
        Conversation::plain(6, 20).append(&sandbox, "s.jsonl");
        turn(&sandbox, &provider, "Hello?").assert().code(76);
        assert_eq!(provider.requests().len(), 1, "{message}");
    }
}

/// What is left out keeps the id of its call, so leaving it out would be in vain.
#[test]
fn a_refused_id_of_a_call_costs_no_second_call_and_no_block() {
    let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
    let error = json!({
        "message": "Invalid 'messages[1].tool_calls[0].id': string too long. Expected a string with maximum length 9",
        "type": "invalid_request_error",
        "param": "messages[1].tool_calls[0].id",
        "code": "string_above_max_length",
    });
    let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
    let body = json!({ "error": error }).to_string().into_bytes();
    provider.script(Step::Raw { status: 400, headers, body });
    Conversation::new().user("Begin.").tool("done").assistant("I see.").append(&sandbox, "s.jsonl");
    let before = rebuild(&sandbox, "s.jsonl");
    let args = ["--no-checkpoint", "--max-retries", "0", "-m", "What now?", "s.jsonl"];
    let run = sandbox.cmd("claw-turn").envs(provider.env_for(Shape::OpenAi)).args(args).assert();
    let run = run.code(76);
    let told = run.stderr_text();
    assert_eq!(provider.requests().len(), 1, "{told}");
    assert!(told.contains("the id of a call is not accepted"), "{told}");
    assert!(!told.contains("claw-truncate"), "{told}");
    assert!(rebuild(&sandbox, "s.jsonl").starts_with(&before), "{told}");
}

#[test]
fn calls_and_results_that_do_not_fit_together_cost_no_second_call() {
    let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
    provider.script(refused(
        "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.",
    ));
    Conversation::new().user("Begin.").tool("done").assistant("I see.").append(&sandbox, "s.jsonl");
    let told = turn(&sandbox, &provider, "What now?").assert().code(76);
    let told = told.stderr_text();
    assert_eq!(provider.requests().len(), 1, "{told}");
    assert!(
        told.contains("there is nothing to leave out that may cure the refusal; undo"),
        "{told}"
    );
    assert!(!told.contains("steps are undone"), "{told}");
}

#[test]
fn a_small_request_with_too_many_bytes_has_nothing_to_leave_out() {
    let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
    provider.script(Step::error(413, "request_too_large", "Request exceeds the maximum size"));
    Conversation::plain(1, 20).append(&sandbox, "s.jsonl");
    let told = turn(&sandbox, &provider, "What now?").assert().code(4);
    let told = told.stderr_text();
    let said = "claw-truncate: nothing can be left out or shortened to save bytes: ";
    let sizes = told.split_once(said).map(|(_, rest)| rest.lines().next().unwrap_or_default());
    let sizes = sizes.unwrap_or_else(|| panic!("{told}")).split_once(" bytes, target ");
    let (bytes, target) = sizes.unwrap_or_else(|| panic!("{told}"));
    let number = |text: &str| text.parse::<u64>().unwrap_or_else(|_| panic!("{told}"));
    assert!(number(bytes) > number(target) && !told.contains("refused can be left out"), "{told}");
}

#[test]
fn a_limit_in_bytes_that_is_known_costs_no_call() {
    let provider = FakeProvider::new().refusing(|body| {
        let is_large = body.to_string().len() > 300_000;
        is_large.then(|| Step::error(413, "request_too_large", "Request exceeds the maximum size"))
    });
    let sandbox = Sandbox::new();
    let shots = (0..12).fold(Conversation::new(), |it, n| {
        it.user(&format!("Step {n}."))
            .tool(json!([text("shot"), image(60_000)]))
            .assistant("I see.")
    });
    shots.append(&sandbox, "s.jsonl");
    let line = json!({"endpoint": provider.url(), "limit_bytes": 300_000, "ts": 1_767_225_600});
    sandbox.write("state/sizes.jsonl", format!("{line}\n"));
    let run = turn(&sandbox, &provider, "What now?").assert().success();
    run.stderr(contains("claw-estimate: too many bytes: "))
        .stderr(contains("claw-truncate: left out "));
    assert_eq!(provider.requests().len(), 1);
}

#[test]
fn a_prompt_that_nothing_can_make_fit_costs_no_call() {
    let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
    Conversation::plain(6, 20).append(&sandbox, "s.jsonl");
    sandbox.write("system", "You are careful. ".repeat(2000));
    let args =
        ["--no-checkpoint", "--window", "4000", "--system", "system", "-m", "Hi.", "s.jsonl"];
    let run = sandbox.cmd("claw-turn").envs(provider.env()).args(args).assert().code(3);
    let run = run.stderr(contains("the request cannot fit: the system prompt (")).stdout("");
    run.stderr(contains(" tokens) alone fill the window of 4000 tokens"))
        .stderr(contains("the prompt is kept; change the model or a setting"));
    assert!(provider.requests().is_empty());
}

#[test]
fn an_upload_that_is_cut_off_again_and_again_is_made_smaller() {
    let provider = FakeProvider::new()
        .refusing(|body| (body.to_string().len() > 1_200_000).then_some(Step::Drop));
    let sandbox = Sandbox::new();
    let shots = (0..8).fold(Conversation::new(), |it, n| {
        it.user(&format!("Step {n}."))
            .tool(json!([text("shot"), image(300_000)]))
            .assistant("I see.")
    });
    shots.append(&sandbox, "s.jsonl");
    let args = ["--no-checkpoint", "--max-retries", "1", "-m", "What now?", "s.jsonl"];
    let run = sandbox.cmd("claw-turn").envs(provider.env()).args(args).assert().success();
    let told = run.stderr_text();
    assert!(told.contains("likely too many bytes: leaving out images"), "{told}");
    turn(&sandbox, &provider, "And now?").assert().success().stderr("");
}

#[test]
fn an_image_wedges_no_session_on_the_other_protocols() {
    fn is_sent(value: &Value) -> bool {
        value.to_string().contains(r#""type":"image_url""#)
    }
    let refuses: [(Shape, Refuse); 3] = [
        (Shape::OpenAi, |body| {
            let why = "You uploaded an unsupported image. Please make sure your image is valid.";
            is_sent(body).then(|| refused(why))
        }),
        (Shape::OpenAi, |body| {
            let messages = body["messages"].as_array()?;
            let at = messages.iter().position(is_sent)?;
            Some(refused(&format!(
                "Invalid 'messages[{at}].content[1].image_url.url'. Expected a base64-encoded data URL."
            )))
        }),
        (Shape::Ollama, |body| {
            let has_image = body.to_string().contains("\"images\"");
            has_image.then(|| {
                Step::error(400, "", "this model is missing data required for image input")
            })
        }),
    ];
    for (shape, refuses) in refuses {
        let (sandbox, provider) = (Sandbox::new(), FakeProvider::new().refusing(refuses));
        Conversation::new()
            .record(user(json!([text("Look."), image(4000)])))
            .assistant("I look.")
            .call("shot", json!({}))
            .result(json!([text("shot"), image(4000)]))
            .assistant("I see.")
            .append(&sandbox, "s.jsonl");
        let turn = |prompt: &str| {
            let args = ["--no-checkpoint", "--max-retries", "0", "-m", prompt, "s.jsonl"];
            sandbox.cmd("claw-turn").envs(provider.env_for(shape)).args(args).assert()
        };
        let run = turn("What now?");
        assert!(run.get_output().status.success(), "{shape:?}: {}", run.stderr_text());
        let calls = provider.requests().len();
        turn("And now?").success();
        assert_eq!(provider.requests().len(), calls + 1, "{shape:?}");
        provider.all_legal();
    }
}

/// Returns the refusal of a strict provider, in words that depend on the request.
fn strictly(form: Form, body: &Value) -> Option<Step> {
    let raw = body.to_string();
    let broken = strict::broken(form, &raw, &[poisons::SIGNED], 60_000)?;
    let (status, answer) = strict::refusal(form, &broken, raw.len() % 60);
    let kind = if answer.starts_with('{') { "application/json" } else { "text/html" };
    let headers = vec![("content-type".to_owned(), kind.to_owned())];
    Some(Step::Raw { status, headers, body: answer.into() })
}

/// All poisons of the property tests, three in each session, through the real programs.
#[test]
fn no_session_with_poisons_stays_wedged() {
    let strict: [(Shape, Refuse); 3] = [
        (Shape::Anthropic, |body| strictly(Form::Anthropic, body)),
        (Shape::OpenAi, |body| strictly(Form::Chat, body)),
        (Shape::Ollama, |body| strictly(Form::Ollama, body)),
    ];
    let all: Vec<&poisons::Poison> = poisons::POISONS.iter().collect();
    for (number, three) in all.chunks(3).enumerate() {
        let (shape, refuses) = strict[number % strict.len()];
        let names: Vec<&str> = three.iter().map(|(name, _)| *name).collect();
        let (sandbox, provider) = (Sandbox::new(), FakeProvider::new().refusing(refuses));
        let bytes = poisons::written(&poisons::with(three));
        sandbox.write("s.jsonl", &bytes);
        let turn = |prompt: &str| {
            let args = ["--no-checkpoint", "--max-retries", "0", "--window", "200000"];
            let turn = sandbox.cmd("claw-turn").envs(provider.env_for(shape)).args(args);
            turn.args(["-m", prompt, "s.jsonl"]).assert()
        };
        let run = turn("What now?");
        assert!(run.get_output().status.success(), "{shape:?} {names:?}: {}", run.stderr_text());
        let calls = provider.requests().len();
        assert!(calls <= 8, "{names:?}: {calls} calls");
        let run = turn("And now?");
        assert!(run.get_output().status.success(), "{shape:?} {names:?}: {}", run.stderr_text());
        assert_eq!(provider.requests().len(), calls + 1, "{shape:?} {names:?}");
        assert!(sandbox.read("s.jsonl").starts_with(&bytes), "{names:?}");
        provider.all_legal();
    }
}

/// Sends `prompt` to the offline provider in a window of 200,000 tokens, and returns what the turn reports.
fn send_offline(sandbox: &Sandbox, prompt: String) -> String {
    let args = ["--provider", "offline", "--window", "200000", "--no-checkpoint", "s.jsonl"];
    let run = sandbox.cmd("claw-turn").args(args).write_stdin(prompt).assert();
    run.success().stderr_text().to_owned()
}

fn compactions(sandbox: &Sandbox) -> Vec<Value> {
    let mut records = sandbox.read_json("s.jsonl");
    records.retain(|record| record["type"] == "compaction");
    records
}

/// The budget of a compaction leaves room for the next turns. A request that would fail otherwise may exceed it, and keeps
/// fewer of the user's words. The next turn covers the large prompt, and the one after it needs no summary.
#[test]
fn a_large_prompt_that_fits_with_a_small_summary_is_sent() {
    // The session has 53,000 tokens, and the prompts have 162,400, 175,600 and 186,800. Only the last needs the margin.
    for (length, most) in [(123_000, 181_904), (133_000, 181_904), (141_500, 191_904)] {
        let sandbox = Sandbox::new();
        let talk = (0..10).fold(Conversation::new(), |talk, n| {
            let said = format!("{n}: {}", words(2000));
            talk.user(&said).assistant(&said)
        });
        talk.append(&sandbox, "s.jsonl");
        let told = send_offline(&sandbox, words(length));
        let made = compactions(&sandbox);
        assert_eq!(made.len(), 1, "{told}");
        let after = made[0]["tokens_after"].as_u64().expect("a number");
        assert!((170_000..=most).contains(&after), "{after}: {told}");
        let told = send_offline(&sandbox, "What now?".to_owned());
        let made = compactions(&sandbox);
        assert_eq!(made.len(), 2, "{told}");
        assert!(made[1]["tokens_after"].as_u64().is_some_and(|after| after < 30_000), "{told}");
        assert_eq!(send_offline(&sandbox, "And now?".to_owned()), "");
        assert_eq!(compactions(&sandbox).len(), 2);
    }
}

/// A result that can be shortened is no reason to fill the window.
#[test]
fn a_large_result_is_shortened_before_the_budget_is_exceeded() {
    let sandbox = Sandbox::new();
    let talk = Conversation::plain(20, 2200).user("Read it.").tool(words(130_000));
    talk.append(&sandbox, "s.jsonl");
    let told = send_offline(&sandbox, "And?".to_owned());
    assert!(told.contains("claw-truncate: shortened 1 result: "), "{told}");
    assert!(compactions(&sandbox).is_empty(), "{told}");
}

#[test]
fn a_prompt_that_cannot_fit_is_undone_with_the_command_that_is_reported() {
    let sandbox = Sandbox::new();
    Conversation::plain(6, 20).append(&sandbox, "it's.jsonl");
    let before = rebuild(&sandbox, "it's.jsonl");
    let turn = |prompt: String| {
        let args = ["--provider", "offline", "--window", "8000", "--no-checkpoint", "it's.jsonl"];
        sandbox.cmd("claw-turn").args(args).write_stdin(prompt).assert()
    };
    // Each failed turn leaves its prompt, and each is undone.
    turn(words(9000)).code(3);
    let told = turn("Shorter.".to_owned()).code(3);
    let told = told.stderr_text();
    let undo = told.split_once("; or undo the turn with: ").map(|(_, undo)| undo.trim_end());
    let undo = undo.unwrap_or_else(|| panic!("{told}"));
    assert!(told.contains("and continue with: claw-turn --again 'it'\\''s.jsonl'; or"), "{told}");
    for _ in 0..2 {
        sandbox.sh(undo).assert().success();
    }
    assert_eq!(rebuild(&sandbox, "it's.jsonl"), before);
    turn("Shorter.".to_owned()).success();
}

#[test]
fn the_command_that_undoes_a_turn_works_for_a_session_with_a_name() {
    let sandbox = Sandbox::new();
    for (label, session) in [("it's", "it's"), ("current", "--continue")] {
        sandbox.cmd("claw-session").args(["new", "--label", label]).assert().success();
        let turn = |prompt: String| {
            let args = ["--provider", "offline", "--window", "8000", "--no-checkpoint", session];
            sandbox.cmd("claw-turn").args(args).write_stdin(prompt).assert()
        };
        turn("Hello.".to_owned()).success();
        let told = turn(words(9000)).code(3);
        let told = told.stderr_text();
        let undo = told.split_once("; or undo the turn with: ").map(|(_, undo)| undo.trim_end());
        sandbox.sh(undo.unwrap_or_else(|| panic!("{told}"))).assert().success();
        turn("Shorter.".to_owned()).success();
    }
}
