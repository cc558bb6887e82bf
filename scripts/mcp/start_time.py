#!/usr/bin/env python3
"""start_time.py [COUNT]: how long OUTLAST needs from its start to the answer to `initialize`, and to `server/discover`.

For people: speed is nothing that a test asserts. Each start has a home and a state directory of its own.
"""
import os
import statistics
import sys
import tempfile
import time

sys.dont_write_bytecode = True
from wire import Server, meta

COUNT = int(sys.argv[1]) if len(sys.argv) > 1 else 20
for what, look in (("initialize", lambda server: server.initialize()),
                   ("server/discover", lambda server: server.ask("server/discover", {}, meta()))):
    times = []
    for _ in range(COUNT):
        with tempfile.TemporaryDirectory() as dir:
            os.environ.update(HOME=dir, OUTLAST_STATE_DIR=os.path.join(dir, "state"))
            since = time.monotonic()
            server = Server()
            look(server)
            times.append((time.monotonic() - since) * 1000)
            server.close()
    times.sort()
    print(f"{what}: median {statistics.median(times):.1f} ms, longest {times[-1]:.1f} ms, of {COUNT} starts")
