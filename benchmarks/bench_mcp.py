"""Round trips of MCP calls on standard input and output, beside an echo of the same size in the same run.

Both servers use the official SDK, and so does the client. A call of the one and of the other take turns.
"""

import asyncio
import contextlib
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pagein
from pagein.model.messages import Message, Text

BYTES, TIMES = 1_000_000, 25
_LINE = "def function_{0}(argument): return compute(argument, {0}) + {0}\n"


def measure() -> dict[str, float]:
    """Medians in milliseconds, and their ratios to those of the echo."""
    with tempfile.TemporaryDirectory(prefix="pagein-bench-") as folder:
        return asyncio.run(_measure(Path(folder)))


async def _measure(folder: Path) -> dict[str, float]:
    _prepare(folder)
    async with contextlib.AsyncExitStack() as stack:
        start = "from pagein.cli.cli import main; main()"
        own = await _client(stack, folder, "-c", start, "mcp", "--store", str(folder / "store.db"))
        echo = await _client(stack, folder, __file__)
        matches = await own.call_tool("search", {"pattern": "function_7"})
        name = matches.content[0].text.partition("**")[2].partition("**")[0]
        pages = [{"mode": "file", "target": "big.py", "offset": 2 + 300 * at} for at in range(TIMES + 2)]
        first = [{"mode": "file", "target": f"new_{at}.py"} for at in range(TIMES + 2)]
        found: dict[str, float] = {}
        for title, tool, calls in (
            ("peek", "peek", [{"id": name, "line": 1 + at, "lines": 40} for at in range(TIMES + 2)]),
            ("page of a file of 1 MB", "read", pages),
            ("first page of a file of 1 MB that the store has not", "read", first),
        ):
            found |= await _beside(title, own, echo, tool, calls)
        return found


async def _beside(title: str, own: Any, echo: Any, tool: str, calls: list[dict[str, Any]]) -> dict[str, float]:  # noqa: ANN401
    ours, echoes, sizes = [], [], []
    for arguments in calls:
        took, size = await _timed(lambda arguments=arguments: own.call_tool(tool, arguments))  # type: ignore[misc]
        back, _ = await _timed(lambda size=size: echo.call_tool("echo", {"size": size}))  # type: ignore[misc]
        ours.append(took)
        echoes.append(back)
        sizes.append(size)
    mine, theirs = statistics.median(ours[2:]), statistics.median(echoes[2:])  # the first calls import
    return {
        f"{title}: characters": statistics.median(sizes),
        f"{title}: ms": mine * 1000,
        f"{title}: echo, ms": theirs * 1000,
        f"{title}: ratio": mine / theirs,
    }


async def _timed(call: Callable[[], Awaitable[Any]]) -> tuple[float, int]:
    began = time.perf_counter()
    done = await call()
    took = time.perf_counter() - began
    if done.is_error:
        raise RuntimeError(done.content[0].text)
    return took, len(done.content[0].text)


async def _client(stack: contextlib.AsyncExitStack, folder: Path, *arguments: str) -> Any:  # noqa: ANN401
    from mcp import Client, StdioServerParameters
    from mcp.client.stdio import stdio_client

    server = StdioServerParameters(command=sys.executable, args=list(arguments), env=dict(os.environ), cwd=str(folder))
    return await stack.enter_async_context(Client(stdio_client(server)))


def _prepare(folder: Path) -> None:
    """Make the files, and a stored object."""
    for name in ("big", *(f"new_{at}" for at in range(TIMES + 2))):
        text = f"# {name}\n" + "".join(_LINE.format(number) for number in range(BYTES // 50))
        (folder / f"{name}.py").write_text(text[:BYTES])
    with pagein.open(folder / "store.db", workspace=folder) as engine:
        session = engine.session("earlier", workspace=folder)
        session.append(Message("user", (Text("".join(_LINE.format(number) for number in range(300))),)))
        session.advance(at=1000.0)


def _echo() -> None:
    """Serve a tool that answers with so many characters."""
    import anyio
    from mcp import types
    from mcp.server.lowlevel.server import Server
    from mcp.server.stdio import stdio_server

    async def list_tools(_: Any, __: Any) -> types.ListToolsResult:  # noqa: ANN401
        return types.ListToolsResult(tools=[types.Tool(name="echo", input_schema={"type": "object"})])

    async def call_tool(_: Any, params: types.CallToolRequestParams) -> types.CallToolResult:  # noqa: ANN401
        lines = "".join(_LINE.format(number) for number in range(2_000))
        text = (lines * 2)[: int((params.arguments or {})["size"])]
        return types.CallToolResult(content=[types.TextContent(type="text", text=text)])

    async def serve() -> None:
        server: Server[Any] = Server("echo", on_list_tools=list_tools, on_call_tool=call_tool)
        async with stdio_server() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())

    anyio.run(serve)


if __name__ == "__main__":
    _echo()
