"""Speak MCP with the official SDK, on any pair of streams. Imported late: the SDK takes over a second."""

import contextlib
import io
import threading
import warnings
from collections.abc import Callable
from typing import Any, BinaryIO, Final, TypeVar

import anyio
import anyio.from_thread
import anyio.lowlevel
import anyio.to_thread
from mcp import types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError

from pagein import __version__
from pagein.engine.reads.session_reads import ReadResult
from pagein.mcp.call_results import result_fields
from pagein.mcp.offered_tools import INSTRUCTIONS, McpTool
from pagein.mcp.tool_answers import Caller, ToolAnswers, caller_ids
from pagein.mcp.workspaces import folders_of

_AT_ONCE: Final = 8
"""Calls of one client that are answered at the same time."""
_CONNECTION = "streams"
"""Name of the one connection that a server on streams has."""
_ROOTS_PATIENCE: Final = 2.0
"""Seconds for which a client may take to tell its roots."""
_AGREE: Final = "agree"
_CONSENT: Final = {"type": "object", "properties": {_AGREE: {"type": "boolean"}}, "required": [_AGREE]}

Context = ServerRequestContext[Any]
T = TypeVar("T")


class ClientCalls:
    """The calls of one client, answered in threads.

    has_structure: whether answers also have a structured form.
    """

    def __init__(self, answers: ToolAnswers, *, has_structure: bool = False) -> None:
        self._answers = answers
        self._has_structure = has_structure
        self._limiter = anyio.CapacityLimiter(_AT_ONCE)
        self._roots: tuple[str, ...] | None = None

    async def call_tool(self, context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        """Answer a call of a tool."""
        caller = await self._caller(context, params)

        def work(cancelled: threading.Event) -> ReadResult:
            return self._answers.answer(params.name, params.arguments or {}, caller, cancelled)

        result = await self._in_thread(work)
        return types.CallToolResult.model_validate(result_fields(result, has_structure=self._has_structure))

    async def read_resource(
        self, context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        """Show a stored object."""
        caller, uri = await self._caller(context, params), str(params.uri)
        result = await self._in_thread(lambda cancelled: self._answers.resource(uri, caller, cancelled))
        if result.is_error:
            raise MCPError(types.INVALID_PARAMS, result.text, {"uri": uri})
        shown = types.TextResourceContents(uri=uri, mime_type="text/plain", text=result.text)
        return types.ReadResourceResult(contents=[shown], ttl_ms=0, cache_scope="private")

    async def forget_roots(self, _: Context, __: types.NotificationParams) -> None:
        """Ask for the roots again at the next call."""
        self._roots = None

    async def _in_thread(self, work: Callable[[threading.Event], T]) -> T:
        cancelled = threading.Event()
        try:
            return await anyio.to_thread.run_sync(
                lambda: work(cancelled), abandon_on_cancel=True, limiter=self._limiter
            )
        except anyio.get_cancelled_exc_class():
            cancelled.set()
            raise

    async def _caller(self, context: Context, params: types.RequestParams) -> Caller:
        meta = params.model_dump(by_alias=True).get("_meta")
        told = context.session.client_params
        name = "" if told is None else told.client_info.name
        dialogue = (
            _dialogue(context)
            if _can(context, types.ClientCapabilities(elicitation=types.ElicitationCapability()))
            else None
        )
        wants = isinstance(meta, dict) and meta.get("progressToken") is not None
        tell = _teller(context) if wants else None
        return Caller(
            name,
            *caller_ids(meta),
            connection=_CONNECTION,
            roots=await self._known_roots(context),
            tell=tell,
            confirm=dialogue,
        )

    async def _known_roots(self, context: Context) -> tuple[str, ...]:
        if self._roots is None:
            self._roots = ()
            if self._answers.follows_roots and _can(context, types.ClientCapabilities(roots=types.RootsCapability())):
                with contextlib.suppress(MCPError, TimeoutError, ValueError), anyio.fail_after(_ROOTS_PATIENCE):
                    warnings.simplefilter("ignore", MCPDeprecationWarning)  # older versions of the protocol have roots
                    self._roots = folders_of(str(one.uri) for one in (await context.session.list_roots()).roots)
        return self._roots


def make_server(tools: tuple[McpTool, ...], calls: ClientCalls) -> "Server[Any]":
    """Return the protocol's server of these tools."""

    async def list_tools(_: Context, __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[types.Tool.model_validate(one.definition) for one in tools])

    server: Server[Any] = Server(
        "pagein",
        version=__version__,
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=calls.call_tool,
        on_read_resource=calls.read_resource,
    )
    server.add_notification_handler("notifications/roots/list_changed", types.NotificationParams, calls.forget_roots)
    return server


def serve_streams(server: "Server[Any]", source: BinaryIO, sink: io.BufferedIOBase) -> None:
    """Speak the protocol on these streams until the input ends."""
    heard = io.TextIOWrapper(source, encoding="utf-8", errors="replace")
    # typeshed asks for a name of the output, which nobody reads
    said = io.TextIOWrapper(sink, encoding="utf-8", write_through=True)  # type: ignore[type-var]

    async def serve() -> None:
        async with stdio_server(anyio.wrap_file(heard), anyio.wrap_file(said)) as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())

    with heard, said:
        anyio.run(serve)


def _can(context: Context, capability: types.ClientCapabilities) -> bool:
    """Return whether this client can be asked for something."""
    return context.session.can_send_request and context.session.check_client_capability(capability)


def _teller(context: Context) -> Callable[[str], None]:
    """Return how any thread tells its progress."""
    count, loop = 0, anyio.lowlevel.current_token()

    def tell(words: str) -> None:
        nonlocal count
        count += 1
        with contextlib.suppress(Exception):  # a client that is gone needs no progress
            anyio.from_thread.run(context.session.report_progress, float(count), None, words, token=loop)

    return tell


def _dialogue(context: Context) -> Callable[[str], bool]:
    """Return how any thread asks the client's user: children are asked in an event loop of their own."""
    loop = anyio.lowlevel.current_token()

    async def ask(question: str) -> bool:
        done = await context.session.elicit_form(question, _CONSENT, context.request_id)
        return done.action == "accept" and (done.content or {}).get(_AGREE) is True

    def confirm(question: str) -> bool:
        try:
            return anyio.from_thread.run(ask, question, token=loop)
        except Exception:  # noqa: BLE001 - no answer is no consent
            return False

    return confirm
