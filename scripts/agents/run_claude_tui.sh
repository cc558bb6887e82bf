#!/usr/bin/env bash
# run_claude_tui.sh [--http] [PLAY...]: Claude Code as a person sees it, in a terminal of tmux, which alone takes tasks:
#   task              the model is woken when the task has completed
#   taskstop          the model stops its task
#   resume_session    Claude Code leaves while a command runs and comes back: the command ended with it, which is told
#   resume_detached   the same with a detached command, whose end is told
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
. "$HERE/agents.sh"

over=stdio worst=0
[ "${1:-}" != --http ] || { over=http && shift; }
# Over HTTP the session is the server's own, which does not end with Claude Code.
[ $# -gt 0 ] || [ $over = http ] || set -- task taskstop resume_session resume_detached
[ $# -gt 0 ] || set -- task taskstop resume_detached
command -v tmux >/dev/null || { echo "SKIP: tmux is missing"; exit 77; }

terminal() { tmux -S "$W/tmux" "$@"; }

# until_screen TEXT [SECONDS]: tmux tells nobody that a screen has changed, so it is looked at again and again.
until_screen() {
    local bound=$((SECONDS + ${2:-30}))
    until terminal capture-pane -p -t claude 2>/dev/null | grep -qF -- "$1"; do
        [ $SECONDS -lt $bound ] && is_open || return 1
        read -rt 0.1 <> <(:)
    done
    return 0
}

# open ARGS...: Claude Code in a window, ready for input. `closed` waits for its end.
open() {
    local line="$BIN --mcp-config $W/mcp.json --strict-mcp-config --allowedTools 'mcp__outlast__*' $*"
    terminal new-session -d -s claude -x 150 -y 45 "$line 2>>$W/agent.err; tmux -S $W/tmux wait-for -S closed" {MODEL_IN}>&-
    TMUX_PID=$(terminal display-message -p '#{pid}')
    until_screen '❯' 60
}

# say TEXT DONE...: types it and sends it until DONE holds: what comes before somebody reads is lost.
say() {
    local text=$1 _
    shift
    for _ in {1..10}; do
        terminal send-keys -t claude C-u
        terminal send-keys -t claude -l "$text"
        until_screen "$text" 3
        terminal send-keys -t claude Enter
        "$@" && return
    done
    return 1
}

asked() { until_line "$W/requests.jsonl" '"answer": \["tool"' 4; }
is_open() { terminal has-session -t claude 2>/dev/null; }
closed() {
    timeout "${1:-4}" tmux -S "$W/tmux" wait-for closed 2>/dev/null
    ! is_open
}
asks_or_closed() { until_screen "$1" 4 || ! is_open; }
please() { open "$@" && say "please run it" asked; }

# leave [QUESTION]: it may ask where a task runs; the answer that is marked is to stop.
leave() {
    if [ -n "${1:-}" ]; then
        say /exit asks_or_closed "$1"
        if is_open; then terminal send-keys -t claude Enter; fi
        closed 30
    else
        say /exit closed
    fi
    CODE=$?
}

one() {
    [ "$1" != taskstop ] || export ENABLE_TOOL_SEARCH=false # which would hide TaskStop
    local search=${ENABLE_TOOL_SEARCH:-}
    begin claude "$1"
    [ -z "$search" ] || export ENABLE_TOOL_SEARCH=$search
    export TERM=xterm-256color
    [ $over = stdio ] || start_http
    prepare_claude
    case $1 in
    task)
        please
        until_line "$W/requests.jsonl" '<task-notification>' 60
        leave
        ;;
    taskstop)
        please
        until_line "$W/requests.jsonl" '"answer": \["text", "FINAL' 60
        [ $over = http ] || until_line "$W/mcp.log" '"tasks/cancel"' 30
        leave
        ;;
    resume_*)
        mkfifo "$W/begun" "$W/go"
        please
        timeout 60 cat "$W/begun" >"$W/begun.seen"
        until_line "$W/requests.jsonl" '"answer": \["text", "waiting' 60
        leave 'Exit and stop tasks'
        open --continue
        [ "$1" != resume_detached ] || timeout 60 bash -c "echo > '$W/go'"
        until_line "$W/requests.jsonl" '<task-notification>' 90
        leave
        ;;
    esac
}

for play in "$@"; do
    since=$SECONDS
    said=$(one "$play")
    code=$?
    printf '%-9s %-5s %-16s %s (%s s)\n' claude "$over" "$play" "$said" $((SECONDS - since))
    if [ $code -eq 1 ] || [ $worst -eq 0 ]; then worst=$code; fi
done
exit $worst
