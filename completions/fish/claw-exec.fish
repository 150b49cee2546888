# Completion of claw-exec. `make completions` writes this file.

complete -c claw-exec -l tools -d 'Directory of tools, one executable each' -r -f -a "(__fish_complete_directories)"
complete -c claw-exec -l workspace -d 'Workspace: the directory that holds the sessions and in which tools run' -r -f -a "(__fish_complete_directories)"
complete -c claw-exec -l allow -d 'Allow this tool; others are refused or, with --ask, need a confirmation; may be repeated' -r -f
complete -c claw-exec -l deny -d 'Never run this tool; may be repeated' -r -f
complete -c claw-exec -l pass-env -d 'Pass this variable to tools even if it looks like a credential; may be repeated' -r -f
complete -c claw-exec -l jobs -d 'Maximum number of tool calls to run at a time (default: the number of processors)' -r -f
complete -c claw-exec -l max-output -d 'Maximum length of a result in bytes; longer output is kept in a file' -r -f
complete -c claw-exec -l keep -d 'Directory for longer output, one file per call (default: output in CLAW_STATE_DIR)' -r -f -a "(__fish_complete_directories)"
complete -c claw-exec -l log -d 'Format of the diagnostics on standard error' -r -f -a "text\t'One line of text per diagnostic'
json\t'One JSON object per diagnostic'"
complete -c claw-exec -l config -d 'Configuration file (default: clawutils/config.json in XDG_CONFIG_HOME or ~/.config)' -r -F
complete -c claw-exec -l profile -d 'Profile of the configuration file to use' -r -f
complete -c claw-exec -l exec-timeout -l timeout -d 'Time limit for each tool call, in seconds' -r -f
complete -c claw-exec -l ask -d 'Ask on the terminal before running a tool that --allow does not name'
complete -c claw-exec -s h -l help -d 'Print help (see more with \'--help\')'
complete -c claw-exec -s V -l version -d 'Print version'
