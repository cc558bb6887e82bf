#!/usr/bin/env python3
"""check_stdio.py [PART...]: the protocol on standard input and output, one PASS or FAIL line for each expectation.

Parts: modern, legacy, extension, eof, misuse, purity, signals, kill, probe; all by default. The server is the program
OUTLAST; HOME and OUTLAST_STATE_DIR should be of a world of its own. Exit 1 on any FAIL. Standard library only.
"""
import os
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
from wire import (ID, LEGACY, MODERN, NAMESPACE, TASKS, Server, check, check_result, check_tools, code, end, id_in,
                  is_error, meta, re, text)


def modern():
    server = Server()
    found = server.ask("server/discover", {}, meta()).get("result", {})
    versions = found.get("supportedVersions", [])
    check(found.get("resultType") == "complete" and {MODERN, *LEGACY} <= set(versions), "discover: both eras", found)
    offered = found.get("capabilities", {})
    check(TASKS in offered.get("extensions", {}) and "tasks" not in offered, "discover: tasks only as extension", found)
    cached = "ttlMs" in found and found.get("cacheScope") in ("public", "private")
    check(cached and NAMESPACE + "serverInfo" in found.get("_meta", {}), "discover: ttlMs, cacheScope, serverInfo", found)
    one, two = (server.ask("tools/list", {}, meta()).get("result", {}) for _ in range(2))
    check(one == two and "ttlMs" in one and "cacheScope" in one, "tools/list: twice the same, with ttlMs and cacheScope")
    check_tools(one.get("tools", []))

    answer = server.run("for i in 1 2 3; do echo line$i; done; exit 3", meta(progressToken="t1"))
    check(answer.get("result", {}).get("resultType") == "complete", "a short command is a complete result", answer)
    check_result(answer, ["line1", "line3"], 3)
    server.run("echo begun; sleep 6", meta(progressToken="t2"))
    told = [note["params"] for note in server.notes if note.get("method") == "notifications/progress"]
    steps = [one["progress"] for one in told]
    rises = all(one["progressToken"] == "t2" for one in told) and steps == sorted(set(steps))
    check(bool(told) and rises and told[0].get("message") == "begun", "progress rises and shows the last line", told)
    count = len(server.notes)
    server.run("echo x", meta())
    check(len(server.notes) == count, "no progress without a token")

    answer = server.run("echo early; sleep 1; echo late; exit 5", meta(), background=True)
    id = id_in(answer)
    plain = answer.get("result", {}).get("resultType") == "complete" and id and not is_error(answer)
    check(plain, "not declared: a background start is a complete result with the id", answer)
    check_result(server.tool("wait", meta(), id=id), ["late"], 5)
    tasks(server)
    refusals(server)
    check(server.initialize().get("protocolVersion") == "2025-11-25", "an initialize still works on the same pipe")
    check(server.close() == 0, "exit 0 at the end of input")


def tasks(server):
    made = server.run("echo early; sleep 1; echo late; exit 5", meta(True), background=True).get("result", {})
    flat = made.get("resultType") == "task" and made.get("status") == "working" and "content" not in made
    check(flat and "ttlMs" in made and made["ttlMs"] is None, "declared: a flat task without an end of life", made)
    id = made.get("taskId", "")
    check(bool(re.fullmatch(ID, id)), "the id of the task is the command's", made)
    ask = lambda method, given, **declared: server.ask(method, given, meta(**declared))
    check(code(ask("tasks/get", {"taskId": id})) == -32021, "tasks/get without the declaration: -32021")
    for method in ("tasks/get", "tasks/cancel"):
        check(code(ask(method, {"taskId": "nope"}, tasks=True)) == -32602, f"{method} of an unknown id: -32602")
    for method in ("tasks/list", "tasks/result"):
        check(code(ask(method, {"taskId": id}, tasks=True)) == -32601, f"{method}: -32601")
    answer = ask("tasks/update", {"taskId": id, "inputResponses": {"x": {}}}, tasks=True).get("result", {})
    check(answer.get("resultType") == "complete", "tasks/update takes what nobody asked for", answer)
    other = Server()
    task = other.ask("tasks/get", {"taskId": id}, meta(True)).get("result", {})
    check(task.get("taskId") == id, "another server process knows the task", task)
    check(other.close() == 0, "and ends with its input")
    task = server.task(id)
    completed = task.get("status") == "completed" and task.get("resultType") == "complete"
    check(completed and task.get("createdAt") == made.get("createdAt"), "the task completes", task)
    check_result({"result": task.get("result", {})}, ["late", id], 5)

    id = server.run("echo a; exec sleep 60", meta(True), background=True).get("result", {}).get("taskId")
    answer = ask("tasks/cancel", {"taskId": id}, tasks=True)
    empty = set(answer.get("result", {})) - {"_meta"} == {"resultType"}
    check(empty, "tasks/cancel answers with an empty result", answer)
    task = server.task(id)
    check(task.get("status") == "cancelled" and "result" not in task, "the stopped task is cancelled", task)
    answer = ask("tasks/cancel", {"taskId": id}, tasks=True).get("result", {})
    check(answer.get("resultType") == "complete", "tasks/cancel again: the same empty result", answer)


def refusals(server):
    id = server.send("tools/call", {"name": "run", "arguments": {"command": "echo begun; exec sleep 60"}},
                     meta(progressToken="t3"))
    with server.changed:    # the first progress says that it runs
        server.changed.wait_for(lambda: any(n["params"].get("progressToken") == "t3" for n in server.notes), 20)
    server.note("notifications/cancelled", {"requestId": id, "reason": "test"})
    answer = server.tool("list", meta())
    check("exec sleep 60" in text(answer), "a cancelled request leaves its command running and listed", answer)
    stopped = server.tool("stop", meta(), id=id_in(answer))
    check(not is_error(stopped), "it can be stopped", stopped)
    check(id not in server.answers, "a cancelled request is never answered", server.answers.get(id))

    check(code(server.tool("nope", meta())) == -32602, "an unknown tool: -32602")
    for what, given in (("missing", {}), ("unknown", {"command": "true", "nope": 1}), ("wrong", {"command": 5})):
        answer = server.tool("run", meta(), **given)
        check(is_error(answer), f"a {what} argument is told to the model", answer)
    answer = server.ask("tools/list", {}, meta(version="1900-01-01"))
    named = MODERN in answer.get("error", {}).get("data", {}).get("supported", [])
    check(code(answer) == -32022 and named, "an unknown version: -32022 with those that are known", answer)
    for key in ("clientCapabilities", "protocolVersion"):
        half = meta()
        del half[NAMESPACE + key]
        answer = server.ask("tools/list", {}, half)
        check(code(answer) == -32602, f"{key} is missing in _meta: -32602", answer)
    for method in ("ping", "logging/setLevel", "resources/subscribe", "roots/list", "nope/nope"):
        check(code(server.ask(method, {}, meta())) == -32601, f"{method}: -32601")


def legacy(versions=LEGACY, capabilities=None, name="legacy"):
    for version in versions:
        server, what = Server(), f"{name} {version}"
        answer = server.initialize(version, capabilities)
        check(answer.get("protocolVersion") == version and "tools" in answer.get("capabilities", {}), what, answer)
        server.note("notifications/cancelled", {"requestId": 4711})
        check(server.ask("ping").get("result") == {}, f"{what}: ping")
        check_tools(server.ask("tools/list").get("result", {}).get("tools", []))
        call = {"name": "run", "arguments": {"command": "echo out; exit 3"}, "task": {"ttl": 60000}}
        answer = server.ask("tools/call", {**call, "_meta": {"progressToken": 1}})
        plain = "resultType" not in answer.get("result", {}) and "task" not in answer.get("result", {})
        check(plain, f"{what}: a plain result, `task` in the request is ignored", answer)
        check_result(answer, ["out"], 3)
        answer = server.run("echo out; sleep 1", background=True)
        told = id_in(answer) and "taskId" not in answer.get("result", {})
        check(bool(told), f"{what}: a background start is told by its id", answer)
        check(code(server.ask("prompts/list")) in (-32601, None), f"{what}: prompts/list is answered")
        check(server.close() == 0, f"{what}: exit 0 at the end of input")
    server = Server()
    answer = server.initialize("1999-01-01")
    check(answer.get("protocolVersion") in LEGACY, "an unknown version gets the newest that such a client knows", answer)
    check(server.close() == 0, "exit 0 at the end of input")


def extension():
    legacy(("2025-11-25",), {"extensions": {TASKS: {}}}, "tasks declared in an initialize")


def eof():
    for seconds, answered in ((1, True), (60, False)):
        with tempfile.TemporaryDirectory() as dir:
            server, begun = Server(), os.path.join(dir, "begun")
            os.mkfifo(begun)
            line = f"echo > {begun}; sleep {seconds}; echo done"
            id = server.send("tools/call", {"name": "run", "arguments": {"command": line}}, meta())
            open(begun).read()
            since = time.monotonic()
            holds = server.close() == 0 and time.monotonic() - since < 15
            check(holds, f"the input ends while a command of {seconds} s runs: exit 0 soon")
            if answered:
                check("done" in text(server.wait(id, 1)), "the short one is still answered")


def misuse():
    server = Server()

    def alive(what):
        check("result" in server.ask("tools/list", {}, meta()), what + ": the server goes on")

    for what, line in (("no JSON", "{nope"), ("an empty line", ""), ("no object", "17"),
                       ("a batch", '[{"jsonrpc":"2.0","id":1,"method":"ping"}]'),
                       ("no method", '{"jsonrpc":"2.0","id":99}'),
                       ("an answer that nobody asked for", '{"jsonrpc":"2.0","id":98,"result":{}}'),
                       ("an unknown notification", '{"jsonrpc":"2.0","method":"notifications/nope"}')):
        server.raw(line)
        alive(what)
    answer = server.wait(server.send("tools/list", {}, meta(), id="a text"))
    check("result" in answer, "an id that is a text comes back as it was", answer)
    answer = server.run("true # " + "x" * 1_000_000, meta())
    check("result" in answer or "error" in answer, "a command line of 1 MB is answered", answer)
    answer = server.tool("read", meta(), id="wrk_" + "0" * 32)
    check(is_error(answer), "an unknown id is told to the model", answer)
    alive("after all that")
    check(server.close() == 0, "exit 0 at the end of input")


def purity():
    """Nothing but messages on standard output, whatever a command does to the server's descriptors."""
    server = Server()
    pid = server.process.pid
    for line in ("echo evil > /proc/$PPID/fd/1", f"echo evil > /proc/{pid}/fd/2; echo; echo 'not json'",
                 "for p in /proc/[0-9]*/fd/1; do :; done; echo evil >&2", "printf '{\"jsonrpc\":\"2.0\",\"id\":1}\\n'"):
        answer = server.run(line, meta())
        check("result" in answer, f"`{line[:40]}` is answered", answer)
    held = [link for link in command_descriptors(server) if "pipe" in link]
    mine = {os.readlink(f"/proc/{pid}/fd/{fd}") for fd in (0, 1, 2)}
    check(not mine & set(held), "a command holds none of the server's descriptors", [held, sorted(mine)])
    check(server.close() == 0 and not server.odd, "only messages on standard output", server.odd)


def command_descriptors(server):
    return re.findall(r"pipe:\[\d+\]|socket:\[\d+\]", text(server.run("ls -l /proc/$$/fd /proc/$PPID/fd", meta())))


def signals():
    for by in (signal.SIGTERM, signal.SIGINT):
        server = Server()
        server.ask("tools/list", {}, meta())
        check(server.close(by=by) == 0, f"{by.name} at rest: exit 0")
        with tempfile.TemporaryDirectory() as dir:
            server, begun = Server(), os.path.join(dir, "begun")
            os.mkfifo(begun)
            line = f"echo > {begun}; exec sleep 60"
            server.send("tools/call", {"name": "run", "arguments": {"command": line}}, meta())
            open(begun).read()
            check(server.close(by=by) == 0, f"{by.name} while a command runs: exit 0")


def kill():
    """A server that is killed while commands run: the next one knows both, by the ids that were told."""
    with tempfile.TemporaryDirectory() as dir:
        begun, go = os.path.join(dir, "begun"), os.path.join(dir, "go")
        os.mkfifo(begun)
        os.mkfifo(go)
        server = Server()
        told = id_in(server.run("echo one; exec sleep 60", meta(), background=True))
        line = f"echo > {begun}; cat {go}; echo two; exit 4"
        server.send("tools/call", {"name": "run", "arguments": {"command": line, "label": "cut off"}}, meta())
        open(begun).read()
        server.close(by=signal.SIGKILL)
        other, bound = Server(), time.monotonic() + 20
        listed = text(other.tool("list", meta()))
        check(told in listed, "the next server lists the command whose id was told", listed)
        # The other one goes to the background by itself, a moment after its server is gone.
        while "cut off" not in listed and time.monotonic() < bound:
            listed = text(other.tool("list", meta()))
        cut = [re.search(ID, row)[0] for row in listed.splitlines() if "cut off" in row]
        check(len(cut) == 1, "and the one that was cut off in the foreground", listed)
        with open(go, "w") as file:
            file.write("\n")
        answer = other.tool("wait", meta(), id=cut[0] if cut else told)
        check_result(answer, ["two"], 4)
        task = other.ask("tasks/get", {"taskId": told}, meta(True)).get("result", {})
        check(task.get("status") == "working", "its id is the id of a task", task)
        answer = other.tool("stop", meta(), id=told)
        check("stopped" in text(answer), "it can be stopped by its id", answer)
        check(other.close() == 0, "exit 0 at the end of input")


def probe():
    """A client that only looks leaves nothing behind."""
    with tempfile.TemporaryDirectory() as dir:
        os.environ["OUTLAST_STATE_DIR"], before = os.path.join(dir, "state"), os.environ.get("OUTLAST_STATE_DIR")
        home, os.environ["HOME"] = os.environ.get("HOME", ""), dir
        try:
            for look in (lambda s: (s.ask("server/discover", {}, meta()), s.ask("tools/list", {}, meta())),
                         lambda s: (s.initialize(), s.ask("tools/list"))):
                server = Server()
                look(server)
                children = open(f"/proc/{server.process.pid}/task/{server.process.pid}/children").read()
                check(server.close() == 0 and not children, "a probe starts no process", children)
                check(os.listdir(dir) == [], "a probe makes no file", os.listdir(dir))
            done = subprocess.run([os.environ.get("OUTLAST", "outlast"), "mcp"], stdin=subprocess.DEVNULL,
                                  capture_output=True, timeout=20)
            silent = done.returncode == 0 and not done.stdout and not os.listdir(dir)
            check(silent, "no input at all: exit 0, nothing said, nothing made", [done.returncode, str(done.stderr)])
        finally:
            os.environ["HOME"] = home
            if before is None:
                del os.environ["OUTLAST_STATE_DIR"]
            else:
                os.environ["OUTLAST_STATE_DIR"] = before


PARTS = (modern, legacy, extension, eof, misuse, purity, signals, kill, probe)
wanted = sys.argv[1:] or [part.__name__ for part in PARTS]
for part in PARTS:
    if part.__name__ in wanted:
        print("#", part.__name__, flush=True)
        part()
end()
