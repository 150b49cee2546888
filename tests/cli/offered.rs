//! Tests of the models that a provider offers: `claw-call --list-models` and `--ask-window`, and the windows of turns.

use serde_json::{Value, json};
use std::time::{Duration, Instant};

use crate::common::provider::{FakeProvider, Step};
use crate::common::shapes::Shape;
use crate::common::{AssertExt, Sandbox};

/// The list of a server for chat completions.
fn list(entry: Value) -> Value {
    json!({"object": "list", "data": [{"id": "other", "context_length": 5000}, entry]})
}

#[test]
fn the_models_of_a_provider_are_listed_with_their_windows() {
    let sandbox = Sandbox::new();
    let first = json!({"data": [{"id": "claude-new-9", "max_input_tokens": 400_000, "max_tokens": 64_000}],
        "has_more": true, "last_id": "claude-new-9"});
    let server = FakeProvider::new().stating("/v1/models", first);
    let list = sandbox.cmd("claw-call").arg("--list-models").envs(server.env());
    // The server repeats its cursor for ever.
    let run = list.assert().success();
    let lines = run.stdout_text();
    assert_eq!((lines.lines().count(), server.questions().len()), (1, 2), "{run}");
    let line =
        r#"{"model":"claude-new-9","window":400000,"window_origin":"provider","max_output":64000}"#;
    assert_eq!(lines.lines().next(), Some(line));
    assert_eq!(server.questions()[1], "GET /v1/models?limit=1000&after_id=claude-new-9");
    assert!(server.requests().is_empty(), "nothing is asked of a model");

    let server = FakeProvider::new().stating(
        "/v1/models",
        json!({"data": [{"id": "gpt-5.4"}, {"id": "unknown\u{1b}[2J\u{202e}\u{9b}"}]}),
    );
    let list = sandbox.cmd("claw-call").arg("--list-models").envs(server.env_for(Shape::OpenAi));
    let run = list.assert().success();
    let lines: Vec<Value> =
        run.stdout_text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["window_origin"], "table", "{run}");
    assert_eq!(lines[1], json!({"model": "unknown\u{1b}[2J\u{202e}\u{9b}"}));
    let raw = ['\u{1b}', '\u{202e}', '\u{9b}'];
    assert!(!run.stdout_text().contains(raw), "text of a server is escaped");
}

#[test]
fn a_list_that_is_refused_is_reported_like_a_call() {
    let sandbox = Sandbox::new();
    let server = FakeProvider::new();
    let list = |name: &str, value: &str| {
        sandbox.cmd("claw-call").arg("--list-models").envs(server.env()).env(name, value).assert()
    };
    let run = list("CLAW_PROVIDER", "anthropic").failure();
    assert!(run.stderr_text().contains("cannot list the models"), "{run}");
    let run = list("CLAW_PROVIDER", "offline").code(78);
    assert!(run.stderr_text().contains("the offline provider has no models to list"), "{run}");
    let run = list("ANTHROPIC_BASE_URL", "http://127.0.0.1:9").code(69);
    assert!(run.stderr_text().contains("no answer from 'http://127.0.0.1:9'"), "{run}");
    // A captive portal, say.
    let portal = FakeProvider::new().stating("/v1/models", json!("<html>Log in</html>"));
    let run = sandbox.cmd("claw-call").args(["--list-models", "--log", "json"]).envs(portal.env());
    let run = run.assert().code(69);
    let text = run.stderr_text();
    assert!(text.contains("the answer is not a list of models"), "{text}");
    assert!(text.contains("try again, or check the address"), "{text}");
    let vertex = "https://h/v1/projects/p/locations/global";
    let run = list("ANTHROPIC_BASE_URL", vertex).code(78);
    assert!(run.stderr_text().contains("no list of models at"), "{run}");
}

#[test]
fn a_window_is_asked_once_a_week_and_shown_with_its_origin() {
    let sandbox = Sandbox::new();
    let server =
        FakeProvider::new().stating("/v1/models", list(json!({"id": "m", "max_model_len": 3000})));
    let with =
        |name: &str| sandbox.cmd(name).envs(server.env_for(Shape::OpenAi)).env("CLAW_MODEL", "m");
    let turn = || with("claw-turn").args(["-m", "Good morning.", "./s.jsonl"]).assert().success();
    turn();
    turn();
    assert_eq!(
        server.questions(),
        ["GET /v1/models"],
        "asked before the first turn, and never again"
    );

    let run = with("claw-estimate").args(["--json", "s.jsonl"]).assert().success();
    let estimate: Value = serde_json::from_str(&run.stdout_text()).unwrap();
    assert_eq!(estimate["window"], 3000, "{run}");
    assert_eq!(estimate["window_origin"], "provider");
    assert_eq!(estimate["window_date"], "2026-01-01");
    let run = with("claw-estimate").args(["--bar", "--parts", "s.jsonl"]).assert().success();
    assert!(run.stdout_text().contains("3,000  window from the provider on 2026-01-01"), "{run}");
    let run = with("claw-config").args(["list", "window"]).assert().success();
    assert_eq!(run.stdout_text(), "window  3000  from the provider on 2026-01-01\n");
    let run = with("claw-config").args(["list", "--json", "window"]).assert().success();
    let known: Value = serde_json::from_str(&run.stdout_text()).unwrap();
    assert_eq!((&known["value"], &known["known"]), (&Value::Null, &json!(3000)), "{run}");
    assert_eq!(known["known_origin"], "provider");

    // A week and a second later.
    let later = 1_767_225_600 + 7 * 86_400 + 1;
    let command = with("claw-turn").args(["-m", "Good evening.", "./s.jsonl"]);
    command.env("SOURCE_DATE_EPOCH", later.to_string()).assert().success();
    let end = Instant::now() + Duration::from_secs(30);
    while server.questions().len() < 2 {
        assert!(Instant::now() < end, "the provider is asked again in the background");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_long_conversation_is_compacted_ahead_by_the_window_that_the_provider_states() {
    let sandbox = Sandbox::new();
    let server = FakeProvider::new()
        .window(3000)
        .stating("/v1/models", list(json!({"id": "m", "context_window": 3000})));
    let filler = "All work and no play makes Jack a dull boy. ".repeat(40);
    let lines: String = (0..10)
        .map(|_| {
            format!(
                "{{\"type\":\"user\",\"content\":\"{filler}\"}}\n{{\"type\":\"assistant\",\"content\":\"Yes.\"}}\n"
            )
        })
        .collect();
    sandbox.write("s.jsonl", &lines);
    let turn = sandbox.cmd("claw-turn").envs(server.env_for(Shape::OpenAi)).env("CLAW_MODEL", "m");
    let run = turn.args(["-m", "Go on.", "./s.jsonl"]).assert().success();
    assert!(run.stderr_text().contains("summarising the old part ahead of an overflow"), "{run}");
    server.all_legal();
}

#[test]
fn nothing_is_asked_if_it_is_not_wanted() {
    let server = FakeProvider::new().stating("/v1/models", list(json!({"id": "m", "n": 1})));
    let turn = |options: &[&str], variable: (&str, &str)| {
        let sandbox = Sandbox::new();
        let turn = sandbox.cmd("claw-turn").args(["-m", "Good morning.", "./s.jsonl"]);
        let turn = turn.envs(server.env_for(Shape::OpenAi)).env("CLAW_MODEL", "m");
        turn.args(options).env(variable.0, variable.1).assert().success();
        sandbox
    };
    turn(&["--no-ask-window"], ("TZ", "UTC"));
    turn(&[], ("CLAW_ASK_WINDOW", "false"));
    turn(&["--window", "9000"], ("TZ", "UTC"));
    turn(&["--record", "tapes"], ("TZ", "UTC"));
    turn(&["--provider", "offline"], ("TZ", "UTC"));
    assert_eq!(server.questions(), Vec::<String>::new());

    // A server that states none is not asked again either.
    let sandbox = turn(&[], ("TZ", "UTC"));
    let asked = server.questions().len();
    assert_eq!(
        asked,
        3,
        "the list, LM Studio's list, llama.cpp's properties: {:?}",
        server.questions()
    );
    let again = sandbox.cmd("claw-turn").args(["-m", "Good evening.", "./s.jsonl"]);
    again.envs(server.env_for(Shape::OpenAi)).env("CLAW_MODEL", "m").assert().success();
    assert_eq!(server.questions().len(), asked);
}

#[test]
fn a_turn_does_not_depend_on_the_answer() {
    let sandbox = Sandbox::new();
    let server = FakeProvider::new().stating("/v1/models", json!({"data": "nonsense"}));
    server.script(Step::text("Good morning to you."));
    let turn = sandbox.cmd("claw-turn").args(["-m", "Good morning.", "./s.jsonl"]);
    let turn = turn.envs(server.env_for(Shape::OpenAi)).env("CLAW_MODEL", "m");
    turn.assert().success().stdout("Good morning to you.\n").stderr("");
}

#[test]
fn ollama_states_what_the_definition_of_a_model_asks_for() {
    let sandbox = Sandbox::new();
    let show = json!({"parameters": "num_ctx                        8192\ntop_k 4",
        "model_info": {"llama.context_length": 131_072}});
    let server = FakeProvider::new().stating("/api/show", show);
    let ask = sandbox.cmd("claw-call").arg("--ask-window").envs(server.env_for(Shape::Ollama));
    let run = ask.env("CLAW_MODEL", "mine").assert().success();
    run.stdout("{\"model\":\"mine\",\"window\":8192,\"window_origin\":\"provider\"}\n");
    let call =
        sandbox.cmd("claw-call").envs(server.env_for(Shape::Ollama)).env("CLAW_MODEL", "mine");
    call.write_stdin("{\"role\":\"user\",\"content\":\"Hello\"}\n").assert().success();
    let request = server.single_request();
    assert_eq!(request.json.unwrap()["options"]["num_ctx"], 8192);
}

#[test]
fn an_answer_that_never_ends_does_not_keep_the_turn_from_its_call() {
    let sandbox = Sandbox::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        use std::io::{Read, Write};
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 4096]);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 999999\r\n\r\n");
        while stream.write_all(b" ").is_ok() {
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    let ask = sandbox.cmd("claw-call").args(["--ask-window", "--deadline", "0.5"]);
    let ask = ask.env("CLAW_PROVIDER", "openai").env("OPENAI_BASE_URL", url).env("CLAW_MODEL", "m");
    let run = ask.timeout(Duration::from_secs(60)).assert().code(69);
    assert!(run.stderr_text().contains("no complete answer about models in time"), "{run}");
    assert!(!sandbox.exists("state/windows.jsonl"), "nothing is stored");
}
