"""The smallest host: a list of messages, a tool that reads and a tool that prints. With an adapter as an example."""

import hashlib
import secrets
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pagein.engine.engine import Engine
from pagein.engine.prepared_request import CLOSED_GATE, OPEN_GATE
from pagein.errors import CallerError
from pagein.model.json_text import decode_json
from pagein.model.messages import Message, ToolCall
from pagein.policy.reads.read_request import DoneRead
from pagein.ports import Hook
from pagein.tools import catalogue
from pagein.tools.calls import Call

EVERY_HOOK: frozenset[Hook] = frozenset(["context", "tools", "tool_events", "session"])


class MinimalAdapter:
    """A `HostAdapter` on the library: messages in, messages out.

    name: the host's name of the session; without the hook `session` it is not used. now: seconds since 1970.
    """

    def __init__(
        self, engine: Engine, name: str, hooks: Iterable[Hook] = EVERY_HOOK, workspace: str = ".", now: float = 1000.0
    ) -> None:
        self.hooks = frozenset(hooks)
        name = name if "session" in self.hooks else f"nameless-{secrets.token_hex(8)}"
        self._session = engine.session(name, workspace=workspace)
        self._now = now
        self._known: list[object] = []
        self._places: list[str | None] = [None]
        self._names = [""]

    def follow(self, history: Sequence[object]) -> None:
        """Go to the last common message, and append the messages behind. Other values than a `Message` are skipped."""
        same = 0
        for one, other in zip(history, self._known, strict=False):
            if one != other:
                break
            same += 1
        if same < len(self._known) or not self._known:
            self._session.move(self._places[same])
            self._known, self._places = self._known[:same], self._places[: same + 1]
            self._names = self._names[: same + 1]
        for one in history[same:]:
            self._names.append(self._append(one) if isinstance(one, Message) else self._names[-1])
            self._known.append(one)
            self._places.append(self._session.leaf)

    def _append(self, message: Message) -> str:
        """Append under a name made of message and place, so that a new process finds earlier decisions."""
        told = f"{self._names[-1]}\n{message}"
        name = hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()
        if name in self._session.journal:
            self._session.move(name)
        else:
            self._session.append(message, name=name)
        return name

    def context(self) -> Sequence[Message]:
        """Return the window of the session; without the hook the host sends its own messages."""
        if "context" not in self.hooks:
            self._session.advance(self._now, CLOSED_GATE)
            return [one for one in self._known if isinstance(one, Message)]
        self._session.advance(self._now, OPEN_GATE)
        self._places[-1] = self._session.leaf  # what was decided belongs to this branch
        return self._session.last_request()

    def tools(self) -> frozenset[str]:
        """Return the names of pagein's tools."""
        return frozenset(one.name for one in catalogue.offer_tools()) if "tools" in self.hooks else frozenset()

    def answer(self, name: str, arguments: Mapping[str, Any]) -> str:
        """Answer from the catalogue of tools. No input of a model raises."""
        told = catalogue.answer(self._session, name, Call(arguments))
        self._places[-1] = self._session.leaf
        return told.text

    def tool_ran(self, call: ToolCall, text: str) -> str:
        """Answer a repeated read with the changes only."""
        given = decode_json(call.arguments.encode())
        if "tool_events" not in self.hooks or call.name != "read" or not isinstance(given, dict):
            return text
        try:
            answered = self._session.reads.read(str(given.get("path")), done=DoneRead(text)).text
        except CallerError:
            return text
        self._places[-1] = self._session.leaf
        return answered
