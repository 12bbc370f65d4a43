"""Receipts: only the answers that a call quotes count as known, whatever else the session read."""

import random
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.receipt_reads import read
from tests.tools.recall_sessions import Room

import pagein
from pagein.engine.engine import Engine
from pagein.engine.log.standing_receipts import standing_receipt
from pagein.engine.reads import testimony
from pagein.engine.receipts import ReceiptedRead, ReceiptedReads
from pagein.model import read_records
from pagein.model.names import ContentHash
from pagein.model.read_events import FileRead

LINES = [f"value_{number} = compute({number}) + {number * 7}\n" for number in range(40)]


def open_engine(folder: Path) -> Engine:
    return pagein.open(folder / "store.db", workspace=folder)


def text(*lines: str) -> str:
    return "".join(lines)


def event_of(found: ReceiptedRead) -> FileRead:
    event = read_records.decode(found.result.details)
    assert isinstance(event, FileRead)
    return event


def test_a_quoted_answer_is_known_and_an_unquoted_one_is_not(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(text(*LINES))
    with open_engine(tmp_path) as engine:
        reads = ReceiptedReads(engine.session("mcp", workspace=tmp_path))
        first = read(reads, "a.py")
        assert read(reads, "a.py").result.text == first.result.text == text(*LINES)
        again = read(reads, "a.py", known=[first.receipt])
    assert again.result.text == "[readcache: unchanged, 41 lines]"
    assert again.receipt == ""


def test_a_diff_has_a_receipt_that_proves_nothing_without_that_of_its_base(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(text(*LINES))
    with open_engine(tmp_path) as engine:
        reads = ReceiptedReads(engine.session("mcp", workspace=tmp_path))
        base = read(reads, "a.py").receipt
        changed = text(*LINES[:20], "more = 1\n", *LINES[20:])
        (tmp_path / "a.py").write_text(changed)
        diff = read(reads, "a.py", known=[base])
        assert diff.result.text.startswith("[readcache: 1 lines changed of")
        assert read(reads, "a.py", known=[diff.receipt]).result.text == changed
        assert read(reads, "a.py", known=[diff.receipt, base]).result.text == "[readcache: unchanged, 42 lines]"
        assert read(reads, "a.py", known=[diff.receipt, base], bypass=True).result.text == changed


def test_a_receipt_outlives_the_process_and_is_nobody_elses(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(text(*LINES))
    with open_engine(tmp_path) as engine:
        receipt = read(ReceiptedReads(engine.session("mcp", workspace=tmp_path)), "a.py").receipt
    with open_engine(tmp_path) as engine:
        resumed = read(ReceiptedReads(engine.session("mcp", workspace=tmp_path)), "a.py", known=[receipt])
        other = read(ReceiptedReads(engine.session("other", workspace=tmp_path)), "a.py", known=[receipt])
    assert resumed.result.text.startswith("[readcache: unchanged")
    assert other.result.text == text(*LINES)
    assert other.unknown == (receipt,)


@pytest.mark.parametrize("tag", ["", "x", "0000000000", "a" * 5000])
def test_an_invented_receipt_is_told_and_gets_the_text(tmp_path: Path, tag: str) -> None:
    (tmp_path / "a.py").write_text(text(*LINES))
    with open_engine(tmp_path) as engine:
        reads = ReceiptedReads(engine.session("mcp", workspace=tmp_path))
        read(reads, "a.py")
        found = read(reads, "a.py", known=[tag])
    assert (found.result.text, found.unknown) == (text(*LINES), (tag,))


def test_the_store_gets_one_entry_for_equal_reads(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(text(*LINES))
    with open_engine(tmp_path) as engine:
        session = engine.session("mcp", workspace=tmp_path)
        reads = ReceiptedReads(session)
        receipt = read(reads, "a.py").receipt
        for _ in range(20):
            read(reads, "a.py")
            read(reads, "a.py", known=[receipt])
        assert len(session.journal.entries) == 2


@pytest.mark.parametrize("first_quoted", [0, 3])
def test_a_file_that_goes_back_and_forth_is_never_told_by_an_older_answer_with_the_same_text(
    tmp_path: Path, first_quoted: int
) -> None:
    """The reader of all quoted answers in their order has the text of the last one, however often it was shown before."""
    one, two = text(*LINES), text(*LINES[:20], "other = 1\n", *LINES[21:])
    quoted: list[str] = []
    shown = ""
    with open_engine(tmp_path) as engine:
        reads = ReceiptedReads(engine.session("mcp", workspace=tmp_path))
        for place, now in enumerate([one, two, one, two, one, one, two, two, one]):
            (tmp_path / "a.py").write_text(now)
            found = read(reads, "a.py", known=quoted if place >= first_quoted else [])
            mode = event_of(found).mode
            assert mode == ("full" if place in (0, *range(first_quoted)) else "unchanged" if now == shown else "diff")
            assert found.receipt not in quoted
            quoted += [found.receipt] if found.receipt else []
            shown = now
        again = ReceiptedReads(engine.session("mcp", workspace=tmp_path))
        assert read(again, "a.py", known=quoted).result.text == "[readcache: unchanged, 41 lines]"


def test_a_change_between_two_quoted_answers_is_not_passed_over(tmp_path: Path) -> None:
    """Whoever saw the answer between them has other lines in mind than those of the first."""
    one, two = text(*LINES), text(*LINES[:20], "other = 1\n", *LINES[21:])
    with open_engine(tmp_path) as engine:
        reads = ReceiptedReads(engine.session("mcp", workspace=tmp_path))
        (tmp_path / "a.py").write_text(one)
        first = read(reads, "a.py").receipt
        (tmp_path / "a.py").write_text(two)
        between = read(reads, "a.py").receipt
        (tmp_path / "a.py").write_text(one)
        last = read(reads, "a.py", offset=1, limit=10).receipt
        assert event_of(read(reads, "a.py", known=[first, last])).mode != "unchanged"
        assert event_of(read(reads, "a.py", known=[first, between, last])).mode != "unchanged"


def test_a_marker_of_another_version_has_a_receipt_and_unquoted_ends_what_was_shown_before(tmp_path: Path) -> None:
    """Its reader has been told that lines moved: "unchanged" would mean those, under their new numbers."""
    file, one, moved = tmp_path / "a.py", text(*LINES), text("new = 1\n", "new = 2\n", *LINES)
    file.write_text(one)
    with open_engine(tmp_path) as engine:
        reads = ReceiptedReads(engine.session("mcp", workspace=tmp_path))
        first = read(reads, "a.py").receipt
        file.write_text(moved)
        told = read(reads, "a.py", offset=3, known=[first])
        assert told.result.text == "[readcache: lines 3-43 of 43 unchanged, shown earlier as lines 1-41]"
        assert told.receipt
        again = read(reads, "a.py", offset=3, known=[first, told.receipt])
        assert (again.result.text, again.receipt) == (told.result.text, "")
        file.write_text(one)
        back = read(reads, "a.py", offset=3, known=[first])
        assert (event_of(back).mode, back.receipt != first) == ("full", True)
        assert event_of(read(reads, "a.py", offset=3, known=[first, told.receipt])).mode == "full"
    with open_engine(tmp_path) as engine:  # another process knows what was told
        resumed = ReceiptedReads(engine.session("mcp", workspace=tmp_path))
        assert event_of(read(resumed, "a.py", offset=3, known=[first])).mode == "full"
        assert event_of(read(resumed, "a.py", offset=3, known=[back.receipt])).mode == "unchanged_range"


@pytest.mark.parametrize("third", ["moved", "other"])
def test_a_part_that_is_shown_behind_a_marker_does_not_pass_over_it(tmp_path: Path, third: str) -> None:
    """Who read the marker takes the lines outside of the part to stand where it told, not where they were shown."""
    file, one, moved = tmp_path / "a.py", text(*LINES), text("new = 1\n", "new = 2\n", *LINES)
    file.write_text(one)
    with open_engine(tmp_path) as engine:
        reads = ReceiptedReads(engine.session("mcp", workspace=tmp_path))
        first = read(reads, "a.py").receipt
        file.write_text(moved)
        marker = read(reads, "a.py", offset=3, known=[first]).receipt
        file.write_text(moved if third == "moved" else text(*LINES[:3], "other = 1\n", *LINES[4:]))
        part = read(reads, "a.py", offset=1, limit=6).receipt
        file.write_text(text(*LINES[:3], "other = 1\n", *LINES[4:]))
        assert event_of(read(reads, "a.py", offset=10, known=[first, part])).mode == "full"
        assert event_of(read(reads, "a.py", offset=10, known=[first, marker, part])).mode != "unchanged_range"


def test_an_unquoted_part_of_the_same_version_as_a_quoted_marker_ends_what_an_older_version_showed(
    tmp_path: Path,
) -> None:
    """A diff against the first version would repeat a change that the model has seen in the part that it does not quote."""
    file, two = tmp_path / "a.py", [*LINES[:20], "other = 1\n", *LINES[21:]]
    file.write_text(text(*LINES))
    with open_engine(tmp_path) as engine:
        reads = ReceiptedReads(engine.session("mcp", workspace=tmp_path))
        first = read(reads, "a.py").receipt
        file.write_text(text(*two))
        quoted = read(reads, "a.py", offset=1, limit=9, known=[first]).receipt
        read(reads, "a.py", offset=18, limit=6)
        file.write_text(text(*two[:30], "third = 1\n", *two[31:]))
        assert quoted
        assert event_of(read(reads, "a.py", known=[first, quoted])).mode == "full"


@pytest.mark.parametrize("is_quoted", [True, False])
def test_no_marker_names_numbers_under_which_an_unquoted_answer_shows_another_text(
    tmp_path: Path,
    is_quoted: bool,  # noqa: FBT001 - a case
) -> None:
    file, added = tmp_path / "a.py", [f"new = {number}\n" for number in range(10)]
    file.write_text(text(*LINES))
    with open_engine(tmp_path) as engine:
        reads = ReceiptedReads(engine.session("mcp", workspace=tmp_path))
        whole = read(reads, "a.py").receipt
        file.write_text(text(*added, *LINES))
        part = read(reads, "a.py", offset=21, limit=10).receipt
        file.write_text(text(*LINES[:4], *LINES[10:]))
        known = [whole, part] if is_quoted else [part]
        found = read(reads, "a.py", offset=5, limit=10, known=known).result.text
    moved = "[readcache: lines 5-14 of 35 unchanged, shown earlier as lines 11-20]"
    assert found.startswith(moved if is_quoted else LINES[10])


edits = st.tuples(st.just("edit"), st.integers(0, 39), st.text("abc\n", max_size=12))
ranges = st.tuples(st.just("read"), st.integers(1, 45), st.one_of(st.none(), st.integers(1, 45)))


@given(st.lists(st.one_of(edits, ranges, ranges), min_size=2, max_size=14), st.randoms(use_true_random=False))
def test_the_witness_agrees_with_each_answer_from_the_quoted_answers_alone(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int, object]], luck: random.Random
) -> None:
    """A client that compacts, forks, rewinds and mixes: it quotes any of the answers that it ever got."""
    folder = tmp_path_factory.mktemp("reads")
    file, lines = folder / "a.py", list(LINES)
    file.write_text(text(*lines))
    answers: dict[str, tuple[FileRead, str]] = {}
    with open_engine(folder) as engine:
        reads = ReceiptedReads(engine.session("mcp", workspace=folder))
        blobs = engine._blobs

        def stored(version: ContentHash) -> bytes | None:
            return blobs.get(version)

        for kind, number, extra in steps:
            if kind == "edit":
                lines[number % len(lines)] = f"{extra}\n"
                file.write_text(text(*lines))
                continue
            quoted = [tag for tag in answers if luck.random() < 0.6]
            offset = min(number, file.read_text().count("\n") + 1)
            found = read(reads, "a.py", offset=offset, limit=cast("int | None", extra), known=quoted)
            assert found.result.failure is None
            assert found.unknown == ()
            event = event_of(found)
            told = testimony.Testimony()
            for number_of_answer, tag in enumerate(one for one in answers if one in quoted):
                told.add(f"call-{number_of_answer}", *answers[tag])
            told.add(testimony.CANDIDATE, event, found.result.text)
            assert [one for one in told.objections(stored) if one.call_id == testimony.CANDIDATE] == []
            if found.receipt:
                answers.setdefault(found.receipt, (event, found.result.text))


def test_a_receipt_below_its_whole_answer_counts_as_quoted_and_below_another_text_it_does_not(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(text(*LINES))
    with open_engine(tmp_path) as engine:
        reads = ReceiptedReads(engine.session("mcp", workspace=tmp_path))
        first = read(reads, "a.py", known=["0123456789"])
        assert first.text.count("[not known: 0123456789]") == 1

        def again(shown: str) -> str:
            found = standing_receipt(shown)
            standing = {} if found is None else {"call": found}
            return read(reads, "a.py", standing=lambda: standing).result.text

        assert again(first.text) == "[readcache: unchanged, 41 lines]"
        assert again(first.text[1:]) == text(*LINES)
        assert again(first.text.replace("value_7", "value_8")) == text(*LINES)
        assert again(f"{first.text} and more") == text(*LINES)
        assert again(first.result.text) == text(*LINES)


def test_a_receipt_that_a_gateway_on_the_same_store_took_out_of_the_window_does_not_count(room: Room) -> None:
    room.put("a.py", text(*LINES))
    reads = ReceiptedReads(room.session("mcp"))
    first = read(reads, "a.py")
    found = standing_receipt(first.text)
    assert found is not None
    room.paged(room.session("gateway"), f"{first.text}\n\nmore")
    assert read(reads, "a.py", standing=lambda: {"c9": found}).result.text == "[readcache: unchanged, 41 lines]"
    assert read(reads, "a.py", standing=lambda: {"c1": found}).result.text == text(*LINES)
