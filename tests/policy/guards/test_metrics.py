"""The metrics of reads and searches, and bundles of consecutive reads."""

import hashlib

from pagein.model.entries import CompactionEntry, MessageEntry, NoteEntry
from pagein.model.guard_notes import ReadMeasureNote, SearchMeasureNote
from pagein.model.messages import Message, Text
from pagein.policy.guards.aggregation import EMPTY, MOST_ITEMS, bundle_id, candidate_id, item_id
from pagein.policy.guards.guard_state import START, GuardState, step

USER = MessageEntry(Message("user", (Text("go on"),)))


def after(*bodies: ReadMeasureNote | SearchMeasureNote | MessageEntry | CompactionEntry) -> GuardState:
    state = START
    for body in bodies:
        is_note = isinstance(body, ReadMeasureNote | SearchMeasureNote)
        state = step(state, NoteEntry.of(body) if is_note else body)  # type: ignore[arg-type]
    return state


def test_a_search_with_shortened_places_counts_as_degraded_and_as_no_read() -> None:
    told = after(SearchMeasureNote("needle", ("/w/p0.py",), 10, "code", degraded=True)).metrics.snapshot()
    assert (told["search_count"], told["preview_degraded_count"], told["reads_count"]) == (1, 1, 0)
    assert told["read_after_search_ratio"] == 0.0


def test_a_file_of_three_lines_after_a_search() -> None:
    told = after(SearchMeasureNote("line"), ReadMeasureNote("file", "/w/s.py", 1, 3, 3, 17, 3)).metrics.snapshot()
    assert told == {
        "reads_count": 1,
        "reads_lines_total": 3,
        "reads_chars_total": 17,
        "search_count": 1,
        "read_after_search_ratio": 1.0,
        "avg_read_span": 3.0,
        "max_read_span": 3,
        "preview_degraded_count": 0,
    }


def test_shares_have_six_decimals_and_the_whole_branch_counts() -> None:
    read = ReadMeasureNote("file", "/w/s.py", 1, 4, 4, 9, 4)
    longer = ReadMeasureNote("snippet", "/w/s.py", 11, 20, 2, 9, 0, degraded=True)
    told = after(read, SearchMeasureNote("x"), USER, longer, CompactionEntry(), read).metrics.snapshot()
    assert (told["reads_count"], told["avg_read_span"], told["max_read_span"]) == (3, 6.0, 10)
    assert told["read_after_search_ratio"] == 0.666667
    assert told["preview_degraded_count"] == 1


def test_the_same_read_twice_is_one_item_of_a_named_bundle() -> None:
    item = item_id("file", "a.py", "one\ntwo\n")
    assert item == hashlib.sha256(b"file\na.py\none\ntwo\n").hexdigest()
    once = ReadMeasureNote("file", "/w/a.py", 1, 2, 2, 9, 2, item)
    marker = ReadMeasureNote("file", "/w/a.py", 1, 2, 0, 60, 0, item)
    first, second = after(once).bundle, after(once, marker).bundle
    assert first.id == second.id == bundle_id([item]) == hashlib.sha256(item.encode()).hexdigest()
    assert (len(second.items), second.distinct, second.sent) == (1, 2, 2)
    other = after(once, ReadMeasureNote("file", "/w/b.py", 1, 2, 2, 9, 2, item_id("file", "b.py", "x"))).bundle
    assert (len(other.items), other.distinct) == (2, 4)
    assert other.id != first.id


def test_overlapping_reads_are_counted_once_and_a_search_begins_a_new_bundle() -> None:
    reads = [ReadMeasureNote("snippet", "/w/a.py", first, first + 9, 10, 9, 5, f"i{first}") for first in (1, 6, 11)]
    assert after(*reads).bundle.distinct == 20
    for border in (SearchMeasureNote("x"), USER, CompactionEntry()):
        assert after(*reads, border).bundle == EMPTY
    many = after(*(ReadMeasureNote("file", f"/w/{n}", 1, 1, 1, 1, 1, f"i{n}") for n in range(200))).bundle
    assert len(many.items) == MOST_ITEMS
    assert many.items[-1] == "i199"


def test_places_of_a_search_have_names_that_stay() -> None:
    expected = "cand_" + hashlib.sha256(b"q|src/a.py|a.py|0").hexdigest()[:12]
    assert candidate_id("q", "src/a.py", 0) == expected != candidate_id("q", "src/a.py", 1)
