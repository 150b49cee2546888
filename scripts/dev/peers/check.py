"""Parses every record of transcripts, as a simple checking script would."""

import json
import sys

for path in sys.argv[1:]:
    records = calls = 0
    with open(path, encoding="utf-8") as file:
        for line in file:
            record = json.loads(line)
            records += 1
            calls += record["type"] == "tool_use"
    print(json.dumps({"path": path, "records": records, "calls": calls}))
