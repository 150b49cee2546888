//! `claw-show --output DIR`: a site of many sessions. It is updated in place, writes nothing but its own files, and runs and
//! loads nothing.

use std::collections::BTreeMap;
use std::fs;

use predicates::prelude::PredicateBooleanExt;
use predicates::str::contains;
use serde_json::json;

use super::browser::seen;
use super::{data, reply, user};
use crate::common::{AssertExt, Sandbox};

/// Makes a directory with sessions of several programs.
fn sessions() -> Sandbox {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.path("all")).expect("a directory");
    for name in ["claude-code", "codex", "pi"] {
        let text = fs::read_to_string(data(&format!("dialects/injected/{name}.jsonl")));
        let text = text.expect("a session").replace("@PROMPT@", name).replace("@TYPED@", "own");
        sandbox.write(&format!("all/{name}.jsonl"), text);
    }
    let header = r#"{"type":"session","id":"ours","key":"k","label":"Our <b>label</b>","created":"2026-01-02T00:00:00Z"}"#;
    sandbox
        .write("all/ours.jsonl", format!("{header}\n{}{}", user("a question"), reply("an answer")));
    sandbox.write("all/notes.jsonl", "{\"no\":\"transcript\"}\n");
    sandbox.write("all/other.txt", "no transcript");
    sandbox
}

/// Appends text to a file.
fn append(sandbox: &Sandbox, name: &str, text: &str) {
    let before = sandbox.read_text(name);
    sandbox.write(name, before + text);
}

/// Returns the files of a site with their texts.
fn files(sandbox: &Sandbox, site: &str) -> BTreeMap<String, String> {
    let entries = fs::read_dir(sandbox.path(site)).expect("a site");
    let file = |entry: fs::DirEntry| {
        let text = fs::read(entry.path()).expect("a file");
        (
            entry.file_name().to_string_lossy().into_owned(),
            String::from_utf8_lossy(&text).into_owned(),
        )
    };
    entries.map(|entry| file(entry.expect("an entry"))).collect()
}

const NAMES: [&str; 7] = [
    ".claw-show.jsonl",
    "01a2055f-0000-7000-8000-000000000003.html",
    "01a2056d-0000-7000-8000-000000000001.html",
    "11111111-2222-4333-8444-555555555555.html",
    "index.html",
    "ours.html",
    "statistics.html",
];

#[test]
fn audit_42_a_site_has_an_index_a_page_per_session_and_statistics() {
    let sandbox = sessions();
    let run = sandbox.cmd("claw-show").args(["--output", "site/", "all"]).assert().success();
    run.stdout("").stderr("claw-show: 4 sessions, 6 files written, 0 removed\n");
    let files = files(&sandbox, "site");
    assert_eq!(files.keys().map(String::as_str).collect::<Vec<_>>(), NAMES);
    let index = &files["index.html"];
    for shown in [
        "<a href=\"ours.html\" dir=\"auto\">Our &lt;b&gt;label&lt;/b&gt;</a>",
        ">shop</h2>",
        "<h3>2026-03-01</h3>",
        "Claude Code · claude-sonnet-4-5 · 4 turns · 17 s · 400 in · 20 out · $0.0015 · 1 call",
        "<p class=\"tools\">update_plan 1</p>",
        "<span class=\"unfinished\">interrupted</span>",
        "aria-label=\"size of the context, at most 100 tokens\"",
    ] {
        assert!(index.contains(shown), "{shown}\n{index}");
    }
    assert!(!index.contains("ADDED"), "{index}");
    // Within a project, sessions are linked in the order of their times.
    let page = &files["01a2055f-0000-7000-8000-000000000003.html"];
    assert!(
        page.contains("rel=\"next\">Next</a>") || page.contains("rel=\"prev\">Previous</a>"),
        "{page}"
    );
    let ours = &files["ours.html"];
    assert!(!ours.contains("rel=\"next\"") && !ours.contains("rel=\"prev\""), "{ours}");
    assert!(ours.contains("id=\"turn-1\"") && ours.contains("an answer"), "{ours}");
    let statistics = &files["statistics.html"];
    assert!(
        statistics.contains("4 sessions") && statistics.contains("update_plan"),
        "{statistics}"
    );
    // No path of a source is on the site, only its last directory.
    for (name, text) in &files {
        assert!(!text.contains("/home/me") && !text.contains("all/"), "{name}");
    }
    let mode = sandbox.sh("stat -c %a site site/index.html").assert().success().stdout_text();
    assert_eq!(mode, "700\n600\n");
}

#[test]
fn audit_42_an_update_writes_only_what_changed() {
    let sandbox = sessions();
    let update = |expected: &str| {
        let run = sandbox.cmd("claw-show").args(["--output", "site", "all"]).assert().success();
        run.stderr(format!("claw-show: {expected}\n"));
    };
    update("4 sessions, 6 files written, 0 removed");
    let before = files(&sandbox, "site");
    let stamps = || sandbox.sh("stat -c '%n %y %i' site/*.html site/.claw*").assert().stdout_text();
    let old = stamps();
    update("4 sessions, 0 files written, 0 removed");
    assert_eq!(stamps(), old);

    append(&sandbox, "all/ours.jsonl", &(user("more") + &reply("another answer")));
    update("4 sessions, 3 files written, 0 removed");
    let after = files(&sandbox, "site");
    let changed: Vec<&str> =
        after.keys().filter(|name| before[*name] != after[*name]).map(String::as_str).collect();
    assert_eq!(changed, [".claw-show.jsonl", "index.html", "ours.html", "statistics.html"]);
    assert!(after["ours.html"].contains("another answer"));

    // A new session between two others changes the links of its neighbours.
    let text = sandbox.read_text("all/codex.jsonl").replace("000000000001", "000000000009");
    sandbox.write("all/codex-2.jsonl", text.replace("09:00:0", "08:00:0"));
    update("5 sessions, 4 files written, 0 removed");
    // A removed session takes its page with it.
    fs::remove_file(sandbox.path("all/codex-2.jsonl")).expect("a file");
    fs::remove_file(sandbox.path("all/ours.jsonl")).expect("a file");
    update("3 sessions, 3 files written, 2 removed");
    // The same site as one made at once.
    sandbox.cmd("claw-show").args(["--output", "new/", "all"]).assert().success();
    let (mut updated, mut new) = (files(&sandbox, "site"), files(&sandbox, "new"));
    for site in [&mut updated, &mut new] {
        site.remove(".claw-show.jsonl");
    }
    assert!(updated == new, "the updated site must be the same as a new one");

    // What cannot be found may be on a disk that is not mounted, so that no page is removed.
    let before = files(&sandbox, "site").len();
    let run = sandbox.cmd("claw-show").args(["--output", "site/", "missing"]).assert().code(74);
    run.stderr(contains(", 0 removed\n")).stderr(contains("'missing'"));
    assert_eq!(files(&sandbox, "site").len(), before);
    assert!(!sandbox.exists("site/ours.html"));
}

#[test]
fn sessions_that_may_be_in_what_cannot_be_read_stay_on_the_site() {
    let sandbox = sessions();
    let site = |operands: &[&str]| {
        sandbox.cmd("claw-show").args(["--output", "site/"]).args(operands).assert()
    };
    site(&["all"]).success();
    let before = files(&sandbox, "site");
    // A mistyped directory.
    let run = site(&["al"]).code(74);
    run.stderr(contains("claw-show: 4 sessions, 0 files written, 0 removed\n"));
    assert!(files(&sandbox, "site") == before, "nothing may change");
    // One of two, and a new session that has the id of one that stays.
    let header = r#"{"type":"session","id":"ours","key":"k","created":"2026-01-03T00:00:00Z"}"#;
    sandbox.write("new/s.jsonl", format!("{header}\n{}", user("something else")));
    site(&["new", "al"]).code(74).stderr(contains("5 sessions, ").and(contains(" 0 removed\n")));
    let after = files(&sandbox, "site");
    assert_eq!(after["ours.html"], before["ours.html"]);
    for page in ["ours.html", "ours-2.html", "01a2055f-0000-7000-8000-000000000003.html"] {
        assert!(after.contains_key(page), "{page} {:?}", after.keys());
        assert!(after["index.html"].contains(&format!("href=\"{page}\"")), "{page}");
    }
    // Without an error, they are gone.
    site(&["new"]).success().stderr(contains("1 session, ").and(contains(" 4 removed\n")));
}

#[test]
fn audit_42_a_site_is_in_the_language_of_the_reader_and_redacted() {
    let sandbox = sessions();
    sandbox.write("patterns", "word answer\n");
    for (language, words) in [
        ("ja", ["セッション", "統計", "ターン 1", "ユーザー"]),
        ("zh", ["会话", "统计", "第 1 轮", "用户"]),
    ] {
        let options = ["--language", language, "--redact", "patterns", "--output", "site", "all"];
        sandbox
            .cmd("claw-show")
            .args(options)
            .assert()
            .success()
            .stderr(contains("6 files written"));
        let files = files(&sandbox, "site");
        let all = files["index.html"].clone() + &files["ours.html"];
        for word in words {
            assert!(all.contains(word), "{language}: {word}\n{all}");
        }
        assert!(files["index.html"].contains(&format!("<html lang=\"{language}\">")), "{language}");
        for english in [">User <", ">Assistant <", ">Turn 1<", ">Sessions<", "turns"] {
            assert!(!all.contains(english), "{language}: {english}\n{all}");
        }
        assert!(files["ours.html"].contains(&format!("<html lang=\"{language}\">")), "{language}");
        assert!(files["ours.html"].contains("an [REDACTED:word]"), "{}", files["ours.html"]);
    }
}

#[test]
fn audit_42_a_long_session_is_divided_and_links_to_turns_stay() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.path("all")).expect("a directory");
    let long = "x".repeat(200 * 1024);
    let header = r#"{"type":"session","id":"long","key":"k","created":"2026-01-02T00:00:00Z"}"#;
    let turns = |range: std::ops::Range<u32>| -> String {
        range.map(|turn| user(&format!("prompt {turn}")) + &reply(&long)).collect()
    };
    sandbox.write("all/long.jsonl", format!("{header}\n{}", turns(1..9)));
    let site = || {
        sandbox.cmd("claw-show").args(["--output", "site", "all"]).assert().success();
        files(&sandbox, "site")
    };
    let first = site();
    for (page, own) in [("long.html", 1..4), ("long.2.html", 4..7), ("long.3.html", 7..9)] {
        let turns: Vec<u32> = (1..20)
            .filter(|turn| {
                first[page].contains(&format!("<section class=\"turn\" id=\"turn-{turn}\">"))
            })
            .collect();
        assert_eq!(turns, own.collect::<Vec<_>>(), "{page}");
    }
    // The first page has an anchor for every turn; those on other pages lead to their pages.
    let link = "<li value=\"5\" id=\"turn-5\"><a href=\"long.2.html#turn-5\" dir=\"auto\">prompt 5</a></li>";
    assert!(first["long.html"].contains(link));
    assert!(first["long.2.html"].contains("<b aria-current=\"page\">2</b>"));
    // The pages of a session that grows stay the same, except for the links to the new page.
    append(&sandbox, "all/long.jsonl", &turns(9..12));
    let grown = site();
    let main = |page: &str| {
        page.split("<main").nth(1).and_then(|it| it.split("</main>").next().map(str::to_owned))
    };
    assert_eq!(main(&grown["long.2.html"]), main(&first["long.2.html"]));
    assert!(grown.contains_key("long.4.html"));
    // A turn of many replies is divided, too.
    let counted =
        reply(&long).replacen('{', "{\"usage\":{\"input_tokens\":1,\"output_tokens\":1},", 1);
    let one = format!("{header}\n{}{}", user("one"), counted.repeat(14));
    sandbox.write("all/long.jsonl", one);
    let one = site();
    assert!(one["long.2.html"].contains("<h2>Turn 1, continued</h2>"));
    assert!(!one.contains_key("long.4.html"));
}

#[test]
fn audit_42_nothing_but_the_site_is_written() {
    let sandbox = sessions();
    // A directory with other files.
    fs::create_dir(sandbox.path("mine")).expect("a directory");
    sandbox.write("mine/index.html", "mine");
    let run = sandbox.cmd("claw-show").args(["--output", "mine", "all"]).assert().code(2);
    run.stderr(
        "claw-show: cannot write 'mine': it holds other files; give a new or empty directory\n",
    );
    assert_eq!(sandbox.read_text("mine/index.html"), "mine");
    // A file that was put into a site is not overwritten by a session with its name.
    sandbox.cmd("claw-show").args(["--output", "site", "all/pi.jsonl"]).assert().success();
    sandbox.write("site/ours.html", "mine");
    sandbox.cmd("claw-show").args(["--output", "site", "all"]).assert().success();
    assert_eq!(sandbox.read_text("site/ours.html"), "mine");
    assert!(sandbox.read_text("site/ours-2.html").contains("an answer"));
    // Ids never become paths, and a link in the directory is replaced, not followed.
    let hostile =
        r#"{"type":"session","id":"../../outside","key":"k","created":"2026-01-02T00:00:00Z"}"#;
    sandbox.write("all/hostile.jsonl", format!("{hostile}\n{}", user("out")));
    sandbox.write("target.html", "mine");
    sandbox.sh("rm site/index.html; ln -s ../target.html site/index.html").assert().success();
    sandbox.cmd("claw-show").args(["--output", "site", "all"]).assert().success();
    assert!(!sandbox.exists("outside.html") && sandbox.exists("site/outside.html"));
    assert_eq!(sandbox.read_text("target.html"), "mine");
    // A state that names other files is not believed.
    let state = sandbox.read_text("site/.claw-show.jsonl");
    sandbox.write(
        "site/.claw-show.jsonl",
        state.replace("\"name\":\"outside\"", "\"name\":\"../target\""),
    );
    sandbox.cmd("claw-show").args(["--output", "site", "all/pi.jsonl"]).assert().success();
    assert_eq!(sandbox.read_text("target.html"), "mine");

    for (args, error) in [
        (
            &["--output", "x/", "--format", "text", "all"][..],
            "cannot make a site in another format",
        ),
        (&["--output", "x/", "--turn", "1", "all"], "cannot make a site of some turns"),
        (&["--output", "x/"], "cannot make a site of standard input"),
        (&["--output", "x/", "-"], "cannot make a site of standard input"),
        (&["--output", "x.html", "all"], "in 'x.html', which is the name of a page"),
        (&["--output", "x/y/z", "all"], "cannot write 'x/y/z'"),
    ] {
        let run = sandbox.cmd("claw-show").args(args).assert().failure();
        run.stderr(contains(error));
    }
    // A source that is named must be a transcript; the others are shown all the same.
    let run = sandbox.cmd("claw-show").args([
        "--output",
        "y/",
        "all/notes.jsonl",
        "all/pi.jsonl",
        "gone",
    ]);
    run.assert().failure().stderr(contains("notes.jsonl").and(contains("cannot read 'gone'")));
    assert!(sandbox.read_text("y/index.html").contains("1 session"));
}

#[test]
fn a_site_with_a_damaged_state_is_made_again() {
    let sandbox = sessions();
    let site =
        |all: &str| sandbox.cmd("claw-show").args(["--output", "site", all]).assert().success();
    let files = || sandbox.sh("cd site && ls").assert().success().stdout_text();
    site("all");
    sandbox.write("site/mine.html", "mine");
    let (state, before) = (sandbox.read_text("site/.claw-show.jsonl"), files());
    let page = before.lines().find(|file| file.starts_with("ours")).expect("a page").to_owned();
    let text = sandbox.read_text(&format!("site/{page}"));
    let last = state.lines().last().expect("a line");
    for damaged in [
        String::new(),
        state[..state.len() / 2].to_owned(),
        state.replace(last, ""),
        state.replacen("\"digest\"", "\"digset\"", 1),
        state.replacen("\"pages\":1", "\"pages\":2", 1),
        state.replace('s', "\u{fffd}"),
    ] {
        assert_ne!(damaged, state);
        sandbox.write("site/.claw-show.jsonl", &damaged);
        sandbox.write(&format!("site/{page}"), "old");
        site("all").stderr(contains(
            "the state of the site in 'site' is damaged; all pages are made again",
        ));
        assert_eq!(
            (files(), sandbox.read_text(&format!("site/{page}"))),
            (before.clone(), text.clone()),
            "{damaged}"
        );
        assert_eq!(sandbox.read_text("site/.claw-show.jsonl"), state, "{damaged}");
        site("all").stderr(contains(" 0 files written, 0 removed"));
    }
    // What could not be read then is made again later.
    sandbox.write("site/.claw-show.jsonl", state.replacen("\"digest\"", "\"digset\"", 1));
    sandbox.write(&format!("site/{page}"), "old");
    let some = ["--output", "site", "all/pi.jsonl", "gone"];
    sandbox.cmd("claw-show").args(some).assert().failure().stderr(contains("damaged"));
    assert_eq!(sandbox.read_text(&format!("site/{page}")), "old");
    site("all");
    assert_eq!(sandbox.read_text(&format!("site/{page}")), text);
    // The pages of sessions that are gone are removed, too, but no other file.
    sandbox.write("site/.claw-show.jsonl", "");
    site("all/pi.jsonl");
    assert!(!sandbox.exists(&format!("site/{page}")) && sandbox.exists("site/mine.html"));
}

#[test]
fn audit_42_transcripts_of_subagents_belong_to_their_session() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.path("all")).expect("a directory");
    let record = |kind: &str, agent: &str, content: serde_json::Value| {
        let mut record = json!({
            "type": kind, "uuid": format!("{kind}{agent}{}", content.to_string().len()), "parentUuid": null,
            "timestamp": "2026-03-01T09:00:00.000Z", "sessionId": "s1", "cwd": "/a/b",
            "isSidechain": !agent.is_empty(),
            "message": {"role": kind, "content": content, "id": format!("m{agent}")},
        });
        if !agent.is_empty() {
            record["agentId"] = agent.into();
        }
        record
    };
    let chain = |records: Vec<serde_json::Value>| -> String {
        let mut parent = serde_json::Value::Null;
        let mut text = String::new();
        for mut record in records {
            record["parentUuid"] = parent;
            parent = record["uuid"].clone();
            text.push_str(&format!("{record}\n"));
        }
        text
    };
    let call = json!([{"type": "tool_use", "id": "t1", "name": "Agent",
        "input": {"subagent_type": "Explore", "description": "Count", "prompt": "Count them"}}]);
    let result = json!([{"type": "tool_result", "tool_use_id": "t1", "content": "Four.\nagentId: a77 (for resuming)"}]);
    let own = [
        record("user", "", json!("count")),
        record("assistant", "", call),
        record("user", "", result),
    ];
    sandbox.write("all/s1.jsonl", chain(own.to_vec()));
    sandbox.write(
        "all/agent-a77.jsonl",
        chain(vec![
            record("user", "a77", json!("Count them")),
            record("assistant", "a77", json!([{"type": "text", "text": "Four."}])),
        ]),
    );
    sandbox.cmd("claw-show").args(["--output", "site", "all"]).assert().success();
    let files = files(&sandbox, "site");
    let index = &files["index.html"];
    assert!(index.contains("<p class=\"facts\">1 session · 1 project</p>"), "{index}");
    assert!(
        index.contains("<summary>1 subagent</summary>\n<ul>\n<li><a href=\"s1-a77.html\""),
        "{index}"
    );
    assert!(
        files["s1.html"].contains("<a href=\"s1-a77.html\">Transcript of the subagent</a>"),
        "{}",
        files["s1.html"]
    );
    assert!(files["s1-a77.html"].contains("<a href=\"s1.html\">Session of the subagent</a>"));
}

#[test]
fn audit_42_a_browser_runs_and_loads_nothing_on_a_site() {
    let sandbox = sessions();
    fs::copy(data("show/hostile.jsonl"), sandbox.path("all/hostile.jsonl")).expect("a session");
    sandbox.cmd("claw-show").args(["--output", "site", "all"]).assert().success();
    let names: Vec<String> =
        files(&sandbox, "site").into_keys().filter(|name| name.ends_with(".html")).collect();
    let page = |name: &String| {
        [390, 1600].map(|width| json!([format!("{name} {width}"), format!("site/{name}"), width]))
    };
    let pages = serde_json::Value::Array(names.iter().flat_map(page).collect());
    let Some(seen) = seen(&sandbox, &pages) else { return };
    assert_eq!(seen.as_object().expect("pages").len(), names.len() * 2);
    for (name, page) in seen.as_object().expect("pages") {
        assert_eq!(page["overflow"], 0, "{name} scrolls to the side: {}", page["wide"]);
        assert_eq!((&page["active"], &page["handlers"]), (&0.into(), &0.into()), "{name}");
    }
}
