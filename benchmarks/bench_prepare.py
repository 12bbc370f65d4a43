"""The cost of preparing a provider's request as its session grows: milliseconds per call, whole and beyond parsing.

A session of agent's turns (a call, its result) grows call by call to its size; the last calls are measured. Parsing is taking
the body apart, which any gateway has to do that looks into it: here behind the body before, and for comparison as if there had been none.
"""

import json
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter, thread_time

import pagein
from pagein.engine.intake.body_reader import Opener
from pagein.providers.wire.request_body import open_body

KB = 1000
SIZES = {"100 KB": 100 * KB, "1 MB": 1000 * KB, "10 MB": 10_000 * KB}
CALLS = 60
TURN = 4000


@dataclass(frozen=True, slots=True)
class Timing:
    """Milliseconds of each measured call. worked: of the processor, which says more where others work on the machine too."""

    whole: list[float]
    beyond: list[float]
    parsed: list[float]
    worked: list[float]


def measure() -> dict[str, float]:
    timings = {name: _measured(size) for name, size in SIZES.items()}
    figures: dict[str, float] = {}
    for name, timing in timings.items():
        figures[f"{name}: whole, ms at the median"] = median(timing.whole)
        figures[f"{name}: whole, ms at p99"] = _p99(timing.whole)
        figures[f"{name}: beyond parsing, ms at the median"] = median(timing.beyond)
        figures[f"{name}: beyond parsing, ms at p99"] = _p99(timing.beyond)
        figures[f"{name}: whole, ms of the processor at the median"] = median(timing.worked)
        figures[f"{name}: parsing anew alone, ms at the median"] = median(timing.parsed)
    figures["growth from 100 KB to 10 MB, whole"] = median(timings["10 MB"].whole) / median(timings["100 KB"].whole)
    figures["growth from 100 KB to 10 MB, beyond parsing"] = median(timings["10 MB"].beyond) / median(
        timings["100 KB"].beyond
    )
    figures["growth from 100 KB to 10 MB, of the processor"] = median(timings["10 MB"].worked) / median(
        timings["100 KB"].worked
    )
    return figures


def _p99(values: list[float]) -> float:
    return quantiles(values, n=100)[98]


def _measured(size: int) -> Timing:
    messages = list(_conversation(size))
    first = max(len(messages) - 2 * CALLS, 2)
    whole, beyond, anew, worked = [], [], [], []
    opener = Opener()  # for comparison: it takes apart what the engine takes apart
    with tempfile.TemporaryDirectory() as folder, pagein.open(Path(folder) / "store.db", workspace=folder) as engine:
        for call, end in enumerate(range(first - first % 2 + 1, len(messages) + 1, 2)):
            body = _body(messages[:end])
            start = perf_counter()
            open_body(body, "anthropic")
            by_itself = perf_counter() - start
            start = perf_counter()
            opener.parse(body, "anthropic", "bench")
            parsed = perf_counter() - start
            start, busy = perf_counter(), thread_time()
            prepared = engine.prepare(body, "anthropic", at=20.0 * call, hint="bench")
            took, busy = perf_counter() - start, thread_time() - busy
            if prepared.failure is not None:
                raise RuntimeError(prepared.failure)
            if call > 1:  # the first ones take in the whole history
                whole.append(1000 * took)
                beyond.append(1000 * (took - parsed))
                anew.append(1000 * by_itself)
                worked.append(1000 * busy)
    return Timing(whole, beyond, anew, worked)


def _conversation(size: int) -> Iterator[dict[str, object]]:
    yield {"role": "user", "content": "make it work"}
    for turn in range(size // TURN):
        call = {"type": "tool_use", "id": f"call_{turn}", "name": "Bash", "input": {"command": f"make part-{turn}"}}
        yield {"role": "assistant", "content": [{"type": "text", "text": f"part {turn}"}, call]}
        text = f"line of part {turn}, as tools print them\n" * (TURN // 40)
        yield {"role": "user", "content": [{"type": "tool_result", "tool_use_id": f"call_{turn}", "content": text}]}


def _body(messages: list[dict[str, object]]) -> bytes:
    """With the cache mark where clients have it: at the last block, from call to call."""
    *before, last = messages
    content = last["content"]
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else list(content)  # type: ignore[call-overload]
    parts[-1] = {**parts[-1], "cache_control": {"type": "ephemeral"}}
    fields = {"model": "claude-sonnet-4-5", "max_tokens": 8192, "system": "be good", "stream": True}
    return json.dumps({**fields, "messages": [*before, {**last, "content": parts}]}).encode()
