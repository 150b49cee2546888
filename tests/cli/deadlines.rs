//! Deadlines and signals: they end a program and every process that it started, within two seconds.

use std::io::Read;
use std::net::TcpListener;
use std::os::unix::process::ExitStatusExt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use predicates::str::contains;

use crate::common::pty::{CTRL_C, Pty, can_run};
use crate::common::{Cmd, Sandbox, patiently, send};
use crate::conversations::{Conversation, rebuild_meta};
use crate::summaries::{compacted, with_model};

/// The longest time until all processes have ended. It includes the second that a child has to exit after SIGTERM.
const AT_ONCE: Duration = Duration::from_secs(2);

/// Returns a command that starts several processes, some of which ignore SIGTERM. All but `cat` have `mark` in their
/// arguments. The command creates the file `begun` once they run.
fn stubborn(mark: &str) -> String {
    format!("sh -c 'trap \"\" TERM; sleep {mark} & sleep {mark} & : >begun; wait' | cat")
}

/// Returns true if a process with `mark` in its arguments, which would run for days, is still running after a while.
fn is_left(mark: &str) -> bool {
    let has_mark = || {
        let entries = std::fs::read_dir("/proc").expect("processes").flatten();
        let line = |entry: std::fs::DirEntry| std::fs::read(entry.path().join("cmdline")).ok();
        entries.filter_map(line).any(|line| memchr::memmem::find(&line, mark.as_bytes()).is_some())
    };
    let begun = Instant::now();
    while has_mark() {
        if begun.elapsed() > Duration::from_secs(20) {
            return true;
        }
        thread::sleep(Duration::from_millis(20));
    }
    false
}

#[track_caller]
fn wait_for(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(50), "no {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// A transcript with a stub summary and with further messages to summarise, and the messages rebuilt from it.
static CONVERSATION: LazyLock<[Vec<u8>; 2]> = LazyLock::new(|| {
    let sandbox = with_model();
    Conversation::plain(12, 300).append(&sandbox, "s.jsonl");
    compacted(&sandbox, &["--max-calls", "0", "--emergency"]);
    Conversation::plain(12, 900).append(&sandbox, "s.jsonl");
    let messages = rebuild_meta(&sandbox, "s.jsonl");
    [sandbox.read("s.jsonl"), messages.into_bytes()]
});

/// Returns a sandbox with [`CONVERSATION`] in the files `s.jsonl` and `m`.
fn with_conversation() -> Sandbox {
    let sandbox = with_model();
    let [transcript, messages] = &*CONVERSATION;
    sandbox.write("s.jsonl", transcript);
    sandbox.write("m", messages);
    sandbox
}

/// The programs that ask a model for a summary.
const PROGRAMS: [(&str, &[&str]); 3] = [
    ("claw-compact", &["--no-fallback", "m"]),
    ("claw-checkpoint", &["m"]),
    ("claw-retry", &["s.jsonl"]),
];

/// Runs a check with all programs in parallel, because the check spends most of its time waiting.
fn with_each_program(check: impl Fn(&str, &[&str]) + Sync) {
    LazyLock::force(&CONVERSATION);
    thread::scope(|scope| {
        for (program, args) in PROGRAMS {
            let check = &check;
            scope.spawn(move || check(program, args));
        }
    });
}

#[test]
fn audit_12_a_deadline_ends_all_processes_that_a_command_started() {
    with_each_program(|program, args| {
        patiently(|times| assert_deadline_ends(program, args, times))
    });
}

/// Sets a deadline for the program, and checks that it and its command end.
fn assert_deadline_ends(program: &str, args: &[&str], times: u32) {
    let mark = format!("60{}.{times}1{}", std::process::id(), program.len());
    let (sandbox, limit) = (with_conversation(), Duration::from_millis(400) * times);
    let options = ["--deadline", &limit.as_secs_f64().to_string(), "--call", &stubborn(&mark)];
    let begun = Instant::now();
    let run = sandbox.cmd(program).args(options).args(args).assert();
    let took = begun.elapsed();
    run.code(69).stdout("").stderr(contains("did not end in time"));
    assert!(took < limit + AT_ONCE + Duration::from_millis(500), "{program}: {took:?}");
    assert!(sandbox.exists("begun") && !is_left(&mark), "{program}");
}

#[test]
fn audit_12_a_signal_ends_all_processes_that_a_command_started() {
    with_each_program(|program, args| {
        for signal in [("TERM", 15), ("INT", 2), ("HUP", 1)] {
            patiently(|times| assert_signal_ends(program, args, signal, times));
        }
    });
}

/// Sends a signal to the program once its command runs, and checks that both end.
fn assert_signal_ends(program: &str, args: &[&str], (name, number): (&str, i32), times: u32) {
    let mark = format!("60{}.{times}2{}{number}", std::process::id(), program.len());
    let sandbox = with_conversation();
    let cmd = sandbox.cmd(program).args(["--call", &stubborn(&mark)]).args(args);
    let mut child = cmd.spawn();
    wait_for("call", || sandbox.exists("begun"));
    let begun = Instant::now();
    send(name, child.id());
    let end = child.wait().expect("an exit status");
    let took = begun.elapsed();
    assert!(took < AT_ONCE, "{program} {name}: {took:?}");
    let status = end.signal().or(end.code().map(|code| code - 128));
    assert_eq!(status, Some(number), "{program} {name}: {end}");
    assert!(!is_left(&mark), "{program} {name}");
    assert!(!sandbox.exists(".s.jsonl.retry"), "{program} {name}");
}

#[test]
fn audit_12_children_can_read_the_terminal_and_are_ended_too() {
    if !can_run() {
        return;
    }
    let sandbox = with_conversation();
    let compact = |options: &str, call: &str| {
        sandbox.write("call", call);
        let script = format!("claw-compact --no-fallback {options} --call 'sh ./call #' m >out");
        Pty::run(sandbox.sh(&script), (100, 10))
    };
    // The command can read the terminal.
    let asks = "printf 'word? '; read -r word; echo \"$word\" >word; cat reply >&3";
    let mut pty = compact("", &format!("{{ {asks}; }} 3>&1 </dev/tty >/dev/tty 2>&1"));
    pty.wait_for("word? ").press("yes\r").end().success();
    assert_eq!(sandbox.read_text("word"), "yes\n");
    // A deadline and Ctrl-C end all processes.
    patiently(|times| {
        let mark = format!("60{}.{times}31", std::process::id());
        let limit = format!("--deadline {}", 0.4 * f64::from(times));
        compact(&limit, &stubborn(&mark)).end().code(69);
        assert!(sandbox.exists("begun") && !is_left(&mark));
    });
    sandbox.sh("rm begun").assert().success();
    let mark = format!("60{}.32", std::process::id());
    let mut pty = compact("", &stubborn(&mark));
    wait_for("call", || sandbox.exists("begun"));
    pty.press(CTRL_C);
    let end = pty.end();
    let (signal, status) = (end.get_output().status.signal(), end.get_output().status.code());
    assert!(signal == Some(2) || status == Some(130), "{signal:?} {status:?}");
    assert!(!is_left(&mark));
}

// ---- turns -----------------------------------------------------------------------------------

/// Starts a server that accepts requests and never answers. Returns its URL, a counter of the requests, and a channel
/// that gets a message when a connection ends.
fn silent() -> (String, Arc<AtomicUsize>, mpsc::Receiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let (count, (sender, ends)) = (Arc::new(AtomicUsize::new(0)), mpsc::channel());
    let seen = Arc::clone(&count);
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let (seen, sender) = (Arc::clone(&seen), sender.clone());
            thread::spawn(move || {
                let mut buffer = [0; 4096];
                let mut counted = false;
                while stream.read(&mut buffer).is_ok_and(|count| count > 0) {
                    seen.fetch_add(usize::from(!counted), Ordering::SeqCst);
                    counted = true;
                }
                let _ = sender.send(());
            });
        }
    });
    (url, count, ends)
}

fn turn(sandbox: &Sandbox, url: &str, args: &[&str]) -> Cmd {
    let env = [("CLAW_PROVIDER", "openai"), ("CLAW_MODEL", "m"), ("CLAW_BASE_URL", url)];
    let cmd = sandbox.cmd("claw-turn").envs(env).env("TMPDIR", sandbox.dir()).args(args);
    cmd.args(["--no-checkpoint", "-m", "next?", "s.jsonl"])
}

#[test]
fn audit_12_a_signal_to_the_turn_alone_ends_the_call_at_once() {
    for args in [&[][..], &["--stream"]] {
        for (name, number) in [("TERM", 15), ("INT", 2), ("HUP", 1)] {
            patiently(|_| assert_call_ends(args, name, number));
        }
    }
}

/// Sends a signal to a turn that waits for its reply, and checks that the turn and the call end.
fn assert_call_ends(args: &[&str], name: &str, number: i32) {
    let (sandbox, (url, count, ends)) = (Sandbox::new(), silent());
    let mut child = turn(&sandbox, &url, args).spawn();
    wait_for("request", || count.load(Ordering::SeqCst) == 1);
    let begun = Instant::now();
    send(name, child.id());
    // Both outputs can be read to their end only if no process keeps them open.
    let mut output = String::new();
    let (mut out, mut err) = (child.stdout.take(), child.stderr.take());
    out.as_mut().expect("a pipe").read_to_string(&mut output).expect("text");
    err.as_mut().expect("a pipe").read_to_string(&mut output).expect("text");
    let end = child.wait().expect("an exit status");
    let took = begun.elapsed();
    assert!(took < AT_ONCE, "{args:?} {name}: {took:?}");
    assert_eq!(end.code(), Some(128 + number), "{args:?} {name}");
    ends.recv_timeout(AT_ONCE).expect("the end of the connection");
    sandbox.sh("ls -A | grep -v '^bin$\\|^state$\\|^tmp$'").assert().stdout("s.jsonl\n");
    assert_eq!(sandbox.read_json("s.jsonl").len(), 1, "{output}");
}

#[test]
fn audit_12_ignored_signals_stay_ignored() {
    let (sandbox, (url, count, _ends)) = (Sandbox::new(), silent());
    let script = "trap '' HUP INT; exec claw-turn --no-checkpoint -m next? s.jsonl";
    let env = [("CLAW_PROVIDER", "openai"), ("CLAW_MODEL", "m"), ("CLAW_BASE_URL", &url)];
    let mut child = sandbox.sh(script).envs(env).env("TMPDIR", sandbox.dir()).spawn();
    wait_for("request", || count.load(Ordering::SeqCst) == 1);
    send("HUP", child.id());
    send("INT", child.id());
    thread::sleep(Duration::from_millis(300));
    assert!(child.try_wait().expect("the state of the process").is_none());
    send("TERM", child.id());
    assert_eq!(child.wait().expect("an exit status").code(), Some(143));
    sandbox.sh("ls -A | grep -v '^bin$\\|^state$\\|^tmp$'").assert().stdout("s.jsonl\n");
}

/// If SIGHUP is ignored, as under nohup(1), claw-exec does not end its tools when it receives that signal.
#[test]
fn audit_12_tools_survive_an_ignored_hangup() {
    let sandbox =
        crate::exec::tools(&[("slow", ": >begun; until test -e go; do sleep 0.02; done")]);
    let call = r#"{"type":"tool_use","tool_use_id":"t","name":"slow","input":{}}"#;
    sandbox.write("calls", format!("{call}\n"));
    let script = "trap '' HUP; exec claw-exec --tools box calls >results";
    let mut child = sandbox.sh(script).spawn();
    wait_for("tool", || sandbox.exists("workspace/begun"));
    send("HUP", child.id());
    thread::sleep(Duration::from_millis(100));
    sandbox.write("workspace/go", "");
    assert!(child.wait().expect("an exit status").success());
    assert_eq!(sandbox.read_json("results")[0]["tool_use_id"], "t");
}
