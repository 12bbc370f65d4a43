"""Speak the protocol with the extension: read lines, answer requests in order, and ask in between.

Rules of this file
------------------
1. Requests are answered in the order of their arrival. Only cancellations, and the extension's replies, overtake them.
   Work that waits for other models (`Later`) has a thread of its own, so that the requests behind it are answered.
2. A request that fails gets an error as its reply, and the process goes on.
3. The end of the input ends the process.
"""

import itertools
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass, is_dataclass
from queue import Empty, SimpleQueue
from typing import Any, BinaryIO, Final

import msgspec

from pagein.model.json_text import decode_json, encode_json
from pagein.pi_host.protocol import REQUESTS, Cancel

_PERSON: Final = 300.0
"""Seconds that a person has to answer a question."""


@dataclass(frozen=True, slots=True)
class Later:
    """A slow reply. work: makes the reply, in a thread of its own; may raise anything."""

    work: Callable[[], object]


class ExtensionLink:
    """The channel to the extension during a request.

    signal: set once the request is no longer wanted.
    """

    def __init__(self, bridge: "Bridge", signal: threading.Event) -> None:
        self._bridge = bridge
        self.signal = signal

    def confirm(self, title: str, message: str) -> bool:
        """Ask the person at pi. Returns False without an answer."""
        return self._bridge.ask("confirm", {"title": title, "message": message}, _PERSON) is True

    def show(self, lines: tuple[str, ...]) -> None:
        """Show progress to the person at pi."""
        self._bridge.tell("widget", {"lines": lines})


class Bridge:
    """A connected extension, on two streams.

    answer: returns the reply to a request; may raise anything.
    """

    def __init__(self, source: BinaryIO, sink: BinaryIO, answer: Callable[[object, ExtensionLink], object]) -> None:
        self._source = source
        self._sink = sink
        self._answer = answer
        self._writing = threading.Lock()
        self._todo: SimpleQueue[tuple[int, object] | None] = SimpleQueue()
        self._signals: dict[int, threading.Event] = {}
        self._replies: dict[str, SimpleQueue[object]] = {}
        self._numbers = itertools.count(1)

    def run(self) -> None:
        """Answer requests until the input ends."""
        threading.Thread(target=self._read, name="pi-input", daemon=True).start()
        while (one := self._todo.get()) is not None:
            number, params = one
            self._reply(number, params)

    def ask(self, method: str, params: object, patience: float) -> object:
        """Ask the extension. Returns None without an answer in time."""
        name = f"p{next(self._numbers)}"
        waiting = self._replies[name] = SimpleQueue()
        try:
            self._send({"id": name, "method": method, "params": params})
            return waiting.get(timeout=patience)
        except Empty:
            return None
        finally:
            del self._replies[name]

    def tell(self, method: str, params: object) -> None:
        """Tell the extension something that needs no answer."""
        self._send({"id": f"p{next(self._numbers)}", "method": method, "params": params})

    def _read(self) -> None:
        try:
            while line := self._source.readline():
                if line.strip():
                    self._take(line)
        finally:
            for signal in list(self._signals.values()):
                signal.set()
            self._todo.put(None)

    def _take(self, line: bytes) -> None:
        try:
            message = decode_json(line)
        except ValueError:
            return
        if not isinstance(message, dict):
            return
        number, method = message.get("id"), message.get("method")
        if method is None:
            waiting = self._replies.get(str(number))
            if waiting is not None:
                waiting.put(message.get("result"))
            return
        try:
            params: object = msgspec.convert(message.get("params") or {}, REQUESTS[str(method)])
        except (KeyError, msgspec.ValidationError) as problem:
            self._send({"id": number, "error": f"{method}: {problem}"})
            return
        if isinstance(params, Cancel):
            if (signal := self._signals.get(params.request)) is not None:
                signal.set()
        elif isinstance(number, int):
            self._signals[number] = threading.Event()
            self._todo.put((number, params))

    def _reply(self, number: int, params: object) -> None:
        link = ExtensionLink(self, self._signals[number])
        later = self._settle(number, lambda: self._answer(params, link))
        if later is not None:
            work = later.work
            threading.Thread(target=lambda: self._settle(number, work), name="pi-later", daemon=True).start()

    def _settle(self, number: int, work: Callable[[], object]) -> Later | None:
        """Send the reply to a request, or start the work of a slow reply."""
        try:
            result = work()
            if isinstance(result, Later):
                return result
            self._send({"id": number, "result": result})
        except BrokenPipeError:
            raise
        except Exception as problem:  # noqa: BLE001 - rule 2; the extension then does as without pagein
            self._send({"id": number, "error": f"{type(problem).__name__}: {problem}"})
        del self._signals[number]
        return None

    def _send(self, message: dict[str, Any]) -> None:
        line = encode_json(message, _plain) + b"\n"
        with self._writing:
            self._sink.write(line)
            self._sink.flush()


def _plain(value: object) -> object:
    """Return a value of the protocol as plain types, for texts that only the slower encoder takes."""
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    raise TypeError(f"{type(value).__name__} is no value of the protocol")
