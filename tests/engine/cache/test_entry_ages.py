"""Rewrites at a provider that may end a cache entry although it is read: their evidence, and the evidence in their answers."""

from collections.abc import Iterator
from contextlib import contextmanager

from tests.engine import wire_clients as clients
from tests.engine.wire_clients import Conversation, Manner, Turn

from pagein.engine.conversation import ClientAnswer
from pagein.engine.engine import Engine
from pagein.engine.send.call import RequestFacts
from pagein.model.cache_notes import CacheVerdictNote
from pagein.model.messages import Usage
from pagein.simulator.provider_settings import CacheKind
from pagein.store.memory.memory_store import MemoryStore
from pagein.testing.documented_bills import DocumentedCache
from pagein.wiring import default_counter

MODEL = "claude-sonnet-4-5"
NOON = 1_795_800_000.0
MANNER = Manner(system="be good and careful. " * 500, marked_system=True)


@contextmanager
def opened() -> Iterator[Engine]:
    with Engine(blobs=MemoryStore(), counter=default_counter()) as engine:
        yield engine


def worked(
    engine: Engine, kind: CacheKind, *, calls: int, name: str = "one", documented: bool = False
) -> tuple[list[int], list[CacheVerdictNote]]:
    """The calls of a session that opened an epoch, and what the answers showed of the provider's cache."""
    cache, talk = DocumentedCache(MODEL, 4.0, kind), Conversation(f"please do it, {name}")
    opened_at: list[int] = []
    verdicts: list[CacheVerdictNote] = []
    for call in range(calls):
        talk = talk.then(Turn("on it", ("word " * 4000,))) if call else talk
        at = NOON + 40.0 * call
        body = clients.body(talk, "anthropic", MANNER)
        prepared = engine.prepare(
            body, "anthropic", at=at, hint=name, lasting=0.0, facts=RequestFacts(documented=documented)
        )
        billed = cache.bill(prepared.body, at, 50)
        usage = Usage(billed.fresh, billed.read, billed.written + billed.written_1h, billed.written_1h, billed.output)
        observed = engine.observe(prepared, ClientAnswer(usage))
        opened_at += [call] if prepared.rewrites else []
        verdicts += [observed.verdict] if observed.verdict is not None else []
    return opened_at, verdicts


def test_the_first_rewrite_is_paid_as_if_nothing_were_read_and_shows_that_the_provider_renews() -> None:
    with opened() as engine:
        known, told = worked(engine, "documented", calls=30, documented=True)
        assert (len(known), told) == (2, []), "nothing has to be shown"
    with opened() as engine:
        first, told = worked(engine, "documented", calls=30)
        assert known[0] < first[0]
        assert [(one.practice, one.held) for one in told] == [("renewal", True)]
        assert worked(engine, "documented", calls=30, name="two") == (known, []), "it is known from now on"


def test_at_a_provider_that_does_not_renew_each_rewrite_is_paid_as_if_nothing_were_read() -> None:
    with opened() as engine:
        first, told = worked(engine, "unrefreshed", calls=40)
        assert (len(first), told) == (2, [])
        assert worked(engine, "unrefreshed", calls=40, name="two") == (first, [])
