"""A read with state: its cost beyond hashing the file, and whether one more entry costs more on a long branch."""

import hashlib
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from pagein import wiring
from pagein.engine.reads import evidence
from pagein.engine.session import Session
from pagein.model.documents import Document
from pagein.model.read_events import FileRead
from pagein.model.spans import Spans
from pagein.policy.reads.baseline import baseline
from pagein.policy.reads.knowledge import NOTHING, Knowledge, fold, step
from pagein.policy.reads.read_answers import decide
from pagein.policy.reads.read_request import ReadRequest

FILES, ENTRIES = 1_000, 10_000
LINES = 200


def measure() -> dict[str, float]:
    """Medians, in milliseconds and as ratios."""
    decision, hashing = _decision()
    early, late, one_more = _through_a_session()
    return {
        f"decision at {ENTRIES} entries and {FILES} files, ms": decision,
        "hashing the file, ms": hashing,
        "one more entry at 100,000 entries against at 100": _step_at(100_000) / _step_at(100),
        "read through session and SQLite store, ms": early,
        f"the same at {ENTRIES} entries and {FILES} files, ms": late,
        f"one more entry of a session at {ENTRIES} entries, ms": one_more,
    }


def _document(n: int, version: int) -> Document:
    lines = [f"file {n} line {i} as it was at first" for i in range(LINES)]
    lines[version % LINES] = f"file {n} changed for the time {version}"
    return Document.of("\n".join(lines).encode(), path=f"/w/{n}.py", key=f"/w/{n}.py")


def _event(document: Document) -> FileRead:
    return FileRead(
        document.key, "full", document.hash, LINES, 1, LINES, len(document.content), emitted=Spans.of((1, LINES))
    )


def _known(entries: int) -> Knowledge:
    return fold(_event(_document(i % FILES, i // FILES)) for i in range(entries))


def _decision() -> tuple[float, float]:
    known = _known(ENTRIES)
    documents = (_document(n, version) for n in range(FILES) for version in range(ENTRIES // FILES))
    versions = {document.hash: document.content for document in documents}
    decisions, hashes = [], []
    for n in range(200):
        document = _document(n, ENTRIES // FILES + 1)
        request = ReadRequest(document, document.path, 1, LINES, baseline(document.text, document.path))
        decisions.append(_timed(lambda r=request, d=document: decide(r, known.of(d.key), versions.get)))  # type: ignore[misc]  # defaults bind the loop's values
        hashes.append(_timed(lambda d=document: hashlib.sha256(d.content).digest()))  # type: ignore[misc]  # as above
    return statistics.median(decisions), statistics.median(hashes)


def _step_at(entries: int) -> float:
    """Median cost of one more entry, on a branch that long."""
    state = NOTHING
    events = [_event(_document(n, 0)) for n in range(FILES)]
    for i in range(entries):
        state = step(state, events[i % FILES])
    return statistics.median(_timed(lambda e=event: step(state, e)) for event in events)  # type: ignore[misc]  # as above


def _through_a_session() -> tuple[float, float, float]:
    """A read at the beginning and at the end of a session of so many reads of so many files, and one more entry there."""
    with tempfile.TemporaryDirectory() as folder:
        workspace = Path(folder) / "work"
        workspace.mkdir()
        for n in range(FILES):
            (workspace / f"{n}.py").write_text(_document(n, 0).text)
        engine = wiring.open(Path(folder) / "store.db")
        session = engine.session("bench", workspace=workspace)
        early = _reads(session, 100)
        for n in range(ENTRIES):
            session.read(f"{n % FILES}.py")
        late = _reads(session, 300)
        ground = session.evidence
        notes = [entry.body for entry in session.journal.branch(session.leaf)[-300:]]
        one_more = statistics.median(_timed(lambda body=body: evidence.step(ground, body)) for body in notes)  # type: ignore[misc]  # as above
        engine.close()
    return early, late, one_more


def _reads(session: Session, count: int) -> float:
    session.read("0.py")
    return statistics.median(_timed(lambda n=n: session.read(f"{n % 100}.py")) for n in range(count))  # type: ignore[misc]  # as above


def _timed(act: Callable[[], object]) -> float:
    start = time.perf_counter()
    act()
    return (time.perf_counter() - start) * 1000
