"""The tools as they are offered: names, schemas, and what a system prompt says of them."""

import pytest
from tests.tools.recall_sessions import Room, ask

from pagein.tools.calls import Call
from pagein.tools.catalogue import DISABLED, RECALL, TOOLS, answer, guidance, offer_tools, tool_named


def test_every_tool_has_a_schema_that_names_what_is_required() -> None:
    for tool in TOOLS:
        assert tool.schema["type"] == "object"
        assert set(tool.schema["required"]) <= set(tool.schema["properties"])
        assert all("description" in one for one in tool.schema["properties"].values())
        assert tool.description.endswith(".")


def test_over_hosts_of_pi_rlm_the_recall_tools_have_its_names() -> None:
    assert [tool.name for tool in offer_tools()] == [
        "read", "readcache_refresh", "peek", "search", "expand", "ingest", "stats",
    ]  # fmt: skip
    assert [tool.name for tool in offer_tools("pi-rlm")] == [
        "read", "readcache_refresh", "rlm_peek", "rlm_search", "rlm_expand", "rlm_ingest", "rlm_stats",
    ]  # fmt: skip


def test_a_tool_is_found_by_either_name() -> None:
    for tool in RECALL:
        assert tool_named(tool.name) is tool_named(tool.legacy) is tool
    assert tool_named("") is None
    assert tool_named("write") is None


def test_a_call_of_no_tool_of_ours_is_answered_in_words(room: Room) -> None:
    told = ask(room.session(), "write")
    assert told.is_error
    assert "the tools are read, readcache_refresh, peek, search, expand, ingest, stats" in told.text


def test_reading_goes_through_the_same_door(room: Room) -> None:
    room.put("a.txt", "hello\n")
    assert ask(room.session(), "read", path="a.txt").text == "hello\n"


@pytest.mark.parametrize("name", ["peek", "rlm_search", "ingest", "rlm_stats"])
def test_while_switched_off_recall_tools_say_so(room: Room, name: str) -> None:
    told = answer(room.session(), name, Call(), enabled=False)
    assert (told.text, told.is_error) == (DISABLED, True)
    assert DISABLED == "RLM is disabled. Use /rlm on to enable."


def test_while_switched_off_files_are_read_all_the_same(room: Room) -> None:
    room.put("a.txt", "hello\n")
    assert answer(room.session(), "read", Call({"path": "a.txt"}), enabled=False).text == "hello\n"


def test_the_guidance_names_the_tools_that_are_offered_and_no_others() -> None:
    told = guidance(offer_tools("pi-rlm"))
    assert "**rlm_peek**" in told
    assert "look for it with rlm_search before" in told
    assert "{" not in told
    some = guidance([tool for tool in offer_tools() if tool.name in {"peek", "search"}])
    assert "**peek**" in some
    assert "ingest" not in some
    assert guidance([tool for tool in offer_tools() if tool.name == "read"]) == ""
    assert guidance(some_tools := offer_tools(), notes=True).startswith(guidance(some_tools) + "\n- Keep notes:")
