"""The entry in front of the first result that a rewrite leaves: its place is the place behind what left, or the next rewrite is priced wrong."""

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engine.window.sized_sessions import ASK, opened, says, turn

from pagein.engine.log.state import State
from pagein.engine.session import Session
from pagein.policy.economics.rewrite_cost import Economics, readable_tokens
from pagein.testing.eager_residency import eager

MARKED = Economics(share=1.0, at_marks=True)
PRICED = eager(keep_calls=2, min_tokens=100, economics=MARKED)


def _state(session: Session) -> State:
    return session.journal.state_at(session.leaf)


@settings(max_examples=15, deadline=None)
@given(st.lists(st.integers(200, 4000), min_size=6, max_size=10))
def test_after_a_rewrite_the_prompt_is_read_up_to_the_first_result_that_stayed(sizes: list[int]) -> None:
    with TemporaryDirectory() as folder, opened(Path(folder), PRICED) as engine:
        session = engine.session("one")
        session.append(ASK)
        session.advance()
        for number, size in enumerate(sizes):
            (prepared,) = says(session, turn(f"call{number}", size))
            if prepared.opened is not None and not prepared.opened.is_uncached:
                account, news = _state(session).account, len(session.last_request()) - 1
                stayed = [one.before for one in _state(session).standing.all() if one.message < news]
                assert account.found == min(stayed, default=account.anew)


def test_a_result_that_stayed_pays_for_no_more_than_what_stands_behind_it(tmp_path: Path) -> None:
    with opened(tmp_path, PRICED) as engine:
        session = engine.session("one")
        session.append(ASK)
        session.advance()
        rewrites = 0
        for number in range(12):
            (prepared,) = says(session, turn(f"call{number}", 2000))
            if prepared.opened is not None:
                state = _state(session)
                rewrites += 1
                first = state.standing.first_of_all(0)
                assert 0 < first < state.account.anew
                assert readable_tokens(state.account, MARKED, first) == first
        assert rewrites
