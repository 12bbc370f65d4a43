"""Dispatch each request of the extension to the deciding module.

Where paging begins: `Window.edits` with `pages`, `commands.RECALLED`, and the `rlm-config` entries of `PiBranch`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from pagein import __version__
from pagein.engine.engine import Engine
from pagein.engine.session import Session
from pagein.errors import HostError
from pagein.model.objects import ObjectId
from pagein.pi_host import commands
from pagein.pi_host.branch import PiBranch
from pagein.pi_host.bridge import Link
from pagein.pi_host.protocol import (
    PROTOCOL,
    Answer,
    CallVerdict,
    CommandEvent,
    ContextEvent,
    Hello,
    Patch,
    Settle,
    ToolCallEvent,
    ToolEvent,
    ToolResultEvent,
    Watched,
    Welcome,
    WindowEdits,
)
from pagein.pi_host.read_cache import ReadCache, ReadCacheMode
from pagein.pi_host.window import Window

_WATCHED_CALLS: Final = ("read", "write", "edit", "bash")
_WATCHED_RESULTS: Final = ("read", "write", "edit")


@dataclass(frozen=True, slots=True)
class PiSettings:
    """What a person sets for pi.

    reads: what happens to pi's reads.
    modes: whether pi's own `read` takes the arguments of the unified read, too.
    pages: whether paging is on where a session does not say.
    """

    reads: ReadCacheMode = "on"
    modes: bool = False
    pages: bool = False


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the host needs from outside.

    open_engine: opens the engine for a folder; raises StoreError.
    now: seconds since 1970.
    is_off: whether a person has switched pagein off.
    made_here: whether the store made an id.
    """

    open_engine: Callable[[str], Engine]
    now: Callable[[], float]
    is_off: Callable[[], bool] = lambda: False
    made_here: Callable[[ObjectId], bool] = lambda _: False


class PiHost:
    """One session of pi."""

    def __init__(self, settings: PiSettings, around: Surroundings) -> None:
        self._settings = settings
        self._around = around
        self._rooms: _Rooms | None = None

    def answer(self, event: object, link: Link) -> object:
        """Return the reply to a request of the extension. Raises what its parts raise."""
        if isinstance(event, Hello):
            return self._welcome(event)
        rooms = self._rooms
        if rooms is None:
            raise HostError("pi's extension sent a request before its greeting")
        if isinstance(event, Settle):
            rooms.session.keep()
            return {}
        if not isinstance(event, ToolCallEvent | ToolResultEvent | ContextEvent | CommandEvent | ToolEvent):
            raise HostError(f"pi's extension sent a {type(event).__name__}, which has no reply")
        rooms.branch.follow(event.branch)
        return self._decide(event, rooms, link)

    def close(self) -> None:
        """Close the store."""
        if self._rooms is not None:
            self._rooms.engine.close()
            self._rooms = None

    def _welcome(self, hello: Hello) -> Welcome:
        if hello.protocol != PROTOCOL:
            return Welcome(PROTOCOL, __version__, refusal=_refusal(hello))
        self.close()
        engine = self._around.open_engine(hello.cwd)
        session = engine.session(f"pi-{hello.session}", workspace=hello.cwd)
        branch = PiBranch(session)
        reads = ReadCache(session, branch, self._settings.reads, self._around.made_here)
        self._rooms = _Rooms(engine, session, branch, reads, Window(session, branch))
        on = self._settings.reads != "off"
        tools = commands.offered_tools(reads=self._settings.reads == "on", pages=self._settings.pages)
        watched = Watched(_WATCHED_CALLS, _WATCHED_RESULTS, context=True) if on else Watched(context=True)
        modes = commands.read_with_modes() if self._settings.modes else None
        return Welcome(PROTOCOL, __version__, tools, watched, modes)

    @property
    def _pages(self) -> bool:
        enabled = None if self._rooms is None else self._rooms.branch.enabled
        return self._settings.pages if enabled is None else enabled

    def _decide(
        self,
        event: ToolCallEvent | ToolResultEvent | ContextEvent | CommandEvent | ToolEvent,
        rooms: "_Rooms",
        link: Link,
    ) -> object:
        is_off = self._around.is_off()
        match event:
            case ToolCallEvent():
                return CallVerdict() if is_off else rooms.reads.judge(event.call)
            case ToolResultEvent():
                return Patch() if is_off else rooms.reads.patch(event)
            case ContextEvent():
                return WindowEdits(reset=True) if is_off else rooms.window.edits(self._around.now(), pages=self._pages)
            case CommandEvent():
                return self._command(event, rooms)
            case ToolEvent():
                now = self._around.now()
                answer = commands.answer_tool(rooms.session, event.call, link, now, pages=self._pages and not is_off)
                rooms.branch.note_answered(event.call.id)
                return answer

    def _command(self, event: CommandEvent, rooms: "_Rooms") -> Answer:
        match event.name, event.args.strip():
            case "readcache-status", _:
                return commands.status(rooms.session)
            case "readcache-refresh", args:
                return commands.refresh(rooms.session, args, self._around.now())
            case "rlm", "on" | "off" as word:
                return commands.switch_paging(on=word == "on", reads=self._settings.reads == "on")
            case "rlm", "" | "status":
                return commands.paging_status(rooms.session, pages=self._pages)
            case "rlm", "inspect":
                return commands.inspect(rooms.branch, rooms.window.shown)
            case "rlm", word:
                return Answer(f"/rlm has no {word!r}; it has on, off, status and inspect", "error")
            case name, _:
                raise HostError(f"pi's extension has a command {name!r} that pagein does not know")


@dataclass(frozen=True, slots=True)
class _Rooms:
    engine: Engine
    session: Session
    branch: PiBranch
    reads: ReadCache
    window: Window


def _refusal(hello: Hello) -> str:
    newer = "pagein" if hello.protocol > PROTOCOL else "the extension"
    remedy = "pip install --upgrade pagein" if newer == "pagein" else "pagein install pi --yes, then start pi anew"
    return (
        f"pi's extension ({hello.extension}, protocol {hello.protocol}) and pagein ({__version__}, protocol {PROTOCOL}) do not "
        f"work together. {newer[0].upper()}{newer[1:]} is too old: {remedy}"
    )
