"""A stdio MCP server on the other end of two pipes, and one line for each expectation. No SDK, no packages."""
import json
import os
import re
import subprocess
import sys
import threading
import time

NAMESPACE, TASKS, MODERN = "io.modelcontextprotocol/", "io.modelcontextprotocol/tasks", "2026-07-28"
LEGACY = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
OUTLAST = os.environ.get("OUTLAST", "outlast")
ID = r"wrk_[0-9a-f]{32}"
failures = 0


def check(holds, what, seen=None):
    global failures
    failures += not holds
    told = "" if holds or seen is None else f": {json.dumps(seen)[:600]}"
    print(("PASS " if holds else "FAIL ") + what + told, flush=True)


def end():
    sys.exit(1 if failures else 0)


def meta(tasks=False, version=MODERN, **more):
    """What a request of today's protocol says of itself."""
    return {NAMESPACE + "protocolVersion": version, NAMESPACE + "clientInfo": {"name": "checks", "version": "0"},
            NAMESPACE + "clientCapabilities": {"extensions": {TASKS: {}}} if tasks else {}, **more}


class Server:
    """`outlast mcp`. `answers` of requests are awaited by their id; `notes` are the notifications so far."""

    def __init__(self, *arguments):
        command = [OUTLAST, "mcp", *arguments]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, bufsize=1)
        self.answers, self.notes, self.odd, self.errors, self.count = {}, [], [], [], 0
        self.changed = threading.Condition()
        self.readers = [threading.Thread(target=target, daemon=True) for target in (self._read, self._read_errors)]
        for reader in self.readers:
            reader.start()

    def _read(self):
        for line in self.process.stdout:
            with self.changed:
                try:
                    message = json.loads(line)
                    if "method" in message:
                        self.notes.append(message)
                    elif "id" in message or code(message) in (-32600, -32700):   # what has no id is answered without
                        self.answers[message.get("id")] = message
                    else:
                        self.odd.append(line)
                except (ValueError, TypeError, AttributeError):
                    self.odd.append(line)       # a fault, told at the end
                self.changed.notify_all()

    def _read_errors(self):
        for line in self.process.stderr:
            self.errors.append(line)

    def raw(self, text):
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()

    def send(self, method, params=None, meta=None, id=None):
        if id is None:
            self.count += 1
            id = self.count
        params = dict(params or {})
        if meta is not None:
            params["_meta"] = meta
        self.raw(json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
        return id

    def note(self, method, params):
        self.raw(json.dumps({"jsonrpc": "2.0", "method": method, "params": params}))

    def wait(self, id, seconds=30):
        with self.changed:
            self.changed.wait_for(lambda: id in self.answers, seconds)
            return self.answers.pop(id, {"none": f"no answer in {seconds} s"})

    def ask(self, method, params=None, meta=None, seconds=30):
        return self.wait(self.send(method, params, meta), seconds)

    def tool(self, name, meta=None, seconds=60, **arguments):
        return self.ask("tools/call", {"name": name, "arguments": arguments}, meta, seconds)

    def run(self, command, meta=None, **more):
        return self.tool("run", meta, command=command, **more)

    def initialize(self, version="2025-11-25", capabilities=None):
        client = {"name": "checks", "version": "0"}
        given = {"protocolVersion": version, "capabilities": capabilities or {}, "clientInfo": client}
        answer = self.ask("initialize", given).get("result", {})
        self.note("notifications/initialized", {})
        return answer

    def task(self, id, seconds=30):
        """The task once it does not work any more; asked again each 200 ms, as a client must."""
        bound, tick = time.monotonic() + seconds, threading.Event()
        while True:
            task = self.ask("tasks/get", {"taskId": id}, meta(True)).get("result", {})
            if task.get("status") != "working" or time.monotonic() > bound:
                return task
            tick.wait(0.2)

    def close(self, seconds=20, by=None):
        """Closes its input, or sends a signal; gives the exit code. Whatever it printed must have been messages."""
        if by is None:
            self.process.stdin.close()
        else:
            self.process.send_signal(by)
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return None
        for reader in self.readers:
            reader.join(5)
        if by is not None and self.process.stdin:
            self.process.stdin.close()
        if self.odd:
            check(False, "only messages on standard output", self.odd)
        return code


def code(answer):
    return answer.get("error", {}).get("code")


def text(answer):
    return "\n".join(part.get("text", "") for part in answer.get("result", {}).get("content", []))


def is_error(answer):
    return answer.get("result", {}).get("isError") is True


def view(answer):
    """The JSON object for programs."""
    return (answer.get("result", {}).get("_meta") or {}).get("outlast/command") or {}


def id_in(answer):
    return (re.search(ID, text(answer)) or [""])[0]


def check_result(answer, words, exit_code):
    result = answer.get("result", {})
    kinds = [part["type"] for part in result.get("content", [])]
    check(all(word in text(answer) for word in words), f"the text has {words}", answer)
    check(kinds == ["text"] and "structuredContent" not in result, "one text block, no structuredContent", answer)
    check(not result.get("isError"), f"exit code {exit_code} is no error", answer)
    found = view(answer)
    holds = found.get("schema") == "outlast.command/1" and found.get("exit_code") == exit_code
    check(holds, "the object for programs stands in _meta", found)


def check_tools(tools):
    names = [tool["name"] for tool in tools]
    check(names == ["run", "wait", "read", "list", "stop", "send"], "the six tools, in their order", names)
    check(all(re.fullmatch(r"[a-z_]{1,64}", name) for name in names), "names are plain lower case", names)
    check(not any("outputSchema" in tool for tool in tools), "no tool has an outputSchema")
    schemas = json.dumps([tool["inputSchema"] for tool in tools])
    check('"format"' not in schemas and '"null"' not in schemas, "schemas have no format and no null", schemas)
    asks = all((tool.get("_meta") or {}).get("anthropic/alwaysLoad") is True for tool in tools)
    check(asks, "every tool asks to be loaded always")
    read_only = {tool["name"]: (tool.get("annotations") or {}).get("readOnlyHint") for tool in tools}
    check(all(read_only.get(name) is True for name in ("wait", "read", "list")), "wait, read, list only read", read_only)
    check(not any(read_only.get(name) for name in ("run", "stop", "send")), "run, stop, send do not", read_only)
