"""What knowing costs: one more entry the same on a long branch as on a short one, and a read next to nothing."""

import time
from collections.abc import Callable
from statistics import median

import pytest

from pagein.model.documents import Document
from pagein.model.names import ContentHash
from pagein.model.reading import ReadServed
from pagein.model.spans import Spans
from pagein.policy.baseline import baseline
from pagein.policy.knowledge import NOTHING, Knowledge, fold, step
from pagein.policy.reading import decide
from pagein.policy.request import ReadRequest

FILES = 1000
TEXT = "\n".join(f"line {i} of a file with some text in it" for i in range(1, 401))
VERSION = ContentHash.of(TEXT.encode())
OTHERS = [ContentHash.of(b"%d" % i) for i in range(7)]


def event(k: int) -> ReadServed:
    first = 1 + (k * 37) % 300
    version = VERSION if k % 3 else OTHERS[k % 7]
    run = Spans.of((first, first + 90))
    return ReadServed(f"src/file_{(k * 31) % FILES}.py", "full", version, 400, first, first + 90, 9, emitted=run)


def took(what: Callable[[], object]) -> float:
    began = time.perf_counter()
    what()
    return time.perf_counter() - began


@pytest.mark.slow
def test_one_more_entry_costs_the_same_after_100_000_as_after_5_000() -> None:
    early = late = NOTHING
    for k in range(100_000):
        if k == 5_000:
            early = late
        late = step(late, event(k))

    def steps(state: Knowledge) -> float:
        return median(took(lambda k=k: step(state, event(k))) for k in range(2_000))  # type: ignore[misc]

    assert min(steps(late) for _ in range(3)) < 3 * min(steps(early) for _ in range(3))


def test_a_read_of_known_lines_on_a_branch_of_10_000_entries_takes_less_than_a_millisecond() -> None:
    state = fold(event(k) for k in range(10_000))
    path = "src/file_5.py"
    document = Document.of(TEXT.encode(), path=path, key=path)
    state = step(state, ReadServed(path, "full", VERSION, 400, 1, 400, 9, emitted=Spans.of((1, 400))))
    request = ReadRequest(document, path, 1, 400, baseline(TEXT, path))
    answer = decide(request, state.of(path), lambda _: None)
    assert answer.text == "[readcache: unchanged, 400 lines]"
    assert median(took(lambda: decide(request, state.of(path), lambda _: None)) for _ in range(50)) < 0.001
