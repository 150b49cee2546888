//! claw-session repair: a session of another program is changed only where it must be, never while the program uses it, and
//! its original is kept.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use assert_cmd::assert::Assert;
use predicates::prelude::PredicateBooleanExt;
use predicates::str::contains;

use crate::common::{AssertExt, Sandbox};

/// A session of pi: a prompt, a call whose result is missing, and another prompt.
const STUCK: &str = r#"{"type":"session","version":3,"id":"01a2055f-c1d8-71d4-a02d-e2c5b96156fd","timestamp":"2026-01-01T00:00:00Z","cwd":"/w"}
{"type":"message","id":"aaaaaaaa","parentId":null,"timestamp":"2026-01-01T00:00:01Z","message":{"role":"user","content":"List the files"}}
{"type":"message","id":"bbbbbbbb","parentId":"aaaaaaaa","timestamp":"2026-01-01T00:00:02Z","message":{"role":"assistant","content":[{"type":"text","text":"I look."}],"api":"anthropic-messages","provider":"anthropic","model":"claude-a","stopReason":"stop"}}
{"type":"message","id":"cccccccc","parentId":"bbbbbbbb","timestamp":"2026-01-01T00:00:03Z","message":{"role":"user","content":"And?"}}
{"type":"message","id":"dddddddd","parentId":"cccccccc","timestamp":"2026-01-01T00:00:04Z","message":{"role":"assistant","content":[{"type":"toolCall","id":"c1","name":"ls","arguments":{}}],"api":"anthropic-messages","provider":"anthropic","model":"claude-a","stopReason":"toolUse"}}
{"type":"message","id":"eeeeeeee","parentId":"dddddddd","timestamp":"2026-01-01T00:00:05Z","message":{"role":"user","content":"Go on"}}
"#;

const FILE: &str = "s.jsonl";

fn repair(sandbox: &Sandbox, args: &[&str]) -> Assert {
    sandbox.cmd("claw-session").arg("repair").args(args).assert()
}

fn stuck() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write(FILE, STUCK);
    sandbox
}

#[test]
fn a_dry_run_prints_a_line_for_each_change_and_changes_nothing() {
    let sandbox = stuck();
    let run = repair(&sandbox, &["--dry-run", "--last-good", FILE]).code(1);
    let expected = [
        "s.jsonl:5: insert: call 'c1' has no result",
        "s.jsonl:6: change: its parent is the inserted result now",
        "s.jsonl: last good: the first 3 lines",
    ];
    assert_eq!(run.lines(), expected);
    assert_eq!(sandbox.read_text(FILE), STUCK);
    assert!(!sandbox.exists("s.jsonl.repaired") && !sandbox.exists("s.jsonl.last-good"));
}

#[test]
fn a_repaired_copy_is_written_beside_the_original() {
    let sandbox = stuck();
    let file = sandbox.path(FILE);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    let run = repair(&sandbox, &["--last-good", FILE]).success();
    assert_eq!(run.lines(), ["s.jsonl.last-good", "s.jsonl.repaired"]);
    assert_eq!(sandbox.read_text(FILE), STUCK);
    let lines: Vec<&str> = STUCK.lines().collect();
    assert_eq!(sandbox.read_text("s.jsonl.last-good").lines().collect::<Vec<_>>(), lines[..3]);
    let text = sandbox.read_text("s.jsonl.repaired");
    let repaired: Vec<&str> = text.lines().collect();
    assert_eq!((&repaired[..5], repaired.len()), (&lines[..5], 7));
    let mode = sandbox.path("s.jsonl.repaired").metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
    // The copy is not replaced, and has nothing left to repair.
    repair(&sandbox, &[FILE]).code(74).stderr(contains("it exists; move or remove it first"));
    fs::rename(sandbox.path("s.jsonl.repaired"), sandbox.path("r.jsonl")).unwrap();
    repair(&sandbox, &["--dry-run", "r.jsonl"]).success().stdout("");
    fs::set_permissions(sandbox.path("r.jsonl"), fs::Permissions::from_mode(0o600)).unwrap();
    sandbox.cmd("claw-check").arg("r.jsonl").assert().success().stdout("");
    assert!(!sandbox.exists("r.jsonl.repaired"));
}

#[test]
fn in_place_keeps_every_original() {
    let sandbox = stuck();
    repair(&sandbox, &["--in-place", FILE]).success();
    assert_eq!(sandbox.read_text("s.jsonl.damaged"), STUCK);
    let repaired = sandbox.read_text(FILE);
    assert_ne!(repaired, STUCK);
    repair(&sandbox, &["--in-place", FILE]).success().stdout("");
    assert!(!sandbox.exists("s.jsonl.damaged.2"));
    sandbox.write(FILE, STUCK.replace("List", "Count"));
    repair(&sandbox, &["--in-place", FILE]).success();
    assert_eq!(sandbox.read_text("s.jsonl.damaged"), STUCK);
    assert_eq!(sandbox.read_text("s.jsonl.damaged.2"), STUCK.replace("List", "Count"));
}

#[test]
fn a_repaired_session_is_as_old_as_the_original() {
    let sandbox = stuck();
    sandbox.write("new.jsonl", STUCK);
    let time = |name: &str| sandbox.path(name).metadata().unwrap().modified().unwrap();
    let old = SystemTime::UNIX_EPOCH + Duration::new(1_577_836_800, 123_000_000);
    fs::File::options().write(true).open(sandbox.path(FILE)).unwrap().set_modified(old).unwrap();
    let new = time("new.jsonl");
    repair(&sandbox, &["--last-good", FILE, "new.jsonl"]).success();
    repair(&sandbox, &["--in-place", "new.jsonl", FILE]).success();
    assert_ne!(sandbox.read_text(FILE), STUCK);
    for ending in ["", ".repaired", ".last-good", ".damaged"] {
        assert_eq!(time(&[FILE, ending].concat()), old, "{ending}");
        assert_eq!(time(&["new.jsonl", ending].concat()), new, "{ending}");
    }
}

#[test]
fn files_that_a_repair_wrote_are_passed_over() {
    let sandbox = stuck();
    let others = ["s.jsonl.damaged", "s.jsonl.damaged.12", "s.jsonl.last-good", "s.jsonl.repaired"];
    for name in others {
        sandbox.write(name, STUCK);
    }
    sandbox.write("s.jsonl.12", STUCK);
    let all = "claw-session repair --in-place s.jsonl*";
    let run = sandbox.sh(all).assert().success().stdout("s.jsonl\ns.jsonl.12\n");
    run.stderr(contains("passed over 4 of 6 files, which a repair wrote\n"));
    for name in others {
        assert_eq!(sandbox.read_text(name), STUCK, "{name}");
    }
    assert!(!sandbox.exists("s.jsonl.damaged.damaged"));
    // Now there is nothing to repair, and the originals are no damage that a dry run counts.
    sandbox.sh(all).assert().success().stdout("");
    sandbox.sh("claw-session repair --dry-run s.jsonl*").assert().success().stdout("");
    // One alone can be looked at and copied, but not replaced.
    sandbox.sh("ln -s s.jsonl.damaged link").assert().success();
    for name in ["s.jsonl.damaged", "link"] {
        let why = format!("cannot repair '{name}' in place: a repair wrote it; copy it first");
        repair(&sandbox, &["--in-place", name]).code(65).stdout("").stderr(contains(why));
    }
    repair(&sandbox, &["--dry-run", "s.jsonl.damaged"]).code(1).stdout(contains(":5: insert"));
    repair(&sandbox, &["s.jsonl.damaged"]).success().stdout("s.jsonl.damaged.repaired\n");
}

#[test]
fn a_repair_that_was_killed_keeps_the_original_once() {
    let sandbox = stuck();
    fs::hard_link(sandbox.path(FILE), sandbox.path("s.jsonl.damaged")).unwrap();
    repair(&sandbox, &["--in-place", FILE])
        .success()
        .stderr(contains("kept the original as 's.jsonl.damaged'\n"));
    assert_eq!(sandbox.read_text("s.jsonl.damaged"), STUCK);
    assert_ne!(sandbox.read_text(FILE), STUCK);
    assert!(!sandbox.exists("s.jsonl.damaged.2"));
}

#[cfg(target_os = "linux")]
#[test]
fn a_session_that_a_process_uses_is_not_replaced() {
    let sandbox = stuck();
    let held = sandbox
        .sh("exec 3<s.jsonl; sleep 30 <&3 & \
             claw-session repair --in-place s.jsonl 3<&-; status=$?; kill $!; exit $status")
        .assert();
    held.code(75).stderr(contains("cannot replace 's.jsonl': process "));
    assert_eq!(sandbox.read_text(FILE), STUCK);
    let locked = sandbox
        .sh("sleep 30 & echo \"{\\\"pid\\\":$!}\" >s.jsonl.lock; \
             claw-session repair --in-place s.jsonl; status=$?; kill $!; exit $status")
        .assert();
    locked.code(75).stderr(contains("uses it; end it first"));
    assert_eq!(sandbox.read_text(FILE), STUCK);
    // A copy harms nobody.
    sandbox.sh("exec 3<s.jsonl; claw-session repair s.jsonl").assert().success();
}

#[test]
fn what_is_no_session_is_named() {
    let sandbox = stuck();
    sandbox.write("notes.txt", "notes\n");
    sandbox.write("empty.jsonl", "");
    repair(&sandbox, &["notes.txt"]).code(65).stderr(contains("looks like text"));
    repair(&sandbox, &["empty.jsonl"]).code(65).stderr(contains("it is empty"));
    repair(&sandbox, &["nowhere.jsonl"]).code(74).stderr(contains("cannot read 'nowhere.jsonl'"));
    repair(&sandbox, &["--dry-run", "--in-place", FILE]).code(2).stdout("");
    repair(&sandbox, &[]).code(2).stdout("");
}

#[test]
fn files_after_one_that_cannot_be_repaired_are_repaired_and_the_worst_status_counts() {
    let sandbox = stuck();
    sandbox.write("empty.jsonl", "");
    sandbox.write("other.jsonl", STUCK);
    let run = repair(&sandbox, &[FILE, "empty.jsonl", "nowhere.jsonl", "other.jsonl"]).code(74);
    let run = run.stdout("s.jsonl.repaired\nother.jsonl.repaired\n");
    run.stderr(contains("'empty.jsonl': it is empty").and(contains("cannot read 'nowhere.jsonl'")));
    // Damage that a dry run finds is less than a file that cannot be read.
    repair(&sandbox, &["--dry-run", "empty.jsonl", FILE]).code(65).stdout(contains("s.jsonl:5:"));
}

#[test]
fn files_without_damage_are_counted_if_there_are_several() {
    let sandbox = stuck();
    let sound: String = STUCK.lines().take(3).map(|line| line.to_owned() + "\n").collect();
    for number in 0..5 {
        sandbox.write(&format!("{number}.jsonl"), &sound);
    }
    let own = |name| sandbox.cmd("claw-append").args(["--user", name]).write_stdin("a").assert();
    own("own.jsonl").success();
    sandbox.write("old.jsonl.damaged", STUCK);
    let all = "claw-session repair --dry-run [0-9].jsonl own*.jsonl old.jsonl.damaged s.jsonl";
    let lines = "s.jsonl:5: insert: call 'c1' has no result
s.jsonl:6: change: its parent is the inserted result now
";
    sandbox.sh(all).assert().code(1).stdout(lines).stderr(
        "claw-session: nothing to repair in 5 of 8 files
claw-session: 1 of 8 files is a session of clawutils: claw-rebuild repairs it while reading
claw-session: passed over 1 of 8 files, which a repair wrote
",
    );
    own("own-2.jsonl").success();
    let two = "2 of 9 files are sessions of clawutils: claw-rebuild repairs them while reading\n";
    sandbox.sh(all).assert().code(1).stdout(lines).stderr(contains(two));
    // One file is named.
    let one = repair(&sandbox, &["0.jsonl"]).success().stdout("");
    one.stderr("claw-session: nothing to repair in '0.jsonl'\n");
    let one = repair(&sandbox, &["own.jsonl"]).success().stdout("");
    one.stderr("claw-session: 'own.jsonl' is a session of clawutils: claw-rebuild repairs it while reading\n");
}

#[test]
fn what_is_not_a_regular_file_is_refused_at_once() {
    let sandbox = stuck();
    sandbox.sh("mkfifo pipe; ln -s pipe link; mkdir directory \"it's\"").assert().success();
    for name in ["pipe", "link", "/dev/null"] {
        let why = format!("cannot repair '{name}': not a regular file\n");
        repair(&sandbox, &["--dry-run", name]).code(65).stderr(contains(why));
    }
    for (name, files) in [
        ("directory", "'directory'/*.jsonl"),
        ("directory//", "'directory'/*.jsonl"),
        ("./directory", "'./directory'/*.jsonl"),
        ("it's", "'it'\\''s'/*.jsonl"),
        (".", "'.'/*.jsonl"),
    ] {
        let why = format!("cannot repair '{name}': is a directory; name its files: {files}\n");
        repair(&sandbox, &["--in-place", name]).code(65).stdout("").stderr(contains(why));
    }
    let piped = sandbox.sh("bash -c 'claw-session repair <(cat s.jsonl)'").assert();
    piped.code(65).stderr(contains("not a regular file"));
    sandbox.write("nul.jsonl", "\0".repeat(4096));
    repair(&sandbox, &["nul.jsonl"]).code(65).stderr(contains("it has NUL bytes and no record"));
}

#[test]
fn a_session_of_codex_whose_id_is_lost_is_refused_until_its_name_has_one() {
    let sandbox = Sandbox::new();
    let item = r#"{"timestamp":"2026-01-01T00:00:01Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"one"}]}}"#;
    sandbox.write("lost.jsonl", format!("{item}\n"));
    let run = repair(&sandbox, &["--dry-run", "lost.jsonl"]).code(65).stdout("");
    run.stderr(
        contains("it has no session_meta").and(contains("rename it to rollout-TIME-ID.jsonl")),
    );
    let named = "rollout-2026-01-01T00-00-00-00000000-0000-4000-8000-000000000000.jsonl";
    sandbox.write(named, format!("{item}\n"));
    let added = contains("the facts of the session are missing");
    repair(&sandbox, &["--dry-run", named]).code(1).stdout(added);
}

#[test]
fn paths_are_printed_as_they_are_unless_a_terminal_shows_them() {
    let sandbox = Sandbox::new();
    let name = "\u{1b}[31mred é.jsonl";
    sandbox.write(name, STUCK);
    let run = repair(&sandbox, &["--dry-run", name]).code(1);
    run.stdout(contains(format!("{name}:5: insert")));
    repair(&sandbox, &[name]).success().stdout(format!("{name}.repaired\n"));
    let script = format!("script -qec \"claw-session repair --dry-run '{name}'\" /dev/null");
    let shown = sandbox.sh(&script).assert().stdout_text().to_owned();
    assert!(shown.contains("\\u{1b}[31mred") && !shown.contains('\u{1b}'), "{shown:?}");
}

#[test]
fn a_session_of_clawutils_is_left_to_claw_rebuild() {
    let sandbox = Sandbox::new();
    sandbox
        .cmd("claw-append")
        .args(["--user", "own.jsonl"])
        .write_stdin("Hello")
        .assert()
        .success();
    let text = sandbox.read_text("own.jsonl") + "{\"id\":\"torn";
    sandbox.write("own.jsonl", &text);
    let run = repair(&sandbox, &["--in-place", "own.jsonl"]).success().stdout("");
    run.stderr(contains("claw-rebuild repairs"));
    assert_eq!(sandbox.read_text("own.jsonl"), text);
}

#[test]
fn a_session_that_only_carry_reads_is_left_to_it() {
    let sandbox = stuck();
    let session = |args: &[&str]| sandbox.cmd("claw-session").args(args).env("HOME", "h").assert();
    let text = session(&["export", "--to", "gemini-cli", FILE]).success().stdout_text();
    sandbox.write("gem.json", &text);
    let copilot = include_str!("../data/dialects/injected/copilot.jsonl");
    sandbox.write("copilot.jsonl", copilot);
    for (name, program) in [("gem.json", "Gemini CLI"), ("copilot.jsonl", "Copilot CLI")] {
        let what = format!("cannot repair '{name}': a session of {program} cannot be repaired");
        let what = format!("{what} in place; 'claw-session carry' continues it");
        repair(&sandbox, &["--in-place", name]).code(65).stdout("").stderr(contains(what));
        session(&["carry", "--to", "codex", &format!("./{name}")]).success();
    }
    assert_eq!(sandbox.read_text("gem.json"), text);
}

#[test]
fn thinking_is_left_out_if_asked() {
    let sandbox = Sandbox::new();
    let thinking = r#"{"type":"thinking","thinking":"t","thinkingSignature":"c2lnbmVk"},{"type":"text","text":"I look."}"#;
    let text = STUCK.replace(r#"{"type":"text","text":"I look."}"#, thinking);
    let sound: String = text.lines().take(3).map(|line| line.to_owned() + "\n").collect();
    sandbox.write(FILE, &sound);
    repair(&sandbox, &["--dry-run", FILE]).success().stdout("");
    repair(&sandbox, &["--dry-run", "--without-thinking", FILE])
        .code(1)
        .stdout(contains("its thinking is left out, as asked"));
}

/// The sessions that other programs wrote, where they are present, are not changed.
#[test]
fn sound_sessions_of_other_programs_are_not_changed() {
    let sandbox = Sandbox::new();
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let corpus = std::env::var_os("CLAW_CORPUS").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/corpus"),
        std::path::PathBuf::from,
    );
    let mut count = 0;
    for place in ["claw0-first", "claw0-present"]
        .map(|name| data.join(name))
        .into_iter()
        .chain(["claude-code", "codex", "pi"].map(|name| corpus.join(name)))
    {
        for entry in walkdir::WalkDir::new(&place).into_iter().flatten() {
            if entry.path().extension().is_some_and(|extension| extension == "jsonl") {
                let path = entry.path().to_string_lossy();
                repair(&sandbox, &["--dry-run", "--last-good", &path]).success().stdout("");
                count += 1;
            }
        }
    }
    assert!(count >= 7, "{count}");
}
