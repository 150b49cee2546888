# Completion of claw-retry. `make completions` writes this file.

complete -c claw-retry -l every -d 'Repeat until stopped, with this pause in seconds (default: --retry-interval)' -r -f
complete -c claw-retry -l max-calls -d 'Maximum number of calls for one summary' -r -f
complete -c claw-retry -l deadline -d 'Time limit for one summary, in seconds' -r -f
complete -c claw-retry -l provider -d 'Provider to call (default: the one whose key is in the environment, else anthropic)' -r -f -a "anthropic\t'The Anthropic Messages API'
openai\t'Chat completions: OpenAI, OpenRouter, LiteLLM, vLLM, llama.cpp'
gemini\t'Google\'s Gemini, also on Vertex AI'
ollama\t'Ollama\'s own API'
offline\t'Built into the program, without network or key; its window is 200000 tokens by default'"
complete -c claw-retry -l model -d 'Name of the model (default: MODEL_ID, else the provider\'s default model)' -r -f
complete -c claw-retry -l base-url -d 'Address of the provider (default: ANTHROPIC_BASE_URL, OPENAI_BASE_URL, GEMINI_BASE_URL or OLLAMA_HOST)' -r -f
complete -c claw-retry -l models -d 'File of models to look up before the built-in table' -r -F
complete -c claw-retry -l key-file -d 'File with the API key, readable only by its owner' -r -F
complete -c claw-retry -l key-cmd -d 'Shell command that prints the API key' -r -f -a "(__fish_complete_command)"
complete -c claw-retry -l ca -d 'PEM file of certificates to trust in addition to the system\'s' -r -F
complete -c claw-retry -l api -d 'API of OpenAI\'s servers; auto takes Responses where a model needs it' -r -f -a "auto\t'Responses on OpenAI\'s and Azure\'s servers for models that need it, else chat completions'
chat\t'Chat completions, which most servers know'
responses\t'The Responses API'"
complete -c claw-retry -l max-tokens-field -d 'Name of the field that limits the answer in chat completions' -r -f -a "auto\t'Choose by model; max_completion_tokens for OpenAI itself'
max_tokens\t'The older name, which most servers know'
max_completion_tokens\t'The newer name, which OpenAI\'s newer models require'"
complete -c claw-retry -l beta -d 'Anthropic beta feature to request; may be repeated' -r -f
complete -c claw-retry -l system -d 'File with the system prompt' -r -F
complete -c claw-retry -l tools -d 'File with a JSON array of tool definitions, or directory of tools' -r -F
complete -c claw-retry -l extra -d 'JSON object with further members of the request body, or a file with one' -r -F
complete -c claw-retry -l temperature -d 'Sampling temperature, from 0 to 2' -r -f
complete -c claw-retry -l effort -d 'How much the model thinks before it answers' -r -f -a "none\t'No thinking'
minimal\t'As little as possible'
low\t'Little'
medium\t'Some'
high\t'Much'
xhigh\t'Very much'
max\t'As much as possible'"
complete -c claw-retry -l thinking-budget -d 'The most tokens that the model thinks before it answers' -r -f
complete -c claw-retry -l cache -d 'Use of the provider\'s prompt cache' -r -f -a "auto\t'Use the provider\'s prompt cache, with its default lifetime'
off\t'Ask for no cache'
1h\t'Use the cache with the longer lifetime, an hour at Anthropic, for which writing costs more'"
complete -c claw-retry -l window -d 'Context window in tokens, prompt and answer together (default: from the table of models)' -r -f
complete -c claw-retry -l max-tokens -d 'Maximum length of the answer in tokens (default: 8096, at most a quarter of the window)' -r -f
complete -c claw-retry -l reserve -d 'Tokens to keep free; a conversation that would use them is compacted first (default: 30000, at most 15 % of the window)' -r -f
complete -c claw-retry -l via -d 'Source of summaries: PROVIDER:MODEL, main for the conversation\'s model, or provider for its server\'s own; may be repeated' -r -f
complete -c claw-retry -l ollama-model -d 'Ollama model to ask first for summaries, unless --via is given' -r -f
complete -c claw-retry -l ollama-url -d 'Address of the server of --ollama-model (default: OLLAMA_HOST)' -r -f
complete -c claw-retry -l ollama-timeout -d 'Longest wait for an answer from --ollama-model, in seconds' -r -f
complete -c claw-retry -l ollama-window -d 'Context window of --ollama-model, in tokens' -r -f
complete -c claw-retry -l max-failures -d 'Skip a summary model after N failures in a row, but never the conversation\'s model; 0 skips none' -r -f
complete -c claw-retry -l failure-reset -d 'Time for which a model that reached --max-failures is skipped, in minutes' -r -f
complete -c claw-retry -l retry-interval -d 'Pause before a missing summary is tried again, in seconds; doubles after each failure' -r -f
complete -c claw-retry -l call -d 'Command that calls the model' -r -f -a "(__fish_complete_command)"
complete -c claw-retry -l timeout -d 'Longest wait for the answer to begin, and for each piece of it, in seconds' -r -f
complete -c claw-retry -l max-retries -d 'Maximum number of retries when the provider is busy, broken or unreachable' -r -f
complete -c claw-retry -l max-wait -d 'Longest wait to accept if the provider asks for one, in seconds' -r -f
complete -c claw-retry -l record -d 'Record each exchange with the provider in directory DIR' -r -f -a "(for word in (commandline -opc)[2..]; claw-session history --ids -n 1000 -- $word 2>/dev/null; and break; end)"
complete -c claw-retry -l replay -d 'Answer from the recordings in directory DIR, without a network connection' -r -f -a "(__fish_complete_directories)"
complete -c claw-retry -l failures -d 'File with further rows for the failure table' -r -F
complete -c claw-retry -l workspace -d 'Workspace: the directory that holds the sessions and in which tools run' -r -f -a "(__fish_complete_directories)"
complete -c claw-retry -l agent -d 'Agent that the sessions belong to' -r -f
complete -c claw-retry -l store -d 'Keep the index that claw-index queries up to date (sqlite), or keep only transcripts (jsonl)' -r -f -a "jsonl\t'Only transcripts'
sqlite\t'Transcripts, and an index of them in a SQLite database'"
complete -c claw-retry -l store-path -l db -d 'Database of the index (default: index.db beside the sessions of the workspace)' -r -F
complete -c claw-retry -l log -d 'Format of the diagnostics on standard error' -r -f -a "text\t'One line of text per diagnostic'
json\t'One JSON object per diagnostic'"
complete -c claw-retry -l config -d 'Configuration file (default: clawutils/config.json in XDG_CONFIG_HOME or ~/.config)' -r -F
complete -c claw-retry -l profile -d 'Profile of the configuration file to use' -r -f
complete -c claw-retry -l insecure-http -d 'Allow plain HTTP to other machines; the key is sent unencrypted'
complete -c claw-retry -l detect-truncation -d 'Treat an answer from Ollama as an overflow if it reports far fewer prompt tokens than estimated'
complete -c claw-retry -s h -l help -d 'Print help (see more with \'--help\')'
complete -c claw-retry -s V -l version -d 'Print version'
complete -c claw-retry -a "(claw-session list --names 2>/dev/null)"
