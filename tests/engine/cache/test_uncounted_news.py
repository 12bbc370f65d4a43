"""News with an image or a document: no estimate can tell their tokens, so no hour in the cache is bought for them."""

import json
from typing import Any

import pytest

from pagein.engine.conversation import ClientAnswer
from pagein.engine.engine import Engine, Settings
from pagein.engine.send.call import RequestFacts
from pagein.model.messages import Usage
from pagein.policy.eviction.residency import PRICED
from pagein.providers.tokens.counters import ratio_counter
from pagein.store.memory.memory_store import MemoryStore

MODEL = "claude-sonnet-4-5"
MARK = {"type": "ephemeral"}
SYSTEM = [{"type": "text", "text": "be good " * 3000, "cache_control": MARK}]
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}
DOCUMENT = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "It is so. " * 9000}}


CALL = {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"file_path": "/a"}}
TOOLS = [{"name": "Read", "description": "d", "input_schema": {"type": "object", "properties": {}}}]


def _asks_for_an_hour(news: list[dict[str, Any]]) -> bool:
    """Return whether a session with pauses asks for an hour for this content of a result, after an image was seen."""
    said: list[dict[str, Any]] = [{"role": "user", "content": [{"type": "text", "text": "look"}, IMAGE]}]
    words: list[dict[str, Any]] = [{"type": "text", "text": "well"}]
    answers: list[tuple[dict[str, Any], list[dict[str, Any]]]] = [
        ({"type": "text", "text": "so"}, words),
        ({"type": "text", "text": "so"}, words),
        (CALL, [{"type": "tool_result", "tool_use_id": "toolu_1", "content": news}]),
    ]
    with Engine(blobs=MemoryStore(), counter=ratio_counter(MODEL), settings=Settings(PRICED)) as engine:
        for place in range(4):
            if place:
                asked, content = answers[place - 1]
                said += [{"role": "assistant", "content": [asked]}, {"role": "user", "content": content}]
            last = [*said[-1]["content"][:-1], {**said[-1]["content"][-1], "cache_control": MARK}]
            whole = {"model": MODEL, "max_tokens": 900, "system": SYSTEM, "tools": TOOLS}
            body = json.dumps({**whole, "messages": [*said[:-1], {**said[-1], "content": last}]}).encode()
            facts = RequestFacts(documented=True)
            prepared = engine.prepare(body, "anthropic", at=200.0 * place, hint="one", lasting=0.0, facts=facts)
            assert prepared.failure is None
            read, written = (8000, 20) if place else (0, 8000)
            engine.observe(prepared, ClientAnswer(Usage(3, read, written, 0, 40)))
    return b'"1h"' in prepared.body


@pytest.mark.parametrize(
    ("news", "buys"), [([], True), ([IMAGE], False), ([DOCUMENT], False)], ids=["nothing", "an image", "a document"]
)
def test_an_hour_is_bought_for_counted_news_only(news: list[dict[str, Any]], *, buys: bool) -> None:
    assert _asks_for_an_hour(news) is buys
