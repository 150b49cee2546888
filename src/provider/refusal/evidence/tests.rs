use crate::fault::Fault;
use crate::provider::refusal::{Certainty, Failure, FailureClass, Rows};

fn classify(status: u16, text: &str) -> Failure {
    let body = format!(r#"{{"error":{{"message":{}}}}}"#, serde_json::Value::from(text));
    Failure::classify(status, &|_| None, body.as_bytes(), 0.0, &Rows::default())
}

/// Overflows in words that no row of the table has, with the prompt and the limit (0 for none).
#[rustfmt::skip]
const OVERFLOWS: &[(u64, u64, &str)] = &[
    // English
    (0, 0, "ollama error: context length exceeded, too many tokens"),
    (8500, 8192, "prompt (8500 tokens) exceeds the available context size (8192 tokens), try increasing it"),
    (0, 0, "input is too long for model gpt-5.4"),
    (156_321, 200_000, "input length and max_tokens exceed context limit (i.e 156321 + 48384 > 200000)"),
    (150_000, 131_072, "Requested token count exceeds the model's maximum context length of 131072 tokens. You requested a total of 150000 tokens"),
    (300_000, 200_000, "Token limit exceeded: 300000 > 200000"),
    (0, 0, "Token limit exceeded"),
    (0, 0, "Too many tokens"),
    (0, 0, "The conversation no longer fits in the model's context."),
    (0, 0, "Your message is too long, please shorten it"),
    (0, 0, "Sorry, this chat has grown too long for the model to read"),
    (9100, 8192, "You sent 9100 tokens but this model only supports up to 8192 tokens"),
    (9100, 8192, "Maximum context is 8192 tokens, got 9100"),
    (5000, 4096, "Sequence length 5000 is larger than the maximum of 4096"),
    (0, 32_768, "Context window is full (32768 tokens)"),
    (40_000, 32_768, "n_ctx=32768 is not enough for a prompt of 40000 tokens"),
    (0, 0, "The history does not fit within the window"),
    (0, 128_000, "Prompt must not exceed 128k tokens"),
    (0, 0, "Please reduce the size of the prompt and try again."),
    (0, 0, "Request failed. The context is too large."),
    (0, 0, "Bad Request: prompt token count over the limit"),
    (200_001, 200_000, "prompt tokens: 200001 > 200000"),
    (0, 0, "InvalidRequest: text exceeds the maximum length accepted by this model"),
    (0, 0, "message length exceeds limit"),
    (0, 0, "The model ran out of context while reading the prompt"),
    (12_000, 8000, "This request would use 12000 tokens, which is more than the 8000 tokens the model can read"),
    (0, 0, "We could not process your request: the input was longer than the model allows."),
    (0, 0, "context overflow"),
    (0, 0, "insufficient context length for this conversation"),
    (0, 245_760, "Range of input length should be [1, 245760]"),
    (0, 8192, "The number of input tokens must be between 1 and 8192"),
    (0, 32_768, "输入长度范围应为 [1, 32768]"),
    (0, 0, "`messages` exceed the context limit"),
    (0, 0, "The total number of tokens in your messages exceeds what the model supports."),
    (0, 4096, "The length of `prompt` exceeds 4096"),
    // Something else is named too
    (0, 0, "With the attached files, your input is too long for this model"),
    (0, 0, "2 images were resized; the message exceeds the maximum length"),
    (0, 0, "The prompt does not fit the context. The tool said: rate limit reached"),
    // Chinese
    (0, 0, "请压缩上下文后重试"),
    (0, 0, "输入内容过长，请精简后重试"),
    (140_000, 131_072, "输入长度140000超过了模型最大长度131072"),
    (0, 0, "对话历史超出模型上下文窗口"),
    (0, 0, "提示词太长"),
    (0, 8192, "请求的 token 数量超过限制，最大 8192"),
    (0, 0, "上下文长度超限"),
    (0, 0, "當前對話內容過長，請開啟新的對話"),
    (0, 0, "文本长度超过最大限制"),
    (0, 0, "会话已达到上下文上限，请新建对话"),
    // Japanese
    (0, 0, "入力が長すぎます。短くしてください。"),
    (9000, 8192, "入力は9000トークンで、上限の8192トークンを超えています"),
    (0, 0, "コンテキスト長の上限を超えました"),
    (0, 0, "プロンプトがモデルの最大長を超過しています"),
    (0, 0, "会話がコンテキストウィンドウに収まりません"),
    (0, 0, "トークン数が多すぎます"),
    // Korean
    (0, 0, "입력이 너무 깁니다. 길이를 줄여 주세요."),
    (0, 0, "컨텍스트 길이를 초과했습니다"),
    (9000, 8192, "요청한 토큰 9000개가 최대 8192개를 초과했습니다"),
    (0, 0, "프롬프트가 모델의 한도를 넘었습니다"),
    (0, 0, "대화가 너무 길어 처리할 수 없습니다"),
    // French
    (0, 0, "Le contexte dépasse la limite du modèle"),
    (140_000, 131_072, "La requête contient 140 000 jetons, le maximum est de 131 072 jetons"),
    (0, 0, "Votre invite est trop longue"),
    (0, 0, "Trop de jetons dans la conversation"),
    (0, 0, "Le message est trop long, veuillez le raccourcir."),
    (0, 0, "La longueur de l’entrée excède la fenêtre de contexte"),
    // German
    (0, 0, "Die Eingabe ist zu lang für dieses Modell"),
    (140_000, 131_072, "Kontextlänge 131.072 überschritten (Anfrage: 140.000 Token)"),
    (0, 0, "Das Kontextfenster wurde überschritten"),
    (0, 0, "Zu viele Token in der Anfrage"),
    (0, 0, "Der Prompt passt nicht in das Kontextfenster"),
    (0, 0, "Ihre Nachricht ist zu lang."),
    // Spanish
    (0, 0, "La entrada es demasiado larga para el modelo"),
    (0, 0, "Se ha superado la longitud máxima del contexto"),
    (9000, 8192, "El prompt tiene 9000 tokens y el límite es de 8192"),
    (0, 0, "Demasiados tokens en la solicitud"),
    (0, 0, "La conversación excede la ventana de contexto, acorte el historial"),
    // Portuguese
    (0, 0, "A entrada é muito longa para o modelo"),
    (0, 0, "O contexto ultrapassa o limite máximo"),
    (9000, 8192, "O prompt contém 9000 tokens, o limite é 8192"),
    (0, 0, "A conversa é longa demais"),
    (0, 0, "Número de tokens excede o máximo permitido"),
    // Russian
    (0, 0, "Превышена максимальная длина контекста"),
    (0, 0, "Слишком длинный запрос"),
    (9000, 8192, "Запрос содержит 9000 токенов, а лимит модели 8192"),
    (0, 0, "Слишком много токенов в сообщении"),
    (0, 0, "Диалог не помещается в окно контекста, сократите историю"),
];

#[test]
fn overflows_in_unknown_words_are_recognised() {
    let mut missed = Vec::new();
    for &(actual, limit, text) in OVERFLOWS {
        for status in [400, 422, 500] {
            let failure = classify(status, text);
            let numbers = (failure.actual.unwrap_or(0), failure.limit.unwrap_or(0));
            let is_right = failure.class == FailureClass::Overflow
                && failure.fault == Fault::Tokens
                && numbers == (actual, limit);
            let is_taught =
                failure.certainty == Certainty::Likely && failure.stated_window.is_some();
            if !is_right || is_taught || failure.why.is_none() && &*failure.rule == "evidence" {
                missed.push(format!("{status} {numbers:?} {failure}"));
            }
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

#[test]
fn an_overflow_in_unknown_words_gives_the_requested_output() {
    let failure = classify(400, "Input and output exceed the context: 156321 + 48384 > 200000");
    let numbers = (failure.actual, failure.requested_output, failure.limit);
    assert_eq!(numbers, (Some(156_321), Some(48_384), Some(200_000)), "{failure}");
}

/// Refusals that are no overflow, although they say that something is too much, or speak of tokens or the context.
#[rustfmt::skip]
const LOOKALIKES: &[&str] = &[
    "Invalid token count: token budget must be positive",
    "concurrency limit has been reached",
    "Model context window too small (2048 tokens). Minimum is 16000.",
    "context deadline exceeded",
    "context canceled",
    "You have exceeded the number of tokens per minute for this model",
    "Token quota exceeded for this month",
    "Token usage limit exceeded, please upgrade your plan",
    "Too many requests in the queue for this context",
    "The access token is too long",
    "Invalid JWT: token exceeds its lifetime",
    "Unexpected token < in JSON at position 0",
    "temperature must be less than 2",
    "'top_k' exceeds the maximum of 100",
    "Expected at most 4 stop sequences, got 9",
    "Too many images in request: 25 > 20",
    "The prompt contains too many images",
    "Image exceeds the maximum size of 5 MB",
    "A maximum of 100 PDF pages may be provided.",
    "tool name is longer than 64 characters",
    "Too many tools: 200 exceeds the maximum of 128",
    "Function description too long",
    "thinking.budget_tokens must be less than max_tokens",
    "Thinking budget of 40000 exceeds the maximum of 24576",
    "Cached content is too small: 1000 tokens, minimum is 4096",
    "cache_control: at most 4 breakpoints are allowed",
    "Your request was rejected because its content exceeded the safety threshold",
    "Request exceeded the time limit",
    "stop sequence too long",
    "The model does not support tokens as input",
    "messages: at least one message is required",
    "The user id exceeds 64 characters",
    "Reasoning is mandatory for this endpoint and cannot be disabled.",
    "Requested model requires more memory than available",
    "Header fields too large",
    "No endpoints found that support tool use",
    "response_format is not supported by this model",
    "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.",
    "Insufficient credits: the prompt needs more tokens than your balance allows",
    "请求过于频繁，请稍后重试",
    "账户余额不足，请充值后再试",
    "每分钟 token 数超过限制",
    "并发请求数超过上限",
    "图片大小超过限制",
    "工具数量超过上限",
    "token 已过期",
    "リクエストが多すぎます。しばらくしてから再試行してください",
    "1分あたりのトークン数の上限を超えました",
    "画像が大きすぎます",
    "分間の利用制限を超えました",
    "분당 토큰 한도를 초과했습니다",
    "이미지가 너무 큽니다",
    "Limite de débit dépassée : trop de requêtes",
    "Quota de jetons dépassé",
    "L'image dépasse la taille maximale",
    "Ratenlimit überschritten: zu viele Anfragen pro Minute",
    "Das Bild ist zu groß",
    "Kontingent an Token überschritten",
    "Límite de solicitudes por minuto superado",
    "Demasiadas solicitudes, inténtelo más tarde",
    "La imagen es demasiado grande",
    "Limite de taxa excedido: muitas solicitações",
    "A imagem excede o tamanho máximo",
    "Превышен лимит запросов в минуту",
    "Недостаточно средств на балансе",
    "Превышена квота токенов",
    "Изображение слишком большое",
    "The length of a value exceeds 64",
    "The request has 120 questions, but its maximum size is 100",
    // Quotations
    "The length of 'suffix' exceeds 64",
    "The title 'how to count tokens' is too long",
    "'don't call the prompt too long' is not a role",
    "Cannot read the block {text=the prompt is too long}",
    "The tool reported a problem. The prompt is far too long for the context",
    "invalid content: the conversation is too long",
    "Could not read the model's output: \"context overflow, too many tokens\"",
    "unexpected value 'too many tokens in the prompt' for role",
    "error parsing tool call: raw='{\"text\":\"prompt too long\"}'",
    "“the context is too long” is not a role",
    "«the context is too long» is not a role",
    "„the context is too long“ is not a role",
    "「the context is too long」 is not a role",
    "『the context is too long』 is not a role",
];

#[test]
fn lookalikes_are_not_overflows() {
    let mut mistaken = Vec::new();
    for &text in LOOKALIKES {
        for status in [400, 422, 500] {
            let failure = classify(status, text);
            if failure.class == FailureClass::Overflow || failure.stated_window.is_some() {
                mistaken.push(format!("{status} {failure}"));
            }
        }
    }
    assert!(mistaken.is_empty(), "{}", mistaken.join("\n"));
}

/// Reads tests/data/evidence.tsv: made-up sentences, each with the status and with `overflow`, or `other` for any class but
/// that. The first line names the columns.
#[test]
fn each_sentence_in_evidence_tsv_is_judged_as_expected() {
    let text = include_str!("../../../../tests/data/evidence.tsv");
    let mut wrong = Vec::new();
    for line in text.lines().skip(1) {
        let [expected, status, text] = line.splitn(3, '\t').collect::<Vec<_>>()[..] else {
            panic!("{line}");
        };
        let failure = classify(status.parse().unwrap(), text);
        if (failure.class == FailureClass::Overflow) != (expected == "overflow") {
            wrong.push(failure.to_string());
        }
    }
    assert!(text.lines().count() > 500 && wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
#[rustfmt::skip]
fn a_body_that_is_too_large_is_told_from_a_prompt_that_is_too_long() {
    for (status, text, limit) in [
        (400, "Maximum request body size 1048576 bytes exceeded, got 2000000 bytes", 1 << 20),
        (500, "PayloadTooLargeError: request entity too large", 0),
        (400, "The request body is too large; the limit is 10 MB", 10 << 20),
        (413, "request entity too large, max 4.5MB", 4 << 20),
        (400, "请求体过大，最大 20 MB", 20 << 20),
        (400, "Tamaño de la solicitud: 30 MB, máximo 20 MB", 20 << 20),
        (400, "Request payload exceeds the limit of 20971520 bytes", 20_971_520),
    ] {
        let failure = classify(status, text);
        assert_eq!((failure.class, failure.fault), (FailureClass::TooLarge, Fault::Bytes), "{failure}");
        assert_eq!(failure.limit_bytes.unwrap_or(0), limit, "{failure}");
        assert_eq!((failure.limit, failure.stated_window), (None, None), "{failure}");
    }
}

#[test]
#[rustfmt::skip]
fn an_output_limit_is_read_in_unknown_words() {
    for (text, requested, cap) in [
        ("max_tokens 8192 is larger than the maximum of 4096 for this model", 8192, 4096),
        ("The value of max_output_tokens must be at most 8192", 0, 8192),
        ("Requested 9000 output tokens, but the model can generate up to 4096", 9000, 4096),
        ("num_predict exceeds the limit of 2048", 0, 2048),
        ("max_new_tokens (5000) exceeds the maximum (2048)", 5000, 2048),
    ] {
        let failure = classify(400, text);
        let numbers = (failure.requested_output.unwrap_or(0), failure.output_cap);
        assert_eq!((failure.class, numbers), (FailureClass::OutputCap, (requested, Some(cap))), "{failure}");
        assert_eq!(classify(413, text).class, FailureClass::TooLarge, "{failure}");
    }
}

#[test]
fn plain_text_and_pages_are_judged_too() {
    let classify = |status, body: &str| {
        Failure::classify(status, &|_| None, body.as_bytes(), 0.0, &Rows::default())
    };
    for (status, body, class) in [
        (400, "prompt exceeds the context window", FailureClass::Overflow),
        (400, r#"{"msg":"the input has too many tokens"}"#, FailureClass::Overflow),
        (422, r#"{"detail":[{"msg":"prompt too long"}]}"#, FailureClass::Overflow),
        (400, "<html><head><title>413 Request Entity Too Large</title>", FailureClass::TooLarge),
        (
            400,
            "<html><body>prompt is too long: 5 tokens > 4 maximum</body>",
            FailureClass::BadRequest,
        ),
        (502, "<html><head><title>502 Bad Gateway</title>", FailureClass::Server),
    ] {
        assert_eq!(classify(status, body).class, class, "{body}");
    }
}

#[test]
fn too_many_messages_are_an_overflow_without_numbers() {
    for (text, limit) in [
        (
            "Invalid 'messages': array too long. Expected an array with maximum length 2048, but got an array with length 2049 instead.",
            None,
        ),
        (
            "Invalid 'input': string too long. Expected a string with maximum length 10485760, but got a string with length 12000000 instead.",
            None,
        ),
        ("input: prompt exceeds maximum length of 8192 tokens", Some(8192)),
    ] {
        let failure = classify(400, text);
        let found = (failure.class, failure.certainty, failure.limit, failure.actual);
        assert_eq!(found, (FailureClass::Overflow, Certainty::Likely, limit, None), "{failure}");
    }
    for text in [
        "Invalid 'messages[0].name': string too long",
        "Invalid 'tools': array too long. Expected an array with maximum length 128",
        "messages: roles must alternate",
    ] {
        assert_eq!(classify(400, text).class, FailureClass::BadRequest, "{text}");
    }
}

#[test]
fn a_refused_block_is_told_from_a_refused_parameter() {
    for (text, fault, certainty) in [
        ("messages.3.content.0: image exceeds 5 MB maximum", Fault::Block, Certainty::Certain),
        ("Invalid 'messages[3].content[0].image_url'", Fault::Block, Certainty::Certain),
        ("Could not process image", Fault::Block, Certainty::Likely),
        ("The PDF specified was not valid", Fault::Block, Certainty::Likely),
        ("tools.0.custom.name: String should match pattern", Fault::Other, Certainty::Certain),
        ("Unsupported parameter: 'top_k'", Fault::Other, Certainty::Certain),
        (
            "max_tokens must be greater than thinking.budget_tokens",
            Fault::Other,
            Certainty::Certain,
        ),
        ("messages: text content blocks must be non-empty", Fault::Block, Certainty::Likely),
    ] {
        let failure = classify(400, text);
        assert_eq!((failure.fault, failure.certainty), (fault, certainty), "{failure}");
        assert_eq!(failure.class, FailureClass::BadRequest);
    }
}
