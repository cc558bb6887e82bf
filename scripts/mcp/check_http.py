#!/usr/bin/env python3
"""check_http.py: the protocol over HTTP, one PASS or FAIL line for each expectation. Exit 1 on any FAIL.

The server is the program OUTLAST; HOME and OUTLAST_STATE_DIR should be of a world of its own. Standard library only.
"""
import http.client
import json
import os
import re
import signal
import stat
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
from wire import ID, LEGACY, MODERN, OUTLAST, check, check_result, check_tools, code, end, id_in, is_error, meta, text


class Server:
    """`outlast mcp --http`, and the address and the token that it names."""

    def __init__(self, address="127.0.0.1:0"):
        self.process = subprocess.Popen([OUTLAST, "mcp", "--http", address], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.said = self.process.stderr.readline()
        found = re.search(r"listening on http://([0-9.]+):(\d+)/mcp; clients show the token of (.*)$", self.said)
        self.host, self.port, self.file = found[1], int(found[2]), found[3]
        self.token = open(self.file).read().strip()
        self.rest = threading.Thread(target=self.process.stderr.read, daemon=True)
        self.rest.start()
        self.count = 0

    def raw(self, method, body=None, path="/mcp", host=None, token=True, **headers):
        """(status, headers, body) of one HTTP request."""
        given = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
        if token:
            given["Authorization"] = f"Bearer {self.token if token is True else token}"
        given["Host"] = host or f"{self.host}:{self.port}"
        given.update({name.replace("_", "-"): value for name, value in headers.items() if value is not None})
        connection = http.client.HTTPConnection(self.host, self.port, timeout=60)
        try:
            connection.request(method, path, body, given)
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read().decode()
        finally:
            connection.close()

    def ask(self, method, params=None, meta=None, **headers):
        """The answer to a request of today's protocol, with the headers that it asks for."""
        self.count += 1
        params = {**(params or {}), **({"_meta": meta} if meta else {})}
        body = {"jsonrpc": "2.0", "id": self.count, "method": method, "params": params}
        if meta:
            name = params.get("name") or params.get("taskId") or params.get("uri")
            headers = {"MCP_Protocol_Version": MODERN, "Mcp_Method": method, "Mcp_Name": name, **headers}
        status, given, text = self.raw("POST", json.dumps(body), **headers)
        messages = parse(given, text)
        answer = next((one for one in messages if "method" not in one), {})
        return {"status": status, "notes": [one for one in messages if "method" in one], **answer}

    def tool(self, name, meta=None, **arguments):
        return self.ask("tools/call", {"name": name, "arguments": arguments}, meta)

    def close(self, by=signal.SIGTERM):
        self.process.send_signal(by)
        exit_code = self.process.wait(20)
        self.rest.join(5)
        return exit_code, self.process.stdout.read()


def parse(headers, text):
    """The messages of a JSON body or of an event stream."""
    kind = next((value for name, value in headers.items() if name.lower() == "content-type"), "")
    if kind.startswith("application/json"):
        return [json.loads(text)]
    lines = (line[len("data:"):].strip() for line in text.splitlines() if line.startswith("data:"))
    return [json.loads(line) for line in lines if line]


def door(server):
    list_tools = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}})
    mode = stat.S_IMODE(os.stat(server.file).st_mode)
    check(mode == 0o600 and len(server.token) >= 32, "the token stands in a private file", oct(mode))
    for what, token in (("no token", None), ("a wrong token", "x" * len(server.token)), ("half a token", server.token[:9])):
        status, headers, body = server.raw("POST", list_tools, token=token)
        asks = any(name.lower() == "www-authenticate" and value.startswith("Bearer") for name, value in headers.items())
        check(status == 401 and asks and server.token not in body, f"{what}: 401 with WWW-Authenticate", [status, body])
    status, _, _ = server.raw("GET", token=None)
    check(status == 401, "GET without a token: 401", status)
    for what, origin in (("foreign", "http://evil.example"), ("null", "null"), ("of another port", "http://127.0.0.1:1"),
                         ("without a port", "http://127.0.0.1")):
        status, _, body = server.raw("POST", list_tools, Origin=origin)
        check(status == 403, f"an Origin that is {what}: 403", [status, body])
    status, _, body = server.raw("POST", list_tools, Origin=f"http://127.0.0.1:{server.port}")
    check(status == 200, "its own Origin is let in", [status, body])
    status, _, body = server.raw("POST", list_tools, host="evil.example")
    check(status in (403, 421), "a foreign Host is refused", [status, body])
    status, _, _ = server.raw("POST", list_tools, host=f"localhost:{server.port}")
    check(status == 200, "localhost is let in", status)
    for method in ("GET", "DELETE"):
        status, _, _ = server.raw(method)
        check(status == 405, f"{method}: 405", status)
    status, _, _ = server.raw("POST", list_tools, path="/other")
    check(status == 404, "another path: 404", status)
    status, _, body = server.raw("POST", "{nope")
    check(status in (400, 415), "no JSON is refused", [status, body])
    status, _, body = server.raw("POST", json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}))
    check(status == 202 and not body, "a notification: 202 and nothing", [status, body])


def headers(server):
    call = {"name": "list", "arguments": {}}
    for what, wrong in (("Mcp-Name", {"Mcp_Name": "run"}), ("Mcp-Method", {"Mcp_Method": "tools/list"}),
                        ("MCP-Protocol-Version", {"MCP_Protocol_Version": "2025-11-25"})):
        answer = server.ask("tools/call", call, meta(), **wrong)
        check(answer["status"] == 400 and code(answer) == -32020, f"a wrong {what}: 400 and -32020", answer)
    for what, missing in (("Mcp-Name", {"Mcp_Name": None}), ("Mcp-Method", {"Mcp_Method": None})):
        answer = server.ask("tools/call", call, meta(), **missing)
        check(answer["status"] == 400 and code(answer) == -32020, f"no {what}: 400 and -32020", answer)
    answer = server.ask("tools/call", call, meta(), Mcp_Name="=?base64?bGlzdA==?=")
    check(answer["status"] == 200, "a name in base64 is decoded before it is compared", answer)
    answer = server.ask("nope/nope", {}, meta())
    check(answer["status"] == 404 and code(answer) == -32601, "an unknown method: 404 and -32601", answer)
    answer = server.ask("tools/list", {}, meta(version="1900-01-01"), MCP_Protocol_Version="1900-01-01")
    check(answer["status"] == 400 and code(answer) == -32022, "an unknown version: 400 and -32022", answer)


def tools(server):
    found = server.ask("server/discover", {}, meta()).get("result", {})
    check({MODERN, *LEGACY} <= set(found.get("supportedVersions", [])), "discover: both eras", found)
    check_tools(server.ask("tools/list", {}, meta()).get("result", {}).get("tools", []))
    check_result(server.tool("run", meta(), command="echo out; exit 3"), ["out"], 3)
    answer = server.tool("run", meta(progressToken="t"), command="echo begun; sleep 6; echo done")
    told = [note["params"].get("message") for note in answer["notes"] if note["method"] == "notifications/progress"]
    check("begun" in told and "done" in text(answer), "progress comes on the stream of the request", answer)
    answer = server.tool("run", meta(), command="echo early; sleep 1; echo late; exit 5", background=True)
    id = id_in(answer)
    check(bool(id) and not is_error(answer), "a background start is told by its id", answer)
    check_result(server.tool("wait", meta(), id=id), ["late"], 5)
    check("early" in text(server.tool("read", meta(), id=id)), "read shows its output")
    answer = server.tool("read", meta(), id="wrk_" + "0" * 32)
    check(is_error(answer), "an unknown id is told to the model", answer)


def tasks(server):
    made = server.tool("run", meta(True), command="echo early; sleep 1; echo late; exit 5", background=True)
    id = made.get("result", {}).get("taskId", "")
    check(made.get("result", {}).get("resultType") == "task" and re.fullmatch(ID, id), "declared: a task", made)
    answer = server.ask("tasks/get", {"taskId": id}, meta(True), Mcp_Name="wrk_" + "0" * 32)
    check(answer["status"] == 400 and code(answer) == -32020, "tasks/get with another Mcp-Name: 400 and -32020", answer)
    answer = server.ask("tasks/get", {"taskId": id}, meta())
    check(code(answer) == -32021 and answer["status"] == 400, "tasks/get without the declaration: -32021", answer)
    task = poll(server, id)
    check(task.get("status") == "completed", "the task completes", task)
    check_result({"result": task.get("result", {})}, ["late", id], 5)
    made = server.tool("run", meta(True), command="exec sleep 60", background=True)
    id = made.get("result", {}).get("taskId", "")
    answer = server.ask("tasks/cancel", {"taskId": id}, meta(True))
    check(set(answer.get("result", {})) - {"_meta"} == {"resultType"}, "tasks/cancel answers with nothing", answer)
    check(poll(server, id).get("status") == "cancelled", "and the task is cancelled")


def poll(server, id, seconds=30):
    bound, tick = time.monotonic() + seconds, threading.Event()
    while True:
        task = server.ask("tasks/get", {"taskId": id}, meta(True)).get("result", {})
        if task.get("status") != "working" or time.monotonic() > bound:
            return task
        tick.wait(0.2)


def legacy(server):
    client = {"name": "checks", "version": "0"}
    for version in LEGACY:
        given = {"protocolVersion": version, "capabilities": {}, "clientInfo": client}
        answer = server.ask("initialize", given)
        check(answer.get("result", {}).get("protocolVersion") == version, f"{version}: initialize", answer)
        answer = server.ask("tools/call", {"name": "run", "arguments": {"command": "echo out; exit 3"}},
                            MCP_Protocol_Version=version)
        check_result(answer, ["out"], 3)


def disconnect(server):
    """A client that breaks off in the middle of a run: its command goes on and is listed."""
    fifo = os.path.join(os.path.dirname(server.file), "begun")
    os.mkfifo(fifo)
    line = f"echo > {fifo}; exec sleep 60"
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": "run", "arguments": {"command": line, "label": "broken off"}, "_meta": meta()}}
    connection = http.client.HTTPConnection(server.host, server.port, timeout=60)
    given = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json",
             "Authorization": f"Bearer {server.token}", "MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/call",
             "Mcp-Name": "run"}
    connection.request("POST", "/mcp", json.dumps(body), given)
    open(fifo).read()
    connection.close()
    os.unlink(fifo)
    bound, listed = time.monotonic() + 20, ""
    # Nobody tells a client that has gone when the server has noticed.
    while "broken off" not in listed and time.monotonic() < bound:
        listed = text(server.tool("list", meta()))
    check("broken off" in listed, "a client that breaks off leaves its command running and listed", listed)
    rows = [row for row in listed.splitlines() if "broken off" in row]
    answer = server.tool("stop", meta(), id=re.search(ID, rows[0])[0] if rows else "w1")
    check("stopped" in text(answer), "it can be stopped", answer)


def restart(server):
    """A server that is killed and started again at the same address knows what the first one started."""
    id = id_in(server.tool("run", meta(), command="echo one; exec sleep 60", background=True))
    server.close(signal.SIGKILL)
    again = Server(f"127.0.0.1:{server.port}")
    check(again.token == server.token, "a server that starts again has the same token")
    check(id in text(again.tool("list", meta())), "it lists what the first one started")
    other = Server()
    check(id not in text(other.tool("list", meta())), "a server at another port has a session of its own")
    check(other.close() == (0, ""), "SIGTERM: exit 0, nothing on standard output")
    answer = again.tool("stop", meta(), id=id)
    check("stopped" in text(answer), "and stops it by its id", answer)
    check(again.close(signal.SIGINT) == (0, ""), "SIGINT: exit 0, nothing on standard output")


server = Server()
for part in (door, headers, tools, tasks, legacy, disconnect, restart):
    print("#", part.__name__, flush=True)
    part(server)
refused = subprocess.run([OUTLAST, "mcp", "--http", "0.0.0.0:0"], capture_output=True, text=True, timeout=20)
check(refused.returncode != 0 and "--public" in refused.stderr, "other machines are let in only when asked", refused.stderr)
end()
