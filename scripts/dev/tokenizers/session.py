"""Measures claw-estimate and the rules of pi and claw0 on a real session with the provider's counts of its prompts."""

import json
import subprocess

import numpy

import pages

MODEL = "claude-sonnet-4-5"


def prompt(usage):
    """Returns the tokens of a prompt, as the provider counted them."""
    return sum(usage.get(name) or 0 for name in ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"))


def quarter(message):
    """Returns pi's estimate of a message: a quarter of a token per character of its text, calls and results."""
    content = message["content"]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return -(-sum(map(characters, blocks)) // 4)


def characters(block):
    match block["type"]:
        case "text":
            return len(block["text"])
        case "thinking":
            return len(block["thinking"])
        case "tool_use":
            return len(block["name"]) + len(json.dumps(block["input"], separators=(",", ":"), ensure_ascii=False))
        case "tool_result":
            content = block["content"]
            return len(content) if isinstance(content, str) else sum(map(characters, content))
        case "image":
            return 4800
    return 0


def estimated(program, messages, *options):
    lines = "".join(json.dumps(message) + "\n" for message in messages)
    run = subprocess.run([program, *options], input=lines.encode(), capture_output=True, check=True)
    return int(run.stdout)


def without_meta(message):
    return {name: value for name, value in message.items() if name != "_meta"}


def rules(program, messages):
    """Returns the estimate of a prompt by each rule: without the counts of earlier prompts and, if there are any, with
    them."""
    bare = list(map(without_meta, messages))
    counts = [(index, message["_meta"]["usage"]) for index, message in enumerate(messages) if "usage" in message["_meta"]]
    found = {
        "claw-estimate": estimated(program, bare, "--model", MODEL),
        "pi": sum(map(quarter, bare)),
        "claw0": estimated(program, bare, "--method", "chars4"),
    }
    if counts:
        last, usage = counts[-1]
        found["claw-estimate, with counts"] = estimated(program, messages, "--model", MODEL)
        found["pi, with counts"] = prompt(usage) + usage["output_tokens"] + sum(map(quarter, bare[last + 1:]))
    return found


def errors(rebuild, program, path):
    """Returns the errors of each rule for every prompt in the session that the provider counted."""
    run = subprocess.run([rebuild, "--meta", path], capture_output=True, check=True)
    messages = [json.loads(line) for line in run.stdout.splitlines()]
    found, missing = {}, {}
    for index, message in enumerate(messages):
        real = prompt(message["_meta"].get("usage", {}))
        if not real:
            continue
        # The session does not have the system prompt and the tools: the first count gives their size, for each rule.
        for rule, estimate in rules(program, messages[:index]).items():
            if not rule.endswith("with counts"):
                estimate += missing.setdefault(rule, real - estimate)
            found.setdefault(rule, []).append(estimate / real - 1)
    return {rule: numpy.array(values) for rule, values in found.items()}


def row(rule, values):
    size = numpy.median(numpy.abs(values))
    return [rule, *(f"{100 * value:+.1f} %" for value in numpy.percentile(values, [5, 50, 95])), f"{100 * size:.2f} %"]


def table(rebuild, program, path):
    rows = sorted(errors(rebuild, program, path).items(), key=lambda item: item[0].endswith("with counts"))
    return pages.table(["rule", "p5", "median", "p95", "median size of the error"], (row(*it) for it in rows))
