"""Random valid request bodies, with what clients add to them: marks, thinking, tools, strings in place of blocks."""

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st
from tests.engine.log.repaired_messages import repair_messages
from tests.model.conversations import WILD, valid
from tests.providers.validity.bodies import marked, thought

from pagein.model.messages import Message, Thinking
from pagein.providers.validity import Api
from pagein.providers.wire import render

Wire = dict[str, Any]

APIS: tuple[Api, ...] = ("anthropic", "openai_chat", "openai_responses")


def _unsigned(said: list[Message]) -> list[Message]:
    """Without the thinking that random signatures sign: real ones sign one block each."""
    return [
        replace(one, blocks=tuple(block for block in one.blocks if not isinstance(block, Thinking))) for one in said
    ]


CONVERSATIONS: st.SearchStrategy[list[Message]] = WILD.map(lambda said: repair_messages(_unsigned(said))[0]) | valid()
EITHER = st.booleans()


LONG_ONES = valid().filter(lambda said: sum(one.role == "assistant" for one in said) > 2)


@st.composite
def anthropic_bodies(
    draw: st.DrawFn, said: st.SearchStrategy[list[Message]] = CONVERSATIONS, thinks: st.SearchStrategy[bool] = EITHER
) -> Wire:
    """A Messages request whose thinking is signed and whose marks are as the provider takes them."""
    body = render(draw(said), "anthropic", model="claude-opus-5-5")
    number = 0
    for message in body["messages"]:
        if message["role"] == "assistant" and draw(thinks):
            message["content"].insert(0, thought(f"signed-{number}"))
            number += 1
    if draw(st.booleans()):
        body["tools"] = [{"name": "f", "input_schema": {}}, {"name": "g", "defer_loading": True}]
    if draw(st.booleans()):
        body["system"] = draw(
            st.sampled_from(["plain", [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]])
        )
    if draw(st.booleans()):
        body["messages"].insert(0, {"role": "user", "content": "plain words"})
    _marked(draw, body)
    return body


def _marked(draw: st.DrawFn, body: Wire) -> None:
    """Up to four marks, long ones first."""
    blocks = list(body.get("tools", ())) + (body["system"] if isinstance(body.get("system"), list) else [])
    blocks += [block for one in body["messages"] if isinstance(one["content"], list) for block in one["content"]]
    able = [
        place for place, block in enumerate(blocks) if block.get("type") != "thinking" and "defer_loading" not in block
    ]
    if not able:
        return
    chosen = sorted(draw(st.sets(st.sampled_from(able), max_size=4)))
    long = draw(st.integers(0, len(chosen)))
    for index, place in enumerate(chosen):
        blocks[place].update(marked("1h" if index < long else None))


@st.composite
def openai_bodies(draw: st.DrawFn, api: Api) -> Wire:
    """A request in one of OpenAI's formats."""
    body = render(draw(CONVERSATIONS), api, model="gpt-5.6-sol")
    if draw(st.booleans()):
        words = {"role": "user", "content": "plain words"}
        key = "input" if api == "openai_responses" else "messages"
        body[key] = [words, *body[key]]
    return body


BODIES: st.SearchStrategy[tuple[Api, Wire]] = st.one_of(
    anthropic_bodies().map(lambda body: ("anthropic", body)),
    openai_bodies("openai_chat").map(lambda body: ("openai_chat", body)),
    openai_bodies("openai_responses").map(lambda body: ("openai_responses", body)),
)
