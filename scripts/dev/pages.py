"""Writes what scripts measure into pages that are otherwise written by hand."""


def write_table(page, text, name="table"):
    """Replaces the part of a page between the comment with this name and the next end."""
    begin, end = f"<!-- {name} -->\n", "<!-- end -->"
    head, found, rest = page.read_text("utf-8").partition(begin)
    if not found:
        raise LookupError(f"{page}: there is no {begin.strip()}")
    page.write_text(head + begin + text + end + rest.partition(end)[2], "utf-8")
