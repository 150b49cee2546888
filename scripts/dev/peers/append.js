// Appends a record from standard input to a transcript.
"use strict";

const fs = require("fs");

const record = JSON.parse(fs.readFileSync(0, "utf8"));
fs.appendFileSync(process.argv[2], JSON.stringify(record) + "\n");
