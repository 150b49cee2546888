"""Measures claw-estimate on the samples that no weight was fitted to, and writes the page of figures."""

import collections
import datetime
import json
import statistics
import subprocess

import numpy

import counters
from fit import group_of

MODELS = {
    "o200k": "gpt-5", "cl100k": "gpt-4", "claude": "claude-sonnet-4-5", "llama": "llama-3.3-70b", "qwen": "qwen3-32b",
    "deepseek": "deepseek-v3", "mistral": "mistral-nemo", "gemini": "gemini-3-pro", "unknown": "unknown",
}
LEAST = 3
"""A kind with fewer samples is not reported."""


def estimates(program, texts, model):
    """Returns the estimate of each text, without the fixed cost of a message."""
    lines = "".join(json.dumps({"role": "user", "content": text}) + "\n" for text in ["", *texts])
    run = subprocess.run([program, "--json", "--model", model], input=lines.encode(), capture_output=True, check=True)
    tokens = [message["tokens"] for message in json.loads(run.stdout)["messages"]]
    return [max(1, count - tokens[0]) for count in tokens[1:]]


def errors(held, estimated, counted):
    """Returns the error of each kind of text, of each kind of stress sample, and of each random file."""
    sums = collections.defaultdict(lambda: [0, 0, 0])
    files = []
    for text, ours, real in zip(held, estimated, counted):
        group = group_of(text)
        if group == "random files":
            files.append(ours / real - 1)
        else:
            sums[group] = [a + b for a, b in zip(sums[group], (ours, real, 1))]
    error = {group: ours / real - 1 for group, (ours, real, count) in sums.items()
             if count >= LEAST or group.startswith("declaration")}
    is_stress = lambda group: group.startswith(("declaration", "hard"))
    kinds = {group: value for group, value in error.items() if not is_stress(group)}
    return kinds, {group: value for group, value in error.items() if is_stress(group)}, files


def percent(value):
    return f"{100 * value:+.1f} %"


def row(name, kinds, stress, files):
    values, hard = list(kinds.values()), list(stress.values())
    low, high = numpy.percentile(files, [5, 95])
    inside = sum(-.05 <= value <= .2 for value in values) / len(values)
    under = sum(value < -.1 for value in hard) / len(hard)
    cells = [name, percent(statistics.median(values)), percent(min(values)), percent(max(values)), f"{100 * inside:.1f} %",
             percent(low), percent(high), f"{100 * under:.1f} %", percent(min(hard))]
    return "| " + " | ".join(cells) + " |"


def page(cache, texts, program, session):
    """Returns the page. `session` is the table of a real session."""
    held = [(index, text) for index, text in enumerate(texts) if text["half"] == "held"]
    begins = numpy.concatenate([[0], numpy.cumsum([len(text["text"]) for text in texts])])[:-1]
    counts = {name: numpy.add.reduceat(counters.starts_of(cache, name).astype(float), begins) * counters.SCALE.get(name, 1)
              for name in counters.counters(cache)}
    counts["unknown"] = counters.largest(counts)
    chosen = [text for _, text in held]
    quarter = [max(1, -(-len(text["text"]) // 4)) for text in chosen]
    ours, theirs, worst, by_kind = [], [], [], collections.defaultdict(dict)
    for name, model in MODELS.items():
        counted = [max(1, counts[name][index]) for index, _ in held]
        kinds, stress, files = errors(chosen, estimates(program, [text["text"] for text in chosen], model), counted)
        ours.append(row(name, kinds, stress, files))
        theirs.append(row(name, *errors(chosen, quarter, counted)))
        worst += [f"| {name} | {listed(sorted(kinds.items(), key=lambda item: item[1]))} |"]
        for kind, value in kinds.items():
            by_kind[kind][name] = value
    head = "| family | median | lowest | highest | kinds within -5 to +20 % | random files, p5 | p95 | stress samples under -10 % | lowest |\n" + "|---" * 9 + "|"
    table = ["| kind | " + " | ".join(MODELS) + " |", "|---" * (len(MODELS) + 1) + "|"]
    table += [f"| {kind} | " + " | ".join(f"{100 * row[name]:+.0f}" for name in MODELS) + " |" for kind, row in sorted(by_kind.items())]
    numbers = {"DATE": datetime.date.today().strftime("%-d %B %Y"), "TEXTS": len(held), "KINDS": len(by_kind), "FILES": len(files),
               "EXTENSIONS": len({text["kind"] for text in chosen if text["kind"].startswith("random")}), "STRESS": len(stress),
               "OURS": "\n".join([head, *ours]), "THEIRS": "\n".join([head, *theirs]),
               "SESSION": session, "WORST": "\n".join(["| family | lowest and highest kinds |\n|---|---|", *worst]), "TABLE": "\n".join(table)}
    text = PAGE
    for key, value in numbers.items():
        text = text.replace("{" + key + "}", str(value))
    return text


def listed(ordered):
    return ", ".join(f"{kind} {100 * value:+.0f} %" for kind, value in ordered[:3] + ordered[-3:])


PAGE = """\
# How accurate the estimates are

Measured on {DATE} by `scripts/dev/accuracy report`, which writes this page.

claw-estimate's count of each sample is compared with that of a real tokenizer. The samples come from packages and from the
files of one machine: {TEXTS} samples of {KINDS} kinds, among them {FILES} random files with {EXTENSIONS} extensions. Many kinds
are also measured as they appear in the JSON input of a tool call, and some of these also with all non-ASCII characters
escaped. The weights were fitted to other samples, from other packages. {STRESS} more are stress samples, which are hard for
tokenizers: random symbols, and the Universal Declaration of Human Rights in several hundred languages. The minimum weights
of three groups of scripts were raised because of stress samples, and the classes of characters were chosen with the errors
of all these samples in view. The figures are therefore better than they would be for text that played no part in this.

A kind that has fewer than three samples is left out.

An error is the estimate divided by the count, minus one. If it is negative, a request may be larger than its estimate.

The families o200k (GPT-4o and later), cl100k (GPT-4), llama (Llama 3), qwen, deepseek, mistral (Tekken) and gemini are
measured with their own tokenizers. Claude's current tokenizer is not public: the count is that of the tokenizer of Claude 2
times 1.10, the factor between the two in a real session with claude-sonnet-4-5. The tokenizer of Claude 4.7 and later is not
public either, and is not measured: it is reported to give up to a third more tokens, so the estimate is that of claude times
1.30.

For an unknown model, the count is the largest of all these, including that of claude times 1.30. The estimate is at least
that for newer Claude, whatever the text; on all samples of this page, it is also at least that for every other family.

## claw-estimate

{OURS}

## Characters divided by four

This is the rule of claw0 and pi.

{THEIRS}

## A real session

A coding session of 453 replies with claude-sonnet-4-5, written by pi, has the provider's count of each prompt. A rule
without counts adds up the estimates of all messages of a prompt. A rule with counts adds the estimates of the messages after
the last counted reply to that reply's count, as claw-estimate does with a transcript. claw0 does not use counts, and its
rule is for text only. The session contains neither the system prompt nor the tools, so each rule
takes their size from the first count.

{SESSION}

## The largest errors

{WORST}

## All kinds, in percent

{TABLE}
"""
