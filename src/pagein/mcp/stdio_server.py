"""Serve MCP on standard input and output.

The official SDK speaks the protocol, in both of its eras. Importing the SDK takes over a second, and clients wait for the
first answers before they start, so these are given here, at once (`first_answers`).

```
 client ──lines──▶ front ──pipe──▶ SDK ──lines──▶ client
                     └─── first answers ────────────▲
```

Rules of this file
------------------
1. The SDK must know of the handshake, so `initialize` goes on to it, and its own answer to that is dropped.
2. Everything that is no line of the protocol goes to standard error.
3. The end of the input ends the server: running calls are cancelled, and nothing outlives the process.
"""

import contextlib
import io
import json
import os
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, BinaryIO, Final, TypeAlias

from pagein.mcp.first_answers import FirstAnswers, Message
from pagein.mcp.message_problems import BAD_PARAMS, INVALID, form_problem, is_id, params_problem

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

LONGEST_LINE: Final = 16 * 1024 * 1024
"""Bytes of one message; no call of these tools needs more."""

Serve: TypeAlias = Callable[[BinaryIO, io.BufferedIOBase], None]
"""Speaks the protocol on an input and an output until the input ends."""

_NOT_JSON: Final[Message] = {
    "jsonrpc": "2.0",
    "id": None,
    "error": {"code": -32700, "message": "Parse error: a message is one line of JSON"},
}

_DEEPEST: Final = 64
"""Levels of objects and lists in a message. The SDK drops a message of some more."""


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
        sdk = threading.Thread(target=self._run_sdk, args=(to_sdk,), name="mcp-sdk", daemon=True)
        sdk.start()
        try:
            with contextlib.suppress(BrokenPipeError), from_front:
                while line := self._source.readline(LONGEST_LINE):
                    if len(line) == LONGEST_LINE and not line.endswith(b"\n"):
                        self._pass_over()
                    else:
                        self._take(line, from_front)
        finally:
            sdk.join()

    def _run_sdk(self, source: BinaryIO) -> None:
        with source, _WholeLines(self._pass_on) as sink:
            self._serve(source, sink)

    def _pass_over(self) -> None:
        """Refuse an overlong message, and skip the rest of the line."""
        rest = b"?"
        while rest and not rest.endswith(b"\n"):
            rest = self._source.readline(LONGEST_LINE)
        told = f"Invalid request: a message has at most {LONGEST_LINE} bytes"
        self._tell({"jsonrpc": "2.0", "id": None, "error": {"code": INVALID, "message": told}})

    def _take(self, line: bytes, sdk: BinaryIO) -> None:
        """Answer a message, or hand it to the SDK."""
        if not line.strip():
            return
        try:
            message = json.loads(line.decode())  # as the SDK does: it drops a line that is JSON in another encoding
        except (ValueError, RecursionError):
            self._tell(_NOT_JSON)
            return
        code, problem = _problem(line, message)
        if problem:
            name = message.get("id") if isinstance(message, dict) else None
            known = name if is_id(name) else None
            self._tell({"jsonrpc": "2.0", "id": known, "error": {"code": code, "message": problem}})
            return
        found = self._first.answer(message) if isinstance(message, dict) else None
        if found is not None:
            self._tell(found)
            if message["method"] != "initialize":
                return
            self._answered.add(_id_text(message))
        if b"\\u" in line:  # half of a surrogate pair: the SDK would drop the message, and its caller wait for ever
            line = json.dumps(message, ensure_ascii=False).encode("utf-8", "replace")
        sdk.write(line if line.endswith(b"\n") else line + b"\n")
        sdk.flush()

    def _pass_on(self, line: bytes) -> None:
        """Write a message of the SDK's to the client, unless it answers what was answered here."""
        if self._answered and (known := _id_text(json.loads(line))) in self._answered:
            self._answered.discard(known)
        else:
            self._write(line)

    def _tell(self, message: Message) -> None:
        self._write(json.dumps(message, separators=(",", ":"), ensure_ascii=False).encode() + b"\n")

    def _write(self, line: bytes) -> None:
        with self._writing, contextlib.suppress(BrokenPipeError):
            self._sink.write(line)
            self._sink.flush()


class _WholeLines(io.BufferedIOBase):
    """An output that hands each line on when the line is whole.

    take: is given the line with its end.
    """

    def __init__(self, take: Callable[[bytes], None]) -> None:
        self._take = take
        self._part = b""

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, data: "ReadableBuffer", /) -> int:
        """Take bytes of lines. Returns how many."""
        news = bytes(data)
        *whole, self._part = (self._part + news).split(b"\n")
        for line in whole:
            self._take(line + b"\n")
        return len(news)


def _id_text(message: Mapping[str, Any]) -> str:
    """Return an id as text that tells 1 from "1"."""
    return "" if "method" in message and "id" not in message else json.dumps(message.get("id"))


def _problem(line: bytes, message: object) -> tuple[int, str]:
    """Return the reason against a message with the protocol's code; "" for a correct message.

    The SDK would drop such a message while the client waits, and would refuse wrong parameters without a reason.
    """
    problem = form_problem(message) or _content_problem(line, message)
    wrong = "" if problem or not isinstance(message, dict) else params_problem(message)
    return (BAD_PARAMS, wrong) if wrong else (INVALID, problem)


def _content_problem(line: bytes, message: object) -> str:
    """Return the reason why the SDK cannot take a well-formed message; "" for none."""
    if line.count(b"[") + line.count(b"{") > _DEEPEST and _is_deep(message):
        return f"Invalid request: a message has at most {_DEEPEST} levels of objects and lists"
    if b"\\ud" in line.lower():
        try:
            json.dumps(message, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            return "Invalid request: a text has half of a surrogate pair, which is no character"
    return ""


def _is_deep(message: object) -> bool:
    """Return whether a message has more levels than the SDK takes."""
    level: list[object] = [message]
    for _ in range(_DEEPEST):
        inner = (one.values() if isinstance(one, dict) else one for one in level if isinstance(one, dict | list))
        level = [part for parts in inner for part in parts]
    return any(isinstance(one, dict | list) for one in level)


def _pipe() -> tuple[BinaryIO, BinaryIO]:
    """Return the two ends of a pipe, that to read first."""
    reader, writer = os.pipe()
    return os.fdopen(reader, "rb"), os.fdopen(writer, "wb")
