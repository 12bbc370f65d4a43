import pytest

from pagein.providers.validity import Api
from pagein.providers.wire import check_body
from pagein.tools.brief import OFFERS, definitions

FIELDS: dict[Api, dict[str, object]] = {
    "anthropic": {"max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]},
    "openai_chat": {"messages": [{"role": "user", "content": "hi"}]},
    "openai_responses": {"input": "hi"},
}


@pytest.mark.parametrize("api", FIELDS)
def test_a_request_may_have_the_recall_tools_among_its_own(api: Api) -> None:
    model = "claude-sonnet-5-5" if api == "anthropic" else "gpt-5.5"
    assert check_body({"model": model, **FIELDS[api], "tools": definitions(api)}, api) == []
    named = [tool["function"] if api == "openai_chat" else tool for tool in definitions(api)]
    assert [tool["name"] for tool in named] == [offer.name for offer in OFFERS]


def test_definitions_are_the_callers_own() -> None:
    mine = definitions("anthropic")
    mine[0]["input_schema"]["properties"].clear()
    assert definitions("anthropic") != mine
