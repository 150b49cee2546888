//! The vocabulary of the evidence: things that have a size, words for too much, and words that speak against an
//! overflow, in the languages that providers use.
//!
//! An entry is one or several words. Latin, Cyrillic and Korean entries match whole words; `*` at the end of a word
//! matches any ending. All other entries, of scripts that write no spaces, match anywhere. The text is lower case,
//! without accents (see [`super::sentence::fold`]).

/// Words for the prompt or its size in tokens. With a word for too much, they say that the prompt is too long.
#[rustfmt::skip]
pub(super) const PROMPT: &[&str] = &[
    "token*", "context", "context length*", "context size*", "context window*", "contexts", "prompt*", "conversation*", "chat history",
    "message history", "history", "n ctx", "max model len", "max seq len", "sequence length", "input length", "dialog*", "transcript", "input ids",
    "max context*", "ctx", "model len",
    // French, German, Spanish, Portuguese, Russian
    "contexte*", "jeton*", "invite", "historique", "kontext*", "unterhaltung*", "gesprach*", "konversation*", "verlauf*", "eingabelange*",
    "contexto*", "conversacion*", "historial*", "conversa", "historico*", "контекст*", "промпт*", "токен*", "диалог*", "истори*", "беседа*", "беседы", "переписк*",
    // Chinese, Japanese, Korean
    "上下文", "提示词", "提示詞", "令牌", "词元", "詞元", "权杖", "對話", "对话", "会话", "會話", "历史消息", "聊天记录", "语境", "输入长度", "輸入長度",
    "コンテキスト", "コンテクスト", "プロンプト", "トークン", "会話", "履歴", "文脈", "入力長", "入力の長さ",
    "컨텍스트*", "콘텍스트*", "문맥*", "프롬프트*", "토큰*", "대화*", "입력 길이*",
];

/// Words for a whole request. They need a stronger word for too much than those of [`PROMPT`].
#[rustfmt::skip]
pub(super) const REQUEST: &[&str] = &[
    "input*", "request*", "message*", "text*", "content*", "query", "queries", "chat*", "session*", "sequence*", "question*", "payload*", "body", "data",
    "entree*", "requete*", "saisie*", "texte*", "demande*", "eingabe*", "anfrage*", "nachricht*", "anforderung*",
    "entrada*", "solicitud*", "peticion*", "mensaje*", "texto*", "solicitac*", "requisic*", "pedido*", "mensage*",
    "запрос*", "ввод*", "вход*", "сообщени*", "текст*", "данны*",
    "length exceeded", "maximum length", "max length", "longueur maximale", "maximale lange", "longitud maxima", "comprimento maximo", "максимальная длина", "最大长度", "最大長", "최대 길이*",
    "数据", "數據", "输入", "輸入", "请求", "請求", "消息", "訊息", "内容", "內容", "文本", "提问", "问题",
    "入力", "リクエスト", "メッセージ", "テキスト", "要求", "本文",
    "입력*", "요청*", "메시지*", "텍스트*", "내용*", "질문*",
];

/// The words of [`REQUEST`] for all of a request, which may be too large in tokens or in bytes.
pub(super) const WHOLE: &[&str] = &[
    "request*",
    "payload*",
    "body",
    "data",
    "content*",
    "requete*",
    "demande*",
    "anfrage*",
    "solicitud*",
    "peticion*",
    "solicitac*",
    "requisic*",
    "pedido*",
    "запрос*",
    "请求",
    "請求",
    "リクエスト",
    "요청*",
];

/// Words for a size in space.
#[rustfmt::skip]
pub(super) const SPACE: &[&str] = &[
    "size*", "taille*", "grosse*", "tamano*", "tamanho*", "размер*", "大小", "サイズ", "크기*", "too large", "too big", "too great", "trop grand*", "zu gross*", "demasiado grande*", "muito grande*", "grande demais", "слишком больш*", "слишком велик*", "大きすぎ", "过大", "過大", "太大", "너무 크*", "너무 큽*",
];

/// Words for a size. `exceeds` and the like count for a word of [`REQUEST`] only with one of them.
#[rustfmt::skip]
pub(super) const SIZE: &[&str] = &[
    "length*", "size*", "limit*", "maximum*", "max", "window*", "characters", "chars", "words", "capacity", "bytes", "long", "count", "budget", "model can", "model supports", "model allows", "model accepts", "can handle", "can process",
    "longueur*", "taille*", "limite*", "fenetre*", "lange*", "grosse*", "grenze*", "hochst*", "maximal*", "fenster*", "zeichen",
    "longitud*", "tamano*", "maxim*", "ventana*", "comprimento*", "tamanho*", "janela*", "длин*", "размер*", "лимит*", "предел*", "максим*", "окн*",
    "长度", "長度", "限制", "上限", "最大", "字数", "字符", "大小", "窗口", "长", "長さ", "文字数", "サイズ", "制限", "길이*", "한도*", "제한*", "최대*", "크기*", "창*", "윈도우*",
];

/// Words for too much that need no other word than one of [`REQUEST`].
#[rustfmt::skip]
pub(super) const TOO_LONG: &[&str] = &[
    "this many", "that many", "so many", "longer fit", "longer fits", "unable to fit", "to fit", "accommodate", "this long", "that long", "so long", "too long", "too lengthy", "overlong", "over length", "overly long", "long for", "oversized", "longer than", "too many tokens", "too much text", "trop de texte", "zu viel text", "demasiado texto", "muito texto", "texto demais", "слишком много текста", "文本过多", "文字太多", "too much content", "too much input", "too many words", "too many characters", "overflow*", "does not fit", "doesn t fit", "do not fit",
    "don t fit", "not fit", "cannot fit", "can t fit", "won t fit", "fails to fit", "fit in", "fit into", "fit within", "fits in",
    "trop long*", "plus long*", "ne tient pas", "ne tiennent pas", "ne rentre pas", "zu lang*", "langer als", "passt nicht", "passen nicht", "zu umfangreich*",
    "demasiado larg*", "muy larg*", "mas larg*", "no cabe*", "demasiado extens*", "muito long*", "longo demais", "longa demais", "longos demais", "longas demais", "mais long*", "nao cabe*", "muito extens*",
    "demasiado long*", "слишком длин*", "слишком велик*", "длиннее", "не помеща*", "не вмеща*", "не умеща*",
    "过长", "過長", "太长", "太長", "超长", "超長", "长于", "装不下", "放不下", "長すぎ", "長過ぎ", "長くなり", "収まりません", "収まらない", "収まりきら", "너무 길*", "너무 깁*", "너무 긴", "들어가지 않*", "깁니다", "더 길*",
];

/// Words for too much.
#[rustfmt::skip]
pub(super) const TOO_MUCH: &[&str] = &[
    "too large", "too big", "too great", "too high", "trop eleve*", "zu hoch", "demasiado alt*", "muito alt*", "слишком высок*", "sature*", "supero", "too much", "too many", "exceed*", "over the", "over limit", "over its", "over maximum", "over max", "larger than", "greater than", "bigger than", "more than",
    "more tokens than", "higher than", "beyond", "surpass*", "overrun*", "above the", "above maximum", "above max", "reached the", "limit hit", "tokens reached", "length reached", "window reached", "context reached", "cache full", "context shift", "over budget", "limit reached", "limit was reached", "limit has been reached",
    "been hit", "was hit", "has reached", "have reached", "reached its", "reached your maximum", "hit the", "hits the", "maximum reached", "out of context", "ran out of", "run out of", "runs out of", "no room", "no space", "not enough",
    "insufficient", "is full", "was full", "filled", "exhausted", "in excess of", "goes over", "outgrown", "outgrew", "too small", "past the", "outside the", "outside of",
    "atteint*", "depass*", "exced*", "excess*", "trop grand*", "trop volumineu*", "trop de", "superieur*", "plus grand* que", "plus de", "au dela", "au dessus", "insuffisan*", "pleine", "trop petit*",
    "erreicht", "uberschreit*", "uberschritt*", "ubersteig*", "uberstieg*", "zu gross*", "zu viele", "zu viel", "grosser als", "mehr als", "mehr token*", "zu klein*", "uberlauf*", "liegt uber", "oberhalb", "reicht nicht", "voll", "erschopft",
    "alcanz*", "supera*", "superou", "superior*", "sobrepas*", "rebas*", "demasiado grand*", "demasiad*", "por encima", "mayor que", "mayor a", "mas de", "mas token*", "insuficiente*", "lleno", "llena",
    "atingi*", "ultrapass*", "grande demais", "muito grande*", "demais", "maior que", "maior do que", "mais de", "mais token*", "acima d*", "estour*", "cheia", "cheio",
    "достигнут*", "превыш*", "превыс*", "слишком больш*", "слишком много", "больше чем", "больше", "сверх", "переполн*", "недостаточно", "исчерпан*", "выходит за",
    "超出", "超过", "超過", "过大", "過大", "太大", "过多", "過多", "太多", "超限", "大于", "大於", "溢出", "超了", "已满", "已達", "已达", "达到上限", "不足", "高于",
    "超え", "越え", "超過", "大きすぎ", "多すぎ", "上回", "オーバー", "あふれ", "溢れ", "足りません", "いっぱい", "達し",
    "초과*", "너무 크*", "너무 큽*", "너무 많*", "넘었*", "넘습*", "넘어*", "넘는*", "넘음", "벗어*", "부족*", "가득*", "큽니다", "많습니다",
];

/// Requests to make the prompt smaller. They count only for words of [`PROMPT`] and [`SIZE`].
#[rustfmt::skip]
pub(super) const SHORTEN: &[&str] = &[
    "reduce", "reducing", "decrease", "decreasing", "fewer", "lower the number", "lower the amount", "less text", "drop some", "remove some", "shorten*", "shorter", "trim", "truncat*", "compress*", "compact*", "condense", "summari*", "cut down", "smaller", "split", "start a new", "clear the",
    "reduis*", "reduire", "raccourc*", "plus court*", "kurz*", "verkurz*", "reduzier*", "verringer*", "verklein*", "reduzca*", "reducir", "reduce", "reduci*", "acort*", "mas corto", "recort*",
    "reduza*", "reduzir", "encurt*", "diminu*", "сократ*", "уменьш*", "укорот*",
    "压缩", "壓縮", "缩短", "縮短", "减少", "減少", "精简", "精簡", "截断", "删减", "清理", "开启新", "新建对话", "短く", "減らし", "削減", "圧縮", "短縮", "줄여*", "줄이*", "축소*", "압축*", "짧게",
];

/// Requests to make something shorter. They count for words of [`PROMPT`] and [`REQUEST`].
#[rustfmt::skip]
pub(super) const SHORTER: &[&str] = &[
    "shorten*", "shorter", "raccourc*", "plus court*", "kurzen", "kurzer*", "verkurz*", "acort*", "mas corto", "encurt*", "сократ*", "укорот*", "короче", "缩短", "縮短", "精简", "精簡", "短く", "短縮", "짧게",
];

/// Words for the number of requests. They speak against an overflow, unless the limit is one for each request.
pub(super) const REQUESTS: &[&str] = &[
    "request limit",
    "requests limit",
    "request limits",
    "limit of requests",
    "limit on requests",
];

/// Words that state a limit. They count only for words of [`PROMPT`], with two numbers of which the larger is not the
/// limit.
#[rustfmt::skip]
pub(super) const LIMIT: &[&str] = &[
    "limit*", "maximum*", "max", "up to", "at most", "only", "range", "between", "less than", "fewer than", "must be", "should be", "cannot be", "can be", "allow*", "support*", "capacity", "cap", "capped", "no more than", "ceiling", "restricted",
    "limite*", "maxim*", "au plus", "jusqu a", "hochst*", "grenze*", "erlaubt*", "nur", "permit*", "admite*", "hasta", "suporta", "ate", "лимит*", "максим*", "предел*", "не более", "допустим*", "огранич*",
    "上限", "最大", "最多", "限制", "不能", "不得", "支持", "范围", "範圍", "应为", "應為", "制限", "範囲", "まで", "以下", "최대*", "한도*", "제한*", "까지", "이하*",
];

/// Words for a rate, a quota or an account. They speak against an overflow wherever they stand.
#[rustfmt::skip]
pub(super) const RATE: &[&str] = &[
    "per minute", "per min", "per second", "per sec", "per hour", "per day", "per month", "per week", "minute", "tpm", "rpm", "tpd", "rpd", "tps", "rps", "rate limit*", "ratelimit*", "rate limited", "rate", "quota*", "throttl*",
    "too many requests", "number of requests", "requests per", "slow down", "free tier", "trial", "api key", "account", "accounts", "organization*", "allocation", "throughput", "plan", "upgrade", "request count", "concurren*", "parallel", "billing", "credit*", "balance", "spend", "spending", "usage limit*", "usage cap", "daily", "monthly", "weekly", "hourly",
    "try again later", "retry later", "retry after", "try again in", "retry in", "wait before", "please wait", "overloaded", "busy", "at capacity", "server capacity", "pending", "queue*", "subscription", "your plan", "payment", "purchase", "recharge",
    "nombre de requetes", "limite de requetes", "anzahl der anfragen", "anfragelimit*", "limite de solicitud*", "limite de peticion*", "limite de requisic*", "limite de solicitac*", "limite de pedidos", "par minute", "par jour", "par seconde", "limite de debit", "limite de taux", "solde", "facturation", "requetes simultanees", "reessayez", "ulterieurement", "pro minute", "pro tag", "pro stunde", "pro sekunde", "kontingent*", "ratenlimit*", "ratenbegrenzung*", "guthaben*", "abrechnung*",
    "gleichzeitig*", "anfragenlimit*", "zu viele anfragen", "erneut versuch*", "versuchen sie es spater", "por minuto", "por dia", "por segundo", "por hora", "cuota*", "cota", "cotas", "limite de velocidad", "limite de tasa", "limite de frecuencia",
    "saldo*", "facturacion", "demasiadas solicitudes", "demasiadas peticiones", "simultane*", "mas tarde", "limite de taxa", "faturamento", "muitas solicitac*", "muitas requisic*", "mais tarde", "tente novamente", "intentelo", "trop de requetes",
    "аккаунт*", "учетн*", "в минуту", "в секунду", "в день", "в час", "квот*", "лимит запросов", "слишком много запросов", "количество запросов", "числа запросов", "число запросов", "частот*", "баланс*", "средств*", "одновремен*", "параллельн*", "оплат*", "тариф*", "позже",
    "账户", "账号", "帐号", "每分钟", "每分鐘", "每秒", "每小时", "每日", "每天", "每月", "限流", "频率", "頻率", "速率", "限速", "频繁", "頻繁", "配额", "配額", "额度", "額度", "欠费", "余额", "餘額", "充值", "并发", "併發", "並發", "稍后", "稍後", "请求数", "請求數", "请求过多", "次数", "次數", "套餐", "tpm", "rpm", "繁忙",
    "アカウント", "レート制限", "レートリミット", "1分", "毎分", "分あたり", "秒あたり", "日あたり", "クォータ", "割り当て", "残高", "クレジット", "同時", "リクエスト数", "回数", "リクエストが多すぎ", "しばらく", "後でもう一度", "支払", "利用上限", "利用制限",
    "계정*", "분당", "초당", "일일", "시간당", "할당량*", "쿼터*", "속도 제한*", "요청 수*", "횟수*", "요청이 너무 많*", "동시*", "잔액*", "크레딧*", "결제*", "잠시 후*", "나중에*", "사용량*", "사용 한도*",
];

/// Names of the output limit, and words for the answer's length. They speak against an overflow unless the sentence
/// names the context.
#[rustfmt::skip]
pub(super) const OUTPUT: &[&str] = &[
    "max_tokens", "max_completion_tokens", "max_output_tokens", "max_new_tokens", "max_tokens_to_sample", "maxoutputtokens", "maxtokens", "max_gen_len", "num_predict", "n_predict", "output token*", "completion token*", "new token*",
    "generated token*", "to generate", "output", "outputs", "response", "completion", "output length", "completion length", "response length", "maximum tokens value", "maximum tokens you requested", "jetons de sortie", "tokens de sortie", "ausgabetoken*", "ausgabe", "tokens de salida", "tokens de saida", "выходн*", "输出", "輸出", "出力", "출력*",
];

/// Words for other parameters. They speak against an overflow unless the sentence names the context.
#[rustfmt::skip]
pub(super) const PARAMETER: &[&str] = &[
    "budget_tokens", "token budget", "thinking budget", "thinkingbudget", "thinking_budget", "reasoning budget", "reasoning token*", "thinking token*", "temperature", "top p", "top k", "logprobs", "top logprobs", "logit bias", "seed", "penalty",
    "min_tokens", "reasoning effort", "reasoning_effort", "cached content", "cache control", "caching", "cache", "stop token*", "bias",
];

/// Words that name the context beyond doubt, also beside a parameter.
#[rustfmt::skip]
pub(super) const CONTEXT: &[&str] = &[
    "context", "context length*", "context window*", "context size*", "context limit*", "prompt*", "input token*", "input length", "inputs", "input", "n ctx", "max model len", "max seq len", "total", "sequence length", "conversation", "history", "messages",
    "contexte*", "kontext*", "contexto*", "контекст*", "上下文", "提示词", "输入", "輸入", "コンテキスト", "プロンプト", "入力", "컨텍스트*", "콘텍스트*", "프롬프트*", "입력*",
];

/// Words for things that are not the prompt, but may be too large or too many. They speak against an overflow unless
/// the sentence names the prompt in tokens.
#[rustfmt::skip]
pub(super) const OTHER: &[&str] = &[
    "tool*", "function*", "template*", "placeholder*", "string*", "image*", "photo*", "picture*", "pixel*", "page*", "pdf", "document*", "file*", "attachment*", "video*", "audio", "frame*", "dimension*", "width", "height", "resolution", "name*", "description*",
    "id", "ids", "url*", "uri", "header*", "cookie*", "field*", "property", "properties", "schema*", "enum*", "key", "keys", "label*", "tag*", "metadata", "stop sequence*", "depth", "nest*", "level*", "breakpoint*", "parameter*", "role", "roles", "duration", "second*",
    "time", "hours", "days", "connection*", "safety", "policy", "policies", "moderation", "filter*", "region*", "version*", "score*", "threshold*", "embedding*", "batch*", "dataset*", "choices", "candidate*", "user", "users", "organization*",
    "project*", "memory", "gpu*", "cuda", "disk", "storage", "price*", "cost*", "dollar*", "age", "date*", "expired", "expire*", "signature*",
    "outil*", "fichier*", "werkzeug*", "bild*", "datei*", "seiten", "herramienta*", "imagen*", "archivo*", "pagina*", "ferramenta*", "imagem", "imagens", "arquivo*", "инструмент*", "изображени*", "файл*", "страниц*", "функци*",
    "工具", "函数", "函數", "图片", "圖片", "图像", "圖像", "文件", "檔案", "页", "名称", "名稱", "描述", "视频", "音频", "像素", "时间", "密钥", "敏感", "安全", "违规",
    "ツール", "関数", "画像", "ファイル", "ページ", "名前", "説明", "動画", "音声", "ピクセル", "時間", "有効期限", "도구*", "함수*", "이미지*", "파일*", "페이지*", "이름*", "설명*", "시간*", "동영상*", "음성*", "픽셀*", "만료*",
];

/// Words for a key, a time limit or a cancelled request. They speak against an overflow wherever they stand.
#[rustfmt::skip]
pub(super) const UNRELATED: &[&str] = &[
    "access token*", "auth token*", "api token*", "refresh token*", "bearer", "jwt", "oauth", "csrf", "session token*", "security token*", "token expired", "token has expired", "token is expired", "authentication", "authorization", "unauthorized", "login", "password*",
    "permission*", "forbidden", "unable to decode", "cannot decode", "could not decode", "deadline", "timeout*", "timed out", "time limit", "canceled", "cancelled", "超时", "逾時", "タイムアウト", "시간 초과*", "zeituberschreitung*", "delai*", "tiempo de espera", "tempo limite", "время ожидания",
];

/// Words for tokens and the context. They outweigh those of [`OTHER`].
#[rustfmt::skip]
pub(super) const TOKENS: &[&str] = &[
    "token*", "context", "context length*", "context window*", "n ctx", "input ids", "position embeddings", "jeton*", "contexte*", "kontext*", "contexto*", "контекст*", "токен*", "上下文", "令牌", "词元", "コンテキスト", "トークン", "컨텍스트*", "콘텍스트*", "토큰*",
];

/// Words that say the opposite: that something is too short, or that a setting is wrong.
#[rustfmt::skip]
pub(super) const TOO_LITTLE: &[&str] = &[
    "minimum*", "too short", "too few", "must be at least", "should be at least", "at least one", "must be positive", "must be greater", "must be larger", "must be more", "must contain", "greater than 0", "greater than zero", "greater than or equal", "larger than 0", "required", "must not be empty", "non empty",
    "not supported", "does not support", "doesn t support", "trop court*", "au moins", "zu kurz", "mindest*", "minimo", "al menos", "pelo menos", "не менее", "минимум", "大于0", "大于 0", "至少", "不能为空", "過短", "过短", "少なくとも", "최소*",
];

/// Words for the body of a request as bytes.
#[rustfmt::skip]
pub(super) const BODY: &[&str] = &[
    "request entity", "payload*", "request body", "body", "entity", "content length", "upload*", "request size", "body size", "http request", "corps de la requete", "charge utile", "anfragetext*", "nutzlast", "anfragekorper*", "cuerpo", "carga util", "corpo", "тело запроса", "тела запроса", "размер запроса",
    "请求体", "請求體", "请求大小", "报文", "ペイロード", "リクエストボディ", "リクエスト本文", "본문*", "페이로드*", "요청 크기*",
];

/// Words that make a block suspect in a refusal that nothing else explains: kinds of blocks, but also messages and content as
/// such. They are many on purpose: a wrong suspicion costs one more call, and its step is undone; a missed one ends the session.
#[rustfmt::skip]
pub(super) const SUSPECT: &[&str] = &[
    "image*", "media type", "media", "base64", "pdf", "document*", "attachment*", "thinking", "redacted thinking", "signature*", "thought signature*", "tool use*", "tool result*", "tool call*", "tool call id", "tool use id", "function call*", "function response*", "text content", "content block*",
    "content", "message*", "surrogate*", "utf 8", "unicode", "video*", "audio", "cache control", "mime", "mime type",
    "图片", "图像", "消息", "画像", "メッセージ", "이미지*", "메시지*", "bild*", "nachricht*", "imagen*", "mensaje*", "mensage*", "изображени*", "сообщени*",
];

/// Words whose sentence introduces a quotation: what follows its colon or its end is not the provider's own.
pub(super) const SOURCE: &[&str] = &[
    "tool*",
    "output*",
    "value*",
    "content*",
    "argument*",
    "parse",
    "parsing",
    "parsed",
    "raw",
    "said",
    "reported",
    "reports",
    "says",
    "returned",
    "answer*",
    "role",
    "wrote",
    "contains the",
    "received",
];

/// Words for media, which a model may not read at all.
pub(super) const MEDIA: &[&str] = &[
    "image*",
    "pdf",
    "document*",
    "audio",
    "video*",
    "vision",
    "multimodal",
    "图片",
    "图像",
    "画像",
    "이미지*",
    "bild*",
    "imagen*",
    "изображени*",
];

/// Words that say that something cannot be read. They count only for words of [`MEDIA`].
pub(super) const NOT_TAKEN: &[&str] = &[
    "not supported",
    "unsupported",
    "support*",
    "not a multimodal",
    "cannot",
    "can t",
    "could not",
    "unable",
    "failed",
    "invalid",
    "missing",
    "mmproj",
    "不支持",
    "无法",
    "サポート",
    "지원*",
    "nicht",
    "no admite",
    "ne prend pas",
];

/// Words for what a user sets. A refusal that names one of them is hardly about the content of the messages.
#[rustfmt::skip]
pub(super) const SETTING: &[&str] = &[
    "model", "models", "modell*", "modele*", "modelo*", "模型", "モデル", "모델*", "модел*", "parameter*", "option*", "tool*", "function*", "schema*", "beta", "header*", "version*", "region*", "endpoint*", "stream", "streaming", "format", "reasoning",
    "effort", "user", "organization*", "project*", "key", "参数", "工具", "パラメータ", "ツール", "매개변수*", "도구*", "parametr*", "parametro*", "werkzeug*", "параметр*", "инструмент*",
];

/// Words for a length. With a word for too much, they are enough if the sentence names nothing else.
pub(super) const LENGTH: &[&str] = &[
    "length*",
    "longueur*",
    "lange",
    "longitud*",
    "comprimento*",
    "длин*",
    "长度",
    "長度",
    "長さ",
    "길이*",
];
