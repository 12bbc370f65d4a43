"""The sessions of a gateway in a terminal, as `pagein top` shows them: a live screen that also takes orders about windows.

Takes plain values, as the gateway's page gets them. Needs textual.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, ClassVar, Final, Protocol

from rich.markup import escape
from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import DataTable, Footer, Input, Static

from pagein.ui.figures import count, dollars, plain, plural, share, short

_EVERY: Final = 2.0
_NAME: Final = 40
_SESSIONS: Final = (
    "session",
    "calls",
    "dollars",
    "saved",
    "from cache",
    "epochs",
    "recalls",
    "model",
)
_STORED: Final = (
    "session",
    "project",
    "last",
    "calls",
    "dollars",
    "saved",
    "from cache",
    "epochs",
    "recalls",
    "agent",
)
_CALLS: Final = ("at", "prompt", "from cache", "output", "dollars", "saved", "left", "epoch", "model", "cache missed")
_RESULTS: Final = ("stands as", "tool", "tokens", "marks", "what", "id")
_ABSENT: Final = "-"
_NO_SESSION: Final = "No call since this gateway started; s shows the sessions of the store."

Answer = Mapping[str, Any]
Order = tuple[str, str]
"""An act and its target."""


class ScreenSource(Protocol):
    """What the screen shows and orders. Called in worker threads. Each raises an exception with the reason."""

    def overview(self) -> Answer:
        """Return the data of the page's first part."""
        ...

    def session(self, name: str) -> Answer:
        """Return the details of a session."""
        ...

    def stored(self) -> Answer:
        """Return the sessions of the store, as `sessions`."""
        ...

    def history(self, name: str) -> Answer:
        """Return the calls of a session of the store, as `calls`."""
        ...

    def order(self, session: str, act: str, target: str) -> Answer:
        """Carry out an order; its answer has a `text`."""
        ...


class Top(App[None]):
    """The screen: sessions above, the tool results of the chosen one below."""

    TITLE = "pagein top"
    CSS = "#sessions { height: 2fr; } #results { height: 3fr; } Static { padding: 0 1; } .hidden { display: none; }"
    BINDINGS: ClassVar[list[BindingType]] = [  # those that lead on come first: a narrow screen cuts the last
        Binding("q", "quit", "quit"),
        Binding("s", "past", "past"),
        Binding("z", "undo", "undo"),
        Binding("p", "order('pin')", "pin"),
        Binding("u", "order('unpin')", "unpin"),
        Binding("v", "order('veto')", "veto"),
        Binding("d", "order('drop')", "drop"),
        Binding("r", "order('restore')", "restore"),
        Binding("e", "order('epoch')", "epoch"),
        Binding("o", "order('off')", "off"),
        Binding("n", "order('on')", "on"),
        Binding("f", "file", "file"),
        Binding("escape", "no_file", show=False),
        Binding("ctrl+c", "quit", show=False, priority=True),  # as every other command ends
    ]
    ENABLE_COMMAND_PALETTE = False  # its key takes the room of others

    def __init__(self, source: ScreenSource, problems: tuple[type[Exception], ...]) -> None:
        super().__init__()
        self._source = source
        self._problems = problems
        self._name = ""
        self._is_past = False
        self._undo: list[tuple[str, list[Order]]] = []
        self._file = ""
        self._titles: dict[str, str] = {}

    def compose(self) -> ComposeResult:
        """Build the screen."""
        yield Static("asking...", id="head")
        yield DataTable(id="sessions", cursor_type="row")
        yield Static("", id="about")
        yield DataTable(id="results", cursor_type="row")
        yield Static("", id="told")
        yield Input(placeholder="name of a file, for the next order; Escape for none", id="file", classes="hidden")
        yield Footer()

    def on_mount(self) -> None:
        """Begin to follow."""
        self._set_columns()
        self._follow()
        self.set_interval(_EVERY, self._follow)

    def on_data_table_row_highlighted(self, event: DataTable.RowHighlighted) -> None:
        """Show the results of the session under the cursor."""
        if event.data_table.id == "sessions" and event.row_key.value and event.row_key.value != self._name:
            self._name = event.row_key.value
            self._follow()

    def _set_columns(self) -> None:
        above, below = (_STORED, _CALLS) if self._is_past else (_SESSIONS, _RESULTS)
        for name, titles in (("sessions", above), ("results", below)):
            self._table(name).clear(columns=True).add_columns(*titles)

    def action_past(self) -> None:
        """Show the sessions of the store with their calls, or again those since the gateway's start."""
        self._is_past, self._name = not self._is_past, ""
        self._set_columns()
        self._say("Sessions of the store, also from before this gateway; s goes back." if self._is_past else "")
        self._follow()

    def action_order(self, act: str) -> None:
        """Order something about the session, or about the result under the cursor."""
        if self._is_past:
            self._say("Orders are for the sessions of this gateway; s goes back to them.")
            return
        target = "" if act in ("epoch", "off", "on") else self._file or self._target()
        if not self._name or (act not in ("epoch", "off", "on") and not target):
            self._say("Choose a session above, and a result below.")
            return
        self._file = ""
        self._carry_out(self._name, [(act, target)], is_undo=False)

    def action_file(self) -> None:
        """Ask for the file that the next order is about: it holds for every result that shows the file."""
        asked = self.query_one("#file", Input)
        asked.value = ""
        asked.remove_class("hidden")
        asked.focus()

    def action_no_file(self) -> None:
        """Let orders be about the result under the cursor again."""
        self._name_file("")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Take the name of the file."""
        self._name_file(event.value.strip())

    def _name_file(self, name: str) -> None:
        self._file = name
        self.query_one("#file", Input).add_class("hidden")
        self._table("results").focus()
        self._say(f"The next order is about every result that shows {name}: p, u, v, d or r." if name else "")

    def action_undo(self) -> None:
        """Take back the last order."""
        if self._undo:
            session, orders = self._undo.pop()
            self._carry_out(session, orders, is_undo=True)
        else:
            self._say("There is no order to take back.")

    def _carry_out(self, session: str, orders: list[Order], *, is_undo: bool) -> None:
        def work() -> None:
            try:
                for act, target in orders:
                    answer = self._source.order(session, act, target)
            except self._problems as problem:
                self.call_from_thread(self._say, str(problem))
                return
            if not is_undo and answer["undo"]:
                self._undo.append((session, [(one["act"], one["target"]) for one in answer["undo"]]))
            self.call_from_thread(self._say, f"Taken back: {answer['text']}" if is_undo else str(answer["text"]))
            self.call_from_thread(self._follow)

        self.run_worker(work, thread=True, group="orders")

    def _follow(self) -> None:
        is_past, source = self._is_past, self._source

        def work() -> None:
            try:
                state = source.stored() if is_past else source.overview()
                names = [one["name"] for one in state.get("sessions", ())]
                titles = self._titles_of(names)
                name = self._name if self._name in names else next(iter(names), "")
                found = (source.history(name) if is_past else source.session(name)) if name else {}
            except self._problems as problem:
                self.call_from_thread(self._fail, str(problem))
                return
            self._titles = titles
            if is_past == self._is_past:
                self.call_from_thread(self._draw_past if is_past else self._draw, state, name, found)

        self.run_worker(work, thread=True, group="follow", exclusive=True)

    def _titles_of(self, names: Sequence[str]) -> dict[str, str]:
        """Return the first words of live sessions. The store is asked when a session is new: words do not change."""
        if all(name in self._titles for name in names):
            return self._titles
        told = {one["name"]: str(one["title"]) for one in self._source.stored().get("sessions", ())}
        return {name: told.get(name, "") for name in names}

    def _fail(self, why: str) -> None:
        self.query_one("#head", Static).update(Text(plain(why), style="red"))

    def _say(self, text: str) -> None:
        self.query_one("#told", Static).update(escape(plain(text)))

    def _draw(self, state: Answer, name: str, found: Answer) -> None:
        self._name = name
        sessions = state["sessions"]
        usd, saved = (sum(one.get(key) or 0.0 for one in sessions) for key in ("usd", "saved_usd"))
        mode = f"off: {state['off']}" if state["off"] else "on" if state["curating"] else "measuring only"
        head = f"pagein {state['version']}, {mode}: {plural(len(sessions), 'session')}, {dollars(usd)}, {dollars(saved)} saved"
        self.query_one("#head", Static).update(escape(head))
        _fill(
            self._table("sessions"),
            {one["name"]: _session_row(one, self._titles.get(one["name"], "")) for one in sessions},
            name,
        )
        inside = found.get("inside")
        objects = inside["objects"] if inside else []
        about = f"Window of {name}" if inside else str(found.get("why") or ("" if sessions else _NO_SESSION))
        self.query_one("#about", Static).update(escape(plain(about)))
        rows = {one["call"]: _result_row(one) for one in reversed(objects)}
        _fill(self._table("results"), rows, self._target())

    def _draw_past(self, state: Answer, name: str, found: Answer) -> None:
        self._name = name
        sessions = state.get("sessions", ())
        head = str(state.get("error") or f"{plural(len(sessions), 'session')} in the store, the latest first")
        self.query_one("#head", Static).update(escape(plain(head)))
        _fill(self._table("sessions"), {one["name"]: _stored_row(one) for one in sessions}, name)
        self.query_one("#about", Static).update(escape(plain(f"Calls of {name}" if name else "")))
        calls = list(enumerate(found.get("calls", ())))
        _fill(self._table("results"), {str(place): _call_row(one) for place, one in reversed(calls)}, self._target())

    def _target(self) -> str:
        table = self._table("results")
        if not table.row_count:
            return ""
        return str(table.coordinate_to_cell_key(table.cursor_coordinate).row_key.value or "")

    def _table(self, name: str) -> "DataTable[Text]":
        return self.query_one(f"#{name}", DataTable)


def _fill(table: "DataTable[Text]", rows: Mapping[str, tuple[str, ...]], chosen: str) -> None:
    """Show the rows, with the cursor on the chosen row if present."""
    place = table.scroll_offset
    table.clear()
    for key, cells in rows.items():
        table.add_row(*(Text(plain(cell)) for cell in cells), key=key)
    if chosen in rows:
        table.move_cursor(row=list(rows).index(chosen), scroll=False)
    table.scroll_to(y=place.y, animate=False)


def _session_row(one: Answer, title: str) -> tuple[str, ...]:
    prompt = one["read"] + one["written"] + one["fresh"]
    return (
        short(title or one["name"], _NAME),
        count(one["calls"]),
        dollars(one.get("usd")),
        dollars(one.get("saved_usd")),
        share(one["read"], prompt) if prompt else _ABSENT,
        count(one["epochs"]),
        count(one["recalls"]),
        one["model"],
    )


def _stored_row(one: Answer) -> tuple[str, ...]:
    prompt = one["read"] + one["written"] + one["fresh"]
    return (
        short(one["title"] or one["name"], _NAME),
        short(one["project"].rstrip("/").rpartition("/")[2], _NAME // 2),
        _when(one["last"]),
        count(one["calls"]),
        dollars(one["usd"]),
        dollars(one.get("saved_usd")),
        share(one["read"], prompt) if prompt else _ABSENT,
        count(one["epochs"]),
        count(one["recalls"]),
        one["agent"],
    )


def _call_row(one: Answer) -> tuple[str, ...]:
    prompt = one["read"] + one["written"] + one["fresh"]
    return (
        _when(one["at"]),
        count(prompt),
        share(one["read"], prompt) if prompt else _ABSENT,
        count(one["output"]),
        dollars(one["usd"]),
        dollars(one.get("saved_usd")),
        count(one["evicted"]),
        one["epoch"],
        one["model"],
        "; ".join(filter(None, (one.get("explanation"), one.get("told") and f"the provider says: {one['told']}"))),
    )


def _when(at: float | None) -> str:
    """Return a time in this machine's zone: 10-07 14:05."""
    return _ABSENT if at is None else datetime.fromtimestamp(at, UTC).astimezone().strftime("%m-%d %H:%M")


def _result_row(one: Answer) -> tuple[str, ...]:
    return (
        one["form"],
        one["tool"],
        count(one["tokens"]),
        " ".join(one["marks"]),
        short(one["description"], 2 * _NAME),
        one["id"] or one["call"],
    )
