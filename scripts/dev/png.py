"""Makes images for tests."""

import struct
import zlib


def png(width, height, rows=None):
    """Returns an image of one colour, or of these rows, each of which begins with the number of its filter."""
    chunk = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = rows or (b"\0" + b"\xff\0\0" * width) * height
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
