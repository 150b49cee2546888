"""A provider on loopback that refuses what Anthropic's Messages API, OpenAI's Responses API and Gemini's API refuse, in like words.

It answers a prompt that names two files with thinking and parallel calls, one about old sessions with a call of the tool that
searches them, and any other request with a sentence. Every
request with its verdict is kept in `Provider.seen`. The rules are those of src/rules, written a second time on purpose:
this program and clawutils must not agree by construction.
"""

import base64
import binascii
import hashlib
import itertools
import json
import re
import struct
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from answers import messages, responses
from answers.form import sse

# Each answer has a number, which makes its id and its counts its own.
NUMBERS = itertools.count(1)
# The largest size of a piece of a text in a stream.
PIECE = 10_000
ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
MAGIC = {
    "image/png": b"\x89PNG\r\n\x1a\n", "image/jpeg": b"\xff\xd8\xff", "image/gif": b"GIF8", "image/webp": b"RIFF",
}


class Refused(Exception):
    pass


def seal(text):
    """Returns the signature of a thinking text. Only this provider's own are valid."""
    return base64.b64encode(hashlib.sha256(b"key" + text.encode()).digest() * 3).decode()


def check_characters(value, where="body"):
    if isinstance(value, str):
        if any(0xD800 <= ord(c) < 0xE000 for c in value):
            raise Refused("The request body is not valid JSON: no low surrogate in string")
    elif isinstance(value, dict):
        for name, inner in value.items():
            check_characters(inner, f"{where}.{name}")
    elif isinstance(value, list):
        for inner in value:
            check_characters(inner, where)


def check_image(media_type, data, where):
    try:
        file = base64.b64decode(data, validate=True)
    except binascii.Error:
        raise Refused(f"{where}: Could not process image") from None
    if media_type not in MAGIC:
        raise Refused(f"{where}: media_type: Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'")
    if not file.startswith(MAGIC[media_type]):
        raise Refused(f"{where}: Image does not match the provided media type {media_type}")
    if media_type == "image/png":
        if len(file) < 45 or b"IEND" not in file[-12:]:
            raise Refused(f"{where}: Could not process image")
        if max(struct.unpack(">II", file[16:24])) > 8000:
            raise Refused(f"{where}: At least one of the image dimensions exceed max allowed size: 8000 pixels")
    if len(data) > 5 * 1024 * 1024:
        raise Refused(f"{where}: image exceeds 5 MB maximum: {len(data)} bytes > 5242880 bytes")


WORDS = {"words": "needle"}


def search_tool(tools):
    """Returns the tool of an MCP server that searches sessions."""
    return next((it for it in tools if "sessions" in it.get("name", "") and it["name"].endswith("search")), None)


# ---- Anthropic's Messages API -------------------------------------------------------------------


def blocks_of(message):
    content = message.get("content")
    return [{"type": "text", "text": content}] if isinstance(content, str) else content or []


def joined(messages):
    """Joins neighbouring messages of one role, as the service does."""
    out = []
    for message in messages:
        if out and out[-1]["role"] == message["role"]:
            out[-1]["content"] += blocks_of(message)
        else:
            out.append({"role": message["role"], "content": list(blocks_of(message))})
    return out


def check_block(block, role, where, model):
    kind = block.get("type")
    if kind == "text" and not block.get("text", "").strip():
        raise Refused(f"{where}: text content blocks must contain non-whitespace text")
    if kind == "image":
        if role == "assistant":
            raise Refused(f"{where}: image blocks are not permitted in assistant messages")
        source = block.get("source", {})
        if source.get("type") == "base64":
            check_image(source.get("media_type"), source.get("data", ""), where)
    if kind == "thinking":
        if role == "user":
            raise Refused(f"{where}: thinking blocks are not permitted in user messages")
        if block.get("signature") != seal(block.get("thinking", "")):
            raise Refused(f"{where}: Invalid `signature` in `thinking` block")
    if kind == "tool_use":
        if not ID.fullmatch(block.get("id", "")):
            raise Refused(f"{where}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'")
        if not ID.fullmatch(block.get("name", "")):
            raise Refused(f"{where}.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'")
        if not isinstance(block.get("input"), dict):
            raise Refused(f"{where}.tool_use.input: Input should be a valid dictionary")
    if kind == "tool_result" and isinstance(block.get("content"), list):
        for index, inner in enumerate(block["content"]):
            check_block(inner, role, f"{where}.content.{index}", model)
    if kind in ("input_text", "output_text", "input_image", "image_url"):
        raise Refused(f"{where}: Input tag '{kind}' found using 'type' does not match any of the expected tags")


def check_messages(body):
    check_characters(body)
    messages = joined(body["messages"])
    if not messages or messages[0]["role"] != "user":
        raise Refused("messages: first message must use the \"user\" role")
    seen, open_calls = set(), []
    for index, message in enumerate(messages):
        role, blocks, where = message["role"], message["content"], f"messages.{index}"
        if not blocks:
            raise Refused(f"{where}: all messages must have non-empty content")
        for place, block in enumerate(blocks):
            check_block(block, role, f"{where}.content.{place}", body["model"])
        results = [block["tool_use_id"] for block in blocks if block.get("type") == "tool_result"]
        calls = [block["id"] for block in blocks if block.get("type") == "tool_use"]
        for result in results:
            if result not in open_calls:
                raise Refused(f"{where}: unexpected `tool_use_id` found in `tool_result` blocks: {result}")
        if len(set(results)) < len(results):
            raise Refused(f"{where}: each tool_use must have a single result. Found multiple `tool_result` blocks")
        missing = [call for call in open_calls if call not in results]
        if missing:
            raise Refused(f"{where}: `tool_use` ids were found without `tool_result` blocks immediately after: {missing[0]}")
        kinds = [block.get("type") for block in blocks]
        if "tool_result" in kinds and kinds[: len(results)] != ["tool_result"] * len(results):
            raise Refused(f"{where}: tool_result blocks must come first")
        if seen & set(calls) or len(set(calls)) < len(calls):
            raise Refused(f"{where}: `tool_use` ids must be unique")
        if role == "assistant" and kinds[-1] in ("thinking", "redacted_thinking"):
            raise Refused(f"{where}: The final block in an assistant message cannot be `thinking`")
        seen |= set(calls)
        open_calls = calls
    if open_calls:
        raise Refused("messages: `tool_use` ids were found without `tool_result` blocks immediately after")


def messages_reply(body, files):
    """Returns the blocks of the answer."""
    last = joined(body["messages"])[-1]["content"]
    text = " ".join(block.get("text", "") for block in last if block.get("type") == "text")
    has_results = any(block.get("type") == "tool_result" for block in last)
    tool = next((it for it in body.get("tools", []) if it.get("name", "").lower() in ("read", "view")), None)
    if "two files" in text and tool and not has_results:
        name = next(name for name in ("file_path", "filePath", "path") if f'"{name}"' in json.dumps(tool))
        thought = "Two files are wanted."
        return [{"type": "thinking", "thinking": thought, "signature": seal(thought)}] + [
            {"type": "tool_use", "id": f"toolu_0{index}", "name": tool["name"], "input": {name: file}}
            for index, file in enumerate(files)
        ]
    search = search_tool(body.get("tools", []))
    if "old sessions" in text and search and not has_results:
        return [{"type": "tool_use", "id": "toolu_0", "name": search["name"], "input": WORDS}]
    return [{"type": "text", "text": "Both files are read." if has_results else "It is said."}]


def messages_events(blocks, model):
    number = next(NUMBERS)
    usage = {
        "input_tokens": 10 + number, "cache_read_input_tokens": number, "cache_creation_input_tokens": 2, "output_tokens": 1,
        "cache_creation": {"ephemeral_5m_input_tokens": 2, "ephemeral_1h_input_tokens": 0},
    }
    return messages.events(blocks, stop_of(blocks), PIECE, {"output_tokens": 9}, usage, id=f"msg_{number:012}", model=model)


def stop_of(blocks):
    return "tool_use" if blocks[-1]["type"] == "tool_use" else "end_turn"


# ---- OpenAI's Responses API ---------------------------------------------------------------------


def check_items(body):
    check_characters(body)
    calls, outputs = [], []
    for index, item in enumerate(body["input"]):
        where, kind = f"input[{index}]", item.get("type", "message")
        content = item.get("content")
        lists = [content, item.get("output")]
        for block in [block for blocks in lists if isinstance(blocks, list) for block in blocks]:
            url = block.get("image_url", "") if block.get("type") == "input_image" else ""
            if block.get("type") == "input_image" and not url:
                raise Refused(f"Invalid '{where}.content': empty string")
            if url.startswith("data:"):
                head, _, data = url[5:].partition(",")
                check_image(head.split(";")[0], data, where)
        if kind == "reasoning" and item.get("encrypted_content") not in (None, SEALED):
            raise Refused("The encrypted content could not be verified. Reason: Encrypted content could not be decrypted or parsed.")
        if kind in ("function_call", "custom_tool_call"):
            if not ID.fullmatch(item.get("call_id", "")):
                raise Refused(f"Invalid '{where}.call_id': expected a string with maximum length 64")
            if not ID.fullmatch(item.get("name", "")):
                raise Refused(f"Invalid '{where}.name': string does not match pattern. Expected '^[a-zA-Z0-9_-]+$'.")
            calls.append(item["call_id"])
        if kind in ("function_call_output", "custom_tool_call_output"):
            if item["call_id"] not in calls:
                raise Refused(f"No tool call found for function call output with call_id {item['call_id']}.")
            outputs.append(item["call_id"])
    if len(set(calls)) < len(calls) or len(set(outputs)) < len(outputs):
        raise Refused("Duplicate item found with the same call_id. Remove duplicate items from your input and try again.")
    missing = [call for call in calls if call not in outputs]
    if missing:
        raise Refused(f"No tool output found for function call {missing[0]}.")


SEALED = "gAAAAA" + base64.urlsafe_b64encode(hashlib.sha256(b"sealed").digest() * 3).decode()


def items_reply(body, files):
    """Returns the items of the answer."""
    kinds = [item.get("type", "message") for item in body["input"]]
    texts = [json.dumps(item.get("content")) for item in body["input"] if item.get("role") == "user"]
    tools = {tool.get("name"): tool for tool in body.get("tools", [])}
    name = next((name for name in ("exec_command", "shell_command", "shell") if name in tools), None)
    if texts and "two files" in texts[-1] and kinds[-1] == "message" and name:
        member = {"exec_command": "cmd", "shell_command": "command", "shell": "command"}[name]
        command = lambda file: ["cat", file] if name == "shell" else f"cat {file}"
        items = [{"type": "reasoning", "id": "rs_0", "summary": [], "encrypted_content": SEALED}]
        for index, file in enumerate(files):
            items.append({
                "type": "function_call", "id": f"fc_{index}", "call_id": f"call_0{index}", "name": name,
                "arguments": json.dumps({member: command(file)}), "status": "completed",
            })
        return items
    # Codex has a namespace for each server.
    search = next((it for it in body.get("tools", []) if it.get("type") == "namespace" and "sessions" in it["name"]), None)
    if texts and "old sessions" in texts[-1] and kinds[-1] == "message" and search:
        call = {"type": "function_call", "id": "fc_0", "call_id": "call_0", "namespace": search["name"], "name": "search"}
        return [{**call, "arguments": json.dumps(WORDS), "status": "completed"}]
    text = "It is said." if kinds[-1] == "message" else "Both files are read."
    part = {"type": "output_text", "text": text, "annotations": []}
    return [{"type": "message", "id": "msg_0", "role": "assistant", "status": "completed", "content": [part]}]


def items_events(items, model):
    number = next(NUMBERS)
    usage = {
        "input_tokens": 10 + number, "input_tokens_details": {"cached_tokens": 2}, "output_tokens": 9,
        "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 19 + number,
    }
    own = {"id": f"resp_{number}", "model": model}
    return responses.events(items, responses.last(items, usage=usage, **own), PIECE, **own)


# ---- Gemini's API -------------------------------------------------------------------------------


def check_contents(body):
    check_characters(body)
    contents = body["contents"]
    if not contents or contents[0].get("role") != "user":
        raise Refused("Please ensure that single turn requests end with a user role or the role field is empty.")
    open_calls = []
    for index, content in enumerate(contents):
        parts, where = content.get("parts") or [], f"contents[{index}]"
        if not parts:
            raise Refused(f"Unable to submit request because it must include at least one parts field: {where}")
        for part in parts:
            data = part.get("inlineData")
            if data:
                check_image(data.get("mimeType"), data.get("data", ""), where)
            if not any(name in part for name in ("text", "inlineData", "functionCall", "functionResponse")):
                raise Refused(f"{where}.parts: required oneof field 'data' must have one initialized field")
        answers = [part["functionResponse"] for part in parts if "functionResponse" in part]
        if open_calls and len(answers) != len(open_calls) or answers and not open_calls:
            raise Refused("Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.")
        open_calls = [part["functionCall"] for part in parts if "functionCall" in part]
        if open_calls and content.get("role") != "model":
            raise Refused("Please ensure that function call turn comes immediately after a user turn or after a function response turn.")
    if open_calls:
        raise Refused("Please ensure that function response turn comes immediately after a function call turn.")


def contents_reply(body, files):
    """Returns the parts of the answer."""
    parts = body["contents"][-1]["parts"]
    text = " ".join(part.get("text", "") for part in parts)
    has_results = any("functionResponse" in part for part in parts)
    tools = [it for tool in body.get("tools", []) for it in tool.get("functionDeclarations", [])]
    tool = next((it for it in tools if it.get("name") == "read_file"), None)
    if "two files" in text and tool and not has_results:
        name = "file_path" if "file_path" in json.dumps(tool) else "absolute_path"
        calls = [{"functionCall": {"id": f"call_0{index}", "name": tool["name"], "args": {name: file}}} for index, file in enumerate(files)]
        return [{"text": "**Reading** Two files are wanted.", "thought": True}, {**calls[0], "thoughtSignature": "c2VhbGVk"}, *calls[1:]]
    search = search_tool(tools)
    if "old sessions" in text and search and not has_results:
        return [{"functionCall": {"id": "call_0", "name": search["name"], "args": WORDS}, "thoughtSignature": "c2VhbGVk"}]
    return [{"text": "Both files are read." if has_results else "It is said."}]


def contents_events(parts, _model):
    number = next(NUMBERS)
    usage = {"promptTokenCount": 10 + number, "candidatesTokenCount": 9, "totalTokenCount": 19 + number}
    return [{
        "candidates": [{"index": 0, "finishReason": "STOP", "content": {"role": "model", "parts": parts}}],
        "usageMetadata": usage, "modelVersion": "gemini-2.5-pro", "responseId": "resp_0",
    }]


# ---- the server ---------------------------------------------------------------------------------


class Provider:
    """The server. `files` are the files that the model asks for."""

    def __init__(self, files):
        self.files, self.seen = files, []
        provider = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def answer(self, status, body, kind="application/json"):
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.send_header("request-id", f"req_{next(NUMBERS)}")
                self.end_headers()
                self.wfile.write(body)

            def do_GET(self):
                self.answer(200, b'{"data":[],"models":[]}')

            def do_HEAD(self):
                self.answer(200, b"")

            def do_POST(self):
                raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                path = self.path.split("?")[0]
                try:
                    body = json.loads(raw)
                except ValueError:
                    return self.answer(400, b"{}")
                if path.endswith("/count_tokens"):
                    return self.answer(200, b'{"input_tokens":10}')
                if path.endswith(":countTokens"):
                    return self.answer(200, b'{"totalTokens":10}')
                forms = {
                    "/messages": (check_messages, messages_reply, messages_events),
                    "/responses": (check_items, items_reply, items_events),
                    ":streamGenerateContent": (check_contents, contents_reply, contents_events),
                    ":generateContent": (check_contents, contents_reply, contents_events),
                }
                form = next((form for end, form in forms.items() if path.endswith(end)), None)
                if not form:
                    return self.answer(200, b"{}")
                check, reply, events = form
                try:
                    check(body)
                except Refused as why:
                    provider.seen.append((body, str(why)))
                    error = {"type": "invalid_request_error", "code": 400, "status": "INVALID_ARGUMENT", "message": str(why)}
                    return self.answer(400, json.dumps({"type": "error", "error": error}).encode())
                provider.seen.append((body, None))
                made = reply(body, provider.files)
                sent = events(made, body.get("model"))
                if path.endswith("/messages") and not body.get("stream"):
                    whole = {**sent[0]["message"], "content": made, "stop_reason": stop_of(made)}
                    return self.answer(200, json.dumps(whole).encode())
                if path.endswith(":generateContent"):
                    return self.answer(200, json.dumps(sent[0]).encode())
                self.answer(200, sse(sent, named="type" in sent[0], ascii_only=True).encode(), "text/event-stream")

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        # A program that ends closes its connections.
        self.server.handle_error = lambda *_: None
        self.address = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
