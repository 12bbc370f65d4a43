"""What looks at a file tell beside the calls: changes that no call explains, and never more."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagein.policy.file_sightings import FileLook, ToldContent, ToldEdit, key_of, untold

A, B, C = (key_of(text) for text in "abc")


def look(text: str, at: float = 10.0) -> FileLook:
    return FileLook(at, text, f"digest of {text}", len(text))


def told(
    shown: str | None, newest: str | None, *texts: str, newest_at: float = 1.0, is_open: bool = False
) -> ToldContent:
    return ToldContent(shown, frozenset(texts), newest, newest_at, is_open)


def ops(known: ToldContent, *looks: FileLook) -> list[tuple[str, str | None, float]]:
    return [(op, one.text, one.at) for op, one in untold(known, looks)]


@pytest.mark.parametrize("text", ["a", "a\n"])
def test_a_text_that_a_call_told_is_not_told_again(text: str) -> None:
    assert ops(told(None, A, A), look(text)) == []
    assert key_of("one\r\ntwo\r\n") == key_of("one\ntwo")


def test_a_text_that_no_call_told_is_a_change() -> None:
    assert ops(told(A, A), look("b")) == [("change", "b", 10.0)]
    assert ops(told(None, A, A), look("b", 0.5)) == [("change", "b", 1.001)], (
        "it is newer than the call that it follows"
    )


def test_an_old_text_that_came_back_is_told() -> None:
    assert ops(told(A, B, B), look("b"), look("a", 11.0)) == [("change", "a", 11.0)]
    assert ops(told(A, A), look("b"), look("a", 11.0)) == [("change", "b", 10.0), ("change", "a", 11.0)]


def test_a_change_before_a_call_is_in_front_of_it() -> None:
    """A command changes the file, then an edit is told with its whole text: the last look is the edit's."""
    assert ops(told(A, C, C, newest_at=20.0), look("b"), look("c", 15.0)) == [("change", "b", 10.0)]


def test_after_an_edit_without_a_proved_text_nobody_is_blamed_for_a_change() -> None:
    assert ops(told(A, None, is_open=True), look("b")) == [("seen", "b", 10.0)]
    assert ops(told(None, None), look("b")) == [("seen", "b", 10.0)], "the first look at a file that is known in part"


def test_a_text_that_shows_an_edit_is_told_behind_the_edit() -> None:
    """The file changed before the result of the edit was journaled."""
    edit = ToldEdit(12.0, key_of("x\nnew"), {"new"})
    known = ToldContent(A, frozenset(), C, 30.0, is_open=True, edits=(edit,))

    def times(*texts: str) -> list[float]:
        return [at for _, _, at in ops(known, *(look(text, 10.0 + k) for k, text in enumerate(texts)), look("c", 30.0))]

    assert times("x\nnew\n") == [12.001], "the very text of the edit"
    assert times("unseen\nnew\n") == [12.001], "its lines in a text that something else changed, too"
    assert times("x\nold\n") == [10.0], "without its lines it was there before"
    assert times("x\nnew\n", "x\n") == pytest.approx([12.001, 12.002]), "looks keep their order"
    late = ToldContent(A, frozenset(), C, 30.0, is_open=True, edits=(ToldEdit(5.0, B, {"new"}),))
    assert ops(late, look("new"), look("c", 30.0)) == [("seen", "new", 10.0)], "an earlier edit was journaled already"


texts = st.sampled_from("abcd")
edits = st.lists(
    st.builds(ToldEdit, st.sampled_from([0.5, 1.5, 2.5]), texts.map(key_of), st.frozensets(texts)), max_size=2
)


@given(
    st.none() | texts,
    st.none() | texts,
    st.frozensets(texts),
    st.lists(texts, min_size=1, max_size=6),
    st.booleans(),
    edits,
)
def test_the_newest_text_of_all_is_the_one_on_the_disk(
    shown: str | None,
    newest: str | None,
    between: frozenset[str],
    seen: list[str],
    is_open: bool,  # noqa: FBT001 - drawn
    likely: list[ToldEdit],
) -> None:
    known = ToldContent(
        shown and key_of(shown),
        frozenset(map(key_of, between | ({newest} if newest else set()))),
        newest and key_of(newest),
        2.5,
        is_open,
        likely,
    )
    found = untold(known, [look(text, float(at)) for at, text in enumerate(seen)])
    after = [(2.5, known.newest), *((one.at, one.key) for _, one in found)]
    assert max(after, key=lambda one: one[0])[1] == key_of(seen[-1])
    assert all(one.key not in known.texts or at == len(found) - 1 for at, (_, one) in enumerate(found))
    assert {op for op, _ in found} <= ({"seen"} if is_open else {"seen", "change"})
