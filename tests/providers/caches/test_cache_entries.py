"""Groups of entries are a short cut: what lives must be what a walk over all ancestors says."""

import random
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from pagein.providers.caches.cache_entries import CacheEntry


@dataclass(eq=False)
class Plain:
    """An entry that stamps each ancestor by itself."""

    used: float
    ttl: float
    above: "Plain | None"
    lost: bool = False

    def alive(self, at: float) -> bool:
        return not self.lost and at - self.used <= self.ttl

    def use(self, at: float) -> None:
        one: Plain | None = self
        while one is not None:
            if one is self or one.alive(at):
                one.used = at
            one = one.above


@settings(max_examples=400, deadline=None)
@given(st.integers(0, 2**32))
def test_an_entry_lives_as_long_as_one_that_is_stamped_with_all_its_descendants(seed: int) -> None:
    draw = random.Random(seed)  # noqa: S311  seeded: a run of forty evenly drawn steps, which a strategy draws too small
    pairs: list[tuple[CacheEntry, Plain]] = []
    at = 0.0
    for _ in range(40):
        what = draw.choice(("write", "read and write", "read and write", "use", "use", "lose"))
        ttl = draw.choice((300.0, 300.0, 300.0, 3600.0))
        at += draw.choice((0, 0, 1, 120, 280, 301))
        back = draw.randrange(5)
        chosen = pairs[-1 - back] if back < len(pairs) else None
        if chosen and chosen[1].alive(at) and what != "write":
            if what == "lose":
                chosen[0].lost = chosen[1].lost = True
            else:
                chosen[0].use(at)
                chosen[1].use(at)
        if "write" in what:
            fast, plain = chosen or (None, None)
            pairs.append((CacheEntry(at, ttl, at, fast, joins=True), Plain(at, ttl, plain)))
        for later in (at, at + 150, at + 299, at + 301, at + 3000):
            assert [fast.alive(later) for fast, _ in pairs] == [plain.alive(later) for _, plain in pairs]


def test_a_conversation_that_only_grows_keeps_one_group() -> None:
    entry = CacheEntry(0, 300, 0, None, joins=True)
    for call in range(1, 50):
        entry.use(call)
        entry = CacheEntry(call, 300, call, entry, joins=True)
    assert entry.group.beyond is None
    assert entry.above is not None
    assert entry.group is entry.above.group
