"""A pi of few lines: a session tree, pi's own tools, and the events that its extension forwards."""

import itertools
import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import msgspec

from pagein.engine.engine import Engine
from pagein.errors import BadInput
from pagein.model.documents import Document
from pagein.pi_host.bridge import Bridge, ExtensionLink
from pagein.pi_host.host import PiDependencies, PiHost, PiSettings
from pagein.pi_host.protocol import PROTOCOL, REQUESTS, CallVerdict, Patch, WindowEdits
from pagein.policy.reads.baseline import baseline

_NO_EDITS: Final = asdict(WindowEdits())
_AS_IT_IS: Final = asdict(CallVerdict())
_NOTHING: Final = asdict(Patch())


class FakePi:
    """One session of pi with its extension, and the host that answers it.

    entries: by id. leaf: where pi is. edits: changes of results in requests, by call. inserts: texts of pagein's own in
    requests, with the message they stand behind. failure: what failed with the last request. given: settings of the session.
    gateways: addresses of the gateways that the user runs. missing: hooks that this host does not have: `context` before
    requests, `calls` around tool calls. is_off: whether the person has switched pagein off.
    """

    def __init__(self, engine: Engine, folder: Path, settings: PiSettings | None = None, name: str = "s1") -> None:
        self.folder = folder
        self.entries: dict[str, dict[str, Any]] = {}
        self.leaf: str | None = None
        self.edits: dict[str, str] = {}
        self.inserts: list[tuple[str, str]] = []
        self.failure = ""
        self.given: Mapping[str, object] = {}
        self.gateways: list[str] = []
        self.missing: set[str] = set()
        self.is_off = False
        self._numbers = itertools.count(1)
        self.engine = engine
        self._settings = settings or PiSettings()
        self.restart(name)

    def restart(self, name: str, engine: Engine | None = None) -> None:
        """Start pagein anew, which then knows nothing of the branch."""
        self.engine = engine or self.engine
        around = PiDependencies(
            lambda _, given: self.opens(given),
            lambda: 1000.0,
            is_off=lambda: self.is_off,
            gateways=lambda: self.gateways,
        )
        self.host = PiHost(self._settings, around)
        self._known: set[str] = set()
        self.link = ExtensionLink(Bridge.__new__(Bridge), threading.Event())
        hello = {"protocol": PROTOCOL, "extension": "0", "session": name, "cwd": str(self.folder)}
        self.welcome = self._send("hello", hello)

    def opens(self, given: Mapping[str, object]) -> Engine:
        """The engine for the settings of the session; always the same one here."""
        self.given = given
        return self.engine

    def branch(self) -> list[dict[str, Any]]:
        """The entries from the root to the leaf."""
        found, at = [], self.leaf
        while at is not None:
            found.append(self.entries[at])
            at = self.entries[at]["parentId"]
        return found[::-1]

    def ask(self, method: str, **params: Any) -> Any:  # noqa: ANN401 - any reply
        """Send a request with what is new on the branch, as the extension does."""
        branch = self.branch()
        fresh = list(itertools.takewhile(lambda one: one["id"] not in self._known, reversed(branch)))[::-1]
        known = branch[-len(fresh) - 1]["id"] if len(fresh) < len(branch) else None
        self._known |= {one["id"] for one in fresh}
        return self._send(method, {"branch": {"known": known, "entries": fresh}, **params})

    def add(self, kind: str, **fields: Any) -> str:  # noqa: ANN401 - the fields of any entry
        """Append an entry at the leaf."""
        name = f"{next(self._numbers):08x}"
        self.entries[name] = json.loads(json.dumps({"type": kind, "id": name, "parentId": self.leaf, **fields}))
        self.leaf = name
        return name

    def say(self, words: str) -> str:
        """Let the person say something."""
        return self.add("message", message={"role": "user", "content": words, "timestamp": 1})

    def call(self, *calls: tuple[str, dict[str, Any]], order: Sequence[int] | None = None) -> list[str]:
        """Let the model make calls at once. Returns the texts of their results, as pi keeps them.

        order: in which the calls finish.
        """
        self.request()
        made = [
            {"type": "toolCall", "id": f"call_{next(self._numbers)}", "name": name, "arguments": given}
            for name, given in calls
        ]
        self.add("message", message={"role": "assistant", "content": made, "timestamp": 1})
        results: dict[int, dict[str, Any]] = {}
        for place in order or range(len(made)):
            results[place] = self._run(made[place])
        for place in range(len(made)):
            self.add("message", message=results[place])
        return [results[place]["content"][0]["text"] for place in range(len(made))]

    def forget(self) -> None:
        """Let the extension tell the whole branch anew, as it does when pagein does not know an entry."""
        self._known = set()

    def request(self, usage: Mapping[str, int] | None = None) -> list[str]:
        """Let pi send a request. Returns the texts of the results that the model sees."""
        told = _NO_EDITS if "context" in self.missing else self.ask("context", usage=usage)
        self.failure = told["failure"]
        if told["reset"]:
            self.edits, self.inserts = {}, []
        self.edits |= told["results"]
        self.inserts += [(one["after"], one["text"]) for one in told["inserts"]]
        messages = [one["message"] for one in self.branch() if one["type"] == "message"]
        results = [one for one in messages if one["role"] == "toolResult"]
        return [self.edits.get(one["toolCallId"], one["content"][0]["text"]) for one in results]

    def order(self, name: str, args: str = "") -> str:
        """Give a command, and carry out what its answer asks for."""
        answer = self.ask("command", name=name, args=args)
        for entry in answer["entries"]:
            self.add("custom", customType=entry["type"], data=entry["data"])
        return str(answer["text"])

    def _run(self, made: dict[str, Any]) -> dict[str, Any]:
        call = {"id": made["id"], "name": made["name"], "input": dict(made["arguments"])}
        verdict = _AS_IT_IS if "calls" in self.missing else self.ask("tool_call", call=call)
        base = {"role": "toolResult", "toolCallId": made["id"], "toolName": made["name"], "timestamp": 1}
        if verdict["block"]:
            return {**base, "content": [{"type": "text", "text": verdict["block"]}], "details": {}, "isError": True}
        call["input"] |= verdict["input"] or {}
        try:
            text, details = self._tool(call["name"], call["input"])
        except (OSError, BadInput) as problem:
            return {**base, "content": [{"type": "text", "text": str(problem)}], "details": {}, "isError": True}
        patch = _NOTHING
        if "calls" not in self.missing:
            patch = self.ask("tool_result", call=call, text=text, details=details)
        assert patch["failure"] == ""
        text = text if patch["text"] is None else patch["text"]
        details = details if patch["details"] is None else patch["details"]
        return {**base, "content": [{"type": "text", "text": text}], "details": details, "isError": False}

    def _tool(self, name: str, given: dict[str, Any]) -> tuple[str, dict[str, Any] | None]:
        if name == "bash":  # prints a file, for an output that is no read
            return (self.folder / given["command"].split()[-1]).read_text(encoding="utf-8"), None
        path = self.folder / given["path"]
        if name == "read":
            text = Document.of(path.read_bytes(), path="", key="").text
            shown = baseline(text, given["path"], offset=given.get("offset"), limit=given.get("limit"))
            return shown.text, shown.details or None
        if name == "write":
            path.write_text(given["content"], encoding="utf-8")
            return f"Successfully wrote {len(given['content'])} bytes to {given['path']}", None
        before = path.read_text(encoding="utf-8")
        if any(before.count(edit["oldText"]) != 1 for edit in given["edits"]):
            raise BadInput("Could not find the exact text")
        after = before
        for edit in given["edits"]:
            after = after.replace(edit["oldText"], edit["newText"])
        path.write_text(after, encoding="utf-8")
        return f"Successfully replaced {len(given['edits'])} block(s)", {"diff": "", "firstChangedLine": 1}

    def _send(self, method: str, params: dict[str, Any]) -> Any:  # noqa: ANN401 - any reply
        event: object = msgspec.convert(json.loads(json.dumps(params)), REQUESTS[method])
        reply = self.host.answer(event, self.link)
        return json.loads(json.dumps(reply if isinstance(reply, dict) else asdict(reply)))  # type: ignore[call-overload]
