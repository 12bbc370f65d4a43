"""What a session may borrow of the savings of others: a fifth for all together, and never what another may lose already."""

from hypothesis import given
from hypothesis import strategies as st

from pagein.policy.economics.savings_reserve import RESERVE, Draw, Exposure, SessionRequest, SharedSavings

NEW = SessionRequest("new", None)


@given(st.floats(0, 1e6), st.floats(0, 1e6))
def test_the_reserve_is_a_fifth_at_most_and_bounded(saved: float, lost: float) -> None:
    reserve = SharedSavings(saved - lost).reserve(0.0, 1.0, NEW)
    assert 0 <= reserve <= min(RESERVE, 0.2 * max(0.0, saved - lost) + 1e-6)


def test_what_one_session_has_borrowed_is_not_lent_again_before_its_next_request_or_the_end_of_the_clients_entries() -> (
    None
):
    savings = SharedSavings(300_000.0)
    assert savings.reserve(0.0, 1.0, NEW) == 60_000
    lent = savings.with_draw(SessionRequest("first", 1.0), Draw(0.0, 50_000.0, 3601.0))
    assert lent.reserve(0.0, 2.0, NEW) == 10_000
    assert lent.reserve(0.0, 2.0, SessionRequest("first", 1.0)) == 60_000, (
        "its own next request takes the place of the last"
    )
    assert lent.reserve(0.0, 3602.0, NEW) == 60_000
    assert lent.at(3602.0).draws == {}
    safe = lent.with_draw(SessionRequest("first", 9.0), Draw(0.0, 0.0, 3609.0), SessionRequest("first", 1.0))
    assert safe.reserve(0.0, 10.0, NEW) == 60_000


def test_savings_that_others_have_borrowed_are_not_exposed_by_the_session_that_saved_them() -> None:
    savings = SharedSavings(300_000.0).with_draw(SessionRequest("borrower", 1.0), Draw(0.0, 60_000.0, 3601.0))
    assert savings.reserve(300_000.0, 2.0, SessionRequest("saver", 0.0)) == -60_000
    assert savings.reserve(0.0, 2.0, NEW) == 0


def test_savings_that_their_own_session_may_lose_are_not_lent() -> None:
    savings = SharedSavings(300_000.0).with_draw(SessionRequest("saver", 1.0), Draw(290_000.0, 0.0, 3601.0))
    assert savings.reserve(0.0, 2.0, NEW) == 10_000


def test_what_the_share_of_the_bill_pays_is_not_drawn() -> None:
    assert Exposure(1000.0, 0.0, 1000.0, 9.0).draw() == Draw(0.0, 0.0, 9.0)
    assert Exposure(1000.0, 300.0, 200.0, 9.0).draw() == Draw(300.0, 500.0, 9.0)
    assert Exposure(1000.0, -300.0, 400.0, 9.0).draw() == Draw(0.0, 900.0, 9.0)
