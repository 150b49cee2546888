# Completion of claw-turn. `make completions` writes this file.

complete -c claw-turn -s m -l message -d 'Take the prompt from the command line instead of standard input' -r -f
complete -c claw-turn -l attach -d 'File to send with the prompt: an image, a PDF document or text; may be repeated' -r -F
complete -c claw-turn -l provider -d 'Provider to call (default: the one whose key is in the environment, else anthropic)' -r -f -a "anthropic\t'The Anthropic Messages API'
openai\t'Chat completions: OpenAI, OpenRouter, LiteLLM, vLLM, llama.cpp'
gemini\t'Google\'s Gemini, also on Vertex AI'
ollama\t'Ollama\'s own API'
offline\t'Built into the program, without network or key; its window is 200000 tokens by default'"
complete -c claw-turn -l model -d 'Name of the model (default: MODEL_ID, else the provider\'s default model)' -r -f
complete -c claw-turn -l base-url -d 'Address of the provider (default: ANTHROPIC_BASE_URL, OPENAI_BASE_URL, GEMINI_BASE_URL or OLLAMA_HOST)' -r -f
complete -c claw-turn -l models -d 'File of models to look up before the built-in table' -r -F
complete -c claw-turn -l key-file -d 'File with the API key, readable only by its owner' -r -F
complete -c claw-turn -l key-cmd -d 'Shell command that prints the API key' -r -f -a "(__fish_complete_command)"
complete -c claw-turn -l ca -d 'PEM file of certificates to trust in addition to the system\'s' -r -F
complete -c claw-turn -l api -d 'API of OpenAI\'s servers; auto takes Responses where a model needs it' -r -f -a "auto\t'Responses on OpenAI\'s and Azure\'s servers for models that need it, else chat completions'
chat\t'Chat completions, which most servers know'
responses\t'The Responses API'"
complete -c claw-turn -l max-tokens-field -d 'Name of the field that limits the answer in chat completions' -r -f -a "auto\t'Choose by model; max_completion_tokens for OpenAI itself'
max_tokens\t'The older name, which most servers know'
max_completion_tokens\t'The newer name, which OpenAI\'s newer models require'"
complete -c claw-turn -l beta -d 'Anthropic beta feature to request; may be repeated' -r -f
complete -c claw-turn -l system -d 'File with the system prompt' -r -F
complete -c claw-turn -l tools -d 'File with a JSON array of tool definitions, or directory of tools' -r -F
complete -c claw-turn -l extra -d 'JSON object with further members of the request body, or a file with one' -r -F
complete -c claw-turn -l temperature -d 'Sampling temperature, from 0 to 2' -r -f
complete -c claw-turn -l effort -d 'How much the model thinks before it answers' -r -f -a "none\t'No thinking'
minimal\t'As little as possible'
low\t'Little'
medium\t'Some'
high\t'Much'
xhigh\t'Very much'
max\t'As much as possible'"
complete -c claw-turn -l thinking-budget -d 'The most tokens that the model thinks before it answers' -r -f
complete -c claw-turn -l cache -d 'Use of the provider\'s prompt cache' -r -f -a "auto\t'Use the provider\'s prompt cache, with its default lifetime'
off\t'Ask for no cache'
1h\t'Use the cache with the longer lifetime, an hour at Anthropic, for which writing costs more'"
complete -c claw-turn -l window -d 'Context window in tokens, prompt and answer together (default: from the table of models)' -r -f
complete -c claw-turn -l max-tokens -d 'Maximum length of the answer in tokens (default: 8096, at most a quarter of the window)' -r -f
complete -c claw-turn -l reserve -d 'Tokens to keep free; a conversation that would use them is compacted first (default: 30000, at most 15 % of the window)' -r -f
complete -c claw-turn -l limit-turns -d 'Keep only the last N turns' -r -f
complete -c claw-turn -l compact-when -d 'When a conversation is compacted ahead of an overflow' -r -f -a "window\t'When the window less the reserve is full'
cost\t'Also when reading the old part again has cost as much as a summary and a new prefix'"
complete -c claw-turn -l max-rounds -d 'Maximum number of rounds of tool calls in a turn' -r -f
complete -c claw-turn -l fallback -d 'Source of the summary if no model makes one (default: local, then --emergency)' -r -f -a "local\t'Extract the summary from the messages, without a model'"
complete -c claw-turn -l via -d 'Source of summaries: PROVIDER:MODEL, main for the conversation\'s model, or provider for its server\'s own; may be repeated' -r -f
complete -c claw-turn -l ollama-model -d 'Ollama model to ask first for summaries, unless --via is given' -r -f
complete -c claw-turn -l ollama-url -d 'Address of the server of --ollama-model (default: OLLAMA_HOST)' -r -f
complete -c claw-turn -l ollama-timeout -d 'Longest wait for an answer from --ollama-model, in seconds' -r -f
complete -c claw-turn -l ollama-window -d 'Context window of --ollama-model, in tokens' -r -f
complete -c claw-turn -l max-failures -d 'Skip a summary model after N failures in a row, but never the conversation\'s model; 0 skips none' -r -f
complete -c claw-turn -l failure-reset -d 'Time for which a model that reached --max-failures is skipped, in minutes' -r -f
complete -c claw-turn -l retry-interval -d 'Pause before a missing summary is tried again, in seconds; doubles after each failure' -r -f
complete -c claw-turn -l checkpoint-percents -d 'Percentages of the window at which a checkpoint becomes due' -r -f
complete -c claw-turn -l checkpoint-turns -d 'Number of turns after which a checkpoint becomes due; 0 for never' -r -f
complete -c claw-turn -l checkpoint-min-tokens -d 'Smallest request for which a checkpoint becomes due, in tokens' -r -f
complete -c claw-turn -l allow -d 'Allow this tool; others are refused or, with --ask, need a confirmation; may be repeated' -r -f
complete -c claw-turn -l deny -d 'Never run this tool; may be repeated' -r -f
complete -c claw-turn -l pass-env -d 'Pass this variable to tools even if it looks like a credential; may be repeated' -r -f
complete -c claw-turn -l jobs -d 'Maximum number of tool calls to run at a time (default: the number of processors)' -r -f
complete -c claw-turn -l exec-timeout -d 'Time limit for each tool call, in seconds' -r -f
complete -c claw-turn -l call -d 'Command that calls the model' -r -f -a "(__fish_complete_command)"
complete -c claw-turn -l timeout -d 'Longest wait for the answer to begin, and for each piece of it, in seconds' -r -f
complete -c claw-turn -l max-retries -d 'Maximum number of retries when the provider is busy, broken or unreachable' -r -f
complete -c claw-turn -l max-wait -d 'Longest wait to accept if the provider asks for one, in seconds' -r -f
complete -c claw-turn -l prices -d 'File of prices, one model per line, which wins over the table of models; the cost of each reply is reported' -r -F
complete -c claw-turn -l max-total -d 'Refuse a call that would take the session above this many tokens' -r -f
complete -c claw-turn -l max-cost -d 'Refuse a call that would take the session above this cost' -r -f
complete -c claw-turn -l record -d 'Record each exchange with the provider in directory DIR' -r -f -a "(for word in (commandline -opc)[2..]; claw-session history --ids -n 1000 -- $word 2>/dev/null; and break; end)"
complete -c claw-turn -l replay -d 'Answer from the recordings in directory DIR, without a network connection' -r -f -a "(__fish_complete_directories)"
complete -c claw-turn -l failures -d 'File with further rows for the failure table' -r -F
complete -c claw-turn -l workspace -d 'Workspace: the directory that holds the sessions and in which tools run' -r -f -a "(__fish_complete_directories)"
complete -c claw-turn -l agent -d 'Agent that the sessions belong to' -r -f
complete -c claw-turn -l store -d 'Keep the index that claw-index queries up to date (sqlite), or keep only transcripts (jsonl)' -r -f -a "jsonl\t'Only transcripts'
sqlite\t'Transcripts, and an index of them in a SQLite database'"
complete -c claw-turn -l store-path -l db -d 'Database of the index (default: index.db beside the sessions of the workspace)' -r -F
complete -c claw-turn -l reset -d 'Begin a new session every day at this local time: daily@HH:MM' -r -f
complete -c claw-turn -l idle -d 'Begin a new session after this many minutes without a prompt' -r -f
complete -c claw-turn -l lock-timeout -d 'Longest wait for another turn on the same transcript, in seconds' -r -f
complete -c claw-turn -l log -d 'Format of the diagnostics on standard error' -r -f -a "text\t'One line of text per diagnostic'
json\t'One JSON object per diagnostic'"
complete -c claw-turn -l config -d 'Configuration file (default: clawutils/config.json in XDG_CONFIG_HOME or ~/.config)' -r -F
complete -c claw-turn -l profile -d 'Profile of the configuration file to use' -r -f
complete -c claw-turn -s c -l continue -d 'Run the turn in the current session'
complete -c claw-turn -l again -d 'Continue a turn that failed, without a new prompt'
complete -c claw-turn -l dry-run -d 'Print the commands that the turn would run, without running them'
complete -c claw-turn -l stream -d 'Write the reply\'s text as it arrives'
complete -c claw-turn -l markdown -d 'Render the reply\'s Markdown for a terminal, as claw-show --markdown does'
complete -c claw-turn -l cost -d 'Report the tokens and the cost of the turn after it'
complete -c claw-turn -l insecure-http -d 'Allow plain HTTP to other machines; the key is sent unencrypted'
complete -c claw-turn -l no-proactive -d 'Do not compact ahead of an overflow'
complete -c claw-turn -l no-ask-window -d 'Do not ask the provider for the window of the model'
complete -c claw-turn -l no-guard -d 'After a refusal, do not make the request smaller or cleaner'
complete -c claw-turn -l no-retry -d 'Do not make missing summaries after the reply'
complete -c claw-turn -l no-prefer-checkpoint -d 'Do not use a checkpoint as the summary, even if it covers half of the request or more'
complete -c claw-turn -l no-fallback -d 'Fail if no model makes a summary, instead of making one without a model'
complete -c claw-turn -l emergency -d 'If no source gives a summary, keep the newest fifth of the messages and mark the summary as missing'
complete -c claw-turn -l no-checkpoint -d 'Do not make checkpoints automatically'
complete -c claw-turn -l ask -d 'Ask on the terminal before running a tool that --allow does not name'
complete -c claw-turn -l detect-truncation -d 'Treat an answer from Ollama as an overflow if it reports far fewer prompt tokens than estimated'
complete -c claw-turn -s h -l help -d 'Print help (see more with \'--help\')'
complete -c claw-turn -s V -l version -d 'Print version'
complete -c claw-turn -a "(claw-session list --names 2>/dev/null)"
