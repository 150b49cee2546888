# Runs claw-session with these arguments, and with the options on the command line that locate sessions.
_claw_session_output ()
{
	local index=1 option value
	local -a place
	while ((index < COMP_CWORD)); do
		option=${COMP_WORDS[index]}
		((++index))
		case $option in
		--workspace | --agent | --config | --profile) ;;
		*) continue ;;
		esac
		test "${COMP_WORDS[index]}" != = || ((++index))
		value=${COMP_WORDS[index]}
		place+=("$option" "${value/#\~/$HOME}")
	done
	claw-session "${place[@]}" "$@" 2>/dev/null
}

# Adds the lines on standard input that begin with the current word.
_claw_add_lines ()
{
	local line
	while IFS= read -r line; do
		[[ $line != "$1"* ]] || COMPREPLY+=("$(printf '%q' "$line")")
	done
}

# _claw_reply KIND WORD: completes a word. Without a reply, bash completes the names of files.
_claw_reply ()
{
	local word
	case $1 in
	'words '*) COMPREPLY=($(compgen -W "${1#words }" -- "$2")) ;;
	session) _claw_add_lines "$2" < <(_claw_session_output list --names) ;;
	record)
		for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
			_claw_add_lines "$2" < <(_claw_session_output history --ids -n 1000 -- "$word")
			test "${#COMPREPLY[@]}" -eq 0 || break
		done
		;;
	command) COMPREPLY=($(compgen -c -- "$2")) ;;
	directory) compopt +o default -o dirnames 2>/dev/null ;;
	other) compopt +o default 2>/dev/null ;;
	esac
}
