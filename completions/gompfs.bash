_gompfs_completion() {
    local program=$1 answer=() number value all_directories=1
    command -v -- "$program" >/dev/null || program=gompfs
    COMPREPLY=()
    mapfile -d '' -t answer < <(
        _GOMPFS_COMPLETE=bash "$program" "${COMP_LINE:0:COMP_POINT}" "$2" 2>/dev/null
    )
    for ((number = 0; number + 2 < ${#answer[@]}; number += 3)); do
        value=${answer[number + 1]}
        case ${answer[number]} in
            dir) compopt -o dirnames; return ;;
            file) compopt -o default; return ;;
        esac
        [[ $value == */ || $value == */\' || $value == *= ]] || all_directories=
        COMPREPLY+=("$value")
    done
    [[ $all_directories ]] && compopt -o nospace
    return 0
}

complete -o nosort -F _gompfs_completion gompfs
