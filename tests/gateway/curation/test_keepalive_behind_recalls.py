"""Pauses behind answers in which the model recalled: what is kept alive is what was really said, and the client's next request reads it."""

from pathlib import Path

import pytest
from tests.gateway.curation.test_keepalive_requests import TALK, stage
from tests.gateway.upstreams import run

PEEK = {"tool": "peek", "args": {"id": "pg-00000000"}}


@pytest.mark.parametrize("beside", [True, False], ids=["beside a call of the client's", "alone"])
def test_a_pause_behind_a_recall_keeps_what_was_really_said(tmp_path: Path, *, beside: bool) -> None:
    calls = [{"tool": "Bash", "args": {}}] if beside else []
    rounds = [[{"text": "I look. "}, PEEK, *calls], *([] if beside else [[{"text": "So it was."}]])]
    script = [*TALK[:6], *rounds, *TALK]

    async def go() -> None:
        async with stage(tmp_path, script, recall=True) as on:
            for number in range(7):
                await on.agent.says(f"step {number} " + "of a long task " * 200)
                if number < 6:
                    await on.pause(20)
            shown = on.agent.messages[-1]["content"]
            assert not [one for one in shown if one.get("name") == "peek"]
            await on.pause(1000)
            (ping,) = on.pings
            said = [block for message in ping.body["messages"] for block in content_of(message)]
            peeks = [one["id"] for one in said if one.get("name") == "peek"]
            assert len(peeks) == 1
            assert peeks[0] in [one["tool_use_id"] for one in said if one["type"] == "tool_result"]
            if beside:
                (call,) = [one for one in shown if one["type"] == "tool_use"]
                call["input"] = {}
                result = {"type": "tool_result", "tool_use_id": call["id"], "content": "done"}
                on.agent.messages.append({"role": "user", "content": [result]})
                await on.agent.sends()
            else:
                await on.agent.says("go on")
            last = on.provider.requests[-1]
            assert last.usage is not None
            assert ping.usage is not None
            assert last.usage.read >= ping.usage.prompt - 60
            assert [
                one["id"] for m in last.body["messages"] for one in content_of(m) if one.get("name") == "peek"
            ] == peeks

    run(go())


def content_of(message: dict[str, object]) -> list[dict[str, object]]:
    content = message["content"]
    return content if isinstance(content, list) else [{"type": "text", "text": content}]
