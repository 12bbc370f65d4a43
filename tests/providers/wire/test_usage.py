"""What a provider says a call took."""

from typing import Any

import pytest

from pagein.model.messages import Usage
from pagein.providers.validity import Api
from pagein.providers.wire.usage import usage_of

CASES: list[tuple[Api, dict[str, Any], Usage]] = [
    (
        "anthropic",
        {
            "input_tokens": 3,
            "cache_read_input_tokens": 100,
            "cache_creation_input_tokens": 40,
            "cache_creation": {"ephemeral_1h_input_tokens": 30, "ephemeral_5m_input_tokens": 10},
            "output_tokens": 7,
        },
        Usage(3, 100, 40, 30, 7),
    ),
    (
        "anthropic",
        {"input_tokens": 9, "iterations": [{"input_tokens": 5, "output_tokens": 1}, {"cache_read_input_tokens": 8}]},
        Usage(5, 8, 0, 0, 1),
    ),
    (
        "openai_chat",
        {"prompt_tokens": 100, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 64}},
        Usage(36, 64, 0, 0, 5),
    ),
    ("openai_chat", {"prompt_tokens": 100, "prompt_cache_hit_tokens": 60}, Usage(40, 60)),
    (
        "openai_responses",
        {
            "input_tokens": 50,
            "output_tokens": 2,
            "input_tokens_details": {"cached_tokens": 20, "cache_write_tokens": 9},
        },
        Usage(21, 20, 9, 0, 2),
    ),
    ("openai_responses", {"input_tokens": True, "output_tokens": "many"}, Usage()),
]


@pytest.mark.parametrize(("api", "told", "usage"), CASES)
@pytest.mark.parametrize("holder", ["", "message", "response"])
def test_usage_is_found_in_replies_and_in_the_events_of_streams(
    api: Api, told: dict[str, Any], usage: Usage, holder: str
) -> None:
    reply = {"usage": told} if not holder else {holder: {"usage": told}}
    assert usage_of(reply, api) == usage


def test_a_reply_that_tells_none_has_none() -> None:
    assert usage_of({"type": "ping"}, "anthropic") is None
    assert usage_of({"usage": None}, "openai_chat") is None
