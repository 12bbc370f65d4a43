"""Serve MCP over HTTP: one message for each POST, one response of JSON. Nothing is kept between two messages.

Rules of this file
------------------
1. Nothing of the official SDK is imported: the gateway that serves this has its own time limits.
2. Versions with a handshake name the client once. Its name is in the session id that it then sends with each message, so
   that nothing must be kept here.
3. A client that hangs up cancels its call.
"""

import asyncio
import json
import re
import secrets
import threading
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeAlias

from aiohttp import web

from pagein.engine.reads.session_reads import ReadResult
from pagein.mcp.call_results import result_fields
from pagein.mcp.first_answers import STATELESS, VERSION_FIELD, FirstAnswers, Message
from pagein.mcp.message_problems import BAD_PARAMS, INVALID, form_problem, params_problem
from pagein.mcp.stdio_server import LONGEST_LINE
from pagein.mcp.tool_answers import Caller, ToolAnswers, caller_ids

PATH: Final = "/mcp"
"""Path of the endpoint below the gateway's address."""

Handler: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]

_AT_ONCE: Final = 8
"""Calls of all clients that are answered at the same time."""
_CLIENT_FIELD: Final = "io.modelcontextprotocol/clientInfo"
_SESSION: Final = "Mcp-Session-Id"
_LONGEST_SESSION: Final = 200
_NAME: Final = re.compile(r"[0-9A-Za-z_-]{1,60}")
_PARSE, _NO_METHOD, _MISMATCH, _VERSION = -32700, -32601, -32020, -32022


class HttpEndpoint:
    """The tools of one engine over HTTP.

    has_structure: whether answers also have a structured form.
    """

    def __init__(self, first: FirstAnswers, answers: ToolAnswers, *, has_structure: bool = False) -> None:
        self._first = first
        self._answers = answers
        self._has_structure = has_structure
        self._free = asyncio.Semaphore(_AT_ONCE)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer a request of any method. The caller has checked who asks."""
        if request.method != "POST":
            return web.Response(status=405, headers={"Allow": "POST"})
        try:
            body = await request.clone(client_max_size=LONGEST_LINE).read()
        except web.HTTPRequestEntityTooLarge:
            return _error(None, INVALID, f"a message has at most {LONGEST_LINE} bytes", status=413)
        try:
            message = json.loads(body)
        except (ValueError, RecursionError):
            return _error(None, _PARSE, "Parse error: the body is one message as JSON", status=400)
        problem = form_problem(message)
        if problem:
            return _error(None, INVALID, problem, status=400)
        if "id" not in message or "method" not in message:
            return web.Response(status=202)
        params = message.get("params", {})
        meta = params.get("_meta")
        meta = meta if isinstance(meta, dict) else {}
        return _refusal(request, message, params, meta) or await self._answer(request, message, params, meta)

    async def _answer(
        self, request: web.Request, message: Message, params: Message, meta: Message
    ) -> web.StreamResponse:
        found = self._first.answer(message)
        if found is not None:
            told = params.get("clientInfo") if message["method"] == "initialize" else None
            return _json(found, {_SESSION: _session_id(told)} if told is not None else {})
        if message["method"] == "ping":
            return _json({"jsonrpc": "2.0", "id": message["id"], "result": {}})
        client = _told_name(meta.get(_CLIENT_FIELD)) or request.headers.get(_SESSION, "").rpartition(".")[0]
        if message["method"] == "resources/read":
            return await self._resource(message, params, Caller(client), is_stateless=VERSION_FIELD in meta)
        if message["method"] != "tools/call":
            status = 404 if VERSION_FIELD in meta else 200  # clients of older versions take 404 for a lost session
            return _error(message["id"], _NO_METHOD, f"there is no method {message['method']!r}", status=status)
        name, arguments = params["name"], params.get("arguments") or {}
        connection = request.headers.get(_SESSION, "")[:_LONGEST_SESSION]
        caller = Caller(client, *caller_ids(meta), connection=connection)
        result = await self._in_thread(lambda cancelled: self._answers.answer(name, arguments, caller, cancelled))
        whole = result_fields(result, has_structure=self._has_structure)
        if VERSION_FIELD in meta:
            whole["resultType"] = "complete"
        return _json({"jsonrpc": "2.0", "id": message["id"], "result": whole})

    async def _resource(
        self, message: Message, params: Message, caller: Caller, *, is_stateless: bool
    ) -> web.StreamResponse:
        uri = params["uri"]
        result = await self._in_thread(lambda cancelled: self._answers.resource(uri, caller, cancelled))
        if result.is_error:
            return _error(message["id"], BAD_PARAMS, result.text, {"uri": uri}, status=200)
        whole: Message = {"contents": [{"uri": uri, "mimeType": "text/plain", "text": result.text}]}
        more = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"} if is_stateless else {}
        return _json({"jsonrpc": "2.0", "id": message["id"], "result": {**whole, **more}})

    async def _in_thread(self, work: Callable[[threading.Event], ReadResult]) -> ReadResult:
        cancelled = threading.Event()
        try:
            async with self._free:
                return await asyncio.get_running_loop().run_in_executor(None, lambda: work(cancelled))
        finally:
            cancelled.set()


def _refusal(request: web.Request, message: Message, params: Message, meta: Message) -> web.Response | None:
    """Return why a message is not answered: wrong parameters, an unknown version, or headers that contradict the body."""
    problem = params_problem(message)
    if problem:
        return _error(message["id"], BAD_PARAMS, problem, status=400)
    version = meta.get(VERSION_FIELD)
    if version is not None and version not in STATELESS:
        told = {"supported": list(STATELESS), "requested": version}
        return _error(message["id"], _VERSION, "Unsupported protocol version", told, status=400)
    said = {"Mcp-Method": message["method"], "Mcp-Name": params.get("name")}
    if version is not None:
        said["MCP-Protocol-Version"] = version
    for name, value in said.items():
        if request.headers.get(name, value) != value:
            return _error(message["id"], _MISMATCH, f"the header {name} says something else than the body", status=400)
    return None


def _told_name(client: object) -> str:
    name = client.get("name") if isinstance(client, dict) else None
    return name if isinstance(name, str) else ""


def _session_id(client: object) -> str:
    """Return a session id that has the client's name in it, as far as a header can."""
    return f"{''.join(_NAME.findall(_told_name(client)))[:60]}.{secrets.token_hex(8)}"


def _json(message: Mapping[str, Any], headers: Mapping[str, str] | None = None, status: int = 200) -> web.Response:
    text = json.dumps(message, separators=(",", ":"), ensure_ascii=False)
    body = text.encode("utf-8", "replace")
    return web.Response(body=body, status=status, content_type="application/json", headers=headers)


def _error(name: object, code: int, text: str, data: object = None, *, status: int) -> web.Response:
    error = {"code": code, "message": text, **({} if data is None else {"data": data})}
    return _json({"jsonrpc": "2.0", "id": name, "error": error}, status=status)
