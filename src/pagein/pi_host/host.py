"""Dispatch each request of the extension to the deciding module."""

import contextlib
import secrets
import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from pagein import __version__
from pagein.delegation.call_tree import PROCESS_CALLS
from pagein.engine.engine import Engine
from pagein.engine.session import Session
from pagein.errors import BadSetting, HostError
from pagein.model.json_text import encode_json
from pagein.model.objects import ObjectId
from pagein.pi_host import commands, paging_commands
from pagein.pi_host.branch import PiBranch, UnknownEntry
from pagein.pi_host.bridge import ExtensionLink, Later
from pagein.pi_host.gateway_headers import gateway_headers, is_gateway
from pagein.pi_host.pooled_view import POOL_TOOLS, PooledView, offered_pool_tools, pool_rules
from pagein.pi_host.protocol import (
    PROTOCOL,
    Answer,
    BeginEvent,
    BranchStart,
    CallVerdict,
    CommandEvent,
    CompactEvent,
    CompactionVerdict,
    ContextEvent,
    Hello,
    Patch,
    Settle,
    ToolCallEvent,
    ToolEvent,
    ToolResultEvent,
    WatchedEvents,
    Welcome,
    WindowEdits,
    WindowUsage,
)
from pagein.pi_host.read_cache import ReadCache, ReadCacheMode
from pagein.pi_host.session_config import NOTHING_SAID, held_settings, read_config
from pagein.pi_host.widget import widget_lines
from pagein.pi_host.window import PiWindow
from pagein.providers.wire.server_edits import may_clear_results

_WATCHED_CALLS: Final = ("read", "write", "edit", "bash")
_WATCHED_RESULTS: Final = ("read", "write", "edit")
_TICK: Final = 0.3
"""Seconds between two looks at what children do."""
_LIMIT: Final = 0.9
"""Share of the window up to which a request fits, without a setting."""
_FIRST: Final = (
    "pagein is at work: it answers a repeated read by the changes. /readcache-status has figures, /rlm on also evicts old results "
    "from the window, and `pagein off` in a shell lets everything pass."
)
_OFF: Final = "pagein is switched off on this machine, so everything passes; `pagein on` in a shell ends that."
_Decided: TypeAlias = (
    ToolCallEvent | ToolResultEvent | ContextEvent | CommandEvent | ToolEvent | BeginEvent | CompactEvent
)


@dataclass(frozen=True, slots=True)
class PiSettings:
    """The user's settings for pi.

    reads: what happens to pi's reads.
    modes: whether pi's own `read` takes the arguments of the unified read, too.
    pages: whether paging is on where a session does not say.
    cancels: whether pi's compaction is cancelled while paging is on and the request fits.
    pools: whether new conversations are shown in the pooled layout.
    usual: every setting by name, as it is without a session's own.
    """

    reads: ReadCacheMode = "on"
    modes: bool = False
    pages: bool = False
    cancels: bool = True
    pools: bool = False
    usual: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PiDependencies:
    """The dependencies of the host: engine, clock, switch and gateways.

    open_engine: opens the engine for a folder, with these settings in place of the usual; raises StoreError and BadSetting.
    now: seconds since 1970.
    is_off: whether a person has switched pagein off.
    made_here: whether the store made an id.
    check: raises BadSetting for settings that cannot hold in a folder.
    gateways: returns the addresses of the gateways that this user runs.
    is_first: returns whether this user meets pagein in pi for the first time, and remembers that it was asked.
    """

    open_engine: Callable[[str, Mapping[str, object]], Engine]
    now: Callable[[], float]
    is_off: Callable[[], bool] = lambda: False
    made_here: Callable[[ObjectId], bool] = lambda _: False
    check: Callable[[str, Mapping[str, object]], None] = lambda _folder, _given: None
    gateways: Callable[[], Collection[str]] = tuple
    is_first: Callable[[], bool] = lambda: False


class PiHost:
    """One session of pi."""

    def __init__(self, settings: PiSettings, around: PiDependencies) -> None:
        self._settings = settings
        self._around = around
        self._rooms: _Rooms | None = None
        self._hello = Hello(PROTOCOL, "", "", "")
        self._wanted: Mapping[str, object] = {}
        self._given: Mapping[str, object] = {}
        self._usage: WindowUsage | None = None
        self._gateway = ""

    def answer(self, event: object, link: ExtensionLink) -> object:
        """Return the reply to a request of the extension. Exceptions of the deciding modules pass through."""
        if isinstance(event, Hello):
            return self._welcome(event)
        rooms = self._rooms
        if rooms is None:
            raise HostError("pi's extension sent a request before its greeting")
        if isinstance(event, Settle):
            rooms.session.keep()
            return {}
        if not isinstance(event, _Decided):
            raise HostError(f"pi's extension sent a {type(event).__name__}, which has no reply")
        rooms.branch.follow(event.branch)
        settings, hello = rooms.branch.config.settings, self._met(event)
        if (settings, hello) != (self._wanted, self._hello) and not rooms.branch.waits:
            self._hello = hello
            self._enter(settings)
            raise UnknownEntry  # the extension then tells the new session the whole branch
        return self._decide(event, rooms, link)

    def _met(self, event: _Decided) -> Hello:
        """Return the greeting with the window of the model that is chosen by now."""
        usage = event.usage if isinstance(event, BeginEvent | ContextEvent | CompactEvent) else None
        if usage is None or usage.window < 1 or self._hello.window is None:
            return self._hello
        return replace(self._hello, window=usage.window)

    def close(self) -> None:
        """Close the store."""
        if self._rooms is not None:
            self._rooms.engine.close()
            self._rooms = None

    def _welcome(self, hello: Hello) -> Welcome:
        if hello.protocol != PROTOCOL:
            return Welcome(PROTOCOL, __version__, refusal=_refusal(hello))
        # sessions without a name must not meet in one journal
        self._hello = hello if hello.session else replace(hello, session=f"nameless-{secrets.token_hex(8)}")
        self._enter({})
        on = self._settings.reads != "off"
        tools = commands.offered_tools(reads=self._settings.reads == "on", pages=self._settings.pages)
        if self._rooms is not None and self._rooms.pools.may_be:
            tools = (*tools, *offered_pool_tools())
        watched = WatchedEvents(_WATCHED_CALLS, _WATCHED_RESULTS, context=True) if on else WatchedEvents(context=True)
        modes = commands.read_with_modes() if self._settings.modes else None
        return Welcome(PROTOCOL, __version__, tools, watched, modes)

    def _enter(self, wanted: Mapping[str, object]) -> None:
        """Open the session anew, with those of these settings that can hold in place of the usual."""
        self.close()
        hello, self._wanted = self._hello, wanted
        self._given = given = held_settings(wanted, lambda one: self._around.check(hello.cwd, one))
        engine = self._open(hello, given)
        session = engine.session(f"pi-{hello.session}", workspace=hello.cwd)
        branch = PiBranch(session, pooled=self._settings.pools)
        reads = ReadCache(session, branch, self._settings.reads, self._around.made_here)
        limit = given.get("valve_limit", self._settings.usual.get("valve_limit", _LIMIT))
        limit = limit if isinstance(limit, int | float) else _LIMIT
        window = PiWindow(session, branch, limit)
        pools = PooledView(session, branch, pool_rules(self._settings.usual), limit, wanted=self._settings.pools)
        self._rooms = _Rooms(engine, session, branch, reads, window, pools)

    def _open(self, hello: Hello, given: Mapping[str, object]) -> Engine:
        known = {} if hello.window is None or self._settings.usual.get("window") else {"window": hello.window}
        try:
            return self._around.open_engine(hello.cwd, {**known, **given})
        except BadSetting:  # with this window; the usual settings are better than none
            return self._around.open_engine(hello.cwd, known)

    def _pages(self, rooms: "_Rooms") -> bool:
        if rooms.pools.is_used:
            return False
        enabled = rooms.branch.config.enabled
        return (self._settings.pages if enabled is None else enabled) and not self._around.is_off()

    @property
    def _has_children(self) -> bool:
        return bool(self._given.get("child_model") or self._settings.usual.get("child_model"))

    def _decide(self, event: object, rooms: "_Rooms", link: ExtensionLink) -> object:
        pages = self._pages(rooms)
        match event:
            case ToolCallEvent() | ToolResultEvent():
                return self._answer_read(event, rooms)
            case ContextEvent():
                return self._edits(event, rooms, pages=pages)
            case BeginEvent():
                return self._begin(event, rooms, pages=pages)
            case CompactEvent():
                return self._compaction(event, rooms, pages=pages)
            case CommandEvent():
                answer = self._command(event, rooms, pages=pages)
                return replace(answer, text=f"{answer.text}\n{_OFF}") if self._around.is_off() else answer
            case ToolEvent():
                return self._tool(event, rooms, link, pages=pages)
        raise HostError(f"pi's extension sent a {type(event).__name__}, which has no reply")

    def _compaction(self, event: CompactEvent, rooms: "_Rooms", *, pages: bool) -> CompactionVerdict:
        cancels = self._settings.cancels and not self._around.is_off()
        if rooms.pools.is_used:
            return rooms.pools.judge_compaction(cancels=cancels, usage=event.usage)
        return rooms.window.judge_compaction(pages=pages and cancels, usage=event.usage)

    def _begin(self, event: BeginEvent, rooms: "_Rooms", *, pages: bool) -> BranchStart:
        """Tell the extension what holds on the branch. An unchanged window is left to a gateway, if there is one.

        What left a window stays a stub after `/rlm off`, and a marker rests on text that a gateway could evict.
        """
        self._usage = event.usage
        is_pooled = rooms.pools.is_used
        is_changed = pages or is_pooled or rooms.branch.config.enabled is not None or rooms.branch.has_markers
        leaves = not is_changed and is_gateway(event.address, self._around.gateways())
        self._gateway = event.address if leaves else ""
        decides = is_changed or (self._settings.reads == "on" and not leaves)
        headers = gateway_headers(event.address, self._hello.session, decides=decides and not self._around.is_off())
        notice = _FIRST if not self._around.is_off() and self._around.is_first() else ""
        active, lines = self._active(rooms, pages=pages), self._widget(rooms, pages=pages)
        return BranchStart(active, self._prompt(rooms, pages=pages), headers, notice, lines)

    def _answer_read(self, event: ToolCallEvent | ToolResultEvent, rooms: "_Rooms") -> CallVerdict | Patch:
        if isinstance(event, ToolCallEvent):
            return CallVerdict() if self._around.is_off() else rooms.reads.judge(event.call)
        is_left = self._gateway or rooms.pools.is_used or self._around.is_off() or _clears(event.edited)
        return Patch() if is_left else rooms.reads.patch(event)

    def _edits(self, event: ContextEvent, rooms: "_Rooms", *, pages: bool) -> WindowEdits:
        self._usage = event.usage
        if self._around.is_off():
            rooms.window.forget_changes()
            rooms.pools.forget_changes()
            return WindowEdits(reset=True, widget=())
        if rooms.pools.is_used:
            edits = rooms.pools.edits(self._around.now(), clears=_clears(event.edited))
        else:
            clears = _clears(event.edited)
            edits = rooms.window.edits(self._around.now(), pages=pages, usage=event.usage, clears=clears)
        return replace(edits, widget=self._widget(rooms, pages=pages))

    def _prompt(self, rooms: "_Rooms", *, pages: bool) -> str:
        return commands.root_words(rooms.branch.config.prompt, children=self._has_children) if pages else ""

    def _active(self, rooms: "_Rooms", *, pages: bool) -> tuple[str, ...]:
        if rooms.pools.is_used:
            return POOL_TOOLS
        return commands.active_tools(reads=self._settings.reads == "on", pages=pages, children=self._has_children)

    def _widget(self, rooms: "_Rooms", *, pages: bool) -> tuple[str, ...]:
        if self._around.is_off():
            return ()
        lines = widget_lines(rooms.session, PROCESS_CALLS.operations(), self._usage, pages=pages)
        return (rooms.pools.line(self._usage), *lines) if rooms.pools.is_used else lines

    # --- tools ---

    def _tool(self, event: ToolEvent, rooms: "_Rooms", link: ExtensionLink, *, pages: bool) -> Answer | Later:
        def ask() -> Answer:
            if event.call.name in POOL_TOOLS:
                return rooms.pools.answer(event.call)
            return commands.answer_tool(rooms.session, event.call, link, self._around.now(), pages=pages)

        if event.call.name not in commands.DELEGATED or not pages:
            answer = ask()
            rooms.branch.note_answered(event.call.id)
            return replace(answer, widget=self._widget(rooms, pages=pages))
        rooms.branch.waits += 1

        def wait() -> Answer:
            ended = threading.Event()
            threading.Thread(target=self._watch, args=(rooms, link, ended), name="pi-widget", daemon=True).start()
            try:
                answer = ask()
            finally:
                ended.set()
                rooms.branch.waits -= 1
            return replace(answer, widget=self._widget(rooms, pages=pages))

        return Later(wait)

    def _watch(self, rooms: "_Rooms", link: ExtensionLink, ended: threading.Event) -> None:
        """Show the work of children at each change, until every child has answered."""
        shown: tuple[str, ...] = ()
        while not ended.wait(_TICK):
            lines = self._widget(rooms, pages=True)
            if lines != shown and not ended.is_set():
                link.show(lines)
                shown = lines

    # --- commands ---

    def _command(self, event: CommandEvent, rooms: "_Rooms", *, pages: bool) -> Answer:
        match event.name, event.args.strip():
            case "readcache-status", _:
                return commands.status(rooms.session, self._gateway)
            case "readcache-refresh", args:
                return commands.refresh(rooms.session, args, self._around.now())
            case "rlm", args:
                word, _, rest = args.partition(" ")
                word = word.lower()
                answer = self._paging_command(word, rest.strip(), rooms, pages=pages)
                return replace(
                    answer, widget=self._widget(rooms, pages=pages if answer.tools is None else word == "on")
                )
            case name, _:
                raise HostError(f"pi's extension has a command {name!r} that pagein does not know")

    def _paging_command(self, word: str, rest: str, rooms: "_Rooms", *, pages: bool) -> Answer:
        session, branch = rooms.session, rooms.branch
        if rooms.pools.is_used and word in paging_commands.NOT_POOLED:
            return paging_commands.say_pooled(word)
        words: dict[str, Callable[[], Answer]] = {
            "on": lambda: self._switch(rooms, on=True),
            "off": lambda: self._switch(rooms, on=False),
            "status": lambda: paging_commands.paging_status(session, PROCESS_CALLS.operations(), pages=pages),
            "cancel": lambda: paging_commands.cancel_operations(PROCESS_CALLS),
            "config": lambda: self._configure(rest, branch),
            "prompt": lambda: paging_commands.set_prompt(rest, self._prompt(rooms, pages=pages)),
            "externalize": lambda: paging_commands.order_epoch(session, branch, pages=pages),
            "inspect": lambda: paging_commands.inspect(session, branch, rooms.window.shown, PROCESS_CALLS.operations()),
            "store": rooms.pools.listing if rooms.pools.is_used else lambda: paging_commands.list_store(session),
            "trace": lambda: paging_commands.trace(session, PROCESS_CALLS.operations()),
            "clear": paging_commands.say_clear,
            "resume": paging_commands.say_resume,
        }
        found = words.get(word or "status")
        return paging_commands.say_help(word) if found is None else found()

    def _switch(self, rooms: "_Rooms", *, on: bool) -> Answer:
        cancelled = 0 if on else PROCESS_CALLS.cancel_all()
        rooms.window.forget_crowding()
        with contextlib.suppress(HostError):  # a session without recalls has no log of operations
            rooms.session.recalls.log_switch(on=on)
        return paging_commands.switch_paging(self._active(rooms, pages=on), on=on, cancelled=cancelled)

    def _configure(self, words: str, branch: PiBranch) -> Answer:
        answer = paging_commands.configure(words, branch.config, self._settings.usual, self._given)
        for entry in answer.entries:
            try:
                more = read_config(entry.data, NOTHING_SAID).settings
                self._around.check(self._hello.cwd, {**self._given, **more})
            except BadSetting as problem:
                return Answer(str(problem), "error")
        return answer


@dataclass(frozen=True, slots=True)
class _Rooms:
    engine: Engine
    session: Session
    branch: PiBranch
    reads: ReadCache
    window: PiWindow
    pools: PooledView


def _refusal(hello: Hello) -> str:
    newer = "pagein" if hello.protocol > PROTOCOL else "the extension"
    remedy = "pip install --upgrade pagein" if newer == "pagein" else "pagein install pi --yes, then restart pi"
    return (
        f"pi's extension ({hello.extension}, protocol {hello.protocol}) and pagein ({__version__}, protocol {PROTOCOL}) do not "
        f"work together. {newer[0].upper()}{newer[1:]} is too old: {remedy}"
    )


def _clears(edited: Mapping[str, object]) -> bool:
    """Return whether a provider may have taken results out, so that no marker can rest on them."""
    return bool(edited) and may_clear_results({name: encode_json(value) for name, value in edited.items()})
