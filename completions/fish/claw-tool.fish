# Completion of claw-tool. `make completions` writes this file.

complete -c claw-tool -l log -d 'Format of the diagnostics on standard error' -r -f -a "text\t'One line of text per diagnostic'
json\t'One JSON object per diagnostic'"
complete -c claw-tool -l config -d 'Configuration file (default: clawutils/config.json in XDG_CONFIG_HOME or ~/.config)' -r -F
complete -c claw-tool -l profile -d 'Profile of the configuration file to use' -r -f
complete -c claw-tool -s h -l help -d 'Print help (see more with \'--help\')'
complete -c claw-tool -s V -l version -d 'Print version'
