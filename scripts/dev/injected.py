"""The made-up sessions of other programs in tests/data."""

from places import ROOT


def injected(program, prompt, path):
    """Writes the session of a program to a file. Its user types this prompt, and a command."""
    text = (ROOT / f"tests/data/dialects/injected/{program}.jsonl").read_text()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text.replace("@PROMPT@", prompt).replace("@TYPED@", "echo total"))
