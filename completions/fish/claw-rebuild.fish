# Completion of claw-rebuild. `make completions` writes this file.

complete -c claw-rebuild -l from -d 'Read transcripts of another program as DIALECT (default: from their content)' -r -f -a "pi\t'Sessions of pi, OpenClaw and GoClaw'
claude-code\t'Project files of Claude Code'
codex\t'Rollout files of Codex CLI'
openai\t'Messages for OpenAI\'s API or a compatible one'
gemini\t'Contents for Gemini\'s API'
gemini-cli\t'Chats of Gemini CLI'
copilot\t'Sessions of GitHub Copilot CLI'"
complete -c claw-rebuild -l leaf -d 'In a transcript of another program that has branches, read the branch that ends with record ID' -r -f
complete -c claw-rebuild -l to -d 'Write the messages in the form of another API' -r -f -a "anthropic\t'The Anthropic Messages API'
openai\t'OpenAI\'s chat completions, which many servers offer'
responses\t'OpenAI\'s Responses API'
ollama\t'Ollama'
gemini\t'Gemini'"
complete -c claw-rebuild -l thinking -d 'Keep or strip thinking (default: auto)' -r -f -a "keep\t'Keep it, in the member that servers of this API use'
strip\t'Leave it out'
auto\t'Keep it if the API accepts it in requests: only Anthropic\'s does'"
complete -c claw-rebuild -l record -d 'Write the complete content of record ID as text' -r -f -a "(for word in (commandline -opc)[2..]; claw-session history --ids -n 1000 -- $word 2>/dev/null; and break; end)"
complete -c claw-rebuild -l undo -d 'Write the retract records that undo a cut or a turn' -r -f -a "cut\t'The newest cut in effect: the compaction that applies, or the newest group of truncations and omissions'
turn\t'The newest prompt and everything after it'
refused\t'All cuts since the first of the refusals of a block that the transcript ends with'"
complete -c claw-rebuild -l at -d 'Read only up to and including record ID' -r -f -a "(for word in (commandline -opc)[2..]; claw-session history --ids -n 1000 -- $word 2>/dev/null; and break; end)"
complete -c claw-rebuild -l to-turn -d 'Read only up to the end of turn N' -r -f
complete -c claw-rebuild -l limit-turns -d 'Keep only the last N turns' -r -f
complete -c claw-rebuild -l log -d 'Format of the diagnostics on standard error' -r -f -a "text\t'One line of text per diagnostic'
json\t'One JSON object per diagnostic'"
complete -c claw-rebuild -l config -d 'Configuration file (default: clawutils/config.json in XDG_CONFIG_HOME or ~/.config)' -r -F
complete -c claw-rebuild -l profile -d 'Profile of the configuration file to use' -r -f
complete -c claw-rebuild -l array -d 'Write one JSON array instead of one message per line'
complete -c claw-rebuild -l meta -d 'Add a member _meta to each message, which names the records behind it'
complete -c claw-rebuild -l strict -d 'Treat any finding as an error: write no messages and exit with 65'
complete -c claw-rebuild -l ready -d 'Write messages only if they can be sent as they are; otherwise exit with 7 or 76'
complete -c claw-rebuild -l printable -d 'Escape control characters in the content of --record'
complete -c claw-rebuild -l open -d 'Write the tool calls at the end that have no result yet'
complete -c claw-rebuild -l redo -d 'Write the retract records that reverse the last undo'
complete -c claw-rebuild -l ignore-compactions -d 'Include the records that compactions cover instead of the summaries'
complete -c claw-rebuild -l interrupted -d 'Include the stored parts of interrupted replies'
complete -c claw-rebuild -s h -l help -d 'Print help (see more with \'--help\')'
complete -c claw-rebuild -s V -l version -d 'Print version'
