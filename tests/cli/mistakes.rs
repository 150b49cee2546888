//! User errors: the exit status, and the line that tells the user what to do next.
//!
//! A row is a shell script, its exit status, and its standard error in whole lines; a line that ends in `…` gives
//! only the beginning. [`Row::check`] also checks that, after a semicolon or a colon, the last line
//! tells the user what to do.

use assert_cmd::assert::Assert;

use crate::common::pty::{self, CTRL_D, Pty};
use crate::common::{AssertExt, Sandbox};

/// A shell script with a mistake, its exit status, and the lines on standard error.
struct Row<'a>(&'a str, i32, &'a str);

/// Creates the directory in which the scripts run.
fn directory() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("notes.txt", "just some notes\nof mine\n");
    sandbox.write("array.json", "[]");
    sandbox.write("object.json", "{}");
    sandbox.write("half.json", "{");
    sandbox.write("d/file", "");
    sandbox.write("empty-tools/file", "");
    sandbox.write("key", "sk-1234567890\n");
    let script = "chmod 644 key && install -m 600 key own-key && claw-append --user s.jsonl && claw-rebuild \
        s.jsonl >m.jsonl && cp s.jsonl q.jsonl && echo Hello. | claw-append --assistant s.jsonl && mkdir workspace";
    sandbox.sh(script).write_stdin("Hi").assert().success();
    sandbox
}

impl Row<'_> {
    fn check(&self, sandbox: &Sandbox) {
        let Row(script, status, lines) = self;
        let run = sandbox.sh(script).assert().code(*status);
        let expected: Vec<&str> = lines.lines().map(str::trim_start).collect();
        let reported: Vec<&str> = run.stderr_text().lines().collect();
        assert!(
            reported.len() == expected.len(),
            "expected {} lines on standard error: {lines}\n{run}",
            expected.len()
        );
        for (line, expected) in reported.iter().zip(&expected) {
            assert_error(&run, line, expected);
        }
        assert!(
            reported.last().is_some_and(|last| has_advice(last)),
            "the last line must say what to do next\n{run}"
        );
    }
}

fn assert_error(run: &Assert, line: &str, expected: &str) {
    let is_expected = match expected.strip_suffix('…') {
        Some(beginning) => line.starts_with(beginning),
        None => line == expected,
    };
    assert!(is_expected, "expected '{expected}'\n{run}");
    assert!(!line.contains("os error"), "the error has a raw error number\n{run}");
}

/// The words with which advice begins, after a semicolon or a colon.
#[rustfmt::skip]
const ADVICE: [&str; 29] = [
    "see", "try", "use", "write", "give", "check", "name", "make", "create", "set", "unset", "append", "pipe", "chmod",
    "begin", "raise", "record", "run", "leave", "correct", "continue", "shorten", "claw-", "/", "'claw-append",
    "these are", "http to", "the prompt was not stored, so type it again", "to use",
];

fn has_advice(line: &str) -> bool {
    let separators = line.match_indices("; ").chain(line.match_indices(": "));
    let mut clauses = separators.map(|(at, separator)| &line[at + separator.len()..]);
    clauses.any(|clause| ADVICE.iter().any(|advice| clause.starts_with(advice)))
}

fn check(rows: &[Row<'_>]) {
    let sandbox = directory();
    for row in rows {
        row.check(&sandbox);
    }
}

#[test]
#[rustfmt::skip]
fn audit_26_an_invalid_command_line_is_reported_in_one_line() {
    check(&[
        Row("claw-append", 2, "claw-append: FILE is required; see claw-append --help"),
        Row("claw-append --user ''", 2, "claw-append: a value is required for FILE; see claw-append --help"),
        Row("claw-append --usr s.jsonl", 2, "claw-append: unexpected argument '--usr'; try --user, or see claw-append --help"),
        Row("claw-append s.jsonl more", 2, "claw-append: unexpected argument 'more'; see claw-append --help"),
        Row("claw-append --user --assistant s.jsonl", 2, "claw-append: --user and --assistant exclude each other; give one of them"),
        Row("claw-append --is-error s.jsonl", 2, "claw-append: --tool-result is required; see claw-append --help"),
        Row("claw-append --tool-result s.jsonl", 2, "claw-append: FILE is required; see claw-append --help"),
        Row("claw-append --user --lock-timeout 5m s.jsonl", 2, "claw-append: invalid value '5m' for --lock-timeout: not a number of seconds; write a plain number, such as 90 or 0.5"),
        Row("claw-append --user --lock-timeout -5 s.jsonl", 2, "claw-append: invalid value '-5' for --lock-timeout: not a number of seconds; write a plain number, such as 90 or 0.5"),
        Row("claw-rebuild --nonsense", 2, "claw-rebuild: unexpected argument '--nonsense'; see claw-rebuild --help"),
        Row("claw-show --width 5 s.jsonl", 2, "claw-show: invalid value '5' for --width: not a number of columns; give at least 24"),
        Row("claw-rebuild --undo all s.jsonl", 2, "claw-rebuild: invalid value 'all' for --undo: use cut, turn or refused"),
        Row("claw-rebuild --undo turn --redo s.jsonl", 2, "claw-rebuild: --undo and --redo exclude each other; give one of them"),
        Row("claw-rebuild --limit-turns two s.jsonl", 2, "claw-rebuild: invalid value 'two' for --limit-turns: not a whole number; write digits only, without a unit"),
        Row("claw-rebuild --log json --to-turns 2 s.jsonl", 2, r#"{"program":"claw-rebuild","message":"unexpected argument '--to-turns'; try --to-turn, or see claw-rebuild --help","status":2}"#),
        Row("claw-estimate --window 8k m.jsonl", 2, "claw-estimate: invalid value '8k' for --window: not a whole number; write digits only, without a unit"),
        Row("claw-estimate --window -1 m.jsonl", 2, "claw-estimate: invalid value '-1' for --window: not a whole number; write digits only, without a unit"),
        Row("claw-estimate --window 99999999999999999999 m.jsonl", 2, "claw-estimate: invalid value '99999999999999999999' for --window: too large; use a smaller number"),
        Row("claw-estimate --window", 2, "claw-estimate: a value is required for --window; see claw-estimate --help"),
        Row("claw-estimate --window 1 --window 2", 2, "claw-estimate: --window is given twice; give it once"),
        Row("claw-estimate --method fast m.jsonl", 2, "claw-estimate: invalid value 'fast' for --method: use script, chars4 or exact"),
        Row("claw-truncate --window 8000 --max-fraction 30% m.jsonl", 2, "claw-truncate: invalid value '30%' for --max-fraction: not a share from 0 to 1; write 0.3 for 30 %"),
        Row("claw-compact --fallback remote m.jsonl", 2, "claw-compact: invalid value 'remote' for --fallback: use local"),
        Row("claw-compact --via gpt-5 m.jsonl", 2, "claw-compact: invalid value 'gpt-5' for --via: use main, provider or PROVIDER:MODEL with anthropic, openai, gemini, ollama or offline"),
        Row("claw-checkpoint --percents 0,50 m.jsonl", 2, "claw-checkpoint: invalid value '0' for --checkpoint-percents: not a percentage; use numbers from 1 to 100"),
        Row("claw-check --format xml s.jsonl", 2, "claw-check: unexpected argument '--format'; …"),
        Row("claw-show --format pdf s.jsonl", 2, "claw-show: invalid value 'pdf' for --format: use text, markdown or html"),
        Row("claw-show --follow", 2, "claw-show: --follow takes one file; name one"),
        Row("claw-exec s.jsonl", 2, "claw-exec: --tools is required; see claw-exec --help"),
        Row("claw-exec --tools d --jobs 0", 2, "claw-exec: invalid value '0' for --jobs: use 1 or more"),
        Row("claw-tool", 2, "claw-tool: a command is required: read_file, list_directory, get_current_time, …"),
        Row("claw-tool readfile", 2, "claw-tool: no such command: 'readfile'; try read_file, or see claw-tool --help"),
        Row("claw-session", 2, "claw-session: a command is required: new, list, path, current, …"),
        Row("claw-session lits", 2, "claw-session: no such command: 'lits'; try list, or see claw-session --help"),
        Row("claw-session path", 2, "claw-session: NAME is required; see claw-session path --help"),
        Row("claw-session path --idle 2h work", 2, "claw-session: invalid value '2h' for --idle: not a whole number; write digits only, without a unit"),
        Row("claw-session path --reset daily@25:00 work", 2, "claw-session: invalid value 'daily@25:00' for --reset: not a daily time; write it like daily@04:00"),
        Row("claw-session expire", 2, "claw-session: a limit is required; give --older-than or --max"),
        Row("claw-session expire --older-than 30", 2, "claw-session: invalid value '30' for --older-than: not a duration; write it like 30d, 12h or 90m"),
    ]);
}

#[test]
#[rustfmt::skip]
fn audit_26_an_unusable_file_is_reported_with_its_cause() {
    check(&[
        Row("claw-rebuild none.jsonl", 74, "claw-rebuild: cannot read 'none.jsonl': no such file or directory; check the path"),
        Row("claw-rebuild s.jsonl/x", 74, "claw-rebuild: cannot read 's.jsonl/x': not a directory; check the path"),
        Row("claw-rebuild d", 74, "claw-rebuild: cannot read 'd': is a directory; name a file"),
        Row("claw-check d", 74, "claw-check: cannot read 'd': is a directory; name a file"),
        Row("claw-show none.jsonl", 74, "claw-show: cannot read 'none.jsonl': no such file or directory; check the path"),
        Row("claw-append --user d <s.jsonl", 74, "claw-append: cannot open 'd': is a directory; name a file"),
        Row("claw-show --markdown <&-", 74, "claw-show: cannot read '<stdin>': standard input is closed (or is /dev/null, opened for writing); give a file or a pipe"),
        Row("claw-append --user s.jsonl <&-", 74, "claw-append: cannot read '<stdin>': standard input is closed (or is /dev/null, opened for writing); give a file or a pipe"),
        Row("claw-append --user --redact none s.jsonl <notes.txt", 74, "claw-append: cannot read 'none': no such file or directory; check the path"),
        Row("claw-estimate --system none m.jsonl", 74, "claw-estimate: cannot read 'none': no such file or directory; check the path"),
        Row("claw-estimate --system d m.jsonl", 74, "claw-estimate: cannot read 'd': is a directory; name a file"),
        Row("claw-estimate --config none m.jsonl", 74, "claw-estimate: cannot read 'none': no such file or directory; check the path"),
        Row("CLAW_MODELS=none claw-estimate --model x --bar m.jsonl", 74, "claw-estimate: cannot read 'none': no such file or directory; check the path"),
        Row("claw-truncate --window 8000 --failure none m.jsonl", 74, "claw-truncate: cannot read 'none': no such file or directory; check the path"),
        Row("claw-compact --retry none.jsonl", 74, "claw-compact: cannot read 'none.jsonl': no such file or directory; check the path"),
        Row("claw-exec --tools none s.jsonl", 74, "claw-exec: cannot read tools 'none': no such file or directory; check the path"),
        Row("claw-exec --tools notes.txt s.jsonl", 78, "claw-exec: cannot run tools from 'notes.txt': not a directory; give the directory that holds the tools"),
        Row("rmdir workspace; claw-exec --tools d s.jsonl", 78, "claw-exec: cannot run tools in 'workspace': no such directory; make it, or give --workspace"),
        Row("claw-session --workspace notes.txt new", 74, "claw-session: cannot read 'notes.txt/.sessions/agents': not a directory; check the path"),
        Row("claw-session lock s.jsonl -- no-such-program", 78, "claw-session: cannot run 'no-such-program': no such file or directory; check the path"),
    ]);
}

#[test]
#[rustfmt::skip]
fn audit_26_input_of_the_wrong_kind_is_refused_with_advice() {
    check(&[
        Row("claw-truncate --window 8000 s.jsonl", 65, "claw-truncate: cannot read 's.jsonl' line 1: not a message: no 'role'; these are records, pipe them through claw-rebuild"),
        Row("claw-compact --window 8000 s.jsonl", 65, "claw-compact: cannot read 's.jsonl' line 1: not a message: no 'role'; these are records, pipe them through claw-rebuild"),
        Row("claw-checkpoint s.jsonl", 65, "claw-checkpoint: cannot read 's.jsonl' line 1: not a message: no 'role'; these are records, pipe them through claw-rebuild"),
        Row("claw-call --provider offline s.jsonl", 65, "claw-call: cannot read 's.jsonl' line 1: not a message: no 'role'; these are records, pipe them through claw-rebuild"),
        Row("claw-estimate notes.txt", 65, "claw-estimate: cannot read 'notes.txt' line 1: not a message: expected value at line 1 column 1; give messages as claw-rebuild prints them"),
        Row("claw-truncate --window 8000 --record m.jsonl", 65, "claw-truncate: cannot write records: message 1 has no _meta; give the output of claw-rebuild --meta"),
        Row("claw-append s.jsonl <m.jsonl", 65, "claw-append: cannot append '<stdin>' line 1: a record has no 'type'; these are messages; a record has a type, see claw-record(5)"),
        Row("claw-append s.jsonl <notes.txt", 65, "claw-append: cannot append '<stdin>' line 1: not a JSON object: expected value at line 1 column 1; 'claw-append --user' turns text into a record"),
        Row("claw-append --user notes.txt <s.jsonl", 65, "claw-append: cannot append to 'notes.txt': not a transcript (looks like text); append to a new file"),
        Row("claw-turn --provider offline -m hi ./notes.txt", 65, "claw-append: cannot append to './notes.txt': not a transcript (looks like text); append to a new file"),
        Row("claw-rebuild m.jsonl", 65, "claw-rebuild: cannot read 'm.jsonl': not a transcript (looks like messages, as claw-rebuild prints them); give the transcript that the messages come from"),
        Row("claw-show notes.txt", 65, "claw-show: cannot read 'notes.txt': not a transcript (looks like text); 'claw-append --user' turns text into a record"),
        Row("claw-append --user s.jsonl </dev/null", 65, "claw-append: cannot append '<stdin>': the text is blank; give some text"),
        Row("claw-exec --tools d m.jsonl", 65, "claw-exec: cannot read 'm.jsonl': not a transcript (looks like messages, as claw-rebuild prints them); give the transcript that the messages come from"),
        Row("echo '{}' | claw-tool read_file", 65, "claw-tool: the input has no 'file_path'; give {\"file_path\": PATH}"),
        Row("claw-estimate --tools object.json m.jsonl", 65, "claw-estimate: cannot use tools 'object.json': not a JSON array; give a list of tools, or a directory of them"),
        Row("claw-estimate --tools empty-tools m.jsonl", 78, "claw-estimate: cannot use tools '…"),
        Row("claw-estimate --method exact --model claude-sonnet-4-5 m.jsonl", 78, "claw-estimate: cannot count the tokens of 'claude-sonnet-4-5' exactly: only the tokenizers of GPT models are included; use --method script or --count api"),
        Row("claw-estimate --config half.json m.jsonl", 78, "claw-estimate: cannot use configuration 'half.json': EOF while parsing an object at line 1 column 1; correct it"),
        Row("claw-truncate --window 8000 --failure notes.txt m.jsonl", 65, "claw-truncate: cannot use 'notes.txt': not an error record; give the file that claw-call --failure wrote"),
        Row("CLAW_MODELS=notes.txt claw-estimate --model x m.jsonl", 78, "claw-estimate: cannot use models 'notes.txt': line 1: the window 'some' is not a number of tokens; see claw(7) for the format"),
        Row("CLAW_WINDOW=8k claw-estimate m.jsonl", 78, "claw-estimate: invalid value '8k' for CLAW_WINDOW: not a whole number; write digits only, without a unit"),
        Row("CLAW_PROVIDER=mistral claw-estimate m.jsonl", 78, "claw-estimate: invalid value 'mistral' for CLAW_PROVIDER: use anthropic, openai, gemini, ollama or offline"),
        Row("SOURCE_DATE_EPOCH=today claw-append --user s.jsonl <notes.txt", 78, "claw-append: SOURCE_DATE_EPOCH is not a number of seconds: 'today'; correct or unset it"),
        Row("claw-truncate m.jsonl", 78, "claw-truncate: the window is not known; give --window or set CLAW_WINDOW"),
        Row("claw-estimate --window 100 --max-tokens 200 m.jsonl", 78, "claw-estimate: nothing is left for the prompt: window 100 - answer 200 - margin 5; give a larger window or a smaller --max-tokens"),
    ]);
}

#[test]
#[rustfmt::skip]
fn audit_26_a_call_that_fails_is_reported_with_its_cause() {
    check(&[
        Row("claw-call m.jsonl", 78, "claw-call: no model is named; give --model or set CLAW_MODEL"),
        Row("claw-call --model x m.jsonl", 77, "claw-call: no key for anthropic; set ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN, or give --key-file or --key-cmd"),
        Row("OPENAI_API_KEY=sk-123 claw-call --provider anthropic --model x m.jsonl", 77, "claw-call: no key for anthropic; set ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN, or give --key-file or --key-cmd (OPENAI_API_KEY is for --provider openai)"),
        Row("claw-call --model x --key sk-123 m.jsonl", 2, "claw-call: unexpected argument '--key'; try --key-cmd, or see claw-call --help"),
        Row("claw-call --provider openay m.jsonl", 2, "claw-call: invalid value 'openay' for --provider: use anthropic, openai, gemini, ollama or offline"),
        Row("claw-call --model x --key-file none m.jsonl", 74, "claw-call: cannot read key file 'none': no such file or directory; check the path"),
        Row("claw-call --model x --key-file key m.jsonl", 77, "claw-call: cannot read key file 'key': other users may read it; run chmod 600 on it"),
        Row("claw-call --model x --key-file own-key --key-cmd 'cat own-key' m.jsonl", 2, "claw-call: --key-file and --key-cmd exclude each other; give one of them"),
        Row("CLAW_KEY_FILE=own-key CLAW_KEY_CMD=true claw-call --model x m.jsonl", 78, "claw-call: CLAW_KEY_FILE and CLAW_KEY_CMD exclude each other; unset one"),
        Row("claw-call --model x --key-cmd false m.jsonl", 77, "claw-call: the key command failed with status 1; run it by itself to see why"),
        Row("claw-call --model x --key-cmd true m.jsonl", 77, "claw-call: no key in the output of the key command; check it"),
        Row("ANTHROPIC_API_KEY='a b' claw-call --model x m.jsonl", 78, "claw-call: cannot use the key in the environment: it contains white space, control or non-ASCII characters; check it"),
        Row("claw-call --model x --base-url http://127.0.0.1:1 --max-retries 0 m.jsonl", 69, "claw-call: unreachable (rule no-answer): no answer from 'http://127.0.0.1:1': connection refused; check that the server is running, and its address (--base-url)"),
        Row("claw-call --model x --provider openai --base-url http://127.0.0.1:1/v1 --max-retries 0 m.jsonl", 69, "claw-call: unreachable (rule no-answer): no answer from 'http://127.0.0.1:1': connection refused; check that the server is running, and its address (--base-url)"),
        Row("OLLAMA_HOST=127.0.0.1:1 claw-call --model x --provider ollama --window 8000 --max-retries 0 m.jsonl", 69, "claw-call: unreachable (rule no-answer): no answer from 'http://127.0.0.1:1': connection refused; check that the server is running, and its address (--base-url)"),
        Row("claw-call --model x --base-url http://a.example m.jsonl", 78, "claw-call: cannot send to 'http://a.example/v1/messages': not https; http to another machine needs --insecure-http"),
        Row("claw-call --model x --base-url a.example m.jsonl", 78, "claw-call: cannot send to 'a.example/v1/messages': not an https address; begin it with https://"),
        Row("claw-call --model x --base-url 'https://a b.example' m.jsonl", 78, "claw-call: cannot send to 'https://a b.example/v1/messages': invalid international domain name; check --base-url"),
        Row("claw-call --model x --base-url https://me:pass@a.example m.jsonl", 78, "claw-call: cannot send: the address contains a user name; give the key with --key-file or a variable"),
        Row("claw-call --model x --ca notes.txt m.jsonl", 78, "claw-call: cannot use certificates 'notes.txt': it contains no certificate; give a PEM file"),
        Row("claw-call --provider offline </dev/null", 7, "claw-call: not ready to send: no-messages: message 1: there is nothing to send; append a prompt first"),
        Row("claw-rebuild s.jsonl | claw-call --provider offline", 7, "claw-call: not ready to send: assistant-last: message 2: the last message is the assistant's; append a prompt first"),
        Row("claw-call --provider offline --extra array.json m.jsonl", 65, "claw-call: cannot use 'array.json': not a JSON object: invalid type: sequence, expected a JSON object at line 1 column 0; write the members in braces"),
        Row("claw-call --provider offline --max-tokens 0 m.jsonl", 2, "claw-call: invalid value '0' for --max-tokens: use 1 or more"),
        Row("claw-call --provider offline --classify 99 m.jsonl", 2, "claw-call: invalid value '99' for --classify: not an HTTP status; use a number from 100 to 599"),
        Row("claw-call --provider offline --max-cost 1 m.jsonl", 78, "claw-call: cannot check --max-cost: no price for 'offline'; give one in a file with --prices"),
        Row("claw-call --provider offline --prices notes.txt m.jsonl", 78, "claw-call: cannot use prices 'notes.txt': line 1 is not a model and four prices: 'just some notes'; write a model and four prices per line"),
        Row("claw-call --provider offline --beta x m.jsonl", 78, "claw-call: --beta cannot be used with offline; leave it out"),
        Row("claw-call --provider offline --stream=none/x m.jsonl", 74, "claw-call: cannot write 'none/x': no such file or directory; check the path"),
        Row("claw-call --provider offline --replay none m.jsonl", 65, "claw-call: cannot replay from 'none': no such file or directory; record into it first"),
        Row("claw-call --provider offline --replay d m.jsonl", 8, "claw-call: not-recorded (rule replay): nothing recorded for this request …"),
        Row("claw-call --provider offline --max-total 1 --spent s.jsonl m.jsonl", 5, "claw-call: not called: this prompt would bring the total to 6 tokens, above --max-total 1; raise the limit or shorten the session"),
        Row("claw-call --provider offline --window 5 m.jsonl", 3, "claw-call: overflow (rule R1): prompt is too long: 6 tokens > 5 maximum (actual 6, limit 5); shorten it (claw-truncate, claw-compact)"),
    ]);
}

#[test]
#[rustfmt::skip]
fn audit_26_a_missing_session_is_reported_with_the_command_to_create_it() {
    let held = "rm -f held; claw-session lock s.jsonl -- sh -c ': >held; exec sleep 60' & until test -e held; do sleep 0.05; done";
    check(&[
        Row("claw-session path work", 1, "claw-session: no session 'work' in 'workspace'; see claw-session list, or create it with claw-session new --label"),
        Row("claw-session current", 1, "claw-session: no session of agent 'main' in 'workspace'; create one with claw-session new"),
        Row("claw-session --agent ../x new", 2, "claw-session: invalid agent name '../x': use only letters, digits, '.', '_' and '-'"),
        Row("claw-session new --key ''", 2, "claw-session: invalid key '': it is empty; write at least one character"),
        Row("claw-session new --label wool >id; claw-session new --label work >id; claw-session delete wo 2>all; status=$?; sed 's/[0-9a-f]\\{12\\}/ID/' all | sort >&2; exit $status", 1,
            "claw-session: 'wo' matches session 'ID' of agent 'main', key 'main:cli:user', label 'wool'
            claw-session: 'wo' matches session 'ID' of agent 'main', key 'main:cli:user-2', label 'work'
            claw-session: 'wo' names 2 sessions; give more of the name"),
        Row("claw-turn --provider offline -m hi gone", 1, "claw-session: no session 'gone' in 'workspace'; see claw-session list, or create it with claw-session new --label"),
        Row("claw-turn --provider offline -m hi notes.txt", 1,
            "claw-session: 'notes.txt' is also a file; to use the file, write ./notes.txt
            claw-session: no session 'notes.txt' in 'workspace'; see claw-session list, or create it with claw-session new --label"),
        Row("claw-session carry --to codex notes.txt", 1,
            "claw-session: 'notes.txt' is also a file; to use the file, write ./notes.txt
            claw-session: no session 'notes.txt' in 'workspace'; see claw-session list, or create it with claw-session new --label"),
        Row("claw-session export --to pi notes.txt", 1,
            "claw-session: 'notes.txt' is also a file; to use the file, write ./notes.txt
            claw-session: no session 'notes.txt' in 'workspace'; see claw-session list, or create it with claw-session new --label"),
        Row("claw-session history notes.txt", 1,
            "claw-session: 'notes.txt' is also a file; to use the file, write ./notes.txt
            claw-session: no session 'notes.txt' in 'workspace'; see claw-session list, or create it with claw-session new --label"),
        Row("claw-session status notes.txt", 1, "claw-session: no session 'notes.txt' in 'workspace'; see claw-session list, or create it with claw-session new --label"),
        Row("claw-chat gone", 1, "claw-session: no session 'gone' in 'workspace'; see claw-session list, or create it with claw-session new --label"),
        Row("claw-retry gone", 1, "claw-session: no session 'gone' in 'workspace'; see claw-session list, or create it with claw-session new --label"),
        Row(&format!("{held}; claw-session lock --lock-timeout 0 s.jsonl -- true; status=$?; kill $!; wait; exit $status"), 75, "claw-session: cannot lock the turn of 's.jsonl': another turn held it for 0 s; try again"),
        Row(&format!("{held}; claw-turn --provider offline -m hi --lock-timeout 0 s.jsonl; status=$?; kill $!; wait; exit $status"), 75, "claw-session: cannot lock the turn of 's.jsonl': another turn held it for 0 s; try again"),
    ]);
}

#[test]
#[rustfmt::skip]
fn audit_26_a_turn_names_the_option_that_was_typed() {
    check(&[
        Row("claw-turn", 2, "claw-turn: SESSION is required; see claw-turn --help"),
        Row("claw-turn -m", 2, "claw-turn: a value is required for --message; see claw-turn --help"),
        Row("claw-turn a b", 2, "claw-turn: unexpected argument 'b'; see claw-turn --help"),
        Row("claw-turn ''", 2, "claw-turn: a value is required for SESSION; see claw-turn --help"),
        Row("claw-turn --again=x s.jsonl", 2, "claw-turn: unexpected value 'x' for --again: it takes none; see claw-turn --help"),
        Row("claw-turn --again -m x s.jsonl", 2, "claw-turn: --again and --message exclude each other; give one of them"),
        Row("ANTHROPIC_API_KEY=x claw-turn --base-url http://127.0.0.1:1 s.jsonl -m hi", 78, "claw-turn: no model is named; give --model or set CLAW_MODEL"),
        Row("claw-turn --window 8k -m hi s.jsonl", 2, "claw-turn: invalid value '8k' for --window: not a whole number; write digits only, without a unit"),
        Row("claw-turn --provider mistral -m hi s.jsonl", 2, "claw-turn: invalid value 'mistral' for --provider: use anthropic, openai, gemini, ollama or offline"),
        Row("claw-turn --provider offline --timeout 5m -m hi s.jsonl", 2, "claw-turn: invalid value '5m' for --timeout: not a number of seconds; write a plain number, such as 90 or 0.5"),
        Row("claw-turn --provider offline --tools d --exec-timeout 5m -m hi s.jsonl", 2, "claw-turn: invalid value '5m' for --exec-timeout: not a number of seconds; write a plain number, such as 90 or 0.5"),
        Row("claw-turn --provider offline --limit-turns 0 -m hi s.jsonl", 2, "claw-turn: invalid value '0' for --limit-turns: use 1 or more"),
        Row("claw-turn --provider offline --max-rounds x -m hi s.jsonl", 2, "claw-turn: invalid value 'x' for --max-rounds: not a whole number; write digits only, without a unit"),
        Row("claw-turn --provider offline --log xml -m hi s.jsonl", 2, "claw-turn: invalid value 'xml' for --log: use text or json"),
        Row("claw-turn --provider offline --log json --max-cost 1 -m hi s.jsonl", 78, r#"{"program":"claw-turn","message":"cannot check --max-cost: no price for 'offline'; give one in a file with --prices","status":78}"#),
        Row("claw-turn --provider offline --allow x -m hi s.jsonl", 2, "claw-turn: options for tools need --tools; see claw-turn --help"),
        Row("claw-turn --provider offline --tools none -m hi s.jsonl", 74, "claw-turn: cannot read 'none': no such file or directory; check the path"),
        Row("claw-turn --provider offline --system d -m hi s.jsonl", 74, "claw-turn: cannot read 'd': is a directory; name a file"),
        Row("claw-turn --provider offline --reset daily@04:00 -m hi ./s.jsonl", 2, "claw-turn: --reset and --idle need a session name, but './s.jsonl' is a path; leave them out"),
        Row("claw-turn --provider offline s.jsonl </dev/null", 65, "claw-append: cannot append '<stdin>': the text is blank; give some text"),
        Row("claw-turn --provider offline -m hi d/", 74, "claw-append: cannot open 'd/': is a directory; name a file"),
        Row("TMPDIR=none claw-turn --provider offline -m hi s.jsonl", 74, "claw-session: cannot make the directory 'none/claw-turn.…"),
        Row("claw-retry", 2, "claw-retry: SESSION is required; see claw-retry --help"),
        Row("claw-retry none.jsonl", 74, "claw-retry: cannot read 'none.jsonl': no such file or directory; check the path"),
        Row("claw-retry --every 0 s.jsonl", 2, "claw-retry: invalid value '0' for --every: use 1 or more"),
        Row("claw-retry --every=5m s.jsonl", 2, "claw-retry: invalid value '5m' for --every: not a whole number; write digits only, without a unit"),
        Row("claw-chat a b", 2, "claw-chat: unexpected argument 'b'; see claw-chat --help"),
        Row("claw-chat --no-stream=x", 2, "claw-chat: unexpected value 'x' for --no-stream: it takes none; see claw-chat --help"),
    ]);
}

/// A turn that fails after its prompt was stored reports that the prompt is kept and how to continue; a turn that fails
/// earlier does not.
#[test]
#[rustfmt::skip]
fn audit_26_a_failed_turn_reports_that_the_prompt_is_kept() {
    let unreachable = "claw-call: unreachable (rule no-answer): no answer from 'http://127.0.0.1:1': connection refused; …";
    let turn = "claw-turn --model x --base-url http://127.0.0.1:1 --max-retries 0";
    let sandbox = directory();
    let check = |script: &str, status: i32, lines: &str| Row(script, status, lines).check(&sandbox);
    check(&format!("{turn} -m hi a.jsonl"), 69, &format!("{unreachable}\nclaw-turn: the prompt is kept; continue with: claw-turn --again 'a.jsonl'"));
    check(&format!("{turn} --again a.jsonl"), 69, &format!("{unreachable}\nclaw-turn: the turn is not finished; continue with: claw-turn --again 'a.jsonl'"));
    check(&format!("echo hi | {turn} \"it's.jsonl\""), 69, &format!("{unreachable}\nclaw-turn: the prompt is kept; continue with: claw-turn --again 'it'\\''s.jsonl'"));
    check("claw-turn --model x -m hi b.jsonl", 77, "claw-turn: to call a provider: set ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY to your key
        claw-turn: to use a model on this machine: start Ollama, and give --provider ollama --model NAME
        claw-turn: to try it without a model: give --provider offline
        claw-turn: no key for anthropic; …");
    check("test ! -e b.jsonl || echo b.jsonl: written >&2; claw-turn --model x --provider openai -m hi b.jsonl", 77, "claw-turn: no key for openai; …");
    let stopped = "claw-turn --provider offline --call ': >called; sleep 60 #' --no-proactive -m hi t.jsonl 2>all & turn=$!
        until test -e called; do sleep 0.05; done; kill -TERM $turn; wait $turn; s=$?; grep ^claw all >&2; exit $s";
    check(stopped, 143, "claw-turn: the prompt is kept; continue with: claw-turn --again 't.jsonl'");
    let unknown = "claw-turn: cannot run 'no-such-program': no such program; check --call and CLAW_CALL";
    check("claw-turn --provider offline --call no-such-program -m hi c.jsonl 2>all; s=$?; grep ^claw all >&2; exit $s", 78, unknown);
    check("claw-turn --provider offline --again s.jsonl", 7, "claw-rebuild: not ready to send: assistant-last: message 2: the last message is the assistant's; append a prompt first");
    check("claw-turn --provider offline --again none.jsonl", 74, "claw-rebuild: cannot read 'none.jsonl': no such file or directory; check the path");
    check("claw-turn --provider offline -m hi d/", 74, "claw-append: cannot open 'd/': is a directory; name a file");
}

#[test]
fn audit_26_reading_a_prompt_from_the_terminal_is_announced() {
    if !pty::can_run() {
        return;
    }
    let cmd = directory().cmd("claw-turn").args(["--provider", "offline", "t.jsonl"]);
    let mut pty = Pty::run(cmd, (100, 24));
    let asks = "claw-append: reading the text from the terminal; end it with Ctrl-D";
    pty.wait_for(asks).press("Hello.\r").press(CTRL_D).wait_for("Reply to 1 message: Hello.");
    pty.end().code(0);
}

/// Root can read every file, so the test does nothing if it can open the file anyway.
#[test]
fn audit_26_an_unreadable_file_is_reported() {
    let sandbox = directory();
    sandbox.sh("chmod 000 s.jsonl").assert().success();
    if std::fs::File::open(sandbox.path("s.jsonl")).is_err() {
        let why = "permission denied; check its permissions (ls -l)";
        Row("claw-rebuild s.jsonl", 77, &format!("claw-rebuild: cannot read 's.jsonl': {why}"))
            .check(&sandbox);
        Row("claw-retry ./s.jsonl", 77, &format!("claw-retry: cannot read './s.jsonl': {why}"))
            .check(&sandbox);
    }
}
