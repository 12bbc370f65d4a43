"""What is asked of the provider's own clearing is what goes there, now and in all later requests."""

import json
from typing import Any
from urllib.request import Request, urlopen

from hypothesis import given
from hypothesis import strategies as st
from scripts.clearing import BETA, ClearRun, Use, clear_run, grown, management, uses_in, with_beta

from pagein.providers.wire import check_body
from pagein.simulator import SimulatedProvider

TOOLS = ("Bash", "Read", "Grep")


@given(st.lists(st.tuples(st.sampled_from(TOOLS), st.booleans(), st.booleans()), max_size=12))
def test_what_the_parameters_say_is_what_is_wanted_or_nothing_is_said(calls: list[tuple[str, bool, bool]]) -> None:
    uses = [Use(str(place), tool, answered) for place, (tool, answered, _) in enumerate(calls)]
    wanted = {str(place) for place, (_, answered, wants) in enumerate(calls) if wants and answered}
    found = clear_run(uses, wanted)
    if found is None:
        return
    for later in (uses, [*uses, Use("later", "Bash"), Use("latest", "Read")]):
        keep = found.edit(len(later))["keep"]["value"]
        old = later[: len(later) - keep]
        assert {one.id for one in old if one.answered and one.tool not in found.spared} == wanted


def test_a_result_that_stays_between_others_of_its_tool_cannot_be_said() -> None:
    uses = [Use("a", "Bash"), Use("b", "Bash"), Use("c", "Bash")]
    assert clear_run(uses, {"a", "c"}) is None
    assert clear_run(uses, {"a", "b"}) == ClearRun(2)
    assert clear_run([Use("a", "Bash"), Use("b", "Read"), Use("c", "Bash")], {"a", "c"}) == ClearRun(3, ("Read",))
    assert clear_run(uses, set()) is None
    assert clear_run(uses, {"nobody"}) is None


def test_a_run_grows_and_gives_nothing_back() -> None:
    uses = [Use("a", "Bash"), Use("b", "Read"), Use("c", "Bash"), Use("d", "Bash")]
    first = clear_run(uses[:2], {"a"})
    assert first == ClearRun(1)
    assert grown(first, uses, {"c"}) == ClearRun(3, ("Read",))
    assert grown(first, uses, {"d"}) is None


def test_the_clients_edits_stay_in_front_and_its_own_clearing_is_left_alone() -> None:
    thinking = {"type": "clear_thinking_20251015", "keep": "all"}
    made = management({"context_management": {"edits": [thinking]}, "messages": []}, ClearRun(2))
    assert made is not None
    assert [one["type"] for one in made["edits"]] == ["clear_thinking_20251015", "clear_tool_uses_20250919"]
    for kind in ("clear_tool_uses_20250919", "compact_20260112"):
        assert management({"context_management": {"edits": [{"type": kind}]}}, ClearRun(2)) is None


def test_the_beta_is_added_once() -> None:
    assert with_beta(None) == BETA
    assert with_beta("a-1,b-2") == f"a-1,b-2,{BETA}"
    assert with_beta(f"a-1, {BETA}") == f"a-1, {BETA}"
    assert with_beta("context-management-2026-01-01") == "context-management-2026-01-01"


def _conversation(rounds: int) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = [{"role": "user", "content": "go"}]
    for number in range(rounds):
        tool = "Read" if number == 1 else "Bash"
        call = {"type": "tool_use", "id": f"toolu_{number}", "name": tool, "input": {}}
        result = {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": f"output {number} " * 2000}
        messages += [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
    return messages


def _asked(url: str, body: dict[str, Any]) -> dict[str, Any]:
    headers = {"content-type": "application/json", "x-api-key": "k", "anthropic-version": "2023-06-01"}
    sent = Request(url + "/v1/messages", json.dumps(body).encode(), headers | {"anthropic-beta": with_beta(None)})  # noqa: S310 -- on loopback
    with urlopen(sent, timeout=120) as answer:  # noqa: S310 -- on loopback
        told: dict[str, Any] = json.loads(answer.read())
    return told


def test_the_provider_clears_what_was_wanted_and_no_later_result_and_writes_all_of_it_again() -> None:
    tools = [{"name": name, "input_schema": {"type": "object", "properties": {}}} for name in ("Bash", "Read")]
    found: ClearRun | None = None
    with SimulatedProvider([[{"text": str(number)}] for number in range(9)]) as provider:
        for rounds in (4, 5, 6):
            messages = _conversation(rounds)
            messages[-1]["content"][-1]["cache_control"] = {"type": "ephemeral"}
            body: dict[str, Any] = {
                "model": "claude-sonnet-5-5",
                "max_tokens": 100,
                "tools": tools,
                "messages": messages,
            }
            found = found or clear_run(uses_in(body), {"toolu_0", "toolu_2"})
            assert found is not None
            body["context_management"] = management(body, found)
            assert [one.rule for one in check_body(body, "anthropic")] == []
            told = _asked(provider.url, body)
            (edit,) = told["context_management"]["applied_edits"]
            assert edit["cleared_tool_uses"] == 2
        # why the planner does not use it: `keep` has to grow, and parameters that change are taken for another cache
        assert [one.usage.read for one in provider.requests if one.usage] == [0, 0, 0]
        assert [one.refused for one in provider.requests if one.refused] == []
