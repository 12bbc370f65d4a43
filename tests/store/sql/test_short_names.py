"""Sessions and entries in their short forms: every name comes back, and none is taken for another."""

from hypothesis import given
from hypothesis import strategies as st

from pagein.store.sql.short_names import entry_id, entry_key
from pagein.store.sql.sql_rows import plain

DIGESTS = st.text("0123456789abcdef", min_size=32, max_size=32)
# also what is as long as a digest, or nearly is one
IDS = st.one_of(
    st.text().map(plain),
    DIGESTS,
    DIGESTS.map(str.upper),
    st.text("ab", min_size=14, max_size=18),
    DIGESTS.map("{}0".format),
)


@given(IDS)
def test_an_id_comes_back_from_its_short_form(name: str) -> None:
    assert entry_id(entry_key(name)) == name


@given(st.lists(IDS, unique=True))
def test_two_ids_have_two_short_forms(names: list[str]) -> None:
    assert len({entry_key(one) for one in names}) == len(names)


@given(DIGESTS)
def test_a_digest_takes_half_of_its_length(name: str) -> None:
    assert len(entry_key(name)) == len(name) // 2
