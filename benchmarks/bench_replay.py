"""Replay of one session: megabytes of session text per second and core, and the ratio to a plain parse of the file."""

import gzip
import json
import time
from collections.abc import Callable
from pathlib import Path

from pagein import wiring
from pagein.providers.prices.price_lookup import prices
from pagein.replay.policies.ledger import Ledger
from pagein.replay.policies.pagein_policy import PageinPolicy
from pagein.replay.prompt.billable_session import BillableSession, record
from pagein.replay.prompt.model_calls import gather
from pagein.replay.prompt.prompt_sizes import session_facts, source_facts
from pagein.replay.readers import Source, read_source
from pagein.replay.session_bill import ReplayTerms, bill_session

DEMO = Path(__file__).parent.parent / "examples" / "demo-session.jsonl.gz"
RATIO = 2.85
CHARGED = prices("generic:r=.1,w=1.25")
ROUNDS = 5


def measure() -> dict[str, float]:
    """Best of a few rounds each, in one process."""
    text = gzip.decompress(DEMO.read_bytes())
    megabytes = len(text) / 1e6
    parse = _best(lambda: [json.loads(line) for line in gzip.decompress(DEMO.read_bytes()).splitlines()])
    prepare = _best(_recorded)
    recording = _recorded()
    engine = _best(lambda: _paged(recording))
    everything = _best(lambda: bill_session(_recorded(), ReplayTerms(CHARGED, wiring.open_for_replay)))
    return {
        "megabytes of session text": megabytes,
        "plain parse, MB/s": megabytes / parse,
        "read and size, ratio to the parse": prepare / parse,
        "engine and simulator, MB/s": megabytes / engine,
        "engine and simulator, ratio to the parse": engine / parse,
        "read, size, engine and simulator, MB/s": megabytes / (prepare + engine),
        "all ten policies, MB/s": megabytes / everything,
    }


def _recorded() -> BillableSession:
    [session] = read_source(Source(DEMO.name, DEMO))
    calls = gather(session.entries)
    facts = source_facts([(session_facts(calls, is_sub=False), RATIO)])
    return record(session.head, calls, facts, RATIO, CHARGED)


def _paged(recording: BillableSession) -> None:
    with PageinPolicy(recording, wiring.open_for_replay, CHARGED) as paging:
        ledger = Ledger(recording, paging, CHARGED, stress=True, trace=False)
        ledger.run()
        paging.prove(ledger.tally)


def _best(act: Callable[[], object]) -> float:
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        act()
        times.append(time.perf_counter() - start)
    return min(times)
