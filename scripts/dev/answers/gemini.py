"""Answers of Gemini's API, with each kind of part and reason of google-genai 3.6.1, and how its client reads them."""

import base64
import functools
import json

from answers.form import INPUT, TEXT, add_text, pieces, sse

USAGE = {"promptTokenCount": 25, "candidatesTokenCount": 15, "totalTokenCount": 40}
COUNTED = {
    "promptTokenCount": 125, "cachedContentTokenCount": 100, "candidatesTokenCount": 15, "thoughtsTokenCount": 9,
    "toolUsePromptTokenCount": 7, "totalTokenCount": 156,
    "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 125}],
}
SIGNATURE = base64.b64encode(b"\xfb\xff\xfesign").decode()
OTHER = base64.b64encode(b"other").decode()

REASONS = """FINISH_REASON_UNSPECIFIED STOP MAX_TOKENS SAFETY RECITATION LANGUAGE OTHER BLOCKLIST PROHIBITED_CONTENT SPII
MALFORMED_FUNCTION_CALL IMAGE_SAFETY IMAGE_PROHIBITED_CONTENT IMAGE_OTHER NO_IMAGE IMAGE_RECITATION UNEXPECTED_TOOL_CALL
TOO_MANY_TOOL_CALLS MISSING_THOUGHT_SIGNATURE MALFORMED_RESPONSE ESCALATION PUP_LIMITED_DISABLED CONTINUATION
MODEL_ARMOR""".split()
BLOCKED = """BLOCKED_REASON_UNSPECIFIED SAFETY OTHER BLOCKLIST PROHIBITED_CONTENT IMAGE_SAFETY MODEL_ARMOR JAILBREAK""".split()
# The reasons after which the answer is not used.
FAILED = """MALFORMED_FUNCTION_CALL UNEXPECTED_TOOL_CALL TOO_MANY_TOOL_CALLS MISSING_THOUGHT_SIGNATURE MALFORMED_RESPONSE
OTHER IMAGE_OTHER NO_IMAGE""".split()
ENDED = {
    "STOP": "end_turn", "FINISH_REASON_UNSPECIFIED": "end_turn", "MAX_TOKENS": "max_tokens", "CONTINUATION": "max_tokens",
}


# ---- parts and answers --------------------------------------------------------------------------


def text(said=TEXT, **more):
    return {"text": said, **more}


def texts(size=7):
    return [text(piece) for piece in pieces(TEXT, size)]


def thought(said="hm, 日本 …", **more):
    return {"text": said, "thought": True, **more}


def call(name="read", args=INPUT, id=None, **more):
    inner = {"id": id, "name": name, "args": args}
    return {"functionCall": {name: value for name, value in inner.items() if value is not None}, **more}


SIGNED = {"thoughtSignature": SIGNATURE}
CODE = {"executableCode": {"language": "PYTHON", "code": "print('é')\n", "id": "x"}}
RESULT = {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "é\n", "id": "x"}}
PICTURE = {"inlineData": {"mimeType": "image/png", "data": "eA=="}}
SOUND = {"inlineData": {"mimeType": "audio/wav", "data": "eA=="}}
LINK = {"fileData": {"mimeType": "image/png", "fileUri": "https://x.example/é"}}
SEARCH = {"toolCall": {"id": "s", "toolType": "GOOGLE_SEARCH_WEB", "args": {"queries": ["日"]}}}
FOUND = {"toolResponse": {"id": "s", "toolType": "GOOGLE_SEARCH_WEB", "response": {"a": "é"}}}
GROUNDED = {
    "groundingMetadata": {
        "webSearchQueries": ["日"], "groundingChunks": [{"web": {"uri": "https://x.example", "title": "É"}}],
        "groundingSupports": [{"segment": {"startIndex": 0, "endIndex": 5, "text": "Café"}, "groundingChunkIndices": [0]}],
        "searchEntryPoint": {"renderedContent": "<div/>"},
    },
    "citationMetadata": {"citations": [{"startIndex": 0, "endIndex": 4, "uri": "https://x.example"}]},
    "safetyRatings": [{"category": "HARM_CATEGORY_HARASSMENT", "probability": "NEGLIGIBLE"}],
}


def answer(parts, reason=None, usage=USAGE, index=0, candidate=None, **more):
    content = {"content": {"parts": parts, "role": "model"}} if parts is not None else {}
    ended = {"finishReason": reason} if reason else {}
    candidates = [{**content, **ended, "index": index, **(candidate or {})}]
    counts = {"usageMetadata": usage} if usage else {}
    return {"candidates": candidates, **counts, "modelVersion": "m", "responseId": "r", **more}


def whole(parts, reason="STOP", **more):
    return json.dumps(answer(parts, reason, **more), ensure_ascii=False)


def events(parts, reason="STOP", usage=USAGE):
    """Returns a stream with a part in each event; the last has the reason."""
    first = [answer([part], usage=usage) for part in parts[:-1]]
    return [*first, answer(parts[-1:], reason, usage=usage)]


def stream(parts, reason="STOP", usage=USAGE, **form):
    return sse(events(parts, reason, usage), **form)


# ---- the table ----------------------------------------------------------------------------------


def cases():
    for size in (1, 2, 3, 7, 10_000):
        yield f"text in pieces of {size}", stream(texts(size))
    yield "text escaped", stream(texts(), ascii_only=True)
    yield "text with carriage returns", stream(texts(), end="\r\n")
    yield "text with comments", stream(texts(), between=": keep-alive\n\n")
    yield "text with names of events", "".join(f"event: message\n{sse([event])}" for event in events(texts()))
    yield "text without a space after the colon", stream(texts()).replace("data: ", "data:")
    yield "text in several data lines", "".join(
        "".join(f"data: {line}\n" for line in json.dumps(event, indent=1, ensure_ascii=False).split("\n")) + "\n"
        for event in events(texts())
    )
    yield "text before and after a line separator", stream([text("a\u2028b\u2029c\u0085d")])
    yield "text and the end mark", stream(texts()) + "data: [DONE]\n\n"
    yield "text in parts of one event", sse([answer(texts(), "STOP")])
    yield "text and the reason in an event without content", sse([answer(texts()), answer(None, "STOP")])
    yield "text and the reason in an event without parts", sse([answer(texts()), answer([], "STOP")])
    yield "text and an empty part at the end", stream([*texts(), text("")])
    yield "text with the reason in each event", sse([answer([part], "STOP") for part in texts()])
    yield "empty text", stream([text("")])
    yield "empty part", stream([{}, *texts()])
    yield "empty parts in the middle", stream([*texts(9), {}, text(""), text("more")])
    yield "nothing", sse([answer([], "STOP")])
    yield "no content", sse([answer(None, "STOP")])
    yield "no role", sse([{"candidates": [{"content": {"parts": texts()}, "finishReason": "STOP"}]}])

    yield "thought", stream([thought(), *texts()])
    yield "thoughts in pieces", stream([*(thought(piece) for piece in pieces("hm, 日本 … so", 3)), *texts()])
    yield "thought with a signature", stream([thought(**SIGNED), *texts()])
    yield "thought alone", stream([thought()])
    yield "thought after text", stream([*texts(), thought(), text("more")])
    yield "not a thought", stream([text(thought=False)])
    yield "text with a signature", stream([text(**SIGNED)])
    yield "texts around a signature", stream([text("a"), text("b", **SIGNED), text("c"), text("d")])
    yield "two texts with signatures", stream([text("a", **SIGNED), text("b", thoughtSignature=OTHER)])
    yield "empty text with a signature", stream([*texts(), text("", **SIGNED)])
    yield "empty part with a signature", stream([*texts(), SIGNED])
    yield "empty signature", stream([text(thoughtSignature="")])
    yield "call with a signature", stream([thought(), call(**SIGNED)])

    yield "call", stream([call()])
    yield "call escaped", stream([call()], ascii_only=True)
    yield "call with an id", stream([call(id="abc")])
    yield "call with an empty id", stream([call(id="")])
    yield "call without args", stream([call("list", None)])
    yield "call with empty args", stream([call("list", {})])
    yield "text and a call", stream([*texts(), call()])
    yield "text after a call", stream([call(), text("more")])
    yield "two calls in turn", stream([call(), call("list", {})])
    yield "two calls in one event", sse([answer([call(), call("list", {})], "STOP")])
    yield "two calls with signatures", stream([call(**SIGNED), call("list", {}, thoughtSignature=OTHER)])
    yield "two calls of which the first has a signature", stream([call(id="a", **SIGNED), call("list", {}, id="b")])
    yield "two calls with one id", stream([call(id="a"), call("list", {}, id="a")])
    yield "a call with the id that another could get", stream([call(id="call_2"), call("list", {}), call("f", {})])
    yield "call and the reason in an event of its own", sse([answer([call()]), answer([text("")], "STOP")])
    yield "call and MAX_TOKENS", stream([*texts(), call()], "MAX_TOKENS")

    yield "code", stream([CODE, RESULT, *texts()])
    yield "code with a signature", stream([{**CODE, **SIGNED}, RESULT, *texts()])
    yield "picture", stream([*texts(), PICTURE])
    yield "picture with a signature", stream([text("a"), {**PICTURE, **SIGNED}])
    yield "sound", stream([SOUND])
    yield "picture in a thought", stream([{**PICTURE, "thought": True}, *texts()])
    yield "link", stream([LINK, *texts()])
    yield "tool of Google", stream([{**SEARCH, **SIGNED}, FOUND, *texts()])
    yield "response to a call", stream([{"functionResponse": {"name": "f", "response": {"a": 1}}}, *texts()])
    yield "part that is new", stream([{"somethingNew": {"a": 1}}, *texts()])
    yield "grounding", sse([answer(texts()), answer([text("")], "STOP", candidate=GROUNDED)])

    for reason in [*REASONS, "SOMETHING_NEW"]:
        yield f"reason {reason}", stream(texts(), reason)
    yield "reason in small letters", stream(texts(), "stop")
    yield "reason with a message", sse([answer(texts()), answer(None, "SAFETY", candidate={"finishMessage": "é"})])
    yield "no reason", sse([answer(texts())])
    yield "whole without a reason", whole(texts(), None)
    yield f"whole with the reason {REASONS[0]}", whole(texts(), REASONS[0])
    unset = [answer([part], REASONS[0]) for part in texts()[:-1]]
    yield f"reason {REASONS[0]} in each event but the last", sse([*unset, answer(texts()[-1:], "STOP")])
    for reason in [*BLOCKED, "BLOCK_REASON_UNSPECIFIED", "SOMETHING_NEW"]:
        yield f"blocked for {reason}", sse([blocked(reason)])
    yield "whole blocked", json.dumps(blocked("PROHIBITED_CONTENT"))
    yield "whole feedback without a reason", json.dumps({"promptFeedback": {"safetyRatings": []}, "usageMetadata": USAGE})
    yield "blocked in the middle", sse([answer(texts()), blocked("SAFETY")])

    yield "usage with details", stream(texts(), usage=COUNTED)
    yield "usage that grows", sse([answer(texts(), usage={"promptTokenCount": 25}), answer([text("")], "STOP")])
    yield "usage after the reason", sse([answer(texts(), "STOP", usage=None), {"usageMetadata": COUNTED}])
    yield "usage before the reason", sse([answer(texts()), answer([text("")], "STOP", usage=None)])
    yield "usage that is null at the end", sse([answer(texts()), {**answer([text("")], "STOP"), "usageMetadata": None}])
    yield "no usage", stream(texts(), usage=None)

    second = {"content": {"parts": [text("Other.")], "role": "model"}, "index": 1, "finishReason": "STOP"}
    two = answer(texts(), "STOP")
    two["candidates"].append(second)
    yield "two candidates", sse([two])
    yield "whole with two candidates", json.dumps(two)
    yield "two candidates in turn", sse([answer([text("One.")]), answer([text("Two.")], index=1), answer([text(" End.")], "STOP"), answer([text("Out.")], "STOP", index=1)])
    yield "no candidates in the first event", sse([{"usageMetadata": USAGE}, *events(texts())])
    yield "empty candidates in the first event", sse([{"candidates": []}, *events(texts())])
    yield "empty event", sse([{}, *events(texts())])

    error = {"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}}
    yield "error in the middle", sse([answer(texts()), error])
    yield "error at once", sse([error])
    yield "error over several lines", sse([answer(texts())]) + json.dumps(error, indent=2) + "\n"
    yield "quota in the middle", sse([answer(texts()), {"error": {"code": 429, "message": "Quota.", "status": "RESOURCE_EXHAUSTED"}}])
    yield "whole without candidates", json.dumps({"usageMetadata": USAGE})

    yield "whole text", whole(texts())
    yield "whole text escaped", json.dumps(answer(texts(), "STOP"))
    yield "whole text spread", json.dumps(answer([thought(), *texts(), call(**SIGNED)], "STOP"), indent=2)
    yield "whole calls", whole([thought(**SIGNED), *texts(), call(id="a", **SIGNED), call("list", None)])
    yield "whole code", whole([CODE, RESULT, *texts()])
    yield "whole empty part with a signature", whole([text("a"), text("", **SIGNED)])
    yield "whole grounding", whole(texts(), candidate=GROUNDED)
    yield "whole usage with details", whole(texts(), usage=COUNTED)
    yield "whole picture", whole([*texts(), PICTURE])


def blocked(reason):
    return {"promptFeedback": {"blockReason": reason}, "usageMetadata": {"promptTokenCount": 25}, "modelVersion": "m"}


# Answers that the client and claw-call read differently, and why claw-call does not do as the client does.
DIFFERENT = {
    "text with comments": "The client refuses comments, which every server-sent event stream may have.",
    "text with names of events": "The client refuses names of events, which every such stream may have.",
    "text without a space after the colon": "The client refuses it, though the space is optional in such streams.",
    "text and the end mark": "The client refuses the mark with which gateways end a stream.",
    "two calls with one id": "claw-call gives the second another id, because a result belongs to one call.",
    "part that is new": "The client drops a part that it does not know; claw-call keeps it, to send it back.",
}


# ---- the readers --------------------------------------------------------------------------------


@functools.cache
def client():
    from google import genai

    return genai.Client(api_key="test-key")


def by_client(url, is_stream):
    ask = {"model": "m", "contents": "hello", "config": {"http_options": {"base_url": url}}}
    models = client().models
    answers = models.generate_content_stream(**ask) if is_stream else [models.generate_content(**ask)]
    parts, usage, reason, block, has_candidate = [], None, None, None, False
    for answer in answers:
        usage = answer.usage_metadata or usage
        feedback = answer.prompt_feedback
        block = feedback.block_reason if feedback and feedback.block_reason else block
        for candidate in [it for it in answer.candidates or [] if not it.index][:1]:
            reason = candidate.finish_reason or reason
            parts += (candidate.content.parts if candidate.content else None) or []
            has_candidate = True
    if block:
        return summary(parts, usage, "BLOCKED")
    reason = reason.value if reason and reason.value != REASONS[0] else None
    if not reason and (is_stream or not has_candidate):
        # The client does not say so, but the answer is not finished.
        return {"failed": "no finish reason"}
    return summary(parts, usage, reason or REASONS[0])


def summary(parts, usage, reason):
    """Returns what the client has read, in claw-call's words."""
    if reason in FAILED:
        return {"failed": reason}
    stop = ENDED.get(reason, "refusal" if reason in [*REASONS, "BLOCKED"] else reason)
    kept, calls = [], []
    for part in parts:
        raw = part.model_dump(mode="json", by_alias=True, exclude_none=True)
        signature = part.thought_signature
        is_text = part.text is not None and not part.thought
        if part.inline_data:
            # A record holds no media, but a placeholder.
            if not part.thought:
                kept += [["end"], ["text", f"[{part.inline_data.mime_type.split('/')[0]}]"], ["end"]]
            continue
        if part.function_call or is_text and part.text:
            if signature:
                kept.append(["signature", signature.hex()])
        elif signature:
            raw["thoughtSignature"] = signature.hex()
        if part.function_call:
            calls.append([part.function_call.name, part.function_call.id or None, part.function_call.args or {}])
            kept.append(["call", len(calls)])
        elif is_text and part.text:
            add_text(kept, part.text)
            if signature:
                kept.append(["end"])
        elif raw and (not is_text or signature):
            kept.append(["part", raw])
    if calls and reason == "STOP":
        stop = "tool_use"
    if stop in ("max_tokens", "refusal") and kept and kept[-1][0] == "call":
        # The call may be incomplete.
        kept.pop(), calls.pop()
    usage = usage and usage.model_dump(mode="json", by_alias=True, exclude_none=True)
    return {"calls": calls, "kept": [it for it in kept if it != ["end"]], "usage": usage, "stop": stop}


def by_us(records):
    """Returns what claw-call has read."""
    kept, calls = [], []
    for record in records:
        if record["type"] == "tool_use":
            calls.append([record["name"], record["tool_use_id"], record["input"]])
            kept.append(["call", len(calls)])
        for block in record.get("content", []):
            if block["type"] == "text":
                kept.append(["text", block["text"]])
            elif "part" in block:
                part = block["part"]
                if "thoughtSignature" in part:
                    part["thoughtSignature"] = base64.b64decode(part["thoughtSignature"]).hex()
                kept.append(["part", part])
            elif "thoughtSignature" in block:
                # Blocks with the sources of an answer have none; unit tests check these.
                kept.append(["signature", base64.b64decode(block["thoughtSignature"]).hex()])
    return {"calls": calls, "kept": kept, "usage": records[0]["usage"], "stop": records[0]["stop_reason"]}
