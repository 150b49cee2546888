"""Writes what scripts measure into pages that are otherwise written by hand."""

import sys

from places import ROOT


def table(head, rows, rule="---"):
    """Returns a table in Markdown. `rule` is below the titles of all columns but the first; `---:` aligns them to the right."""
    line = lambda cells: "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |\n"
    return line(head) + "|---" + f"|{rule}" * (len(head) - 1) + "|\n" + "".join(map(line, rows))


def write_table(page, text, name="table"):
    """Replaces the part of a page between the comment with this name and the next end."""
    path, begin, end = ROOT / page, f"<!-- {name} -->\n", "<!-- end -->"
    head, found, rest = path.read_text("utf-8").partition(begin)
    if not found:
        raise LookupError(f"{page}: there is no {begin.strip()}")
    path.write_text(head + begin + text + end + rest.partition(end)[2], "utf-8")


def publish(page, text):
    """Writes the table of a page if the option --write is given; otherwise prints it."""
    if "--write" in sys.argv:
        write_table(page, text)
    else:
        print(text, end="")
