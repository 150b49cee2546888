"""Rebuilds the messages of a transcript by the rules of claw0's _rebuild_history: the whole file is read and split at
line feeds, and lines that are not JSON are skipped."""

import json
import sys


def rebuild(path):
    messages = []
    with open(path, encoding="utf-8") as file:
        lines = file.read().strip().split("\n")
    for line in lines:
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except json.JSONDecodeError:
            continue
        kind = record.get("type")
        last = messages[-1] if messages else {"role": None}
        if kind == "user":
            messages.append({"role": "user", "content": record["content"]})
        elif kind == "assistant":
            content = record["content"]
            if isinstance(content, str):
                content = [{"type": "text", "text": content}]
            messages.append({"role": "assistant", "content": content})
        elif kind == "tool_use":
            block = {"type": "tool_use", "id": record["tool_use_id"], "name": record["name"],
                     "input": record["input"]}
            if last["role"] == "assistant":
                last["content"].append(block)
            else:
                messages.append({"role": "assistant", "content": [block]})
        elif kind == "tool_result":
            block = {"type": "tool_result", "tool_use_id": record["tool_use_id"],
                     "content": record["content"]}
            if last["role"] == "user" and isinstance(last["content"], list):
                last["content"].append(block)
            else:
                messages.append({"role": "user", "content": [block]})
    return messages


for message in rebuild(sys.argv[1]):
    print(json.dumps(message, ensure_ascii=False))
