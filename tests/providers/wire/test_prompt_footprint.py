"""The cache's view of what stands before the messages."""

from typing import Any

import pytest

from pagein.engine.cache.prompt_layout import IN_FRONT
from pagein.providers.tokens.counters import ratio_counter
from pagein.providers.wire.prompt_footprint import head_footprints

WORDS = "Check each listing. " * 100
SCHEMA = {"type": "object", "properties": {"command": {"type": "string"}}}
HEADS: list[dict[str, Any]] = [
    {"system": WORDS, "tools": [{"name": "shell", "input_schema": SCHEMA}]},
    {"instructions": WORDS, "tools": [{"name": "shell", "parameters": SCHEMA}]},
    {
        "systemInstruction": {"role": "user", "parts": [{"text": WORDS}]},
        "tools": [{"functionDeclarations": [{"name": "shell", "parametersJsonSchema": SCHEMA}]}],
    },
]


@pytest.mark.parametrize("fields", HEADS)
def test_tools_and_instructions_are_counted_alike_in_each_format(fields: dict[str, Any]) -> None:
    counter = ratio_counter("gemini-3.8-flash")
    tools, system = head_footprints(fields, counter)
    expected = head_footprints(HEADS[0], counter)
    assert (tools.tokens, system.tokens) == tuple(one.tokens for one in expected)
    assert system.tokens > 100
    assert (tools.side, system.side, system.ttl) == ("system", "system", 0)


@pytest.mark.parametrize("fields", HEADS)
def test_its_fields_stand_before_the_messages(fields: dict[str, Any]) -> None:
    assert set(fields) < set(IN_FRONT)
