#!/bin/sh
# remuda: active agent resolver
#
# Prints the name of the active coding agent, the same one that `remuda which` finds, with nothing but
# POSIX utilities. Run it (sh resolve.sh [DIR]), or source it and call remuda_active_agent [DIR].
#
# Known limits: config.toml is read line by line, so `agent` must be a plain string on a line of its own
# before the first table; ~user in REMUDA_HOME is not expanded; programs are looked for on PATH only.

# --- values, filled in by Remuda ------------------------------------------------------------------
_remuda_values() {
    names='@names@'
    programs='@programs@'
    default='@default@'
}
# --- end of values --------------------------------------------------------------------------------

# The body is a subshell: the caller's variables and options stay as they are.
remuda_active_agent() (
    _remuda_resolve "$@"
)

# Every source either sets $agent and succeeds, or fails and leaves the decision to the next one.
_remuda_resolve() {
    set +eu -f
    IFS=' '
    LC_ALL=C
    export LC_ALL
    unset CDPATH QUOTING_STYLE
    _remuda_values
    start=
    _remuda_folder "${1:-.}" && start=$folder
    _remuda_home
    _remuda_environment ||
        _remuda_launcher_context ||
        _remuda_sticky ||
        _remuda_config ||
        _remuda_sole ||
        agent=$default
    printf '%s\n' "$agent"
}

_remuda_warn() {
    printf 'remuda: %s\n' "$1" | command tr -c '\040-\176\n' '?' >&2
}

# Sets $agent from the raw value of a source, if it is exactly one of the names.
_remuda_name() {
    value=$2
    margin=${value%%[! ]*}
    value=${value#"$margin"}
    margin=${value##*[! ]}
    value=${value%"$margin"}
    [ -n "$value" ] || return 1
    case $value in
        *[!A-Za-z0-9_-]*) ;;
        *)
            value=$(printf '%s' "$value" | command tr 'A-Z' 'a-z')
            for agent in $names; do
                [ "$value" = "$agent" ] && return 0
            done
            ;;
    esac
    _remuda_warn "ignored an invalid agent name (source: $1)"
    return 1
}

# --- files and folders ----------------------------------------------------------------------------

# Sets $folder to the physical path of a folder. The dot keeps a newline at the end of the path.
_remuda_folder() {
    case $1 in
        /*) folder=$1 ;;
        *) folder=./$1 ;;
    esac
    folder=$(command cd -P -- "$folder" 2>/dev/null && command pwd -P && printf .) || return 1
    folder=${folder%??}
}

# Sets $real to the physical path of a file, links and all. Only for files that exist: their links do end.
_remuda_real_file() {
    real=$1
    while :; do
        link=${real##*/}
        _remuda_folder "${real%/*}/" || return 1
        real=${folder%/}/$link
        [ -L "$real" ] || return 0
        target=$(command ls -ld -- "$real" && printf .) || return 1
        target=${target#*" $real -> "}
        target=${target%??}
        case $target in
            /*) real=$target ;;
            *) real=${folder%/}/$target ;;
        esac
    done
}

# Fails with $reason set unless a file is regular, readable and not larger than $2 bytes.
_remuda_readable() {
    reason=not_a_regular_file
    [ -f "$1" ] || return 1
    reason=unreadable
    [ -r "$1" ] || return 1
    reason=too_large
    [ "$(command wc -c <"$1")" -le "$2" ]
}

# Sets $text to a small file's text without the newline at its end. A NUL, which no shell variable can hold,
# becomes a control character: just as invalid in a name.
_remuda_text() {
    _remuda_readable "$1" "$2" || return 1
    text=$(command tr '\000' '\001' <"$1" && printf .)
    text=${text%.}
    newline='
'
    text=${text%"$newline"}
}

# --- the sources, strongest first -----------------------------------------------------------------

_remuda_environment() {
    _remuda_name REMUDA_AGENT_BINARY "${REMUDA_AGENT_BINARY-}" ||
        _remuda_name AMPLIHACK_AGENT_BINARY "${AMPLIHACK_AGENT_BINARY-}"
}

# Walks up to the repository's root, at most 32 folders; behind a linked worktree comes its main checkout.
_remuda_launcher_context() {
    [ -n "$start" ] || return 1
    place=$start
    count=0
    while [ "$count" -lt 32 ]; do
        _remuda_context_in "$place" && return 0
        if [ -e "${place%/}/.git" ]; then
            _remuda_main_checkout "${place%/}" && _remuda_context_in "$main"
            return
        fi
        [ "$place" != / ] || return 1
        place=${place%/*}
        place=${place:-/}
        count=$((count + 1))
    done
    return 1
}

# Sets $main to the checkout that a linked worktree belongs to, unless that is a bare repository.
_remuda_main_checkout() {
    _remuda_text "$1/.git" 4096 || return 1
    case $text in
        'gitdir: '*) gitdir=${text#'gitdir: '} ;;
        *) return 1 ;;
    esac
    case $gitdir in
        /*) ;;
        *) gitdir=$1/$gitdir ;;
    esac
    _remuda_text "$gitdir/commondir" 4096 || return 1
    case $text in
        /*) ;;
        *) text=$gitdir/$text ;;
    esac
    _remuda_folder "$text" || return 1
    main=${folder%/*}
    main=${main:-/}
    [ "${folder##*/}" = .git ]
}

_remuda_context_in() {
    context=${1%/}/.claude/runtime/launcher_context.json
    [ -e "$context" ] || [ -L "$context" ] || return 1
    if _remuda_context_ok "$1"; then
        if launcher=$(command od -A n -v -t u1 <"$real" | _remuda_context_launcher); then
            _remuda_name launcher_context "$launcher"
            return
        fi
        reason=$launcher
    fi
    _remuda_warn "ignored $context: $reason"
    return 1
}

# Sets $real to the context file if it truly lies in folder $1 and is young and small enough to be read.
_remuda_context_ok() {
    reason=not_a_regular_file
    [ -f "$context" ] || return 1
    reason=unreadable
    _remuda_real_file "$context" || return 1
    reason=symlink_escape
    case $real in
        "${1%/}"/*) ;;
        *) return 1 ;;
    esac
    _remuda_readable "$real" 65536 || return 1
    reason=stale
    [ -z "$(command find "$real" -prune -mtime +0)" ]
}

# Reads a file's bytes as decimal numbers and prints its launcher, or fails and prints the reason.
_remuda_context_launcher() {
    command awk -v now="$(command date -u '+%Y-%m-%dT%H:%M:%SZ')" '
@parser@    '
}

_remuda_sticky() {
    [ -e "$config/active_agent" ] || return 1
    if ! _remuda_text "$config/active_agent" 1024; then
        _remuda_warn "ignored $config/active_agent: $reason"
        return 1
    fi
    _remuda_name sticky "$text"
}

# The nearest project configuration overrides the user's.
_remuda_config() {
    place=$start
    while [ -n "$place" ] && [ ! -f "${place%/}/.remuda/config.toml" ]; do
        [ "$place" != / ] || break
        place=${place%/*}
        place=${place:-/}
    done
    value=$(_remuda_config_agent "${place%/}/.remuda/config.toml") ||
        value=$(_remuda_config_agent "$config/config.toml") ||
        return 1
    _remuda_name config "$value"
}

# Prints the value of `agent` in a configuration file; fails when it has none.
_remuda_config_agent() {
    [ -f "$1" ] && [ -r "$1" ] || return 1
    command awk '
        NR == 1 { sub(/^\357\273\277/, "") }
        { sub(/\r$/, "") }
        /^[ \t]*\[/ { exit }
        /^[ \t]*agent[ \t]*=/ {
            sub(/^[ \t]*agent[ \t]*=[ \t]*/, "")
            quote = substr($0, 1, 1)
            rest = substr($0, 2)
            end = index(rest, quote)
            found = 1
            if (end && (quote == "\"" || quote == "\047")) print substr(rest, 1, end - 1)
            else print "(not a plain string)"
            exit
        }
        END { exit !found }
    ' <"$1"
}

# Exactly one of the agents is installed.
_remuda_sole() {
    count=0
    for pair in $programs; do
        _remuda_installed "${pair#*=}" || continue
        agent=${pair%%=*}
        count=$((count + 1))
    done
    [ "$count" -eq 1 ]
}

# Looks a program up on PATH; unlike command -v it is not misled by aliases and functions.
_remuda_installed() {
    case $1 in
        */*) [ -x "$1" ] && [ ! -d "$1" ]; return ;;
    esac
    rest=${PATH:+$PATH:}
    while [ -n "$rest" ]; do
        candidate=${rest%%:*}
        candidate=${candidate:-.}/$1
        rest=${rest#*:}
        [ -x "$candidate" ] && [ ! -d "$candidate" ] && return 0
    done
    return 1
}

# Sets $config to the configuration folder: below REMUDA_HOME, or the XDG one.
_remuda_home() {
    home=${HOME-$(_remuda_passwd_home)}
    home=${home%/}
    case ${REMUDA_HOME-} in
        '') ;;
        \~) config=$home/config; return ;;
        \~/*) config=$home/${REMUDA_HOME#\~/}/config; return ;;
        *) config=$REMUDA_HOME/config; return ;;
    esac
    case ${XDG_CONFIG_HOME-} in
        /*) config=$XDG_CONFIG_HOME/remuda ;;
        *) config=$home/.config/remuda ;;
    esac
}

_remuda_passwd_home() {
    command awk -F: -v uid="$(command id -u)" '$3 == uid { print $6; exit }' /etc/passwd
}

# When this file is the program itself, and not sourced by another, run.
if [ -f "$0" ] && command grep -q -e '^# remuda: active agent resolver$' -- "$0" 2>/dev/null; then
    remuda_active_agent "$@"
fi
