#!/usr/bin/env python3
"""tee.py LOG CMD ARGS...: becomes a stdio MCP server whose wire is written to LOG, both directions.

The server takes over this very process, so that its pid, parent, environment and signals are those it would have
without. A helper outside its tree and group copies; it ends with the last writer of the server's output, so a command
that had inherited it would be seen as a late "<- EOF".
"""
import os
import sys
import threading

log = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
to_server, from_agent = os.pipe()
to_agent, from_server = os.pipe()


def copy(source, sink, mark):
    for line in source:
        os.write(log, mark + b" " + line)
        try:
            sink.write(line)
            sink.flush()
        except BrokenPipeError:
            break
    os.write(log, mark + b" EOF\n")
    try:
        sink.close()
    except BrokenPipeError:
        pass


child = os.fork()
if child == 0:
    if os.fork():
        os._exit(0)
    os.setsid()
    os.close(to_server)
    os.close(from_server)
    forth = (sys.stdin.buffer, os.fdopen(from_agent, "wb"), b"->")
    threading.Thread(target=copy, args=forth, daemon=True).start()
    copy(os.fdopen(to_agent, "rb"), sys.stdout.buffer, b"<-")
    os._exit(0)

os.waitpid(child, 0)
os.dup2(to_server, 0)
os.dup2(from_server, 1)
for fd in (log, to_server, from_agent, to_agent, from_server):
    os.close(fd)
os.execvp(sys.argv[2], sys.argv[2:])
