# shellcheck shell=bash
# Sourced after lib.sh: how each agent is pointed at the model and at outlast, and is asked once. Each has its own shell
# switched off, so that a command can only go through outlast.

# The server in the JSON that most agents share. $1: the key of an address. CALL_MS: how long a call may take.
entry() {
    local bound=''
    [ -z "${CALL_MS:-}" ] || bound=", \"timeout\": $CALL_MS"
    if [ -n "$URL" ]; then
        echo "\"$1\": \"$URL\", \"headers\": {\"Authorization\": \"Bearer $TOKEN\"}$bound"
    else
        echo "\"command\": \"$ENTRY\", \"args\": []$bound"
    fi
}

ask_codex() {
    export CODEX_HOME=$HOME/.codex FAKE_KEY=test OUTLAST_TOKEN=$TOKEN
    mkdir -p "$CODEX_HOME"
    local where="command = \"$ENTRY\""
    [ -z "$URL" ] || where="url = \"$URL\"
bearer_token_env_var = \"OUTLAST_TOKEN\""
    cat >"$CODEX_HOME/config.toml" <<TOML
model = "fake"
model_provider = "fake"
[model_providers.fake]
name = "fake"
base_url = "$BASE/v1"
wire_api = "responses"
env_key = "FAKE_KEY"
request_max_retries = 0
stream_max_retries = 0
[analytics]
enabled = false
[mcp_servers.outlast]
$where
startup_timeout_sec = 20
default_tools_approval_mode = "approve"
[features]
shell_tool = false
unified_exec = false
TOML
    agent "$BIN" exec --skip-git-repo-check --json "please run it"
}

ask_opencode() {
    export OPENCODE_DISABLE_AUTOUPDATE=1 OPENCODE_DISABLE_MODELS_FETCH=1 OPENCODE_DISABLE_LSP_DOWNLOAD=1
    export OPENCODE_DISABLE_DEFAULT_PLUGINS=1
    local where="\"type\": \"local\", \"command\": [\"$ENTRY\"]"
    [ -z "$URL" ] || where="\"type\": \"remote\", \"oauth\": false, $(entry url)"
    cat >opencode.json <<JSON
{"\$schema": "https://opencode.ai/config.json", "autoupdate": false, "share": "disabled",
 "model": "fake/fake", "small_model": "fake/fake",
 "provider": {"fake": {"npm": "@ai-sdk/openai-compatible", "name": "fake",
   "options": {"baseURL": "$BASE/v1", "apiKey": "test"},
   "models": {"fake": {"name": "fake", "tool_call": true, "limit": {"context": 100000, "output": 8000}}}}},
 "mcp": {"outlast": {$where, "enabled": true}},
 "permission": {"bash": "deny", "outlast_*": "allow"}}
JSON
    agent "$BIN" run --format json "please run it"
}

# The environment and the configuration of Claude Code, with the answers to its first questions.
prepare_claude() {
    export ANTHROPIC_BASE_URL=$BASE ANTHROPIC_API_KEY=test IS_SANDBOX=1 CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1
    export DISABLE_AUTOUPDATER=1 DISABLE_TELEMETRY=1 DISABLE_ERROR_REPORTING=1
    local type=stdio
    [ -z "$URL" ] || type=http
    echo "{\"mcpServers\": {\"outlast\": {\"type\": \"$type\", $(entry url)}}}" >"$W/mcp.json"
    cat >"$HOME/.claude.json" <<JSON
{"hasCompletedOnboarding": true, "theme": "dark", "numStartups": 5,
 "customApiKeyResponses": {"approved": ["test"], "rejected": []},
 "projects": {"$W/proj": {"hasTrustDialogAccepted": true, "hasCompletedProjectOnboarding": true, "allowedTools": []}}}
JSON
}

ask_claude() {
    prepare_claude
    agent "$BIN" -p "please run it" --mcp-config "$W/mcp.json" --strict-mcp-config --allowedTools "mcp__outlast__*" \
        --disallowedTools Bash --output-format stream-json --verbose
}

ask_pi() {
    export PI_OFFLINE=1 PI_CODING_AGENT_DIR=$HOME/.pi/agent
    mkdir -p "$PI_CODING_AGENT_DIR"
    cat >"$PI_CODING_AGENT_DIR/models.json" <<JSON
{"providers": {"fake": {"baseUrl": "$BASE/v1", "api": "openai-completions", "apiKey": "test",
  "models": [{"id": "fake", "name": "fake", "reasoning": false, "input": ["text"], "contextWindow": 100000,
    "maxTokens": 8000, "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}}]}}}
JSON
    echo "{\"mcpServers\": {\"outlast\": {$(entry url), \"exposure\": \"direct\"}}}" >"$PI_CODING_AGENT_DIR/mcp.json"
    agent "$BIN" -p --mode json --no-session --model fake/fake --exclude-tools bash "please run it"
}

ask_gemini() {
    export GEMINI_API_KEY=test GOOGLE_GEMINI_BASE_URL=$BASE GEMINI_TELEMETRY_ENABLED=false
    export GEMINI_CLI_TRUST_WORKSPACE=true GEMINI_CLI_NO_RELAUNCH=true
    mkdir -p "$HOME/.gemini"
    cat >"$HOME/.gemini/settings.json" <<JSON
{"general": {"enableAutoUpdate": false, "disableAutoUpdate": true}, "telemetry": {"enabled": false},
 "privacy": {"usageStatisticsEnabled": false}, "security": {"auth": {"selectedType": "gemini-api-key"}},
 "tools": {"exclude": ["run_shell_command"]}, "mcpServers": {"outlast": {$(entry httpUrl), "trust": true}}}
JSON
    agent "$BIN" --skip-trust -m gemini-2.5-flash -o stream-json -p "please run it"
}

ask_qwen() {
    export OPENAI_API_KEY=test OPENAI_BASE_URL=$BASE/v1 OPENAI_MODEL=fake QWEN_TELEMETRY_ENABLED=false
    export NO_UPDATE_NOTIFIER=1
    mkdir -p "$HOME/.qwen"
    cat >"$HOME/.qwen/settings.json" <<JSON
{"general": {"disableAutoUpdate": true, "enableAutoUpdate": false}, "telemetry": {"enabled": false},
 "privacy": {"usageStatisticsEnabled": false}, "security": {"auth": {"selectedType": "openai"}},
 "tools": {"toolSearch": {"enabled": false}}, "mcpServers": {"outlast": {$(entry httpUrl), "trust": true}}}
JSON
    agent "$BIN" --auth-type openai --openai-api-key test --openai-base-url "$BASE/v1" -m fake \
        --exclude-tools run_shell_command -o stream-json "please run it"
}
