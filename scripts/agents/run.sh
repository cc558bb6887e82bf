#!/usr/bin/env bash
# run.sh [--http] [--play NAME] [AGENT...]: every agent must get what the play expects back to its model. One line each.
# The plays: run, background, stop. Exit 1 when one failed, 77 when none failed but one is not installed.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
. "$HERE/agents.sh"

play=run over=stdio worst=0
while [ $# -gt 0 ]; do
    case $1 in
    --http) over=http && shift ;;
    --play) play=$2 && shift 2 ;;
    *) break ;;
    esac
done
[ $# -gt 0 ] || set -- codex opencode claude pi gemini qwen

one() {
    begin "$1" "$play"
    [ $over = stdio ] || start_http
    "ask_$1"
}

for name in "$@"; do
    since=$SECONDS
    said=$(one "$name")
    code=$?
    printf '%-9s %-5s %-10s %s (%s s)\n' "$name" "$over" "$play" "$said" $((SECONDS - since))
    if [ $code -eq 1 ] || [ $worst -eq 0 ]; then worst=$code; fi
done
exit $worst
