# Completion of claw-checkpoint. `make completions` writes this file.

complete -c claw-checkpoint -l via -d 'Source of summaries: PROVIDER:MODEL, main for the conversation\'s model, or provider for its server\'s own; may be repeated' -r -f
complete -c claw-checkpoint -l ollama-model -d 'Ollama model to ask first for summaries, unless --via is given' -r -f
complete -c claw-checkpoint -l ollama-url -d 'Address of the server of --ollama-model (default: OLLAMA_HOST)' -r -f
complete -c claw-checkpoint -l ollama-timeout -d 'Longest wait for an answer from --ollama-model, in seconds' -r -f
complete -c claw-checkpoint -l ollama-window -d 'Context window of --ollama-model, in tokens' -r -f
complete -c claw-checkpoint -l max-failures -d 'Skip a summary model after N failures in a row, but never the conversation\'s model; 0 skips none' -r -f
complete -c claw-checkpoint -l failure-reset -d 'Time for which a model that reached --max-failures is skipped, in minutes' -r -f
complete -c claw-checkpoint -l call -d 'Command that calls the model' -r -f -a "(__fish_complete_command)"
complete -c claw-checkpoint -l deadline -d 'Time limit for all calls together, in seconds' -r -f
complete -c claw-checkpoint -l prompt -d 'Use the prompt in FILE instead of the built-in one' -r -F
complete -c claw-checkpoint -l system -d 'File with the system prompt' -r -F
complete -c claw-checkpoint -l tools -d 'File with a JSON array of tool definitions, or directory of tools' -r -F
complete -c claw-checkpoint -l provider -d 'Provider to call (default: the one whose key is in the environment, else anthropic)' -r -f -a "anthropic\t'The Anthropic Messages API'
openai\t'Chat completions: OpenAI, OpenRouter, LiteLLM, vLLM, llama.cpp'
gemini\t'Google\'s Gemini, also on Vertex AI'
ollama\t'Ollama\'s own API'
offline\t'Built into the program, without network or key; its window is 200000 tokens by default'"
complete -c claw-checkpoint -l model -d 'Name of the model (default: MODEL_ID, else the provider\'s default model)' -r -f
complete -c claw-checkpoint -l base-url -d 'Address of the provider (default: ANTHROPIC_BASE_URL, OPENAI_BASE_URL, GEMINI_BASE_URL or OLLAMA_HOST)' -r -f
complete -c claw-checkpoint -l models -d 'File of models to look up before the built-in table' -r -F
complete -c claw-checkpoint -l window -d 'Context window in tokens, prompt and answer together (default: from the table of models)' -r -f
complete -c claw-checkpoint -l max-tokens -d 'Maximum length of the answer in tokens (default: 8096, at most a quarter of the window)' -r -f
complete -c claw-checkpoint -l reserve -d 'Tokens to keep free; a conversation that would use them is compacted first (default: 30000, at most 15 % of the window)' -r -f
complete -c claw-checkpoint -l log -d 'Format of the diagnostics on standard error' -r -f -a "text\t'One line of text per diagnostic'
json\t'One JSON object per diagnostic'"
complete -c claw-checkpoint -l config -d 'Configuration file (default: clawutils/config.json in XDG_CONFIG_HOME or ~/.config)' -r -F
complete -c claw-checkpoint -l profile -d 'Profile of the configuration file to use' -r -f
complete -c claw-checkpoint -l checkpoint-percents -l percents -d 'Percentages of the window at which a checkpoint becomes due' -r -f
complete -c claw-checkpoint -l checkpoint-turns -l turns -d 'Number of turns after which a checkpoint becomes due; 0 for never' -r -f
complete -c claw-checkpoint -l checkpoint-min-tokens -l min-tokens -d 'Smallest request for which a checkpoint becomes due, in tokens' -r -f
complete -c claw-checkpoint -l if-due -d 'Make a checkpoint only if one is due'
complete -c claw-checkpoint -l no-checkpoint -d 'Do not make checkpoints automatically'
complete -c claw-checkpoint -s h -l help -d 'Print help (see more with \'--help\')'
complete -c claw-checkpoint -s V -l version -d 'Print version'
