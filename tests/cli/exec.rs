//! claw-exec: each call runs an executable and gets one result, even if the executable fails.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use assert_cmd::assert::Assert;
use predicates::str::contains;
use serde_json::{Value, json};

use crate::common::pty::{Pty, can_run};
use crate::common::{AssertExt, Cmd, Sandbox, patiently};

const SIZE: (u16, u16) = (100, 10);

/// Returns a sandbox with a workspace, and with these shell scripts as tools in the directory `box`.
pub fn tools(tools: &[(&str, &str)]) -> Sandbox {
    let sandbox = Sandbox::new();
    let each = tools.iter().map(|(name, script)| {
        format!("cat >box/{name} <<'END OF TOOL'\n#!/bin/sh\n{script}\nEND OF TOOL\n")
    });
    // A shell writes the files, for the reason given in `Sandbox::program`.
    let script = format!("mkdir box workspace\n{}chmod 755 box/*", each.collect::<String>());
    sandbox.sh(&script).assert().success();
    sandbox
}

/// Returns calls of these tools without input, with the ids t0, t1 and so on.
fn calls(names: &[&str]) -> String {
    let call = |(n, name): (usize, &&str)| call(&format!("t{n}"), name, &json!({}));
    names.iter().enumerate().map(call).collect()
}

fn call(id: &str, name: &str, input: &Value) -> String {
    json!({"type": "tool_use", "tool_use_id": id, "name": name, "input": input}).to_string() + "\n"
}

fn exec(sandbox: &Sandbox, args: &[&str]) -> Cmd {
    sandbox.cmd("claw-exec").args(["--tools", "box"]).args(args)
}

/// Returns the content of each result and whether it is an error, in the order of the calls.
#[track_caller]
fn results(run: &Assert) -> Vec<(String, bool)> {
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let result = |(n, record): (usize, Value)| {
        assert_eq!(record["type"], "tool_result");
        assert_eq!(record["tool_use_id"], format!("t{n}"));
        (text(&record["content"]), record["is_error"] == true)
    };
    let output = run.get_output();
    assert!(output.status.success() && output.stderr.is_empty(), "{run}");
    run.json().into_iter().enumerate().map(result).collect()
}

/// Returns the content of the only result, which must be an error.
#[track_caller]
fn error(run: &Assert) -> String {
    let [(content, true)] = &results(run)[..] else { panic!("{}", run.stdout_text()) };
    content.clone()
}

/// Returns true if a process, which would run for minutes, ends within twenty seconds; it may still be a zombie.
pub fn has_ended(process: &str) -> bool {
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        let stat = fs::read_to_string(format!("/proc/{}/stat", process.trim())).unwrap_or_default();
        if stat.is_empty() || stat.contains(") Z ") {
            return true;
        }
        if Instant::now() > until {
            return false;
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until a tool has written a whole line to a file, and returns it.
pub fn line_of(sandbox: &Sandbox, name: &str) -> String {
    let [line] = lines_of(sandbox, name);
    line + "\n"
}

/// Waits until a tool has written so many whole lines to a file, and returns them.
pub fn lines_of<const COUNT: usize>(sandbox: &Sandbox, name: &str) -> [String; COUNT] {
    loop {
        if let Ok(text) = fs::read_to_string(sandbox.path(name))
            && text.ends_with('\n')
            && let Ok(lines) = text.lines().map(str::to_owned).collect::<Vec<_>>().try_into()
        {
            return lines;
        }
        thread::sleep(Duration::from_millis(2));
    }
}

// ---- calls and results -----------------------------------------------------------------------------

#[test]
fn a_tool_gets_the_input_and_its_output_is_the_result() {
    let sandbox =
        tools(&[("same", "cat"), ("where", "pwd -P"), ("none", ":"), ("odd", r"printf 'a\377b'")]);
    let input = r#"{"b":12345678901234567890123,"a":"$(id) 'x' \u00e9","a":1e2}"#;
    let same = format!(r#"{{"type":"tool_use","tool_use_id":"t0","name":"same","input":{input}}}"#);
    let rest =
        calls(&["", "where", "none", "odd"]).split_once('\n').map(|(_, rest)| rest.to_owned());
    let run = exec(&sandbox, &[]).write_stdin(same + "\n" + &rest.unwrap_or_default()).assert();
    let workspace = sandbox.path("workspace").canonicalize().expect("a path");
    let good = |text: &str| (text.to_owned(), false);
    let expected =
        [good(input), good(&format!("{}\n", workspace.display())), good(""), good("a\u{fffd}b")];
    assert_eq!(results(&run), expected);
}

#[test]
fn a_tool_gets_the_path_of_the_transcript_but_no_settings_that_may_hold_keys() {
    let sandbox = tools(&[("show", "echo $CLAW_SESSION ${CLAW_CALL-none} ${CLAW_EXTRA-none}")]);
    let exec = |args: &[&str]| {
        let cmd =
            exec(&sandbox, args).env("CLAW_SESSION", "s.jsonl").env("CLAW_CALL", "ask --key=k");
        cmd.env("CLAW_EXTRA", r#"{"key":"k"}"#).write_stdin(calls(&["show"])).assert().json_one()
    };
    let path = sandbox.path("s.jsonl").display().to_string();
    assert_eq!(exec(&[])["content"], format!("{path} none none\n"));
    assert_eq!(exec(&["--pass-env", "CLAW_CALL"])["content"], format!("{path} ask --key=k none\n"));
}

#[test]
fn calls_run_in_parallel_and_results_are_in_call_order() {
    // Each call waits for the other call, and the first call ends last.
    let meet = "n=$(cat); case $n in *1*) a=1 b=2 ;; *) a=2 b=1 ;; esac; echo $n >$a
        while test ! -s $b; do sleep 0.01; done; test $a = 2 || sleep 0.05; echo $a";
    let sandbox = tools(&[("meet", meet)]);
    let both = call("t0", "meet", &json!({"n": 1})) + &call("t1", "meet", &json!({"n": 2}));
    let run = exec(&sandbox, &["--jobs", "2"]).write_stdin(both.clone()).assert();
    assert_eq!(results(&run), [("1\n".to_owned(), false), ("2\n".to_owned(), false)]);
    sandbox.sh("rm workspace/*").assert().success();
    // With one job, the first call waits for the second until the timeout.
    let run = exec(&sandbox, &["--jobs", "1", "--timeout", "0.1"]).write_stdin(both).assert();
    assert!(results(&run)[0].0.ends_with("did not end in 0.1 s and was killed"));
}

#[test]
fn d52_a_repeated_or_answered_call_is_not_run_again() {
    let sandbox = tools(&[("count", "echo x >>log")]);
    let done = r#"{"type":"tool_result","tool_use_id":"t1","content":"done"}"#;
    let input = calls(&["count", "count"]) + &calls(&["count"]) + done;
    assert_eq!(results(&exec(&sandbox, &[]).write_stdin(input).assert()).len(), 1);
    assert_eq!(sandbox.read_text("workspace/log"), "x\n");
}

#[test]
fn an_invalid_record_or_directory_is_an_error_before_any_tool_runs() {
    let sandbox = tools(&[("touch", "touch it")]);
    exec(&sandbox, &[])
        .write_stdin(calls(&["touch"]) + "{\"type\":\"tool_use\"}\n")
        .assert()
        .code(65)
        .stdout("")
        .stderr(contains("line 2"));
    let touch = || calls(&["touch"]);
    let cmd = sandbox.cmd("claw-exec").args(["--tools", "nowhere"]).write_stdin(touch());
    cmd.assert().code(74).stdout("").stderr(contains("cannot read tools 'nowhere'"));
    let cmd = sandbox.cmd("claw-exec").args(["--tools", "box/touch"]).write_stdin(touch());
    cmd.assert().code(78).stderr(contains("not a directory"));
    exec(&sandbox, &[])
        .env("CLAW_WORKSPACE", "gone")
        .write_stdin(touch())
        .assert()
        .code(78)
        .stderr(contains("cannot run tools in 'gone': no such directory"));
    assert!(!sandbox.exists("workspace/it"));
    exec(&sandbox, &["--workspace", "state"]).write_stdin(touch()).assert().success();
    assert!(sandbox.exists("state/it"));
}

#[test]
fn t_4_a_tool_name_refers_to_a_file_in_the_directory_only() {
    let sandbox = tools(&[("good", "echo good"), ("plain", "")]);
    sandbox
        .sh("chmod 644 box/plain; mkdir box/dir; ln -s /bin/true box/out; ln -s good box/alias")
        .assert()
        .success();
    let long = "x".repeat(65);
    let names = [
        "alias",
        "out",
        "plain",
        "dir",
        "gone",
        "",
        "..",
        "../box/good",
        "/bin/true",
        "a b",
        &long,
    ];
    let run = exec(&sandbox, &[]).write_stdin(calls(&names)).assert();
    let results = results(&run);
    assert_eq!(results[0], ("good\n".to_owned(), false));
    let reasons: Vec<&str> = results[1..].iter().map(|(text, _)| text.as_str()).collect();
    assert!(results[1..].iter().all(|(_, is_error)| *is_error));
    let cannot = |name: &str, why: &str| format!("tool '{name}' cannot be run: {why}");
    assert_eq!(
        reasons[0],
        cannot("out", "its file is a link to a file outside the tools directory")
    );
    assert_eq!(reasons[1], cannot("plain", "its file is not executable"));
    assert_eq!(reasons[2], cannot("dir", "not a regular file"));
    assert_eq!(reasons[3], "there is no tool 'gone'");
    for (why, name) in reasons[4..].iter().zip(&names[5..]) {
        assert_eq!(*why, format!("invalid tool name '{name}'"));
    }
}

// ---- failures ------------------------------------------------------------------------------

#[test]
fn a_failed_tool_gives_an_error_result_with_its_output() {
    let noise = "i=0; while test $i -lt 2000; do echo line $i >&2; i=$((i+1)); done; exit 1";
    let sandbox = tools(&[
        ("three", "echo partly; echo 'no such thing' >&2; exit 3"),
        ("signal", "kill -9 $$"),
        ("noise", noise),
        ("unread", "exit 0"),
    ]);
    sandbox.sh("echo '#!/no/such/shell' >box/broken; chmod 755 box/broken").assert().success();
    let unread = call("t4", "unread", &json!({"x": "x".repeat(1 << 18)}));
    let input = calls(&["three", "signal", "noise", "broken"]) + &unread;
    let results = results(&exec(&sandbox, &[]).write_stdin(input).assert());
    let three = "tool 'three' failed with status 3\nstandard error:\nno such thing\nstandard output:\npartly";
    assert_eq!(results[0], (three.to_owned(), true));
    assert_eq!(results[1], ("tool 'signal' was ended by signal 9".to_owned(), true));
    assert!(results[2].1 && results[2].0.len() < 4200 && results[2].0.ends_with("line 1999"));
    assert!(
        results[3].1 && results[3].0.starts_with("tool 'broken' cannot be run: "),
        "{results:?}"
    );
    assert_eq!(results[4], (String::new(), false), "a tool may leave its input unread");
}

#[test]
fn a_timeout_ends_a_tool_and_its_processes() {
    patiently(|times| {
        let sandbox = tools(&[("hang", "sleep 600 & echo $! >child; echo begun; sleep 600")]);
        let (began, seconds) = (Instant::now(), (0.3 * f64::from(times)).to_string());
        let run = exec(&sandbox, &["--timeout", &seconds]).write_stdin(calls(&["hang"])).assert();
        let expected = format!(
            "tool 'hang' did not end in {seconds} s and was killed\nstandard output:\nbegun"
        );
        assert_eq!(error(&run), expected);
        assert!(has_ended(&sandbox.read_text("workspace/child")));
        assert!(began.elapsed() < Duration::from_secs(30));
    });
}

#[test]
fn background_processes_of_a_tool_are_ended_and_not_waited_for() {
    let left = "sleep 600 & echo $! >child; echo done";
    let away = "setsid sh -c 'echo $$ >away; exec sleep 40' &
        until test -s away; do sleep 0.01; done; echo done";
    let sandbox = tools(&[("left", left), ("away", away)]);
    let began = Instant::now();
    let run = exec(&sandbox, &[]).write_stdin(calls(&["left", "away"])).assert();
    assert_eq!(results(&run), [("done\n".to_owned(), false), ("done\n".to_owned(), false)]);
    assert!(has_ended(&sandbox.read_text("workspace/child")));
    assert!(began.elapsed() < Duration::from_secs(30));
    sandbox.sh("kill $(cat workspace/away)").assert().success();
}

#[test]
fn p_6_a_signal_ends_tools_and_their_processes_and_keeps_finished_results() {
    for (name, number) in [("TERM", 15), ("INT", 2), ("QUIT", 3)] {
        let hang = "sleep 600 & echo $! >>child; sleep 600";
        let sandbox = tools(&[("hang", hang), ("quick", "echo quick"), ("never", "touch never")]);
        let input = calls(&["hang", "quick", "hang", "never"]);
        let child = exec(&sandbox, &["--jobs", "2"]).write_stdin(input).spawn();
        // With two jobs, the third call begins when the second one has its result.
        let grandchildren: [String; 2] = lines_of(&sandbox, "workspace/child");
        // A program that forwards signals may repeat a signal that the terminal has already sent.
        let again = format!("kill -s {name} {0} && kill -s {name} {0}", child.id());
        let sent = Command::new("sh").args(["-c", &again]).status();
        assert!(sent.is_ok_and(|status| status.success()));
        let output = child.wait_with_output().expect("an exit status");
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&output.status), Some(number));
        assert!(grandchildren.iter().all(|process| has_ended(process)));
        let stdout = String::from_utf8_lossy(&output.stdout);
        let quick = r#""tool_use_id":"t1","content":"quick\n""#;
        assert!(stdout.lines().count() == 1 && stdout.contains(quick), "{stdout}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("stopped by a signal"));
        assert!(!sandbox.exists("workspace/never"));
    }
}

#[test]
fn if_a_signal_kills_a_tool_and_then_the_program_the_call_has_no_result() {
    // The program waits briefly for its own signal, so a late one proves nothing.
    let script =
        "setsid sh -c \"sleep 0.15; kill -TERM $PPID\" >/dev/null 2>&1 & sleep 0.1; kill -TERM $$";
    patiently(|_| {
        let sandbox = tools(&[("early", script)]);
        exec(&sandbox, &[]).write_stdin(calls(&["early"])).assert().killed_by(15).stdout("");
    });
}

// ---- limits ----------------------------------------------------------------------------------

#[test]
fn long_output_is_shortened_in_the_result_and_kept_in_a_file() {
    let sandbox = tools(&[(
        "long",
        "printf 'begin\\n'; head -c 5000 /dev/zero | tr '\\0' x; printf '\\nend\\n'",
    )]);
    for (args, directory) in [(&[][..], "state/output"), (&["--keep", "deep/kept"], "deep/kept")] {
        let args = [&["--max-output", "100"], args].concat();
        let run = exec(&sandbox, &args).write_stdin(calls(&["long"])).assert();
        let [(text, false)] = &results(&run)[..] else { panic!("{}", run.stdout_text()) };
        let directory = sandbox.path(directory);
        let files: Vec<_> = fs::read_dir(&directory).expect("a directory").flatten().collect();
        assert_eq!(files.len(), 1);
        let (path, mode) =
            (files[0].path(), files[0].metadata().expect("metadata").permissions().mode());
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(fs::metadata(&directory).expect("metadata").permissions().mode() & 0o777, 0o700);
        let kept = fs::read_to_string(&path).expect("text");
        assert!(kept.len() == 5011 && kept.starts_with("begin\nxx") && kept.ends_with("xx\nend\n"));
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let marker = format!("{name}' ...]\n");
        assert!(
            text.starts_with("begin\nx") && text.ends_with("x\nend\n") && text.contains(&marker),
            "{text}"
        );
        assert!(text.contains("\n[... 4911 bytes left out; all of it is in '"), "{text}");
    }
}

#[test]
fn endless_output_is_stopped() {
    let sandbox = tools(&[("yes", "exec yes")]);
    let run = exec(&sandbox, &["--max-output", "1000"]).write_stdin(calls(&["yes"])).assert();
    let text = error(&run);
    assert!(
        text.starts_with("tool 'yes' wrote more than 67108864 bytes and was stopped\n"),
        "{text}"
    );
    assert!(text.len() < 1500 && text.contains("; the beginning is in '"), "{text}");
}

// ---- permissions and the environment ------------------------------------------------------------------

#[test]
fn t_2_tools_do_not_see_keys() {
    let sandbox = tools(&[("env", "env")]);
    let run = |args: &[&str]| {
        let cmd =
            exec(&sandbox, args).env("ANTHROPIC_API_KEY", "hush-1").env("AWS_PROFILE", "hush-2");
        let cmd =
            cmd.env("CLAW_KEY_CMD", "hush-3").env("GITHUB_TOKEN", "hush-4").env("PLAIN", "seen");
        let results = results(&cmd.write_stdin(calls(&["env"])).assert());
        results[0].0.clone()
    };
    let seen = run(&[]);
    assert!(
        !seen.contains("hush") && seen.contains("PLAIN=seen\n") && seen.contains("PATH="),
        "{seen}"
    );
    let seen = run(&["--pass-env", "GITHUB_TOKEN"]);
    assert!(seen.contains("GITHUB_TOKEN=hush-4") && seen.matches("hush").count() == 1, "{seen}");
}

#[test]
fn audit_21_tools_do_not_inherit_credentials() {
    let sandbox = tools(&[("env", "env")]);
    let hidden = [
        ("DATABASE_URL", "postgres://db"),
        ("DB_PASS", "hush"),
        ("HTTPS_PROXY", "http://me:hush@proxy:3128"),
        ("MYSQL_PWD", "hush"),
        ("MY_SECRETS", "hush"),
        ("NPM_TOKENS", "hush"),
        ("SIGNING_KEY_2", "hush"),
    ];
    let seen = |args: &[&str]| {
        let run = exec(&sandbox, args).envs(hidden).env("HTTP_PROXY", "http://proxy:3128");
        results(&run.write_stdin(calls(&["env"])).assert())[0].0.clone()
    };
    let all = seen(&[]);
    assert!(hidden.iter().all(|(name, _)| !all.contains(name)), "{all}");
    assert!(all.contains("HTTP_PROXY=http://proxy:3128\n") && all.contains("PWD="), "{all}");
    let some = seen(&["--pass-env", "HTTPS_PROXY", "--pass-env", "DB_PASS"]);
    assert!(some.contains("HTTPS_PROXY=") && some.contains("DB_PASS="), "{some}");
    assert!(!some.contains("MYSQL_PWD"), "{some}");
}

#[test]
fn a_call_that_is_not_allowed_is_not_run_and_the_model_is_told() {
    let sandbox = tools(&[("a", "echo ran"), ("b", "echo ran")]);
    let ran = |args: &[&str]| {
        let run = exec(&sandbox, args).write_stdin(calls(&["a", "b"])).assert();
        let results = results(&run);
        let denied = results.iter().filter(|(_, is_error)| *is_error);
        denied.for_each(|(text, _)| assert!(text.ends_with("is not allowed here; it was not run")));
        results.iter().map(|(_, is_error)| !is_error).collect::<Vec<_>>()
    };
    assert_eq!(ran(&["--allow", "a"]), [true, false]);
    assert_eq!(ran(&["--allow", "a", "--allow", "b"]), [true, true]);
    assert_eq!(ran(&["--deny", "a"]), [false, true]);
    assert_eq!(ran(&["--allow", "a", "--deny", "a"]), [false, false]);
}

#[test]
fn the_user_confirms_a_call_and_sees_its_whole_input() {
    let sandbox = tools(&[("a", "echo ran")]);
    sandbox.write("calls", call("t0", "a", &json!({"x": "\u{1b}[31m\r"})));
    if !can_run() {
        return;
    }
    let run = |answer: &str, args: &str| {
        let exec = format!("claw-exec --tools box {args} <calls >results");
        let mut pty = Pty::run(sandbox.sh(&exec), SIZE);
        if !answer.is_empty() {
            pty.wait_for("? [y/N] ").press(answer);
        }
        let run = pty.end();
        (run.success().stdout_text(), sandbox.read_json("results")[0]["is_error"] == true)
    };
    let (shown, denied) = run("y\n", "--ask");
    assert!(shown.contains("run a {\"x\":\"\\u001b[31m\\r\"}? [y/N] "), "{shown}");
    assert!(!shown.contains('\u{1b}') && !denied);
    assert!(run("n\n", "--ask").1 && run("\n", "--ask").1);
    // After a second, the program would show that the tool still runs.
    patiently(|_| assert_eq!(run("", "--ask --allow a"), (String::new(), false)));
    // Without a terminal, the answer is no.
    let run = sandbox.sh("setsid -w claw-exec --tools box --ask calls").assert();
    assert_eq!(
        error(&run),
        "tool 'a' is not allowed, because there is no terminal to ask the user; it was not run"
    );
}

#[test]
fn audit_03_keys_typed_before_the_question_do_not_answer_it() {
    if !can_run() {
        return;
    }
    let sandbox = tools(&[("a", "echo ran")]);
    sandbox.write("calls", call("t0", "a", &json!({})) + &call("t1", "a", &json!({})));
    // The question is shown on the terminal even if standard error is a file, and typed characters are echoed even
    // if another program has switched the terminal to raw input without echo.
    let script = "stty -icanon; echo ready; until test -e go; do sleep 0.01; done; stty -echo
        claw-exec --tools box --ask <calls >results 2>errors; stty -a | tr ' ;' '\n\n' >modes";
    let mut pty = Pty::run(sandbox.sh(script), SIZE);
    pty.wait_for("ready").press("y\ry\r").wait_for("y\r\ny\r\n");
    sandbox.write("go", "");
    pty.wait_for("run a {}? [y/N] ").press("n\r").wait_for("n\r\n");
    pty.wait_for("run a {}? [y/N] ").press("y\r").wait_for("y\r\n").end().success();
    let denied = |n: usize| sandbox.read_json("results")[n]["is_error"] == true;
    assert!(denied(0) && !denied(1), "{}", pty.output());
    assert_eq!(sandbox.read_text("errors"), "");
    assert!(sandbox.read_text("modes").lines().any(|mode| mode == "-icanon"));
}
