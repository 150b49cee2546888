//! The API key: its sources, the header in which it is sent, and its absence from everything else.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::thread;
use std::time::{Duration, Instant};

use assert_cmd::assert::Assert;
use predicates::prelude::*;
use predicates::str::contains;
use serde_json::json;

use crate::common::provider::{FakeProvider, Recorded, Step};
use crate::common::shapes::Shape;
use crate::common::{AssertExt, Cmd, Sandbox, kill_group};
use crate::conversations::Conversation;

const HELLO: &str = "{\"role\":\"user\",\"content\":\"hello\"}\n";

/// A key in a form that no pattern for credentials matches.
const KEY: &str = "key/of-the-house+901Z";

/// The variables that can hold a key, with their shape and the header in which the key is sent.
const VARIABLES: [(Shape, &str, &str); 4] = [
    (Shape::Anthropic, "ANTHROPIC_API_KEY", "x-api-key"),
    (Shape::Anthropic, "ANTHROPIC_AUTH_TOKEN", "authorization"),
    (Shape::OpenAi, "OPENAI_API_KEY", "authorization"),
    (Shape::Ollama, "OLLAMA_API_KEY", "authorization"),
];

/// Returns a command that is configured for the provider but has no key.
fn keyless(sandbox: &Sandbox, program: &str, provider: &FakeProvider, shape: Shape) -> Cmd {
    let env = provider.env_for(shape).into_iter().filter(|(name, _)| !name.ends_with("_KEY"));
    sandbox.cmd(program).envs(env).env("TMPDIR", sandbox.dir())
}

/// Returns a `claw-call` command that sends the prompt "hello" and has no key.
fn hello(sandbox: &Sandbox, provider: &FakeProvider, shape: Shape) -> Cmd {
    keyless(sandbox, "claw-call", provider, shape).write_stdin(HELLO)
}

/// Writes a key file with this mode.
fn key_file(sandbox: &Sandbox, name: &str, text: impl AsRef<[u8]>, mode: u32) {
    let path = sandbox.write(name, text);
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("a file that the test owns");
}

/// Returns the headers of a request that can carry a key.
fn key_headers(request: &Recorded) -> Vec<(&str, &str)> {
    let names = ["x-api-key", "authorization"];
    names.into_iter().filter_map(|name| Some((name, request.header(name)?))).collect()
}

/// Returns the value of a header that carries this key.
fn value(header: &str, key: &str) -> String {
    if header == "authorization" { format!("Bearer {key}") } else { key.to_owned() }
}

#[track_caller]
fn assert_no_key_in(place: &str, bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    // A prefix of the key counts as well.
    assert!(!text.contains(&KEY[..10]), "the key is in {place}:\n{text}");
}

/// Checks that the key is in no output and in no file.
#[track_caller]
fn assert_key_is_nowhere(sandbox: &Sandbox, run: &Assert) {
    assert_no_key_in("stdout", &run.get_output().stdout);
    assert_no_key_in("stderr", run.stderr_text().as_bytes());
    assert_key_is_in_no_file(sandbox);
}

/// Checks that the key is in no file except the key file: not in the transcript, the state, recordings, failure
/// records, or temporary files.
#[track_caller]
fn assert_key_is_in_no_file(sandbox: &Sandbox) {
    for entry in walkdir::WalkDir::new(sandbox.dir()) {
        let entry = entry.expect("a directory that can be read");
        assert_no_key_in("a name", entry.path().as_os_str().as_encoded_bytes());
        if entry.file_type().is_file() && entry.path() != sandbox.path("key") {
            let bytes = fs::read(entry.path()).expect("a file that can be read");
            assert_no_key_in(&entry.path().display().to_string(), &bytes);
        }
    }
}

// ---- sources and headers ------------------------------------------------------

/// Each source is tested with all lower-ranking sources set as well. Those must not even be read: two of them have the
/// same rank, which would be refused.
#[test]
fn t2_the_key_comes_from_the_source_of_the_highest_rank_and_is_sent_in_its_header() {
    for (shape, variable, header) in VARIABLES {
        let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
        key_file(&sandbox, "key", format!("{KEY}\n"), 0o600);
        let usual = if shape == Shape::Anthropic { "x-api-key" } else { header };
        let call = || hello(&sandbox, &provider, shape).env(variable, "below-all");
        let both = |cmd: Cmd| match shape {
            Shape::Anthropic => cmd.env("ANTHROPIC_API_KEY", "a").env("ANTHROPIC_AUTH_TOKEN", "b"),
            _ => cmd,
        };
        let all = || both(call()).env("CLAW_KEY_FILE", "none").env("CLAW_KEY_CMD", "exit 9");
        for (cmd, header, key) in [
            (all().args(["--key-file", "key"]), usual, KEY),
            (all().args(["--key-cmd", "cat key"]), usual, KEY),
            (both(call()).env("CLAW_KEY_FILE", "key"), usual, KEY),
            (both(call()).env("CLAW_KEY_CMD", "cat key"), usual, KEY),
            (call(), header, "below-all"),
            (call().env("CLAW_KEY_FILE", "").env("CLAW_KEY_CMD", ""), header, "below-all"),
            (call().env(variable, format!(" {KEY}\n")), header, KEY),
        ] {
            cmd.assert().success().stderr(contains(key).not());
            let requests = provider.requests();
            let last = requests.last().expect("a request");
            assert_eq!(key_headers(last), [(header, &*value(header, key))], "{variable}");
        }
        provider.all_legal();
    }
}

#[test]
fn t2_keys_for_other_providers_are_not_sent() {
    let foreign = |shape: Shape| {
        let all = VARIABLES.iter().filter(move |(of, ..)| *of != shape);
        all.map(|(_, name, _)| *name).chain(["OPENROUTER_API_KEY"])
    };
    for shape in [Shape::Anthropic, Shape::OpenAi, Shape::Ollama] {
        let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
        foreign(shape)
            .fold(hello(&sandbox, &provider, shape), |c, n| c.env(n, KEY))
            .assert()
            .code(if shape == Shape::Ollama { 0 } else { 77 });
        assert_eq!(key_headers(&provider.single_request()), []);
    }
}

#[test]
fn t2_two_sources_of_the_same_rank_are_refused() {
    let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
    key_file(&sandbox, "key", KEY, 0o600);
    let call = || hello(&sandbox, &provider, Shape::Anthropic);
    call()
        .env("CLAW_KEY_FILE", "key")
        .env("CLAW_KEY_CMD", "cat key")
        .assert()
        .code(78)
        .stdout("")
        .stderr(contains("CLAW_KEY_FILE and CLAW_KEY_CMD exclude each other; unset one"));
    call()
        .env("ANTHROPIC_API_KEY", KEY)
        .env("ANTHROPIC_AUTH_TOKEN", KEY)
        .assert()
        .code(78)
        .stderr(contains("both ANTHROPIC_API_KEY and ANTHROPIC_AUTH_TOKEN are set"))
        .stderr(contains(KEY).not());
    // On the command line, this is a usage error.
    call().args(["--key-file", "key", "--key-cmd", "cat key"]).assert().code(2);
    assert!(provider.requests().is_empty());
}

/// A dry run prints the headers, so this test needs no network.
#[test]
fn t2_the_openrouter_key_is_sent_only_to_openrouter() {
    let shown = |url: &str, variable: &str| {
        let cmd = Sandbox::new().cmd("claw-call").env(variable, KEY).args(["--base-url", url]);
        let run = cmd
            .args(["--provider", "openai", "--model", "m", "--dry-run"])
            .write_stdin(HELLO)
            .assert()
            .success()
            .stderr(contains(KEY).not())
            .stderr(contains("would send POST "));
        run.stderr_text().contains("would send authorization: (hidden)\n")
    };
    for url in
        ["https://openrouter.ai/api/v1", "https://openrouter.ai", "https://OpenRouter.ai:443/v1"]
    {
        assert!(shown(url, "OPENROUTER_API_KEY") && !shown(url, "OPENAI_API_KEY"), "{url}");
    }
    for url in [
        "https://api.openai.com/v1",
        "https://openrouter.ai.example.org/v1",
        "https://openrouter.ai-example.org/v1",
        "https://example.org//openrouter.ai/v1",
        "https://example.org/v1?to=//openrouter.ai",
        "https://not-openrouter.ai/v1",
    ] {
        assert!(!shown(url, "OPENROUTER_API_KEY") && shown(url, "OPENAI_API_KEY"), "{url}");
    }
}

// ---- invalid files and commands ---------------------------------------------------

#[test]
fn t2_a_key_file_that_others_can_read_is_not_used() {
    let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
    let call = |name: &str| hello(&sandbox, &provider, Shape::Anthropic).args(["--key-file", name]);
    for mode in [0o640, 0o604, 0o644, 0o620, 0o666, 0o777] {
        key_file(&sandbox, "key", KEY, mode);
        call("key")
            .assert()
            .code(77)
            .stdout("")
            .stderr(contains("'key'"))
            .stderr(contains("chmod 600"))
            .stderr(contains(KEY).not());
    }
    symlink("key", sandbox.path("link")).expect("a link");
    call("link").assert().code(77).stderr(contains("'link'")).stderr(contains("chmod 600"));
    hello(&sandbox, &provider, Shape::OpenAi)
        .env("CLAW_KEY_FILE", "key")
        .assert()
        .code(77)
        .stderr(contains("chmod 600"));
    assert!(provider.requests().is_empty());
    for mode in [0o600, 0o400, 0o700] {
        key_file(&sandbox, &format!("key{mode}"), KEY, mode);
        call(&format!("key{mode}")).assert().success();
    }
    // A pipe is private to its owner, so the key can come from a pipe and need not be in any file.
    sandbox.write("messages", HELLO);
    let env = provider.env_for(Shape::Ollama);
    let piped = sandbox.sh("echo piped-key | claw-call --key-file /dev/stdin messages").envs(env);
    piped.assert().success();
    let last = provider.requests().pop().expect("a request");
    assert_eq!(key_headers(&last), [("authorization", "Bearer piped-key")]);
}

#[test]
fn t2_a_file_without_a_valid_key_is_reported_by_name() {
    let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
    fs::create_dir(sandbox.path("directory")).expect("a directory");
    fs::set_permissions(sandbox.path("directory"), fs::Permissions::from_mode(0o700))
        .expect("a file that the test owns");
    for (name, text) in [("empty", &b""[..]), ("blank", b" \n\n"), ("bytes", b"key\xff\xfe901")] {
        key_file(&sandbox, name, text, 0o600);
    }
    let broken = [
        ("lines", format!("{KEY}\n{KEY}\n")),
        ("words", format!("Bearer {KEY}")),
        ("setting", format!("KEY={KEY} other")),
        ("control", format!("{KEY}\u{1b}x")),
        ("letters", format!("{KEY}é")),
    ];
    broken.iter().for_each(|(name, text)| key_file(&sandbox, name, text, 0o600));
    for (name, status) in [("missing", 74), ("directory", 74), ("empty", 77), ("blank", 77)]
        .into_iter()
        .chain(broken.iter().map(|(name, _)| (*name, 78)))
        .chain([("bytes", 78)])
    {
        let run = hello(&sandbox, &provider, Shape::Anthropic)
            .args(["--key-file", name])
            .assert()
            .code(status)
            .stdout("")
            .stderr(contains(format!("'{name}'")));
        assert_no_key_in("stderr", run.stderr_text().as_bytes());
    }
    assert!(provider.requests().is_empty());
}

#[test]
fn t2_a_command_that_prints_no_valid_key_is_reported() {
    let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
    key_file(&sandbox, "key", KEY, 0o600);
    for (command, status, why) in [
        ("cat key; exit 3", 77, "failed with status 3"),
        ("no-such-program-here", 77, "failed with status 127"),
        ("cat key; kill -KILL $$", 77, "failed with signal 9"),
        ("", 77, "no key"),
        ("true", 77, "no key"),
        ("echo", 77, "no key"),
        ("cat key; echo; cat key", 78, "cannot use the key"),
        (r"cat key; printf '\377'", 78, "cannot use the key"),
    ] {
        let run = hello(&sandbox, &provider, Shape::Anthropic)
            .args(["--key-cmd", command])
            .assert()
            .code(status)
            .stdout("")
            .stderr(contains("the key command"))
            .stderr(contains(why));
        assert_no_key_in("stderr", run.stderr_text().as_bytes());
    }
    assert!(provider.requests().is_empty());
}

#[test]
fn t2_a_command_may_print_a_line_and_use_standard_error_but_gets_no_messages() {
    let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
    key_file(&sandbox, "key", KEY, 0o600);
    for end in ["", r"; printf '\n'", r"; printf '\r\n'", r"; printf '\n\n'"] {
        let command = format!("cat >eaten; echo 'unlock, please' >&2; cat key{end}");
        let call = hello(&sandbox, &provider, Shape::Anthropic);
        call.args(["--key-cmd", &command]).assert().success().stderr("unlock, please\n");
        assert_eq!(sandbox.read_text("eaten"), "");
    }
    for request in provider.requests() {
        assert_eq!(key_headers(&request), [("x-api-key", KEY)]);
        assert_eq!(request.last_user_text(), "hello");
    }
}

// ---- runs that need no key --------------------------------------------------------------------

#[test]
fn t2_a_dry_run_and_a_replay_read_no_key() {
    let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
    key_file(&sandbox, "key", KEY, 0o600);
    let recorded = hello(&sandbox, &provider, Shape::OpenAi).args(["--key-file", "key"]);
    let recorded = recorded.args(["--record", "tape"]).assert().success();
    assert_key_is_nowhere(&sandbox, &recorded);
    drop(provider);

    let provider = FakeProvider::new();
    for key in [["--key-cmd", "touch was-run; exit 1"], ["--key-file", "missing"]] {
        hello(&sandbox, &provider, Shape::OpenAi)
            .args(key)
            .arg("--dry-run")
            .assert()
            .success()
            .stderr(contains("would send authorization: (hidden)"));
        let replay = hello(&sandbox, &provider, Shape::OpenAi).args(key);
        let (replay, live) = (replay.args(["--replay", "tape"]).assert(), recorded.json_one());
        assert_eq!(replay.success().json_one()["content"], live["content"]);
        sandbox.write("s.jsonl", "");
        let turn = keyless(&sandbox, "claw-turn", &provider, Shape::OpenAi).args(key);
        turn.args(["--replay", "tape", "-m", "hello", "s.jsonl"]).assert().success();
    }
    assert!(provider.requests().is_empty() && !sandbox.exists("was-run"));
}

// ---- secrecy --------------------------------------------------------------------

fn is_in(word: &str, bytes: &[u8]) -> bool {
    bytes.windows(word.len()).any(|part| part == word.as_bytes())
}

/// Returns the command lines of all processes whose environment names the state directory of this sandbox.
fn command_lines(sandbox: &Sandbox) -> Vec<Vec<u8>> {
    let mark = format!("CLAW_STATE_DIR={}\0", sandbox.path("state").display());
    let processes = fs::read_dir("/proc").expect("/proc").filter_map(Result::ok);
    let ours = processes.filter_map(|process| {
        let environ = fs::read(process.path().join("environ")).ok()?;
        is_in(&mark, &environ).then(|| fs::read(process.path().join("cmdline")).ok())?
    });
    ours.filter(|line| !line.is_empty()).collect()
}

/// Runs a command until its request reaches the provider, which does not answer, and then kills the command. Returns
/// the command lines of all processes seen until then, and checks that no file contains the key.
fn command_lines_of(sandbox: &Sandbox, provider: &FakeProvider, cmd: Cmd) -> Vec<Vec<u8>> {
    provider.script(Step::Hang(Duration::from_secs(600)));
    let (asked, began) = (provider.requests().len(), Instant::now());
    let child = cmd.spawn();
    let mut seen = Vec::new();
    while provider.requests().len() == asked {
        assert!(began.elapsed() < Duration::from_secs(60), "no request");
        seen.extend(command_lines(sandbox));
        if seen.iter().any(|line| is_in(KEY_COMMAND, line)) {
            sandbox.write("seen", "");
        }
        thread::sleep(Duration::from_millis(2));
    }
    seen.extend(command_lines(sandbox));
    assert_key_is_in_no_file(sandbox);
    kill_group(child.id());
    child.wait_with_output().expect("an exit status");
    seen
}

/// A part of the command line of a process that a key command starts.
const KEY_COMMAND: &str = "sleep\x000.1";

#[test]
fn t2_the_key_is_on_no_command_line() {
    let key_command = "cat key; until test -e seen; do sleep 0.1; done; :";
    for (program, rest) in [("claw-call", &[][..]), ("claw-turn", &["-m", "hi", "s.jsonl"])] {
        for (name, source) in [
            ("ANTHROPIC_API_KEY", &[][..]),
            ("ANTHROPIC_AUTH_TOKEN", &[]),
            ("NONE", &["--key-file", "key"]),
            ("NONE", &["--key-cmd", key_command]),
        ] {
            let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
            key_file(&sandbox, "key", KEY, 0o600);
            let cmd = keyless(&sandbox, program, &provider, Shape::Anthropic).env(name, KEY);
            let cmd = cmd.args(source).args(rest).write_stdin(HELLO);
            let lines = command_lines_of(&sandbox, &provider, cmd);
            let has = |word: &str| lines.iter().any(|line| is_in(word, line));
            assert!(has("claw-call") && has(program), "{name}: the processes were not seen");
            assert!(
                !source.contains(&"--key-cmd") || has(KEY_COMMAND),
                "the key command was not seen"
            );
            assert_eq!(key_headers(&provider.single_request()).len(), 1);
            lines.iter().for_each(|line| assert_no_key_in("a command line", line));
        }
    }
}

/// Returns answers in which the provider repeats the key: in an error, where a long text is cut off, in a gateway's
/// page, in a header, or in a stream that fails.
fn echoes() -> Vec<Step> {
    let page = |before: usize| format!("<html>{} authorization: {KEY}</html>", "x".repeat(before));
    let json = |before: usize| {
        let text = format!("{} no such key: {KEY}", "x".repeat(before));
        json!({"error": {"type": "authentication_error", "code": KEY, "message": text}}).to_string()
    };
    let raw = |status: u16, body: String| {
        let headers = [("request-id", KEY), ("retry-after-ms", "1")];
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        Step::Raw { status, headers, body: body.into() }
    };
    let mut steps = vec![Step::error(401, "authentication_error", &format!("no such key: {KEY}"))];
    let errors = [(401, json(0)), (400, json(2018)), (429, json(2022)), (200, json(0))];
    let pages = [(502, page(0)), (502, page(460)), (403, page(455)), (200, page(0))];
    steps.extend(errors.into_iter().chain(pages).map(|(status, body)| raw(status, body)));
    let overflow = format!("prompt is too long: 3000 tokens > 2000 maximum, {KEY}");
    steps.push(Step::error(400, "invalid_request_error", &overflow));
    steps.push(Step::stream_error("overloaded_error", KEY));
    steps
}

#[test]
fn t2_a_key_that_the_provider_repeats_is_neither_shown_nor_stored() {
    // In parallel, because most of the time is spent waiting for retries.
    thread::scope(|scope| {
        for shape in Shape::ALL {
            scope.spawn(move || assert_repeated_key_is_nowhere(shape));
        }
    });
}

fn assert_repeated_key_is_nowhere(shape: Shape) {
    let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
    key_file(&sandbox, "key", KEY, 0o600);
    for step in echoes() {
        for args in [&["--stream", "--max-retries", "0"][..], &["--log", "json"]] {
            let asked = provider.requests().len();
            provider.script(step.clone());
            let call = hello(&sandbox, &provider, shape).args(["--key-file", "key"]).args(args);
            let call = call.args(["--record", "tape", "--failure", "failure", "--max-wait", "1"]);
            assert_key_is_nowhere(&sandbox, &call.assert());
            let first = &provider.requests()[asked];
            assert_eq!(key_headers(first)[0].1, value(key_headers(first)[0].0, KEY));
        }
    }
    let dry = hello(&sandbox, &provider, shape).args(["--key-file", "key", "--dry-run"]).assert();
    assert_key_is_nowhere(&sandbox, &dry.success().stderr(contains("(hidden)")));
}

/// Local servers accept any key, so the key may be an ordinary word or a single letter.
#[test]
fn audit_21_a_key_that_is_an_ordinary_word_is_not_removed_from_texts() {
    let text =
        "request (3000 tokens) exceeds the available context size (2000 tokens), K, not-needed";
    for key in ["K", "not-needed", "available"] {
        let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
        provider.script(Step::error(400, "invalid_request_error", text));
        let call = hello(&sandbox, &provider, Shape::OpenAi).env("OPENAI_API_KEY", key);
        call.args(["--record", "tape", "--failure", "why"]).assert().code(3).stderr(contains(text));
        assert_eq!(sandbox.read_json("why")[0]["message"], text);
    }
}

#[test]
fn t2_a_request_that_contains_the_key_is_neither_recorded_nor_sent() {
    let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
    key_file(&sandbox, "key", KEY, 0o600);
    let escaped = KEY.replace('/', "\\/").replace('Z', "\\u005a");
    for text in [KEY, &format!("my key is {KEY}."), &escaped] {
        let message = format!("{{\"role\":\"user\",\"content\":\"{text}\"}}\n");
        for (name, value) in [("CLAW_KEY_FILE", "key"), ("ANTHROPIC_API_KEY", KEY)] {
            let call = hello(&sandbox, &provider, Shape::Anthropic).env(name, value);
            let run = call
                .args(["--record", "tape"])
                .write_stdin(message.clone())
                .assert()
                .code(65)
                .stdout("")
                .stderr(contains("nothing is sent"))
                .stderr(contains("the key in use"));
            assert_key_is_nowhere(&sandbox, &run);
        }
    }
    assert!(provider.requests().is_empty());
}

#[test]
fn t2_a_turn_passes_the_key_on_but_writes_it_nowhere() {
    for source in [["--key-file", "key"], ["--key-cmd", "cat key"]] {
        let (sandbox, provider) = (Sandbox::new(), FakeProvider::new().window(3000));
        key_file(&sandbox, "key", KEY, 0o600);
        sandbox.write("s.jsonl", "");
        // The turn needs a summary and an answer, so two programs call the provider.
        Conversation::plain(12, 400).append(&sandbox, "s.jsonl");
        let turn = |args: &[&str]| {
            let turn = keyless(&sandbox, "claw-turn", &provider, Shape::Anthropic).args(source);
            let turn = turn.args(["--max-tokens", "200"]).args(args);
            // The option overrides the variables.
            let turn = turn.env("CLAW_KEY_CMD", "exit 9").env("CLAW_KEY_FILE", "none");
            turn.args(["-m", "go on", "s.jsonl"]).assert()
        };
        let run = turn(&["--record", "tape", "--window", "3000"]);
        assert_key_is_nowhere(&sandbox, &run.success());
        provider.script(Step::error(401, "authentication_error", &format!("no such key: {KEY}")));
        assert_key_is_nowhere(&sandbox, &turn(&["--log", "json"]).code(77));
        assert!(provider.requests().len() >= 3, "expected a summary, an answer and a refusal");
        for request in provider.requests() {
            assert_eq!(key_headers(&request), [("x-api-key", KEY)]);
        }
    }
}
