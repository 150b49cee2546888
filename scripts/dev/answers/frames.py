"""The frames of Amazon's event streams, in which Bedrock sends the events of an answer."""

import base64
import json
import struct
import zlib


def frame(headers, payload):
    """Returns a frame with these headers, whose values are text, and this payload."""
    named = lambda text, size: len(text).to_bytes(size, "big") + text
    head = b"".join(named(name.encode(), 1) + b"\x07" + named(value.encode(), 2) for name, value in headers.items())
    start = struct.pack(">II", len(head) + len(payload) + 16, len(head))
    body = start + struct.pack(">I", zlib.crc32(start)) + head + payload
    return body + struct.pack(">I", zlib.crc32(body))


def event(data, kind="chunk", **more):
    """Returns the frame of an event. Bedrock adds a member `p` so that the length says nothing of the content."""
    inner = base64.b64encode(json.dumps(data, ensure_ascii=False).encode()).decode()
    headers = {":event-type": kind, ":content-type": "application/json", ":message-type": "event"}
    return frame(headers, json.dumps({"bytes": inner, "p": "abcdefgh"[: len(inner) % 9], **more}).encode())


def exception(kind, message):
    headers = {":exception-type": kind, ":content-type": "application/json", ":message-type": "exception"}
    return frame(headers, json.dumps({"message": message}).encode())
