"""Edits of the TTLs of breakpoints keep a request valid."""

import json
from typing import Any

from pagein.providers.wire import check_body, decode
from pagein.providers.wire.ttl_edits import anchor_ttl, split_ttl

SHORT, LONG = {"type": "ephemeral"}, {"type": "ephemeral", "ttl": "1h"}


def said(role: str, mark: dict[str, str] | None = None) -> dict[str, Any]:
    block: dict[str, Any] = {"type": "text", "text": "ok"}
    return {"role": role, "content": [block if mark is None else {**block, "cache_control": mark}]}


def test_an_anchor_in_front_of_breakpoints_with_both_lifetimes_has_that_of_the_next_one() -> None:
    messages = [said("user"), said("assistant"), said("user", LONG), said("assistant"), said("user", SHORT)]
    body = json.dumps({"model": "claude-sonnet-4-5", "max_tokens": 9, "messages": messages}).encode()
    made = json.loads(anchor_ttl(decode(body, "anthropic"), 0).body())
    assert made["messages"][0]["content"][0]["cache_control"] == LONG
    assert not check_body(made, "anthropic")


def test_a_split_request_has_an_hour_up_to_a_block_and_five_minutes_behind_and_takes_no_fifth_breakpoint() -> None:
    messages = [said("user", LONG), said("assistant", LONG), said("user", LONG), said("assistant"), said("user", LONG)]
    body = json.dumps({"model": "claude-sonnet-4-5", "max_tokens": 9, "messages": messages}).encode()
    made = json.loads(split_ttl(decode(body, "anthropic"), (3, 0)).body())
    marks = [one["content"][0].get("cache_control") for one in made["messages"]]
    assert marks == [LONG, LONG, None, LONG, SHORT]
    assert not check_body(made, "anthropic")


def test_a_request_with_nothing_cached_behind_the_block_is_not_split() -> None:
    messages = [said("user", LONG), said("assistant"), said("user")]
    request = decode(
        json.dumps({"model": "claude-sonnet-4-5", "max_tokens": 9, "messages": messages}).encode(), "anthropic"
    )
    assert split_ttl(request, (1, 0)) is request
