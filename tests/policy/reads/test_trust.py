"""The fold of knowledge: the transition table, row by row, and what no chain of markers may do."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagein.model.names import ContentHash
from pagein.model.read_events import (
    CompactionEvent,
    FileRead,
    FileRefresh,
    FileWrite,
    LineCopy,
    MalformedRecord,
    Mode,
    ReadEvent,
)
from pagein.model.spans import NO_LINES, Spans
from pagein.policy.reads.knowledge import NOTHING, fold, proven, step
from pagein.policy.reads.trust import TRANSITIONS, trust_table

V1, V2, V3 = (ContentHash.of(name) for name in (b"one", b"two", b"three"))
ALL = Spans.of((1, 10))


def served(
    mode: Mode,
    version: ContentHash = V1,
    first: int = 1,
    last: int = 10,
    *,
    base: ContentHash | None = None,
    emitted: Spans | str | None = "as the mode says",
    copies: tuple[LineCopy, ...] = (),
    v: int = 1,
) -> FileRead:
    if isinstance(emitted, str):
        emitted = Spans.of((first, last)) if mode in ("full", "baseline_fallback") else NO_LINES
    return FileRead("f", mode, version, 10, first, last, 100, base, emitted, copies, 1 if v == 1 else 2)


def known(*events: ReadEvent, version: ContentHash = V1) -> Spans:
    held = fold(events).of("f").lines_known(version)
    return NO_LINES if held is None else held.spans


@pytest.mark.parametrize("mode", ["full", "baseline_fallback"])
def test_an_anchor_proves_the_lines_it_emitted_and_no_more(mode: Mode) -> None:
    assert known(served(mode)) == ALL
    assert known(served(mode, emitted=Spans.of((1, 4)))) == Spans.of((1, 4))
    assert known(served(mode, first=3, last=5)) == Spans.of((3, 5))
    assert known(served(mode, emitted=None)) == NO_LINES


def test_ranges_unite_until_the_version_is_known_whole() -> None:
    events = [served("full", first=1, last=6), served("full", first=5, last=10)]
    assert known(*events) == ALL
    assert fold(events).of("f").last_complete() is not None


def test_unchanged_refreshes_only_what_is_known_already() -> None:
    again = served("unchanged", base=V1)
    assert known(again) == NO_LINES
    assert known(served("full"), again) == ALL
    assert known(served("full", first=2, last=4), again) == Spans.of((2, 4))


def test_unchanged_of_another_version_than_its_base_is_ignored() -> None:
    assert known(served("full"), served("unchanged", V2, base=V1), version=V2) == NO_LINES


def test_a_diff_carries_knowledge_only_from_a_base_known_whole() -> None:
    diff = served("diff", V2, base=V1)
    assert known(served("full"), diff, version=V2) == ALL
    assert known(served("full", emitted=Spans.of((1, 9))), diff, version=V2) == NO_LINES
    assert known(diff, version=V2) == NO_LINES


def test_a_diff_against_a_whole_version_that_is_not_the_latest_is_ignored() -> None:
    assert known(served("full"), served("full", V2), served("diff", V3, base=V1), version=V3) == NO_LINES


def test_an_unchanged_range_carries_lines_across_versions_under_their_numbers() -> None:
    later = served("unchanged_range", V2, 3, 6, base=V1)
    assert known(served("full"), later, version=V2) == Spans.of((3, 6))
    assert known(served("full", first=1, last=4), later, version=V2) == Spans.of((3, 4))
    assert known(later, version=V2) == NO_LINES


def test_an_unchanged_range_means_the_text_shown_last_under_its_numbers() -> None:
    other = served("full", V2, 4, 4)
    assert known(served("full"), other, served("unchanged_range", V3, 3, 6, base=V1), version=V3) == Spans.of(
        (3, 3), (5, 6)
    )


def test_copies_carry_what_is_known_of_them_and_emitted_lines_count_anyway() -> None:
    moved = served("moved", V2, 4, 9, v=2, copies=(LineCopy(V1, 1, 6, 4),))
    assert known(served("full", first=1, last=3), moved, version=V2) == Spans.of((4, 6))
    partly = served("partly_known", V2, v=2, emitted=Spans.of((7, 8)), copies=(LineCopy(V1, 1, 6, 1),))
    assert known(partly, version=V2) == Spans.of((7, 8))


def test_pairs_of_mode_and_scope_without_a_row_change_nothing() -> None:
    start = fold([served("full", first=1, last=5)])
    for version in (1, 2):
        for mode in (
            "full",
            "baseline_fallback",
            "unchanged",
            "unchanged_range",
            "diff",
            "moved",
            "range_diff",
            "partly_known",
        ):
            for first, scope in ((1, "full"), (2, "range")):
                if (version, mode, scope) in TRANSITIONS:
                    continue
                event = served(
                    mode,
                    first=first,
                    v=version,
                    base=V1,
                    emitted=Spans.of((first, 10)),
                    copies=(LineCopy(V1, 1, 5, 1),),
                )
                after = step(start, event)
                assert (after.paths, after.seq) == (start.paths, start.seq + 1), (version, mode, scope)


def test_a_malformed_record_is_ignored_and_takes_no_place_in_the_sequence() -> None:
    events: list[ReadEvent] = [served("full"), MalformedRecord("no hash"), served("full", first=2, last=4)]
    assert fold(events).seq == 2
    assert known(*events) == ALL


def test_invalidating_the_file_forgets_every_range_and_every_blocker() -> None:
    events: list[ReadEvent] = [served("full"), FileRefresh("f", (2, 3)), served("full", V2, 4, 6), FileRefresh("f")]
    assert fold(events).of("f") == NOTHING.of("f")


def test_invalidating_a_range_forgets_those_lines_in_every_version() -> None:
    events: list[ReadEvent] = [served("full"), served("full", V2), FileRefresh("f", (4, 5))]
    rest = Spans.of((1, 3), (6, 10))
    assert known(*events) == known(*events, version=V2) == rest
    assert fold(events).of("f").stale == fold(events).of("f").blocked == Spans.of((4, 5))


def test_a_refreshed_range_is_settled_by_a_range_answer_and_not_by_a_full_one() -> None:
    events: list[ReadEvent] = [served("full"), FileRefresh("f", (4, 5)), served("full")]
    after = fold(events).of("f")
    assert (after.stale, after.blocked) == (NO_LINES, Spans.of((4, 5)))
    assert fold([*events, served("full", first=5, last=8)]).of("f").blocked == Spans.of((4, 4))


def test_an_edit_of_a_known_version_carries_what_it_left_alone() -> None:
    edit = FileWrite("f", V2, 11, Spans.of((4, 8)), (LineCopy(V1, 1, 3, 1), LineCopy(V1, 8, 3, 9)))
    assert known(served("full", first=2, last=9), edit, version=V2) == Spans.of((2, 8), (9, 10))
    assert known(edit, version=V2) == Spans.of((4, 8))


def test_a_write_replaces_what_the_numbers_meant_before() -> None:
    state = fold([served("full"), FileWrite("f", V2, 4, Spans.of((1, 4)), whole=True)])
    assert state.of("f").fresh(V1) == NO_LINES
    assert state.of("f").fresh(V2) == Spans.of((1, 4))


def test_nothing_before_a_compaction_matters_after_it() -> None:
    assert fold([served("full"), served("full", V2), CompactionEvent()]) == NOTHING


def test_an_answer_whose_base_is_hidden_is_no_longer_proven() -> None:
    again = served("unchanged", base=V1)
    assert proven(fold([served("full")]), again)
    assert not proven(NOTHING, again)
    assert not proven(fold([served("full", emitted=Spans.of((1, 9)))]), again)
    assert proven(NOTHING, served("full"))


def test_memory_per_path_is_bounded_and_forgetting_only_under_claims() -> None:
    events = [
        FileRead("f", "full", ContentHash.of(b"%d" % (k % 40)), 9000, first, first, 9, emitted=Spans.of((first, first)))
        for k in range(3000)
        for first in [1 + (k * 7) % 9000]
    ]
    path = fold(events).of("f")
    assert len(path.versions) <= 16
    assert len(path.view) <= 128
    assert all(path.lines_known(piece.source) is not None for piece in path.view)


modes = st.sampled_from(["unchanged", "unchanged_range", "diff", "moved", "range_diff", "partly_known"])


@given(st.lists(st.builds(served, modes, st.sampled_from([V1, V2, V3]), base=st.sampled_from([V1, V2, V3]), v=st.sampled_from([1, 2]),
                          copies=st.lists(st.builds(LineCopy, st.sampled_from([V1, V2]), st.integers(1, 5), st.integers(1, 9), st.integers(1, 5)), max_size=2).map(tuple)), max_size=12))  # fmt: skip
def test_markers_and_diffs_alone_never_make_knowledge(events: list[FileRead]) -> None:
    assert len(fold(events).paths) == 0


def test_the_page_on_trust_prints_the_table_that_runs() -> None:
    page = (Path(__file__).parents[3] / "docs" / "reference" / "trust.md").read_text(encoding="utf-8")
    assert trust_table() in page
