# Completion of claw-append. `make completions` writes this file.

complete -c claw-append -l tool-result -d 'Append the text on standard input as the result of tool call ID' -r -f
complete -c claw-append -l attach -d 'Attach FILE (an image, a PDF document or a text file) before the text; may be repeated' -r -F
complete -c claw-append -l redact -d 'Redact text that matches a pattern in FILE' -r -F
complete -c claw-append -l expect-tail -d 'Append only if the id of the last record is ID' -r -f -a "(for word in (commandline -opc)[2..]; claw-session history --ids -n 1000 -- $word 2>/dev/null; and break; end)"
complete -c claw-append -l lock-timeout -d 'Longest wait for another writer, in seconds' -r -f
complete -c claw-append -l log -d 'Format of the diagnostics on standard error' -r -f -a "text\t'One line of text per diagnostic'
json\t'One JSON object per diagnostic'"
complete -c claw-append -l config -d 'Configuration file (default: clawutils/config.json in XDG_CONFIG_HOME or ~/.config)' -r -F
complete -c claw-append -l profile -d 'Profile of the configuration file to use' -r -f
complete -c claw-append -l user -d 'Append the text on standard input as one user record'
complete -c claw-append -l assistant -d 'Append the text on standard input as one assistant record'
complete -c claw-append -l is-error -d 'Mark the result as that of a failed tool call'
complete -c claw-append -l each -d 'Append each record as soon as its line arrives, and ignore signals until the input ends'
complete -c claw-append -l tee -d 'Also write the appended records, with their ids, to standard output'
complete -c claw-append -l print -d 'Also write the text of replies to standard output'
complete -c claw-append -l no-sync -d 'Do not wait until the records are on disk'
complete -c claw-append -s h -l help -d 'Print help (see more with \'--help\')'
complete -c claw-append -s V -l version -d 'Print version'
