//! claw-turn through failures without order: it ends, it says how, and the transcript goes on.

use std::collections::HashMap;
use std::env;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use crate::common::provider::{FakeProvider, Recorded, Step};
use crate::common::shapes::Shape;
use crate::common::{AssertExt, Sandbox};
use crate::talks::{Talk, log};

/// The number of sequences in every run of the tests, and in a full one.
const SEQUENCES: [u64; 2] = [40, 2000];
/// So many turns at once.
const TOGETHER: usize = 4;
/// The most further tries of one call.
const RETRIES: usize = 1;
/// The statuses that a turn may end in, by claw-turn(1).
const DOCUMENTED: [i32; 8] = [0, 3, 4, 6, 69, 75, 76, 77];

/// Numbers that look like chance and are the same in every run (xorshift).
struct Chance(u64);

impl Chance {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most
    }

    fn step(&mut self) -> Step {
        match self.below(14) {
            0 | 1 => error(429, "rate_limit_error"),
            2 => error(529, "overloaded_error"),
            3 => error(500, "api_error"),
            4 => Step::Drop,
            5 => Step::Cut(usize::try_from(self.below(400)).unwrap_or(0)),
            6 => page(200, "<html><body>Please log in: context token</body></html>"),
            7 => page(502, "<html>Bad Gateway</html>"),
            8 => page([200, 400, 413, 500][self.below(4) as usize], ""),
            9 => Step::stream_error("overloaded_error", "Overloaded"),
            10 => Step::text(""),
            _ => Step::Overflow,
        }
    }
}

/// An error that asks for no pause worth the name.
fn error(status: u16, kind: &str) -> Step {
    let headers = vec![("retry-after-ms".into(), "1".into())];
    Step::Error { status, kind: kind.into(), message: "not now".into(), headers }
}

fn page(status: u16, body: &str) -> Step {
    let kind = ("content-type".to_owned(), "text/html".to_owned());
    // A page says as little about a pause as it says about anything.
    let headers = vec![kind, ("retry-after-ms".into(), "1".into())];
    Step::Raw { status, headers, body: body.into() }
}

/// Long results, and words that only a summary makes shorter.
fn talk() -> Talk {
    (1..=4).fold(Talk::new(), |talk, n| {
        let talk = talk.user(&format!("Build target {n}.")).tool(log(60));
        talk.assistant(&format!("Target {n} fails. {}", crate::talks::words(150)))
    })
}

/// Runs a turn on the transcript `before` through the failures of this seed, and checks what holds for all.
fn sequence(seed: u64, before: &[u8]) {
    let mut chance = Chance(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let shape = Shape::ALL[chance.below(3) as usize];
    let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
    sandbox.write("s.jsonl", before);
    let steps: Vec<Step> = (0..chance.below(9)).map(|_| chance.step()).collect();
    steps.iter().for_each(|step| provider.script(step.clone()));
    let mut cmd = sandbox.cmd("claw-turn").envs(provider.env_for(shape));
    cmd = cmd.args(["--window", "100000", "--max-retries", &RETRIES.to_string(), "-m", "Next?"]);
    cmd = cmd.arg("--no-checkpoint");
    if chance.below(3) == 0 {
        cmd = cmd.arg("--stream");
    }
    let run = cmd.arg("s.jsonl").assert();

    let told = format!("sequence {seed}, {shape:?}: {steps:?}\n{}", run.stderr_text());
    assert!(
        run.get_output().status.code().is_some_and(|code| DOCUMENTED.contains(&code)),
        "{told}"
    );
    assert!(sandbox.read("s.jsonl").starts_with(before), "append-only: {told}");
    let requests = provider.requests();
    // Three answers are asked for at the most, and as many summaries, each so often.
    assert!(requests.len() <= 6 * (1 + RETRIES), "{} requests: {told}", requests.len());
    never_the_same_after_an_overflow(&requests, &told);
    provider.all_legal();
    let rebuilt = sandbox.cmd("claw-rebuild").args(["--ready", "s.jsonl"]).assert();
    // It ends on the user's word, or on a reply.
    assert!(
        matches!(rebuilt.get_output().status.code(), Some(0 | 7)),
        "{told}\n{}",
        rebuilt.stderr_text()
    );
}

/// V60: what was refused as too long is not sent again, and nothing more often than it may be tried.
fn never_the_same_after_an_overflow(requests: &[Recorded], told: &str) {
    let mut sent: HashMap<&[u8], (usize, bool)> = HashMap::new();
    for request in requests {
        let (times, was_too_long) = sent.entry(&request.body).or_default();
        *times += 1;
        assert!(!*was_too_long, "sent again after an overflow: {told}");
        assert!(*times <= 1 + RETRIES, "sent {times} times: {told}");
        *was_too_long = matches!(request.status, 400 | 413);
    }
}

#[test]
fn failures_in_any_order_end_well() {
    let count = SEQUENCES[usize::from(env::var_os("CLAW_TEST_FULL").is_some())];
    let sandbox = Sandbox::new();
    talk().append(&sandbox, "s.jsonl");
    let before = sandbox.read("s.jsonl");
    let next = AtomicU64::new(1);
    thread::scope(|scope| {
        for _ in 0..TOGETHER {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed > count {
                        break;
                    }
                    sequence(seed, &before);
                }
            });
        }
    });
}
