#!/usr/bin/env python3
"""check.py DIR [PLAY]: the verdict on one run, in one line; exit 0 or 1.

Each "expect" of a step must match what the model read as the result of that step's call, each "expect_user" a text that
a later turn brought. And nothing that carries DIR in its environment is left: neither the agent nor a command.
"""
import json
import os
import re
import select
import signal
import sys
import time

DIR, LEAVES = sys.argv[1], 45     # a server over HTTP keeps its session for 30 s, for one that comes after it
faults, protocol = [], ""


def lines(name):
    path = os.path.join(DIR, name)
    return open(path, errors="replace").read().splitlines() if os.path.exists(path) else []


def left():
    """(pidfd, pid, command line) of what carries the folder in its environment."""
    found, mark = [], f"{DIR}/".encode()
    for pid in (int(name) for name in os.listdir("/proc") if name.isdigit()):
        try:
            if pid in (os.getpid(), os.getppid()):
                continue
            fd = os.pidfd_open(pid)
            words = open(f"/proc/{pid}/environ", "rb").read()
            state = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0]
            if mark in words and state != "Z":
                line = open(f"/proc/{pid}/cmdline", "rb").read().replace(b"\0", b" ").decode(errors="replace")
                found.append((fd, pid, line[:120]))
            else:
                os.close(fd)
        except OSError:
            pass
    return found


if len(sys.argv) > 2:
    play = json.load(open(sys.argv[2]))
    rows = [json.loads(line) for line in lines("requests.jsonl")]
    results = max((row["results"] for row in rows), key=len, default=[])
    texts = "\n".join(text for row in rows for text in row["users"])
    calls = [step for step in play if "tool" in step]
    if not rows:
        faults.append("the agent never asked the model")
    elif len(results) < len(calls):
        offered = " ".join(max((row["tools"] for row in rows), key=len))[:300]
        faults.append(f"{len(results)} of {len(calls)} results reached the model, which was offered: {offered}")
    for number, (step, result) in enumerate(zip(calls, results), 1):
        for pattern in step.get("expect", []):
            if not re.search(pattern, result):
                faults.append(f"result {number} lacks /{pattern}/: {result[:400]!r}")
    for step in play:
        for pattern in step.get("expect_user", []):
            if not re.search(pattern, texts):
                faults.append(f"no later turn brought /{pattern}/: {texts[-600:]!r}")
    wire = [line for line in lines("mcp.log") if line.startswith("->")]
    seen = re.findall(r'"(?:io\.modelcontextprotocol/)?protocolVersion": ?"([0-9-]+)"', "\n".join(wire))
    protocol = f", protocol {seen[-1]}" if seen else ""
    counts = [f"{method} {n}" for method in ("tasks/get", "tasks/cancel") if (n := sum(f'"{method}"' in w for w in wire))]
    protocol += "".join(f", {count}" for count in counts)

end = time.monotonic() + LEAVES
while (rest := left()) and time.monotonic() < end:
    select.select([rest[0][0]], [], [], max(0, end - time.monotonic()))
for fd, pid, line in rest:
    faults.append(f"left: {pid} {line}")
    signal.pidfd_send_signal(fd, signal.SIGKILL)
print("FAIL: " + "; ".join(faults) if faults else "PASS" + protocol)
sys.exit(bool(faults))
