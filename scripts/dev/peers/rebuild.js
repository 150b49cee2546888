// rebuild: the messages of a transcript, as rebuild.py makes them. Lines are cut out of the file's
// bytes one by one: as one string it could not be larger than 512 MiB.
"use strict";

const fs = require("fs");

const bytes = fs.readFileSync(process.argv[2]);
let open = null;
let out = [];

function close() {
	if (open !== null) out.push(JSON.stringify(open), "\n");
	if (out.length > 2000) flush();
}

function flush() {
	fs.writeSync(1, out.join(""));
	out = [];
}

function say(role, content) {
	close();
	open = { role, content };
}

function add(role, block) {
	if (open !== null && open.role === role && Array.isArray(open.content)) open.content.push(block);
	else say(role, [block]);
}

function take(record) {
	switch (record.type) {
	case "user":
		say("user", record.content);
		break;
	case "assistant":
		say("assistant", typeof record.content === "string"
			? [{ type: "text", text: record.content }] : record.content);
		break;
	case "tool_use":
		add("assistant", { type: "tool_use", id: record.tool_use_id, name: record.name, input: record.input });
		break;
	case "tool_result":
		add("user", { type: "tool_result", tool_use_id: record.tool_use_id, content: record.content });
		break;
	}
}

for (let from = 0; from < bytes.length;) {
	let to = bytes.indexOf(10, from);
	if (to < 0) to = bytes.length;
	if (to > from) take(JSON.parse(bytes.toString("utf8", from, to)));
	from = to + 1;
}
close();
flush();
