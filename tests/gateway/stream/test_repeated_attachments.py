"""An attachment that stands in the window already is sent once: the later one names it, and recalls it."""

import json
from pathlib import Path
from typing import Any

from tests.gateway.stream.test_tool_searches import Agent, Stage, stage, tool
from tests.gateway.upstreams import run

from pagein import wiring

NOTES = "<system-reminder>\n" + "".join(f"rule {place}: mind the gap\n" for place in range(80)) + "</system-reminder>"
OTHER = NOTES.replace("gap", "step")
SCRIPT = [[{"tool": "Bash", "args": {"command": "ls"}}], [{"text": "looked"}]]


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def begun(at: Stage) -> Agent:
    agent = at.agent("look", SCRIPT, tools=(tool("Bash", 1500), tool("Read", 1500)))
    agent.messages = [{"role": "user", "content": [text(NOTES), text(str(agent.messages[0]["content"]))]}]
    return agent


async def go_on(agent: Agent, *blocks: dict[str, Any]) -> None:
    agent.messages.append({"role": "user", "content": [*blocks, text(f"again SCRIPT:{json.dumps(SCRIPT)}")]})
    await agent.job()


def sent(at: Stage, place: int = -1) -> list[str]:
    """The texts of the user's side in a request, without the words of the user's own."""
    messages = at.provider.requests[place].body["messages"]
    blocks = [block for one in messages if one["role"] == "user" for block in one["content"]]
    return [block["text"] for block in blocks if block["type"] == "text" and "SCRIPT:" not in block["text"]]


def test_the_later_attachment_is_a_stub_that_recalls_it(tmp_path: Path) -> None:
    async def go() -> str:
        async with stage(tmp_path) as at:
            agent = begun(at)
            await agent.job()
            await go_on(agent, text(NOTES), text(OTHER))
            first, second, third = sent(at)
            assert (first, third) == (NOTES, OTHER)
            assert "came word for word in an earlier message" in second
            assert len(second) < len(NOTES) / 3
            await go_on(agent, text(NOTES), text(OTHER))
            assert sent(at)[:3] == [first, second, third], "what was sent stays as it was sent"
            assert [one[:9] for one in sent(at)[3:]] == ["[pagein: "] * 2
            return second.split()[1]

    name = run(go())
    with wiring.open(tmp_path / "s.pagein") as engine:
        assert engine.recall(name) == NOTES


def test_without_the_setting_an_attachment_is_sent_as_often_as_it_comes(tmp_path: Path) -> None:
    async def go() -> None:
        async with stage(tmp_path, on=False) as at:
            agent = begun(at)
            await agent.job()
            await go_on(agent, text(NOTES))
            assert sent(at) == [NOTES, NOTES]

    run(go())


def test_words_of_the_user_and_short_texts_come_as_they_are(tmp_path: Path) -> None:
    words, short = NOTES.replace("<", "("), "<system-reminder>be brief</system-reminder>"

    async def go() -> None:
        async with stage(tmp_path) as at:
            agent = begun(at)
            await agent.job()
            for _ in range(2):
                await go_on(agent, text(words), text(short))
            assert sent(at) == [NOTES, words, short, words, short]

    run(go())


def test_an_attachment_that_the_client_compacted_away_is_sent_whole(tmp_path: Path) -> None:
    async def go() -> None:
        async with stage(tmp_path) as at:
            agent = begun(at)
            await agent.job()
            agent.messages = [{"role": "user", "content": [text("what happened so far: little")]}]
            await go_on(agent, text(NOTES))
            assert sent(at)[-1] == NOTES

    run(go())
