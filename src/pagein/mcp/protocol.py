"""Speak MCP with the official SDK, on any pair of streams. Imported late: the SDK takes over a second."""

import io
import threading
from typing import Any, BinaryIO

import anyio
import anyio.to_thread
from mcp import types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server

from pagein import __version__
from pagein.engine.reads.session_reads import ReadResult
from pagein.mcp.offered_tools import INSTRUCTIONS, OfferedTool
from pagein.mcp.tool_answers import Caller, ToolAnswers, caller_ids

_AT_ONCE = 8
"""Calls of one client that are answered at the same time."""
_CONNECTION = "streams"
"""Name of the one connection that a server on streams has."""


def make_server(tools: tuple[OfferedTool, ...], answers: ToolAnswers) -> "Server[Any]":
    """Return the protocol's server of these tools."""
    limiter = anyio.CapacityLimiter(_AT_ONCE)

    async def list_tools(
        _: ServerRequestContext[Any], __: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[types.Tool.model_validate(one.definition) for one in tools])

    async def call_tool(
        context: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        cancelled = threading.Event()
        meta = params.model_dump(by_alias=True).get("_meta")
        caller = Caller(_client_name(context), *caller_ids(meta), connection=_CONNECTION)
        try:
            result = await anyio.to_thread.run_sync(
                lambda: answers.answer(params.name, params.arguments or {}, caller, cancelled),
                abandon_on_cancel=True,
                limiter=limiter,
            )
        except anyio.get_cancelled_exc_class():
            cancelled.set()
            raise
        return _call_result(result)

    return Server(
        "pagein",
        version=__version__,
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def serve_streams(server: "Server[Any]", source: BinaryIO, sink: BinaryIO) -> None:
    """Speak the protocol on these streams until the input ends."""

    async def serve() -> None:
        reader = anyio.wrap_file(io.TextIOWrapper(source, encoding="utf-8", errors="replace"))
        writer = anyio.wrap_file(io.TextIOWrapper(sink, encoding="utf-8", write_through=True))
        async with stdio_server(reader, writer) as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())

    anyio.run(serve)


def _client_name(context: ServerRequestContext[Any]) -> str:
    told = context.session.client_params
    return "" if told is None else told.client_info.name


def _call_result(result: ReadResult) -> types.CallToolResult:
    content: list[types.ContentBlock] = [types.TextContent(type="text", text=result.text)]
    content += [
        types.ImageContent(type="image", data=one.data or "", mime_type=one.media_type) for one in result.images
    ]
    return types.CallToolResult(content=content, is_error=result.is_error)
