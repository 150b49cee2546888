# Completion of claw-replay. `make completions` writes this file.

# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_claw_replay_global_optspecs
    string join \n log= config= profile= h/help V/version
end

function __fish_claw_replay_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_claw_replay_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_claw_replay_using_subcommand
    set -l cmd (__fish_claw_replay_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c claw-replay -n "__fish_claw_replay_needs_command" -l log -d 'Format of the diagnostics on standard error' -r -f -a "text\t'One line of text per diagnostic'
json\t'One JSON object per diagnostic'"
complete -c claw-replay -n "__fish_claw_replay_needs_command" -l config -d 'Configuration file (default: clawutils/config.json in XDG_CONFIG_HOME or ~/.config)' -r -F
complete -c claw-replay -n "__fish_claw_replay_needs_command" -l profile -d 'Profile of the configuration file to use' -r -f
complete -c claw-replay -n "__fish_claw_replay_needs_command" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c claw-replay -n "__fish_claw_replay_needs_command" -s V -l version -d 'Print version'
complete -c claw-replay -n "__fish_claw_replay_needs_command" -f -a "check" -d 'Check that transcripts are sound, can be sent and fit the window'
complete -c claw-replay -n "__fish_claw_replay_needs_command" -f -a "guard" -d 'Report at which turns context windows would overflow, and what the guard would do'
complete -c claw-replay -n "__fish_claw_replay_needs_command" -f -a "call" -d 'Request the replies of transcripts again and compare them with the recorded ones'
complete -c claw-replay -n "__fish_claw_replay_needs_command" -f -a "diff" -d 'Compare two directories of transcripts, or the reports of two runs'
complete -c claw-replay -n "__fish_claw_replay_needs_command" -f -a "merge" -d 'Merge the reports of several runs, and write their results'
complete -c claw-replay -n "__fish_claw_replay_using_subcommand check" -l window -d 'Also check that the messages fit this context window, in tokens; separate several with commas' -r -f
complete -c claw-replay -n "__fish_claw_replay_using_subcommand check" -l model -d 'Model to estimate tokens for (default: the one that the newest reply names)' -r -f
complete -c claw-replay -n "__fish_claw_replay_using_subcommand check" -l glob -d 'Pattern for the names of files in directories, or for their paths if it has a slash; may be repeated' -r -f
complete -c claw-replay -n "__fish_claw_replay_using_subcommand check" -l files-from -d 'File with further paths, one per line; `-` is standard input' -r -F
complete -c claw-replay -n "__fish_claw_replay_using_subcommand check" -l shard -d 'Divide the transcripts into N parts, and work only on part K' -r -f
complete -c claw-replay -n "__fish_claw_replay_using_subcommand check" -l state -d 'File that keeps the reports, so that the next run does not make them again for unchanged transcripts' -r -F
complete -c claw-replay -n "__fish_claw_replay_using_subcommand check" -l jobs -d 'Number of transcripts to work on at a time (default: the number of processors)' -r -f
complete -c claw-replay -n "__fish_claw_replay_using_subcommand check" -l junit -d 'Also write the results as JUnit XML, which most CI systems read' -r -F
complete -c claw-replay -n "__fish_claw_replay_using_subcommand check" -l markdown -d 'Also write a summary with a table of failures as Markdown, at most 1 MiB' -r -F
complete -c claw-replay -n "__fish_claw_replay_using_subcommand check" -l html -d 'Also write a report for a browser to DIR/index.html, with a page for each failed transcript' -r -f -a "(__fish_complete_directories)"
complete -c claw-replay -n "__fish_claw_replay_using_subcommand check" -l log -d 'Format of the diagnostics on standard error' -r -f -a "text\t'One line of text per diagnostic'
json\t'One JSON object per diagnostic'"
complete -c claw-replay -n "__fish_claw_replay_using_subcommand check" -l config -d 'Configuration file (default: clawutils/config.json in XDG_CONFIG_HOME or ~/.config)' -r -F
complete -c claw-replay -n "__fish_claw_replay_using_subcommand check" -l profile -d 'Profile of the configuration file to use' -r -f
complete -c claw-replay -n "__fish_claw_replay_using_subcommand check" -s 0 -l null -d 'Paths in the file of --files-from end in a NUL byte instead of a line feed'
complete -c claw-replay -n "__fish_claw_replay_using_subcommand check" -l fail-fast -d 'Stop after the first transcript that fails or is unreadable'
complete -c claw-replay -n "__fish_claw_replay_using_subcommand check" -l strict -d 'Exit with 65 if a file is not a transcript'
complete -c claw-replay -n "__fish_claw_replay_using_subcommand check" -l github -d 'Also write failures as annotations of GitHub Actions, on standard error'
complete -c claw-replay -n "__fish_claw_replay_using_subcommand check" -l quiet -d 'Show no progress and no totals on standard error'
complete -c claw-replay -n "__fish_claw_replay_using_subcommand check" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c claw-replay -n "__fish_claw_replay_using_subcommand guard" -l window -d 'Context window in tokens, for prompt and answer together; separate several with commas' -r -f
complete -c claw-replay -n "__fish_claw_replay_using_subcommand guard" -l max-tokens -d 'Maximum length of the answer in tokens (default: 8096, at most a quarter of the window)' -r -f
complete -c claw-replay -n "__fish_claw_replay_using_subcommand guard" -l reserve -d 'Tokens to keep free; a conversation that would use them is compacted first (default: 30000, at most 15 % of the window)' -r -f
complete -c claw-replay -n "__fish_claw_replay_using_subcommand guard" -l system -d 'File with the system prompt' -r -F
complete -c claw-replay -n "__fish_claw_replay_using_subcommand guard" -l tools -d 'File with a JSON array of tool definitions, or directory of tools' -r -F
complete -c claw-replay -n "__fish_claw_replay_using_subcommand guard" -l prices -d 'File of prices, one model per line; the cost of all calls is reported' -r -F
complete -c claw-replay -n "__fish_claw_replay_using_subcommand guard" -l model -d 'Model to estimate tokens for, and whose price applies (default: the one that the newest reply names)' -r -f
complete -c claw-replay -n "__fish_claw_replay_using_subcommand guard" -l policy -d 'Price these policies of cutting and shortening, and the least that was possible; separate several with commas' -r -f -a "none\t'Never; the window is not kept'
window\t'Cut when the window less the reserve is full, keeping the newer half'
pi\t'Cut as pi does'
openclaw\t'Cut as OpenClaw does, and shorten old results when the cache has expired'
cold\t'As window, and shorten old results when the cache has expired'
cost\t'Cut when reading the old part has cost as much as a cut, and shorten old results when the cache has expired'"
complete -c claw-replay -n "__fish_claw_replay_using_subcommand guard" -l glob -d 'Pattern for the names of files in directories, or for their paths if it has a slash; may be repeated' -r -f
complete -c claw-replay -n "__fish_claw_replay_using_subcommand guard" -l files-from -d 'File with further paths, one per line; `-` is standard input' -r -F
complete -c claw-replay -n "__fish_claw_replay_using_subcommand guard" -l shard -d 'Divide the transcripts into N parts, and work only on part K' -r -f
complete -c claw-replay -n "__fish_claw_replay_using_subcommand guard" -l state -d 'File that keeps the reports, so that the next run does not make them again for unchanged transcripts' -r -F
complete -c claw-replay -n "__fish_claw_replay_using_subcommand guard" -l jobs -d 'Number of transcripts to work on at a time (default: the number of processors)' -r -f
complete -c claw-replay -n "__fish_claw_replay_using_subcommand guard" -l junit -d 'Also write the results as JUnit XML, which most CI systems read' -r -F
complete -c claw-replay -n "__fish_claw_replay_using_subcommand guard" -l markdown -d 'Also write a summary with a table of failures as Markdown, at most 1 MiB' -r -F
complete -c claw-replay -n "__fish_claw_replay_using_subcommand guard" -l html -d 'Also write a report for a browser to DIR/index.html, with a page for each failed transcript' -r -f -a "(__fish_complete_directories)"
complete -c claw-replay -n "__fish_claw_replay_using_subcommand guard" -l log -d 'Format of the diagnostics on standard error' -r -f -a "text\t'One line of text per diagnostic'
json\t'One JSON object per diagnostic'"
complete -c claw-replay -n "__fish_claw_replay_using_subcommand guard" -l config -d 'Configuration file (default: clawutils/config.json in XDG_CONFIG_HOME or ~/.config)' -r -F
complete -c claw-replay -n "__fish_claw_replay_using_subcommand guard" -l profile -d 'Profile of the configuration file to use' -r -f
complete -c claw-replay -n "__fish_claw_replay_using_subcommand guard" -s 0 -l null -d 'Paths in the file of --files-from end in a NUL byte instead of a line feed'
complete -c claw-replay -n "__fish_claw_replay_using_subcommand guard" -l fail-fast -d 'Stop after the first transcript that fails or is unreadable'
complete -c claw-replay -n "__fish_claw_replay_using_subcommand guard" -l strict -d 'Exit with 65 if a file is not a transcript'
complete -c claw-replay -n "__fish_claw_replay_using_subcommand guard" -l github -d 'Also write failures as annotations of GitHub Actions, on standard error'
complete -c claw-replay -n "__fish_claw_replay_using_subcommand guard" -l quiet -d 'Show no progress and no totals on standard error'
complete -c claw-replay -n "__fish_claw_replay_using_subcommand guard" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c claw-replay -n "__fish_claw_replay_using_subcommand call" -l turns -d 'Turns whose replies to request again: all, last, or numbers separated by commas' -r -f
complete -c claw-replay -n "__fish_claw_replay_using_subcommand call" -l compare -d 'Comparison: exact, calls, calls-and-inputs, or a shell command that gets both replies' -r -f
complete -c claw-replay -n "__fish_claw_replay_using_subcommand call" -l repeat -d 'Request each reply N times' -r -f
complete -c claw-replay -n "__fish_claw_replay_using_subcommand call" -l pass-rate -d 'Share of the N replies that must pass, from 0 to 1' -r -f
complete -c claw-replay -n "__fish_claw_replay_using_subcommand call" -l poll -d 'Pause before looking again whether the batches have ended, in seconds (default: 60)' -r -f
complete -c claw-replay -n "__fish_claw_replay_using_subcommand call" -l system -d 'File with the system prompt' -r -F
complete -c claw-replay -n "__fish_claw_replay_using_subcommand call" -l tools -d 'File with a JSON array of tool definitions, or directory of tools' -r -F
complete -c claw-replay -n "__fish_claw_replay_using_subcommand call" -l provider -d 'Provider to call (default: the one whose key is in the environment, else anthropic)' -r -f -a "anthropic\t'The Anthropic Messages API'
openai\t'Chat completions: OpenAI, OpenRouter, LiteLLM, vLLM, llama.cpp'
gemini\t'Google\'s Gemini, also on Vertex AI'
ollama\t'Ollama\'s own API'
offline\t'Built into the program, without network or key; its window is 200000 tokens by default'"
complete -c claw-replay -n "__fish_claw_replay_using_subcommand call" -l model -d 'Name of the model (default: MODEL_ID, else the provider\'s default model)' -r -f
complete -c claw-replay -n "__fish_claw_replay_using_subcommand call" -l base-url -d 'Address of the provider (default: ANTHROPIC_BASE_URL, OPENAI_BASE_URL, GEMINI_BASE_URL or OLLAMA_HOST)' -r -f
complete -c claw-replay -n "__fish_claw_replay_using_subcommand call" -l models -d 'File of models to look up before the built-in table' -r -F
complete -c claw-replay -n "__fish_claw_replay_using_subcommand call" -l window -d 'Context window in tokens, prompt and answer together (default: from the table of models)' -r -f
complete -c claw-replay -n "__fish_claw_replay_using_subcommand call" -l max-tokens -d 'Maximum length of the answer in tokens (default: 8096, at most a quarter of the window)' -r -f
complete -c claw-replay -n "__fish_claw_replay_using_subcommand call" -l extra -d 'JSON object with further members of the request body, or a file with one' -r -F
complete -c claw-replay -n "__fish_claw_replay_using_subcommand call" -l temperature -d 'Sampling temperature, from 0 to 2' -r -f
complete -c claw-replay -n "__fish_claw_replay_using_subcommand call" -l effort -d 'How much the model thinks before it answers' -r -f -a "none\t'No thinking'
minimal\t'As little as possible'
low\t'Little'
medium\t'Some'
high\t'Much'
xhigh\t'Very much'
max\t'As much as possible'"
complete -c claw-replay -n "__fish_claw_replay_using_subcommand call" -l thinking-budget -d 'The most tokens that the model thinks before it answers' -r -f
complete -c claw-replay -n "__fish_claw_replay_using_subcommand call" -l cache -d 'Use of the provider\'s prompt cache' -r -f -a "auto\t'Use the provider\'s prompt cache, with its default lifetime'
off\t'Ask for no cache'
1h\t'Use the cache with the longer lifetime, an hour at Anthropic, for which writing costs more'"
complete -c claw-replay -n "__fish_claw_replay_using_subcommand call" -l limit-turns -d 'Keep only the last N turns' -r -f
complete -c claw-replay -n "__fish_claw_replay_using_subcommand call" -l record -d 'Record each exchange with the provider in directory DIR' -r -f -a "(for word in (commandline -opc)[2..]; claw-session history --ids -n 1000 -- $word 2>/dev/null; and break; end)"
complete -c claw-replay -n "__fish_claw_replay_using_subcommand call" -l replay -d 'Answer from the recordings in directory DIR, without a network connection' -r -f -a "(__fish_complete_directories)"
complete -c claw-replay -n "__fish_claw_replay_using_subcommand call" -l prices -d 'File of prices, one model per line, which wins over the table of models; the cost of each reply is reported' -r -F
complete -c claw-replay -n "__fish_claw_replay_using_subcommand call" -l max-total -d 'Refuse a call that would take the session above this many tokens' -r -f
complete -c claw-replay -n "__fish_claw_replay_using_subcommand call" -l max-cost -d 'Refuse a call that would take the session above this cost' -r -f
complete -c claw-replay -n "__fish_claw_replay_using_subcommand call" -l failures -d 'File with further rows for the failure table' -r -F
complete -c claw-replay -n "__fish_claw_replay_using_subcommand call" -l key-file -d 'File with the API key, readable only by its owner' -r -F
complete -c claw-replay -n "__fish_claw_replay_using_subcommand call" -l key-cmd -d 'Shell command that prints the API key' -r -f -a "(__fish_complete_command)"
complete -c claw-replay -n "__fish_claw_replay_using_subcommand call" -l ca -d 'PEM file of certificates to trust in addition to the system\'s' -r -F
complete -c claw-replay -n "__fish_claw_replay_using_subcommand call" -l api -d 'API of OpenAI\'s servers; auto takes Responses where a model needs it' -r -f -a "auto\t'Responses on OpenAI\'s and Azure\'s servers for models that need it, else chat completions'
chat\t'Chat completions, which most servers know'
responses\t'The Responses API'"
complete -c claw-replay -n "__fish_claw_replay_using_subcommand call" -l max-tokens-field -d 'Name of the field that limits the answer in chat completions' -r -f -a "auto\t'Choose by model; max_completion_tokens for OpenAI itself'
max_tokens\t'The older name, which most servers know'
max_completion_tokens\t'The newer name, which OpenAI\'s newer models require'"
complete -c claw-replay -n "__fish_claw_replay_using_subcommand call" -l beta -d 'Anthropic beta feature to request; may be repeated' -r -f
complete -c claw-replay -n "__fish_claw_replay_using_subcommand call" -l timeout -d 'Longest wait for the answer to begin, and for each piece of it, in seconds' -r -f
complete -c claw-replay -n "__fish_claw_replay_using_subcommand call" -l max-retries -d 'Maximum number of retries when the provider is busy, broken or unreachable' -r -f
complete -c claw-replay -n "__fish_claw_replay_using_subcommand call" -l max-wait -d 'Longest wait to accept if the provider asks for one, in seconds' -r -f
complete -c claw-replay -n "__fish_claw_replay_using_subcommand call" -l deadline -d 'Time limit for each call, in seconds, with all retries and waits; with --batch, for all answers together' -r -f
complete -c claw-replay -n "__fish_claw_replay_using_subcommand call" -l glob -d 'Pattern for the names of files in directories, or for their paths if it has a slash; may be repeated' -r -f
complete -c claw-replay -n "__fish_claw_replay_using_subcommand call" -l files-from -d 'File with further paths, one per line; `-` is standard input' -r -F
complete -c claw-replay -n "__fish_claw_replay_using_subcommand call" -l shard -d 'Divide the transcripts into N parts, and work only on part K' -r -f
complete -c claw-replay -n "__fish_claw_replay_using_subcommand call" -l state -d 'File that keeps the reports, so that the next run does not make them again for unchanged transcripts' -r -F
complete -c claw-replay -n "__fish_claw_replay_using_subcommand call" -l jobs -d 'Number of transcripts to work on at a time (default: the number of processors)' -r -f
complete -c claw-replay -n "__fish_claw_replay_using_subcommand call" -l junit -d 'Also write the results as JUnit XML, which most CI systems read' -r -F
complete -c claw-replay -n "__fish_claw_replay_using_subcommand call" -l markdown -d 'Also write a summary with a table of failures as Markdown, at most 1 MiB' -r -F
complete -c claw-replay -n "__fish_claw_replay_using_subcommand call" -l html -d 'Also write a report for a browser to DIR/index.html, with a page for each failed transcript' -r -f -a "(__fish_complete_directories)"
complete -c claw-replay -n "__fish_claw_replay_using_subcommand call" -l log -d 'Format of the diagnostics on standard error' -r -f -a "text\t'One line of text per diagnostic'
json\t'One JSON object per diagnostic'"
complete -c claw-replay -n "__fish_claw_replay_using_subcommand call" -l config -d 'Configuration file (default: clawutils/config.json in XDG_CONFIG_HOME or ~/.config)' -r -F
complete -c claw-replay -n "__fish_claw_replay_using_subcommand call" -l profile -d 'Profile of the configuration file to use' -r -f
complete -c claw-replay -n "__fish_claw_replay_using_subcommand call" -l update -d 'Make the new replies the expected ones; those that differ are written to a file beside each transcript'
complete -c claw-replay -n "__fish_claw_replay_using_subcommand call" -l batch -d 'Send the requests through the provider\'s batch service, at half the price, and wait for hours; the answers are kept beside the file of --state'
complete -c claw-replay -n "__fish_claw_replay_using_subcommand call" -l resend -d 'Send again what has failed or expired in a batch'
complete -c claw-replay -n "__fish_claw_replay_using_subcommand call" -l stream -d 'Request streamed answers, as a turn with --stream does'
complete -c claw-replay -n "__fish_claw_replay_using_subcommand call" -l insecure-http -d 'Allow plain HTTP to other machines; the key is sent unencrypted'
complete -c claw-replay -n "__fish_claw_replay_using_subcommand call" -l detect-truncation -d 'Treat an answer from Ollama as an overflow if it reports far fewer prompt tokens than estimated'
complete -c claw-replay -n "__fish_claw_replay_using_subcommand call" -s 0 -l null -d 'Paths in the file of --files-from end in a NUL byte instead of a line feed'
complete -c claw-replay -n "__fish_claw_replay_using_subcommand call" -l fail-fast -d 'Stop after the first transcript that fails or is unreadable'
complete -c claw-replay -n "__fish_claw_replay_using_subcommand call" -l strict -d 'Exit with 65 if a file is not a transcript'
complete -c claw-replay -n "__fish_claw_replay_using_subcommand call" -l github -d 'Also write failures as annotations of GitHub Actions, on standard error'
complete -c claw-replay -n "__fish_claw_replay_using_subcommand call" -l quiet -d 'Show no progress and no totals on standard error'
complete -c claw-replay -n "__fish_claw_replay_using_subcommand call" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c claw-replay -n "__fish_claw_replay_using_subcommand diff" -l glob -d 'Pattern for the names of files in directories, or for their paths if it has a slash; may be repeated' -r -f
complete -c claw-replay -n "__fish_claw_replay_using_subcommand diff" -l jobs -d 'Number of transcripts to work on at a time (default: the number of processors)' -r -f
complete -c claw-replay -n "__fish_claw_replay_using_subcommand diff" -l junit -d 'Also write the results as JUnit XML, which most CI systems read' -r -F
complete -c claw-replay -n "__fish_claw_replay_using_subcommand diff" -l markdown -d 'Also write a summary with a table of failures as Markdown, at most 1 MiB' -r -F
complete -c claw-replay -n "__fish_claw_replay_using_subcommand diff" -l html -d 'Also write a report for a browser to DIR/index.html, with a page for each failed transcript' -r -f -a "(__fish_complete_directories)"
complete -c claw-replay -n "__fish_claw_replay_using_subcommand diff" -l log -d 'Format of the diagnostics on standard error' -r -f -a "text\t'One line of text per diagnostic'
json\t'One JSON object per diagnostic'"
complete -c claw-replay -n "__fish_claw_replay_using_subcommand diff" -l config -d 'Configuration file (default: clawutils/config.json in XDG_CONFIG_HOME or ~/.config)' -r -F
complete -c claw-replay -n "__fish_claw_replay_using_subcommand diff" -l profile -d 'Profile of the configuration file to use' -r -f
complete -c claw-replay -n "__fish_claw_replay_using_subcommand diff" -l fail-fast -d 'Stop after the first transcript that fails or is unreadable'
complete -c claw-replay -n "__fish_claw_replay_using_subcommand diff" -l strict -d 'Exit with 65 if a file is not a transcript'
complete -c claw-replay -n "__fish_claw_replay_using_subcommand diff" -l github -d 'Also write failures as annotations of GitHub Actions, on standard error'
complete -c claw-replay -n "__fish_claw_replay_using_subcommand diff" -l quiet -d 'Show no progress and no totals on standard error'
complete -c claw-replay -n "__fish_claw_replay_using_subcommand diff" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c claw-replay -n "__fish_claw_replay_using_subcommand merge" -l junit -d 'Also write the results as JUnit XML, which most CI systems read' -r -F
complete -c claw-replay -n "__fish_claw_replay_using_subcommand merge" -l markdown -d 'Also write a summary with a table of failures as Markdown, at most 1 MiB' -r -F
complete -c claw-replay -n "__fish_claw_replay_using_subcommand merge" -l html -d 'Also write a report for a browser to DIR/index.html, with a page for each failed transcript' -r -f -a "(__fish_complete_directories)"
complete -c claw-replay -n "__fish_claw_replay_using_subcommand merge" -l log -d 'Format of the diagnostics on standard error' -r -f -a "text\t'One line of text per diagnostic'
json\t'One JSON object per diagnostic'"
complete -c claw-replay -n "__fish_claw_replay_using_subcommand merge" -l config -d 'Configuration file (default: clawutils/config.json in XDG_CONFIG_HOME or ~/.config)' -r -F
complete -c claw-replay -n "__fish_claw_replay_using_subcommand merge" -l profile -d 'Profile of the configuration file to use' -r -f
complete -c claw-replay -n "__fish_claw_replay_using_subcommand merge" -l strict -d 'Exit with 65 if a file is not a transcript'
complete -c claw-replay -n "__fish_claw_replay_using_subcommand merge" -l github -d 'Also write failures as annotations of GitHub Actions, on standard error'
complete -c claw-replay -n "__fish_claw_replay_using_subcommand merge" -l quiet -d 'Show no progress and no totals on standard error'
complete -c claw-replay -n "__fish_claw_replay_using_subcommand merge" -s h -l help -d 'Print help (see more with \'--help\')'
