#!/usr/bin/env bash
# run_restart.sh [AGENT...]: the server is killed while a command runs, and started again at the same address. The agent,
# which notices nothing or one failed call, gets the end of that command by the same id.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
. "$HERE/agents.sh"

# opencode, Gemini CLI and Qwen Code do not notice that their connection broke, and wait for the answer: 60 to 600 s,
# which is shortened here.
CALL_MS=10000
worst=0
[ $# -gt 0 ] || set -- codex opencode claude pi gemini qwen

one() {
    begin "$1" "$2"
    mkfifo "$W/begun" "$W/go" "$W/gate"
    start_http
    # pi counts in seconds, and notices by itself.
    [ "$1" != pi ] || CALL_MS=''
    "ask_$1" &
    local asking=$!
    timeout 60 cat "$W/begun" >"$W/begun.seen" || echo "  the command never began"
    # One that was told by its id is told before the server is killed; one in the foreground is cut off.
    [ "$2" != restart_background ] || until_line "$W/requests.jsonl" '"gate"' 60
    kill -KILL "$SERVER"
    wait "$SERVER" 2>/dev/null
    start_http "$ADDRESS"
    # The command goes to the background by itself a moment after its server is gone.
    until_line "$(echo "$W"/state/sessions/*/trace.jsonl)" '"type":"demoted"' 60
    # A FIFO is opened for writing once its reader is there: the model, and then the command.
    timeout 60 bash -c "echo > '$W/gate'" && timeout 60 bash -c "echo > '$W/go'"
    wait "$asking"
    CODE=$?
}

for play in restart_background restart_foreground; do
    for name in "$@"; do
        since=$SECONDS
        said=$(one "$name" "$play")
        code=$?
        printf '%-9s http  %-18s %s (%s s)\n' "$name" "$play" "$said" $((SECONDS - since))
        if [ $code -eq 1 ] || [ $worst -eq 0 ]; then worst=$code; fi
    done
done
exit $worst
