"""Measures claw-estimate on the samples that no weight was fitted to, and makes the tables of docs/accuracy.md."""

import collections
import datetime
import json
import statistics
import subprocess

import numpy

import counters
from fit import group_of
from pages import table

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


def covered(estimated):
    """Returns a sentence on the estimates for an unknown model, compared with those for every family."""
    largest = numpy.max([counts for name, counts in estimated.items() if name != "unknown"], axis=0)
    ratios = numpy.array(estimated["unknown"]) / largest
    under = int((ratios < 1).sum())
    if not under:
        return "On all samples of this page, the estimate for an unknown model is also at least that for every other family.\n"
    return ("The estimate for an unknown model is also at least that for every other family, except on "
            f"{under} of the samples of this page, where it is up to {100 * (1 - ratios.min()):.1f} % lower.\n")


def percent(value):
    return f"{100 * value:+.1f} %"


def row(name, kinds, stress, files):
    values, hard = list(kinds.values()), list(stress.values())
    low, high = numpy.percentile(files, [5, 95])
    inside = sum(-.05 <= value <= .2 for value in values) / len(values)
    under = sum(value < -.1 for value in hard) / len(hard)
    return [name, percent(statistics.median(values)), percent(min(values)), percent(max(values)), f"{100 * inside:.1f} %",
            percent(low), percent(high), f"{100 * under:.1f} %", percent(min(hard))]


def tables(cache, texts, program):
    """Returns the parts of the page, by name."""
    held = [(index, text) for index, text in enumerate(texts) if text["half"] == "held"]
    begins = numpy.concatenate([[0], numpy.cumsum([len(text["text"]) for text in texts])])[:-1]
    counts = {name: numpy.add.reduceat(counters.starts_of(cache, name).astype(float), begins) * counters.SCALE.get(name, 1)
              for name in counters.counters(cache)}
    counts["unknown"] = counters.largest(counts)
    chosen = [text for _, text in held]
    quarter = [max(1, -(-len(text["text"]) // 4)) for text in chosen]
    estimated = {name: estimates(program, [text["text"] for text in chosen], model) for name, model in MODELS.items()}
    ours, theirs, worst, by_kind = [], [], [], collections.defaultdict(dict)
    for name in MODELS:
        counted = [max(1, counts[name][index]) for index, _ in held]
        kinds, stress, files = errors(chosen, estimated[name], counted)
        ours.append(row(name, kinds, stress, files))
        theirs.append(row(name, *errors(chosen, quarter, counted)))
        worst.append((name, listed(sorted(kinds.items(), key=lambda item: item[1]))))
        for kind, value in kinds.items():
            by_kind[kind][name] = value
    head = ["family", "median", "lowest", "highest", "kinds within -5 to +20 %", "random files, p5", "p95",
            "stress samples under -10 %", "lowest"]
    rows = [(kind, *(f"{100 * row[name]:+.0f}" for name in MODELS)) for kind, row in sorted(by_kind.items())]
    date = datetime.date.today().strftime("%-d %B %Y")
    extensions = {text["kind"] for text in chosen if text["kind"].startswith("random")}
    return {
        "samples": f"Measured on {date}: {len(held)} samples of {len(by_kind)} kinds, among them {len(files)} random files with "
                   f"{len(extensions)} extensions, and {len(stress)} stress samples.\n",
        "unknown": covered(estimated),
        "estimates": table(head, ours),
        "characters": table(head, theirs),
        "errors": table(["family", "lowest and highest kinds"], worst),
        "kinds": table(["kind", *MODELS], rows),
    }


def listed(ordered):
    return ", ".join(f"{kind} {100 * value:+.0f} %" for kind, value in ordered[:3] + ordered[-3:])
