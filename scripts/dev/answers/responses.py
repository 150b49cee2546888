"""Answers of OpenAI's Responses API, with each type of item and event of openai 3.57.0, and how its client reads them."""

import functools
import json

from answers.form import INPUT, MESSAGES, TEXT, add_text, pieces, sse

USAGE = {
    "input_tokens": 25, "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
    "output_tokens": 15, "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 40,
}
CACHED = {
    "input_tokens": 125, "output_tokens": 15, "total_tokens": 140,
    "input_tokens_details": {
        "cached_tokens": 100, "cache_write_tokens": 20,
        "cache_write_tokens_details": {"ttl_30m_tokens": 20, "ttl_12h_tokens": 0},
    },
    "output_tokens_details": {"reasoning_tokens": 9},
}


# ---- items --------------------------------------------------------------------------------------


def part(said=TEXT, annotations=(), **more):
    return {"type": "output_text", "text": said, "annotations": list(annotations), **more}


def refusal(said="I cannot, 日本."):
    return {"type": "refusal", "refusal": said}


def message(*parts, id="msg_1", status="completed", **more):
    content = list(parts) or [part()]
    return {"id": id, "type": "message", "role": "assistant", "status": status, "content": content, **more}


def call(name="read", value=INPUT, id="1", status="completed", arguments=None, **more):
    spelled = json.dumps(value, ensure_ascii=False) if arguments is None else arguments
    head = {"id": f"fc_{id}", "type": "function_call", "status": status}
    return {**head, "call_id": f"call_{id}", "name": name, "arguments": spelled, **more}


def reasoning(*summary, id="rs_1", **more):
    texts = [{"type": "summary_text", "text": text} for text in summary]
    return {"id": id, "type": "reasoning", "summary": texts, **more}


ENCRYPTED = {"encrypted_content": "gAAAA+/日=="}
THOUGHTS = {"content": [{"type": "reasoning_text", "text": "hm, 日本 …"}, {"type": "reasoning_text", "text": "\n\n"}]}
DONE = {"status": "completed"}
CITATIONS = [
    {"type": "url_citation", "url": "https://x.example/é", "title": "É", "start_index": 0, "end_index": 4},
    {"type": "file_citation", "file_id": "file_1", "filename": "a.txt", "index": 3},
    {"type": "container_file_citation", "container_id": "c", "file_id": "f", "filename": "b", "start_index": 0, "end_index": 1},
    {"type": "file_path", "file_id": "file_2", "index": 5},
]
IMAGE = {"type": "computer_screenshot", "image_url": "data:image/png;base64,eA=="}
LOGS = {"stdout": "a\n", "stderr": "é", "outcome": {"type": "exit", "exit_code": 1}}


def own_items():
    """Returns an item of each type that is neither a message nor a call of a function nor reasoning."""
    return [
        {"type": "web_search_call", "id": "ws_1", **DONE, "action": {"type": "search", "query": "日", "queries": ["日"], "sources": [{"type": "url", "url": "https://x.example"}]}},
        {"type": "web_search_call", "id": "ws_2", **DONE, "action": {"type": "open_page", "url": "https://x.example/a?b=c"}},
        {"type": "web_search_call", "id": "ws_3", "status": "failed", "action": {"type": "find_in_page", "url": "https://x.example", "pattern": "é"}},
        {"type": "file_search_call", "id": "fs_1", **DONE, "queries": ["a"], "results": [{"file_id": "f", "filename": "a", "score": 0.5, "text": "日", "attributes": {"n": 1}}]},
        {"type": "code_interpreter_call", "id": "ci_1", **DONE, "container_id": "c", "code": "print('é')\n", "outputs": [{"type": "logs", "logs": "é\n"}, {"type": "image", "url": "https://x.example/p.png"}]},
        {"type": "image_generation_call", "id": "ig_1", **DONE, "result": "eA==", "revised_prompt": "a 日", "size": "1024x1024", "quality": "high", "background": "opaque", "output_format": "png", "action": "generate"},
        {"type": "mcp_list_tools", "id": "mcpl_1", "server_label": "s", "tools": [{"name": "t", "input_schema": {"type": "object"}, "description": "é", "annotations": None}]},
        {"type": "mcp_call", "id": "mcp_1", **DONE, "server_label": "s", "name": "t", "arguments": '{"a":"é"}', "output": "日", "error": None, "approval_request_id": "mcpr_1"},
        {"type": "mcp_approval_request", "id": "mcpr_1", "server_label": "s", "name": "t", "arguments": "{}"},
        {"type": "mcp_approval_response", "id": "mcpa_1", "approval_request_id": "mcpr_1", "approve": True, "reason": "é"},
        {"type": "custom_tool_call", "id": "ctc_1", "call_id": "call_c", "name": "grep", "input": "é\n\"x\"", **DONE},
        {"type": "custom_tool_call_output", "id": "cto_1", "call_id": "call_c", "output": "日", **DONE},
        {"type": "computer_call", "id": "cu_1", "call_id": "call_u", **DONE, "action": {"type": "click", "button": "left", "x": 1, "y": 2}, "pending_safety_checks": [{"id": "sc", "code": "c", "message": "é"}]},
        {"type": "computer_call_output", "id": "cuo_1", "call_id": "call_u", **DONE, "output": IMAGE, "acknowledged_safety_checks": []},
        {"type": "local_shell_call", "id": "lsh_1", "call_id": "call_l", **DONE, "action": {"type": "exec", "command": ["ls", "é"], "env": {"A": "b"}, "timeout_ms": 5}},
        {"type": "local_shell_call_output", "id": "lsho_1", "output": '{"a":1}', **DONE},
        {"type": "shell_call", "id": "sh_1", "call_id": "call_s", **DONE, "action": {"commands": ["ls", "pwd"], "timeout_ms": 9, "max_output_length": 5}, "environment": {"type": "local"}},
        {"type": "shell_call_output", "id": "sho_1", "call_id": "call_s", **DONE, "max_output_length": 5, "output": [LOGS]},
        {"type": "apply_patch_call", "id": "ap_1", "call_id": "call_p", **DONE, "operation": {"type": "update_file", "path": "é", "diff": "@@\n-a\n+b\n"}},
        {"type": "apply_patch_call_output", "id": "apo_1", "call_id": "call_p", **DONE, "output": "é"},
        {"type": "tool_search_call", "id": "ts_1", "call_id": None, **DONE, "execution": "server", "arguments": {"q": "é"}},
        {"type": "tool_search_output", "id": "tso_1", "call_id": None, **DONE, "execution": "server", "tools": [{"type": "function", "name": "f", "parameters": {"type": "object"}, "strict": False}]},
        {"type": "additional_tools", "id": "at_1", "role": "developer", "tools": [{"type": "function", "name": "f", "parameters": None, "strict": None}]},
        {"type": "program", "id": "pg_1", "call_id": "call_g", "code": "f('é')", "fingerprint": "x=="},
        {"type": "program_output", "id": "pgo_1", "call_id": "call_g", "result": "日", **DONE},
        {"type": "function_call_output", "id": "fco_1", "call_id": "call_f", "output": "日", **DONE},
        {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAA=="},
        {"type": "something_new", "id": "new_1", "value": {"é": [1, 2.5]}},
    ]


# ---- events -------------------------------------------------------------------------------------


def response(items, status="completed", usage=USAGE, **more):
    return {
        "id": "resp_1", "object": "response", "created_at": 1, "status": status, "error": None,
        "incomplete_details": None, "instructions": None, "metadata": {}, "model": "m", "output": items,
        "parallel_tool_calls": True, "temperature": 1.0, "tool_choice": "auto", "tools": [], "top_p": 1.0,
        "usage": usage, **more,
    }


def whole(items, **more):
    return json.dumps(response(items, **more), ensure_ascii=False)


# The events between the start and the end of an item: the last word of the type after that of the item, and its members.
STEPS = {
    "web_search_call": [("in_progress", {}), ("searching", {}), ("completed", {})],
    "file_search_call": [("in_progress", {}), ("searching", {}), ("completed", {})],
    "code_interpreter_call": [("in_progress", {}), ("interpreting", {}), ("completed", {})],
    "image_generation_call": [("in_progress", {}), ("generating", {}), ("partial_image", {"partial_image_b64": "eA==", "partial_image_index": 0}), ("completed", {})],
    "mcp_call": [("in_progress", {}), ("failed", {}), ("completed", {})],
    "mcp_list_tools": [("in_progress", {}), ("failed", {}), ("completed", {})],
    "compaction": [("compacting", {})],
}
# The events with the pieces of a member: the words between `response.` and the last word, and the member.
DELTAS = {
    "code_interpreter_call": ("code_interpreter_call_code", "code"),
    "mcp_call": ("mcp_call_arguments", "arguments"),
    "custom_tool_call": ("custom_tool_call_input", "input"),
}


def part_events(item, index, content_index, size):
    """Returns the events of a part of a message."""
    said = item["content"][content_index]
    is_text = said["type"] == "output_text"
    kind, name = ("response.output_text", "text") if is_text else ("response.refusal", "refusal")
    at = {"item_id": item["id"], "output_index": index, "content_index": content_index}
    log = {"logprobs": []} if is_text else {}
    yield {"type": "response.content_part.added", **at, "part": {**said, name: "", **({"annotations": []} if is_text else {})}}
    for piece in pieces(said[name], size):
        yield {"type": f"{kind}.delta", **at, "delta": piece, **log}
    for number, citation in enumerate(said.get("annotations", [])):
        yield {"type": "response.output_text.annotation.added", **at, "annotation_index": number, "annotation": citation}
    yield {"type": f"{kind}.done", **at, name: said[name], **log}
    yield {"type": "response.content_part.done", **at, "part": said}


def thought_events(item, index, size):
    """Returns the events of reasoning."""
    at = {"item_id": item["id"], "output_index": index}
    for number, text in enumerate(item["summary"]):
        here = {**at, "summary_index": number}
        yield {"type": "response.reasoning_summary_part.added", **here, "part": {**text, "text": ""}}
        for piece in pieces(text["text"], size):
            yield {"type": "response.reasoning_summary_text.delta", **here, "delta": piece}
        yield {"type": "response.reasoning_summary_text.done", **here, "text": text["text"]}
        yield {"type": "response.reasoning_summary_part.done", **here, "part": text}
    for number, text in enumerate(item.get("content") or []):
        here = {**at, "content_index": number}
        yield {"type": "response.content_part.added", **here, "part": {**text, "text": ""}}
        for piece in pieces(text["text"], size):
            yield {"type": "response.reasoning_text.delta", **here, "delta": piece}
        yield {"type": "response.reasoning_text.done", **here, "text": text["text"]}
        yield {"type": "response.content_part.done", **here, "part": text}


def shell_events(item, index):
    """Returns the events of a shell's call or of its output."""
    at = {"output_index": index}
    if item["type"] == "shell_call":
        for number, command in enumerate(item["action"]["commands"]):
            for word, member in (("added", {"command": ""}), ("delta", {"delta": command}), ("done", {"command": command})):
                yield {"type": f"response.shell_call_command.{word}", **at, "command_index": number, **member}
    else:
        here = {**at, "item_id": item["id"], "command_index": 0}
        yield {"type": "response.shell_call_output_content.delta", **here, "delta": {"stdout": "a\n"}}
        yield {"type": "response.shell_call_output_content.done", **here, "output": item["output"]}


def item_events(item, index, size=7):
    """Returns the events of an item."""
    kind, empty = item["type"], {"message": {"content": []}, "function_call": {"arguments": ""}}
    start = {**item, **empty.get(kind, {})}
    if "status" in item:
        start["status"] = "in_progress"
    yield {"type": "response.output_item.added", "output_index": index, "item": start}
    at = {"item_id": item.get("id", ""), "output_index": index}
    if kind == "message":
        for number in range(len(item["content"])):
            yield from part_events(item, index, number, size)
    elif kind == "reasoning":
        yield from thought_events(item, index, size)
    elif kind == "function_call":
        for piece in pieces(item["arguments"], size):
            yield {"type": "response.function_call_arguments.delta", **at, "delta": piece}
        yield {"type": "response.function_call_arguments.done", **at, "name": item["name"], "arguments": item["arguments"]}
    elif kind.startswith("shell_call"):
        yield from shell_events(item, index)
    for word, members in STEPS.get(kind, []):
        yield {"type": f"response.{kind}.{word}", **at, **members}
        if word == "in_progress" and kind in DELTAS:
            yield from member_events(item, at, size)
    if kind == "custom_tool_call":
        yield from member_events(item, at, size)
    yield {"type": "response.output_item.done", "output_index": index, "item": item}


def member_events(item, at, size):
    words, name = DELTAS[item["type"]]
    for piece in pieces(item[name], size):
        yield {"type": f"response.{words}.delta", **at, "delta": piece}
    yield {"type": f"response.{words}.done", **at, name: item[name]}


def numbered(events):
    return [{**event, "sequence_number": number} for number, event in enumerate(events)]


def begin(**more):
    started = response([], status="in_progress", usage=None, **more)
    return [{"type": "response.created", "response": started}, {"type": "response.in_progress", "response": started}]


def last(items, kind="completed", without=(), **more):
    end = response(items, status=kind, **more)
    return {"type": f"response.{kind}", "response": {name: value for name, value in end.items() if name not in without}}


def events(items, closing=None, size=7, **more):
    """Returns the events of an answer with these items; `more` are other members of the answer."""
    middle = [event for index, item in enumerate(items) for event in item_events(item, index, size)]
    return numbered([*begin(**more), *middle, closing or last(items, **more)])


def stream(items, closing=None, size=7, **form):
    """Returns a stream of these items. `form` goes to sse()."""
    return sse(events(items, closing, size), named=True, **form)


def mixed(items, size=7):
    """Returns a stream of items whose events come in turn."""
    left = [list(item_events(item, index, size)) for index, item in enumerate(items)]
    turns = [left_of.pop(0) for left_of in left]
    while any(left):
        turns += [left_of.pop(0) for left_of in left if left_of]
    return sse(numbered([*begin(), *turns, last(items)]), named=True)


def only(*kinds, items=(), end=None, size=7):
    """Returns a stream of items without the events of these types."""
    left = [event for event in events(list(items), end, size) if event["type"] not in kinds]
    return sse(numbered(left), named=True)


# ---- the table ----------------------------------------------------------------------------------


def cases():
    for size in (1, 2, 3, 7, 10_000):
        yield f"text in pieces of {size}", stream([message()], size=size)
    yield "text escaped", stream([message()], ascii_only=True)
    yield "text with carriage returns", stream([message()], end="\r\n")
    yield "text with comments", stream([message()], between=": keep-alive\n\n")
    yield "text without names of events", sse(numbered([*begin(), *item_events(message(), 0), last([message()])]))
    yield "text and the end mark", stream([message()]) + "data: [DONE]\n\n"
    yield "text before and after a line separator", stream([message(part("a\u2028b\u2029c\u0085d"))])
    yield "empty text", stream([message(part(""))])
    yield "nothing", stream([])
    yield "message without parts", stream([{**message(), "content": []}])
    yield "two texts", stream([message(part("One."), part("Two."))])
    yield "two messages", stream([message(part("One.")), message(part("Two."), id="msg_2")])
    yield "phases", stream([message(part("I look."), phase="commentary"), call(), message(id="msg_2", phase="final_answer")])
    yield "no phase", stream([message(phase=None)])
    yield "citations", stream([message(part(annotations=CITATIONS))])
    yield "probabilities", stream([message(part("a", logprobs=[{"token": "a", "bytes": [97], "logprob": -0.5, "top_logprobs": []}]))])
    yield "refusal", stream([message(refusal())])
    yield "text and refusal", stream([message(part("Well. "), refusal())])

    yield "reasoning", stream([reasoning("hm, 日本", "so"), message()])
    yield "encrypted reasoning", stream([reasoning(**ENCRYPTED), message()])
    yield "reasoning with text", stream([reasoning("hm", **THOUGHTS, **ENCRYPTED, status="completed"), message()])
    yield "reasoning escaped", stream([reasoning("hm, 日本", **ENCRYPTED), message()], ascii_only=True)
    yield "reasoning without content", stream([reasoning(content=None, encrypted_content=None, status=None), message()])
    yield "reasoning alone", stream([reasoning("hm", **ENCRYPTED)])
    yield "reasoning between calls", stream([reasoning("a", **ENCRYPTED), call(), reasoning("b", id="rs_2"), call("list", {}, id="2")])

    for size in (1, 3, 10_000):
        yield f"call in pieces of {size}", stream([call()], size=size)
    yield "call escaped", stream([call()], ascii_only=True)
    yield "call without input", stream([call("list", {})])
    yield "call with an empty input", stream([call("list", arguments="")])
    yield "call with a spread input", stream([call(arguments='{\n  "a" : [1,\r\n 2]\n}')])
    yield "call without an id of its own", stream([{name: value for name, value in call().items() if name not in ("id", "status")}])
    yield "call in a namespace", stream([call(namespace="crm")])
    yield "call by a program", stream([own_items()[23], call(caller={"type": "program", "caller_id": "call_g"})])
    yield "call that runs beside", stream([call(**{"async": True, "caller": {"type": "direct"}})])
    yield "call with an input that is not JSON", stream([call(arguments='{"path": ')])
    yield "call with a list as its input", stream([call(arguments="[1]")])
    yield "call without a name", stream([call(name="")])
    yield "whole two calls with one id", whole([call(id="1"), call("list", {}, id="1")])
    yield "whole calls without ids", whole([{**call(), "call_id": "", "id": ""}, {**call("list", {}), "call_id": "", "id": ""}])
    yield "text and two calls", stream([message(), call(), call("list", {}, id="2")])
    yield "calls in turn", mixed([call(), call("list", {"a": "日" * 9}, id="2"), call("f", {}, id="3")], size=2)
    yield "items in turn", mixed([reasoning("hm, 日本", **ENCRYPTED), message(), call()])
    yield "two messages in turn", mixed([message(), message(part("Two."), id="msg_2")])
    yield "items in turn in single characters", mixed([message(), call(), reasoning("hm", **THOUGHTS)], size=1)

    for item in own_items():
        yield f"item {item['type']} {item['id']}", stream([item, message()])
    yield "all items", stream([*own_items(), message()])
    yield "all items in turn", mixed([*own_items(), call(), message()])
    yield "whole all items", whole([*own_items(), call(), message()])
    yield "compaction and nothing", stream([own_items()[-2]])

    for reason, items in (
        ("max_output_tokens", [message(part("Half of"), status="incomplete")]),
        ("max_output_tokens", [message(), call(status="incomplete", arguments='{"path": "a')]),
        ("max_output_tokens", [reasoning("hm", **ENCRYPTED, status="incomplete")]),
        ("max_output_tokens", []),
        ("content_filter", [message(part("I can"), status="incomplete")]),
        ("max_messages", [message()]),
        ("steered", [message()]),
        ("something_new", [message()]),
    ):
        details = {"reason": reason}
        name = f"{reason} with {len(items)} items, the last a {items[-1]['type']}" if items else f"{reason} with nothing"
        yield f"incomplete: {name}", stream(items, last(items, "incomplete", incomplete_details=details))
        yield f"whole incomplete: {name}", whole(items, status="incomplete", incomplete_details=details)
    yield "incomplete: without a reason", stream([message()], last([message()], "incomplete"))
    for status in ("completed", "failed", "in_progress", "cancelled", "queued", "incomplete"):
        yield f"whole with the status {status}", whole([message()], status=status)

    yield "usage with details", stream([message()], last([message()], usage=CACHED))
    yield "no usage", stream([message()], last([message()], usage=None))
    yield "whole usage with details", whole([message()], usage=CACHED)

    yield "no output at the end", stream([reasoning(**ENCRYPTED), message(), call()], last([], without=["output"]))
    yield "output null at the end", stream([message(), call()], last(None))
    yield "empty output at the end", stream([reasoning(**ENCRYPTED), message(), call()], last([]))
    cut = [message(part("Half of"), status="incomplete")]
    details = {"reason": "max_output_tokens"}
    yield "no output at an incomplete end", stream(cut, last([], "incomplete", without=["output"], incomplete_details=details))
    yield "no deltas", only("response.output_text.delta", "response.function_call_arguments.delta", items=[message(), call()])
    no_start = ("response.created", "response.in_progress")
    yield "no start", only(*no_start, items=[message()])
    yield "no ends of items", only("response.output_item.done", items=[message(), call()], end=last([message(), call()]))
    yield "no ends of items and no output", only("response.output_item.done", items=[message(), call()], end=last([], without=["output"]))
    gap = [event if event.get("output_index") != 0 else {**event, "output_index": 2} for event in item_events(message(), 0)]
    empty = {"type": "response.output_item.added", "output_index": 0, "item": None}
    yield "an item that is null", sse(numbered([*begin(), empty, *gap, last([message()])]), named=True)
    queued = {"type": "response.queued", "response": response([], status="queued", usage=None)}
    yield "queued", sse(numbered([begin()[0], queued, begin()[1], *item_events(message(), 0), last([message()])]), named=True)
    news = [{"type": "response.something.new", "output_index": 0, "x": 1}, {"type": "keepalive"}]
    yield "events that are new", sse(numbered([*begin(), *news, *item_events(message(), 0), *news, last([message()])]), named=True)
    audio = [{"type": f"response.audio.{word}", "delta": "eA=="} for word in ("delta", "done", "transcript.delta", "transcript.done")]
    yield "audio events", sse(numbered([*begin(), *audio, *item_events(message(), 0), last([message()])]), named=True)

    error = {"code": "server_error", "message": "The server had an error."}
    head = [*begin(), *list(item_events(message(), 0))[:4]]
    yield "failed", sse(numbered([*head, last([], "failed", error=error)]), named=True)
    yield "failed at once", sse(numbered([begin()[0], last([], "failed", error=error)]), named=True)
    yield "failed without an error", sse(numbered([*head, last([message()], "failed")]), named=True)
    yield "error in the middle", sse(numbered([*head, {"type": "error", **error, "param": None}]), named=True)
    yield "error at once", sse(numbered([{"type": "error", **error, "param": None}]), named=True)
    yield "error in an object", sse(numbered([*head, {"type": "error", "error": {"type": "server_error", **error}}]), named=True)
    yield "cut off", sse(numbered(head), named=True)
    yield "whole error", whole([], status="failed", error=error)

    yield "whole text", whole([message()])
    yield "whole text escaped", json.dumps(response([message()]))
    yield "whole text spread", json.dumps(response([message(), call(), *own_items()]), indent=2)
    yield "whole nothing", whole([])
    yield "whole refusal", whole([message(refusal())])
    yield "whole calls", whole([reasoning("hm", **ENCRYPTED), message(phase="commentary"), call(), call("list", {}, id="2")])
    yield "whole citations", whole([message(part(annotations=CITATIONS))])
    yield "whole call with an empty input", whole([call(arguments="")])


# Answers that the client and claw-call read differently, and why claw-call does not do as the client does.
DIFFERENT = {
    "empty output at the end": "The client returns an answer without the items of the stream. Some servers send their last event so.",
    "no start": "The client demands `response.created`, whose members the last event has again.",
    "two messages in turn": "claw-call shows their pieces as they arrive. Its record has them in order.",
    "call with a list as its input": "The client leaves the input as text. A record holds an object.",
    "call without a name": "The client lets it pass, but it cannot be run.",
    "whole two calls with one id": "claw-call gives the second another id, because a result belongs to one call.",
    "whole calls without ids": "claw-call makes ids up: the client lets them be empty.",
    "no ends of items and no output": "The client refuses items that do not end; claw-call makes them of their pieces.",
}


# ---- the readers --------------------------------------------------------------------------------


@functools.cache
def client():
    import openai

    return openai.OpenAI(api_key="test-key", max_retries=0)


def by_client(url, is_stream):
    ask = {"model": "m", "input": MESSAGES}
    responses = client().with_options(base_url=f"{url}/v1").responses
    if not is_stream:
        return summary(responses.create(**ask))
    answer = None
    with responses.stream(**ask) as events:
        for event in events:
            if event.type in ("response.completed", "response.incomplete", "response.failed"):
                answer = event.response
    return summary(answer) if answer else {"failed": "no end"}


def summary(answer):
    """Returns what the client has read, in claw-call's words."""
    reasons = {"max_output_tokens": "max_tokens", "content_filter": "refusal", None: "max_tokens"}
    if answer.status not in ("completed", "incomplete"):
        return {"failed": answer.status}
    kept, calls, stop = [], [], "end_turn"
    for item in answer.output:
        if item.type == "message":
            if getattr(item, "phase", None):
                kept.append(["own", {"phase": item.phase}])
            for said in item.content:
                add_text(kept, said.text if said.type == "output_text" else said.refusal)
                stop = "refusal" if said.type == "refusal" else stop
                cited = [it.to_dict(mode="json") for it in getattr(said, "annotations", None) or []]
                kept += [["own", {"annotations": cited, "id": item.id}]] if cited else []
        elif item.type in ("function_call", "custom_tool_call"):
            # The input of a custom tool is text.
            is_custom = item.type == "custom_tool_call"
            calls.append([item.name, item.call_id, json.dumps({"input": item.input}) if is_custom else item.arguments])
            more = {name: value for name, value in item.to_dict(mode="json").items() if name in CALL_MEMBERS}
            more |= {"type": item.type} if is_custom else {}
            kept += [["own", {"call": more}]] if more else []
            kept.append(["call", item.call_id])
        else:
            kept.append(["own", {"item": item.to_dict(mode="json")}])
    if answer.status == "incomplete":
        reason = answer.incomplete_details and answer.incomplete_details.reason
        stop = reasons.get(reason, reason)
    elif calls and stop == "end_turn":
        stop = "tool_use"
    usage = answer.usage and answer.usage.to_dict(mode="json")
    if stop in ("max_tokens", "refusal") and kept and kept[-1][0] == "call":
        # The call may be incomplete.
        kept.pop(), calls.pop()
    calls = [[name, id, json.loads(spelled or "{}")] for name, id, spelled in calls]
    return {"calls": calls, "kept": kept, "usage": usage, "stop": stop}


# The members of a call, besides its name, id and input, that must go back with it.
CALL_MEMBERS = ["async", "caller", "namespace"]


def by_us(records):
    """Returns what claw-call has read."""
    kept, calls = [], []
    for record in records:
        if record["type"] == "tool_use":
            calls.append([record["name"], record["tool_use_id"], record["input"]])
            kept.append(["call", record["tool_use_id"]])
        for block in record.get("content", []):
            if block["type"] == "text":
                add_text(kept, block["text"])
            else:
                own = {name: value for name, value in block.items() if name not in ("type", "api", "server", "model")}
                kept.append(["own", own])
    return {"calls": calls, "kept": kept, "usage": records[0]["usage"], "stop": records[0]["stop_reason"]}
