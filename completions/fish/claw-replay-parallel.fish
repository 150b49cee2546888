# Completion of claw-replay-parallel. After --, the words are those of claw-replay.

function __fish_claw_replay_parallel
    set -l words (commandline -opc) (commandline -ct)
    set -l index (contains -i -- -- $words)
    and complete -C "claw-replay $(string join ' ' -- $words[(math $index + 1)..])"
end

complete -c claw-replay-parallel -s h -l help -d 'Print help'
complete -c claw-replay-parallel -n 'contains -- -- (commandline -opc)' -f -a '(__fish_claw_replay_parallel)'
