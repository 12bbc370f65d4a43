"""Recorded sessions, as they are rendered, edited and marked: none of it is refused."""

from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import pytest
from tests.engine.log.repaired_messages import repair_messages
from tests.providers.validity.bodies import Wire, without_thinking

from pagein.model.messages import Message, Thinking
from pagein.providers.caches.breakpoint_plan import FIRST, Memory
from pagein.providers.validity import NOTHING_RECEIVED, AnswerFacts, Api, ModelTarget, target
from pagein.providers.wire import check_body, render, with_request
from pagein.providers.wire.breakpoint_edits import Wishes, add_breakpoints
from pagein.replay.readers import Source, find, read_source

pytestmark = pytest.mark.corpus

CORPUS = Path(__file__).resolve().parents[4] / "shared" / "corpus" / "mini"
SESSIONS = sorted(CORPUS.glob("*.jsonl.gz"))
TARGETS: list[tuple[Api, str]] = [
    ("anthropic", "claude-opus-5-5"),
    ("anthropic", "claude-haiku-4-5"),
    ("openai_chat", "gpt-5.6-sol"),
    ("openai_responses", "gpt-5.6-sol"),
]


def said_in(path: Path) -> list[Message]:
    """What was said, its thinking signed anew: recordings do not keep signatures."""
    [source] = find([path])
    assert isinstance(source, Source)
    [session] = read_source(source)
    said = [entry for entry in session.entries if isinstance(entry, Message)]
    return [
        replace(
            one,
            blocks=tuple(
                replace(block, signature=f"signed-{number}-{place}") if isinstance(block, Thinking) else block
                for place, block in enumerate(one.blocks)
            ),
        )
        for number, one in enumerate(said)
    ]


@pytest.mark.parametrize("path", SESSIONS, ids=lambda path: path.name)
@pytest.mark.parametrize(("api", "model"), TARGETS)
def test_no_request_of_a_recorded_session_is_refused(path: Path, api: Api, model: str) -> None:
    said = said_in(path)
    whom = target(model, betas=[])
    received, memory = NOTHING_RECEIVED, FIRST
    for count in range(1, len(said) + 1, max(len(said) // 12, 1)):
        messages, _ = repair_messages(said[:count])
        body = render(messages, api, model=model)
        received = with_request(received, body, api)
        sent, memory = add_breakpoints(body, api, Wishes(memory=memory))
        assert check_body(sent, api, whom, received) == []
        if api == "anthropic":
            edit_and_check(sent, whom, received, memory)


def edit_and_check(sent: Wire, whom: ModelTarget, received: AnswerFacts, memory: Memory) -> None:
    """Stub some results, remove all thinking, and set the breakpoints anew."""
    freed = without_thinking(sent)
    if freed is None:
        return
    results = [
        (place, index)
        for place, one in enumerate(sent["messages"])
        for index, block in enumerate(one["content"])
        if block["type"] == "tool_result"
    ]
    for message, block in results[:: max(len(results) // 3, 1)]:
        edited = deepcopy(freed)
        content = [*edited["messages"][message]["content"]]
        content[block] = {**content[block], "content": "stub"}
        edited["messages"][message] = {**edited["messages"][message], "content": content}
        made, _ = add_breakpoints(edited, "anthropic", Wishes(memory=memory, client="replaced"))
        assert check_body(made, "anthropic", whom, received) == []
