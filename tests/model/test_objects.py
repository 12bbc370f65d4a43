import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.model.conversations import TEXTS

from pagein.errors import BadName
from pagein.model.names import ContentHash
from pagein.model.objects import ObjectId, Origin

SECRET = b"s" * 32
BODY = ContentHash.of(b"body")


@given(st.binary(), TEXTS, TEXTS)
def test_the_same_content_session_and_call_give_the_same_id(content: bytes, session: str, call_id: str) -> None:
    name = ContentHash.of(content)
    one, other = (ObjectId.of(name, Origin(session, call_id), SECRET) for _ in range(2))
    assert one == other
    assert ObjectId.parse(str(one)) == one
    assert one.is_made_with(SECRET)


def test_anything_else_gives_another_id() -> None:
    ids = {
        ObjectId.of(BODY, Origin("session", "call"), SECRET),
        ObjectId.of(ContentHash.of(b"other"), Origin("session", "call"), SECRET),
        ObjectId.of(BODY, Origin("session2", "call"), SECRET),
        ObjectId.of(BODY, Origin("session", "call2"), SECRET),
        ObjectId.of(BODY, Origin("sessionc", "all"), SECRET),
        ObjectId.of(BODY, Origin("session", "call"), SECRET, attempt=1),
    }
    assert len(ids) == 6


def test_an_id_made_elsewhere_or_made_up_is_not_ours() -> None:
    assert not ObjectId.of(BODY, Origin("session", "call"), b"other").is_made_with(SECRET)
    assert not ObjectId.parse("pg-01234567-89abcdef").is_made_with(SECRET)
    ours = str(ObjectId.of(BODY, Origin("session", "call"), SECRET))
    forged = ours[:-1] + ("0" if ours[-1] != "0" else "1")
    assert not ObjectId.parse(forged).is_made_with(SECRET)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "pg-0123456-89abcdef",
        "pg-01234567-89abcdeg",
        "pg-01234567-89ABCDEF",
        "xx-01234567-89abcdef",
        "pg-01234567-89abcdef\n",
    ],
)
def test_text_of_another_shape_is_no_id(text: str) -> None:
    with pytest.raises(BadName):
        ObjectId.parse(text)
