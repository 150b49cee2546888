# Completion of claw-show. `make completions` writes this file.

complete -c claw-show -l from -d 'Read transcripts of another program as DIALECT (default: from their content)' -r -f -a "pi\t'Sessions of pi, OpenClaw and GoClaw'
claude-code\t'Project files of Claude Code'
codex\t'Rollout files of Codex CLI'
openai\t'Messages for OpenAI\'s API or a compatible one'
gemini\t'Contents for Gemini\'s API'
gemini-cli\t'Chats of Gemini CLI'
copilot\t'Sessions of GitHub Copilot CLI'"
complete -c claw-show -l leaf -d 'In a transcript of another program that has branches, read the branch that ends with record ID' -r -f
complete -c claw-show -l format -d 'Format of the output (default: from the extension of --output, else text)' -r -f -a "text\t'For a terminal'
markdown\t'For a repository, an issue or a chat'
html\t'One file for a browser'"
complete -c claw-show -l output -d 'Write to a new file instead of standard output, or a site of many sessions to a directory' -r -F
complete -c claw-show -l limit-turns -d 'Show only the last N turns' -r -f
complete -c claw-show -l turn -d 'Show only turn N, counted from 1' -r -f
complete -c claw-show -l width -d 'Number of columns of the text, at least 24 (default: COLUMNS, the width of the terminal, or 80)' -r -f
complete -c claw-show -l language -d 'Language of the program\'s own words' -r -f -a "en\t'English'
ja\t'Japanese'
zh\t'Chinese'"
complete -c claw-show -l color -d 'Use colours in text' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set'
always\t'Always'
never\t'Never'"
complete -c claw-show -l prices -d 'File of prices, one model per line, which wins over the table of models' -r -F
complete -c claw-show -l models -d 'File of models to look up before the built-in table' -r -F
complete -c claw-show -l redact -d 'Redact text that matches a pattern in FILE' -r -F
complete -c claw-show -l log -d 'Format of the diagnostics on standard error' -r -f -a "text\t'One line of text per diagnostic'
json\t'One JSON object per diagnostic'"
complete -c claw-show -l config -d 'Configuration file (default: clawutils/config.json in XDG_CONFIG_HOME or ~/.config)' -r -F
complete -c claw-show -l profile -d 'Profile of the configuration file to use' -r -f
complete -c claw-show -l replace -d 'Replace the file of --output if it exists'
complete -c claw-show -l full -d 'Do not fold anything'
complete -c claw-show -l diff -d 'Compare two sessions, side by side from where they part'
complete -c claw-show -l follow -d 'Show the file, and then what is appended to it, until a signal ends the program'
complete -c claw-show -l markdown -d 'Render Markdown from standard input for a terminal as it arrives, instead of a transcript'
complete -c claw-show -l cost -d 'Show only the tokens and the cost of the calls, in one line'
complete -c claw-show -s h -l help -d 'Print help (see more with \'--help\')'
complete -c claw-show -s V -l version -d 'Print version'
