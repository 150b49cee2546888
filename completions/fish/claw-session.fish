# Completion of claw-session. `make completions` writes this file.

# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_claw_session_global_optspecs
    string join \n workspace= agent= store= store-path= log= config= profile= h/help V/version
end

function __fish_claw_session_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_claw_session_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_claw_session_using_subcommand
    set -l cmd (__fish_claw_session_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c claw-session -n "__fish_claw_session_needs_command" -l workspace -d 'Workspace: the directory that holds the sessions and in which tools run' -r -f -a "(__fish_complete_directories)"
complete -c claw-session -n "__fish_claw_session_needs_command" -l agent -d 'Agent that the sessions belong to' -r -f
complete -c claw-session -n "__fish_claw_session_needs_command" -l store -d 'Keep the index that claw-index queries up to date (sqlite), or keep only transcripts (jsonl)' -r -f -a "jsonl\t'Only transcripts'
sqlite\t'Transcripts, and an index of them in a SQLite database'"
complete -c claw-session -n "__fish_claw_session_needs_command" -l store-path -l db -d 'Database of the index (default: index.db beside the sessions of the workspace)' -r -F
complete -c claw-session -n "__fish_claw_session_needs_command" -l log -d 'Format of the diagnostics on standard error' -r -f -a "text\t'One line of text per diagnostic'
json\t'One JSON object per diagnostic'"
complete -c claw-session -n "__fish_claw_session_needs_command" -l config -d 'Configuration file (default: clawutils/config.json in XDG_CONFIG_HOME or ~/.config)' -r -F
complete -c claw-session -n "__fish_claw_session_needs_command" -l profile -d 'Profile of the configuration file to use' -r -f
complete -c claw-session -n "__fish_claw_session_needs_command" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c claw-session -n "__fish_claw_session_needs_command" -s V -l version -d 'Print version'
complete -c claw-session -n "__fish_claw_session_needs_command" -f -a "new" -d 'Make a session, which becomes the current session of its agent, and print its id'
complete -c claw-session -n "__fish_claw_session_needs_command" -f -a "list" -d 'List sessions, the most recently active first'
complete -c claw-session -n "__fish_claw_session_needs_command" -f -a "path" -d 'Print the path of a session\'s transcript'
complete -c claw-session -n "__fish_claw_session_needs_command" -f -a "current" -d 'Print the id of the current session'
complete -c claw-session -n "__fish_claw_session_needs_command" -f -a "switch" -d 'Make a session the current session of its agent, and print its id'
complete -c claw-session -n "__fish_claw_session_needs_command" -f -a "label" -d 'Change the label of a session, or print it'
complete -c claw-session -n "__fish_claw_session_needs_command" -f -a "history" -d 'Show the last records of a session, one line each'
complete -c claw-session -n "__fish_claw_session_needs_command" -f -a "status" -d 'Show the names, the path and statistics of a session'
complete -c claw-session -n "__fish_claw_session_needs_command" -f -a "fork" -d 'Copy a session or its beginning into a new session, and print the id of the copy'
complete -c claw-session -n "__fish_claw_session_needs_command" -f -a "import" -d 'Import transcripts of other programs, and print the ids of their sessions'
complete -c claw-session -n "__fish_claw_session_needs_command" -f -a "export" -d 'Write a session in the form of another program, or sessions as examples or spans'
complete -c claw-session -n "__fish_claw_session_needs_command" -f -a "carry" -d 'Write a session for another program, and print the command that resumes it'
complete -c claw-session -n "__fish_claw_session_needs_command" -f -a "repair" -d 'Repair sessions of other programs, so that those programs can go on with them'
complete -c claw-session -n "__fish_claw_session_needs_command" -f -a "delete" -d 'Delete a session, and print the path of its transcript'
complete -c claw-session -n "__fish_claw_session_needs_command" -f -a "expire" -d 'Delete sessions beyond a limit of age or number, and print the paths of their transcripts'
complete -c claw-session -n "__fish_claw_session_needs_command" -f -a "reindex" -d 'Rebuild the indexes'
complete -c claw-session -n "__fish_claw_session_needs_command" -f -a "lock" -d 'Hold the turn lock of a session while a command runs'
complete -c claw-session -n "__fish_claw_session_using_subcommand new" -l label -d 'Label of the new session' -r -f
complete -c claw-session -n "__fish_claw_session_using_subcommand new" -l key -d 'Key of the new session (default: the first unused of AGENT:cli:user, AGENT:cli:user-2, ...)' -r -f
complete -c claw-session -n "__fish_claw_session_using_subcommand new" -l workspace -d 'Workspace: the directory that holds the sessions and in which tools run' -r -f -a "(__fish_complete_directories)"
complete -c claw-session -n "__fish_claw_session_using_subcommand new" -l agent -d 'Agent that the sessions belong to' -r -f
complete -c claw-session -n "__fish_claw_session_using_subcommand new" -l store -d 'Keep the index that claw-index queries up to date (sqlite), or keep only transcripts (jsonl)' -r -f -a "jsonl\t'Only transcripts'
sqlite\t'Transcripts, and an index of them in a SQLite database'"
complete -c claw-session -n "__fish_claw_session_using_subcommand new" -l store-path -l db -d 'Database of the index (default: index.db beside the sessions of the workspace)' -r -F
complete -c claw-session -n "__fish_claw_session_using_subcommand new" -l log -d 'Format of the diagnostics on standard error' -r -f -a "text\t'One line of text per diagnostic'
json\t'One JSON object per diagnostic'"
complete -c claw-session -n "__fish_claw_session_using_subcommand new" -l config -d 'Configuration file (default: clawutils/config.json in XDG_CONFIG_HOME or ~/.config)' -r -F
complete -c claw-session -n "__fish_claw_session_using_subcommand new" -l profile -d 'Profile of the configuration file to use' -r -f
complete -c claw-session -n "__fish_claw_session_using_subcommand new" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c claw-session -n "__fish_claw_session_using_subcommand list" -l workspace -d 'Workspace: the directory that holds the sessions and in which tools run' -r -f -a "(__fish_complete_directories)"
complete -c claw-session -n "__fish_claw_session_using_subcommand list" -l agent -d 'Agent that the sessions belong to' -r -f
complete -c claw-session -n "__fish_claw_session_using_subcommand list" -l store -d 'Keep the index that claw-index queries up to date (sqlite), or keep only transcripts (jsonl)' -r -f -a "jsonl\t'Only transcripts'
sqlite\t'Transcripts, and an index of them in a SQLite database'"
complete -c claw-session -n "__fish_claw_session_using_subcommand list" -l store-path -l db -d 'Database of the index (default: index.db beside the sessions of the workspace)' -r -F
complete -c claw-session -n "__fish_claw_session_using_subcommand list" -l log -d 'Format of the diagnostics on standard error' -r -f -a "text\t'One line of text per diagnostic'
json\t'One JSON object per diagnostic'"
complete -c claw-session -n "__fish_claw_session_using_subcommand list" -l config -d 'Configuration file (default: clawutils/config.json in XDG_CONFIG_HOME or ~/.config)' -r -F
complete -c claw-session -n "__fish_claw_session_using_subcommand list" -l profile -d 'Profile of the configuration file to use' -r -f
complete -c claw-session -n "__fish_claw_session_using_subcommand list" -l json -d 'Write one JSON object per line'
complete -c claw-session -n "__fish_claw_session_using_subcommand list" -l names -d 'Write only names: the ids and then the labels, one per line'
complete -c claw-session -n "__fish_claw_session_using_subcommand list" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c claw-session -n "__fish_claw_session_using_subcommand path" -l reset -d 'Begin a new session every day at this local time: daily@HH:MM' -r -f
complete -c claw-session -n "__fish_claw_session_using_subcommand path" -l idle -d 'Begin a new session after this many minutes without a prompt' -r -f
complete -c claw-session -n "__fish_claw_session_using_subcommand path" -l workspace -d 'Workspace: the directory that holds the sessions and in which tools run' -r -f -a "(__fish_complete_directories)"
complete -c claw-session -n "__fish_claw_session_using_subcommand path" -l agent -d 'Agent that the sessions belong to' -r -f
complete -c claw-session -n "__fish_claw_session_using_subcommand path" -l store -d 'Keep the index that claw-index queries up to date (sqlite), or keep only transcripts (jsonl)' -r -f -a "jsonl\t'Only transcripts'
sqlite\t'Transcripts, and an index of them in a SQLite database'"
complete -c claw-session -n "__fish_claw_session_using_subcommand path" -l store-path -l db -d 'Database of the index (default: index.db beside the sessions of the workspace)' -r -F
complete -c claw-session -n "__fish_claw_session_using_subcommand path" -l log -d 'Format of the diagnostics on standard error' -r -f -a "text\t'One line of text per diagnostic'
json\t'One JSON object per diagnostic'"
complete -c claw-session -n "__fish_claw_session_using_subcommand path" -l config -d 'Configuration file (default: clawutils/config.json in XDG_CONFIG_HOME or ~/.config)' -r -F
complete -c claw-session -n "__fish_claw_session_using_subcommand path" -l profile -d 'Profile of the configuration file to use' -r -f
complete -c claw-session -n "__fish_claw_session_using_subcommand path" -l create -d 'Make the session if there is none; NAME is its key if it contains a colon, else its label'
complete -c claw-session -n "__fish_claw_session_using_subcommand path" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c claw-session -n "__fish_claw_session_using_subcommand current" -l create -d 'Make a session with this label if there is none' -r -f
complete -c claw-session -n "__fish_claw_session_using_subcommand current" -l reset -d 'Begin a new session every day at this local time: daily@HH:MM' -r -f
complete -c claw-session -n "__fish_claw_session_using_subcommand current" -l idle -d 'Begin a new session after this many minutes without a prompt' -r -f
complete -c claw-session -n "__fish_claw_session_using_subcommand current" -l workspace -d 'Workspace: the directory that holds the sessions and in which tools run' -r -f -a "(__fish_complete_directories)"
complete -c claw-session -n "__fish_claw_session_using_subcommand current" -l agent -d 'Agent that the sessions belong to' -r -f
complete -c claw-session -n "__fish_claw_session_using_subcommand current" -l store -d 'Keep the index that claw-index queries up to date (sqlite), or keep only transcripts (jsonl)' -r -f -a "jsonl\t'Only transcripts'
sqlite\t'Transcripts, and an index of them in a SQLite database'"
complete -c claw-session -n "__fish_claw_session_using_subcommand current" -l store-path -l db -d 'Database of the index (default: index.db beside the sessions of the workspace)' -r -F
complete -c claw-session -n "__fish_claw_session_using_subcommand current" -l log -d 'Format of the diagnostics on standard error' -r -f -a "text\t'One line of text per diagnostic'
json\t'One JSON object per diagnostic'"
complete -c claw-session -n "__fish_claw_session_using_subcommand current" -l config -d 'Configuration file (default: clawutils/config.json in XDG_CONFIG_HOME or ~/.config)' -r -F
complete -c claw-session -n "__fish_claw_session_using_subcommand current" -l profile -d 'Profile of the configuration file to use' -r -f
complete -c claw-session -n "__fish_claw_session_using_subcommand current" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c claw-session -n "__fish_claw_session_using_subcommand switch" -l reset -d 'Begin a new session every day at this local time: daily@HH:MM' -r -f
complete -c claw-session -n "__fish_claw_session_using_subcommand switch" -l idle -d 'Begin a new session after this many minutes without a prompt' -r -f
complete -c claw-session -n "__fish_claw_session_using_subcommand switch" -l workspace -d 'Workspace: the directory that holds the sessions and in which tools run' -r -f -a "(__fish_complete_directories)"
complete -c claw-session -n "__fish_claw_session_using_subcommand switch" -l agent -d 'Agent that the sessions belong to' -r -f
complete -c claw-session -n "__fish_claw_session_using_subcommand switch" -l store -d 'Keep the index that claw-index queries up to date (sqlite), or keep only transcripts (jsonl)' -r -f -a "jsonl\t'Only transcripts'
sqlite\t'Transcripts, and an index of them in a SQLite database'"
complete -c claw-session -n "__fish_claw_session_using_subcommand switch" -l store-path -l db -d 'Database of the index (default: index.db beside the sessions of the workspace)' -r -F
complete -c claw-session -n "__fish_claw_session_using_subcommand switch" -l log -d 'Format of the diagnostics on standard error' -r -f -a "text\t'One line of text per diagnostic'
json\t'One JSON object per diagnostic'"
complete -c claw-session -n "__fish_claw_session_using_subcommand switch" -l config -d 'Configuration file (default: clawutils/config.json in XDG_CONFIG_HOME or ~/.config)' -r -F
complete -c claw-session -n "__fish_claw_session_using_subcommand switch" -l profile -d 'Profile of the configuration file to use' -r -f
complete -c claw-session -n "__fish_claw_session_using_subcommand switch" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c claw-session -n "__fish_claw_session_using_subcommand label" -l workspace -d 'Workspace: the directory that holds the sessions and in which tools run' -r -f -a "(__fish_complete_directories)"
complete -c claw-session -n "__fish_claw_session_using_subcommand label" -l agent -d 'Agent that the sessions belong to' -r -f
complete -c claw-session -n "__fish_claw_session_using_subcommand label" -l store -d 'Keep the index that claw-index queries up to date (sqlite), or keep only transcripts (jsonl)' -r -f -a "jsonl\t'Only transcripts'
sqlite\t'Transcripts, and an index of them in a SQLite database'"
complete -c claw-session -n "__fish_claw_session_using_subcommand label" -l store-path -l db -d 'Database of the index (default: index.db beside the sessions of the workspace)' -r -F
complete -c claw-session -n "__fish_claw_session_using_subcommand label" -l log -d 'Format of the diagnostics on standard error' -r -f -a "text\t'One line of text per diagnostic'
json\t'One JSON object per diagnostic'"
complete -c claw-session -n "__fish_claw_session_using_subcommand label" -l config -d 'Configuration file (default: clawutils/config.json in XDG_CONFIG_HOME or ~/.config)' -r -F
complete -c claw-session -n "__fish_claw_session_using_subcommand label" -l profile -d 'Profile of the configuration file to use' -r -f
complete -c claw-session -n "__fish_claw_session_using_subcommand label" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c claw-session -n "__fish_claw_session_using_subcommand history" -s n -l count -d 'Number of records to show' -r -f
complete -c claw-session -n "__fish_claw_session_using_subcommand history" -l workspace -d 'Workspace: the directory that holds the sessions and in which tools run' -r -f -a "(__fish_complete_directories)"
complete -c claw-session -n "__fish_claw_session_using_subcommand history" -l agent -d 'Agent that the sessions belong to' -r -f
complete -c claw-session -n "__fish_claw_session_using_subcommand history" -l store -d 'Keep the index that claw-index queries up to date (sqlite), or keep only transcripts (jsonl)' -r -f -a "jsonl\t'Only transcripts'
sqlite\t'Transcripts, and an index of them in a SQLite database'"
complete -c claw-session -n "__fish_claw_session_using_subcommand history" -l store-path -l db -d 'Database of the index (default: index.db beside the sessions of the workspace)' -r -F
complete -c claw-session -n "__fish_claw_session_using_subcommand history" -l log -d 'Format of the diagnostics on standard error' -r -f -a "text\t'One line of text per diagnostic'
json\t'One JSON object per diagnostic'"
complete -c claw-session -n "__fish_claw_session_using_subcommand history" -l config -d 'Configuration file (default: clawutils/config.json in XDG_CONFIG_HOME or ~/.config)' -r -F
complete -c claw-session -n "__fish_claw_session_using_subcommand history" -l profile -d 'Profile of the configuration file to use' -r -f
complete -c claw-session -n "__fish_claw_session_using_subcommand history" -l ids -d 'Write only the ids of the records'
complete -c claw-session -n "__fish_claw_session_using_subcommand history" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c claw-session -n "__fish_claw_session_using_subcommand status" -l prices -d 'File of prices, one model per line, which wins over the table of models' -r -F
complete -c claw-session -n "__fish_claw_session_using_subcommand status" -l models -d 'File of models to look up before the built-in table' -r -F
complete -c claw-session -n "__fish_claw_session_using_subcommand status" -l workspace -d 'Workspace: the directory that holds the sessions and in which tools run' -r -f -a "(__fish_complete_directories)"
complete -c claw-session -n "__fish_claw_session_using_subcommand status" -l agent -d 'Agent that the sessions belong to' -r -f
complete -c claw-session -n "__fish_claw_session_using_subcommand status" -l store -d 'Keep the index that claw-index queries up to date (sqlite), or keep only transcripts (jsonl)' -r -f -a "jsonl\t'Only transcripts'
sqlite\t'Transcripts, and an index of them in a SQLite database'"
complete -c claw-session -n "__fish_claw_session_using_subcommand status" -l store-path -l db -d 'Database of the index (default: index.db beside the sessions of the workspace)' -r -F
complete -c claw-session -n "__fish_claw_session_using_subcommand status" -l log -d 'Format of the diagnostics on standard error' -r -f -a "text\t'One line of text per diagnostic'
json\t'One JSON object per diagnostic'"
complete -c claw-session -n "__fish_claw_session_using_subcommand status" -l config -d 'Configuration file (default: clawutils/config.json in XDG_CONFIG_HOME or ~/.config)' -r -F
complete -c claw-session -n "__fish_claw_session_using_subcommand status" -l profile -d 'Profile of the configuration file to use' -r -f
complete -c claw-session -n "__fish_claw_session_using_subcommand status" -l json -d 'Write one JSON object'
complete -c claw-session -n "__fish_claw_session_using_subcommand status" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c claw-session -n "__fish_claw_session_using_subcommand fork" -l at -d 'Copy only up to and including this record' -r -f -a "(for word in (commandline -opc)[2..]; claw-session history --ids -n 1000 -- $word 2>/dev/null; and break; end)"
complete -c claw-session -n "__fish_claw_session_using_subcommand fork" -l to-turn -d 'Copy only up to the end of turn N, counted from 1' -r -f
complete -c claw-session -n "__fish_claw_session_using_subcommand fork" -l label -d 'Label of the new session' -r -f
complete -c claw-session -n "__fish_claw_session_using_subcommand fork" -l key -d 'Key of the new session (default: AGENT:fork:ID, with a number from the second fork on)' -r -f
complete -c claw-session -n "__fish_claw_session_using_subcommand fork" -l workspace -d 'Workspace: the directory that holds the sessions and in which tools run' -r -f -a "(__fish_complete_directories)"
complete -c claw-session -n "__fish_claw_session_using_subcommand fork" -l agent -d 'Agent that the sessions belong to' -r -f
complete -c claw-session -n "__fish_claw_session_using_subcommand fork" -l store -d 'Keep the index that claw-index queries up to date (sqlite), or keep only transcripts (jsonl)' -r -f -a "jsonl\t'Only transcripts'
sqlite\t'Transcripts, and an index of them in a SQLite database'"
complete -c claw-session -n "__fish_claw_session_using_subcommand fork" -l store-path -l db -d 'Database of the index (default: index.db beside the sessions of the workspace)' -r -F
complete -c claw-session -n "__fish_claw_session_using_subcommand fork" -l log -d 'Format of the diagnostics on standard error' -r -f -a "text\t'One line of text per diagnostic'
json\t'One JSON object per diagnostic'"
complete -c claw-session -n "__fish_claw_session_using_subcommand fork" -l config -d 'Configuration file (default: clawutils/config.json in XDG_CONFIG_HOME or ~/.config)' -r -F
complete -c claw-session -n "__fish_claw_session_using_subcommand fork" -l profile -d 'Profile of the configuration file to use' -r -f
complete -c claw-session -n "__fish_claw_session_using_subcommand fork" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c claw-session -n "__fish_claw_session_using_subcommand import" -l all -d 'Import all new or grown transcripts of other programs from DIR and its subdirectories' -r -f -a "(__fish_complete_directories)"
complete -c claw-session -n "__fish_claw_session_using_subcommand import" -l from -d 'Read transcripts of another program as DIALECT (default: from their content)' -r -f -a "pi\t'Sessions of pi, OpenClaw and GoClaw'
claude-code\t'Project files of Claude Code'
codex\t'Rollout files of Codex CLI'
openai\t'Messages for OpenAI\'s API or a compatible one'
gemini\t'Contents for Gemini\'s API'
gemini-cli\t'Chats of Gemini CLI'
copilot\t'Sessions of GitHub Copilot CLI'"
complete -c claw-session -n "__fish_claw_session_using_subcommand import" -l leaf -d 'In a transcript of another program that has branches, read the branch that ends with record ID' -r -f
complete -c claw-session -n "__fish_claw_session_using_subcommand import" -l label -d 'Label of the new session (default: the name that the other program gave it)' -r -f
complete -c claw-session -n "__fish_claw_session_using_subcommand import" -l workspace -d 'Workspace: the directory that holds the sessions and in which tools run' -r -f -a "(__fish_complete_directories)"
complete -c claw-session -n "__fish_claw_session_using_subcommand import" -l agent -d 'Agent that the sessions belong to' -r -f
complete -c claw-session -n "__fish_claw_session_using_subcommand import" -l store -d 'Keep the index that claw-index queries up to date (sqlite), or keep only transcripts (jsonl)' -r -f -a "jsonl\t'Only transcripts'
sqlite\t'Transcripts, and an index of them in a SQLite database'"
complete -c claw-session -n "__fish_claw_session_using_subcommand import" -l store-path -l db -d 'Database of the index (default: index.db beside the sessions of the workspace)' -r -F
complete -c claw-session -n "__fish_claw_session_using_subcommand import" -l log -d 'Format of the diagnostics on standard error' -r -f -a "text\t'One line of text per diagnostic'
json\t'One JSON object per diagnostic'"
complete -c claw-session -n "__fish_claw_session_using_subcommand import" -l config -d 'Configuration file (default: clawutils/config.json in XDG_CONFIG_HOME or ~/.config)' -r -F
complete -c claw-session -n "__fish_claw_session_using_subcommand import" -l profile -d 'Profile of the configuration file to use' -r -f
complete -c claw-session -n "__fish_claw_session_using_subcommand import" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c claw-session -n "__fish_claw_session_using_subcommand export" -l label -d 'Select the sessions whose label matches PATTERN, in which * stands for any text' -r -f
complete -c claw-session -n "__fish_claw_session_using_subcommand export" -l query -d 'Select the sessions whose paths are in the first column of this query of the index' -r -f
complete -c claw-session -n "__fish_claw_session_using_subcommand export" -l to -d 'The form to write' -r -f -a "pi\t'A session of pi, OpenClaw or GoClaw, in version 3'
claude-code\t'A project file of Claude Code'
codex\t'A rollout file of Codex CLI'
gemini-cli\t'A chat of Gemini CLI'
opencode\t'A session for opencode to import'
openai\t'The body of a request to OpenAI\'s API, without a model'
openai-jsonl\t'Examples for OpenAI\'s fine-tuning, one for each session'
sharegpt\t'Examples in ShareGPT\'s form, one for each session'
otel\t'Spans of OpenTelemetry, a line for each turn'"
complete -c claw-session -n "__fish_claw_session_using_subcommand export" -l redact -d 'Redact text that matches a pattern in FILE' -r -F
complete -c claw-session -n "__fish_claw_session_using_subcommand export" -l workspace -d 'Workspace: the directory that holds the sessions and in which tools run' -r -f -a "(__fish_complete_directories)"
complete -c claw-session -n "__fish_claw_session_using_subcommand export" -l agent -d 'Agent that the sessions belong to' -r -f
complete -c claw-session -n "__fish_claw_session_using_subcommand export" -l store -d 'Keep the index that claw-index queries up to date (sqlite), or keep only transcripts (jsonl)' -r -f -a "jsonl\t'Only transcripts'
sqlite\t'Transcripts, and an index of them in a SQLite database'"
complete -c claw-session -n "__fish_claw_session_using_subcommand export" -l store-path -l db -d 'Database of the index (default: index.db beside the sessions of the workspace)' -r -F
complete -c claw-session -n "__fish_claw_session_using_subcommand export" -l log -d 'Format of the diagnostics on standard error' -r -f -a "text\t'One line of text per diagnostic'
json\t'One JSON object per diagnostic'"
complete -c claw-session -n "__fish_claw_session_using_subcommand export" -l config -d 'Configuration file (default: clawutils/config.json in XDG_CONFIG_HOME or ~/.config)' -r -F
complete -c claw-session -n "__fish_claw_session_using_subcommand export" -l profile -d 'Profile of the configuration file to use' -r -f
complete -c claw-session -n "__fish_claw_session_using_subcommand export" -l content -d 'Include the text of the conversation in spans'
complete -c claw-session -n "__fish_claw_session_using_subcommand export" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c claw-session -n "__fish_claw_session_using_subcommand carry" -l to -d 'Program that is to go on with it' -r -f -a "claude-code\t'Claude Code, in CLAUDE_CONFIG_DIR or ~/.claude'
codex\t'Codex CLI, in CODEX_HOME or ~/.codex'
gemini-cli\t'Gemini CLI, in .gemini in GEMINI_CLI_HOME or ~'
opencode\t'opencode, which imports it from XDG_DATA_HOME or ~/.local/share'
pi\t'pi, in PI_CODING_AGENT_DIR or ~/.pi/agent'"
complete -c claw-session -n "__fish_claw_session_using_subcommand carry" -l workspace -d 'Workspace: the directory that holds the sessions and in which tools run' -r -f -a "(__fish_complete_directories)"
complete -c claw-session -n "__fish_claw_session_using_subcommand carry" -l agent -d 'Agent that the sessions belong to' -r -f
complete -c claw-session -n "__fish_claw_session_using_subcommand carry" -l store -d 'Keep the index that claw-index queries up to date (sqlite), or keep only transcripts (jsonl)' -r -f -a "jsonl\t'Only transcripts'
sqlite\t'Transcripts, and an index of them in a SQLite database'"
complete -c claw-session -n "__fish_claw_session_using_subcommand carry" -l store-path -l db -d 'Database of the index (default: index.db beside the sessions of the workspace)' -r -F
complete -c claw-session -n "__fish_claw_session_using_subcommand carry" -l log -d 'Format of the diagnostics on standard error' -r -f -a "text\t'One line of text per diagnostic'
json\t'One JSON object per diagnostic'"
complete -c claw-session -n "__fish_claw_session_using_subcommand carry" -l config -d 'Configuration file (default: clawutils/config.json in XDG_CONFIG_HOME or ~/.config)' -r -F
complete -c claw-session -n "__fish_claw_session_using_subcommand carry" -l profile -d 'Profile of the configuration file to use' -r -f
complete -c claw-session -n "__fish_claw_session_using_subcommand carry" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c claw-session -n "__fish_claw_session_using_subcommand repair" -l workspace -d 'Workspace: the directory that holds the sessions and in which tools run' -r -f -a "(__fish_complete_directories)"
complete -c claw-session -n "__fish_claw_session_using_subcommand repair" -l agent -d 'Agent that the sessions belong to' -r -f
complete -c claw-session -n "__fish_claw_session_using_subcommand repair" -l store -d 'Keep the index that claw-index queries up to date (sqlite), or keep only transcripts (jsonl)' -r -f -a "jsonl\t'Only transcripts'
sqlite\t'Transcripts, and an index of them in a SQLite database'"
complete -c claw-session -n "__fish_claw_session_using_subcommand repair" -l store-path -l db -d 'Database of the index (default: index.db beside the sessions of the workspace)' -r -F
complete -c claw-session -n "__fish_claw_session_using_subcommand repair" -l log -d 'Format of the diagnostics on standard error' -r -f -a "text\t'One line of text per diagnostic'
json\t'One JSON object per diagnostic'"
complete -c claw-session -n "__fish_claw_session_using_subcommand repair" -l config -d 'Configuration file (default: clawutils/config.json in XDG_CONFIG_HOME or ~/.config)' -r -F
complete -c claw-session -n "__fish_claw_session_using_subcommand repair" -l profile -d 'Profile of the configuration file to use' -r -f
complete -c claw-session -n "__fish_claw_session_using_subcommand repair" -l dry-run -d 'Only print what would be changed, one line each; exit with status 1 if there is anything'
complete -c claw-session -n "__fish_claw_session_using_subcommand repair" -l in-place -d 'Replace FILE, and keep the original as FILE.damaged'
complete -c claw-session -n "__fish_claw_session_using_subcommand repair" -l last-good -d 'Also write the beginning of the session before its damage, as FILE.last-good'
complete -c claw-session -n "__fish_claw_session_using_subcommand repair" -l without-thinking -d 'Also leave out all thinking, which only its provider can judge'
complete -c claw-session -n "__fish_claw_session_using_subcommand repair" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c claw-session -n "__fish_claw_session_using_subcommand delete" -l workspace -d 'Workspace: the directory that holds the sessions and in which tools run' -r -f -a "(__fish_complete_directories)"
complete -c claw-session -n "__fish_claw_session_using_subcommand delete" -l agent -d 'Agent that the sessions belong to' -r -f
complete -c claw-session -n "__fish_claw_session_using_subcommand delete" -l store -d 'Keep the index that claw-index queries up to date (sqlite), or keep only transcripts (jsonl)' -r -f -a "jsonl\t'Only transcripts'
sqlite\t'Transcripts, and an index of them in a SQLite database'"
complete -c claw-session -n "__fish_claw_session_using_subcommand delete" -l store-path -l db -d 'Database of the index (default: index.db beside the sessions of the workspace)' -r -F
complete -c claw-session -n "__fish_claw_session_using_subcommand delete" -l log -d 'Format of the diagnostics on standard error' -r -f -a "text\t'One line of text per diagnostic'
json\t'One JSON object per diagnostic'"
complete -c claw-session -n "__fish_claw_session_using_subcommand delete" -l config -d 'Configuration file (default: clawutils/config.json in XDG_CONFIG_HOME or ~/.config)' -r -F
complete -c claw-session -n "__fish_claw_session_using_subcommand delete" -l profile -d 'Profile of the configuration file to use' -r -f
complete -c claw-session -n "__fish_claw_session_using_subcommand delete" -l dry-run -d 'Print the paths without deleting anything'
complete -c claw-session -n "__fish_claw_session_using_subcommand delete" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c claw-session -n "__fish_claw_session_using_subcommand expire" -l older-than -d 'Delete sessions whose last record is older than this: a number and s, m, h, d or w, such as 30d' -r -f
complete -c claw-session -n "__fish_claw_session_using_subcommand expire" -l max -d 'Keep only the N most recently active sessions of each agent' -r -f
complete -c claw-session -n "__fish_claw_session_using_subcommand expire" -l workspace -d 'Workspace: the directory that holds the sessions and in which tools run' -r -f -a "(__fish_complete_directories)"
complete -c claw-session -n "__fish_claw_session_using_subcommand expire" -l agent -d 'Agent that the sessions belong to' -r -f
complete -c claw-session -n "__fish_claw_session_using_subcommand expire" -l store -d 'Keep the index that claw-index queries up to date (sqlite), or keep only transcripts (jsonl)' -r -f -a "jsonl\t'Only transcripts'
sqlite\t'Transcripts, and an index of them in a SQLite database'"
complete -c claw-session -n "__fish_claw_session_using_subcommand expire" -l store-path -l db -d 'Database of the index (default: index.db beside the sessions of the workspace)' -r -F
complete -c claw-session -n "__fish_claw_session_using_subcommand expire" -l log -d 'Format of the diagnostics on standard error' -r -f -a "text\t'One line of text per diagnostic'
json\t'One JSON object per diagnostic'"
complete -c claw-session -n "__fish_claw_session_using_subcommand expire" -l config -d 'Configuration file (default: clawutils/config.json in XDG_CONFIG_HOME or ~/.config)' -r -F
complete -c claw-session -n "__fish_claw_session_using_subcommand expire" -l profile -d 'Profile of the configuration file to use' -r -f
complete -c claw-session -n "__fish_claw_session_using_subcommand expire" -l dry-run -d 'Print the paths without deleting anything'
complete -c claw-session -n "__fish_claw_session_using_subcommand expire" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c claw-session -n "__fish_claw_session_using_subcommand reindex" -l workspace -d 'Workspace: the directory that holds the sessions and in which tools run' -r -f -a "(__fish_complete_directories)"
complete -c claw-session -n "__fish_claw_session_using_subcommand reindex" -l agent -d 'Agent that the sessions belong to' -r -f
complete -c claw-session -n "__fish_claw_session_using_subcommand reindex" -l store -d 'Keep the index that claw-index queries up to date (sqlite), or keep only transcripts (jsonl)' -r -f -a "jsonl\t'Only transcripts'
sqlite\t'Transcripts, and an index of them in a SQLite database'"
complete -c claw-session -n "__fish_claw_session_using_subcommand reindex" -l store-path -l db -d 'Database of the index (default: index.db beside the sessions of the workspace)' -r -F
complete -c claw-session -n "__fish_claw_session_using_subcommand reindex" -l log -d 'Format of the diagnostics on standard error' -r -f -a "text\t'One line of text per diagnostic'
json\t'One JSON object per diagnostic'"
complete -c claw-session -n "__fish_claw_session_using_subcommand reindex" -l config -d 'Configuration file (default: clawutils/config.json in XDG_CONFIG_HOME or ~/.config)' -r -F
complete -c claw-session -n "__fish_claw_session_using_subcommand reindex" -l profile -d 'Profile of the configuration file to use' -r -f
complete -c claw-session -n "__fish_claw_session_using_subcommand reindex" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c claw-session -n "__fish_claw_session_using_subcommand lock" -l reset -d 'Begin a new session every day at this local time: daily@HH:MM' -r -f
complete -c claw-session -n "__fish_claw_session_using_subcommand lock" -l idle -d 'Begin a new session after this many minutes without a prompt' -r -f
complete -c claw-session -n "__fish_claw_session_using_subcommand lock" -l lock-timeout -d 'Longest wait for another turn on the same transcript, in seconds' -r -f
complete -c claw-session -n "__fish_claw_session_using_subcommand lock" -l workspace -d 'Workspace: the directory that holds the sessions and in which tools run' -r -f -a "(__fish_complete_directories)"
complete -c claw-session -n "__fish_claw_session_using_subcommand lock" -l agent -d 'Agent that the sessions belong to' -r -f
complete -c claw-session -n "__fish_claw_session_using_subcommand lock" -l store -d 'Keep the index that claw-index queries up to date (sqlite), or keep only transcripts (jsonl)' -r -f -a "jsonl\t'Only transcripts'
sqlite\t'Transcripts, and an index of them in a SQLite database'"
complete -c claw-session -n "__fish_claw_session_using_subcommand lock" -l store-path -l db -d 'Database of the index (default: index.db beside the sessions of the workspace)' -r -F
complete -c claw-session -n "__fish_claw_session_using_subcommand lock" -l log -d 'Format of the diagnostics on standard error' -r -f -a "text\t'One line of text per diagnostic'
json\t'One JSON object per diagnostic'"
complete -c claw-session -n "__fish_claw_session_using_subcommand lock" -l config -d 'Configuration file (default: clawutils/config.json in XDG_CONFIG_HOME or ~/.config)' -r -F
complete -c claw-session -n "__fish_claw_session_using_subcommand lock" -l profile -d 'Profile of the configuration file to use' -r -f
complete -c claw-session -n "__fish_claw_session_using_subcommand lock" -l retry -d 'Hold the lock that claw-retry uses instead of the turn lock; turns do not wait for it'
complete -c claw-session -n "__fish_claw_session_using_subcommand lock" -l temporary -d 'Make a temporary directory for the command, and name it in CLAW_TEMPORARY'
complete -c claw-session -n "__fish_claw_session_using_subcommand lock" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c claw-session -n "__fish_claw_session_using_subcommand path" -a "(claw-session list --names 2>/dev/null)"
complete -c claw-session -n "__fish_claw_session_using_subcommand switch" -a "(claw-session list --names 2>/dev/null)"
complete -c claw-session -n "__fish_claw_session_using_subcommand label" -a "(claw-session list --names 2>/dev/null)"
complete -c claw-session -n "__fish_claw_session_using_subcommand history" -a "(claw-session list --names 2>/dev/null)"
complete -c claw-session -n "__fish_claw_session_using_subcommand status" -a "(claw-session list --names 2>/dev/null)"
complete -c claw-session -n "__fish_claw_session_using_subcommand fork" -a "(claw-session list --names 2>/dev/null)"
complete -c claw-session -n "__fish_claw_session_using_subcommand export" -a "(claw-session list --names 2>/dev/null)"
complete -c claw-session -n "__fish_claw_session_using_subcommand carry" -a "(claw-session list --names 2>/dev/null)"
complete -c claw-session -n "__fish_claw_session_using_subcommand delete" -a "(claw-session list --names 2>/dev/null)"
complete -c claw-session -n "__fish_claw_session_using_subcommand lock" -a "(claw-session list --names 2>/dev/null)"
