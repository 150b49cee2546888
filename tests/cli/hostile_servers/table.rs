//! The tables of servers and expected outcomes.

use std::time::Duration;

use serde_json::{Value, json};

use super::server::{Act, chunk, head};
use super::words::{
    OVERFLOW, begin, chunked, end, error, event, overflow, send, short, stream_head, whole,
};
use super::{Expected, MIB, Row, row};
use crate::common::shapes::Shape;

/// Returns rows with complete replies, after which the connection ends in different ways.
pub fn ended(shape: Shape) -> Vec<Row> {
    let (stream, body) = (begin(shape, "So.") + &end(shape), whole(shape, "So."));
    let json = "application/json";
    let kind = if shape == Shape::Ollama { "application/x-ndjson" } else { "text/event-stream" };
    let good = |name: &str, acts: Vec<Act>| row(name, shape, acts, 0, Expected::Reply("So."));
    let bytes: Vec<u8> = (begin(shape, "日本 é😀") + &end(shape)).into_bytes();
    vec![
        good("a stream", vec![send(stream_head(shape)), send(&*stream)]),
        good("a stream that stays open", vec![send(stream_head(shape)), send(&*stream), Act::Hold]),
        good(
            "a stream with a reset after it",
            vec![send(stream_head(shape)), send(&*stream), Act::Reset],
        ),
        good(
            "a stream without its last chunk",
            vec![send(chunked(200, kind)), send(chunk(&stream))],
        ),
        good("a stream shorter than announced", vec![send(short(200, kind)), send(&*stream)]),
        good(
            "a stream with more after its end",
            vec![
                send(stream_head(shape)),
                send(&*stream),
                send("data: nonsense\n\n{\"done\":5"),
                Act::Hold,
            ],
        ),
        good(
            "a stream without a content type",
            vec![send(head(200, &[])), send(&*stream), Act::Hold],
        ),
        good(
            "a stream announced as JSON",
            vec![send(head(200, &[("content-type", json)])), send(&*stream), Act::Reset],
        ),
        good("a body", vec![send(head(200, &[("content-type", json)])), send(&*body)]),
        good(
            "a body that stays open",
            vec![send(head(200, &[("content-type", json)])), send(&*body), Act::Hold],
        ),
        good(
            "a body without its last chunk",
            vec![send(chunked(200, json)), send(chunk(&body)), Act::Reset],
        ),
        good("a body shorter than announced", vec![send(short(200, json)), send(&*body)]),
        good(
            "a body where a stream was announced",
            vec![send(stream_head(shape)), send(&*body), Act::Hold],
        ),
        good(
            "a body after a byte order mark",
            vec![send(head(200, &[])), send("\u{feff}"), send(&*body), Act::Hold],
        ),
        row(
            "characters cut between any two bytes",
            shape,
            vec![send(stream_head(shape)), Act::Drip(bytes, Duration::ZERO), Act::Hold],
            0,
            Expected::Reply("日本 é😀"),
        ),
    ]
}

/// Returns rows with interrupted answers, errors, and answers that contain no reply.
pub fn broken(shape: Shape) -> Vec<Row> {
    let text = begin(shape, "Half of");
    let json = "application/json";
    let refused = overflow(shape);
    let as_event = event(shape, &serde_json::from_str(&refused).expect("JSON"));
    let busy = error(shape, "overloaded_error", "Overloaded");
    let busy = event(shape, &serde_json::from_str(&busy).expect("JSON"));
    let busy_status = if shape == Shape::Ollama { 69 } else { 75 };
    let interrupted = |name: &str, acts: Vec<Act>, status: i32| {
        row(name, shape, acts, status, Expected::Interrupted("Half of"))
    };
    let none =
        |name: &str, acts: Vec<Act>, status: i32| row(name, shape, acts, status, Expected::Nothing);
    vec![
        interrupted(
            "a stream that is reset",
            vec![send(stream_head(shape)), send(&*text), Act::Reset],
            69,
        ),
        interrupted("a stream that ends", vec![send(stream_head(shape)), send(&*text)], 69),
        interrupted(
            "an error after text, then a reset",
            vec![send(stream_head(shape)), send(&*text), send(&*busy), Act::Reset],
            busy_status,
        ),
        interrupted(
            "an error after text, then silence",
            vec![send(stream_head(shape)), send(&*text), send(&*busy), Act::Hold],
            busy_status,
        ),
        none(
            "an overflow as the first event, then silence",
            vec![send(stream_head(shape)), send(&*as_event), Act::Hold],
            3,
        ),
        none(
            "an overflow as the first event, then a reset",
            vec![send(stream_head(shape)), send(&*as_event), Act::Reset],
            3,
        ),
        none(
            "an overflow whose event is not ended",
            vec![send(stream_head(shape)), send(as_event.trim_end()), Act::Reset],
            3,
        ),
        none(
            "an overflow as a body",
            vec![send(head(200, &[("content-type", json)])), send(&*refused), Act::Hold],
            3,
        ),
        none(
            "a refusal that stays open",
            vec![send(head(400, &[("content-type", json)])), send(&*refused), Act::Hold],
            3,
        ),
        none(
            "a refusal without its last chunk",
            vec![send(chunked(400, json)), send(chunk(&refused)), Act::Reset],
            3,
        ),
        none(
            "a refusal that is cut",
            vec![send(short(400, json)), send(&refused[..refused.len() - 2]), Act::Reset],
            3,
        ),
        none("an empty body", vec![send(head(200, &[("content-length", "0")]))], 69),
        none(
            "an HTML page",
            vec![send(head(200, &[("content-type", "text/html")])), send("<style>a {}</style>")],
            69,
        ),
        none(
            "a refusal that is an HTML page and stays open",
            vec![send(head(502, &[])), send("<style>a {}</style>"), Act::Hold],
            69,
        )
        .within(9.0),
        none("not HTTP", vec![send("nonsense\r\n\r\n")], 69),
        none("nothing", vec![], 69),
        none(
            "nested too deep",
            vec![send(head(200, &[])), send(whole(shape, "").replace("\"\"", &"[".repeat(5000)))],
            69,
        ),
    ]
}

/// Returns rows with silence, slow answers, and waits that the server asks for.
pub fn slow(shape: Shape) -> Vec<Row> {
    let text = begin(shape, "Half of");
    let drip = Act::Drip(format!("{:9999}", "").into_bytes(), Duration::from_millis(60));
    let later = |after: &str| head(429, &[("retry-after", after), ("content-length", "0")]);
    let wait = |name: &str, after: &str| Row {
        args: &[],
        within: 3.0,
        ..row(name, shape, vec![send(later(after))], 75, Expected::Nothing)
    };
    let once_more = vec![
        vec![send(later("-5"))],
        vec![send(stream_head(shape)), send(begin(shape, "So.") + &end(shape))],
    ];
    let dripped = row(
        "a slow answer after text",
        shape,
        vec![send(stream_head(shape)), send(&*text), drip.clone()],
        69,
        Expected::Interrupted("Half of"),
    );
    let headless = row(
        "slow headers",
        shape,
        vec![send("HTTP/1.1 200 X\r\nx: "), drip],
        69,
        Expected::Nothing,
    );
    let silent = row(
        "silence after text",
        shape,
        vec![send(stream_head(shape)), send(&*text), Act::Hold],
        69,
        Expected::Interrupted("Half of"),
    );
    vec![
        Row { args: &["--deadline", "1"], stderr: "--deadline", ..dripped },
        Row { args: &["--deadline", "1"], stderr: "--deadline", ..headless },
        Row { args: &["--timeout", "0.5"], ..silent },
        wait("a wait too large for a number", "1e300"),
        wait("a wait of many digits", "99999999999999999999999999"),
        wait("a wait until the year 9999", "Fri, 31 Dec 9999 23:59:59 GMT"),
        Row {
            args: &["--deadline", "1"],
            ..row(
                "a wait longer than the deadline",
                shape,
                vec![send(later("30"))],
                75,
                Expected::Nothing,
            )
        },
        Row {
            connections: once_more,
            args: &[],
            ..row("a negative wait", shape, vec![], 0, Expected::Reply("So."))
        },
    ]
}

/// Returns an event with tool calls: two in chat completions, otherwise one.
fn event_with_calls(shape: Shape) -> Value {
    let call = json!({"function": {"name": "f", "arguments": {}}});
    match shape {
        Shape::Anthropic => {
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "a", "name": "f", "input": {}}})
        }
        Shape::OpenAi => json!({"choices": [{"delta": {"tool_calls": [call, call]}}]}),
        Shape::Ollama => json!({"message": {"tool_calls": [call]}, "done": false}),
    }
}

/// Returns rows with endless answers.
pub fn large(shape: Shape) -> Vec<Row> {
    let line = Act::Flood(vec![b'x'; MIB], 9 * MIB);
    let page = Act::Flood(vec![b'x'; MIB], 4 * MIB);
    let begin = if shape == Shape::Ollama { "{\"x\":\"" } else { "data: {\"x\":\"" };
    let again =
        |piece: &str, total: usize| Act::Flood(piece.repeat(MIB / piece.len()).into(), total);
    let calls = again(&event(shape, &event_with_calls(shape)), 20 * MIB);
    let wide = whole(shape, "").replacen("\"\"", "[0", 1);
    vec![
        Row {
            within: 15.0,
            memory: 58,
            stderr: "4096",
            ..row(
                "endless calls",
                shape,
                vec![send(stream_head(shape)), calls, Act::Hold],
                69,
                Expected::Nothing,
            )
        },
        Row {
            within: 15.0,
            memory: 58,
            stderr: "262144",
            ..row(
                "an endless list",
                shape,
                vec![
                    send(head(200, &[("connection", "close")])),
                    send(&wide[..wide.find("[0").map_or(0, |at| at + 2)]),
                    again(",0", 8 * MIB),
                ],
                69,
                Expected::Nothing,
            )
        },
        Row {
            within: 15.0,
            ..row(
                "endless blank lines",
                shape,
                vec![send(stream_head(shape)), again("\n", 2 * MIB)],
                69,
                Expected::Nothing,
            )
        },
        Row {
            within: 15.0,
            ..row(
                "endless headers",
                shape,
                vec![send("HTTP/1.1 200 X\r\n"), again("x: y\r\n", 4 * MIB), Act::Hold],
                69,
                Expected::Nothing,
            )
        },
        Row {
            within: 15.0,
            stderr: "8 MiB",
            ..row(
                "an endless event",
                shape,
                vec![send(stream_head(shape)), send(begin), line, Act::Hold],
                69,
                Expected::Nothing,
            )
        },
        Row {
            within: 15.0,
            ..row(
                "an endless refusal",
                shape,
                vec![send(head(400, &[])), page, Act::Hold],
                76,
                Expected::Nothing,
            )
        },
    ]
}

/// Returns rows with answers above the size limits, and just below them. An unoptimised claw-call needs a quarter of a
/// second to process a mebibyte of text, so only a full run has the rows in which it processes much text.
pub fn huge(is_full: bool) -> Vec<Row> {
    let anthropic = |name, acts, status, expected| Row {
        within: 60.0,
        memory: 122,
        ..row(name, Shape::Anthropic, [vec![send(head(200, &[]))], acts].concat(), status, expected)
    };
    let flood = |byte: u8, size: usize| Act::Flood(vec![byte; MIB], size);
    let body = whole(Shape::Anthropic, "So.");
    let (first, last) = body.split_once("So.").expect("a string");
    let around = |act| vec![send(first), act, send(last), Act::Hold];
    let padded = vec![send("{"), flood(b' ', 47 * MIB), send(&body[1..]), Act::Hold];

    let stream = |name, piece: String, expected| Row {
        within: 60.0,
        memory: 122,
        stderr: "64 MiB",
        ..row(
            name,
            Shape::OpenAi,
            vec![send(stream_head(Shape::OpenAi)), Act::Flood(piece.into(), 70 * MIB)],
            69,
            expected,
        )
    };
    let piece = "x".repeat(MIB / 2);
    let text = begin(Shape::OpenAi, &piece);

    let mut rows = vec![
        Row {
            stderr: "48 MiB",
            ..anthropic("a huge answer", around(flood(b'x', 70 * MIB)), 69, Expected::Nothing)
        },
        anthropic("a large answer of white space", padded, 0, Expected::Reply("So.")),
        stream("a huge stream of comments", format!(":{piece}\n"), Expected::Nothing),
    ];
    if is_full {
        rows.extend([
            anthropic(
                "a large answer",
                around(flood(b'x', 47 * MIB)),
                0,
                Expected::Bytes(47 * MIB),
            ),
            stream("a huge stream of text", text, Expected::Bytes(60 * MIB)),
        ]);
    }
    rows
}

/// Returns rows with odd replies, each in the protocol in which servers send it.
pub fn odd() -> Vec<Row> {
    let json = |shape, name: &str, body: Value, status, expected| {
        row(
            name,
            shape,
            vec![send(head(200, &[])), send(body.to_string()), Act::Hold],
            status,
            expected,
        )
    };
    let choice = |message: Value, reason: &str| json!({"choices": [{"message": message, "finish_reason": reason}]});
    let anthropic =
        |block: Value| json!({"content": [block], "stop_reason": "end_turn", "model": "m"});
    vec![
        json(
            Shape::Anthropic,
            "a block that is a number",
            anthropic(json!(5)),
            69,
            Expected::Nothing,
        ),
        json(
            Shape::Anthropic,
            "a call without an id",
            anthropic(json!({"type": "tool_use", "name": "f", "input": {}})),
            69,
            Expected::Nothing,
        ),
        json(
            Shape::Anthropic,
            "a call with an empty id",
            anthropic(json!({"type": "tool_use", "id": "", "name": "f", "input": {}})),
            69,
            Expected::Nothing,
        ),
        json(
            Shape::Anthropic,
            "a call with a list as input",
            anthropic(json!({"type": "tool_use", "id": "a", "name": "f", "input": []})),
            69,
            Expected::Nothing,
        ),
        json(
            Shape::OpenAi,
            "an empty error",
            json!({"error": {"code": 0, "message": ""}, "choices": [{"message": {"content": "So."}, "finish_reason": "stop"}]}),
            0,
            Expected::Reply("So."),
        ),
        json(
            Shape::OpenAi,
            "an error in the choice",
            json!({"choices": [{"error": {"code": 400, "message": OVERFLOW}, "message": {"content": ""}, "finish_reason": "error"}]}),
            3,
            Expected::Nothing,
        ),
        json(
            Shape::OpenAi,
            "a refusal after text",
            choice(json!({"content": "So.", "refusal": "No."}), "stop"),
            0,
            Expected::Reply("So.No."),
        ),
        json(
            Shape::OpenAi,
            "audio",
            choice(
                json!({"content": null, "audio": {"id": "a", "data": "AAAA", "transcript": "So."}}),
                "stop",
            ),
            0,
            Expected::Reply("So.[audio]"),
        ),
        json(
            Shape::OpenAi,
            "an image in the content",
            choice(
                json!({"content": [{"type": "text", "text": "So."}, {"type": "image_url", "image_url": {"url": "data:,"}}]}),
                "stop",
            ),
            0,
            Expected::Reply("So.[image]"),
        ),
        json(
            Shape::OpenAi,
            "a content filter",
            choice(json!({"content": "So."}), "content_filter"),
            0,
            Expected::Reply("So."),
        ),
        json(
            Shape::Ollama,
            "an empty error",
            json!({"error": "", "message": {"content": "So."}, "done": true, "done_reason": "stop"}),
            0,
            Expected::Reply("So."),
        ),
        row(
            "a whole message in a stream",
            Shape::OpenAi,
            vec![
                send(stream_head(Shape::OpenAi)),
                send(event(
                    Shape::OpenAi,
                    &choice(json!({"role": "assistant", "content": "So."}), "stop"),
                )),
                send("data: [DONE]\n\n"),
                Act::Hold,
            ],
            0,
            Expected::Reply("So."),
        ),
        row(
            "a stream without a finish reason",
            Shape::OpenAi,
            vec![
                send(stream_head(Shape::OpenAi)),
                send(begin(Shape::OpenAi, "So.")),
                send("data: [DONE]\n\n"),
                Act::Hold,
            ],
            6,
            Expected::Reply("So."),
        ),
        Row {
            within: 9.0,
            ..row(
                "a stream with a finish reason but no end marker",
                Shape::OpenAi,
                vec![
                    send(stream_head(Shape::OpenAi)),
                    send(begin(Shape::OpenAi, "So.")),
                    send(event(
                        Shape::OpenAi,
                        &json!({"choices": [{"delta": {}, "finish_reason": "stop"}]}),
                    )),
                    Act::Hold,
                ],
                0,
                Expected::Reply("So."),
            )
        },
    ]
}
