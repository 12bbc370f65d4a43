import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from pagein.model.messages import HostEvent, Message, Text, Thinking, ToolCall, ToolResult, Usage
from pagein.replay.readers import Source, read_source
from pagein.replay.record.recorded_session import CARRIED_OVER, SessionHead

Recorded = Callable[[str], list[tuple[SessionHead, list[Any]]]]


def test_requests_that_extend_each_other_are_one_session(recorded: Recorded) -> None:
    (first, entries), (second, _) = recorded("anthropic-requests.jsonl")
    assert (first.id, first.models) == ("wire-1", ("claude-sonnet-5",))
    assert (second.id, second.models) == ("wire-2", ("claude-haiku-4-5",))
    assert [entry.role if isinstance(entry, Message) else entry.kind for entry in entries] == [
        *("system", "user", "assistant", "tool", "assistant", "user", "assistant"),
        *("compaction", "user", "assistant", "user", "assistant"),
    ]


def test_responses_give_the_answer_and_its_usage_whole_or_as_an_event_stream(recorded: Recorded) -> None:
    [(_, entries), _] = recorded("anthropic-requests.jsonl")
    said = [entry for entry in entries if isinstance(entry, Message) and entry.role == "assistant"]
    calls = [entry for entry in said if entry.stop != CARRIED_OVER]
    assert [call.usage for call in calls] == [
        Usage(fresh=2, written=500, written_1h=500, output=20),
        Usage(fresh=2, read=500, written=40, written_1h=40, output=5),
        Usage(fresh=2, read=540, written=20, written_1h=20, output=3),
        Usage(fresh=2, written=90, written_1h=90, output=6),
    ]
    assert calls[0].blocks[0] == Thinking("Ask.", "s")
    assert calls[1].blocks == (Text("Apples."),)
    assert calls[1].stop == "end_turn"


def test_a_rewritten_prompt_is_a_compaction_followed_by_its_new_messages(recorded: Recorded) -> None:
    [(_, entries), _] = recorded("anthropic-requests.jsonl")
    place = next(n for n, entry in enumerate(entries) if isinstance(entry, HostEvent))
    assert json.loads(entries[place].data) == {"kept": 0, "trigger": "prefix_change"}
    assert [entry.blocks[0] for entry in entries[place + 1 : place + 4]] == [
        Text("What is in the basket?", "carried_over"),
        Text("(older messages left out)", "carried_over"),
        Text("And now?", "carried_over"),
    ]


def test_bodies_without_responses_take_their_answers_from_the_next_body(recorded: Recorded) -> None:
    [(head, entries)] = recorded("openai-chat.jsonl")
    assert head.flags == {"no_times": True}
    roles = [entry.role for entry in entries]
    assert roles == ["system", "user", "assistant", "tool", "assistant", "user", "assistant", "tool", "assistant"]
    assert [entry.model for entry in entries if entry.role == "assistant"] == ["gpt-5.4"] * 4
    assert (entries[-1].blocks, entries[-1].stop) == ((), "unanswered")


def test_call_ids_that_a_server_uses_again_are_told_apart(recorded: Recorded) -> None:
    [(_, entries)] = recorded("openai-chat.jsonl")
    calls = [block for entry in entries for block in entry.blocks if isinstance(block, ToolCall)]
    results = [block for entry in entries for block in entry.blocks if isinstance(block, ToolResult)]
    assert [call.id for call in calls] == ["call_0", "call_0~1"] == [result.call_id for result in results]
    assert [result.name for result in results] == ["sum", "sum"]


def test_responses_requests_are_followed_by_prefix_and_by_previous_response(recorded: Recorded) -> None:
    [(head, entries)] = recorded("openai-responses.jsonl")
    assert head.id == "resp-1"
    assert [entry.role for entry in entries] == [
        "system",
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
        "assistant",
    ]
    assert [entry.usage for entry in entries if entry.role == "assistant"] == [
        Usage(fresh=300, output=20),
        Usage(fresh=84, read=256, output=3),
        Usage(fresh=104, read=256, output=2),
    ]


def test_a_list_of_requests_and_a_bare_conversation_are_read_too(fixtures: Path) -> None:
    lines = (fixtures / "openai-chat.jsonl").read_text().splitlines()
    [listed] = read_source(Source("log.json", content=f"[{','.join(lines)}]".encode()))
    [lined] = read_source(Source("log.jsonl", fixtures / "openai-chat.jsonl"))
    assert list(listed.entries) == list(lined.entries)
    last = json.loads(lines[-1])["messages"]
    [chat] = read_source(Source("chat.json", content=json.dumps(last).encode()))
    assert sum(isinstance(entry, Message) and entry.role == "assistant" for entry in chat.entries) >= 3


_words = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)


@given(turns=st.lists(st.tuples(_words, _words), min_size=1, max_size=6), answered=st.booleans())
def test_a_growing_log_gives_back_the_conversation(turns: list[tuple[str, str]], *, answered: bool) -> None:
    rows: list[object] = []
    conversation: list[object] = []
    said: list[tuple[str, str | None]] = []
    for place, (prompt, reply) in enumerate(turns):
        conversation.append({"role": "user", "content": f"{place}{prompt}"})
        row = {"model": "m", "messages": list(conversation)}
        answer = {"role": "assistant", "content": [{"type": "text", "text": reply}]}
        response = {**answer, "id": f"r{place}", "usage": {"input_tokens": 5, "output_tokens": 1}}
        rows.append({"request": row, "response": response} if answered else row)
        conversation.append(answer)
        said += [("user", f"{place}{prompt}"), ("assistant", reply)]
    content = b"".join(msgspec.json.encode(row) + b"\n" for row in rows)
    [session] = read_source(Source("log.jsonl", content=content))
    entries: list[Any] = list(session.entries)
    found = [(entry.role, entry.blocks[0].text if entry.blocks else None) for entry in entries]
    assert found == (said if answered else [*said[:-1], ("assistant", None)])
