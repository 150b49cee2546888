# Completion of claw-config. `make completions` writes this file.

# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_claw_config_global_optspecs
    string join \n log= config= profile= h/help V/version
end

function __fish_claw_config_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_claw_config_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_claw_config_using_subcommand
    set -l cmd (__fish_claw_config_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c claw-config -n "__fish_claw_config_needs_command" -l log -d 'Format of the diagnostics on standard error' -r -f -a "text\t'One line of text per diagnostic'
json\t'One JSON object per diagnostic'"
complete -c claw-config -n "__fish_claw_config_needs_command" -l config -d 'Configuration file (default: clawutils/config.json in XDG_CONFIG_HOME or ~/.config)' -r -F
complete -c claw-config -n "__fish_claw_config_needs_command" -l profile -d 'Profile of the configuration file to use' -r -f
complete -c claw-config -n "__fish_claw_config_needs_command" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c claw-config -n "__fish_claw_config_needs_command" -s V -l version -d 'Print version'
complete -c claw-config -n "__fish_claw_config_needs_command" -f -a "list" -d 'List settings: key, value, and the place that the value comes from'
complete -c claw-config -n "__fish_claw_config_needs_command" -f -a "get" -d 'Print the value of a setting'
complete -c claw-config -n "__fish_claw_config_needs_command" -f -a "set" -d 'Write a setting into the configuration file'
complete -c claw-config -n "__fish_claw_config_needs_command" -f -a "unset" -d 'Remove a setting from the configuration file'
complete -c claw-config -n "__fish_claw_config_needs_command" -f -a "path" -d 'Print the path of the configuration file'
complete -c claw-config -n "__fish_claw_config_needs_command" -f -a "check" -d 'Check the configuration file, all its profiles, and the files and programs that they name'
complete -c claw-config -n "__fish_claw_config_needs_command" -f -a "export" -d 'Print the shell command that sets the variable of a setting'
complete -c claw-config -n "__fish_claw_config_needs_command" -f -a "shell" -d 'Print shell code that sets the options of a script'
complete -c claw-config -n "__fish_claw_config_needs_command" -f -a "stage" -d 'Write the stage of the guard that may cure a refusal'
complete -c claw-config -n "__fish_claw_config_needs_command" -f -a "say" -d 'Write a diagnostic to standard error, in the format of --log'
complete -c claw-config -n "__fish_claw_config_using_subcommand list" -l log -d 'Format of the diagnostics on standard error' -r -f -a "text\t'One line of text per diagnostic'
json\t'One JSON object per diagnostic'"
complete -c claw-config -n "__fish_claw_config_using_subcommand list" -l config -d 'Configuration file (default: clawutils/config.json in XDG_CONFIG_HOME or ~/.config)' -r -F
complete -c claw-config -n "__fish_claw_config_using_subcommand list" -l profile -d 'Profile of the configuration file to use' -r -f
complete -c claw-config -n "__fish_claw_config_using_subcommand list" -l changed -d 'List only settings whose value is not the default'
complete -c claw-config -n "__fish_claw_config_using_subcommand list" -l json -d 'Write one JSON object per setting'
complete -c claw-config -n "__fish_claw_config_using_subcommand list" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c claw-config -n "__fish_claw_config_using_subcommand get" -l log -d 'Format of the diagnostics on standard error' -r -f -a "text\t'One line of text per diagnostic'
json\t'One JSON object per diagnostic'"
complete -c claw-config -n "__fish_claw_config_using_subcommand get" -l config -d 'Configuration file (default: clawutils/config.json in XDG_CONFIG_HOME or ~/.config)' -r -F
complete -c claw-config -n "__fish_claw_config_using_subcommand get" -l profile -d 'Profile of the configuration file to use' -r -f
complete -c claw-config -n "__fish_claw_config_using_subcommand get" -l json -d 'Write the value as JSON'
complete -c claw-config -n "__fish_claw_config_using_subcommand get" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c claw-config -n "__fish_claw_config_using_subcommand set" -l log -d 'Format of the diagnostics on standard error' -r -f -a "text\t'One line of text per diagnostic'
json\t'One JSON object per diagnostic'"
complete -c claw-config -n "__fish_claw_config_using_subcommand set" -l config -d 'Configuration file (default: clawutils/config.json in XDG_CONFIG_HOME or ~/.config)' -r -F
complete -c claw-config -n "__fish_claw_config_using_subcommand set" -l profile -d 'Profile of the configuration file to use' -r -f
complete -c claw-config -n "__fish_claw_config_using_subcommand set" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c claw-config -n "__fish_claw_config_using_subcommand unset" -l log -d 'Format of the diagnostics on standard error' -r -f -a "text\t'One line of text per diagnostic'
json\t'One JSON object per diagnostic'"
complete -c claw-config -n "__fish_claw_config_using_subcommand unset" -l config -d 'Configuration file (default: clawutils/config.json in XDG_CONFIG_HOME or ~/.config)' -r -F
complete -c claw-config -n "__fish_claw_config_using_subcommand unset" -l profile -d 'Profile of the configuration file to use' -r -f
complete -c claw-config -n "__fish_claw_config_using_subcommand unset" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c claw-config -n "__fish_claw_config_using_subcommand path" -l log -d 'Format of the diagnostics on standard error' -r -f -a "text\t'One line of text per diagnostic'
json\t'One JSON object per diagnostic'"
complete -c claw-config -n "__fish_claw_config_using_subcommand path" -l config -d 'Configuration file (default: clawutils/config.json in XDG_CONFIG_HOME or ~/.config)' -r -F
complete -c claw-config -n "__fish_claw_config_using_subcommand path" -l profile -d 'Profile of the configuration file to use' -r -f
complete -c claw-config -n "__fish_claw_config_using_subcommand path" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c claw-config -n "__fish_claw_config_using_subcommand check" -l log -d 'Format of the diagnostics on standard error' -r -f -a "text\t'One line of text per diagnostic'
json\t'One JSON object per diagnostic'"
complete -c claw-config -n "__fish_claw_config_using_subcommand check" -l config -d 'Configuration file (default: clawutils/config.json in XDG_CONFIG_HOME or ~/.config)' -r -F
complete -c claw-config -n "__fish_claw_config_using_subcommand check" -l profile -d 'Profile of the configuration file to use' -r -f
complete -c claw-config -n "__fish_claw_config_using_subcommand check" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c claw-config -n "__fish_claw_config_using_subcommand export" -l log -d 'Format of the diagnostics on standard error' -r -f -a "text\t'One line of text per diagnostic'
json\t'One JSON object per diagnostic'"
complete -c claw-config -n "__fish_claw_config_using_subcommand export" -l config -d 'Configuration file (default: clawutils/config.json in XDG_CONFIG_HOME or ~/.config)' -r -F
complete -c claw-config -n "__fish_claw_config_using_subcommand export" -l profile -d 'Profile of the configuration file to use' -r -f
complete -c claw-config -n "__fish_claw_config_using_subcommand export" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c claw-config -n "__fish_claw_config_using_subcommand shell" -l log -d 'Format of the diagnostics on standard error' -r -f -a "text\t'One line of text per diagnostic'
json\t'One JSON object per diagnostic'"
complete -c claw-config -n "__fish_claw_config_using_subcommand shell" -l config -d 'Configuration file (default: clawutils/config.json in XDG_CONFIG_HOME or ~/.config)' -r -F
complete -c claw-config -n "__fish_claw_config_using_subcommand shell" -l profile -d 'Profile of the configuration file to use' -r -f
complete -c claw-config -n "__fish_claw_config_using_subcommand shell" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c claw-config -n "__fish_claw_config_using_subcommand stage" -l log -d 'Format of the diagnostics on standard error' -r -f -a "text\t'One line of text per diagnostic'
json\t'One JSON object per diagnostic'"
complete -c claw-config -n "__fish_claw_config_using_subcommand stage" -l config -d 'Configuration file (default: clawutils/config.json in XDG_CONFIG_HOME or ~/.config)' -r -F
complete -c claw-config -n "__fish_claw_config_using_subcommand stage" -l profile -d 'Profile of the configuration file to use' -r -f
complete -c claw-config -n "__fish_claw_config_using_subcommand stage" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c claw-config -n "__fish_claw_config_using_subcommand say" -l log -d 'Format of the diagnostics on standard error' -r -f -a "text\t'One line of text per diagnostic'
json\t'One JSON object per diagnostic'"
complete -c claw-config -n "__fish_claw_config_using_subcommand say" -l config -d 'Configuration file (default: clawutils/config.json in XDG_CONFIG_HOME or ~/.config)' -r -F
complete -c claw-config -n "__fish_claw_config_using_subcommand say" -l profile -d 'Profile of the configuration file to use' -r -f
complete -c claw-config -n "__fish_claw_config_using_subcommand say" -s h -l help -d 'Print help (see more with \'--help\')'
