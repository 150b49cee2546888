"""Generates texts like those that machines write, and texts that are hard for tokenizers."""

import base64
import json
import random
import uuid

WORDS = """get set user name path file value index count error message request response session token model window
buffer parse read write open close start stop begin end first last next node tree list map key item entry table row
column page text line char byte size length offset limit config option flag state status code result data info type
kind build test check load save update delete create insert remove find search sort filter merge split join copy""".split()


def some(rng, alphabet, count):
    return "".join(rng.choice(alphabet) for _ in range(count))


def lines(rng, count, make):
    return "\n".join(make() for _ in range(count)) + "\n"


def span(first, last):
    return "".join(map(chr, range(first, last + 1)))


def machine(rng):
    """Yields (kind, text) for texts that machines write and tool results contain."""
    hexes = lambda n: some(rng, "0123456789abcdef", n)
    stamp = lambda: (f"2026-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}T{rng.randint(0, 23):02}:"
                     f"{rng.randint(0, 59):02}:{rng.randint(0, 59):02}.{rng.randint(0, 999):03}Z")
    word = lambda: rng.choice(WORDS)
    path = lambda: "/" + "/".join(word() for _ in range(rng.randint(2, 6))) + rng.choice([".rs", ".py", ".json", ".ts", ""])
    ip = lambda: ".".join(str(rng.randint(1, 254)) for _ in range(4))
    yield "hex", hexes(3000)
    yield "hex lines", lines(rng, 60, lambda: hexes(40))
    yield "0x numbers", lines(rng, 150, lambda: "0x" + hexes(16))
    yield "0x bytes", ", ".join("0x" + hexes(2) for _ in range(500))
    yield "hashes of files", lines(rng, 40, lambda: f"{hexes(64)}  .{path()}")
    yield "uuids", lines(rng, 80, lambda: str(uuid.UUID(int=rng.getrandbits(128))))
    yield "uuids in json", json.dumps([str(uuid.UUID(int=rng.getrandbits(128))) for _ in range(80)])
    noise = rng.randbytes(2400)
    yield "base64", base64.b64encode(noise).decode()
    yield "base64 lines", base64.encodebytes(noise).decode()
    yield "base64 of text", base64.b64encode(" ".join(word() for _ in range(350)).encode()).decode()
    yield "web tokens", lines(rng, 8, lambda: ".".join(base64.urlsafe_b64encode(rng.randbytes(n)).decode() for n in (27, 90, 32)))
    yield "keys", lines(rng, 60, lambda: f"sk-{some(rng, 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789', 40)}")
    yield "hex dump", lines(rng, 60, lambda: f"{rng.randrange(16**6) * 16:08x}: " + " ".join(hexes(4) for _ in range(8)) + "  " + some(rng, "abcdefgh....ABC01", 16))
    yield "numbers", lines(rng, 60, lambda: ",".join(f"{rng.uniform(-1000, 1000):.4f}" for _ in range(6)))
    yield "integers", " ".join(str(rng.randrange(10 ** rng.randint(1, 9))) for _ in range(600))
    yield "json lines of logs", lines(rng, 30, lambda: json.dumps({"ts": stamp(), "level": rng.choice(["info", "warn"]), "msg": " ".join(word() for _ in range(4)), "id": hexes(12), "took_ms": rng.randint(1, 9999)}))
    yield "compact json", json.dumps([{"id": rng.randrange(10**6), "name": word() + word().title(), "tags": [word(), word()], "ok": rng.random() < .5} for _ in range(40)], separators=(",", ":"))
    yield "nested json", json.dumps([{"id": rng.randrange(10**6), "name": word(), "value": {word(): word(), word(): rng.random()}} for _ in range(15)], indent=2)
    yield "access logs", lines(rng, 30, lambda: f'{ip()} - - [{rng.randint(1, 28)}/Nov/2026:{rng.randint(0, 23):02}:11:{rng.randint(0, 59):02} +0000] "GET {path()} HTTP/1.1" 200 {rng.randrange(99999)}')
    yield "system logs", lines(rng, 35, lambda: f"Nov {rng.randint(1, 28):2} {rng.randint(0, 23):02}:{rng.randint(0, 59):02}:{rng.randint(0, 59):02} host {word()}[{rng.randrange(99999)}]: {' '.join(word() for _ in range(6))}")
    yield "build logs", lines(rng, 60, lambda: rng.choice([f"   Compiling {word()}-{word()} v{rng.randint(0, 3)}.{rng.randint(0, 40)}.{rng.randint(0, 9)}", f"warning: unused variable: `{word()}_{word()}`", f"  --> src{path()}:{rng.randint(1, 900)}:{rng.randint(1, 80)}", f"[{rng.randint(1, 99)}%] Building CXX object CMakeFiles/{word()}.dir/{word()}.cpp.o"]))
    yield "test logs", lines(rng, 60, lambda: f"test {word()}::{word()}::{word()}_{word()}_{word()} ... {rng.choice(['ok', 'ok', 'FAILED'])}")
    yield "paths", lines(rng, 70, path)
    yield "urls", lines(rng, 40, lambda: f"https://{word()}.example.{rng.choice(['com', 'org', 'net'])}{path()}?{word()}={rng.randrange(9999)}&{word()}={word()}")
    yield "listing", lines(rng, 50, lambda: f"-rw-r--r--  1 root root {rng.randrange(10**6):8} Nov {rng.randint(1, 28):2} {rng.randint(0, 23):02}:{rng.randint(0, 59):02} {word()}_{word()}.txt")
    yield "matches of grep", lines(rng, 40, lambda: f"src{path()}:{rng.randint(1, 900)}:    let {word()}_{word()} = self.{word()}({word()});")
    yield "camel case", lines(rng, 90, lambda: word() + "".join(word().title() for _ in range(rng.randint(1, 4))))
    yield "snake case", lines(rng, 90, lambda: "_".join(word() for _ in range(rng.randint(2, 4))))
    yield "constants", lines(rng, 90, lambda: "_".join(word().upper() for _ in range(rng.randint(2, 4))))
    yield "markdown table", lines(rng, 50, lambda: "| " + " | ".join(rng.choice([word(), str(rng.randrange(999)), "-"]) for _ in range(6)) + " |")
    yield "padded table", lines(rng, 50, lambda: "".join(f"{word():<14}" for _ in range(5)))
    yield "terminal colours", lines(rng, 50, lambda: f"\x1b[{rng.choice(['1;31', '32', '0;33', '38;5;214'])}m{word()}\x1b[0m {word()}: \x1b[1m{rng.randrange(999)}\x1b[0m")
    yield "progress", "\r".join(f"[{'=' * n}>{' ' * (40 - n)}] {n * 100 // 40}% {rng.randrange(999)} MB/s" for n in range(40))


def hard(rng):
    """Yields (kind, text) for texts that tokenizers split into many tokens."""
    capitals = span(65, 90)
    yield "separate symbols", " ".join(some(rng, ".,;:!?+-*/=<>|&%$#@^~", 1) for _ in range(900))
    yield "operators", some(rng, "+-*/=<>|&%!^~?:", 1500)
    yield "full stops and commas", some(rng, ".,;: ", 1500)
    yield "grids", lines(rng, 40, lambda: some(rng, ".#", 40))
    yield "table cells", lines(rng, 60, lambda: "|".join(some(rng, " .x-o", 1) for _ in range(16)))
    yield "braille", some(rng, span(0x2800, 0x28FF), 700)
    yield "half-width katakana", some(rng, span(0xFF66, 0xFF9D), 900)
    yield "full-width latin", some(rng, span(0xFF21, 0xFF3A) + span(0xFF41, 0xFF5A), 900)
    yield "mathematical letters", some(rng, span(0x1D400, 0x1D433), 600)
    yield "mathematical symbols", some(rng, span(0x2200, 0x22FF), 800)
    yield "arrows", some(rng, span(0x2190, 0x21FF), 800)
    yield "box drawing", some(rng, span(0x2500, 0x257F), 900)
    yield "box tables", lines(rng, 30, lambda: "│" + "│".join(f" {rng.choice(WORDS):<10}" for _ in range(4)) + "│\n├" + "┼".join("─" * 11 for _ in range(4)) + "┤")
    yield "blocks", some(rng, span(0x2580, 0x259F), 900)
    yield "random capitals", some(rng, capitals, 2000)
    yield "random letters", some(rng, capitals.lower(), 2000)
    yield "random alphanumerics", some(rng, capitals + capitals.lower() + "0123456789", 2000)
    yield "random ascii", some(rng, span(33, 126), 2000)
    yield "protein", lines(rng, 30, lambda: some(rng, "ACDEFGHIKLMNPQRSTVWY", 60))
    yield "dna", lines(rng, 30, lambda: some(rng, "ACGT", 60))
    yield "dna, small", some(rng, "acgt", 2000)
    yield "morse", " ".join(some(rng, ".-", rng.randint(1, 5)) for _ in range(600))
    yield "zalgo", "".join(c + some(rng, span(0x300, 0x36F), 4) for c in " ".join(rng.choice(WORDS) for _ in range(40)))
    yield "replacement characters", "\ufffd" * 1000
    yield "replacement characters in text", " ".join(rng.choice(WORDS) + "\ufffd" * rng.randint(0, 3) for _ in range(300))
    yield "emoji", some(rng, span(0x1F600, 0x1F64F) + span(0x1F300, 0x1F5FF) + span(0x1F680, 0x1F6C5), 500)
    yield "emoji with joiners", " ".join("👩\u200d💻 👨\u200d👩\u200d👧 👍🏽 🏳\ufe0f\u200d🌈 ✔\ufe0f".split()[rng.randrange(5)] for _ in range(200))
    yield "emoji in a chat", " ".join(rng.choice(WORDS) + rng.choice(["", "", " 👍", " 😂", "! 🎉", " ❤️"]) for _ in range(300))
    yield "private use", some(rng, span(0xE000, 0xF8FF), 500)
    yield "rare han", some(rng, span(0x3400, 0x4DBF), 500)
    yield "bopomofo", some(rng, span(0x3105, 0x312F), 700)
    yield "ipa", some(rng, span(0x250, 0x2AF), 700)
    yield "superscripts", some(rng, "⁰¹²³⁴⁵⁶⁷⁸⁹₀₁₂₃₄₅₆₇₈₉", 700)
    yield "roman numerals", some(rng, span(0x2160, 0x2188), 700)
    yield "circled", some(rng, span(0x2460, 0x24FF), 700)
    yield "control characters", some(rng, span(1, 8) + span(14, 31), 900)
    yield "tabs and spaces", some(rng, "\t \n", 1500)
    yield "rules", lines(rng, 40, lambda: rng.choice("-=*#_~") * rng.randint(20, 78))
    yield "repeated letter", "".join(rng.choice(capitals.lower()) * rng.randint(10, 60) for _ in range(40))
    yield "indentation", lines(rng, 80, lambda: " " * 4 * rng.randint(1, 6) + rng.choice(["}", "]", "},", "end", "pass"]))


def texts():
    """Yields (kind, seed, text). Texts with an even seed serve for fitting, the others for measuring."""
    for seed in range(6):
        rng = random.Random(seed)
        yield from ((f"made {kind}", seed, text) for kind, text in machine(rng))
        yield from ((f"hard {kind}", seed, text) for kind, text in hard(rng))
