# Completion of claw-call. `make completions` writes this file.

complete -c claw-call -l system -d 'File with the system prompt' -r -F
complete -c claw-call -l tools -d 'File with a JSON array of tool definitions, or directory of tools' -r -F
complete -c claw-call -l provider -d 'Provider to call (default: the one whose key is in the environment, else anthropic)' -r -f -a "anthropic\t'The Anthropic Messages API'
openai\t'Chat completions: OpenAI, OpenRouter, LiteLLM, vLLM, llama.cpp'
gemini\t'Google\'s Gemini, also on Vertex AI'
ollama\t'Ollama\'s own API'
offline\t'Built into the program, without network or key; its window is 200000 tokens by default'"
complete -c claw-call -l model -d 'Name of the model (default: MODEL_ID, else the provider\'s default model)' -r -f
complete -c claw-call -l base-url -d 'Address of the provider (default: ANTHROPIC_BASE_URL, OPENAI_BASE_URL, GEMINI_BASE_URL or OLLAMA_HOST)' -r -f
complete -c claw-call -l models -d 'File of models to look up before the built-in table' -r -F
complete -c claw-call -l window -d 'Context window in tokens, prompt and answer together (default: from the table of models)' -r -f
complete -c claw-call -l max-tokens -d 'Maximum length of the answer in tokens (default: 8096, at most a quarter of the window)' -r -f
complete -c claw-call -l extra -d 'JSON object with further members of the request body, or a file with one' -r -F
complete -c claw-call -l temperature -d 'Sampling temperature, from 0 to 2' -r -f
complete -c claw-call -l effort -d 'How much the model thinks before it answers' -r -f -a "none\t'No thinking'
minimal\t'As little as possible'
low\t'Little'
medium\t'Some'
high\t'Much'
xhigh\t'Very much'
max\t'As much as possible'"
complete -c claw-call -l thinking-budget -d 'The most tokens that the model thinks before it answers' -r -f
complete -c claw-call -l cache -d 'Use of the provider\'s prompt cache' -r -f -a "auto\t'Use the provider\'s prompt cache, with its default lifetime'
off\t'Ask for no cache'
1h\t'Use the cache with the longer lifetime, an hour at Anthropic, for which writing costs more'"
complete -c claw-call -l stream -d 'Stream the answer, and show its text as it arrives: on standard error, in FILE, or with - on standard output' -r -F
complete -c claw-call -l reply -d 'Write the records to FILE instead of standard output' -r -F
complete -c claw-call -l batch -d 'Send what --queue has stored in subdirectories of DIR as batches, and wait for the answers' -r -f -a "(__fish_complete_directories)"
complete -c claw-call -l poll -d 'Pause before looking again whether the batches have ended, in seconds' -r -f
complete -c claw-call -l classify -d 'Classify an answer with HTTP status STATUS whose body is the input, without sending anything' -r -f
complete -c claw-call -l failures -d 'File with further rows for the failure table' -r -F
complete -c claw-call -l header -d 'Header of the answer to classify, as \'name: value\'; may be repeated' -r -f
complete -c claw-call -l failure -d 'Write the error record of a failed call to FILE' -r -F
complete -c claw-call -l prices -d 'File of prices, one model per line, which wins over the table of models; the cost of each reply is reported' -r -F
complete -c claw-call -l max-total -d 'Refuse a call that would take the session above this many tokens' -r -f
complete -c claw-call -l max-cost -d 'Refuse a call that would take the session above this cost' -r -f
complete -c claw-call -l spent -d 'Transcript whose calls count towards the limits; may be repeated (default: CLAW_SESSION)' -r -F
complete -c claw-call -l record -d 'Record each exchange with the provider in directory DIR' -r -f -a "(for word in (commandline -opc)[2..]; claw-session history --ids -n 1000 -- $word 2>/dev/null; and break; end)"
complete -c claw-call -l replay -d 'Answer from the recordings in directory DIR, without a network connection' -r -f -a "(__fish_complete_directories)"
complete -c claw-call -l queue -d 'Answer from the recordings in directory DIR, and queue a request that has no answer there for --batch' -r -f -a "(__fish_complete_directories)"
complete -c claw-call -l recording -d 'Begin with recording N of a request that was recorded several times' -r -f
complete -c claw-call -l key-file -d 'File with the API key, readable only by its owner' -r -F
complete -c claw-call -l key-cmd -d 'Shell command that prints the API key' -r -f -a "(__fish_complete_command)"
complete -c claw-call -l ca -d 'PEM file of certificates to trust in addition to the system\'s' -r -F
complete -c claw-call -l api -d 'API of OpenAI\'s servers; auto takes Responses where a model needs it' -r -f -a "auto\t'Responses on OpenAI\'s and Azure\'s servers for models that need it, else chat completions'
chat\t'Chat completions, which most servers know'
responses\t'The Responses API'"
complete -c claw-call -l max-tokens-field -d 'Name of the field that limits the answer in chat completions' -r -f -a "auto\t'Choose by model; max_completion_tokens for OpenAI itself'
max_tokens\t'The older name, which most servers know'
max_completion_tokens\t'The newer name, which OpenAI\'s newer models require'"
complete -c claw-call -l beta -d 'Anthropic beta feature to request; may be repeated' -r -f
complete -c claw-call -l timeout -d 'Longest wait for the answer to begin, and for each piece of it, in seconds' -r -f
complete -c claw-call -l max-retries -d 'Maximum number of retries when the provider is busy, broken or unreachable' -r -f
complete -c claw-call -l max-wait -d 'Longest wait to accept if the provider asks for one, in seconds' -r -f
complete -c claw-call -l deadline -d 'Time limit for the whole call, in seconds, including retries and waits' -r -f
complete -c claw-call -l log -d 'Format of the diagnostics on standard error' -r -f -a "text\t'One line of text per diagnostic'
json\t'One JSON object per diagnostic'"
complete -c claw-call -l config -d 'Configuration file (default: clawutils/config.json in XDG_CONFIG_HOME or ~/.config)' -r -F
complete -c claw-call -l profile -d 'Profile of the configuration file to use' -r -f
complete -c claw-call -l meta -d 'Add a \'call\' member to the reply\'s first record, with the model, the output limit and hashes of the request'
complete -c claw-call -l dry-run -d 'Write the request body and report the address and headers, but send nothing'
complete -c claw-call -l count -d 'Write the number of tokens that the provider counts in the request, without asking for a reply'
complete -c claw-call -l list-models -d 'List the models that the provider offers, as JSON lines, instead of a call'
complete -c claw-call -l ask-window -d 'Ask the provider for the window of the model, and store it for all programs, instead of a call'
complete -c claw-call -l compact -d 'Ask for the provider\'s own summary of the messages instead of a reply'
complete -c claw-call -l insecure-http -d 'Allow plain HTTP to other machines; the key is sent unencrypted'
complete -c claw-call -l detect-truncation -d 'Treat an answer from Ollama as an overflow if it reports far fewer prompt tokens than estimated'
complete -c claw-call -s h -l help -d 'Print help (see more with \'--help\')'
complete -c claw-call -s V -l version -d 'Print version'
