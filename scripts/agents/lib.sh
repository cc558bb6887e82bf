# shellcheck shell=bash
# Sourced by the scripts beside it: one sealed world for one run of one agent, with a home, a project, a model that plays
# a script, outlast's server behind a tee or over HTTP, and the verdict at its end.
# Exit codes: 0 pass, 1 fail, 77 not installed.
set -uo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
AGENTS_DIR=$(realpath -m "${AGENTS_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/outlast-agents}")
OUTLAST=$(realpath "${OUTLAST:-$HERE/../../target/debug/outlast}") || exit 2
SECONDS_FOR_AGENT=${SECONDS_FOR_AGENT:-120}
PYTHON=$(command -v python3) || { echo "python3 is missing" >&2; exit 77; }

# until_line FILE REGEX SECONDS: waits until the file has such a line.
until_line() {
    local lines follower found
    exec {lines}< <(exec tail -n +1 -F "$1" 2>/dev/null)
    follower=$!
    timeout "$3" grep -qm1 -E "$2" <&"$lines"
    found=$?
    kill "$follower" 2>/dev/null
    exec {lines}<&-
    return $found
}

# begin AGENT PLAY: sets BIN (the agent), W (the work folder), BASE (the model), ENTRY (a program that is the server), and
# goes into the project folder. URL and TOKEN are set by start_http.
begin() {
    AGENT=$1 PLAY=$HERE/plays/$2.json URL='' TOKEN='' SERVER='' MODEL='' CODE=1
    BIN=$AGENTS_DIR/$AGENT/node_modules/.bin/$AGENT
    [ -x "$BIN" ] || { echo "SKIP: $AGENT is not installed (scripts/agents/install.sh $AGENT)"; exit 77; }
    W=$(mktemp -d "${TMPDIR:-/tmp}/outlast-agents.XXXXXX")
    mkdir -p "$W/home" "$W/proj"
    trap finish EXIT
    local name
    for name in $(compgen -e); do # no key, no proxy, no XDG_* of the caller gets through
        case $name in PATH | TERM | LANG | LC_ALL | TMPDIR | USER | LOGNAME | SHELL | PWD | SHLVL) ;; *) export -n "${name?}" ;; esac
    done
    export HOME=$W/home NO_PROXY=127.0.0.1,localhost PATH=$AGENTS_DIR/node/node_modules/node/bin:$PATH
    mkfifo "$W/model.in"
    "$PYTHON" "$HERE/fake_model.py" "$PLAY" "$W" <"$W/model.in" >"$W/model.out" 2>"$W/model.err" &
    MODEL=$!
    exec {MODEL_IN}>"$W/model.in"
    until_line "$W/model.out" '^http' 20 || { echo "FAIL: the model does not start"; exit 1; }
    BASE=$(head -1 "$W/model.out")
    ENTRY=$W/mcp-server
    printf '#!/bin/sh\nexport OUTLAST_STATE_DIR="%s"\nexec "%s" "%s" "%s" "%s" mcp\n' \
        "$W/state" "$PYTHON" "$HERE/tee.py" "$W/mcp.log" "$OUTLAST" >"$ENTRY"
    chmod +x "$ENTRY"
    cd "$W/proj" && git init -q .
}

# start_http [ADDRESS]: sets SERVER (its pid), ADDRESS, URL and TOKEN.
start_http() {
    : >"$W/server.err"
    OUTLAST_STATE_DIR=$W/state "$OUTLAST" mcp --http "${1:-127.0.0.1:0}" >"$W/server.out" 2>"$W/server.err" {MODEL_IN}>&- &
    SERVER=$!
    until_line "$W/server.err" 'listening on' 20 || { echo "FAIL: no server: $(cat "$W/server.err")"; exit 1; }
    URL=$(grep -oE 'http://[^;]+/mcp' "$W/server.err" | head -1)
    ADDRESS=${URL#http://} ADDRESS=${ADDRESS%/mcp}
    TOKEN=$(cat "$(sed -n 's/.*clients show the token of //p' "$W/server.err")")
}

# agent COMMAND...: runs it within its bound, its streams go into the work folder.
agent() {
    timeout "$SECONDS_FOR_AGENT" "$@" </dev/null >"$W/agent.out" 2>"$W/agent.err" {MODEL_IN}>&-
    CODE=$?
}

finish() {
    [ -z "${TMUX_PID:-}" ] || kill "$TMUX_PID" 2>/dev/null
    [ -z "$SERVER" ] || { kill "$SERVER" 2>/dev/null && wait "$SERVER"; }
    [ -z "$MODEL" ] || { exec {MODEL_IN}>&-; wait "$MODEL"; }
    cd /
    local verdict code
    verdict=$("$PYTHON" "$HERE/check.py" "$W" "$PLAY")
    code=$?
    echo "$verdict"
    if [ $code -eq 0 ] && [ -z "${KEEP:-}" ]; then
        rm -rf "$W"
    else
        echo "  the agent ended with $CODE; kept: $W (requests.jsonl, mcp.log, agent.out, agent.err)"
    fi
    exit $code
}
