"""Answers of Anthropic's Messages API."""

import json

from answers.form import pieces


def events(blocks, stop="end_turn", size=7, usage=None, start_usage=None, **more):
    """Returns the events of a message with these blocks; `more` are other members of the message."""
    message = {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [],
        "stop_reason": None, "stop_sequence": None,
        "usage": start_usage or {"input_tokens": 25, "output_tokens": 1}, **more,
    }
    sent = [{"type": "message_start", "message": message}, {"type": "ping"}]
    for index, block in enumerate(blocks):
        kind = block["type"]
        start, deltas = dict(block), []
        if kind == "text":
            start["text"] = ""
            deltas = [{"type": "text_delta", "text": part} for part in pieces(block["text"], size)]
        elif kind == "thinking":
            start.update(thinking="", signature="")
            deltas = [{"type": "thinking_delta", "thinking": part} for part in pieces(block["thinking"], size)]
            deltas.append({"type": "signature_delta", "signature": block["signature"]})
        elif kind in ("tool_use", "server_tool_use"):
            start["input"] = {}
            spelled = json.dumps(block["input"]) if block["input"] else ""
            deltas = [{"type": "input_json_delta", "partial_json": part} for part in pieces(spelled, size)]
        sent.append({"type": "content_block_start", "index": index, "content_block": start})
        sent += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        sent.append({"type": "content_block_stop", "index": index})
    delta = {"stop_reason": stop, "stop_sequence": None}
    sent.append({"type": "message_delta", "delta": delta, "usage": usage or {"output_tokens": 15}})
    return sent + [{"type": "message_stop"}]


def whole(blocks, stop="end_turn", usage=None):
    return json.dumps({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": blocks,
        "stop_reason": stop, "stop_sequence": None,
        "usage": usage or {"input_tokens": 25, "output_tokens": 15},
    })
