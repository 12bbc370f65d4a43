"""The specification's test matrix (section 21), the rows that need no disk: 1-9, 13-15, 18, 19, 21, 30.

The other rows stand with the read tool and the library. `new_answers=False` gives the specification's own answers.
"""

import pytest

from pagein.model.read_records import decode
from pagein.model.spans import Spans
from pagein.policy.reads.knowledge import NOTHING
from pagein.policy.reads.read_request import ReadingSettings
from pagein.testing.read_script import ReadScript

SPECIFIED = ReadingSettings(new_answers=False)


def lines(count: int, word: str = "line") -> str:
    return "\n".join(f"{word} {i} :: original text payload" for i in range(1, count + 1))


def script(count: int = 300, settings: ReadingSettings | None = None) -> ReadScript:
    return ReadScript(settings or ReadingSettings()).changes("f", lines(count))


def changed(told: ReadScript, line: int, text: str = "changed") -> ReadScript:
    return told.changes("f", told.files["f"].replace(f"line {line} ::", f"line {line} {text} ::"))


def test_matrix_01_the_first_full_read_is_the_file() -> None:
    first = script().reads("f")
    assert (first.text, first.event.mode, first.event.base) == (lines(300), "full", None)
    assert first.event.emitted == Spans.of((1, 300))


def test_matrix_02_an_unchanged_full_read_is_a_marker() -> None:
    told = script()
    told.reads("f")
    again = told.reads("f")
    assert (again.text, again.event.mode) == ("[readcache: unchanged, 300 lines]", "unchanged")
    assert again.event.base == again.event.version


def test_matrix_03_a_changed_full_read_is_a_diff() -> None:
    told = script()
    first = told.reads("f")
    diff = changed(told, 200).reads("f")
    assert diff.event.mode == "diff"
    assert diff.event.base == first.event.version
    assert diff.text.startswith("[readcache: 1 lines changed of 300]\n--- a/f\t\n+++ b/f\t\n@@ -197,7 +197,7 @@\n")
    assert "\n-line 200 :: original text payload\n+line 200 changed :: original text payload\n" in diff.text


def test_matrix_04_a_diff_that_is_not_useful_is_not_sent() -> None:
    told = script()
    told.reads("f")
    plain = told.changes("f", lines(300, "other")).reads("f")
    assert (plain.text, plain.event.mode) == (lines(300, "other"), "baseline_fallback")


def test_matrix_05_the_first_read_of_a_range_is_its_text() -> None:
    first = script().reads("f", 10, 20)
    assert first.text.startswith("line 10 ::")
    assert first.text.endswith("[271 more lines in file. Use offset=30 to continue.]")
    assert (first.event.mode, first.event.scope_key) == ("full", "r:10:29")


def test_matrix_06_the_same_range_unchanged_is_a_marker() -> None:
    told = script()
    told.reads("f", 10, 20)
    again = told.reads("f", 10, 20)
    assert (again.text, again.event.mode) == ("[readcache: unchanged in lines 10-29 of 300]", "unchanged_range")


@pytest.mark.parametrize("settings", [ReadingSettings(), SPECIFIED], ids=["all answers", "specified answers"])
def test_matrix_07_a_change_outside_the_range_leaves_it_unchanged(settings: ReadingSettings) -> None:
    told = script(settings=settings)
    told.reads("f")
    inside = changed(told, 200).reads("f", 10, 20)
    assert inside.text == "[readcache: unchanged in lines 10-29; changes exist outside this range]"
    assert inside.event.mode == "unchanged_range"


def test_matrix_08_a_change_inside_the_range_gives_its_text() -> None:
    told = script(settings=SPECIFIED)
    told.reads("f")
    plain = changed(told, 20).reads("f", 10, 20)
    assert plain.event.mode == "baseline_fallback"
    assert "line 20 changed ::" in plain.text


def test_matrix_08_with_all_answers_it_gives_a_diff_of_the_range() -> None:
    told = script()
    told.reads("f")
    diff = changed(told, 20).reads("f", 10, 100)
    assert (diff.event.mode, diff.event.v) == ("range_diff", 2)
    assert diff.text.startswith(
        "[readcache: 1 lines changed in lines 10-109 of 300]\n--- a/f\t\n+++ b/f\t\n@@ -17,7 +17,7 @@\n"
    )


def test_matrix_09_an_insertion_above_the_range_counts_as_a_change_of_it() -> None:
    told = script(settings=SPECIFIED)
    told.reads("f")
    plain = told.changes("f", "inserted\n" + lines(300)).reads("f", 100, 21)
    assert plain.event.mode == "baseline_fallback"
    assert plain.text.startswith("line 99 ::")


def test_matrix_09_with_all_answers_it_is_a_moved_marker() -> None:
    told = script()
    told.reads("f")
    moved = told.changes("f", "inserted\n" + lines(300)).reads("f", 100, 21)
    assert moved.text == "[readcache: lines 100-120 of 301 unchanged, shown earlier as lines 99-119]"
    assert (moved.event.mode, moved.event.v) == ("moved", 2)


def test_matrix_13_nothing_known_before_a_compaction_is_known_after_it() -> None:
    told = script()
    told.reads("f")
    assert told.compacts().state == NOTHING


def test_matrix_14_the_latest_of_several_compactions_counts() -> None:
    told = script()
    told.reads("f")
    told.compacts().reads("f")
    told.compacts()
    assert told.reads("f").event.mode == "full"
    assert told.reads("f").event.mode == "unchanged"


@pytest.mark.parametrize(("offset", "limit"), [(None, None), (10, 20)])
def test_matrix_15_the_first_read_after_a_compaction_is_text(offset: int | None, limit: int | None) -> None:
    told = script()
    told.reads("f", offset, limit)
    told.compacts()
    assert told.reads("f", offset, limit).event.mode in ("full", "baseline_fallback")


def test_matrix_18_an_old_range_does_not_override_a_fresher_full_read() -> None:
    told = script(settings=SPECIFIED)
    told.reads("f", 2, 30)
    fresh = changed(told, 1).reads("f")
    again = told.reads("f", 2, 30)
    assert (again.event.mode, again.event.base) == ("unchanged_range", fresh.event.version)


def test_matrix_19_a_lost_base_costs_text_and_nothing_else() -> None:
    told = script()
    told.reads("f")
    told.loses("f")
    plain = changed(told, 200).reads("f")
    assert (plain.event.mode, plain.reason) == ("baseline_fallback", "base_object_missing")
    assert plain.text == told.files["f"]
    assert told.reads("f").event.mode == "unchanged"


@pytest.mark.parametrize("record", [None, {}, {"v": 1}, {"v": 3, "mode": "full"}, "text", []])
def test_matrix_21_metadata_that_is_missing_or_invalid_creates_no_trust(record: object) -> None:
    from pagein.policy.reads.knowledge import fold

    assert fold([decode({"readcache": record}), decode(record)]) == NOTHING


def test_matrix_30_refreshing_the_file_refreshes_every_range_of_it() -> None:
    told = script()
    told.reads("f")
    told.reads("f", 10, 20)
    told.refreshes("f")
    assert told.reads("f", 10, 20).event.mode == "full"
    assert told.reads("f", 50, 20).event.mode == "full"
