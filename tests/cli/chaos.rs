//! claw-turn: after failures in a random order, a turn ends with a documented status and the transcript is usable.

use std::collections::HashMap;
use std::env;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use crate::common::provider::{FakeProvider, Recorded, Step};
use crate::common::shapes::Shape;
use crate::common::{AssertExt, Sandbox};
use crate::conversations::{Conversation, log};

/// The number of sequences of failures in a short and in a full run.
const SEQUENCES: [u64; 2] = [40, 2000];
/// The number of turns that run in parallel.
const TOGETHER: usize = 4;
/// The maximum number of retries of one call.
const RETRIES: usize = 1;
/// The exit statuses that claw-turn(1) documents for these failures.
const DOCUMENTED: [i32; 8] = [0, 3, 4, 6, 69, 75, 76, 77];

/// A deterministic pseudorandom generator (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
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

/// An error that asks for a wait of one millisecond.
fn error(status: u16, kind: &str) -> Step {
    let headers = vec![("retry-after-ms".into(), "1".into())];
    Step::Error { status, kind: kind.into(), message: "not now".into(), headers }
}

fn page(status: u16, body: &str) -> Step {
    let kind = ("content-type".to_owned(), "text/html".to_owned());
    // Without `retry-after-ms`, claw-turn would wait for the default delay before it tries again.
    let headers = vec![kind, ("retry-after-ms".into(), "1".into())];
    Step::Raw { status, headers, body: body.into() }
}

/// A conversation with long results, and with prose that only a summary shortens.
fn conversation() -> Conversation {
    (1..=4).fold(Conversation::new(), |conversation, n| {
        let conversation = conversation.user(&format!("Build target {n}.")).tool(log(60));
        conversation.assistant(&format!("Target {n} fails. {}", crate::conversations::words(150)))
    })
}

/// Runs a turn on the transcript `before` with the failures that `seed` selects, and checks the invariants.
fn sequence(seed: u64, before: &[u8]) {
    let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let shape = Shape::ALL[random.below(3) as usize];
    let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
    sandbox.write("s.jsonl", before);
    let steps: Vec<Step> = (0..random.below(9)).map(|_| random.step()).collect();
    steps.iter().for_each(|step| provider.script(step.clone()));
    let mut cmd = sandbox.cmd("claw-turn").envs(provider.env_for(shape));
    cmd = cmd.args(["--window", "100000", "--max-retries", &RETRIES.to_string(), "-m", "Next?"]);
    cmd = cmd.arg("--no-checkpoint");
    if random.below(3) == 0 {
        cmd = cmd.arg("--stream");
    }
    let run = cmd.arg("s.jsonl").assert();

    let context = format!("sequence {seed}, {shape:?}: {steps:?}\n{}", run.stderr_text());
    assert!(
        run.get_output().status.code().is_some_and(|code| DOCUMENTED.contains(&code)),
        "{context}"
    );
    assert!(sandbox.read("s.jsonl").starts_with(before), "the transcript was rewritten: {context}");
    let requests = provider.requests();
    // At most three replies and three summaries are requested, each with its retries.
    assert!(requests.len() <= 6 * (1 + RETRIES), "{} requests: {context}", requests.len());
    assert_no_forbidden_repeat(&requests, &context);
    provider.all_legal();
    let rebuilt = sandbox.cmd("claw-rebuild").args(["--ready", "s.jsonl"]).assert();
    // The transcript ends with a prompt or a reply.
    assert!(
        matches!(rebuilt.get_output().status.code(), Some(0 | 7)),
        "{context}\n{}",
        rebuilt.stderr_text()
    );
}

/// Checks that a request that got status 400 or 413 is not sent again, and that no request is sent more often than the
/// retries allow.
fn assert_no_forbidden_repeat(requests: &[Recorded], context: &str) {
    let mut sent: HashMap<&[u8], (usize, bool)> = HashMap::new();
    for request in requests {
        let (times, was_refused) = sent.entry(&request.body).or_default();
        *times += 1;
        assert!(!*was_refused, "sent again after status 400 or 413: {context}");
        assert!(*times <= 1 + RETRIES, "sent {times} times: {context}");
        *was_refused = matches!(request.status, 400 | 413);
    }
}

#[test]
fn failures_in_any_order_end_with_a_documented_status() {
    let count = SEQUENCES[usize::from(env::var_os("CLAW_TEST_FULL").is_some())];
    let sandbox = Sandbox::new();
    conversation().append(&sandbox, "s.jsonl");
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
