"""One place answers what must stay with what, whoever read the file."""

from dataclasses import replace

from pagein.model.names import ContentHash
from pagein.model.read_events import FileRead, FileRefresh, FileWrite, LineCopy
from pagein.model.spans import NO_LINES, Spans
from pagein.policy.clients.window_files import NO_CHAINS, FileChains, FileStatement, Repeat, WindowFiles
from pagein.policy.eviction.read_ages import ReadAges
from pagein.policy.eviction.residency_rules import USUAL
from pagein.policy.eviction.session_work import SessionWork

TEXT = "one\ntwo\nthree"
VERSION = ContentHash.of(TEXT.encode())


def whole(call: str, born: int, path: str = "a.py") -> FileStatement:
    event = FileRead(path, "full", VERSION, 3, 1, 3, len(TEXT), emitted=Spans.of((1, 3)))
    return FileStatement(call, event, born, TEXT)


def marker(call: str, born: int, path: str = "a.py") -> FileStatement:
    event = FileRead(path, "unchanged", VERSION, 3, 1, 3, len(TEXT), base=VERSION, emitted=NO_LINES)
    return FileStatement(call, event, born, TEXT)


def chains_of(*made: FileStatement) -> FileChains:
    found = NO_CHAINS
    for one in made:
        found = found.with_statement(one.event.path, one)
    return found


BOTH = WindowFiles(
    own=chains_of(whole("r1", 1), marker("r2", 5), whole("r3", 1, "b.py")),
    client=chains_of(whole("c1", 1), marker("c2", 5), whole("c3", 1, "b.py")),
)


def test_an_answer_depends_on_the_result_that_it_refers_to() -> None:
    assert BOTH.calls_depending_on({"r1"}) == {"r2"}
    assert BOTH.calls_depending_on({"c1"}) == {"c2"}
    assert BOTH.calls_depending_on({"r1", "c1", "c2"}) == {"r2"}
    assert BOTH.calls_depending_on({"r3", "c3", "r2", "unknown"}) == frozenset()


def test_an_answer_leaves_with_an_answer_that_shows_its_lines() -> None:
    # r2 shows line 3 and refers to r1 for the rest; when r1 leaves, r2 leaves too, and line 3 with it
    copies = (LineCopy(VERSION, 1, 2, 1),)
    partly = FileRead("a.py", "partly_known", VERSION, 3, 1, 3, 9, emitted=Spans.of((3, 3)), copies=copies, v=2)
    last = FileRead("a.py", "unchanged_range", VERSION, 3, 3, 3, 5, base=VERSION, emitted=NO_LINES)
    first = FileRead("a.py", "full", VERSION, 3, 1, 2, 7, emitted=Spans.of((1, 2)))
    made = (FileStatement(f"r{n}", event, n, TEXT) for n, event in enumerate((first, partly, last), 1))
    assert chains_of(*made).calls_depending_on({"r1"}) == {"r2", "r3"}


def test_the_results_behind_a_pinned_answer_stay_with_it() -> None:
    assert BOTH.calls_needed_with(frozenset({"r2"})) == {"r1", "r2"}
    assert BOTH.calls_needed_with(frozenset({"c2"})) == {"c1", "c2"}
    assert BOTH.calls_needed_with(frozenset({"r1", "c3"})) == frozenset()


def test_the_results_behind_a_young_answer_stay() -> None:
    assert BOTH.calls_needed_by_young(4) == {"r1", "r2", "c1", "c2"}
    assert BOTH.calls_needed_by_young(5) == frozenset()


def test_an_answer_of_the_client_stays_as_long_as_its_file_is_worked_on() -> None:
    assert BOTH.calls_needed_by_young(5, ReadAges(USUAL, call=16, session=SessionWork(6))) == {"c1", "c2"}
    assert BOTH.calls_needed_by_young(5, ReadAges(USUAL, call=17, session=SessionWork(6))) == frozenset()


def test_the_base_of_the_client_s_own_marker_stays_until_it_has_left() -> None:
    repeated = replace(chains_of(whole("c1", 1)), repeats=NO_CHAINS.repeats.put("c9", Repeat("c1", 5)))
    assert WindowFiles(client=repeated).calls_needed_by_young(4) == {"c1"}
    assert WindowFiles(client=replace(repeated, gone=frozenset({"c1"}))).calls_needed_by_young(4) == frozenset()


def test_an_answer_that_came_without_proof_leaves_with_the_next_eviction() -> None:
    unproven = WindowFiles(own=replace(chains_of(marker("r2", 5)), unproven=frozenset({"r2"})))
    assert unproven.calls_depending_on(()) == {"r2"}
    assert unproven.calls_depending_on({"r2"}) == frozenset()


def test_an_evicted_write_still_changed_the_file() -> None:
    write = FileWrite("a.py", VERSION, 3, Spans.of((1, 3)), whole=True)
    left = chains_of(whole("c1", 1), FileStatement("c2", write, 2, TEXT), marker("c3", 3)).without(
        frozenset({"c1", "c2"})
    )
    assert [(one.call, one.event) for one in left.statements("a.py")][:1] == [("", write.unseen)]
    assert dict(left.path_of) == {"c3": "a.py"}
    assert set(left.claims()) == {"c3"}


def test_a_refresh_takes_no_proof_from_older_answers() -> None:
    shown = whole("c0", 1), whole("c1", 1)
    refreshed = chains_of(*shown, FileStatement("", FileRefresh("a.py"), 2), marker("c2", 3))
    assert WindowFiles(client=refreshed).calls_depending_on({"c0"}) == frozenset()
    assert WindowFiles(client=refreshed).calls_depending_on({"c0", "c1"}) == {"c2"}
    assert set(refreshed.claims()) == {"c0", "c1", "c2"}
