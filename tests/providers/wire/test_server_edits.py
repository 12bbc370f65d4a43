"""Which requests let a provider take results of tools out by itself."""

import json
from typing import Any

import pytest

from pagein.providers.wire.server_edits import may_clear_results

TOOL_USES = {"type": "clear_tool_uses_20250919", "keep": {"type": "tool_uses", "value": 3}}
THINKING = {"type": "clear_thinking_20251015"}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, False),
        ({"context_management": None}, False),
        ({"context_management": {"edits": []}}, False),
        ({"context_management": {"edits": [THINKING]}}, False),
        ({"context_management": {"edits": [THINKING, TOOL_USES]}}, True),
        ({"context_management": {"edits": [{"type": "compact_20260112"}]}}, True),
        ({"context_management": {"edits": [{"type": "of_a_later_version"}]}}, True),
        ({"context_management": {"edits": [7]}}, True),
        ({"context_management": {"edits": 7}}, True),
        ({"context_management": [{"type": "compaction", "compact_threshold": 100_000}]}, True),
        ({"truncation": "auto"}, True),
        ({"truncation": "disabled"}, False),
    ],
)
def test_results_stay_only_where_nothing_asks_for_edits_of_them(fields: dict[str, Any], *, expected: bool) -> None:
    assert may_clear_results({name: json.dumps(value).encode() for name, value in fields.items()}) is expected
