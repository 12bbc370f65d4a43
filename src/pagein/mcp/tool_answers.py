"""Answer the calls of MCP clients: reads by receipt, searches over the store, and recalls by id.

Rules of this file
------------------
1. Nothing counts as known but what the call itself proves, and what stands in the client's window where that can be
   looked at (see `engine.receipts`): in the request of a gateway on the same store, else in the client's transcript.
2. A failure in pagein is an answer with the text that can still be had, or an error that names the remedy; never an
   exception.
"""

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any, Final, Protocol, TypeVar

from pagein.engine.engine import Engine
from pagein.engine.log.read_notes import trace_of
from pagein.engine.log.standing_receipts import StandingReceipt
from pagein.engine.reads.session_guards import GuardTally
from pagein.engine.reads.session_reads import ReadResult
from pagein.engine.receipts import ReceiptedReads
from pagein.engine.sent_windows import SentWindows, ToolRequest
from pagein.engine.session import Session
from pagein.errors import BadInput, StoreError
from pagein.mcp.confirmations import CallConsent
from pagein.mcp.object_resources import peek_arguments
from pagein.mcp.offered_tools import CONFIRM, LONGEST_ANSWER, TOOLS, USUAL
from pagein.mcp.workspaces import workspace_of
from pagein.policy.guards.judgement import EXCEEDED
from pagein.ports import Signal
from pagein.tools import catalogue
from pagein.tools.calls import ArgumentReader, Call, refusal_result
from pagein.tools.read import REFRESH
from pagein.tools.reading.argument_matrix import MATRIX, MOST
from pagein.tools.reading.legacy_tools import legacy_arguments
from pagein.tools.reading.unified_read import answer_unified_read
from pagein.tools.window_tools import WINDOW_TOOLS


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls a tool.

    client: the client's own name; "" if unknown.
    id: the client's id of the call; "" if unknown.
    thread: the client's id of the conversation; "" if unknown.
    connection: name of the connection, unique among those of the server; "" if calls cannot be told apart by it.
    roots: the folders in which the client works; empty if unknown.
    tell: receives progress, in words; None if the client wants none.
    confirm: asks the client's user whether to continue; None if the client has no dialogue.
    """

    client: str = ""
    id: str = ""
    thread: str = ""
    connection: str = ""
    roots: tuple[str, ...] = ()
    tell: Callable[[str], None] | None = None
    confirm: Callable[[str], bool] | None = None


_PATIENCE: Final = 0.4
"""Seconds that a gateway may need to journal an answer after its client has the answer."""
_PAUSE: Final = 0.02
_ALWAYS: Final[Mapping[str, Mapping[str, object]]] = {"search": {"everything": True}}
_OF_READ: Final = frozenset(row.name for row in MATRIX)
"""Arguments of `read`. It answers each of them, also those that the short list does not offer."""
_OF_WINDOWS: Final = frozenset(one.name for one in WINDOW_TOOLS)
_NO_GATEWAY: Final = (
    "Your requests pass no gateway of pagein on this store, so pagein takes nothing out of your context and can bring nothing back. "
    "Read again, or peek."
)
_REMEDIES: Final = {
    catalogue.DISABLED: "Outside of pi, the user runs `pagein on`.",
    EXCEEDED: 'Here that is read with mode="snippet" and a pattern over a folder: the tool search does not look in files.',
}
"""Refusals in the words of other hosts, with the remedy of this one."""
_LONGEST_ERROR: Final = 2_000
_SHORT: Final = 200
"""Characters of a recalled part that is shown again rather than hashed."""
_MOST_TALLIES: Final = 4_096
"""Conversations whose reads are counted at the same time."""
_DIGITS: Final = 10
_HASH: Final = re.compile(r"(?:\[?hash=)?([0-9a-f]+)\]?")
_RECEIPT: Final = re.compile(r"\[?known=([0-9a-f]+)\]?")
T = TypeVar("T")
_CALL_ID_FIELDS: Final = ("claudecode/toolUseId", "toolUseId", "callId")
"""Fields in which clients tell the model's own id of the call."""


def caller_ids(meta: object) -> tuple[str, str]:
    """Return the ids of call and conversation in a request's `_meta`; "" for a missing id."""
    told = meta if isinstance(meta, dict) else {}
    found = next((told[name] for name in _CALL_ID_FIELDS if isinstance(told.get(name), str)), "")
    thread = told.get("threadId")
    return found, thread if isinstance(thread, str) else ""


class AgentWindow(Protocol):
    """The window of the calling agent, as far as a gateway or a transcript proves the content."""

    def standing(self, asked: ToolRequest, thread: str) -> Mapping[str, StandingReceipt]:
        """Return the receipts visible at a call, by the ids of the answered calls.

        Returns nothing if there is any doubt. Raises nothing.
        """
        ...

    def catch_up(self, asked: ToolRequest, thread: str) -> None:
        """Store the window's content up to a call, where a transcript has the content. Raises nothing."""
        ...


class ToolAnswers:
    """The tools of one engine for MCP clients. Thread-safe.

    workspaces: folders whose files may be read; relative paths are looked up in the first.
    names: the tools that may be called.
    follows_roots: whether the roots of a client replace `workspaces`.
    is_off: returns whether the user has switched pagein off; then files are shown unchanged, and nothing is recalled.
    window: the caller's window by the agent's transcript, for callers without a gateway on the same store; None if unavailable.
    """

    def __init__(
        self,
        engine: Engine,
        workspaces: str | Sequence[str],
        names: tuple[str, ...] = USUAL,
        is_off: Callable[[], bool] = lambda: False,
        window: AgentWindow | None = None,
        *,
        follows_roots: bool = False,
    ) -> None:
        self._engine = engine
        self._workspaces = (workspaces,) if isinstance(workspaces, str) else tuple(workspaces)
        self.follows_roots = follows_roots
        self._names = names
        self._is_off = is_off
        self._window = window
        self._reads: dict[str, ReceiptedReads] = {}
        self._tallies = Tallies()
        self._lock = Lock()

    def answer(self, name: str, arguments: Mapping[str, object], caller: Caller, signal: Signal) -> ReadResult:
        """Answer a call of a tool. Raises nothing for any arguments."""
        result = self._answer(name, arguments, caller, signal)
        if result.is_error and (remedy := _REMEDIES.get(result.text)):
            return replace(result, text=f"{result.text} {remedy}")
        if not result.is_error or len(result.text) <= _LONGEST_ERROR:
            return result
        half = _LONGEST_ERROR // 2  # an error repeats arguments, and ends with the remedy
        return replace(result, text=f"{result.text[:half]} [...] {result.text[-half:]}")

    def _answer(self, name: str, arguments: Mapping[str, object], caller: Caller, signal: Signal) -> ReadResult:
        if name not in self._names:
            return refusal_result(f"There is no tool {name!r}; the tools are {', '.join(self._names)}.")
        legacy = legacy_arguments(name, arguments)  # such a tool knows more names of arguments than it offers
        takes = {*TOOLS[name].schema["properties"], *(_OF_READ if name == "read" else ())}
        strange = sorted(set(arguments) - takes) if legacy is None else []
        if strange:
            known = ", ".join(TOOLS[name].schema["properties"])
            return refusal_result(f"{name} has no argument {strange[0]!r}; its arguments are {known}.")
        if legacy is not None or name == "read":
            return self._read(legacy or arguments, caller, signal)
        session = self._session(caller, arguments.get("path") if name == REFRESH.name else None)
        if name in _OF_WINDOWS:
            return self._order(session, name, arguments, caller)
        if name == "search" and self._window is not None and not self._is_off():
            self._window.catch_up(ToolRequest(caller.id, name, arguments, _now()), caller.thread)
        consent = CallConsent(name, arguments, caller.confirm)
        asked = {one: value for one, value in arguments.items() if one != CONFIRM}
        call = Call({**asked, **_ALWAYS.get(name, {})}, caller.id, signal, caller.tell, consent.ask)
        result = catalogue.answer(session, name, call, enabled=not self._is_off())
        if consent.refused:
            return refusal_result(consent.refused)
        seen = ArgumentReader(name, arguments).text("if_not") if name == "peek" else ""
        return _with_hash(result, seen) if name == "peek" else result

    def _order(self, session: Session, name: str, arguments: Mapping[str, object], caller: Caller) -> ReadResult:
        """Order a gateway on the same store to keep a result in the caller's window, or to let the result go."""
        asked = ToolRequest(caller.id, name, arguments, _now())
        try:
            meant = _awaited(session.sent_windows, asked, session.sent_windows.session_of)
        except StoreError as problem:
            return refusal_result(f"{name} cannot be done now: {problem}")
        if meant is None:
            return refusal_result(_NO_GATEWAY)
        return catalogue.answer(self._engine.session(meant), name, Call(arguments), enabled=not self._is_off())

    def resource(self, uri: str, caller: Caller, signal: Signal) -> ReadResult:
        """Show a stored object by its address. Raises nothing for any address."""
        try:
            arguments = peek_arguments(uri)
        except BadInput as problem:
            return refusal_result(str(problem))
        call = Call(arguments, signal=signal)
        return catalogue.answer(self._session(caller), "peek", call, enabled=not self._is_off())

    def _session(self, caller: Caller, path: object = None) -> Session:
        """Return the session for the journal of a call: one session per client and workspace, so that receipts survive restarts."""
        folders = caller.roots if self.follows_roots and caller.roots else self._workspaces
        folder = workspace_of(path, folders) if isinstance(path, str) else folders[0]
        return self._engine.session(_session_name(caller, "" if folder == self._workspaces[0] else folder), folder)

    def _read(self, arguments: Mapping[str, object], caller: Caller, signal: Signal) -> ReadResult:
        given = ArgumentReader("read", arguments)
        known, bypass = map(_bare_tag, given.texts("known") or ()), given.yes("fresh")
        problem = given.problem()
        if problem is not None:
            return problem
        asked = {name: value for name, value in arguments.items() if name not in ("known", "fresh")}
        most = asked.setdefault("max_preview_chars", LONGEST_ANSWER)
        if isinstance(most, int | float) and LONGEST_ANSWER < most <= MOST:
            asked["max_preview_chars"] = LONGEST_ANSWER
        bypass = bypass or (asked.get("bypass_cache") is True and asked.get("mode") != "diff_preview")
        about = asked.get("path" if asked.get("mode") == "symbol" else "target")
        session = self._session(caller, about)
        tally = self._tallies.of(caller)

        def work(bypass: bool) -> ReadResult:  # noqa: FBT001 - the shape of all such work
            more = {"bypass_cache": True} if bypass and asked.get("mode") != "diff_preview" else {}
            with session.guards.counted_in(tally):
                return answer_unified_read(session, {**asked, **more}, signal)

        if self._is_off():
            return work(bypass=True)
        done = self._reads_of(session).answer(
            work,
            about=about if isinstance(about, str) else "",
            known=tuple(known),
            bypass=bypass,
            standing=self._standing(session, ToolRequest(caller.id, "read", arguments, _now()), caller.thread),
        )
        result = replace(done.result, details=_as_offered(done.result.details))
        if not done.receipt and not done.unknown:
            return result
        details = {**result.details, "receipt": done.receipt, "unknown": list(done.unknown)}
        return replace(result, text=done.text, details=details)

    def _standing(
        self, session: Session, asked: ToolRequest, thread: str
    ) -> Callable[[], Mapping[str, StandingReceipt]]:
        """Return a lookup of the receipts in the caller's window: as a gateway sent it, else from the agent's transcript."""

        def look() -> Mapping[str, StandingReceipt]:
            found = _awaited(session.sent_windows, asked, session.sent_windows.standing)
            if found is not None or self._window is None:
                return found or {}
            return self._window.standing(asked, thread)

        return look

    def _reads_of(self, session: Session) -> ReceiptedReads:
        with self._lock:
            found = self._reads.get(session.name)
            if found is None or not found.is_of(session):
                found = self._reads[session.name] = ReceiptedReads(session)
            return found


def _awaited(sent: SentWindows, asked: ToolRequest, find: Callable[[ToolRequest], T | None]) -> T | None:
    """Return what a gateway's journal tells of a call, also where the call is in an answer that the gateway is still reading."""
    end, found = time.monotonic() + _PATIENCE, find(asked)
    while found is None and sent.awaits_answers(asked.at):
        if time.monotonic() > end:
            sent.give_up()
            break
        time.sleep(_PAUSE)
        found = find(asked)
    return found


class Tallies:
    """The guards' counts of each conversation. Thread-safe.

    A conversation is named by the client's id; without an id, all calls of a connection are one conversation. Without either,
    each call is counted alone, so that strangers never share a budget.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], GuardTally] = {}
        self._lock = Lock()

    def of(self, caller: Caller) -> GuardTally:
        """Return the tally of a caller's conversation."""
        if not caller.thread and not caller.connection:
            return GuardTally()
        key = caller.connection, caller.thread
        with self._lock:
            found = self._known.pop(key, None) or GuardTally()
            self._known[key] = found  # the last one used is the last one dropped
            if len(self._known) > _MOST_TALLIES:
                del self._known[next(iter(self._known))]
            return found


def _as_offered(value: Any) -> Any:  # noqa: ANN401 - JSON
    """Return the fields of an answer with its next calls as this server takes them: a search of files is one by `read`."""
    if isinstance(value, Mapping):
        told = value.get("arguments")
        if value.get("tool") == "search" and isinstance(told, Mapping) and told.get("search_type") == "code":
            asked = {"mode": "snippet", "target": ".", "pattern": told["pattern"], "limit": told["limit"]}
            return {"tool": "read", "arguments": asked}
        return {name: _as_offered(one) for name, one in value.items()}
    return [_as_offered(one) for one in value] if isinstance(value, list | tuple) else value


def _bare_tag(quoted: str) -> str:
    """Return the receipt in a model's quote. A model may quote the whole line."""
    told = _RECEIPT.fullmatch(quoted.strip())
    return quoted if told is None else told[1]


def _with_hash(result: ReadResult, seen: str) -> ReadResult:
    """Return a recalled part with its hash; a single line if the model still sees the part under the same hash."""
    if result.is_error or len(result.text) < _SHORT:
        return result
    tag = trace_of(result.text)[:_DIGITS]
    told = _HASH.fullmatch(seen.strip())
    if told is not None and told[1] == tag:
        return replace(result, text=f"[unchanged: what [hash={tag}] showed]")
    return replace(result, text=f"{result.text}\n[hash={tag}]")


def _session_name(caller: Caller, folder: str) -> str:
    client = "".join(one if one.isalnum() or one in "-_." else "-" for one in caller.client[:60])
    name = f"mcp-{client}" if client else "mcp"
    return f"{name}@{trace_of(folder)[:_DIGITS]}" if folder else name


def _now() -> float:
    return time.time()  # noqa: TID251 - the rim reads the clock
