"""Results of the provider's own tools: they leave by a row, with their calls, and nothing else of their message changes."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.engine.server_results import (
    TOOLS,
    ServedClient,
    Wire,
    asked_mcp,
    blocks_of,
    call,
    cited,
    fetched,
    found,
    object_ids,
    ran,
    sealed,
    served_in,
    stubs_in,
    text,
)

import pagein
from pagein.engine.engine import Engine, Settings
from pagein.errors import BadInput
from pagein.policy.eviction.residency import Residency
from pagein.policy.eviction.residency_rules import USUAL, Age, ResidencyRule, ResidencyRules
from pagein.providers.wire import check_body

WEB = ResidencyRule("web search", "a web search", "web search", Age("keep_searches", 2), why="asked for")
ALL = USUAL.with_ages({"after_server_result": 2})
THOUGHT: Wire = {"type": "thinking", "thinking": "let me see", "signature": "c2lnbmVk"}


def settings(rules: ResidencyRules) -> Settings:
    return Settings(residency=Residency(rules, 200, None, None), witness=True)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with pagein.open(tmp_path / "store.pagein", workspace=tmp_path, settings=settings(ALL)) as opened:
        yield opened


def opened(path: Path, rules: ResidencyRules) -> Engine:
    return pagein.open(path / "store.pagein", workspace=path, settings=settings(rules))


def rested(client: ServedClient, count: int = 4) -> Wire:
    """Some turns later."""
    for number in range(count):
        body = client.asks(f"further {number}")
        assert check_body(body, "anthropic") == []
        client.answers(text(f"answer {number}"))
    return body


def test_results_of_the_providers_tools_stay_by_default(tmp_path: Path) -> None:
    with opened(tmp_path, USUAL) as engine:
        client = ServedClient(engine)
        client.asks()
        client.answers(call("s1"), found("s1"), call("c1", "code_execution"), ran("c1"), text("So."))
        rested(client, 30)
        client.asks("last")
        assert client.sent[-1].body == client.body()


def test_one_row_reaches_the_web_searches_of_the_client_and_of_the_provider(tmp_path: Path) -> None:
    with opened(tmp_path, ResidencyRules((*USUAL.rows, WEB))) as engine:
        client = ServedClient(engine)
        client.asks()
        client.answers({"type": "tool_use", "id": "t1", "name": "WebSearch", "input": {"query": "x"}})
        result = {"type": "tool_result", "tool_use_id": "t1", "content": "a page of results\n" * 100}
        client.said.append({"role": "user", "content": [result]})
        client.send()
        client.answers(call("s1"), found("s1"), call("c1", "code_execution"), ran("c1"), text("So."))
        whole: list[list[bool]] = [[], [], []]
        for number in range(5):
            body = client.asks(f"{number}")
            client.answers(text("yes"))
            whole[0].append(json.dumps(body).count("a page of results") > 1)
            whole[1].append("s1" in served_in(body))
            whole[2].append("c1" in served_in(body))
        # the client's search was first seen a call earlier
        assert whole == [[True, False, False, False, False], [True, True, False, False, False], [True] * 5]


def test_a_call_and_its_result_become_one_text_with_the_way_of_recall(engine: Engine) -> None:
    client = ServedClient(engine)
    client.asks()
    client.answers(text("I search."), THOUGHT, call("s1"), found("s1"), cited("It is so.", "s1"), text("Done."))
    body = rested(client)
    said = body["messages"][1]["content"]
    (stub,) = stubs_in(body)
    assert said == [text("I search."), THOUGHT, text(stub), text("It is so."), text("Done.")]
    assert stub.splitlines()[1].startswith("Use peek(")
    assert "what is s1" in stub


def test_what_left_is_recalled_as_text_without_what_only_the_provider_reads(engine: Engine) -> None:
    client = ServedClient(engine)
    client.asks()
    client.answers(
        call("s1"), found("s1"), call("f1", "web_fetch", url="https://f1.example"), fetched("f1"), text("So.")
    )
    body = rested(client)
    search, page = (engine.session("served").recall(name) for name in object_ids(stubs_in(body)))
    assert search.startswith("what is s1\ns1, page 0\nhttps://s1.example/0\n3 days ago\n")
    assert sealed("s1 0 ") not in search
    assert "the page of f1\n" * 150 in page


def test_an_open_turn_is_never_touched(engine: Engine) -> None:
    client = ServedClient(engine)
    client.asks()
    client.answers(call("s1"), found("s1"), text("Now I run it."))
    client.said[-1]["content"].append({"type": "tool_use", "id": "b0", "name": "Bash", "input": {}})
    client.said.append({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "b0", "content": "x"}]})
    client.send()
    bodies = [client.runs(f"b{number}") for number in range(1, 9)]
    assert all(served_in(body) == ["s1"] for body in bodies)
    client.answers(text("Finished."))
    assert served_in(client.asks("thanks")) == ["s1"]
    assert [served_in(client.runs(f"c{number}")) for number in range(2)] == [[], []]


def test_results_stay_while_a_message_of_the_open_turn_cites(engine: Engine) -> None:
    client = ServedClient(engine)
    client.asks()
    client.answers(call("s1"), found("s1"), text("So."))
    client.asks()
    use = {"type": "tool_use", "id": "b0", "name": "Bash", "input": {}}
    client.answers(cited("As I found", "s1"), use)
    client.said.append({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "b0", "content": "x"}]})
    client.send()
    assert all(served_in(client.runs(f"b{number}")) == ["s1"] for number in range(1, 6))
    client.answers(text("Done."))
    body = client.asks()
    assert served_in(body) == []
    assert not any("citations" in block for block in blocks_of(body))


def test_results_stay_while_the_page_fetcher_is_offered(engine: Engine) -> None:
    client = ServedClient(engine, tools=[*TOOLS, {"type": "web_fetch_20250910", "name": "web_fetch"}])
    client.asks()
    client.answers(call("s1"), found("s1"), text("So."))
    assert served_in(rested(client, 6)) == ["s1"]


def test_a_message_with_an_unfinished_call_is_left_alone(engine: Engine) -> None:
    client = ServedClient(engine)
    client.asks()
    use = {"type": "tool_use", "id": "b0", "name": "Bash", "input": {}}
    client.answers(call("s1"), found("s1"), call("s2"), use)
    client.said.append({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "b0", "content": "x"}]})
    client.send()
    client.answers(found("s2"), call("s3"), found("s3"), text("So."))
    assert served_in(rested(client, 6)) == ["s1", "s2", "s3"]


def test_a_paused_turn_stays_as_it_came(engine: Engine) -> None:
    client = ServedClient(engine)
    client.asks()
    client.answers(text("I search."), call("s1"), found("s1"), call("s2"))
    client.send()
    client.answers(found("s2"), text("So."))
    assert served_in(rested(client, 6)) == ["s1", "s2"]


def test_calls_inside_a_call_leave_with_it_as_one_text(engine: Engine) -> None:
    client = ServedClient(engine)
    client.asks()
    client.answers(
        call("c1", "code_execution", code="search()"),
        call("s1", caller="c1"),
        found("s1", "c1"),
        ran("c1"),
        text("So."),
    )
    body = rested(client)
    assert served_in(body) == []
    assert [block["text"][:9] for block in body["messages"][1]["content"]] == ["[pagein: ", "So."]
    told = engine.session("served").recall(object_ids(stubs_in(body))[0])
    assert told.startswith("what is s1\ns1, page 0\n")
    assert "search()\nline of c1" in told


@pytest.mark.parametrize(
    "blocks",
    [
        (call("c1", "code_execution"), ran("c1", 1)),
        (
            call("f1", "web_fetch"),
            fetched("f1", {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}),
        ),
        (
            call("x1", "tool_search"),
            {
                "type": "tool_search_tool_result",
                "tool_use_id": "x1",
                "content": {
                    "type": "tool_search_tool_search_result",
                    "tool_references": [{"type": "tool_reference", "tool_name": "Late"}],
                },
            },
        ),
    ],
    ids=["failed", "without text", "declares tools"],
)
def test_results_that_cannot_be_told_in_text_stay(engine: Engine, blocks: tuple[Wire, Wire]) -> None:
    late = {"name": "Late", "input_schema": {"type": "object"}, "defer_loading": True}
    client = ServedClient(engine, tools=[*TOOLS, late])
    client.asks()
    client.answers(*blocks, call("s1"), found("s1"), text("So."))
    body = rested(client)
    assert body["messages"][1]["content"][:2] == list(blocks)
    assert served_in(body) == [blocks[1]["tool_use_id"]]


def test_tools_of_a_server_beside_the_provider_leave_as_well(engine: Engine) -> None:
    client = ServedClient(engine)
    client.asks()
    client.answers(*asked_mcp("m1"), text("So."))
    body = rested(client)
    assert served_in(body) == []
    assert "m1 is documented" in engine.session("served").recall(object_ids(stubs_in(body))[0])


def test_a_result_that_the_user_restores_stands_in_its_place_again(engine: Engine) -> None:
    client = ServedClient(engine)
    client.asks()
    client.answers(call("s1"), found("s1"), cited("It is so.", "s1"), call("c1", "code_execution"), ran("c1"))
    body = rested(client)
    name = object_ids(stubs_in(body))[0]
    hand = engine.session("served").hand
    hand.restore(name)
    hand.epoch()
    body = client.asks("once more")
    assert served_in(body) == ["s1"]
    assert body["messages"][1]["content"][:2] == [call("s1"), found("s1")]
    assert check_body(body, "anthropic") == []


def test_a_pinned_result_stays(engine: Engine) -> None:
    client = ServedClient(engine)
    client.asks()
    client.answers(call("s1"), found("s1"), text("So."))
    client.asks()
    engine.session("served").hand.pin("s1")
    client.answers(text("Yes."))
    assert served_in(rested(client, 6)) == ["s1"]


def test_what_left_once_is_away_in_every_later_request_and_process(tmp_path: Path) -> None:
    with opened(tmp_path, ALL) as engine:
        client = ServedClient(engine)
        client.asks()
        client.answers(call("s1"), found("s1"), cited("It is so.", "s1"))
        before = rested(client)
        client.said.pop()
    with opened(tmp_path, ALL) as engine:
        client = replace(client, engine=engine)
        assert client.send() == before
        client.answers(text("answer 3"))
        after = client.asks("go on")
        assert after["messages"][: len(before["messages"])] == before["messages"]


def test_a_branch_that_never_left_shows_the_result(engine: Engine) -> None:
    client = ServedClient(engine)
    client.asks()
    client.answers(call("s1"), found("s1"), text("So."))
    start = list(client.said)
    assert served_in(rested(client)) == []
    client.said = start
    assert served_in(client.asks("another way")) == ["s1"]


def test_an_order_to_drop_holds_for_results_that_a_row_names(engine: Engine) -> None:
    client = ServedClient(engine)
    client.asks()
    client.answers(call("s1"), found("s1"), text("So."))
    client.asks()
    hand = engine.session("served").hand
    assert [(one.call_id, one.tool, one.form) for one in hand.window()] == [("s1", "web_search", "whole")]
    with pytest.raises(BadInput):
        hand.restore("s1")
    hand.drop("s1")
    client.answers(text("Yes."))
    assert served_in(client.asks()) == []
