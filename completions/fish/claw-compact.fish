# Completion of claw-compact. `make completions` writes this file.

complete -c claw-compact -l system -d 'File with the system prompt' -r -F
complete -c claw-compact -l tools -d 'File with a JSON array of tool definitions, or directory of tools' -r -F
complete -c claw-compact -l provider -d 'Provider to call (default: the one whose key is in the environment, else anthropic)' -r -f -a "anthropic\t'The Anthropic Messages API'
openai\t'Chat completions: OpenAI, OpenRouter, LiteLLM, vLLM, llama.cpp'
gemini\t'Google\'s Gemini, also on Vertex AI'
ollama\t'Ollama\'s own API'
offline\t'Built into the program, without network or key; its window is 200000 tokens by default'"
complete -c claw-compact -l model -d 'Name of the model (default: MODEL_ID, else the provider\'s default model)' -r -f
complete -c claw-compact -l base-url -d 'Address of the provider (default: ANTHROPIC_BASE_URL, OPENAI_BASE_URL, GEMINI_BASE_URL or OLLAMA_HOST)' -r -f
complete -c claw-compact -l models -d 'File of models to look up before the built-in table' -r -F
complete -c claw-compact -l window -d 'Context window in tokens, prompt and answer together (default: from the table of models)' -r -f
complete -c claw-compact -l max-tokens -d 'Maximum length of the answer in tokens (default: 8096, at most a quarter of the window)' -r -f
complete -c claw-compact -l reserve -d 'Tokens to keep free; a conversation that would use them is compacted first (default: 30000, at most 15 % of the window)' -r -f
complete -c claw-compact -l failure -d 'File with the error record of the refused request' -r -F
complete -c claw-compact -l summary -d 'Take the summary from FILE instead of a model' -r -F
complete -c claw-compact -l fallback -d 'Source of the summary if no model makes one (default: local, then --emergency)' -r -f -a "local\t'Extract the summary from the messages, without a model'"
complete -c claw-compact -l via -d 'Source of summaries: PROVIDER:MODEL, main for the conversation\'s model, or provider for its server\'s own; may be repeated' -r -f
complete -c claw-compact -l ollama-model -d 'Ollama model to ask first for summaries, unless --via is given' -r -f
complete -c claw-compact -l ollama-url -d 'Address of the server of --ollama-model (default: OLLAMA_HOST)' -r -f
complete -c claw-compact -l ollama-timeout -d 'Longest wait for an answer from --ollama-model, in seconds' -r -f
complete -c claw-compact -l ollama-window -d 'Context window of --ollama-model, in tokens' -r -f
complete -c claw-compact -l max-failures -d 'Skip a summary model after N failures in a row, but never the conversation\'s model; 0 skips none' -r -f
complete -c claw-compact -l failure-reset -d 'Time for which a model that reached --max-failures is skipped, in minutes' -r -f
complete -c claw-compact -l call -d 'Command that calls the model' -r -f -a "(__fish_complete_command)"
complete -c claw-compact -l retry-interval -d 'Pause before a missing summary is tried again, in seconds; doubles after each failure' -r -f
complete -c claw-compact -l prompt -d 'Use the prompt in FILE instead of the built-in one' -r -F
complete -c claw-compact -l focus -d 'Focus the summary on TEXT' -r -f
complete -c claw-compact -l keep-user -d 'Keep at most this many tokens of the user\'s words verbatim, and at most a quarter of the budget' -r -f
complete -c claw-compact -l keep-tokens -d 'Keep the newest messages that together have at least this many tokens, instead of the newest half' -r -f
complete -c claw-compact -l max-calls -d 'Make at most N calls, over all models; 0 calls no model' -r -f
complete -c claw-compact -l deadline -d 'Time limit for all calls together, in seconds' -r -f
complete -c claw-compact -l log -d 'Format of the diagnostics on standard error' -r -f -a "text\t'One line of text per diagnostic'
json\t'One JSON object per diagnostic'"
complete -c claw-compact -l config -d 'Configuration file (default: clawutils/config.json in XDG_CONFIG_HOME or ~/.config)' -r -F
complete -c claw-compact -l profile -d 'Profile of the configuration file to use' -r -f
complete -c claw-compact -l record -d 'Write a compaction record instead of messages'
complete -c claw-compact -l plan -d 'Write the request for the summary, as messages, without calling a model'
complete -c claw-compact -l show -d 'Write what would be covered, kept and requested as one JSON object, without calling a model'
complete -c claw-compact -l retry -d 'Read transcripts and make their missing summaries'
complete -c claw-compact -l no-prefer-checkpoint -d 'Do not use a checkpoint as the summary, even if it covers half of the request or more'
complete -c claw-compact -l no-fallback -d 'Fail if no model makes a summary, instead of making one without a model'
complete -c claw-compact -l emergency -d 'If no source gives a summary, keep the newest fifth of the messages and mark the summary as missing'
complete -c claw-compact -l for-cost -d 'Cut because that costs less than to go on: keep the newest 20000 tokens or a tenth of the window, and say so in the record'
complete -c claw-compact -l classic -d 'Choose the cut by the number of messages alone, as claw0 does'
complete -c claw-compact -s h -l help -d 'Print help (see more with \'--help\')'
complete -c claw-compact -s V -l version -d 'Print version'
