# Completion of claw-truncate. `make completions` writes this file.

complete -c claw-truncate -l system -d 'File with the system prompt' -r -F
complete -c claw-truncate -l tools -d 'File with a JSON array of tool definitions, or directory of tools' -r -F
complete -c claw-truncate -l provider -d 'Provider to call (default: the one whose key is in the environment, else anthropic)' -r -f -a "anthropic\t'The Anthropic Messages API'
openai\t'Chat completions: OpenAI, OpenRouter, LiteLLM, vLLM, llama.cpp'
gemini\t'Google\'s Gemini, also on Vertex AI'
ollama\t'Ollama\'s own API'
offline\t'Built into the program, without network or key; its window is 200000 tokens by default'"
complete -c claw-truncate -l model -d 'Name of the model (default: MODEL_ID, else the provider\'s default model)' -r -f
complete -c claw-truncate -l base-url -d 'Address of the provider (default: ANTHROPIC_BASE_URL, OPENAI_BASE_URL, GEMINI_BASE_URL or OLLAMA_HOST)' -r -f
complete -c claw-truncate -l models -d 'File of models to look up before the built-in table' -r -F
complete -c claw-truncate -l window -d 'Context window in tokens, prompt and answer together (default: from the table of models)' -r -f
complete -c claw-truncate -l max-tokens -d 'Maximum length of the answer in tokens (default: 8096, at most a quarter of the window)' -r -f
complete -c claw-truncate -l reserve -d 'Tokens to keep free; a conversation that would use them is compacted first (default: 30000, at most 15 % of the window)' -r -f
complete -c claw-truncate -l failure -d 'File with the error record of the refused request' -r -F
complete -c claw-truncate -l max-fraction -d 'Share of the window that one result may take, from 0 to 1, at 4 characters per token' -r -f
complete -c claw-truncate -l head-ratio -d 'Share of the kept text that comes from the beginning, from 0 to 1' -r -f
complete -c claw-truncate -l floor -d 'Shorten no result below about this many characters to fit the budget (default: a tenth of the limit for one result, at least 200 and at most 2000)' -r -f
complete -c claw-truncate -l min-gain -d 'Do nothing unless it saves at least this many tokens' -r -f
complete -c claw-truncate -l cache -d 'Use of the provider\'s prompt cache' -r -f -a "auto\t'Use the provider\'s prompt cache, with its default lifetime'
off\t'Ask for no cache'
1h\t'Use the cache with the longer lifetime, an hour at Anthropic, for which writing costs more'"
complete -c claw-truncate -l log -d 'Format of the diagnostics on standard error' -r -f -a "text\t'One line of text per diagnostic'
json\t'One JSON object per diagnostic'"
complete -c claw-truncate -l config -d 'Configuration file (default: clawutils/config.json in XDG_CONFIG_HOME or ~/.config)' -r -F
complete -c claw-truncate -l profile -d 'Profile of the configuration file to use' -r -f
complete -c claw-truncate -l if-cold -d 'Do nothing unless the prompt cache has expired since the last reply, and then shorten the results of older ones'
complete -c claw-truncate -l record -d 'Write truncation and omission records for claw-append instead of messages'
complete -c claw-truncate -s h -l help -d 'Print help (see more with \'--help\')'
complete -c claw-truncate -s V -l version -d 'Print version'
