// Rebuilds the messages of a transcript by the rules of rebuild.py. The first argument selects how the file is read:
// "string" reads it as one string (at most 512 MiB, the longest string of V8) and splits that, "lines" uses the module
// readline, and "bytes" decodes each line separately, which is the fastest way.
"use strict";

const fs = require("fs");
const readline = require("readline");

const [, , way, path] = process.argv;
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

const ways = {
	async string() {
		for (const line of fs.readFileSync(path, "utf8").split("\n")) take(line);
	},
	async lines() {
		const lines = readline.createInterface({ input: fs.createReadStream(path), crlfDelay: Infinity });
		for await (const line of lines) take(line);
	},
	async bytes() {
		const bytes = fs.readFileSync(path);
		for (let from = 0; from < bytes.length;) {
			let to = bytes.indexOf(10, from);
			if (to < 0) to = bytes.length;
			take(bytes.toString("utf8", from, to));
			from = to + 1;
		}
	},
};

ways[way]().then(() => {
	close();
	flush();
});
