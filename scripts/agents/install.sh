#!/usr/bin/env bash
# install.sh [node|codex|opencode|claude|pi|gemini|qwen|clients|tools ...]: puts pinned versions below AGENTS_DIR. Without
# arguments: all of them, about 2 GB. Safe to repeat. Needs python3 3.10, git, and npm 10 with any Node 20.
set -euo pipefail
AGENTS_DIR=$(realpath -m "${AGENTS_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/outlast-agents}")
export PATH="$AGENTS_DIR/node/node_modules/node/bin:$PATH" # npm itself runs on the pinned Node once that is there

# put FOLDER PACKAGE@VERSION...: an npm project of its own for each folder.
put() {
    local dir=$AGENTS_DIR/$1
    shift
    mkdir -p "$dir" && cd "$dir"
    [ -f package.json ] || echo '{"private": true}' >package.json
    npm install --save-exact --no-audit --no-fund --no-update-notifier --loglevel=error "$@"
}

# prepare FOLDER PACKAGE: runs the package's install script also where npm holds such scripts back.
prepare() {
    cd "$AGENTS_DIR/$1"
    if npm install-scripts ls >/dev/null 2>&1; then npm install-scripts approve "$2" --loglevel=error >/dev/null; fi
    npm rebuild --loglevel=error >/dev/null
}

one() {
    case $1 in
    node) put node node@24.21.0 && prepare node node ;;
    codex) put codex @openai/codex@0.171.0 ;;
    opencode) put opencode opencode-ai@1.18.33 && prepare opencode opencode-ai ;;
    claude) put claude @anthropic-ai/claude-code@2.1.332 && prepare claude @anthropic-ai/claude-code ;;
    pi) put pi @earendil-works/pi-coding-agent@1.6.0 ;;
    gemini) put gemini @google/gemini-cli@0.61.0 ;;
    qwen) put qwen @qwen-code/qwen-code@0.24.4 ;;
    clients)
        put clients @modelcontextprotocol/client@2.4.0 @modelcontextprotocol/sdk@1.32.2
        [ -x "$AGENTS_DIR/pyvenv/bin/pip" ] || python3 -m venv "$AGENTS_DIR/pyvenv"
        "$AGENTS_DIR/pyvenv/bin/pip" install -q mcp==2.3.0 fastmcp==4.2.3
        ;;
    tools) put tools @modelcontextprotocol/conformance@0.2.0-alpha.12 @modelcontextprotocol/inspector@2.12.0 ;;
    *) echo "install.sh: unknown: $1" >&2 && exit 2 ;;
    esac
}

[ $# -gt 0 ] || set -- node codex opencode claude pi gemini qwen clients tools
for name in "$@"; do
    one "$name"
    echo "installed: $name"
done
