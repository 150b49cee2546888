use super::code::CODES;
use super::place::Place;
use super::text::TextFamily;
use super::verdict::STATUSES;
use super::*;
use serde_json::{Value, json};

/// 2026-01-01T00:00:00Z.
const NOW: f64 = 1_767_225_600.0;

fn classify_with(status: u16, headers: &[(&str, &str)], body: &str) -> Failure {
    let header = |name: &str| {
        headers.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
    };
    Failure::classify(status, &header, body.as_bytes(), NOW, &Rows::default())
}

fn classify(status: u16, body: &str) -> Failure {
    classify_with(status, &[], body)
}

fn json(text: &str) -> String {
    Value::from(text).to_string()
}

/// Returns an error body as used by the Messages API, chat completions and their gateways.
fn error(text: &str) -> String {
    format!(r#"{{"error":{{"type":"invalid_request_error","message":{}}}}}"#, json(text))
}

/// The expected rule, prompt, limit and requested output (`n(0)` for none), and the text that gives them at status 400.
type Sample = (&'static str, Option<u64>, Option<u64>, Option<u64>, &'static str);

const fn n(number: u64) -> Option<u64> {
    if number == 0 { None } else { Some(number) }
}

#[rustfmt::skip]
const OVERFLOWS: &[Sample] = &[
    ("R1", n(208310), n(200000), n(0), "prompt is too long: 208310 tokens > 200000 maximum"),
    ("R1", n(209303), n(200000), n(0), r#"litellm.ContextWindowExceededError: AnthropicError - {"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 209303 tokens > 200000 maximum"}}"#),
    ("R2", n(179413), n(200000), n(32768), "input length and `max_tokens` exceed context limit: 179413 + 32768 > 200000, decrease input length or `max_tokens` and try again"),
    ("R2", n(195000), n(200000), n(8192), "input length and `max_tokens` exceed context limit: 195,000 + 8,192 > 200,000"),
    ("R3", n(13392), n(8192), n(0), "request (13392 tokens) exceeds the available context size (8192 tokens), try increasing it"),
    ("R4", n(769), n(32768), n(32000), "This model's maximum context length is 32768 tokens. However, you requested 32000 output tokens and your prompt contains at least 769 input tokens, for a total of at least 32769 tokens. Please reduce the length of the input prompt or the number of requested output tokens. (parameter=input_tokens, value=769)"),
    ("R5", n(1222), n(4096), n(3000), "This model's maximum context length is 4096 tokens. However, you requested 4222 tokens (1222 in the messages, 3000 in the completion). Please reduce the length of the messages or completion."),
    ("R5", n(150000), n(4097), n(678), "This model's maximum context length is 4097 tokens, however you requested 150678 tokens (150000 in your prompt; 678 for the completion). Please reduce your prompt; or completion length."),
    ("R6", n(204308), n(128000), n(0), "This model's maximum context length is 128000 tokens. However, your messages resulted in 204308 tokens. Please reduce the length of the messages."),
    ("R7", n(42832), n(32768), n(0), "This endpoint's maximum context length is 32768 tokens. However, you requested about 42832 tokens (42832 of text input). Please reduce the length of either one, or use the \"middle-out\" transform to compress your prompt automatically."),
    ("R7", n(30832), n(32768), n(12000), "This endpoint's maximum context length is 32768 tokens. However, you requested about 42832 tokens (30832 of text input, 12000 in the output)."),
    ("R8", n(0), n(272000), n(0), "Input tokens exceed the configured limit of 272000 tokens."),
    ("R9", n(0), n(0), n(0), "Your input exceeds the context window of this model"),
    ("R10", n(70000), n(32768), n(0), "The input (70000 tokens) is longer than the model's context length (32768 tokens)."),
    ("R11", n(2800010), n(1048575), n(0), "The input token count (2800010) exceeds the maximum number of tokens allowed (1048575)."),
    ("R11", n(0), n(1048576), n(0), "The input token count exceeds the maximum number of tokens allowed (1048576)."),
    ("R12", n(537812), n(131072), n(0), "This model's maximum prompt length is 131072 but the request contains 537812 tokens"),
    ("R13", n(150000), n(128000), n(0), "prompt token count of 150000 exceeds the limit of 128000"),
    ("R14", n(200000), n(131072), n(0), "Prompt contains 200000 tokens ... too large for model with 131072 maximum context length"),
    ("R15", n(300000), n(262144), n(0), "Your request exceeded model token limit: 262144 (requested: 300000)"),
    ("R16", n(250000), n(200000), n(0), "prompt tokens (250000) exceed model maximum (200000)"),
    ("R17", n(0), n(0), n(0), "the prompt is longer than the context length currently available to the model; shorten the prompt, adjust the context length in settings, or use a model with a longer context length"),
    ("R18", n(0), n(0), n(0), "Input is too long for requested model."),
    ("R19", n(0), n(0), n(0), "tokens to keep from the initial prompt is greater than the context length"),
    ("R20", n(0), n(0), n(0), "invalid params, context window exceeds limit"),
    ("R21", n(0), n(0), n(0), "the request exceeds the available context size, try increasing it"),
    ("R22", n(769), n(32768), n(32000), "'max_tokens' or 'max_completion_tokens' is too large: 32000. This model's maximum context length is 32768 tokens and your request has 769 input tokens (32000 > 32768 - 769)."),
    ("R23", n(0), n(4096), n(0), "model's maximum context length of 4,096 tokens"),
    ("R24", n(0), n(131072), n(0), "too large for model with 131072 maximum context length"),
    ("R25", n(0), n(131072), n(0), "maximum prompt length is 131072"),
    ("R26", n(0), n(8192), n(0), "exceeds the maximum allowed input length of 8192"),
    ("R27", n(0), n(0), n(0), "The input token count of 9 exceeds the maximum"),
    ("R28", n(0), n(0), n(0), "Prompt too long; please shorten it"),
    ("R28", n(0), n(0), n(0), "Prompt is too long"),
    ("R29", n(0), n(0), n(0), "ValidationException: Input too long for the model"),
    ("R30", n(0), n(0), n(0), "Input exceeds the model's context window"),
    ("R30", n(0), n(0), n(0), "request size exceeds model context window"),
    ("R31", n(0), n(0), n(0), "The context size has been exceeded."),
    ("R31", n(0), n(0), n(0), "context_length_exceeded"),
    ("R32", n(0), n(0), n(0), "The prompt is greater than the context length"),
    ("R33", n(0), n(0), n(0), "Your request exceeded model token limit"),
    ("R34", n(0), n(0), n(0), "Please reduce the length of the messages or completion."),
    ("R35", n(0), n(0), n(0), "上下文过长"),
    ("R36", n(39000), n(32768), n(0), "Unable to submit request because the input token count is 39000 but model only supports up to 32768. Reduce the input token count and try again."),
    ("R37", n(31216), n(256000), n(225662), "Requested token count exceeds the model's maximum context length of 256000 tokens. You requested a total of 256878 tokens: 31216 tokens from the input messages and 225662 tokens for the completion."),
    ("R38", n(2125), n(2048), n(0), "Requested tokens (2125) exceed context window of 2048"),
    ("R39", n(4247), n(4081), n(0), "too many tokens: size limit exceeded by 166 tokens. Try using shorter or fewer inputs, or setting prompt_truncation='AUTO'. The limit for this model is 4081 tokens."),
    ("R39", n(0), n(0), n(0), "too many tokens: size limit exceeded by 166 tokens"),
    ("R40", n(1946), n(2048), n(512), "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 2048. Given: 1946 `inputs` tokens and 512 `max_new_tokens`"),
    ("R41", n(1060), n(1024), n(0), "Input validation error: `inputs` must have less than 1024 tokens. Given: 1060"),
    ("R42", n(0), n(30720), n(0), "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 30720]"),
    ("R43", n(5182), n(4096), n(0), "Trying to keep the first 5182 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough. Try to load the model with a larger context length, or provide a shorter input"),
    ("R44", n(5000), n(4096), n(0), "The decoder prompt (length 5000) is longer than the maximum model length of 4096. Make sure that `max_model_len` is no smaller than the number of text tokens."),
    ("R44", n(5000), n(4096), n(0), "The prompt (total length 5000) is too long to fit into the model (context length 4096). Make sure that `max_model_len` is no smaller than the number of text tokens."),
    ("R45", n(0), n(8000), n(0), "Request body too large for gpt-4o model. Max size: 8000 tokens."),
    ("R46", n(0), n(24000), n(0), "AiError: AiError: The estimated number of input and maximum output tokens (35000) exceeded this model context window limit (24000)."),
    ("R47", n(0), n(0), n(0), "Prompt exceeds max length"),
    ("R48", n(0), n(0), n(0), "Total tokens of image and text exceed max message tokens. Request id: 021"),
    ("R49", n(131329), n(98304), n(0), "length of prompt_tokens (131329) must be less than max_seq_len (98304)."),
    ("R50", n(11222), n(8192), n(0), "400 Bad Request: Too many input tokens. Max input tokens: 8192, request input token count: 11222 "),
    ("R51", n(140217), n(131071), n(0), "The prompt is too long: 140217, model maximum context length: 131071"),
    ("M2", n(0), n(4096), n(0), "Reached context length of 4096 tokens with model (arch: qwen2) which does not currently support mid-generation context overflow. Try reloading with a larger context length or shortening the prompt."),
    ("R6", n(70000), n(32768), n(0), "This model's maximum context length is 32768 tokens.\nHowever, your request has 70000 input tokens. Please reduce the length of the input messages."),
];

#[test]
fn each_overflow_text_gives_its_rule_and_its_numbers() {
    for &(rule, actual, limit, output, text) in OVERFLOWS {
        let failure = classify(400, &error(text));
        assert_eq!(
            (failure.rule.as_ref(), failure.class),
            (rule, FailureClass::Overflow),
            "{text}"
        );
        assert_eq!(failure.actual, actual, "{text}");
        assert_eq!(failure.limit, limit, "{text}");
        assert_eq!(failure.requested_output, output, "{text}");
        assert_eq!(failure.actual_is_floor, rule == "R4", "{text}");
        assert!(!failure.retryable);
        assert_eq!(failure.exit(), Exit::Overflow);
    }
}

#[test]
fn audit_09_a_text_that_a_gateway_shortened_has_no_incomplete_number() {
    let numbers = |text: &str| {
        let failure = classify(400, &error(text));
        [failure.actual, failure.limit, failure.requested_output, failure.output_cap]
    };
    let mut lost = 0;
    for &(rule, .., text) in OVERFLOWS {
        let mut whole: Vec<u64> = numbers(text).into_iter().flatten().collect();
        let plain = text.replace(',', "");
        whole.extend(
            plain.split(|c: char| !c.is_ascii_digit()).filter_map(|it| it.parse::<u64>().ok()),
        );
        let ends = text.char_indices().filter(|(_, c)| c.is_ascii_digit());
        for (end, ellipsis) in ends.flat_map(|(at, _)| [(at + 1, "..."), (at + 1, "…")]) {
            let cut = format!("{}{ellipsis}", &text[..end]);
            let found = numbers(&cut);
            lost += usize::from(found == [None; 4]);
            let mut all = found.iter().flatten();
            assert!(all.all(|number| whole.contains(number)), "{rule}: {found:?} in {cut}");
        }
    }
    assert!(lost > 100, "{lost}");
}

/// Reads the rows of tests/data/failures.ndjson. Some of them are also tested through claw-call.
fn rows() -> Vec<Value> {
    let text = include_str!("../../../tests/data/failures.ndjson");
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Covers overflows, messages that only look like overflows, and all other classes.
#[test]
fn k7_each_sample_in_failures_ndjson_is_classified_as_expected() {
    let rows = rows();
    let mut wrong = Vec::new();
    for row in &rows {
        let headers: Vec<(&str, &str)> = (row["headers"].as_object().into_iter().flatten())
            .map(|(name, value)| (name.as_str(), value.as_str().unwrap()))
            .collect();
        let status = u16::try_from(row["status"].as_u64().unwrap()).unwrap();
        let body = row["body"].as_str().unwrap();
        let found = classify_with(status, &headers, body);
        let exit = found.exit().code();
        let reported = json!({
            "class": found.class.name(), "rule": found.rule, "status": found.status, "exit": exit,
            "actual": found.actual, "limit": found.limit, "retry_after": found.retry_after,
            "requested_output": found.requested_output, "output_cap": found.output_cap,
        });
        // Numbers that are missing from the row must not be reported.
        for (name, value) in reported.as_object().unwrap() {
            let is_same =
                *value == row[name] || value.is_number() && value.as_f64() == row[name].as_f64();
            if !is_same {
                wrong.push(format!("{status} {name}: {value}, expected {}: {body}", row[name]));
            }
        }
        assert_eq!(found.actual_is_floor, row["actual_is_floor"] == true, "{body}");
        let is_retryable = row["retryable"].as_bool().unwrap_or(exit == 75 || exit == 69);
        assert_eq!(found.retryable, is_retryable, "{body}");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let has = |exit: u64| rows.iter().filter(|row| row["exit"] == exit).count();
    assert!(
        has(3) > 40 && has(76) > 20 && has(75) > 15,
        "the table has too few overflows or lookalikes"
    );
}

/// Returns the message of a row whose body is not nested.
fn message(row: &Value) -> Option<String> {
    let body: Value = serde_json::from_str(row["body"].as_str()?).ok()?;
    let places = [&body["error"]["message"], &body["errors"][0]["message"], &body["error"]];
    places.into_iter().chain([&body["message"]]).find_map(Value::as_str).map(str::to_owned)
}

#[test]
fn audit_15_each_text_has_a_row_and_a_quoted_lookalike() {
    let rows = rows();
    for rule in &text::RULES {
        let has = |member: &str| rows.iter().any(|row| row[member] == rule.name);
        assert!(has("rule"), "{}: no row in failures.ndjson has it", rule.name);
        assert!(has("quotes"), "{}: no row in failures.ndjson quotes it", rule.name);
    }
}

/// Returns error messages that contain `text` as a quotation from the request or the model's output, in each style
/// that servers are known to use.
fn quotations(text: &str) -> Vec<String> {
    let (bare, inner) = (text.trim_end_matches(['.', ' ']), error(text));
    vec![
        format!("messages.3.content.0: unexpected text: {text}"),
        format!("Invalid value for content: {text}"),
        format!("unexpected value in messages[1].content: '{text}'"),
        format!("The tool reported a problem. {text}"),
        format!("Bad content\n{text}"),
        format!("Could not read the model's output: \"{text}\""),
        format!("error parsing tool call: raw='{}', err=unexpected end", json(text)),
        format!("error parsing tool call: raw='{inner}', err=unexpected end"),
        format!("litellm.BadRequestError: OpenAIException - invalid content: {text}"),
        format!("litellm.BadRequestError: OpenAIException - the content was {inner}"),
        format!(r#"{{"text":{}}} is not allowed here"#, json(text)),
        format!("'{bare}' is not a role"),
        format!("\"{bare}\" is not a role"),
        format!("`{bare}` is not a role"),
    ]
}

#[test]
fn audit_15_quotations_never_decide() {
    let own: Vec<Value> = rows().into_iter().filter(|row| row.get("quotes").is_none()).collect();
    for rule in &text::RULES {
        let samples = own.iter().filter(|row| row["rule"] == rule.name).filter_map(message);
        let samples: Vec<String> = samples.collect();
        assert!(!samples.is_empty(), "{}", rule.name);
        for text in samples.iter().flat_map(|text| quotations(text)) {
            // The messages of busy servers also count at 503. They match in any sentence, so only those in quotation
            // marks are tested.
            let is_quoted = text.contains(['\'', '"', '`']);
            let busy = (rule.family == TextFamily::Busy && is_quoted).then_some((503, 69));
            for (status, exit) in
                [(400, 76), (413, 4), (200, 69), (500, 69)].into_iter().chain(busy)
            {
                let failure = classify(status, &error(&text));
                // A message that begins with a member of the request or an invalid value may match an S rule. The
                // failure is then a bad request, whatever the status says.
                let is_shape = failure.rule.starts_with('S') && failure.exit() == Exit::Refused;
                let is_expected = failure.exit().code() == exit || is_shape;
                assert!(is_expected, "{} {status} {failure}", rule.name);
                assert_eq!((failure.limit, failure.actual), (None, None), "{text}");
                assert_eq!((failure.stated_window, failure.output_cap), (None, None), "{text}");
            }
        }
    }
}

#[test]
fn a_body_that_was_cut_off_gives_no_numbers() {
    for text in [
        OVERFLOWS[5].4,
        "max_tokens: 8096 > 4096",
        "The request body is too large; the limit is 10 MB",
    ] {
        let cut = classify(400, &error(text)).without_numbers();
        let sizes = [cut.actual, cut.limit, cut.stated_window, cut.limit_bytes];
        let output = [cut.requested_output, cut.output_cap];
        assert_eq!((sizes, output, cut.actual_is_floor), ([None; 4], [None; 2], false), "{text}");
    }
}

#[test]
fn audit_11_only_a_limit_of_the_model_is_a_stated_window() {
    let llama = r#"{"error":{"message":"x","type":"exceed_context_size_error","n_prompt_tokens":5031,"n_ctx":2048}}"#;
    assert_eq!(classify(400, llama).stated_window, Some(2048));
    for &(_, _, limit, _, text) in OVERFLOWS {
        assert_eq!(classify(400, &error(text)).stated_window, limit, "{text}");
    }
    // The first limit belongs to the account and may change; the second is not stated in the text.
    for text in [
        "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 36278.",
        "Extra usage is required for long context requests.",
    ] {
        let failure = classify(429, &error(text));
        assert_eq!(
            (failure.class, failure.stated_window),
            (FailureClass::Overflow, None),
            "{text}"
        );
        assert!(failure.limit.is_some());
    }
}

#[test]
fn audit_11_a_users_row_gives_a_stated_window_only_if_it_matches_the_providers_own_words() {
    let rows = Rows::read("rows", r"overflow budget (?<limit>\d+) exceeded").unwrap();
    for (text, window) in [
        ("Budget 8000 exceeded", Some(8000)),
        ("Error: budget 8000 exceeded", Some(8000)),
        ("the model said 'budget 8000 exceeded'", None),
    ] {
        let failure = Failure::classify(400, &|_| None, error(text).as_bytes(), NOW, &rows);
        assert_eq!((failure.limit, failure.stated_window), (Some(8000), window), "{text}");
    }
}

#[test]
fn a_users_row_gives_its_numbers_and_is_named_after_its_line() {
    let text = r"# mine

overflow (?<actual>\d+) of (?<limit>\d+), (?<output>\d+) out, at most (?<cap>\d+)";
    let rows = Rows::read("rows", text).unwrap();
    let body = error("9000 of 8000, 500 out, at most 400");
    let failure = Failure::classify(400, &|_| None, body.as_bytes(), NOW, &rows);
    assert_eq!(
        (
            &*failure.rule,
            failure.actual,
            failure.limit,
            failure.requested_output,
            failure.output_cap
        ),
        ("rows:3", Some(9000), Some(8000), Some(500), Some(400))
    );
    let problem = Rows::read("rows", "# mine\n\nfull x").unwrap_err();
    assert!(problem.starts_with("line 3: unknown class 'full'"), "{problem}");
}

#[test]
fn an_overflow_text_is_found_in_every_wrapping() {
    let text = r#"prompt is too long: 5 tokens > 4 maximum, it's "over""#;
    let (inner, quoted) = (error(text), json(text));
    let python = inner.replace('\\', r"\\").replace('\'', r"\'");
    let bodies = [
        (400, inner.clone()),
        (413, inner.clone()),
        (422, format!(r#"{{"detail":{quoted}}}"#)),
        (400, format!("Provider returned error: {inner}")),
        (500, format!("error, status code: 400, status: 400 Bad Request, message: {inner}\n")),
        (400, format!("[{inner}]")),
        (400, quoted.clone()),
        (400, format!(r#"{{"message":{quoted}}}"#)),
        (
            400,
            format!(
                r#"{{"object":"error","message":{quoted},"type":"BadRequestError","code":400}}"#
            ),
        ),
        (400, format!(r#"{{"error":{quoted}}}"#)),
        (400, format!(r#"{{"error":{}}}"#, json(&inner))),
        (
            400,
            error(&format!(
                "litellm.BadRequestError: AnthropicException - b'{python}'. Received Model Group=x"
            )),
        ),
        (400, error(&format!("litellm.BadRequestError: Error code: 400 - {inner} and so on"))),
        (
            400,
            error(&format!(
                "litellm.APIError: OpenAIException - Error code: 400 - {{'error': {{'message': '{}', 'code': None}}}}",
                text.replace('\'', r"\'")
            )),
        ),
        (400, format!(r#"{{"success":false,"errors":[{{"code":5021,"message":{quoted}}}]}}"#)),
        (
            400,
            format!(
                r#"{{"error":{{"message":"Provider returned error","code":400,"metadata":{{"raw":{},"provider_name":"X"}}}}}}"#,
                json(&inner)
            ),
        ),
        (
            200,
            format!(
                "event: message_start\ndata: {{\"type\":\"message_start\"}}\n\nevent: error\ndata: {{\"type\":\"error\",{}\n\n",
                &inner[1..]
            ),
        ),
        (200, format!("{{\"done\":false}}\r\n{{\"error\":{quoted}}}\r\n")),
        (200, format!(r#"{{"error":{{"code":"400","message":{quoted}}}}}"#)),
        (200, inner.clone()),
    ];
    for (status, body) in bodies {
        let failure = classify(status, &body);
        assert_eq!(
            (failure.rule.as_ref(), failure.class),
            ("R1", FailureClass::Overflow),
            "{status} {body}"
        );
        assert_eq!((failure.actual, failure.limit), (Some(5), Some(4)), "{body}");
        assert_eq!(failure.message, text, "{body}");
    }
}

#[test]
fn a_structured_code_decides_and_the_numbers_are_found() {
    let llama = r#"{"error":{"code":400,"message":"request (5031 tokens) exceeds the available context size (2048 tokens), try increasing it","type":"exceed_context_size_error","n_prompt_tokens":5031,"n_ctx":2048}}"#;
    let wordless =
        r#"{"error":{"type":"exceed_context_size_error","n_prompt_tokens":5031,"n_ctx":2048}}"#;
    let in_string = format!(r#"{{"error":{}}}"#, json(llama));
    for (status, body) in [(400, llama), (500, llama), (200, wordless), (400, in_string.as_str())] {
        let failure = classify(status, body);
        assert_eq!(failure.rule.as_ref(), "type-exceed_context_size_error", "{status} {body}");
        assert_eq!(failure.kind.as_deref(), Some("exceed_context_size_error"));
        assert_eq!((failure.actual, failure.limit), (Some(5031), Some(2048)));
        assert_eq!(failure.exit(), Exit::Overflow);
    }
    let openai = r#"{"error":{"message":"This model's maximum context length is 128000 tokens. However, your messages resulted in 204308 tokens.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#;
    for (status, rule) in [
        (400, "type-context_length_exceeded"),
        (503, "type-context_length_exceeded"),
        (401, "status-401"),
        (403, "status-403"),
        (429, "status-429"),
    ] {
        let failure = classify(status, openai);
        assert_eq!(failure.rule.as_ref(), rule);
        let numbers = (failure.actual, failure.limit);
        let overflow = failure.class == FailureClass::Overflow;
        assert_eq!(numbers == (Some(204_308), Some(128_000)), overflow, "{status}");
    }
}

#[test]
fn a_window_filled_by_the_answer_is_an_overflow() {
    for body in [
        r#"{"type":"message","content":[{"type":"text","text":"a"}],"stop_reason":"model_context_window_exceeded"}"#,
        r#"{"choices":[{"finish_reason":"model_context_window_exceeded","message":{"content":"a"}}]}"#,
    ] {
        let failure = classify(200, body);
        assert_eq!(failure.rule.as_ref(), "type-model_context_window_exceeded");
        assert_eq!(failure.message, "the answer stopped: model_context_window_exceeded");
    }
}

#[test]
#[rustfmt::skip]
fn lookalikes_are_not_overflows() {
    let cases: &[(u16, &str, FailureClass, &str)] = &[
        (401, "status-401", FailureClass::Auth, "invalid x-api-key: the provided auth token is not valid"),
        (401, "status-401", FailureClass::Auth, "prompt is too long: 5 tokens > 4 maximum"),
        (403, "status-403", FailureClass::Permission, "OAuth token has expired; context length exceeded"),
        (404, "status-404", FailureClass::NotFound, "prompt is too long: 5 tokens > 4 maximum"),
        (402, "status-402", FailureClass::Billing, "prompt is too long: 5 tokens > 4 maximum"),
        (429, "status-429", FailureClass::RateLimit, "prompt is too long: 5 tokens > 4 maximum"),
        (429, "status-429", FailureClass::RateLimit, "Number of request tokens has exceeded your per-minute rate limit"),
        (429, "T1", FailureClass::RateLimit, "Rate limit reached for gpt-4o in organization org-X on tokens per min (TPM): Limit 30000, Used 29000, Requested 2000."),
        (413, "T1", FailureClass::RateLimit, "Request too large for model on tokens per minute (TPM): Limit 6000, Requested 6000"),
        (413, "W1", FailureClass::RateLimit, "Request too large: tokens per minute; please reduce the length of the messages"),
        (400, "W1", FailureClass::RateLimit, "Too many tokens per day, prompt is too long"),
        (400, "W2", FailureClass::RateLimit, "Too many tokens, please wait before trying again."),
        (400, "W3", FailureClass::RateLimit, "ThrottlingException: maximum context length is 5"),
        (400, "W3", FailureClass::RateLimit, "Throttling error: Too many tokens"),
        (400, "W4", FailureClass::RateLimit, "Too many requests"),
        (400, "W5", FailureClass::RateLimit, "Number of request tokens has exceeded your per-minute rate limit"),
        (400, "W6", FailureClass::RateLimit, "Rate limit exceeded: context length exceeded"),
        (400, "A1", FailureClass::Billing, "Your credit balance is too low to access the API."),
        (400, "A2", FailureClass::Billing, "You exceeded your current quota, please check your plan and billing details."),
        (400, "A2", FailureClass::Billing, "You have reached your specified API usage limits."),
        (400, "K1", FailureClass::Auth, "API key not valid. Please pass a valid API key."),
        (400, "B1", FailureClass::TooLarge, "Request exceeds the maximum size"),
        (413, "status-413", FailureClass::TooLarge, "Request exceeds the maximum size"),
        (400, "T3", FailureClass::OutputCap, "max_tokens: 128000 > 64000, which is the maximum allowed number of output tokens for claude-haiku-4-5-20251001"),
        (400, "T4", FailureClass::OutputCap, "max_tokens is too large: 200000. This model supports at most 16384 completion tokens"),
        (400, "T5", FailureClass::OutputCap, "max_tokens: 8096 > 4096"),
        (400, "T6", FailureClass::OutputCap, "`max_tokens` must be less than or equal to `8192`, the maximum value for `max_tokens` is less than the `context_window` for this model"),
        (400, "T7", FailureClass::OutputCap, "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]"),
        (400, "S1", FailureClass::BadRequest, "messages: text content blocks must be non-empty"),
        (400, "S1", FailureClass::BadRequest, "messages.125: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_X. Each `tool_use` block must have a corresponding `tool_result` block in the next message."),
        (400, "S1", FailureClass::BadRequest, "messages.3.content.8: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. These blocks must remain as they were in the original response."),
        (400, "S1", FailureClass::BadRequest, "messages.1.content: unexpected value 'prompt is too long: 5 tokens > 4 maximum'"),
        (400, "S1", FailureClass::BadRequest, r#"messages.1.content: bad value '{"error":{"code":"context_length_exceeded","message":"prompt is too long"}}'"#),
        (400, "S2", FailureClass::BadRequest, "Invalid value: 'prompt is too long'. Supported values are: 'a'"),
        (400, "S2", FailureClass::BadRequest, "Invalid 'user': string too long"),
        (400, "S2", FailureClass::BadRequest, "1 validation error for Request: input_value='maximum context length is 5'"),
        (400, "status-400", FailureClass::BadRequest, "At least one of the image dimensions exceed max allowed size for many-image requests: 2000 pixels"),
        (400, "status-400", FailureClass::BadRequest, "Model context window too small (2048 tokens). Minimum is 16000."),
        (400, "status-400", FailureClass::BadRequest, "Reasoning is mandatory for this endpoint and cannot be disabled."),
        (400, "status-400", FailureClass::BadRequest, "bad value 429 (request id req_413429), context and token"),
        (400, "status-400", FailureClass::BadRequest, "context deadline exceeded"),
        (504, "status-504", FailureClass::Server, "context deadline exceeded"),
        (529, "status-529", FailureClass::Overloaded, "prompt is too long: 5 tokens > 4 maximum"),
        (503, "U1", FailureClass::Overloaded, "server busy, please try again.  maximum pending requests exceeded"),
        (503, "U1", FailureClass::Overloaded, "Loading model"),
        (405, "status-4xx", FailureClass::BadRequest, "Unexpected token < in JSON"),
        (522, "status-5xx", FailureClass::Server, "x"),
    ];
    for &(status, rule, class, text) in cases {
        let failure = classify(status, &error(text));
        assert_eq!((failure.rule.as_ref(), failure.class), (rule, class), "{status} {text}");
        assert_eq!(failure.retryable, class.retryable(), "{status} {text}");
        assert_eq!((failure.limit, failure.actual), (None, None), "{status} {text}");
    }
}

#[test]
fn a_request_that_alone_exceeds_a_rate_limit_is_an_overflow() {
    let text = "Request too large for gpt-4o in organization org-X on tokens per min (TPM): Limit 30000, Requested 36278. The input or output tokens must be reduced in order to run successfully.";
    let body = format!(
        r#"{{"error":{{"message":{},"type":"tokens","param":null,"code":"rate_limit_exceeded"}}}}"#,
        json(text)
    );
    for status in [429, 413, 400] {
        let failure = classify(status, &body);
        assert_eq!((failure.rule.as_ref(), failure.class), ("T1", FailureClass::Overflow));
        assert_eq!((failure.actual, failure.limit), (Some(36278), Some(30000)));
        assert!(!failure.retryable);
    }
    let gate = r#"{"type":"error","error":{"type":"rate_limit_error","message":"Extra usage is required for long context requests."}}"#;
    let failure = classify(429, gate);
    assert_eq!((failure.rule.as_ref(), failure.class), ("T2", FailureClass::Overflow));
    assert_eq!((failure.actual, failure.limit), (None, Some(200_000)));
}

#[test]
fn an_output_cap_is_reported() {
    let text =
        "max_tokens: 128000 > 64,000, which is the maximum allowed number of output tokens for x";
    let failure = classify(400, &error(text));
    assert_eq!((failure.requested_output, failure.output_cap), (Some(128_000), Some(64_000)));
    assert_eq!(failure.exit(), Exit::Refused);
    let failure = classify(400, &error("This model supports at most 16384 completion tokens"));
    assert_eq!((failure.requested_output, failure.output_cap), (None, Some(16384)));
}

#[test]
fn types_decide_if_the_status_does_not() {
    let cases = [
        (200, "overloaded_error", FailureClass::Overloaded, "type-overloaded_error"),
        (200, "api_error", FailureClass::Server, "type-api_error"),
        (200, "new_error", FailureClass::Server, "error-in-answer"),
        (400, "api_error", FailureClass::BadRequest, "status-400"),
        (400, "insufficient_quota", FailureClass::Billing, "type-insufficient_quota"),
        (429, "insufficient_quota", FailureClass::Billing, "type-insufficient_quota"),
        (429, "rate_limit_error", FailureClass::RateLimit, "status-429"),
        (429, "request_too_large", FailureClass::RateLimit, "status-429"),
        (403, "billing_error", FailureClass::Billing, "type-billing_error"),
        (403, "permission_error", FailureClass::Permission, "status-403"),
        (413, "rate_limit_exceeded", FailureClass::RateLimit, "type-rate_limit_exceeded"),
        (413, "request_too_large", FailureClass::TooLarge, "type-request_too_large"),
        (400, "string_above_max_length", FailureClass::BadRequest, "type-string_above_max_length"),
        (503, "unavailable_error", FailureClass::Overloaded, "type-unavailable_error"),
        (529, "overloaded_error", FailureClass::Overloaded, "type-overloaded_error"),
    ];
    for (status, kind, class, rule) in cases {
        let failure =
            classify(status, &format!(r#"{{"error":{{"type":"{kind}","message":"m"}}}}"#));
        assert_eq!((failure.rule.as_ref(), failure.class), (rule, class), "{status} {kind}");
        assert_eq!(failure.kind.as_deref(), Some(kind));
    }
    for code in CODES.iter().filter(|code| code.fault == Some(Fault::Block)) {
        let failure =
            classify(400, &format!(r#"{{"error":{{"code":"{}","message":"m"}}}}"#, code.word()));
        let found = (&*failure.rule, failure.fault, failure.certainty);
        assert_eq!(found, (code.rule, Fault::Block, Certainty::Certain));
    }
    let inside = classify(200, r#"{"error":{"code":429,"message":"prompt is too long"}}"#);
    assert_eq!((inside.rule.as_ref(), inside.status), ("status-429", Some(200)));
}

#[test]
fn the_type_or_code_of_an_error_is_reported() {
    for (body, kind) in [
        (r#"{"error":{"type":"new_error"}}"#, Some("new_error")),
        (r#"{"message":"m","type":"new_error"}"#, Some("new_error")),
        (r#"{"type":"error","error":{"code":"400","message":"m"}}"#, None),
        (r#"{"id":"x","type":"message"}"#, None),
    ] {
        assert_eq!(classify(400, body).kind.as_deref(), kind, "{body}");
    }
}

#[test]
fn a_body_without_an_error_is_classified_by_its_status() {
    let page = "<html><body>prompt is too long: 5 tokens > 4 maximum</body></html>";
    let answer = r#"{"type":"message","content":[{"type":"text","text":"prompt is too long: 5 tokens > 4 maximum"}],"error":null}"#;
    let cases = [
        (400, "", FailureClass::BadRequest, "HTTP 400 with an empty body".to_owned()),
        (400, page, FailureClass::BadRequest, format!("HTTP 400: {page}")),
        (413, "", FailureClass::TooLarge, "HTTP 413 with an empty body".to_owned()),
        (502, page, FailureClass::Server, format!("HTTP 502: {page}")),
        (503, "try again", FailureClass::Server, "HTTP 503: try again".to_owned()),
        (529, " \n", FailureClass::Overloaded, "HTTP 529 with an empty body".to_owned()),
        (200, "", FailureClass::Broken, "HTTP 200 with an empty body".to_owned()),
        (200, answer, FailureClass::Broken, format!("HTTP 200: {answer}")),
        (200, page, FailureClass::Broken, format!("HTTP 200: {page}")),
        (302, "", FailureClass::NotFound, "HTTP 302 with an empty body".to_owned()),
        (
            400,
            r#"{"x":"prompt is too long"}"#,
            FailureClass::BadRequest,
            r#"HTTP 400: {"x":"prompt is too long"}"#.to_owned(),
        ),
    ];
    for (status, body, class, message) in cases {
        let failure = classify(status, body);
        assert_eq!((failure.class, failure.message), (class, message), "{status} {body}");
        assert_eq!((failure.kind, failure.limit), (None, None));
    }
}

#[test]
fn arbitrary_bytes_are_classified() {
    let deep = "[".repeat(100_000);
    // Errors nested this deep are not unwrapped, and count as quotations.
    let nested = (0..20).fold("prompt is too long".to_owned(), |text, _| error(&text));
    let bodies: [&[u8]; 7] = [
        b"\xff\xfe\x00",
        deep.as_bytes(),
        nested.as_bytes(),
        b"{\"error\":{\"message\":\"b'{\\\\xZZ\"}}",
        b"{\"error\":\"b'{\\\\\"}",
        b"[]",
        b"null",
    ];
    for body in bodies {
        let failure = Failure::classify(400, &|_| None, body, NOW, &Rows::default());
        assert!(!failure.message.is_empty());
        assert_eq!(failure.exit(), Exit::Refused);
    }
    let long = "é".repeat(5000);
    assert_eq!(classify(400, &error(&long)).message, "é".repeat(1024));
    assert_eq!(
        classify(400, &error(&format!("x{long}"))).message,
        "x".to_owned() + &"é".repeat(1023)
    );
    assert_eq!(classify(400, &long).message, format!("HTTP 400: {}", "é".repeat(250)));
    // A long text without JSON is no message.
    let page = format!("The prompt is too long. {}", "x".repeat(5000));
    assert_eq!(classify(400, &page).class, FailureClass::BadRequest);
    let late = format!("prompt is too long: 5 tokens > 4 maximum. {long}");
    assert_eq!(classify(400, &error(&late)).rule, "R1");
}

#[test]
fn every_form_of_retry_after_is_read() {
    type Case = (&'static [(&'static str, &'static str)], Option<f64>);
    let cases: &[Case] = &[
        (&[], None),
        (&[("retry-after", "0")], Some(0.0)),
        (&[("retry-after", " 61 ")], Some(61.0)),
        (&[("retry-after", "1.5")], Some(1.5)),
        (&[("retry-after-ms", "250.5"), ("retry-after", "9")], Some(0.2505)),
        (&[("retry-after-ms", "x"), ("retry-after", "9")], Some(9.0)),
        (&[("retry-after", "Thu, 01 Jan 2026 00:02:00 GMT")], Some(120.0)),
        (&[("retry-after", "Fri, 01 Jan 2026 00:02:00 GMT")], Some(120.0)),
        (&[("retry-after", "Wed, 31 Dec 2025 23:00:00 GMT")], Some(0.0)),
        (&[("retry-after", "Fri, 01 Jan 2100 00:00:00 GMT")], Some(LONGEST_WAIT)),
        (&[("retry-after", "-1")], None),
        (&[("retry-after", "1e300")], Some(LONGEST_WAIT)),
        (&[("retry-after", "inf")], Some(LONGEST_WAIT)),
        (&[("retry-after", "99999999999999999999999999")], Some(LONGEST_WAIT)),
        (&[("retry-after", "NaN")], None),
        (&[("retry-after", "soon")], None),
    ];
    for (headers, wait) in cases {
        assert_eq!(classify_with(429, headers, "").retry_after, *wait, "{headers:?}");
    }
}

#[test]
fn headers_refine_the_status() {
    let wait = [("retry-after", "5")];
    let failure = classify_with(402, &wait, "");
    assert_eq!((failure.class, failure.retryable), (FailureClass::RateLimit, true));
    assert_eq!(classify_with(503, &wait, "").class, FailureClass::Overloaded);
    let never = classify_with(429, &[("x-should-retry", "false")], "");
    assert_eq!((never.class, never.retryable), (FailureClass::RateLimit, false));
    let always = classify_with(400, &[("x-should-retry", "True")], "");
    assert_eq!((always.class, always.retryable), (FailureClass::BadRequest, true));
    let named = classify_with(500, &[("request-id", "req_1")], r#"{"request_id":"req_2"}"#);
    assert_eq!(named.request_id.as_deref(), Some("req_1"));
    assert_eq!(classify(500, r#"{"request_id":"req_2"}"#).request_id.as_deref(), Some("req_2"));
}

#[test]
fn a_failure_is_shown_with_its_class_and_numbers() {
    let failure = classify(400, &error("prompt is too long: 208310 tokens > 200000 maximum"));
    assert_eq!(
        failure.to_string(),
        "overflow (rule R1): prompt is too long: 208310 tokens > 200000 maximum \
         (actual 208310, limit 200000)"
    );
    let floor = classify(400, &error(OVERFLOWS[5].4)).to_string();
    assert!(floor.ends_with("(actual at least 769, limit 32768, requested output 32000)"));
    let busy = classify_with(529, &[("retry-after", "12.5")], &error("Over\nloaded"));
    // Escaping for the terminal is left to the program that prints it.
    assert_eq!(busy.to_string(), "overloaded (rule status-529): Over\nloaded; retry after 12.5 s");
    let gone = Failure::unreachable("connection refused");
    assert_eq!(gone.to_string(), "unreachable (rule no-answer): connection refused");
    assert_eq!((gone.exit(), gone.retryable), (Exit::Unavailable, true));
    for unusable in [Failure::broken(200, "cut"), Failure::malformed(200, "x"), Failure::empty()] {
        let found = (unusable.exit(), unusable.status, unusable.retryable);
        assert_eq!(found, (Exit::Unavailable, Some(200), true), "{unusable}");
    }
    assert!(!Failure::untrusted("unknown issuer").retryable);
}

#[test]
#[rustfmt::skip]
fn a_final_message_ends_with_what_the_user_can_do() {
    let wait = ("retry-after", "5");
    let refused = |text: &str| classify(400, &error(text));
    for (failure, ending) in [
        (Failure::untrusted("unknown issuer"), "; install the system's CA certificates, or give the server's certificate (--ca)"),
        (refused("This model is only supported in v1/responses and not in v1/chat/completions."), "; the model needs OpenAI's Responses API; give --api responses"),
        (refused("Invalid role: tool"), "; if the model takes no tools, leave out --tools or use another model"),
        (refused("top_k is out of range"), "; check the request with claw-call --dry-run"),
        (classify(401, ""), "; check the key (--key-file, --key-cmd or its variable)"),
        (classify_with(529, &[wait], ""), "HTTP 529 with an empty body; retry after 5 s"),
        // The provider says that waiting does not help.
        (classify_with(429, &[wait, ("x-should-retry", "false")], ""), "HTTP 429 with an empty body; try again later"),
    ] {
        let message = failure.final_message();
        assert!(message.ends_with(ending), "{message}");
    }
}

#[test]
fn a_refused_block_is_shown_with_its_place() {
    let places = [Place { message: 2, block: Some(0), part: None, tool_use_id: Some("t".into()) }];
    let text = error("Could not process image");
    let failure = Failure { places: places.into(), ..classify(400, &text) };
    assert_eq!(
        failure.to_string(),
        "bad-request (rule status-400): Could not process image (message 3 block 1)"
    );
    let record = failure.to_error_record(None);
    assert!(
        record.contains(r#","places":[{"message":2,"block":0,"tool_use_id":"t"}],"#),
        "{record}"
    );
    assert!(!classify(400, &text).to_error_record(None).contains("places"));
    let full = classify_with(429, &[("retry-after", "5"), ("x-should-retry", "false")], &text);
    assert!(!full.to_string().contains("retry after"), "{full}");
}

#[test]
fn what_a_refusal_names_decides_whether_a_block_can_be_left_out() {
    let long = "string too long. Expected a string with maximum length 64";
    for (param, code, is_id, fault) in [
        ("input[7].call_id", "string_above_max_length", true, Fault::Other),
        ("messages[2].tool_calls[0].id", "string_above_max_length", true, Fault::Other),
        ("messages[3].tool_call_id", "invalid_value", true, Fault::Other),
        ("messages.1.content.2.tool_use.id", "", true, Fault::Other),
        ("contents[3].parts[0].function_call.id", "invalid_argument", true, Fault::Other),
        ("safety_identifier", "string_above_max_length", false, Fault::Other),
        ("tools[0].function.description", "string_above_max_length", false, Fault::Other),
        ("input[7].output", "string_above_max_length", false, Fault::Block),
        ("input[3].id", "invalid_value", false, Fault::Block),
        (
            "messages[2].tool_calls[0].function.arguments",
            "string_above_max_length",
            false,
            Fault::Block,
        ),
    ] {
        let error = serde_json::json!({"message": format!("Invalid '{param}': {long}"), "param": param, "code": code});
        let failure = classify(400, &serde_json::json!({ "error": error }).to_string());
        assert_eq!((failure.class, failure.fault), (FailureClass::BadRequest, fault), "{param}");
        let advice = failure.final_message();
        assert_eq!(advice.contains("the id of a call is not accepted"), is_id, "{param}: {advice}");
    }
    let fastapi = r#"{"detail":[{"loc":["body","messages",2,"content",0],"msg":"not accepted"}]}"#;
    let failure = classify(422, fastapi);
    assert_eq!((failure.fault, failure.certainty), (Fault::Block, Certainty::Certain));
    // A block that is named beside an id may be to blame.
    let both = error("messages.1.content.2.tool_use.id and messages.3.content.0: no");
    assert_eq!(classify(400, &both).fault, Fault::Block);
}

#[test]
fn an_error_record_is_compact_and_ordered() {
    let failure = classify(400, &error("prompt is too long: 5 tokens > 4 maximum; \u{2028}\n\""));
    assert_eq!(
        failure.to_error_record(Some("m")),
        r#"{"type":"error","class":"overflow","status":400,"message":"prompt is too long: 5 tokens > 4 maximum; \u2028\n\"","limit":4,"actual":5,"fault":"tokens","certainty":"certain","model":"m"}"#
    );
    assert_eq!(
        Failure::unreachable("gone").to_error_record(None),
        r#"{"type":"error","class":"unreachable","status":null,"message":"gone","fault":"wait","certainty":"certain","model":null}"#
    );
}

#[test]
fn rules_are_named_after_their_type_or_status() {
    assert!(CODES.iter().all(|code| code.rule.starts_with("type-")));
    for &(status, _, rule) in STATUSES {
        assert_eq!(rule, format!("status-{status}"));
    }
}

#[test]
#[rustfmt::skip]
fn a_server_error_that_says_that_images_cannot_be_read_is_a_refusal() {
    for (status, message, class, fault) in [
        (500, "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj", FailureClass::BadRequest, Fault::Block),
        (500, "this model is missing data required for image input", FailureClass::BadRequest, Fault::Block),
        (501, "images are not supported", FailureClass::BadRequest, Fault::Block),
        (500, "vision is not supported", FailureClass::BadRequest, Fault::Block),
        (500, "Internal server error", FailureClass::Server, Fault::Wait),
        (503, "image input is not supported", FailureClass::Server, Fault::Wait),
        (500, "the image service is busy", FailureClass::Server, Fault::Wait),
        (500, "timed out; could not reach the image service", FailureClass::Server, Fault::Wait),
    ] {
        let body = format!(r#"{{"error":{{"message":"{message}"}}}}"#);
        let none = |_: &str| None;
        let failure = Failure::classify(status, &none, body.as_bytes(), 0.0, &Rows::default());
        assert_eq!((failure.class, failure.fault), (class, fault), "{status} {message}");
        let is_guess = fault == Fault::Block;
        assert_eq!(failure.certainty == Certainty::Likely, is_guess, "{status} {message}");
        assert_eq!(failure.why.is_some(), is_guess, "{status} {message}");
    }
}
