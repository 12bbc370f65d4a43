"""The audit objects to every kind of answer that a branch does not bear out, and to no other."""

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from pagein.engine.log.read_notes import event_of
from pagein.engine.reads.law_audit import objections
from pagein.model.entries import Entry, NoteEntry
from pagein.model.names import ContentHash
from pagein.model.read_events import CompactionEvent, FileRead, FileRefresh, FileWrite, LineCopy, Mode, ReadEvent
from pagein.model.spans import Spans
from pagein.policy.audit.session_audit import audit
from pagein.store.upkeep.sqlite_upkeep import SqliteUpkeep
from pagein.testing.desk import Desk, mode_of, numbered_text
from pagein.upkeep import check_store

pytestmark = pytest.mark.damages_store

OLD = "\n".join(f"line {n}" for n in range(1, 11))
NEW = OLD.replace("line 5", "LINE 5")
LONGER = f"top\n{OLD}"
ENDED = f"{OLD}\n"
STORED = {ContentHash.of(text.encode()): text.encode() for text in (OLD, NEW, LONGER, ENDED, "other")}


def name(text: str) -> ContentHash:
    return ContentHash.of(text.encode())


def served(
    mode: Mode,
    text: str = OLD,
    lines: tuple[int, int] | None = None,
    *,
    base: str | None = None,
    emitted: Spans | None = None,
    copies: tuple[LineCopy, ...] = (),
    path: str = "/a",
) -> FileRead:
    total = text.count("\n") + 1
    first, last = lines or (1, total)
    shown = Spans.of((first, last)) if mode in ("full", "baseline_fallback") and emitted is None else emitted
    return FileRead(
        path, mode, name(text), total, first, last, len(text), None if base is None else name(base), shown, copies, 2
    )


def why(*events: ReadEvent) -> list[str]:
    return [one.why for one in audit(events, STORED.get)]


FULL = served("full")
WHOLE = served("unchanged", base=OLD)
ALL = LineCopy(name(OLD), 1, 10, 1)
SHIFTED = LineCopy(name(OLD), 1, 10, 2)

BORNE_OUT: dict[str, Sequence[ReadEvent]] = {
    "a marker behind the text": [FULL, WHOLE],
    "a marker behind a marker": [FULL, WHOLE, WHOLE],
    "a range of what was shown whole": [FULL, served("unchanged_range", lines=(3, 5), base=OLD)],
    "the whole of what was shown in ranges": [
        served("full", lines=(1, 6)),
        served("full", lines=(5, 10)),
        served("unchanged", base=OLD),
    ],
    "lines that stayed while others changed": [FULL, served("unchanged_range", NEW, (1, 4), base=OLD)],
    "a diff against what was shown whole": [FULL, served("diff", NEW, base=OLD, emitted=Spans.of((2, 8)))],
    "a marker behind a diff": [FULL, served("diff", NEW, base=OLD), served("unchanged", NEW, base=NEW)],
    "a newline at the end that comes, goes and comes": [
        FULL,
        served("diff", ENDED, base=OLD, emitted=Spans.of((7, 10))),
        served("diff", OLD, base=ENDED, emitted=Spans.of((7, 10))),
        served("diff", ENDED, base=OLD, emitted=Spans.of((7, 10))),
        served("unchanged", ENDED, base=ENDED),
    ],
    "lines that moved": [FULL, served("moved", LONGER, (2, 11), copies=(SHIFTED,))],
    "lines some of which are known": [
        served("full", lines=(1, 6)),
        served("partly_known", lines=(1, 10), emitted=Spans.of((7, 10)), copies=(LineCopy(name(OLD), 1, 6, 1),)),
    ],
    "a diff of a range": [
        FULL,
        served(
            "range_diff",
            NEW,
            (4, 6),
            base=OLD,
            emitted=Spans.of((5, 5)),
            copies=(LineCopy(name(OLD), 4, 1, 4), LineCopy(name(OLD), 6, 1, 6)),
        ),
    ],
    "what the model wrote itself": [FileWrite("/a", name(OLD), 10, Spans.of((1, 10)), whole=True), WHOLE],
    "what an edit left alone": [
        FULL,
        FileWrite("/a", name(NEW), 10, Spans.of((5, 5)), (LineCopy(name(OLD), 1, 4, 1), LineCopy(name(OLD), 6, 5, 6))),
        served("unchanged", NEW, base=NEW),
    ],
    "a refresh takes nothing away": [FULL, FileRefresh("/a"), WHOLE],
    "a marker behind a compaction and the text again": [FULL, CompactionEvent(), FULL, WHOLE],
}


@pytest.mark.parametrize("events", BORNE_OUT.values(), ids=BORNE_OUT)
def test_what_is_borne_out_is_not_objected_to(events: Sequence[ReadEvent]) -> None:
    assert why(*events) == []


UNFOUNDED: dict[str, tuple[Sequence[ReadEvent], str]] = {
    "a marker for what was never shown": ([WHOLE], "never shown"),
    "a diff of a range that tells again what was told already": (
        [
            FULL,
            served("full", NEW),
            served("range_diff", NEW, (4, 5), base=OLD, emitted=Spans.of((5, 5)), copies=(LineCopy(name(OLD), 4, 1, 4),)),
        ],
        "takes to be so already",
    ),
    "a marker for another file": ([FULL, served("unchanged", base=OLD, path="/b")], "never shown"),
    "a marker behind a compaction": ([FULL, CompactionEvent(), WHOLE], "never shown"),
    "a marker for lines that a cut read did not show": ([served("full", emitted=Spans.of((1, 4))), WHOLE], "never shown"),
    "a marker for a version that changed": ([FULL, served("unchanged", NEW, base=NEW)], "says something else"),
    "a marker for what was shown before something else": (
        [FULL, served("full", NEW), served("unchanged", OLD, base=OLD)],
        "says something else",
    ),
    "a marker for a file that got shorter": ([served("full", LONGER), served("unchanged", "other", base="other")], "last said to have 11 lines"),
    "a diff against a version that was never shown": ([served("diff", NEW, base=OLD)], "never shown"),
    "a diff against a version shown in part": (
        [served("full", lines=(1, 9)), served("diff", NEW, base=OLD)],
        "never shown",
    ),
    "a diff that leaves out what changed": (
        [FULL, served("diff", NEW, base=OLD, emitted=Spans.of((1, 1)))],
        "not in its base",
    ),
    "a diff without a base": ([FULL, served("diff", NEW)], "without a base"),
    "moved lines that say something else": (
        [FULL, served("moved", NEW, (1, 10), copies=(ALL,))],
        "says something else",
    ),
    "moved lines that do not cover what was asked": (
        [FULL, served("moved", LONGER, (1, 11), copies=(SHIFTED,))],
        "neither shown nor stood for",
    ),
    "copies of lines that were never shown": (
        [served("full", lines=(1, 3)), served("partly_known", emitted=Spans.of((5, 10)), copies=(LineCopy(name(OLD), 1, 4, 1),))],
        "never shown",
    ),
    "lines that the version does not have": ([replace(FULL, emitted=Spans.of((1, 99)))], "does not have"),
    "another number of lines": ([replace(FULL, total=9, last=9, emitted=Spans.of((1, 9)))], "has 10 lines, not 9"),
    "an edit that left alone what it did not": (
        [FULL, FileWrite("/a", name(NEW), 10, Spans.of((1, 1)), (ALL,))],
        "left alone by an edit",
    ),
    "a version that is lost": ([replace(FULL, version=name("lost"))], "not in the store"),
}  # fmt: skip


@pytest.mark.parametrize(("events", "reason"), UNFOUNDED.values(), ids=UNFOUNDED)
def test_what_is_not_borne_out_is_objected_to(events: Sequence[ReadEvent], reason: str) -> None:
    found = why(*events)
    assert found
    assert reason in found[-1]


def test_an_objection_names_the_event_and_the_line() -> None:
    (one,) = audit([FULL, served("unchanged", NEW, base=NEW)], STORED.get)
    assert (one.place, one.path, one.line) == (1, "/a", 5)


def test_branches_do_not_bear_each_other_out(tmp_path: Path) -> None:
    """Two branches from one root; what the one saw is nothing to the other, and what both share is heard once."""
    (tmp_path / "work").mkdir()
    desk = Desk(tmp_path / "work", tmp_path / "one.pagein")
    desk.put("a.txt", numbered_text(60))
    desk.put("b.txt", numbered_text(60))
    session = desk.session()
    session.read("b.txt")
    root = session.leaf
    session.read("a.txt")
    session.read("a.txt")
    session.move(root)
    session.read("b.txt")
    store, entries = kept(desk)
    assert objections(entries, store.get) == []
    marker, other = entries[-2:]
    forged = [*entries, replace(marker, id="forged", parent=other.id)]
    (objection,) = objections(forged, store.get)
    assert objection.startswith("entry forged: ")
    (objection,) = objections([entries[0], replace(marker, parent=root)], store.get)
    assert "never shown" in objection
    store.close()


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    (tmp_path / "work").mkdir()
    return Desk(tmp_path / "work", tmp_path / "one.pagein")


def kept(desk: Desk) -> tuple[SqliteUpkeep, list[Entry]]:
    desk.close()
    store = SqliteUpkeep(desk.store)
    return store, [entry for entry in store.entries("main") if isinstance(entry, Entry)]


def test_a_marker_whose_text_is_taken_out_of_the_journal_is_found_in_a_store(desk: Desk) -> None:
    """A session as it was lived, and the same one without the read that its marker rests on."""
    desk.put("a.txt", numbered_text(60))
    session = desk.session()
    assert [mode_of(session.read("a.txt")) for _ in range(3)] == ["full", "unchanged", "unchanged"]
    store, entries = kept(desk)
    assert check_store(store).is_clean
    store.append("forged", [replace(entries[1], parent=None), entries[2]])
    (finding, _) = check_store(store).findings
    assert (finding.kind, finding.where) == ("answer", "session 'forged'")
    assert "never shown" in finding.why
    store.close()


def test_a_record_that_cannot_be_understood_is_told(desk: Desk) -> None:
    desk.put("a.txt", numbered_text(60))
    desk.session().read("a.txt")
    store, entries = kept(desk)
    store.append("main", [Entry("x", entries[-1].id, NoteEntry("reading", '{"readcache":{"v":1}}'))])
    (finding,) = check_store(store).findings
    assert "cannot be understood" in finding.why
    store.close()


@pytest.mark.parametrize("seed", range(10))
def test_whoever_takes_text_away_from_under_a_marker_is_found_out(desk: Desk, seed: int) -> None:
    """Random reads of a changing file; then one read that showed text is struck out, and what rests on it objected to."""
    dice = random.Random(seed)  # noqa: S311 - a test's dice
    lines = numbered_text(80).split("\n")
    session = desk.session()
    for _ in range(25):
        at = dice.randrange(len(lines))
        if dice.random() < 0.4:
            lines[at : at + dice.choice([0, 2])] = [f"new {dice.randrange(999)}"]
        desk.put("a.txt", "\n".join(lines))
        session.read("a.txt", dice.choice([None, at + 1]), dice.choice([None, 20]))
    store, entries = kept(desk)
    assert objections(entries, store.get) == []
    events = [event for entry in entries if (event := event_of(entry.body)) is not None]
    struck = found = 0
    for place, event in enumerate(events):
        if isinstance(event, FileRead) and event.emitted and event.mode == "full":
            struck += 1
            found += bool(audit(events[:place] + events[place + 1 :], store.get))
    assert struck
    assert found
    store.close()
