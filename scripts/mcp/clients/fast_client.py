"""fast_client.py TARGET...: fastmcp against a server, in both eras: run, wait, read, stop.

TARGET is a command line for stdio, or one URL, for which OUTLAST_TOKEN holds the token.
"""
import asyncio
import os
import re
import sys

from fastmcp import Client
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport

TARGET, failed = sys.argv[1:], 0


def check(holds, what, seen=""):
    global failed
    failed += not holds
    print(("PASS " if holds else "FAIL ") + what + ("" if holds else f": {seen!r}"[:400]))


def transport():
    if not TARGET[0].startswith("http"):
        return StdioTransport(command=TARGET[0], args=TARGET[1:], env=dict(os.environ), keep_alive=False)
    token = {"Authorization": f"Bearer {os.environ.get('OUTLAST_TOKEN', '')}"}
    return StreamableHttpTransport(TARGET[0], headers=token)


async def main():
    for mode in ("legacy", "auto"):
        async with Client(transport(), mode=mode) as client:
            print(f"# fastmcp, {mode}")
            names = {tool.name for tool in await client.list_tools()}
            check({"run", "wait", "read", "list", "stop", "send"} == names, "tools", names)

            async def call(name, **arguments):
                return (await client.call_tool(name, arguments)).content[0].text

            said = await call("run", command="echo a; echo b; exit 3")
            check("b" in said and "exit code 3" in said, "run", said)
            said = await call("run", command="echo early; sleep 1; echo late", background=True)
            id = (re.search(r"wrk_[0-9a-f]{32}", said) or [""])[0]
            said = await call("wait", id=id)
            check("late" in said, "background start, wait", said)
            said = await call("read", id=id, head=1)
            check("early" in said and "late" not in said, "read", said)
            said = await call("run", command="exec sleep 600", background=True)
            said = await call("stop", id=(re.search(r"wrk_[0-9a-f]{32}", said) or [""])[0])
            check("stopped" in said, "stop", said)
            try:
                check(False, "an unknown id raises", await call("read", id="wrk_" + "0" * 32))
            except Exception as error:
                check(type(error).__name__ == "ToolError", "an unknown id raises ToolError", error)

asyncio.run(main())
sys.exit(1 if failed else 0)
