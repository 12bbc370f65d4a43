"""The messages with a cache breakpoint are found by a search of the new part alone."""

from hypothesis import given
from hypothesis import strategies as st

from pagein.engine.cache.marked_messages import MarkedMessages

MARKED, PLAIN = b'{"cache_control":{"type":"ephemeral"}}', b'{"role":"user"}'


class _Watched(bytes):
    """A message that counts how often it is searched."""

    searched = 0

    def __contains__(self, part: object) -> bool:
        type(self).searched += 1
        return super().__contains__(part)  # type: ignore[operator]


@given(st.lists(st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=12), max_size=6))
def test_all_are_found_whatever_was_asked_before(requests: list[list[tuple[int, bool]]]) -> None:
    marked = MarkedMessages()
    for request in requests:
        items = [b"%d%s" % (number, MARKED if is_marked else PLAIN) for number, is_marked in request]
        assert marked.find(items) == [place for place, (_, is_marked) in enumerate(request) if is_marked]


def test_a_longer_request_costs_its_new_messages() -> None:
    items = [_Watched(PLAIN + b"%d" % number) for number in range(500)]
    marked = MarkedMessages()
    marked.find(items)
    assert _Watched.searched == 500
    assert marked.find([*items[:-1], MARKED, *items[-1:]]) == [499]
    assert _Watched.searched == 501
