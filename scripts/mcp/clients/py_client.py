"""py_client.py TARGET...: the Python SDK against a server, in both eras: run, wait, read, stop, and a task.

TARGET is a command line for stdio, or one URL, for which OUTLAST_TOKEN holds the token.
"""
import asyncio
import os
import re
import sys
from typing import Any, ClassVar, Literal

import httpx2 as httpx
import mcp_types as types
from mcp import Client
from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

TARGET, failed = sys.argv[1:], 0


class CreateTask(types.Result):
    result_type: Literal["task"] = "task"
    task_id: str
    status: str
    poll_interval_ms: int | None = None


class GetTask(types.Result):
    task_id: str
    status: str
    status_message: str | None = None
    result: dict[str, Any] | None = None
    error: dict[str, Any] | None = None


class GetParams(types.RequestParams):
    task_id: str


class GetRequest(types.Request[GetParams, Literal["tasks/get"]]):
    method: Literal["tasks/get"] = "tasks/get"
    name_param: ClassVar[str | None] = "taskId"     # becomes the header Mcp-Name, without which HTTP is refused
    params: GetParams


class Tasks(ClientExtension):
    """The SDK has only the seam for the extension."""

    identifier = "io.modelcontextprotocol/tasks"
    polls, task_id = 0, ""

    def claims(self):
        return [ResultClaim(result_type="task", model=CreateTask, resolve=self.resolve)]

    async def resolve(self, made: CreateTask, context: ClaimContext) -> types.CallToolResult:
        self.task_id = made.task_id
        while True:
            got = await context.session.send_request(GetRequest(params=GetParams(task_id=made.task_id)), GetTask)
            self.polls += 1
            if got.status == "completed":
                return types.CallToolResult.model_validate(got.result)
            if got.status in ("failed", "cancelled"):
                raise RuntimeError(f"task {got.status}: {got.error}")
            await asyncio.sleep((made.poll_interval_ms or 1000) / 1000)


def transport():
    if not TARGET[0].startswith("http"):
        return stdio_client(StdioServerParameters(command=TARGET[0], args=TARGET[1:], env=dict(os.environ)))
    token = {"Authorization": f"Bearer {os.environ.get('OUTLAST_TOKEN', '')}"}
    return streamable_http_client(TARGET[0], http_client=httpx.AsyncClient(headers=token, timeout=120))


def text(result):
    return "\n".join(getattr(part, "text", "") for part in result.content)


def check(holds, what, seen=""):
    global failed
    failed += not holds
    print(("PASS " if holds else "FAIL ") + what + ("" if holds else f": {seen!r}"[:400]))


async def main():
    for mode in ("legacy", "auto"):
        async with Client(transport(), mode=mode) as client:
            print(f"# Python SDK, {mode}: {client.protocol_version}")
            names = {tool.name for tool in (await client.list_tools()).tools}
            check({"run", "wait", "read", "list", "stop", "send"} == names, "tools", names)
            notes = []

            async def progress(seconds, total, message):
                notes.append((seconds, message))

            result = await client.call_tool("run", {"command": "echo a; sleep 6; echo b; exit 3"},
                                            progress_callback=progress)
            check("b" in text(result) and not result.is_error and notes, f"run, {len(notes)} notes", text(result))
            result = await client.call_tool("run", {"command": "echo early; sleep 1; echo late", "background": True})
            id = (re.search(r"wrk_[0-9a-f]{32}", text(result)) or [""])[0]
            result = await client.call_tool("wait", {"id": id})
            check("late" in text(result), "background start, wait", text(result))
            result = await client.call_tool("read", {"id": id, "head": 1})
            check("early" in text(result) and "late" not in text(result), "read", text(result))
            result = await client.call_tool("run", {"command": "exec sleep 600", "background": True})
            id = (re.search(r"wrk_[0-9a-f]{32}", text(result)) or [""])[0]
            result = await client.call_tool("stop", {"id": id})
            check("stopped" in text(result) and not result.is_error, "stop", text(result))
            result = await client.call_tool("read", {"id": "wrk_" + "0" * 32})
            check(result.is_error, "an unknown id is an error", text(result))
    tasks = Tasks()
    async with Client(transport(), mode="auto", extensions=[tasks]) as client:
        result = await client.call_tool("run", {"command": "echo a; sleep 1; echo b", "background": True})
        check("b" in text(result) and tasks.task_id.startswith("wrk_"), f"a task, {tasks.polls} polls", text(result))

asyncio.run(main())
sys.exit(1 if failed else 0)
