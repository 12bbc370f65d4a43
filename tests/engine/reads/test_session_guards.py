"""The guards of a session on a real store: canonical paths, branches, restarts, several sessions and processes."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pagein
from pagein.engine.engine import Settings
from pagein.engine.reads.session_guards import ServedRead, ServedSearch, SessionGuards
from pagein.engine.session import Session
from pagein.errors import StoreError
from pagein.model.entries import NoteEntry
from pagein.model.guard_notes import ReadMeasureNote
from pagein.model.messages import Message, Text
from pagein.policy.guards.judgement import ReadAsk, ReadVerdict
from pagein.policy.guards.limits import GuardSettings
from pagein.store.sqlite.sqlite_store import SqliteStore
from pagein.testing.desk import Desk

STRICT = Settings(guards=GuardSettings("strict"))


def read(session: Session, path: str = "a.py", new: int = 10, content: str = "x") -> ReadVerdict:
    guards = session.guards
    verdict = guards.judge(ReadAsk("file", path, path))
    if verdict.refusal is None:
        verdict = guards.note_read(verdict, ServedRead("file", path, 1, new, new, 5 * new, content=content))
    return verdict


def strict(desk: Desk) -> Desk:
    desk.opened = lambda store: pagein.open(store, settings=STRICT)
    return desk


def notes(session: Session) -> list[ReadMeasureNote]:
    bodies = (entry.body for entry in session.journal.branch(session.leaf))
    return [body.note for body in bodies if isinstance(body, NoteEntry) and isinstance(body.note, ReadMeasureNote)]


# --- paths (defect U3) ---


def test_a_file_has_one_name_however_it_is_written(desk: Desk) -> None:
    desk.put("src/a.py", "text\n")
    desk.put("b.py", "text\n")
    (desk.folder / "link.py").symlink_to(desk.folder / "src/a.py")
    session = desk.session()
    session.guards.note_search(ServedSearch("text", ["./src/a.py"], 1, "code"))
    for spelling in ("src/a.py", "./src/a.py", "src/../src/a.py", str(desk.folder / "src/a.py"), "link.py"):
        assert session.guards.judge(ReadAsk("file", spelling, spelling)).warnings == (), spelling
    verdict = session.guards.judge(ReadAsk("file", "b.py", "b.py"))
    assert verdict.is_unrelated
    assert verdict.alternatives == ("src/a.py",)


def test_an_excluded_file_leaves_nothing_but_numbers(desk: Desk) -> None:
    desk.put(".env", "TOKEN=1\n")
    (desk.folder / "plain.txt").symlink_to(desk.folder / ".env")
    session = desk.session()
    for name in (".env", "plain.txt"):
        read(session, name, content="TOKEN=1\n")
    session.guards.note_search(ServedSearch("TOKEN", [".env", "plain.txt"], 2, "code"))
    assert [(note.path, note.item) for note in notes(session)] == [("", ""), ("", "")]
    assert session.guards.state.search is not None
    assert session.guards.state.search.paths == ()
    assert session.guards.metrics["reads_count"] == 2


def test_stabilization_has_the_fields_of_the_design_and_the_bundle(desk: Desk) -> None:
    desk.put("a.py", "x")
    session = desk.session()
    told = session.guards.stabilization(read(session))
    again = session.guards.stabilization(read(session, "./a.py"))
    assert set(told) >= {
        "budget_state",
        "suggested_next_action",
        "warnings",
        "metrics_snapshot",
        "reasons",
        "next_calls",
    }
    assert (told["budget_state"], told["suggested_next_action"]) == ("OK", "read")
    assert told["context_bundle_id"] == again["context_bundle_id"]
    assert (again["bundle_items"], again["bundle_lines"]) == (1, 10)


# --- sessions, branches, restarts (defect U2: unknown sessions shared one counter) ---


def test_no_session_counts_for_another(desk: Desk) -> None:
    one, two = strict(desk).session("one"), desk.session("two")
    for _ in range(25):
        read(one)
    assert read(one).state == "HARD_LIMIT"
    assert read(two).state == "OK"
    one.guards.note_search(ServedSearch("q", ["b.py"], 1, "code"))
    assert not read(two, "a.py").is_unrelated


def test_another_process_goes_on_with_the_same_counts(desk: Desk) -> None:
    session = strict(desk).session()
    for _ in range(24):
        read(session)
    other = desk.session()
    assert other.guards.state == session.guards.state
    read(other)
    session.catch_up()
    assert session.guards.metrics == other.guards.metrics
    assert read(session).state == "HARD_LIMIT"


def test_a_fork_goes_its_own_way(desk: Desk) -> None:
    session = strict(desk).session()
    for _ in range(20):
        read(session)
    fork = session.fork("fork")
    assert fork.guards.state == session.guards.state
    for _ in range(5):
        read(fork)
    assert (read(fork).state, read(session).state) == ("HARD_LIMIT", "SOFT_LIMIT")


def test_a_rewind_takes_back_what_was_spent(desk: Desk) -> None:
    session = strict(desk).session()
    begin = session.append(Message("user", (Text("please"),)))
    for _ in range(25):
        read(session)
    assert read(session).state == "HARD_LIMIT"
    session.move(begin)
    assert read(session).state == "OK"


def test_a_failing_store_costs_no_read(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    session = strict(desk).session()
    read(session)

    def fails(*_: object) -> int:
        raise StoreError("the disk is full")

    with monkeypatch.context() as broken:
        broken.setattr(SqliteStore, "append", fails)
        read(session)
        assert session.guards.metrics["reads_count"] == 2
    session.keep()
    assert desk.session().guards.metrics["reads_count"] == 2


# --- law 6: the same branch, the same state ---


@dataclass
class Counts:
    """What a careful reader of one branch counts by hand."""

    reads: int = 0
    lines: int = 0
    spent_reads: int = 0
    spent_lines: int = 0
    searched: bool = False
    after_search: int = 0
    last: tuple[str, tuple[str, ...]] | None = None
    history: list[str] = field(default_factory=list)

    def read(self, new: int) -> None:
        self.reads += 1
        self.lines += new
        self.after_search += self.searched
        if new:
            self.spent_reads += 1
            self.spent_lines += new

    def user(self) -> None:
        self.spent_reads = self.spent_lines = 0
        self.last = None

    def search(self, query: str, paths: tuple[str, ...]) -> None:
        narrow = 0 < len(paths) < 10 and (self.last is None or self.last[0] != query)
        if narrow:
            self.spent_reads = self.spent_lines = 0
        self.searched, self.last = True, (query, paths)


Act = tuple[str, int]
ACTS = st.tuples(
    st.sampled_from(["read", "search", "user", "result", "compact", "rewind", "fork", "restart"]), st.integers(0, 12)
)


def recount(trail: Sequence[Act]) -> Counts:
    counts = Counts()
    for what, number in trail:
        if what == "read":
            counts.read(number)
        elif what == "search":
            counts.search(f"q{number % 3}", tuple(f"f{n}" for n in range(number)))
        elif what in ("user", "compact"):
            counts.user()
    return counts


def play(session: Session, act: Act) -> None:
    what, number = act
    guards: SessionGuards = session.guards
    if what == "read":
        guards.note_read(
            ReadVerdict(ReadAsk("file", "f")), ServedRead("file", "f", 1, max(number, 1), number, number, number)
        )
    elif what == "search":
        guards.note_search(ServedSearch(f"q{number % 3}", [f"f{n}" for n in range(number)], number))
    elif what == "user":
        session.append(Message("user", (Text(f"words {number}"),)))
    elif what == "result":
        session.append(Message("assistant", (Text(f"answer {number}"),)))
    elif what == "compact":
        session.note_compaction()


@given(st.lists(ACTS, max_size=25))
def test_the_counts_of_a_branch_depend_on_nothing_but_the_branch(acts: list[Act]) -> None:
    with TemporaryDirectory() as folder, pagein.open(Path(folder) / "s.pagein", workspace=folder) as engine:
        _play_and_recount(engine.session("s"), acts)


def _play_and_recount(session: Session, acts: list[Act]) -> None:
    forks = 0
    trail: list[Act] = []
    places: list[tuple[str | None, int]] = [(session.leaf, 0)]
    for what, number in acts:
        if what == "rewind":
            leaf, length = places[number % len(places)]
            session.move(leaf)
            trail, places = trail[:length], [place for place in places if place[1] <= length]
        elif what == "fork":
            forks += 1
            session.keep()
            session = session.fork(f"s{forks}")
        elif what == "restart":
            session.keep()
            other = Session.resume(session.name, session._parts)
            other.move(session.leaf)  # a rewind alone is nothing that is stored
            assert other.guards.state == session.guards.state
        else:
            play(session, (what, number))
            trail.append((what, number))
            places.append((session.leaf, len(trail)))
    state, counts = session.guards.state, recount(trail)
    assert (state.spent.reads, state.spent.lines) == (counts.spent_reads, counts.spent_lines)
    assert (state.metrics.reads, state.metrics.lines) == (counts.reads, counts.lines)
    assert state.metrics.after_search == counts.after_search
    assert (state.search is None) is (counts.last is None)
