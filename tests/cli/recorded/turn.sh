#!/bin/sh
# turn.sh DIRECTORY: replay a guarded turn with a real model, SmolLM2-135M-Instruct on llama.cpp's server, from the
# exchanges in tests/data/real-turn. Programs are taken from PATH. The transcript stays in DIRECTORY/real.jsonl. To record
# the exchanges again from such a server with a window of 2048 tokens:
#     RECORD=http://127.0.0.1:8080 tests/cli/recorded/turn.sh DIRECTORY
set -eu

work=${1:?usage: turn.sh DIRECTORY}
tape=$(dirname "$0")/../../data/real-turn
session=$work/real.jsonl
mkdir -p "$work"
rm -rf "$session" "$work/state"
export CLAW_STATE_DIR="$work/state" CLAW_PROVIDER=anthropic CLAW_MODEL=smollm2-135m-instruct CLAW_WINDOW=2048
# Requests contain ids of records, which are hashes of content and time. With this time, the ids match the recording.
export SOURCE_DATE_EPOCH=1767225600

# turn NUMBER PROMPT ANSWER: appends a turn with a tool call, as an agent does.
turn () {
	printf '%s\n' "$2" | claw-append --user "$session"
	printf '{"type":"assistant","content":[{"type":"text","text":"I run the build."}],"stop_reason":"tool_use"}\n{"type":"tool_use","tool_use_id":"call_%s","name":"build","input":{"target":"target_%s"}}\n' "$1" "$1" |
		claw-append "$session"
	awk -v name="target_$1" 'BEGIN {
		for (i = 1; i <= 30; i++) printf "step %d of %s: compiled module_%d in %d ms\n", i, name, i, i * 7 % 90
		printf "error: %s failed at step 30: missing header zlib.h\n", name
	}' | claw-append --tool-result "call_$1" "$session"
	printf 'The build of target_%s fails at step 30: zlib.h is missing. %s\n' "$1" "$3" | claw-append --assistant "$session"
}

# chat PROMPT ANSWER: appends a turn without a tool call.
chat () {
	printf '%s\n' "$1" | claw-append --user "$session"
	awk -v answer="$2" 'BEGIN {
		for (i = 1; i <= 16; i++) printf "%d. %s; this is point %d of what I weighed, with its reasons and the alternatives that I looked at and set aside.\n", i, answer, i
	}' | claw-append --assistant "$session"
}

turn 1 "Build target_1." "Install zlib first."
chat "Which package has zlib.h?" "It is in zlib1g-dev"
turn 2 "Build target_2." "The same as before."
chat "Should we vendor zlib instead?" "I would not vendor it"
chat "What did we decide?" "Install zlib1g-dev, do not vendor"
if test -n "${RECORD:-}"
then
	rm -rf "$tape"
	set -- --base-url "$RECORD" --record "$tape"
else
	set -- --replay "$tape"
fi
printf 'Which package do I install? Answer in one sentence.\n' |
	claw-turn --no-proactive --max-tokens 120 "$@" "$session"
