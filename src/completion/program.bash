FUNCTION ()
{
	local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} command='' options='' kind=file each
	COMPREPLY=()
	# bash splits --option=value into three words: the option, the = and the value.
	case $word,$previous in
	=,*) word='' ;;
	*,=) previous=${COMP_WORDS[COMP_CWORD-2]} ;;
	esac
	for each in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
		case $command,$each in
		,--) break ;;
		*) case $each in COMMANDS) command=${command:-$each} ;; esac ;;
		esac
	done
	case $command in
		CASES
	esac
	case $word in
	-*) COMPREPLY=($(compgen -W "$options" -- "$word")) ;;
	*) _claw_reply "$kind" "$word" ;;
	esac
}

complete -o default -F FUNCTION PROGRAM
