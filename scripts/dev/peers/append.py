"""Appends a record from standard input to a transcript, as claw0 does."""

import json
import sys

record = json.loads(sys.stdin.read())
with open(sys.argv[1], "a", encoding="utf-8") as file:
    file.write(json.dumps(record, ensure_ascii=False) + "\n")
