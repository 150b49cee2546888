"""The report of scripts/dev/bench: BENCH.md, and a picture with two plots."""

import datetime
import html
import math
import os
import platform
from dataclasses import astuple, dataclass, field
from pathlib import Path

from pages import table

PICTURE = "docs/pictures/bench.svg"

INTRODUCTION = """# Benchmarks

Measured on {date} by `{command}`, which writes this page and its picture, on {machine}, with {versions}.

"Ours" is the time, memory or size of our program, "other" that of the program after the slash. The ratio is the median
of the ratios of all rounds, in which the two programs take turns. With a goal of `<=` it is our time divided by the
other's, with `>=` the other's divided by ours. A release should meet the goal; the stretch goal is
what the hardware should allow. A program that takes less than a second runs twice in each turn, and the second time
counts. Programs are started without a shell, on files that are in the page cache. Our programs are
those that `make install` installs. They are linked dynamically, so row 11 compares with a C program that is as well, and
the goal of row 15 is that for dynamic programs. The goals were lower while static programs were installed, which start
0.3 ms earlier; since then there is no row 22, the limit on sizes.

![The cost of a turn against the length of its history, and the time of a rebuild]({picture})

The left plot compares a turn with the offline provider, in transcripts that end with a compaction, with a program that
parses the whole file.

"""


@dataclass
class Row:
    """A row of the table, as text."""

    number: object
    what: str
    ours: str
    other: str
    ratio: str
    goal: str
    stretch: str
    state: str
    commands: list


@dataclass
class Plots:
    """The data of the plots. A series is a name and its points."""

    turns: list = field(default_factory=list)
    rebuilds: dict = field(default_factory=dict)

    def history(self, series):
        self.turns = series

    def rebuild(self, size, name, seconds):
        self.rebuilds.setdefault(size, []).append((name, seconds))


# The page.

TITLES = ("row", "ours / other", "ours", "other", "ratio", "goal", "stretch", "result", "command")


def page(rows, command, versions):
    """Yields the lines of BENCH.md."""
    date = datetime.date.today().strftime("%-d %B %Y")
    yield INTRODUCTION.format(date=date, command=command, machine=machine(), versions=versions, picture=PICTURE).rstrip()
    parts = [("What falls short of its goal", [row for row in rows if row.state == "MISSED"]),
             ("What meets its goal, but not the stretch goal", [row for row in rows if row.state == "met"]),
             ("What meets its stretch goal", [row for row in rows if row.state == "stretch"]),
             ("Without a goal", [row for row in rows if row.state == ""]),
             ("Not measured", [row for row in rows if row.state.startswith("skipped")])]
    for title, part in parts:
        if part or title.startswith("What falls short"):
            yield f"\n## {title}\n"
            cells = ([*values, "<br>".join(f"`{command}`" for command in commands)] for *values, commands in map(astuple, part))
            yield table(TITLES, cells).rstrip() if part else "Nothing."


def machine():
    def first(path, key, otherwise):
        try:
            lines = Path(path).read_text("utf-8").splitlines()
        except OSError:
            return otherwise
        found = (line.partition(key)[2].strip(' \t:="') for line in lines if line.startswith(key))
        return next(found, otherwise)
    processor = first("/proc/cpuinfo", "model name", platform.processor() or platform.machine())
    memory = first("/proc/meminfo", "MemTotal", "0").split()[0]
    system = first("/etc/os-release", "PRETTY_NAME", platform.system())
    return f"{os.cpu_count()} processors ({processor}) with {int(memory) / 2 ** 20:.0f} GiB of memory and {system}"


# The picture: each plot is yielded as lines of SVG.

WIDTH, HEIGHT, PLOT = 380, 310, (60, 62, 290, 180)
# The first color is for our programs.
COLORS = ("#2563a8", "#b3541e", "#3d7a3a", "#7a4d9e")


def text(x, y, words, anchor="start", size=11, color="#333"):
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="{color}">'
            f"{html.escape(str(words))}</text>")


def ticks(low, high):
    """Returns the powers of ten from the one at or below `low` to the one at or above `high`."""
    return [10.0 ** power for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)]


def duration(seconds):
    return f"{seconds:g} s" if seconds >= 1 else f"{seconds * 1000:g} ms"


def axes(title, values, x_title):
    """Yields the frame of a plot whose vertical axis is logarithmic; see `scale`."""
    left, top, width, height = PLOT
    marks = ticks(min(values), max(values))
    yield text(left, 22, title, size=13)
    for mark in marks:
        y = scale(mark, values)
        yield f'<path d="M{left} {y:.1f}h{width}" stroke="#ddd"/>'
        yield text(left - 6, y + 4, duration(mark), "end")
    yield text(left + width / 2, HEIGHT - 22, x_title, "middle")


def scale(value, values):
    _, top, _, height = PLOT
    marks = ticks(min(values), max(values))
    low, high = math.log10(marks[0]), math.log10(marks[-1])
    return top + height * (1 - (math.log10(value) - low) / max(high - low, 1))


def curves(title, series, x_title):
    """Yields a plot with a line for each series. Both axes are logarithmic."""
    left, top, width, height = PLOT
    values = [y for _, points in series for _, y in points]
    places = sorted({x for _, points in series for x, _ in points})
    yield from axes(title, values, x_title)

    def across(x):
        span = math.log(places[-1] / places[0]) or 1
        return left + width * math.log(x / places[0]) / span
    for x in places:
        yield text(across(x), top + height + 16, f"{x:g}", "middle")
    for index, ((name, points), color) in enumerate(zip(series, COLORS)):
        yield text(left + width, 22 + 14 * index, name, "end", color=color)
        path = "L".join(f"{across(x):.1f} {scale(y, values):.1f}" for x, y in points)
        yield f'<path d="M{path}" fill="none" stroke="{color}" stroke-width="2"/>'
        for x, y in points:
            yield f'<circle cx="{across(x):.1f}" cy="{scale(y, values):.1f}" r="3" fill="{color}"/>'


def bars(title, entries):
    """Yields a plot with a horizontal bar for each entry, and its time."""
    left, top, width, height = PLOT
    yield text(left, 22, title, size=13)
    step, longest = height / len(entries), max(seconds for _, seconds in entries)
    for index, (name, seconds) in enumerate(entries):
        y, color = top + index * step, COLORS[0] if index == 0 else "#a5a5a5"
        long = max(2, width * seconds / longest)
        yield text(left, y - 3, f"{name}: {duration(float(f'{seconds:.3g}'))}")
        yield f'<rect x="{left}" y="{y:.1f}" width="{long:.1f}" height="{step - 17:.1f}" fill="{color}"/>'


def picture(plots):
    """Yields the lines of the picture, without the plots that have no data."""
    panels = []
    if plots.turns:
        panels.append(curves("Time of a turn", plots.turns, "MiB of history"))
    for size, entries in list(plots.rebuilds.items())[-1:]:
        panels.append(bars(f"Time of a rebuild of {size}", entries))
    width = WIDTH * len(panels)
    yield (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {HEIGHT}" width="{width}" '
           'font-family="system-ui, sans-serif">')
    yield "<title>Benchmarks</title>"
    yield '<rect width="100%" height="100%" fill="#fff"/>'
    for index, panel in enumerate(panels):
        yield f'<g transform="translate({index * WIDTH} 0)">'
        yield from panel
        yield "</g>"
    yield "</svg>"


def write_report(directory, rows, plots, command, versions):
    """Writes the page and the picture below a directory."""
    (directory / PICTURE).parent.mkdir(parents=True, exist_ok=True)
    (directory / "BENCH.md").write_text("\n".join(page(rows, command, versions)) + "\n", "utf-8")
    (directory / PICTURE).write_text("\n".join(picture(plots)) + "\n", "utf-8")
