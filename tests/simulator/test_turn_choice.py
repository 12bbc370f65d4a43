import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.simulator.raw_clients import APIS, Wire, begun, grown, tools

from pagein.errors import BadInput
from pagein.model.json_text import encode_json
from pagein.providers.validity import Api
from pagein.simulator import ProviderCall, Say, ScriptCall, Scripts, ScriptTurn
from pagein.simulator.model_call import parse_call
from pagein.simulator.script import scripts_from, turn_from
from pagein.simulator.turn_choice import EXHAUSTED, UNSCRIPTED, TurnChoice, choose_turn

SCRIPT: list[Any] = [[{"tool": "read", "args": {}}], [{"tool": "edit", "args": {}}], [{"text": "done"}]]


def choice(body: Wire, api: Api = "anthropic", scripts: object = None) -> TurnChoice:
    return choose_turn(call(body, api), Scripts() if scripts is None else scripts_from(scripts))


def call(body: Wire, api: Api = "anthropic") -> ProviderCall:
    return parse_call(encode_json(body), api)


def said(turn: ScriptTurn) -> str:
    return "".join(one.text for one in turn.said if isinstance(one, Say))


def prompt(script: object) -> str:
    return f"please SCRIPT:{json.dumps(script)}"


def exchange(number: int, api: Api, calls: int = 1) -> list[Wire]:
    """An answer with calls and their results."""
    ids = [f"call_{number:016x}_{place}" for place in range(calls)]
    if api == "anthropic":
        return [
            {"role": "assistant", "content": [{"type": "tool_use", "id": i, "name": "read", "input": {}} for i in ids]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": i, "content": "x"} for i in ids]},
        ]
    function = {"name": "read", "arguments": "{}"}
    if api == "openai_chat":
        made = [{"id": i, "type": "function", "function": function} for i in ids]
        answers = [{"role": "tool", "tool_call_id": i, "content": "x"} for i in ids]
        return [{"role": "assistant", "tool_calls": made}, *answers]
    asked_for = [{"type": "function_call", "call_id": i, **function} for i in ids]
    return [*asked_for, *({"type": "function_call_output", "call_id": i, "output": "x"} for i in ids)]


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("turns", [0, 1, 2])
def test_the_turn_is_the_number_of_answers_behind_the_script(api: Api, turns: int) -> None:
    body = begun(api, prompt(SCRIPT))
    for number in range(turns):
        body = grown(body, *exchange(number, api, calls=2))
    assert choice(body, api).index == turns


@pytest.mark.parametrize("api", APIS)
def test_a_script_given_at_the_start_counts_all_answers(api: Api) -> None:
    body = grown(begun(api, "hello"), *exchange(0, api))
    assert choice(body, api, SCRIPT).index == 1


@given(st.lists(st.integers(1, 4), max_size=6), st.integers(0, 3))
def test_earlier_conversation_does_not_count(calls: list[int], before: int) -> None:
    body = begun("anthropic", "earlier")
    for number in range(before):
        body = grown(body, *exchange(number, "anthropic"))
    body = grown(body, {"role": "assistant", "content": "well"}, {"role": "user", "content": prompt([["a"]] * 9)})
    for number, parallel in enumerate(calls):
        body = grown(body, *exchange(100 + number, "anthropic", parallel))
    assert choice(body).index == len(calls)


def test_items_of_one_answer_count_once_also_where_results_stand_between_them() -> None:
    items = exchange(7, "openai_responses", calls=2)
    between = [items[0], items[2], items[1], items[3]]
    assert choice(grown(begun("openai_responses", prompt(SCRIPT)), *between), "openai_responses").index == 1


def test_the_last_script_of_a_conversation_wins() -> None:
    body = grown(
        begun("anthropic", prompt(SCRIPT)), *exchange(0, "anthropic"), {"role": "user", "content": prompt(["second"])}
    )
    assert said(choice(body).turn) == "second"


def test_a_script_in_the_prompt_wins_over_the_given_one() -> None:
    assert said(choice(begun("anthropic", prompt(["mine"])), scripts=["theirs"]).turn) == "mine"


def test_a_script_inside_of_a_result_is_only_text() -> None:
    body = grown(begun("anthropic", prompt(SCRIPT)), *exchange(0, "anthropic"))
    body["messages"][-1]["content"][0]["content"] = prompt(["from a file"])
    assert choice(body).index == 1


def test_prompts_choose_scripts_by_name() -> None:
    scripts = {"fix": ["fixing"], "default": ["plain"]}
    assert said(choice(begun("anthropic", "SCRIPT@fix please"), scripts=scripts).turn) == "fixing"
    assert said(choice(begun("anthropic", "hello"), scripts=scripts).turn) == "plain"
    assert "no script other" in said(choice(begun("anthropic", "SCRIPT@other"), scripts=scripts).turn)


def test_a_prompt_that_was_quoted_once_more_is_read() -> None:
    quoted = prompt([[{"text": "hi"}]]).replace('"', '\\"')
    assert said(choice(begun("openai_chat", f'"{quoted}"'), "openai_chat").turn) == "hi"


def test_what_cannot_be_read_is_said() -> None:
    assert "not JSON" in said(choice(begun("anthropic", "SCRIPT:[[{")).turn)
    assert "has none of" in said(choice(begun("anthropic", 'SCRIPT:[[{"txt": "x"}]]')).turn)


def test_the_end_of_a_script_and_no_script_have_answers_of_their_own() -> None:
    assert said(choice(begun("anthropic", "hello")).turn) == UNSCRIPTED
    body = grown(begun("anthropic", prompt([["only"]])), *exchange(0, "anthropic"))
    assert said(choice(body).turn) == EXHAUSTED


@pytest.mark.parametrize("api", APIS)
def test_a_request_without_tools_gets_no_turn_of_a_script_that_calls_some(api: Api) -> None:
    body = {name: value for name, value in begun(api, prompt(SCRIPT)).items() if name != "tools"}
    assert said(choice(body, api).turn) == UNSCRIPTED
    assert said(choice({**body, "tools": tools(api)}, api).turn) == ""


def test_requests_for_titles_and_summaries_get_a_harmless_answer() -> None:
    first = {"role": "user", "content": "Generate a title for this conversation:\n"}
    body: Wire = {"model": "m", "messages": [first, {"role": "user", "content": prompt(["words"])}]}
    assert said(choice(body, "openai_chat").turn) == UNSCRIPTED
    del body["messages"][0]
    assert said(choice(body, "openai_chat").turn) == "words"


RECALL: list[Any] = [
    [
        {"capture": {"id": r"peek id=([0-9a-f]{4})"}},
        {"text": "looking at {{id}}, {{unknown}}"},
        {"tool": "peek", "args": {"id": "{{id}}", "more": [{"same": "{{ id }}"}], "lines": 3}},
        {"otherwise": [{"text": "nothing to recall"}]},
    ]
]


def shown(*results: str) -> Wire:
    body = begun("anthropic", f"peek id=dead SCRIPT:{json.dumps([[{'text': ''}]] * 2 + RECALL)}")
    for number, result in enumerate(results):
        body = grown(body, *exchange(number, "anthropic"))
        body["messages"][-1]["content"][0]["content"] = result
    return body


def test_a_turn_uses_what_the_newest_text_names() -> None:
    turn = choice(shown("see: peek id=0a1b, peek id=0a1c", "nothing here")).turn
    assert turn.said == (
        Say("looking at 0a1b, {{unknown}}"),
        ScriptCall("peek", {"id": "0a1b", "more": [{"same": "0a1b"}], "lines": 3}),
    )


def test_a_turn_that_captures_nothing_does_otherwise() -> None:
    body = shown("nothing", "here")
    body["messages"][0]["content"] = body["messages"][0]["content"].removeprefix("peek id=dead ")
    assert said(choice(body).turn) == "nothing to recall"


def test_the_script_itself_is_not_captured() -> None:
    body = begun("anthropic", prompt([[{"capture": {"id": "peek"}}, {"text": "peek {{id}}"}]]))
    assert said(choice(body).turn) == "nothing to capture for id"


@pytest.mark.parametrize(
    "turn",
    [
        [{"nothing": 1}],
        [{"text": 5}],
        [{"tool": "x", "args": 3}],
        [{"usage": {"made up": 1}}],
        [{"error": "many"}],
        [{"wait": "long"}],
        [7],
        7,
    ],
)
def test_a_turn_that_means_nothing_is_refused(turn: object) -> None:
    with pytest.raises(BadInput, match="turn"):
        turn_from(turn)


@pytest.mark.parametrize("script", [5, "text", {"name": 5}])
def test_a_script_that_is_no_list_is_refused(script: object) -> None:
    with pytest.raises(BadInput, match="not a list of turns"):
        scripts_from(script)
