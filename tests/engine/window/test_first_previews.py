"""Previews in the first request of a conversation with a past, before any report of the provider counts its prompt."""

import json

import pytest

from pagein.engine.engine import Engine, Settings
from pagein.policy.eviction.residency import PRICED
from pagein.providers.tokens.counters import ratio_counter
from pagein.store.memory.memory_store import MemoryStore
from pagein.tools.brief import offers

MODEL = "claude-haiku-4-5"
LEAST = 4096
MARK = {"cache_control": {"type": "ephemeral"}}


@pytest.mark.parametrize(
    ("front", "enters"), [(3000, False), (60_000, True)], ids=["too small to be cached", "cached either way"]
)
def test_an_output_enters_the_first_request_whole_where_the_rest_may_be_too_small_to_be_cached(
    front: int, *, enters: bool
) -> None:
    """Each further call was paid in full, until the prompt had grown to the minimum: +94 % after 20 calls."""
    call = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "make"}}
    output = "".join(f"test {line} of {line % 7} passed\n" for line in range(1000))
    assert len(output) > 5 * LEAST, "the client's own prompt is surely cached"
    schema = {"type": "object", "properties": {"command": {"type": "string"}}}
    said = [
        {"role": "user", "content": [{"type": "text", "text": "make it work"}]},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": output, **MARK}]},
    ]
    tools = [{"name": "Bash", "description": "d", "input_schema": schema}]
    body = {"model": MODEL, "max_tokens": 900, "system": "be good " * (front // 8), "tools": tools, "messages": said}
    with Engine(blobs=MemoryStore(), counter=ratio_counter(MODEL), settings=Settings(PRICED)) as engine:
        prepared = engine.prepare(
            json.dumps(body).encode(), "anthropic", at=0.0, hint="one", offers=offers(everything=True)
        )
    assert prepared.failure is None
    assert prepared.offered, "the recall tools are there, so a preview costs no entrance"
    assert bool(prepared.previewed) is enters
