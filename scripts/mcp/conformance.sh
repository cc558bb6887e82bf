#!/usr/bin/env bash
# conformance.sh: the conformance suite of the protocol and the linter of its Inspector, against the real handler with the
# fixture on top (crates/cli/examples/mcp_fixture), against the real handler alone, and against `outlast mcp` itself.
# Needs `scripts/agents/install.sh node tools` and `cargo build -p outlast-cli --bins --examples`. Exit 1 on any failure.
# shellcheck source-path=SCRIPTDIR/../agents
set -uo pipefail
. "$(dirname "$0")/../agents/lib.sh"
BIN=$AGENTS_DIR/tools/node_modules/.bin
FIXTURE=$(realpath "${FIXTURE:-$(dirname "$OUTLAST")/examples/mcp_fixture}") || exit 2
[ -x "$BIN/conformance" ] || { echo "SKIP: scripts/agents/install.sh node tools"; exit 77; }
W=$(mktemp -d "${TMPDIR:-/tmp}/outlast-conformance.XXXXXX")
export HOME=$W/home PATH=$AGENTS_DIR/node/node_modules/node/bin:$PATH
mkdir "$HOME"
pids=() worst=0

finish() {
    [ ${#pids[@]} -eq 0 ] || { kill "${pids[@]}" && wait "${pids[@]}"; }
    "$PYTHON" "$HERE/check.py" "$W" || worst=1
    [ $worst -eq 0 ] && rm -rf "$W"
    exit $worst
}
trap finish EXIT

# fixture NAME FLAGS...: sets URL.
fixture() {
    local name=$1
    shift
    "$FIXTURE" --state "$W/$name.state" --outlast "$OUTLAST" "$@" >"$W/$name.out" 2>"$W/$name.err" &
    pids+=($!)
    until_line "$W/$name.err" '^http' 20 || exit 1
    URL=$(head -1 "$W/$name.err")
}

# verdict NAME COMMAND...
verdict() {
    local name=$1
    shift
    if "$@" >"$W/said" 2>&1; then
        echo "PASS $name: $(grep -E '^(Total|Passed):' "$W/said" | tail -1)"
    else
        worst=1
        echo "FAIL $name"
        grep -E '✗|^Total:' "$W/said" || tail -5 "$W/said"
    fi
}

suite() { verdict "$1" "$BIN/conformance" server --url "$URL" -o "$W/results" "${@:2}"; }

fixture plain
# A tool that panics is answered with an error, and the server goes on.
panics() {
    "$PYTHON" - "$URL" <<'PY'
import json, sys, urllib.request
def call(name):
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": {}}}
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    answer = urllib.request.urlopen(urllib.request.Request(sys.argv[1], json.dumps(body).encode(), headers), timeout=20)
    text = answer.read().decode()
    return json.loads(text[text.index("{"):text.rindex("}") + 1])
for name in ("panics", "panics_later", "panics"):
    answer = call(name)
    assert answer["error"]["code"] == -32603 and "panic" in answer["error"]["message"], answer
assert "result" in call("test_simple_text")
PY
}
verdict "a panic is answered" panics
suite "2026-07-28, all" --suite all --spec-version 2026-07-28
suite "2026-07-28, frozen" --requirements 2026-07-28
for scenario in lifecycle capability-negotiation wire-fields request-state-removal mrtr-input request-headers \
    dispatch-and-envelope status-notifications required-task-error mrtr-composition; do
    suite "tasks-$scenario" --scenario "tasks-$scenario"
done
# Where the server asks the client an older client needs a session, which outlast does not give.
fixture sessions --sessions
suite "2025-11-25, all, in sessions" --suite all --spec-version 2025-11-25
suite "2025-11-25, frozen, in sessions" --requirements 2025-11-25
suite "2025-06-18, all, in sessions" --suite all --spec-version 2025-06-18

fixture bare --bare
for scenario in server-initialize server-session-lifecycle ping tools-list server-sse-polling \
    server-sse-multiple-streams dns-rebinding-protection; do
    suite "real handler, 2025-11-25, $scenario" --scenario $scenario --spec-version 2025-11-25
done
for scenario in tools-list server-sse-multiple-streams sep-2164-resource-not-found dns-rebinding-protection \
    http-header-validation input-required-result-missing-input-response input-required-result-unsupported-methods \
    input-required-result-ignore-extra-params input-required-result-validate-input; do
    suite "real handler, 2026-07-28, $scenario" --scenario $scenario --spec-version 2026-07-28
done
# Four checks of server-stateless call tools that only the fixture has.
suite_stateless() {
    "$BIN/conformance" server --url "$URL" --scenario server-stateless --spec-version 2026-07-28 -o "$W/stateless"
    "$PYTHON" - "$W/stateless" <<'PY'
import glob, json, sys
checks = [c for f in glob.glob(sys.argv[1] + "/**/checks.json", recursive=True) for c in json.load(open(f))]
failed = [c["id"] for c in checks if c["status"] == "FAILURE" and not c["errorMessage"].startswith("Not testable")]
print("Total:", sum(c["status"] == "SUCCESS" for c in checks), "passed, failed:", *failed)
sys.exit(bool(failed) or not checks)
PY
}
verdict "real handler, 2026-07-28, server-stateless" suite_stateless

# The linter says what it finds on standard error.
strict() {
    "$BIN/mcp-inspector" --cli "$@" --method tools/list --strict >"$W/list" 2>"$W/lint" || return
    cat "$W/lint"
    [ ! -s "$W/lint" ] && grep -q '"run"' "$W/list"
}
outlast_on_stdio() { OUTLAST_STATE_DIR=$W/stdio.state strict "$@" "$OUTLAST" mcp; }
verdict "lint, stdio, modern" outlast_on_stdio --protocol-era modern
verdict "lint, stdio, legacy" outlast_on_stdio --protocol-era legacy
OUTLAST_STATE_DIR=$W/http.state "$OUTLAST" mcp --http 127.0.0.1:0 2>"$W/http.err" &
pids+=($!)
until_line "$W/http.err" 'listening on' 20 || exit 1
URL=$(grep -oE 'http://[^;]+/mcp' "$W/http.err")
TOKEN=$(cat "$(sed -n 's/.*clients show the token of //p' "$W/http.err")")
verdict "lint, HTTP" strict --server-url "$URL" --transport http --header "Authorization: Bearer $TOKEN"
