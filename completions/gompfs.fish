function _gompfs_completion
    set -l current (commandline -ct)
    set -l words (commandline -opc)
    set -l unescaped (string unescape -- "$current" | string collect)
    if test -z "$unescaped"
        set unescaped (string trim -l -c '"\'' -- "$current" | string collect)
    end
    set -l answer (_GOMPFS_COMPLETE=fish gompfs $words[2..-1] "$unescaped" 2>/dev/null | string split0)
    set -l number 1
    while test (math $number + 2) -le (count $answer)
        set -l kind $answer[$number]
        set -l value $answer[(math $number + 1)]
        set -l text $answer[(math $number + 2)]
        set number (math $number + 3)
        if test $kind = dir
            __fish_complete_directories "$unescaped" | string split \n | string join0
        else if test $kind = file
            __fish_complete_path "$unescaped" | string split \n | string join0
        else if test -n "$text"
            printf '%s\t%s\0' "$value" "$text"
        else
            printf '%s\0' "$value"
        end
    end
end

complete --no-files --command gompfs --arguments "(_gompfs_completion | string split0)"
