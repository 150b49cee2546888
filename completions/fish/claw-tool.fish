# Completion of claw-tool. `make completions` writes this file.

# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_claw_tool_global_optspecs
    string join \n log= config= profile= h/help V/version
end

function __fish_claw_tool_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_claw_tool_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_claw_tool_using_subcommand
    set -l cmd (__fish_claw_tool_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c claw-tool -n "__fish_claw_tool_needs_command" -l log -d 'Format of the diagnostics on standard error' -r -f -a "text\t'One line of text per diagnostic'
json\t'One JSON object per diagnostic'"
complete -c claw-tool -n "__fish_claw_tool_needs_command" -l config -d 'Configuration file (default: clawutils/config.json in XDG_CONFIG_HOME or ~/.config)' -r -F
complete -c claw-tool -n "__fish_claw_tool_needs_command" -l profile -d 'Profile of the configuration file to use' -r -f
complete -c claw-tool -n "__fish_claw_tool_needs_command" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c claw-tool -n "__fish_claw_tool_needs_command" -s V -l version -d 'Print version'
complete -c claw-tool -n "__fish_claw_tool_needs_command" -f -a "read_file" -d 'Write the whole content of the file that file_path names'
complete -c claw-tool -n "__fish_claw_tool_needs_command" -f -a "list_directory" -d 'Write the names in a directory, one per line and sorted'
complete -c claw-tool -n "__fish_claw_tool_needs_command" -f -a "get_current_time" -d 'Write the current date and time in UTC'
complete -c claw-tool -n "__fish_claw_tool_needs_command" -f -a "mcp" -d 'Write the tools of an MCP server to a directory'
complete -c claw-tool -n "__fish_claw_tool_using_subcommand read_file" -l log -d 'Format of the diagnostics on standard error' -r -f -a "text\t'One line of text per diagnostic'
json\t'One JSON object per diagnostic'"
complete -c claw-tool -n "__fish_claw_tool_using_subcommand read_file" -l config -d 'Configuration file (default: clawutils/config.json in XDG_CONFIG_HOME or ~/.config)' -r -F
complete -c claw-tool -n "__fish_claw_tool_using_subcommand read_file" -l profile -d 'Profile of the configuration file to use' -r -f
complete -c claw-tool -n "__fish_claw_tool_using_subcommand read_file" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c claw-tool -n "__fish_claw_tool_using_subcommand list_directory" -l log -d 'Format of the diagnostics on standard error' -r -f -a "text\t'One line of text per diagnostic'
json\t'One JSON object per diagnostic'"
complete -c claw-tool -n "__fish_claw_tool_using_subcommand list_directory" -l config -d 'Configuration file (default: clawutils/config.json in XDG_CONFIG_HOME or ~/.config)' -r -F
complete -c claw-tool -n "__fish_claw_tool_using_subcommand list_directory" -l profile -d 'Profile of the configuration file to use' -r -f
complete -c claw-tool -n "__fish_claw_tool_using_subcommand list_directory" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c claw-tool -n "__fish_claw_tool_using_subcommand get_current_time" -l log -d 'Format of the diagnostics on standard error' -r -f -a "text\t'One line of text per diagnostic'
json\t'One JSON object per diagnostic'"
complete -c claw-tool -n "__fish_claw_tool_using_subcommand get_current_time" -l config -d 'Configuration file (default: clawutils/config.json in XDG_CONFIG_HOME or ~/.config)' -r -F
complete -c claw-tool -n "__fish_claw_tool_using_subcommand get_current_time" -l profile -d 'Profile of the configuration file to use' -r -f
complete -c claw-tool -n "__fish_claw_tool_using_subcommand get_current_time" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c claw-tool -n "__fish_claw_tool_using_subcommand mcp" -l output -d 'Directory to write the tools to; created if missing' -r -f -a "(__fish_complete_directories)"
complete -c claw-tool -n "__fish_claw_tool_using_subcommand mcp" -l prefix -d 'Text before the name of each tool' -r -f
complete -c claw-tool -n "__fish_claw_tool_using_subcommand mcp" -l pass-env -d 'Pass this variable to the server even if it looks like a credential; may be repeated' -r -f
complete -c claw-tool -n "__fish_claw_tool_using_subcommand mcp" -l call -d 'Call this tool of the server, with input from standard input, instead of writing tools' -r -f
complete -c claw-tool -n "__fish_claw_tool_using_subcommand mcp" -l start-timeout -d 'Time limit for the server to start and to list its tools, in seconds' -r -f
complete -c claw-tool -n "__fish_claw_tool_using_subcommand mcp" -l log -d 'Format of the diagnostics on standard error' -r -f -a "text\t'One line of text per diagnostic'
json\t'One JSON object per diagnostic'"
complete -c claw-tool -n "__fish_claw_tool_using_subcommand mcp" -l config -d 'Configuration file (default: clawutils/config.json in XDG_CONFIG_HOME or ~/.config)' -r -F
complete -c claw-tool -n "__fish_claw_tool_using_subcommand mcp" -l profile -d 'Profile of the configuration file to use' -r -f
complete -c claw-tool -n "__fish_claw_tool_using_subcommand mcp" -s h -l help -d 'Print help (see more with \'--help\')'
