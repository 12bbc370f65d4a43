"""Deferred tools in the bytes of a request: marked where they stand, never refused for it, nothing else touched."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pagein.model.json_text import array_items
from pagein.providers.validity import target
from pagein.providers.wire import check_body
from pagein.providers.wire.tool_offers import deferred_names, search_tool, with_deferral

Wire = dict[str, Any]
SEARCH = "tool_search_tool_regex"
MARK = {"type": "ephemeral"}


@st.composite
def tools(draw: st.DrawFn) -> list[Wire]:
    """A client's tools: functions, some marked or deferred by the client, and tools of the provider."""
    found: list[Wire] = []
    for place in range(draw(st.integers(1, 6))):
        kind = draw(st.sampled_from(["function", "function", "custom", "marked", "deferred", "server", "bash"]))
        one: Wire = {"name": f"t{place}", "description": draw(st.text(max_size=9)), "input_schema": {"type": "object"}}
        more: dict[str, Wire] = {
            "custom": {**one, "type": "custom"},
            "marked": {**one, "cache_control": MARK},
            "deferred": {**one, "defer_loading": True},
            "server": {"type": "web_search_20260209", "name": f"t{place}"},
            "bash": {"type": "bash_20250124", "name": f"t{place}"},
        }
        found.append(more.get(kind, one))
    return found


@given(tools(), st.frozensets(st.sampled_from([f"t{place}" for place in range(8)])), st.sampled_from(["", "t0", "t1"]))
def test_a_request_with_deferred_tools_breaks_no_rule_that_the_client_s_obeys(
    offered: list[Wire], names: frozenset[str], forced: str
) -> None:
    body: Wire = {"tools": offered, "messages": [{"role": "user", "content": "hi"}]}
    body |= {"tool_choice": {"type": "tool", "name": forced}} if forced else {}
    fields = {name: json.dumps(value, indent=1).encode() for name, value in body.items()}
    made = with_deferral(fields, "anthropic", sorted(names))
    value = {name: json.loads(raw) for name, raw in made.items()}
    before = {one.rule for one in check_body(body, "anthropic", target("claude-sonnet-4-5"))}
    assert {one.rule for one in check_body(value, "anthropic", target("claude-sonnet-4-5"))} <= before
    theirs, ours = (array_items(one["tools"], "tools") for one in (fields, made))
    own = deferred_names(fields, "anthropic")
    now = deferred_names(made, "anthropic") - own
    assert now <= names - {forced}
    assert [json.loads(one).get("name") for one in ours[: len(theirs)]] == [one["name"] for one in offered]
    assert all(old == new or one["name"] in now for old, new, one in zip(theirs, ours, offered, strict=False))
    assert search_tool(made, "anthropic") == (SEARCH if now else "")
    assert made is fields or now
    for one in offered:
        is_plain = one.get("type") in (None, "custom") and "cache_control" not in one and "defer_loading" not in one
        assert (one["name"] in now) == (is_plain and one["name"] in names - {forced})


@given(tools())
def test_other_formats_and_requests_without_tools_stay_as_they_are(offered: list[Wire]) -> None:
    fields = {"tools": json.dumps(offered).encode()}
    for api in ("openai_chat", "openai_responses", "gemini_generate_content"):
        assert with_deferral(fields, api, ["t0", "t1"]) is fields
    for raw in (b"[]", b"null"):
        nothing = {"tools": raw}
        assert with_deferral(nothing, "anthropic", ["t0"]) is nothing
    assert with_deferral({}, "anthropic", ["t0"]) == {}
