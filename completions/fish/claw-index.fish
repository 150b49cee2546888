# Completion of claw-index. `make completions` writes this file.

# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_claw_index_global_optspecs
    string join \n store-path= workspace= log= config= profile= h/help V/version
end

function __fish_claw_index_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_claw_index_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_claw_index_using_subcommand
    set -l cmd (__fish_claw_index_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c claw-index -n "__fish_claw_index_needs_command" -l store-path -l db -d 'Database of the index (default: index.db beside the sessions of the workspace)' -r -F
complete -c claw-index -n "__fish_claw_index_needs_command" -l workspace -d 'Workspace: the directory that holds the sessions and in which tools run' -r -f -a "(__fish_complete_directories)"
complete -c claw-index -n "__fish_claw_index_needs_command" -l log -d 'Format of the diagnostics on standard error' -r -f -a "text\t'One line of text per diagnostic'
json\t'One JSON object per diagnostic'"
complete -c claw-index -n "__fish_claw_index_needs_command" -l config -d 'Configuration file (default: clawutils/config.json in XDG_CONFIG_HOME or ~/.config)' -r -F
complete -c claw-index -n "__fish_claw_index_needs_command" -l profile -d 'Profile of the configuration file to use' -r -f
complete -c claw-index -n "__fish_claw_index_needs_command" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c claw-index -n "__fish_claw_index_needs_command" -s V -l version -d 'Print version'
complete -c claw-index -n "__fish_claw_index_needs_command" -f -a "update" -d 'Bring the index up to date with transcripts'
complete -c claw-index -n "__fish_claw_index_needs_command" -f -a "search" -d 'Search messages, tool inputs and tool results'
complete -c claw-index -n "__fish_claw_index_needs_command" -f -a "query" -d 'Run an SQL query that reads the index'
complete -c claw-index -n "__fish_claw_index_needs_command" -f -a "stats" -d 'Print tokens, tools, sessions and errors, with bars'
complete -c claw-index -n "__fish_claw_index_needs_command" -f -a "schema" -d 'Print the tables and views of the index as SQL'
complete -c claw-index -n "__fish_claw_index_needs_command" -f -a "mcp" -d 'Serve the index to agents with the Model Context Protocol, on standard input and output'
complete -c claw-index -n "__fish_claw_index_needs_command" -f -a "records" -d 'Write the sessions in the database of another program as records, for claw-session import'
complete -c claw-index -n "__fish_claw_index_using_subcommand update" -l prices -d 'File of prices, one model per line, which wins over the table of models' -r -F
complete -c claw-index -n "__fish_claw_index_using_subcommand update" -l models -d 'File of models to look up before the built-in table' -r -F
complete -c claw-index -n "__fish_claw_index_using_subcommand update" -l redact -d 'Redact text that matches a pattern in FILE' -r -F
complete -c claw-index -n "__fish_claw_index_using_subcommand update" -l store-path -l db -d 'Database of the index (default: index.db beside the sessions of the workspace)' -r -F
complete -c claw-index -n "__fish_claw_index_using_subcommand update" -l workspace -d 'Workspace: the directory that holds the sessions and in which tools run' -r -f -a "(__fish_complete_directories)"
complete -c claw-index -n "__fish_claw_index_using_subcommand update" -l log -d 'Format of the diagnostics on standard error' -r -f -a "text\t'One line of text per diagnostic'
json\t'One JSON object per diagnostic'"
complete -c claw-index -n "__fish_claw_index_using_subcommand update" -l config -d 'Configuration file (default: clawutils/config.json in XDG_CONFIG_HOME or ~/.config)' -r -F
complete -c claw-index -n "__fish_claw_index_using_subcommand update" -l profile -d 'Profile of the configuration file to use' -r -f
complete -c claw-index -n "__fish_claw_index_using_subcommand update" -l full -d 'Read every transcript again, even if it seems not to have changed'
complete -c claw-index -n "__fish_claw_index_using_subcommand update" -l quiet -d 'Report only errors'
complete -c claw-index -n "__fish_claw_index_using_subcommand update" -l follow -d 'After the update, wait for changes, index them, and print a line for each, until a signal ends the program'
complete -c claw-index -n "__fish_claw_index_using_subcommand update" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c claw-index -n "__fish_claw_index_using_subcommand search" -l session -d 'Search only this session: its path, id, key or label' -r -f -a "(claw-session list --names 2>/dev/null)"
complete -c claw-index -n "__fish_claw_index_using_subcommand search" -l role -d 'Search only messages with this role' -r -f -a "user\t''
assistant\t''
tool_use\t''
tool_result\t''"
complete -c claw-index -n "__fish_claw_index_using_subcommand search" -l since -d 'Search only messages since this day or time, in UTC: 2026-11-23, 2026-11-23T08:00:00Z' -r -f
complete -c claw-index -n "__fish_claw_index_using_subcommand search" -l limit -d 'Maximum number of results' -r -f
complete -c claw-index -n "__fish_claw_index_using_subcommand search" -l store-path -l db -d 'Database of the index (default: index.db beside the sessions of the workspace)' -r -F
complete -c claw-index -n "__fish_claw_index_using_subcommand search" -l workspace -d 'Workspace: the directory that holds the sessions and in which tools run' -r -f -a "(__fish_complete_directories)"
complete -c claw-index -n "__fish_claw_index_using_subcommand search" -l log -d 'Format of the diagnostics on standard error' -r -f -a "text\t'One line of text per diagnostic'
json\t'One JSON object per diagnostic'"
complete -c claw-index -n "__fish_claw_index_using_subcommand search" -l config -d 'Configuration file (default: clawutils/config.json in XDG_CONFIG_HOME or ~/.config)' -r -F
complete -c claw-index -n "__fish_claw_index_using_subcommand search" -l profile -d 'Profile of the configuration file to use' -r -f
complete -c claw-index -n "__fish_claw_index_using_subcommand search" -l json -d 'Write one JSON object per line'
complete -c claw-index -n "__fish_claw_index_using_subcommand search" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c claw-index -n "__fish_claw_index_using_subcommand query" -l format -d 'Format of the output' -r -f -a "table\t'Aligned columns, for reading; long values are cut off'
csv\t'Comma-separated values with a header, as in RFC 4180'
json\t'One JSON object per line'"
complete -c claw-index -n "__fish_claw_index_using_subcommand query" -l store-path -l db -d 'Database of the index (default: index.db beside the sessions of the workspace)' -r -F
complete -c claw-index -n "__fish_claw_index_using_subcommand query" -l workspace -d 'Workspace: the directory that holds the sessions and in which tools run' -r -f -a "(__fish_complete_directories)"
complete -c claw-index -n "__fish_claw_index_using_subcommand query" -l log -d 'Format of the diagnostics on standard error' -r -f -a "text\t'One line of text per diagnostic'
json\t'One JSON object per diagnostic'"
complete -c claw-index -n "__fish_claw_index_using_subcommand query" -l config -d 'Configuration file (default: clawutils/config.json in XDG_CONFIG_HOME or ~/.config)' -r -F
complete -c claw-index -n "__fish_claw_index_using_subcommand query" -l profile -d 'Profile of the configuration file to use' -r -f
complete -c claw-index -n "__fish_claw_index_using_subcommand query" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c claw-index -n "__fish_claw_index_using_subcommand stats" -l limit -d 'Maximum number of lines of each list' -r -f
complete -c claw-index -n "__fish_claw_index_using_subcommand stats" -l store-path -l db -d 'Database of the index (default: index.db beside the sessions of the workspace)' -r -F
complete -c claw-index -n "__fish_claw_index_using_subcommand stats" -l workspace -d 'Workspace: the directory that holds the sessions and in which tools run' -r -f -a "(__fish_complete_directories)"
complete -c claw-index -n "__fish_claw_index_using_subcommand stats" -l log -d 'Format of the diagnostics on standard error' -r -f -a "text\t'One line of text per diagnostic'
json\t'One JSON object per diagnostic'"
complete -c claw-index -n "__fish_claw_index_using_subcommand stats" -l config -d 'Configuration file (default: clawutils/config.json in XDG_CONFIG_HOME or ~/.config)' -r -F
complete -c claw-index -n "__fish_claw_index_using_subcommand stats" -l profile -d 'Profile of the configuration file to use' -r -f
complete -c claw-index -n "__fish_claw_index_using_subcommand stats" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c claw-index -n "__fish_claw_index_using_subcommand schema" -l store-path -l db -d 'Database of the index (default: index.db beside the sessions of the workspace)' -r -F
complete -c claw-index -n "__fish_claw_index_using_subcommand schema" -l workspace -d 'Workspace: the directory that holds the sessions and in which tools run' -r -f -a "(__fish_complete_directories)"
complete -c claw-index -n "__fish_claw_index_using_subcommand schema" -l log -d 'Format of the diagnostics on standard error' -r -f -a "text\t'One line of text per diagnostic'
json\t'One JSON object per diagnostic'"
complete -c claw-index -n "__fish_claw_index_using_subcommand schema" -l config -d 'Configuration file (default: clawutils/config.json in XDG_CONFIG_HOME or ~/.config)' -r -F
complete -c claw-index -n "__fish_claw_index_using_subcommand schema" -l profile -d 'Profile of the configuration file to use' -r -f
complete -c claw-index -n "__fish_claw_index_using_subcommand schema" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c claw-index -n "__fish_claw_index_using_subcommand mcp" -l store-path -l db -d 'Database of the index (default: index.db beside the sessions of the workspace)' -r -F
complete -c claw-index -n "__fish_claw_index_using_subcommand mcp" -l workspace -d 'Workspace: the directory that holds the sessions and in which tools run' -r -f -a "(__fish_complete_directories)"
complete -c claw-index -n "__fish_claw_index_using_subcommand mcp" -l log -d 'Format of the diagnostics on standard error' -r -f -a "text\t'One line of text per diagnostic'
json\t'One JSON object per diagnostic'"
complete -c claw-index -n "__fish_claw_index_using_subcommand mcp" -l config -d 'Configuration file (default: clawutils/config.json in XDG_CONFIG_HOME or ~/.config)' -r -F
complete -c claw-index -n "__fish_claw_index_using_subcommand mcp" -l profile -d 'Profile of the configuration file to use' -r -f
complete -c claw-index -n "__fish_claw_index_using_subcommand mcp" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c claw-index -n "__fish_claw_index_using_subcommand records" -l store-path -l db -d 'Database of the index (default: index.db beside the sessions of the workspace)' -r -F
complete -c claw-index -n "__fish_claw_index_using_subcommand records" -l workspace -d 'Workspace: the directory that holds the sessions and in which tools run' -r -f -a "(__fish_complete_directories)"
complete -c claw-index -n "__fish_claw_index_using_subcommand records" -l log -d 'Format of the diagnostics on standard error' -r -f -a "text\t'One line of text per diagnostic'
json\t'One JSON object per diagnostic'"
complete -c claw-index -n "__fish_claw_index_using_subcommand records" -l config -d 'Configuration file (default: clawutils/config.json in XDG_CONFIG_HOME or ~/.config)' -r -F
complete -c claw-index -n "__fish_claw_index_using_subcommand records" -l profile -d 'Profile of the configuration file to use' -r -f
complete -c claw-index -n "__fish_claw_index_using_subcommand records" -s h -l help -d 'Print help (see more with \'--help\')'
