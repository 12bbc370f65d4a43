"""Clients of Chat that list their functions in the earlier form, whose model cannot call a recall tool."""

import json

from pagein.engine.engine import Engine, Settings
from pagein.policy.eviction.residency import PRICED
from pagein.providers.tokens.counters import ratio_counter
from pagein.store.memory.memory_store import MemoryStore
from pagein.tools.brief import offers

OUTPUT = "line of output\n" * 2000
CALLED = [
    {"role": "user", "content": "what is there?"},
    {"role": "assistant", "content": None, "function_call": {"name": "look", "arguments": "{}"}},
    {"role": "function", "name": "look", "content": OUTPUT},
]


def test_nothing_leaves_a_request_whose_functions_are_in_the_earlier_form() -> None:
    asked = {"model": "gpt-5", "messages": CALLED, "functions": [{"name": "look", "parameters": {"type": "object"}}]}
    body = json.dumps(asked).encode()
    with Engine(blobs=MemoryStore(), counter=ratio_counter("gpt-5"), settings=Settings(PRICED)) as engine:
        prepared = engine.prepare(body, "openai_chat", at=0.0, hint="one", offers=offers(everything=False))
    assert prepared.failure is None
    assert prepared.body == body, "a stub would name a tool that the model cannot call"
