# Completion of claw-check. `make completions` writes this file.

complete -c claw-check -l from -d 'Read transcripts of another program as DIALECT (default: from their content)' -r -f -a "pi\t'Sessions of pi, OpenClaw and GoClaw'
claude-code\t'Project files of Claude Code'
codex\t'Rollout files of Codex CLI'
openai\t'Messages for OpenAI\'s API or a compatible one'
gemini\t'Contents for Gemini\'s API'
gemini-cli\t'Chats of Gemini CLI'
copilot\t'Sessions of GitHub Copilot CLI'"
complete -c claw-check -l leaf -d 'In a transcript of another program that has branches, read the branch that ends with record ID' -r -f
complete -c claw-check -l log -d 'Format of the diagnostics on standard error' -r -f -a "text\t'One line of text per diagnostic'
json\t'One JSON object per diagnostic'"
complete -c claw-check -l config -d 'Configuration file (default: clawutils/config.json in XDG_CONFIG_HOME or ~/.config)' -r -F
complete -c claw-check -l profile -d 'Profile of the configuration file to use' -r -f
complete -c claw-check -l rules -d 'List the rules instead of checking files, one per line: name, severity, whether rebuild repairs it, meaning'
complete -c claw-check -s h -l help -d 'Print help (see more with \'--help\')'
complete -c claw-check -s V -l version -d 'Print version'
