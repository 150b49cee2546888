// Rebuilds the messages of a transcript by the rules of rebuild.py.
"use strict";

const fs = require("fs");
const readline = require("readline");

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

function take(line) {
	if (line === "") return;
	const record = JSON.parse(line);
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

const lines = readline.createInterface({ input: fs.createReadStream(process.argv[2]), crlfDelay: Infinity });
lines.on("line", take);
lines.on("close", () => {
	close();
	flush();
});
