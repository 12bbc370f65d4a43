"""The rules by which a line is given to an author, each in the smallest history that needs it."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagein.policy.blame.known_states import Author, Deed, KnownState, has_letters, lines_of
from pagein.policy.blame.layouts import joined_sources, plain_form, spaceless
from pagein.policy.blame.line_origins import line_origins
from pagein.policy.blame.natural_changes import natural_changes
from pagein.policy.reads.line_diff import LineChange
from pagein.policy.reads.text_edit import TextEdit

LONG = "value = compute_the_whole_thing(first, second)"
S1, S2 = Author("agent", "s1", 1), Author("agent", "s2", 1)
PERSON = Author("person")


def history(*steps: tuple[Deed, Author, str]) -> list[KnownState]:
    """States of whole texts: deed, author, text."""
    return [
        KnownState(str(at), float(at), deed, author, lines_of(text)) for at, (deed, author, text) in enumerate(steps)
    ]


def told(states: list[KnownState], text: str) -> list[str]:
    """The answers: the session, or the answer if it is no agent's."""
    found = line_origins(states, lines_of(text))
    return [
        states[one.state].author.session if one.answer == "agent" and one.state is not None else one.answer
        for one in found
    ]


def test_a_text_that_two_hands_wrote_is_nobodys_once_it_was_lost() -> None:
    states = history(
        ("write", S1, f"a one\n{LONG}\nb two\n"),
        ("write", S2, f"a one\n{LONG}\nb two\nc three\n{LONG}\n"),
        ("read", S2, "a one\nb two\nc three\n"),
    )
    assert told(states, f"a one\nb two\n{LONG}\nc three\n")[2] == "unknown"


@pytest.mark.parametrize(("line", "answer"), [("ok = 1", "unknown"), (LONG, "s1")])
def test_a_lone_line_comes_back_only_if_it_says_enough(line: str, answer: str) -> None:
    states = history(("write", S1, f"a one\n{line}\nb two\n"), ("read", S1, "a one\nb two\n"))
    assert told(states, f"a one\nb two\n{line}\n") == ["s1", "s1", answer]


def test_a_line_that_comes_back_twice_is_nobodys() -> None:
    states = history(("write", S1, f"a one\n{LONG}\nb two\n"), ("read", S1, "a one\nb two\n"))
    assert told(states, f"a one\n{LONG}\nb two\n{LONG}\n") == ["s1", "unknown", "s1", "unknown"]


def test_an_older_commit_takes_only_what_may_have_been_there_before() -> None:
    base = history(("write", S1, "a one\nb two\n"))
    known = history(("read", S1, "a one\n"), ("write", S1, "a one\nb two\n"))
    for states, answers in ((base, ["unknown", "agent"]), (known, ["unknown", "agent"])):
        found = line_origins(states, ["a one", "b two"], [-1.0, None])
        assert [one.answer for one in found] == answers
    assert line_origins(known, ["a one", "b two"], [None, -1.0])[1].answer == "agent"


def test_a_short_line_comes_back_beside_another() -> None:
    states = history(("write", S1, "a one\nok = 1\n}\nno = 2\nb two\n"), ("read", S1, "a one\nb two\n"))
    assert told(states, "a one\nb two\nok = 1\n}\nno = 2\n") == ["s1"] * 5


def test_what_stays_between_changes_of_nobody_must_say_something() -> None:
    states = history(("write", S1, "first\n}\nok = 1\n"))
    assert told(states, "other\n}\nelse\n") == ["unknown"] * 3
    assert told(states, "other\n}\nok = 1\n") == ["unknown", "s1", "s1"]


def test_what_stays_between_changes_of_an_agent_stays() -> None:
    states = history(("write", S1, "first\n}\nlast\n"), ("write", S2, "other\n}\nelse\n"))
    assert told(states, "other\n}\nelse\n") == ["s2", "s1", "s2"]


def test_a_turn_that_moves_lines_has_not_written_them() -> None:
    before = f"{LONG}\nb two\nc three\n"
    after = f"b two\nc three\n{LONG}\n"
    states = history(("write", S1, before), ("write", S2, after))
    assert told(states, after) == ["s1", "s1", "s1"]
    assert [one.match for one in line_origins(states, lines_of(after))] == ["exact", "exact", "moved"]


def test_a_turn_that_types_older_text_again_has_written_it() -> None:
    states = history(("write", S1, f"a one\n{LONG}\n"), ("edit", S1, "a one\n"), ("write", S2, f"a one\n{LONG}\n"))
    assert told(states, f"a one\n{LONG}\n") == ["s1", "s2"]


def test_new_blanks_are_no_writing_and_new_quotes_are() -> None:
    states = history(("write", S1, f"{LONG}\nname = 'x'\n"), ("edit", S2, f"{LONG}\nname = 'x'\n"))
    states[1:] = history(("read", S2, f"{LONG}\nname = 'x'\n"), ("edit", S2, f'    {LONG}\nname = "x"\n'))
    assert told(states, f'    {LONG}\nname = "x"\n') == ["s1", "s2"]


def test_lines_of_two_hands_that_a_formatter_joins_are_mixed_or_the_latest() -> None:
    for second, answer in ((PERSON, "mixed"), (S2, "s2")):
        states = history(
            ("write", S1, "call(\n  first_argument,\n"), ("write", second, "call(\n  first_argument,\n  other)\n")
        )
        assert told(states, "call(first_argument, other)\n") == [answer]


def test_an_edit_without_arguments_counts_on_its_own_text_alone() -> None:
    text, after = "a one\nb two\n", "a one\nnew\nb two\n"
    own = history(("write", S1, text), ("edit", S1, after))
    others = history(("write", S2, text), ("edit", S1, after))
    assert told(own, after) == ["s1", "s1", "s1"]
    assert told(others, after) == ["s2", "unknown", "s2"]


def test_an_edit_with_arguments_is_applied_to_the_newest_text() -> None:
    states = history(("write", S2, "a one\nb two\nc three\n"))
    edit = TextEdit("b two", "b two\nnew")
    states.append(KnownState("1", 1.0, "edit", S1, ("a one", "b two", "new"), None, (edit,)))
    assert told(states, "a one\nb two\nnew\nc three\n") == ["s2", "s2", "s1", "s2"]


def test_what_an_edit_wrote_into_an_unknown_text_is_not_given_to_whoever_writes_the_whole_file() -> None:
    wrote = KnownState(
        "1", 1.0, "edit", S1, None, edits=(TextEdit("\nbefore\n", "\none = first()\ntwo = second()\nend"),)
    )
    removed = KnownState("2", 2.0, "edit", S1, None, edits=(TextEdit("\none = first()\ntwo = second()\n", "\n"),))
    whole = KnownState("3", 3.0, "write", S2, lines_of("a one\none = first()\ntwo = second()\n"))
    again = KnownState("2", 2.5, "write", S2, lines_of("a one\n"))
    text = "a one\none = first()\ntwo = second()\n"
    assert told([wrote, whole], text) == ["s2", "s1", "s1"]
    assert told([wrote, removed, whole], text) == ["s2", "s2", "s2"]
    assert told([wrote, again, whole], text) == ["s2", "s2", "s2"]


def test_an_edit_without_arguments_behind_one_on_an_old_text_proves_nothing() -> None:
    states = history(("write", S2, "b two\na one\n"))
    edit = TextEdit("b two", "b two\nnew")
    states.append(KnownState("1", 1.0, "edit", S1, ("b two", "new"), None, (edit,)))  # s1 has never seen a line `a one`
    states.append(KnownState("2", 2.0, "edit", S1, ("b two", "new", "more"), None))
    assert told(states, "b two\nnew\nmore\n") == ["s2", "s1", "unknown"]


def test_an_edit_whose_place_is_gone_counts_from_the_text_in_which_it_had_one() -> None:
    states = history(("read", S2, "x\n"))
    edit = TextEdit("b two", "b two\nnew")
    states.append(KnownState("1", 1.0, "edit", S1, ("a one", "b two", "new"), None, (edit,)))
    assert told(states, "a one\nb two\nnew\n") == ["unknown", "unknown", "s1"]


def test_parts_that_disagree_take_the_place_of_what_they_share_text_with() -> None:
    states = history(("write", S1, "\n".join(f"line number {n}" for n in range(1, 21))))
    part = ("line number 10", "seen by nobody before", "line number 11")
    states.append(KnownState("1", 1.0, "read", S2, part, ((12, 14),)))
    text = "\n".join(
        [*(f"line number {n}" for n in range(1, 11)), part[1], *(f"line number {n}" for n in range(11, 21))]
    )
    assert told(states, text) == ["s1"] * 10 + ["unknown"] + ["s1"] * 10
    assert line_origins(states, lines_of(text))[10].state == 1


@pytest.mark.parametrize("spans", [((1, 9),), ((0, 0), (1, 2)), ((1, 10**9),)])
def test_parts_that_do_not_fit_their_lines_are_left_out(spans: tuple[tuple[int, int], ...]) -> None:
    states = history(("write", S1, "a\nb\n"))
    states.append(KnownState("1", 1.0, "read", S2, ("x", "y"), spans))
    assert told(states, "a\nb\n") == ["s1", "s1"]


def test_line_ends_make_no_difference() -> None:
    assert told(history(("write", S1, "a\r\nb\r\n")), "a\nb") == ["s1", "s1"]
    assert lines_of("") == ()
    assert lines_of("\n") == ("",)


def test_layouts() -> None:
    assert spaceless(" a  b ") == "ab"
    assert plain_form("f('a', [1,],)") == plain_form('f("a",[1])')
    assert joined_sources(["f(a, b)", "g"], ["f(", "  a,", "  b,", ")", "g"]) == [
        range(1), range(1), range(1), range(1), range(1, 2),
    ]  # fmt: skip
    assert joined_sources(["f(a)"], ["f(b)"]) is None
    assert joined_sources(["", ""], [""]) is None


def test_a_new_part_begins_where_a_person_would_say() -> None:
    old = ["/** one */", "function one() {", "}", "", "/** three */", "function three() {", "}"]
    two = ["/** two */", "function two() {", "}", ""]
    new = [*old[:4], *two, *old[4:]]
    assert natural_changes(old, new) == [LineChange(4, 4, 4, 8)]
    assert natural_changes(new, old) == [LineChange(4, 8, 4, 4)]


@pytest.mark.parametrize("kept", [["func a() {", "\tx", "}"], ["a {", "  x", "}"]])
def test_what_is_added_behind_the_last_line_is_new_to_its_last_line(kept: list[str]) -> None:
    added = ["", kept[0].replace("a", "b"), *kept[1:]]
    assert natural_changes(kept, [*kept, *added]) == [LineChange(len(kept), len(kept), len(kept), len(kept + added))]
    assert natural_changes([*kept, *added], kept) == [LineChange(len(kept), len(kept + added), len(kept), len(kept))]


def test_what_is_put_in_before_the_first_line_is_new_from_its_first_line() -> None:
    assert natural_changes(["# a", "x"], ["# a", "y", "", "# a", "x"]) == [LineChange(0, 0, 0, 3)]


def test_long_texts_that_are_mostly_the_same() -> None:
    old = [f"line {n}" for n in range(1000)]
    new = [*old[:500], "new", *old[501:]]
    assert natural_changes(old, new) == [LineChange(500, 501, 500, 501)]
    assert natural_changes(old, old) == []
    assert natural_changes([], old) == [LineChange(0, 0, 0, 1000)]
    assert natural_changes(["x"] * 200, ["x"] * 130) == [LineChange(130, 200, 130, 130)]


_TEXTS = st.lists(st.sampled_from(["a", "  a", "", "}", "b"]), max_size=40)


@given(_TEXTS, _TEXTS, st.integers(0, 150))
def test_natural_changes_turn_one_text_into_the_other(old: list[str], new: list[str], same: int) -> None:
    frame = [str(n) for n in range(same)]
    before, after = [*frame, *old, *frame], [*frame, *new, *frame]
    out: list[str] = []
    i = j = 0
    for change in natural_changes(before, after):
        assert change.i1 - i == change.j1 - j
        assert before[i : change.i1] == after[j : change.j1]
        out += [*before[i : change.i1], *after[change.j1 : change.j2]]
        i, j = change.i2, change.j2
    assert [*out, *before[i:]] == after


@given(
    st.lists(st.tuples(st.sampled_from(["read", "write", "edit"]), st.sampled_from([S1, S2, PERSON]), _TEXTS)), _TEXTS
)
def test_every_line_has_an_answer_whatever_is_known(
    steps: list[tuple[Deed, Author, list[str]]], now: list[str]
) -> None:
    states = [
        KnownState(str(at), float(at), deed, author, tuple(text)) for at, (deed, author, text) in enumerate(steps)
    ]
    found = line_origins(states, now)
    assert len(found) == len(now)
    for one, line in zip(found, now, strict=True):
        if one.state is not None and one.match in ("exact", "moved"):
            assert line in (states[one.state].lines or ())
        assert (one.match == "none") == (one.state is None)


def test_a_text_of_few_different_lines_takes_no_longer_than_its_length_allows() -> None:
    """Each change is longer than the budget of a diff, so that it is replaced whole."""
    few = ["a", "b", "", "}"]
    states = [
        KnownState(str(at), float(at), "write", S1, tuple(few[(n * n + n // 7 + at * n) % 4] for n in range(20_000)))
        for at in range(4)
    ]
    start = time.process_time()
    line_origins(states, states[-1].lines or ())
    assert time.process_time() - start < 5


@given(st.lists(st.text("aß1٣ _\n-", max_size=4), max_size=5), st.integers(1, 9))
def test_letters_are_counted_over_all_lines(lines: list[str], least: int) -> None:
    assert has_letters(lines, least) == (sum(map(str.isalnum, "".join(lines))) >= least)
