# Completion of claw-estimate. `make completions` writes this file.

complete -c claw-estimate -l from -d 'Read transcripts of another program as DIALECT (default: from their content)' -r -f -a "pi\t'Sessions of pi, OpenClaw and GoClaw'
claude-code\t'Project files of Claude Code'
codex\t'Rollout files of Codex CLI'
openai\t'Messages for OpenAI\'s API or a compatible one'
gemini\t'Contents for Gemini\'s API'
gemini-cli\t'Chats of Gemini CLI'
copilot\t'Sessions of GitHub Copilot CLI'"
complete -c claw-estimate -l leaf -d 'In a transcript of another program that has branches, read the branch that ends with record ID' -r -f
complete -c claw-estimate -l system -d 'File with the system prompt' -r -F
complete -c claw-estimate -l tools -d 'File with a JSON array of tool definitions, or directory of tools' -r -F
complete -c claw-estimate -l provider -d 'Provider to call (default: the one whose key is in the environment, else anthropic)' -r -f -a "anthropic\t'The Anthropic Messages API'
openai\t'Chat completions: OpenAI, OpenRouter, LiteLLM, vLLM, llama.cpp'
gemini\t'Google\'s Gemini, also on Vertex AI'
ollama\t'Ollama\'s own API'
offline\t'Built into the program, without network or key; its window is 200000 tokens by default'"
complete -c claw-estimate -l model -d 'Name of the model (default: MODEL_ID, else the provider\'s default model)' -r -f
complete -c claw-estimate -l base-url -d 'Address of the provider (default: ANTHROPIC_BASE_URL, OPENAI_BASE_URL, GEMINI_BASE_URL or OLLAMA_HOST)' -r -f
complete -c claw-estimate -l models -d 'File of models to look up before the built-in table' -r -F
complete -c claw-estimate -l window -d 'Context window in tokens, prompt and answer together (default: from the table of models)' -r -f
complete -c claw-estimate -l max-tokens -d 'Maximum length of the answer in tokens (default: 8096, at most a quarter of the window)' -r -f
complete -c claw-estimate -l reserve -d 'Tokens to keep free; a conversation that would use them is compacted first (default: 30000, at most 15 % of the window)' -r -f
complete -c claw-estimate -l prices -d 'File of prices, one model per line, which wins over the table of models' -r -F
complete -c claw-estimate -l compact-when -d 'When a conversation is compacted ahead of an overflow' -r -f -a "window\t'When the window less the reserve is full'
cost\t'Also when reading the old part again has cost as much as a summary and a new prefix'"
complete -c claw-estimate -l cache -d 'Use of the provider\'s prompt cache' -r -f -a "auto\t'Use the provider\'s prompt cache, with its default lifetime'
off\t'Ask for no cache'
1h\t'Use the cache with the longer lifetime, an hour at Anthropic, for which writing costs more'"
complete -c claw-estimate -l method -d 'Method of estimating text' -r -f -a "script\t'By the kind of text and the model\'s tokenizer family'
chars4\t'As claw0 does: characters divided by four, block by block. For comparison only'
exact\t'With the model\'s own tokenizer'"
complete -c claw-estimate -l count -d 'Source of the count: this program or the provider' -r -f -a "local\t'This program, by its own rules'
api\t'The provider, asked through claw-call'"
complete -c claw-estimate -l call -d 'Command that calls the model' -r -f -a "(__fish_complete_command)"
complete -c claw-estimate -l log -d 'Format of the diagnostics on standard error' -r -f -a "text\t'One line of text per diagnostic'
json\t'One JSON object per diagnostic'"
complete -c claw-estimate -l config -d 'Configuration file (default: clawutils/config.json in XDG_CONFIG_HOME or ~/.config)' -r -F
complete -c claw-estimate -l profile -d 'Profile of the configuration file to use' -r -f
complete -c claw-estimate -l json -d 'Write a breakdown as one JSON object'
complete -c claw-estimate -l bar -d 'Write a bar that shows how full the context window is'
complete -c claw-estimate -l parts -d 'Also list tokens by part, one per line, then the largest records'
complete -c claw-estimate -l check -d 'Exit with 3 if the estimate reaches the window less the reserve, with 4 if the request has too many bytes, and with 5 if a cut pays'
complete -c claw-estimate -l calibrate -d 'Write a table of models with a factor for each model that has counts in a transcript'
complete -c claw-estimate -s h -l help -d 'Print help (see more with \'--help\')'
complete -c claw-estimate -s V -l version -d 'Print version'
