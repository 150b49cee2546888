# Rebuilds the messages of a transcript by the rules of rebuild.py. Run with -n and -c.
def say($role; $content): {out: .open, open: {role: $role, content: $content}};
def add($role; $block):
  if .open.role == $role and (.open.content | type) == "array"
  then .out = null | .open.content += [$block]
  else say($role; [$block]) end;
foreach (inputs, null) as $record ({};
  if $record == null then say(null; null)
  elif $record.type == "user" then say("user"; $record.content)
  elif $record.type == "assistant" then
    say("assistant"; $record.content | if type == "string" then [{type: "text", text: .}] else . end)
  elif $record.type == "tool_use" then
    add("assistant"; {type: "tool_use", id: $record.tool_use_id, name: $record.name, input: $record.input})
  elif $record.type == "tool_result" then
    add("user"; {type: "tool_result", tool_use_id: $record.tool_use_id, content: $record.content})
  else .out = null end;
  .out // empty)
