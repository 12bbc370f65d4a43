import pytest

from pagein.errors import BadInput
from pagein.model.store_inventory import session_name

NAMES = {"3f2a9c1e-7b40", "3f2a9c1e-7b40/agent-1", "3f2a0000-1111", "fix", "pagein.orders"}


@pytest.mark.parametrize(
    ("told", "meant"),
    [
        ("3f2a9c1e-7b40", "3f2a9c1e-7b40"),
        ("3f2a9", "3f2a9c1e-7b40"),
        ("3f2a9c1e-7b40/", "3f2a9c1e-7b40/agent-1"),
        ("fix", "fix"),
        ("pagein.orders", "pagein.orders"),
    ],
)
def test_a_session_is_named_or_abbreviated(told: str, meant: str) -> None:
    assert session_name(told, NAMES) == meant


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ("3f2a", "may be one of several sessions: '3f2a0000-1111', '3f2a9c1e-7b40'"),
        ("fi", "there is no session 'fi' in this store; a beginning needs 4 characters or more; nearest are 'fix'"),
        ("fixing", "there is no session 'fixing' in this store; nearest are 'fix'"),
        ("", "there is no session ''"),
    ],
)
def test_another_name_is_refused(told: str, said: str) -> None:
    with pytest.raises(BadInput) as refused:
        session_name(told, NAMES)
    assert said in str(refused.value)


def test_the_own_journals_of_pagein_are_not_suggested() -> None:
    with pytest.raises(BadInput, match="it holds none"):
        session_name("pagein.order", {"pagein.orders"})
