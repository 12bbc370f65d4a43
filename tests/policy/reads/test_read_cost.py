"""What knowing costs: one more entry the same on a long branch as on a short one, and a read next to nothing."""

import pytest
from tests.work_counts import allocated, calls

from pagein.model.documents import Document
from pagein.model.names import ContentHash
from pagein.model.read_events import FileRead
from pagein.model.spans import Spans
from pagein.policy.reads.baseline import baseline
from pagein.policy.reads.knowledge import NOTHING, Knowledge, fold, step
from pagein.policy.reads.read_answers import decide
from pagein.policy.reads.read_request import ReadRequest

FILES = 1000
TEXT = "\n".join(f"line {i} of a file with some text in it" for i in range(1, 401))
VERSION = ContentHash.of(TEXT.encode())
OTHERS = [ContentHash.of(b"%d" % i) for i in range(7)]


def event(k: int) -> FileRead:
    first = 1 + (k * 37) % 300
    version = VERSION if k % 3 else OTHERS[k % 7]
    run = Spans.of((first, first + 90))
    return FileRead(f"src/file_{(k * 31) % FILES}.py", "full", version, 400, first, first + 90, 9, emitted=run)


@pytest.mark.slow
def test_one_more_entry_costs_the_same_after_100_000_as_after_5_000() -> None:
    early = late = NOTHING
    for k in range(100_000):
        if k == 5_000:
            early = late
        late = step(late, event(k))

    def steps(state: Knowledge) -> tuple[int, int]:
        more = [event(k) for k in range(300)]
        return (
            sum(calls(lambda one=one: step(state, one)) for one in more),  # type: ignore[misc]
            sum(allocated(lambda one=one: step(state, one)) for one in more),  # type: ignore[misc]
        )

    assert all(after < 1.5 * before for after, before in zip(steps(late), steps(early), strict=True))


def test_a_read_of_known_lines_costs_the_same_on_a_branch_of_10_000_entries_as_on_one_of_100() -> None:
    path = "src/file_5.py"
    document = Document.of(TEXT.encode(), path=path, key=path)
    request = ReadRequest(document, path, 1, 400, baseline(TEXT, path))

    def read(length: int) -> tuple[int, int]:
        state = fold(event(k) for k in range(length))
        state = step(state, FileRead(path, "full", VERSION, 400, 1, 400, 9, emitted=Spans.of((1, 400))))
        answer = decide(request, state.of(path), lambda _: None)
        assert answer.text == "[readcache: unchanged, 400 lines]"
        return (
            calls(lambda: decide(request, state.of(path), lambda _: None)),
            allocated(lambda: decide(request, state.of(path), lambda _: None)),
        )

    few, many = read(100), read(10_000)
    assert few[0] < 200
    assert all(after < 1.5 * before for after, before in zip(many, few, strict=True))
