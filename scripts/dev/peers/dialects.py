"""Rebuilds the messages of another program's transcript as a plain loop would: the whole file is read, each line is
parsed, a tree is walked from its last record, and the messages are printed."""

import json
import sys


def path(records, name, parent):
    """Returns the records from the root to the last one."""
    by_id = {record[name]: record for record in records if name in record}
    chain, record = [], records[-1]
    while record is not None:
        chain.append(record)
        record = by_id.get(record.get(parent))
    return reversed(chain)


def pi(records):
    for record in path([own for own in records if own["type"] != "session"], "id", "parentId"):
        message = record["message"]
        content = message["content"]
        if message["role"] == "user":
            yield "user", [{"type": "text", "text": content}] if isinstance(content, str) else content
        elif message["role"] == "toolResult":
            yield "user", [{"type": "tool_result", "tool_use_id": message["toolCallId"],
                            "content": content[0]["text"]}]
        elif message["stopReason"] not in ("error", "aborted"):
            yield "assistant", [
                {"type": "tool_use", "id": block["id"], "name": block["name"], "input": block["arguments"]}
                if block["type"] == "toolCall" else block for block in content]


def claude_code(records):
    for record in path(records, "uuid", "parentUuid"):
        message = record["message"]
        content = message["content"]
        yield message["role"], [{"type": "text", "text": content}] if isinstance(content, str) else content


def codex(records):
    for record in records:
        item = record["payload"]
        if record["type"] != "response_item":
            continue
        if item["type"] == "message":
            yield item["role"], [{"type": "text", "text": block["text"]} for block in item["content"]]
        elif item["type"] == "function_call":
            yield "assistant", [{"type": "tool_use", "id": item["call_id"], "name": item["name"],
                                 "input": json.loads(item["arguments"])}]
        elif item["type"] == "function_call_output":
            yield "user", [{"type": "tool_result", "tool_use_id": item["call_id"], "content": item["output"]}]


def main():
    read = {"pi": pi, "claude-code": claude_code, "codex": codex}[sys.argv[1]]
    messages = []
    with open(sys.argv[2], encoding="utf-8") as file:
        records = [json.loads(line) for line in file]
    for role, blocks in read(records):
        if messages and messages[-1]["role"] == role:
            messages[-1]["content"].extend(blocks)
        else:
            messages.append({"role": role, "content": blocks})
    for message in messages:
        print(json.dumps(message, ensure_ascii=False))


main()
