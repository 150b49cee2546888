"""What the answers of all protocols are made of."""

import json

TEXT = 'Café, 日本, 😀:\n\n\t"data: {}" and \\u0041 end'
INPUT = {"path": "a/é.txt", "n": [1, 2.5, True, None], "deep": {"s": '"\n', "日": "本"}}
MESSAGES = [{"role": "user", "content": "hello"}]


def pieces(text, size):
    """Cuts text into pieces of `size` characters."""
    return [text[at : at + size] for at in range(0, len(text), size)] or [""]


def sse(events, named=False, ascii_only=False, end="\n", between=""):
    """Returns server-sent events, with options for the differences between servers."""
    out = []
    for data in events:
        name = f"event: {data['type']}{end}" if named and isinstance(data, dict) else ""
        text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=ascii_only)
        out.append(f"{name}data: {text}{end}{end}{between}")
    return "".join(out)


def add_text(kept, text):
    """Adds text to a list of what goes back to the model. Adjacent texts are one."""
    if text and kept and kept[-1][0] == "text":
        kept[-1][1] += text
    elif text:
        kept.append(["text", text])
