"""Answers beyond the specification: moved, range diffs, partly known reads, and what the model wrote itself."""

import pytest

from pagein.model.names import ContentHash
from pagein.model.spans import Spans
from pagein.policy.reads.read_answers import decide, plan
from pagein.policy.reads.read_request import NeedBlob, ReadingSettings
from pagein.testing.read_script import ReadScript


def rows(first: int, last: int, word: str = "line") -> list[str]:
    return [f"{word} {i} :: original text payload" for i in range(first, last + 1)]


def script(count: int = 300) -> ReadScript:
    return ReadScript().changes("f", "\n".join(rows(1, count)))


def test_unseen_lines_are_served_between_markers_for_the_known_ones() -> None:
    told = script()
    told.reads("f", 1, 50)
    told.reads("f", 101, 50)
    partly = told.reads("f", 1, 200)
    assert partly.text == "\n".join(
        [
            "[readcache: unchanged in lines 1-50 of 300]",
            *rows(51, 100),
            "[readcache: unchanged in lines 101-150 of 300]",
            *rows(151, 200),
            "",
            "[100 more lines in file. Use offset=201 to continue.]",
        ]
    )
    assert partly.event.emitted == Spans.of((51, 100), (151, 200))
    assert told.reads("f", 1, 200).text == "[readcache: unchanged in lines 1-200 of 300]"


@pytest.mark.parametrize(("known", "marked"), [(4, False), (5, True)])
def test_runs_below_the_least_length_are_served_as_text(known: int, *, marked: bool) -> None:
    told = script()
    told.reads("f", 10, known)
    assert ("readcache" in told.reads("f", 1, 50).text) is marked


def test_a_run_that_is_shorter_than_its_marker_is_served_as_text() -> None:
    told = ReadScript().changes("f", "\n".join(str(i) for i in range(100)))
    told.reads("f", 10, 9)
    plain = told.reads("f", 1, 90)
    assert "readcache" not in plain.text
    assert plain.event.mode == "full"


def test_known_lines_that_moved_are_named_as_they_were_shown() -> None:
    told = script()
    told.reads("f", 1, 100)
    told.changes("f", "\n".join([*rows(1, 10), *rows(1, 8, "new"), *rows(11, 300)]))
    assert told.reads("f", 1, 130).text == "\n".join(
        [
            "[readcache: unchanged in lines 1-10 of 308]",
            *rows(1, 8, "new"),
            "[readcache: lines 19-108 of 308 unchanged, shown before this answer as lines 11-100]",
            *rows(101, 122),
            "",
            "[178 more lines in file. Use offset=131 to continue.]",
        ]
    )


def test_a_number_that_was_shown_with_other_text_since_is_not_used_as_a_source() -> None:
    told = script()
    told.reads("f", 1, 60)
    told.changes("f", "\n".join([*rows(1, 20, "new"), *rows(1, 300)]))
    told.reads("f", 1, 40)  # lines 21-40 now stand under numbers that showed lines 1-20 before
    assert (
        told.reads("f", 41, 40).text.startswith(
            "[readcache: lines 61-80 of 320 unchanged, shown earlier as lines 41-60]"
        )
        is False
    )
    assert "lines 41-60 of 320" not in told.last.text
    assert told.objections() == ()


def test_a_diff_of_a_range_numbers_its_hunks_in_the_whole_file() -> None:
    told = script()
    told.reads("f", 100, 101)
    text = [*rows(1, 3, "top"), *rows(1, 149), "changed", *rows(151, 300)]
    diff = told.changes("f", "\n".join(text)).reads("f", 103, 101)
    assert diff.text == "\n".join(
        [
            "[readcache: 1 lines changed in lines 103-203 of 303]",
            "--- a/f\t",
            "+++ b/f\t",
            "@@ -147,7 +150,7 @@",
            *(f" {row}" for row in rows(147, 149)),
            f"-{rows(150, 150)[0]}",
            "+changed",
            *(f" {row}" for row in rows(151, 153)),
            "",
        ]
    )
    # what the diff did not show stands under the numbers of the first read still
    assert (
        "[readcache: lines 103-149 of 303 unchanged, shown before this answer as lines 100-146]"
        in told.reads("f", 103, 101).text
    )


def test_a_diff_of_a_range_needs_its_lines_known_and_says_no_more_than_they_prove() -> None:
    told = script()
    told.reads("f", 100, 50)
    told.changes("f", "\n".join([*rows(1, 120), "changed", *rows(122, 300)]))
    assert told.reads("f", 90, 50).event.mode == "partly_known"


def test_lines_read_from_two_versions_unite_where_both_are_still_right() -> None:
    told = script()
    told.reads("f", 1, 150)
    told.changes("f", "\n".join([*rows(1, 249), "changed", *rows(251, 300)]))
    told.reads("f", 151)
    whole = told.reads("f")
    assert (whole.text, whole.event.mode, whole.event.v) == ("[readcache: unchanged, 300 lines]", "unchanged", 2)


def test_a_file_that_lost_its_tail_is_not_unchanged() -> None:
    told = script()
    told.reads("f")
    assert told.changes("f", "\n".join(rows(1, 290))).reads("f").event.mode == "diff"


def test_what_the_model_wrote_is_known() -> None:
    told = ReadScript().writes("f", "\n".join(rows(1, 40)))
    assert told.reads("f").text == "[readcache: unchanged, 40 lines]"
    assert told.reads("f", 5, 20).text == "[readcache: unchanged in lines 5-24 of 40]"


def test_what_others_change_after_the_model_wrote_is_told_as_a_diff() -> None:
    told = ReadScript().writes("f", "\n".join(rows(1, 100)))
    told.changes("f", told.files["f"].replace("line 50 ::", "line 50 theirs ::"))
    assert told.reads("f").event.mode == "diff"


@pytest.mark.parametrize("seen_before", [True, False])
def test_a_small_edit_is_confirmed_in_text_and_the_rest_stays_known(*, seen_before: bool) -> None:
    told = script()
    told.reads("f")
    told.edits("f", rows(150, 150)[0], "mine 1\nmine 2", seen_before=seen_before)
    head = "[readcache: unchanged in lines 1-149 of 301]"
    tail = "[readcache: lines 152-301 of 301 unchanged, shown before this answer as lines 151-300]"
    assert told.reads("f").text == f"{head}\nmine 1\nmine 2\n{tail}"
    assert told.reads("f").text == "[readcache: unchanged, 301 lines]"


def test_a_long_edit_is_known_at_once() -> None:
    told = script()
    told.reads("f")
    told.edits("f", rows(150, 150)[0], "\n".join(rows(1, 20, "mine")))
    assert told.reads("f").text == "[readcache: unchanged, 319 lines]"


def test_what_an_edit_wrote_into_a_file_that_was_never_read_has_no_number() -> None:
    told = script()
    told.edits("f", rows(150, 150)[0], "\n".join(rows(1, 20, "mine")), seen_before=False)
    assert told.reads("f", 140, 40).event.mode == "full"
    assert told.reads("f", 150, 20).text == "[readcache: unchanged in lines 150-169 of 319]"


def test_new_text_that_stands_twice_in_the_file_is_not_placed() -> None:
    told = script()
    block = "\n".join(rows(1, 20, "mine"))
    told.changes("f", f"{told.files['f']}\n{block}")
    told.edits("f", rows(150, 150)[0], block, seen_before=False)
    assert told.state.of("f").view == ()


def test_an_edit_after_an_external_change_is_followed_by_markers_only_for_what_is_still_there() -> None:
    told = script()
    told.reads("f")
    told.changes("f", told.files["f"].replace("line 20 ::", "line 20 not ours ::"))
    told.edits("f", rows(150, 150)[0], "mine")
    text = told.reads("f").text
    assert "line 20 not ours ::" in text
    assert "mine" in text
    assert told.objections() == ()


def test_a_replacement_of_every_occurrence_is_followed_line_by_line() -> None:
    told = script()
    told.reads("f")
    told.edits("f", "9 :: original", "9 :: renamed", everywhere=True)
    text = told.reads("f").text
    assert text.count(":: renamed") == 30
    assert text.count("[readcache: unchanged in lines") == 30  # the lines between the replacements


def test_an_edit_that_cannot_have_happened_is_not_believed() -> None:
    from pagein.policy.reads.knowledge import UNKNOWN
    from pagein.policy.reads.own_writes import edit_event
    from pagein.policy.reads.text_edit import TextEdit

    assert edit_event("f", "after", TextEdit("old", "new"), UNKNOWN) is None
    assert edit_event("f", "after", TextEdit("old", "new"), UNKNOWN, before="before") is None
    assert edit_event("f", "a\ud800"[:1], TextEdit("\ud800", "a"), UNKNOWN) is not None


def test_the_plan_asks_for_a_version_only_where_its_text_decides() -> None:
    told = script()
    told.reads("f")
    request = told.request("f")
    with pytest.raises(StopIteration):
        next(plan(request, told.state.of("f")))
    first = ContentHash.of(told.files["f"].encode())
    told.changes("f", told.files["f"] + "\nmore")
    assert next(plan(told.request("f"), told.state.of("f"))) == NeedBlob(first)


def test_bytes_that_are_no_text_count_as_missing() -> None:
    told = script()
    told.reads("f")
    old = told.files["f"]
    told.changes("f", old.replace("line 20 ::", "changed ::"))
    going = plan(told.request("f"), told.state.of("f"))
    next(going)
    with pytest.raises(StopIteration) as done:
        going.send(b"\xff\xfe")
    assert done.value.value.reason == "base_object_missing"


def test_at_most_the_allowed_number_of_versions_is_fetched() -> None:
    told = script()
    for k in range(8):
        told.changes("f", "\n".join([*rows(1, 20 * k), f"changed {k}", *rows(20 * k + 2, 300)]))
        told.reads("f", 20 * k + 1, 20)
    told.changes("f", "\n".join(rows(1, 300)))
    asked: list[ContentHash] = []

    def fetch(version: ContentHash) -> bytes:
        asked.append(version)
        return told.versions[version]

    decide(told.request("f"), told.state.of("f"), fetch, ReadingSettings(max_bases=3))
    assert len(asked) == len(set(asked)) == 3
