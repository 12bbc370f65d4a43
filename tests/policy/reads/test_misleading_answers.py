"""What a careful reader would get wrong, one history for each way: found by audits, each of them once said so by pagein."""

import pytest
from tests.policy.reads.file_histories import Script

from pagein.policy.reads.read_request import ReadingSettings


def rows(first: int, last: int, word: str = "line") -> list[str]:
    return [f"{word} {i} :: original text payload" for i in range(first, last + 1)]


def script(count: int = 150) -> Script:
    return Script("\n".join(rows(1, count)))


def inserted(lines: list[str], at: int, new: list[str]) -> list[str]:
    return [*lines[: at - 1], *new, *lines[at - 1 :]]


def edit_that_adds_three_lines(told: Script) -> None:
    told.edits(rows(10, 10)[0], "\n".join([rows(10, 10)[0], *rows(1, 3, "mine")]))


def test_a_marker_behind_an_edit_names_the_numbers_that_were_shown() -> None:
    told = script()
    told.reads()
    edit_that_adds_three_lines(told)
    assert told.reads(60, 81) == "[readcache: lines 60-140 of 153 unchanged, shown earlier as lines 57-137]"
    assert told.reads(60, 81) == "[readcache: lines 60-140 of 153 unchanged, shown earlier as lines 57-137]"
    told.changes("\n".join([*rows(1, 2, "formatter"), *told.text.split("\n")]))
    assert told.reads(60, 81) == "[readcache: lines 60-140 of 155 unchanged, shown earlier as lines 55-135]"


def test_a_marker_behind_a_diff_names_the_numbers_that_were_shown() -> None:
    told = script()
    told.reads()
    told.changes("\n".join(inserted(rows(1, 150), 10, rows(1, 3, "new"))))
    assert told.reads().startswith("[readcache: 3 lines changed of 153]\n")
    assert told.reads() == "[readcache: unchanged, 153 lines]"
    assert told.reads(60, 81) == "[readcache: lines 60-140 of 153 unchanged, shown earlier as lines 57-137]"


def test_an_edit_that_is_followed_by_a_formatter_is_followed_by_the_reader_all_the_same() -> None:
    told = script()
    told.reads()
    edit_that_adds_three_lines(told)
    told.changes(told.text.replace("line 20 ::", "line 20::"))
    assert "as lines 11-19]\nline 20:: original text payload\n" in told.reads(1, 60)


def test_text_that_an_edit_wrote_has_no_number_until_it_is_read() -> None:
    told = script()
    told.reads()
    told.edits(rows(50, 50)[0], "\n".join(rows(1, 20, "mine")))
    assert told.reads(50, 20).startswith("mine 1 ::")
    assert told.reads(50, 20) == "[readcache: unchanged in lines 50-69 of 169]"


def test_a_diff_of_a_range_moves_the_lines_behind_it() -> None:
    told = script()
    told.reads()
    one = told.text
    told.changes("\n".join(inserted(rows(1, 150), 15, rows(1, 3, "new"))))
    assert told.reads(1, 30).startswith("[readcache: 3 lines changed in lines 1-30 of 153]\n")
    assert told.reads(61, 80) == "[readcache: lines 61-140 of 153 unchanged, shown earlier as lines 58-137]"
    told.changes(one)
    # by that diff, the reader takes line 31 for what was shown under 28
    assert "unchanged in lines 31-" not in told.reads()


def test_a_diff_of_a_range_that_removes_lines_leaves_none_of_them_behind_it() -> None:
    told = script()
    told.reads()
    told.changes("\n".join([*rows(1, 14), *rows(18, 150)]))
    assert told.reads(1, 30).startswith("[readcache: 3 lines changed in lines 1-30 of 147]\n")
    told.changes("\n".join([*rows(1, 14), *rows(18, 33), *rows(31, 150)]))
    assert "unchanged in lines 31-" not in told.reads(31, 60)


def test_a_second_diff_of_a_range_is_not_against_numbers_that_the_first_one_moved() -> None:
    told = script()
    told.reads()
    lines = inserted(rows(1, 150), 15, rows(1, 3, "new"))
    told.changes("\n".join(lines))
    told.reads(1, 30)
    told.changes("\n".join([*lines[:99], "changed", *lines[100:]]))
    assert "@@ -9" not in told.reads(61, 80)


def test_a_diff_of_a_range_is_against_what_was_shown_last_of_it() -> None:
    told = script()
    told.reads()
    one = told.text
    told.changes("\n".join([*rows(1, 49), *rows(50, 150, "other")]))
    told.reads(50, 101)
    told.changes(one.replace("line 100 ::", "line 100 new ::"))
    assert told.reads(50, 101).startswith("line 50 ::")


def test_a_diff_of_a_file_is_against_what_was_shown_last_of_it() -> None:
    told = script()
    told.reads()
    one = told.text
    told.changes("\n".join([*rows(1, 99), *rows(100, 150, "other")]))
    told.reads(90, 61)
    told.changes(one.replace("line 120 ::", "line 120 new ::"))
    assert "lines changed of" not in told.reads()


def test_an_edit_does_not_bring_back_a_version_that_another_was_shown_over() -> None:
    told = script(40)
    told.reads()
    one = told.text
    told.changes("\n".join(rows(1, 40, "other")))
    told.reads()
    told.changes(one)
    told.edits(rows(10, 10)[0], "mine")
    assert "readcache" not in told.reads()


def test_an_edit_moves_what_was_shown_of_other_versions_with_it() -> None:
    told = script()
    told.reads(1, 80)
    told.changes(told.text.replace("line 150 ::", "line 150 new ::"))
    told.reads(81, 70)
    edit_that_adds_three_lines(told)
    assert told.reads(41, 30) == "[readcache: lines 41-70 of 153 unchanged, shown earlier as lines 38-67]"


@pytest.mark.parametrize("refreshed", [True, False])
def test_a_file_that_lost_its_end_is_not_unchanged(*, refreshed: bool) -> None:
    told = script(300)
    if refreshed:
        told.reads()
        told.refreshes(200, 300)
    else:
        assert told.reads(1, 199).endswith("[101 more lines in file. Use offset=200 to continue.]")
    told.changes("\n".join(rows(1, 199)))
    assert told.reads() != "[readcache: unchanged, 199 lines]"
    assert told.reads(1, 100).startswith("[readcache: unchanged in lines 1-100")


def test_a_partly_known_answer_does_not_point_to_numbers_that_it_shows_itself() -> None:
    told = script()
    told.reads(1, 100)
    told.changes("\n".join(inserted(rows(1, 150), 11, rows(1, 8, "new"))))
    assert told.reads(1, 130) == "\n".join(
        [
            "[readcache: unchanged in lines 1-10 of 158]",
            *rows(1, 8, "new"),
            "[readcache: lines 19-108 of 158 unchanged, shown before this answer as lines 11-100]",
            *rows(101, 122),
            "",
            "[28 more lines in file. Use offset=131 to continue.]",
        ]
    )


def test_a_number_that_another_text_was_shown_under_since_is_not_pointed_to() -> None:
    told = script()
    told.reads()
    edit_that_adds_three_lines(told)
    told.refreshes(60, 70)
    told.reads(60, 11)
    answer = told.reads(60, 81)
    assert answer.startswith("[readcache: unchanged in lines 60-70 of 153]\nline 68 ::")
    assert answer.endswith("[readcache: lines 74-140 of 153 unchanged, shown before this answer as lines 71-137]\n\n[13 more lines in file. Use offset=141 to continue.]")  # fmt: skip


def test_only_the_specification_s_own_answers_are_as_true() -> None:
    told = Script("\n".join(rows(1, 150)), ReadingSettings(new_answers=False))
    told.reads()
    edit_that_adds_three_lines(told)
    assert told.reads(60, 81).startswith("line 57 ::")
    assert told.reads(1, 9).startswith("[readcache: unchanged in lines 1-9")


def test_a_diff_of_a_range_does_not_tell_again_what_was_told_already() -> None:
    old = rows(1, 63)
    told = Script("\n".join(old))
    told.reads()
    told.changes("\n".join([*old[:41], *old[37:45], *old[41:56], *old[60:]]))
    assert told.reads().startswith(
        "[readcache: unchanged in lines 1-41 of 67]\n[readcache: lines 42-49 of 67 unchanged"
    )
    assert "lines changed" not in told.reads(1, 42)


def test_a_file_of_which_only_a_number_told_that_it_lost_its_end_is_not_unchanged() -> None:
    told = script(128)
    told.reads()
    told.changes("\n".join([*rows(1, 23), "CHANGED", *rows(25, 118)]))
    assert told.reads(1, 62).startswith("[readcache: 1 lines changed in lines 1-62 of 118]\n")
    assert told.reads().endswith(rows(118, 118)[0])
    assert told.reads() == "[readcache: unchanged, 118 lines]"


def test_the_same_where_a_marker_of_a_range_told_the_number() -> None:
    told = script(128)
    told.reads()
    told.changes("\n".join(rows(1, 118)))
    assert told.reads(1, 40) == "[readcache: unchanged in lines 1-40; changes exist outside this range]"
    assert told.reads(1, 40) == "[readcache: unchanged in lines 1-40 of 118]"
    assert told.reads().endswith(rows(118, 118)[0])


def test_a_file_whose_length_a_diff_of_a_range_accounts_for_is_still_known() -> None:
    told = script(128)
    told.reads()
    told.changes("\n".join([*rows(1, 23), "CHANGED", *rows(25, 128)]))
    assert told.reads(1, 62).startswith("[readcache: 1 lines changed in lines 1-62 of 128]\n")
    assert told.reads() == "[readcache: unchanged, 128 lines]"
