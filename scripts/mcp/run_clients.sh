#!/usr/bin/env bash
# run_clients.sh: the SDK clients (scripts/agents/install.sh node clients) drive run, wait, read and stop, over stdio and over
# HTTP. One PASS or FAIL line for each expectation; exit 1 on any FAIL, 77 when they are not installed.
# shellcheck source-path=SCRIPTDIR/../agents
. "$(dirname "$0")/../agents/lib.sh"
CLIENTS=$HERE/../mcp/clients
[ -d "$AGENTS_DIR/clients/node_modules" ] && [ -x "$AGENTS_DIR/pyvenv/bin/python" ] || {
    echo "SKIP: scripts/agents/install.sh node clients"
    exit 77
}
W=$(mktemp -d "${TMPDIR:-/tmp}/outlast-clients.XXXXXX")
export HOME=$W/home NO_PROXY=127.0.0.1,localhost PATH=$AGENTS_DIR/node/node_modules/node/bin:$PATH
export OUTLAST_STATE_DIR=$W/state
mkdir "$HOME"
SERVER='' MODEL='' worst=0

finish() {
    [ -z "$SERVER" ] || { kill "$SERVER" && wait "$SERVER"; }
    "$PYTHON" "$HERE/check.py" "$W" || worst=1
    [ $worst -eq 0 ] && rm -rf "$W"
    exit $worst
}
trap finish EXIT

# The packages are looked for beside the script.
ln -s "$AGENTS_DIR/clients/node_modules" "$W/node_modules"
cp "$CLIENTS"/*.mjs "$W"
cd "$W" || exit 1

drive() {
    local program
    for program in py_client.py fast_client.py ts_client.mjs ts1_client.mjs; do
        case $program in
        *.py) timeout 200 "$AGENTS_DIR/pyvenv/bin/python" "$CLIENTS/$program" "$@" 2>"$W/errors" ;;
        *) timeout 200 node "$program" "$@" 2>"$W/errors" ;;
        esac || {
            worst=1
            echo "FAIL $program"
            tail -5 "$W/errors"
        }
    done
}

echo "## stdio"
drive "$OUTLAST" mcp
echo "## HTTP"
exec {MODEL_IN}</dev/null
start_http
export OUTLAST_TOKEN=$TOKEN
drive "$URL"
