"""The cost of one more turn after a long session, in calls of functions, which do not depend on the load of the machine.

Half of the turns read files, one after the other, half run commands. And what it takes to go on with the session in another process.
"""

import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from time import thread_time
from types import FrameType
from typing import Any, TypeVar

import pagein
from pagein.engine.engine import Engine
from pagein.engine.intake.body_reader import Opener
from pagein.model.messages import Usage

T = TypeVar("T")
LENGTHS = (1_000, 10_000, 100_000)
WARMING = 5
ARGUMENTS = {"Bash": "command", "Read": "file_path"}


def measure() -> dict[str, float]:
    figures: dict[str, float] = {}
    for count in LENGTHS:
        with tempfile.TemporaryDirectory() as folder:
            figures |= {f"{count:7,} messages: {name}": value for name, value in _measured(count, Path(folder)).items()}
    return figures


def _measured(count: int, folder: Path) -> dict[str, float]:
    turns, opener = list(_turns(count + 2 * WARMING + 6)), Opener()
    with pagein.open(folder / "store.db", workspace=folder) as engine:
        for end in range(count + 1, count + 2 * WARMING, 2):
            _turn(engine, opener, turns[:end])
        found = _turn(engine, opener, turns[: count + 2 * WARMING + 1], _counted)
    with pagein.open(folder / "store.db", workspace=folder) as engine:
        said = turns[: count + 2 * WARMING + 3]
        body = _body(said)  # the client's work, not ours
        began = thread_time()
        prepared = engine.prepare(body, "anthropic", at=10.0 * len(said), hint="bench")
        found["seconds of the processor to go on in another process"] = thread_time() - began
        if prepared.failure:
            raise RuntimeError(prepared.failure)
    return found


def _turn(
    engine: Engine,
    opener: Opener,
    messages: list[dict[str, Any]],
    watch: "Callable[[Callable[[], Any]], tuple[Any, int]] | None" = None,
) -> dict[str, float]:
    body, do = _body(messages), watch or (lambda work: (work(), 0))
    _, opening = do(lambda: opener.parse(body, "anthropic", "bench"))  # for comparison: `prepare` does it too
    prepared, preparing = do(lambda: engine.prepare(body, "anthropic", at=10.0 * len(messages), hint="bench"))
    observed, observing = do(lambda: engine.observe(prepared, Usage(fresh=3, written=len(body) // 4, output=10)))
    if prepared.failure or observed.failure:
        raise RuntimeError(prepared.failure or observed.failure)
    return {
        "calls to take the body apart": opening,
        "calls to prepare": preparing - opening,
        "calls to observe": observing,
    }


def _counted(work: Callable[[], T]) -> tuple[T, int]:
    calls = 0

    def watch(_: FrameType, event: str, __: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(watch)
    try:
        found = work()
    finally:
        sys.setprofile(None)
    return found, calls


def _turns(count: int) -> Iterator[dict[str, Any]]:
    yield {"role": "user", "content": "make it work"}
    for turn in range(count // 2):
        tool = "Read" if turn % 2 else "Bash"
        call = {"type": "tool_use", "id": f"call_{turn}", "name": tool, "input": {ARGUMENTS[tool]: f"/w/part-{turn}"}}
        text = f"{1:6}\tpart {turn} of it\n{2:6}\tand no more\n"
        yield {"role": "assistant", "content": [{"type": "text", "text": f"part {turn}"}, call]}
        yield {"role": "user", "content": [{"type": "tool_result", "tool_use_id": f"call_{turn}", "content": text}]}


def _body(messages: list[dict[str, Any]]) -> bytes:
    """With the cache mark where clients have it: at the last block, from call to call."""
    *before, last = messages
    marked = [{**last["content"][0], "cache_control": {"type": "ephemeral"}}]
    tools = [
        {"name": name, "description": "", "input_schema": {"type": "object", "properties": {argument: {}}}}
        for name, argument in ARGUMENTS.items()
    ]
    fields = {"model": "claude-sonnet-4-5", "max_tokens": 8192, "system": "be good", "stream": True, "tools": tools}
    return json.dumps({**fields, "messages": [*before, {**last, "content": marked}]}).encode()
