"""Serve MCP on standard input and output.

The official SDK speaks the protocol, in both of its eras. Importing the SDK takes over a second, and clients wait for the
first answers before they start, so three questions are answered here, at once: `initialize`, `server/discover` and
`tools/list`. Their answers depend on nothing that the SDK knows.

```
 client ──lines──▶ front ──pipe──▶ SDK ──pipe──▶ pump ──lines──▶ client
                     └── the three answers ────────────────────────▲
```

Rules of this file
------------------
1. The SDK must know of the handshake, so `initialize` goes on to it, and its own answer to that is dropped.
2. Everything that is no line of the protocol goes to standard error.
3. The end of the input ends the server: running calls are cancelled, and nothing outlives the process.
"""

import contextlib
import json
import os
import threading
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO, Final, TypeAlias

from pagein import __version__
from pagein.mcp.offered_tools import INSTRUCTIONS, OfferedTool

HANDSHAKES: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""Protocol versions that begin with a handshake, the newest last."""
STATELESS: Final = ("2026-07-28",)
"""Protocol versions without a handshake: each request says its version."""
VERSION_FIELD: Final = "io.modelcontextprotocol/protocolVersion"
SERVER_FIELD: Final = "io.modelcontextprotocol/serverInfo"
FRESH_MS: Final = 24 * 3600 * 1000
"""Milliseconds for which clients may keep the lists: they change with pagein's version or settings alone."""
LONGEST_LINE: Final = 16 * 1024 * 1024
"""Bytes of one message; no call of these tools needs more."""

Message: TypeAlias = dict[str, Any]
Serve: TypeAlias = Callable[[BinaryIO, BinaryIO], None]
"""Speaks the protocol on an input and an output until the input ends."""

_NOT_JSON: Final[Message] = {
    "jsonrpc": "2.0",
    "id": None,
    "error": {"code": -32700, "message": "Parse error: a message is one line of JSON"},
}
_CAPABILITIES: Final = {"tools": {"listChanged": False}}


class FirstAnswers:
    """The answers that need no SDK."""

    def __init__(self, tools: tuple[OfferedTool, ...]) -> None:
        self._tools = [one.definition for one in tools]

    def answer(self, message: Mapping[str, Any]) -> Message | None:
        """Return the response to a request; None for any other message, and for a version that the SDK must refuse."""
        method, params = message.get("method"), message.get("params")
        if "id" not in message or not isinstance(params, dict | None):
            return None
        params = params or {}
        meta = params.get("_meta")
        version = meta.get(VERSION_FIELD) if isinstance(meta, dict) else None
        if method == "initialize" and isinstance(params.get("protocolVersion"), str):
            return _response(message, self._initialized(params["protocolVersion"]))
        if version is not None and version not in STATELESS:
            return None
        if method == "tools/list" and params.get("cursor") is None:
            return _response(message, _with_envelope({"tools": self._tools}, version))
        if method == "server/discover" and version is not None:
            found = {
                "supportedVersions": list(STATELESS),
                "capabilities": _CAPABILITIES,
                "instructions": INSTRUCTIONS,
            }
            return _response(message, _with_envelope(found, version))
        return None

    def _initialized(self, version: str) -> Message:
        return {
            "protocolVersion": version if version in HANDSHAKES else HANDSHAKES[-1],
            "capabilities": _CAPABILITIES,
            "serverInfo": {"name": "pagein", "version": __version__},
            "instructions": INSTRUCTIONS,
        }


def _with_envelope(result: Message, version: str | None) -> Message:
    """Return a result with the fields that stateless versions of the protocol add."""
    if version is None:
        return result
    return {
        **result,
        "resultType": "complete",
        "ttlMs": FRESH_MS,
        "cacheScope": "private",
        "_meta": {SERVER_FIELD: {"name": "pagein", "version": __version__}},
    }


def _response(request: Mapping[str, Any], result: Message) -> Message:
    return {"jsonrpc": "2.0", "id": request["id"], "result": result}


class StdioServer:
    """One client on an input and an output.

    serve: speaks the rest of the protocol; imports the SDK when it is called.
    """

    def __init__(self, first: FirstAnswers, serve: Serve, source: BinaryIO, sink: BinaryIO) -> None:
        self._first = first
        self._serve = serve
        self._source = source
        self._sink = sink
        self._writing = threading.Lock()
        self._answered: set[str] = set()

    def run(self) -> None:
        """Serve until the input ends."""
        to_sdk, from_front = _pipe()
        to_pump, from_sdk = _pipe()
        sdk = threading.Thread(target=self._run_sdk, args=(to_sdk, from_sdk), name="mcp-sdk", daemon=True)
        pump = threading.Thread(target=self._pump, args=(to_pump,), name="mcp-output", daemon=True)
        sdk.start()
        pump.start()
        try:
            with contextlib.suppress(BrokenPipeError), from_front:
                while line := self._source.readline(LONGEST_LINE):
                    self._take(line, from_front)
        finally:
            sdk.join()
            pump.join()

    def _run_sdk(self, source: BinaryIO, sink: BinaryIO) -> None:
        with source, sink:
            self._serve(source, sink)

    def _take(self, line: bytes, sdk: BinaryIO) -> None:
        """Answer a message, or hand it to the SDK."""
        if not line.strip():
            return
        try:
            message = json.loads(line)
        except ValueError:
            self._tell(_NOT_JSON)
            return
        found = self._first.answer(message) if isinstance(message, dict) else None
        if found is not None:
            self._tell(found)
            if message["method"] != "initialize":
                return
            self._answered.add(_id_text(message))
        sdk.write(line if line.endswith(b"\n") else line + b"\n")
        sdk.flush()

    def _pump(self, source: BinaryIO) -> None:
        """Write the SDK's messages to the client, without its answers to what was answered here."""
        with source:
            for line in source:
                if self._answered and (known := _id_text(json.loads(line))) in self._answered:
                    self._answered.discard(known)
                    continue
                self._write(line)

    def _tell(self, message: Message) -> None:
        self._write(json.dumps(message, separators=(",", ":"), ensure_ascii=False).encode() + b"\n")

    def _write(self, line: bytes) -> None:
        with self._writing, contextlib.suppress(BrokenPipeError):
            self._sink.write(line)
            self._sink.flush()


def _id_text(message: Mapping[str, Any]) -> str:
    """Return an id as text that tells 1 from "1"."""
    return "" if "method" in message and "id" not in message else json.dumps(message.get("id"))


def _pipe() -> tuple[BinaryIO, BinaryIO]:
    """Return the two ends of a pipe, that to read first."""
    reader, writer = os.pipe()
    return os.fdopen(reader, "rb"), os.fdopen(writer, "wb")
