"""The assignment of requests of a log to sessions: by shared content, by session names, and by continuation."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pagein.model.messages import HostEvent, Message, Recorded, Text, ToolCall
from pagein.replay.prompt.model_calls import gather
from pagein.replay.readers import Source, read_source
from pagein.replay.record.recorded_session import SessionHead

TOOLS = ("bash", "read")
LONG = (
    "This was asked for in so many words that nobody says them twice by chance, and they stay in the window for long."
)
SUMMARY = (
    "The parser reads all of the files by now and was tested.\nWhat is left to do is the printer and its documentation."
)


@dataclass(slots=True)
class Client:
    """A client that resends what was said. named: how its requests name the session."""

    instructions: str = "You are a careful agent."
    tools: Sequence[str] = TOOLS
    named: dict[str, Any] = field(default_factory=dict)
    said: list[dict[str, Any]] = field(default_factory=list)

    def ask(self, *words: str, answer: str | None = "") -> dict[str, Any]:
        """One more request, and its answer, which the client takes into what it says next; None: it is interrupted."""
        for one in words:
            self.said.append({"role": "user", "content": [{"type": "text", "text": one}]})
        row = self.row(self.said, answer or "")
        if answer is not None:
            self.said.append({"role": "assistant", "content": row["response"]["content"]})
        return row

    def row(self, messages: Sequence[Any], answer: str) -> dict[str, Any]:
        body = {
            "model": "m",
            "system": self.instructions,
            "tools": [{"name": name} for name in self.tools],
            "messages": list(messages),
        }
        content = [{"type": "text", "text": answer or f"Answer to {len(messages)} messages."}]
        return {**self.named, "request": body, "response": {"role": "assistant", "content": content}}


def sessions(rows: Iterable[object]) -> list[tuple[SessionHead, list[Recorded]]]:
    content = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
    return [(one.head, list(one.entries)) for one in read_source(Source("log.jsonl", content=content))]


def calls(entries: Sequence[Recorded]) -> int:
    return len(gather(entries).calls)


def shape(rows: Iterable[object]) -> list[tuple[int, int]]:
    """For each session its model calls and compactions."""
    return [(calls(entries), len(gather(entries).compactions)) for _, entries in sessions(rows)]


def prompt(entries: Sequence[Recorded], number: int) -> list[str]:
    """The texts that stand in the prompt of a call."""
    gathered = gather(entries)
    begins = max(
        (
            one.messages_before
            for one in gathered.compactions
            if one.messages_before <= gathered.calls[number].messages_before
        ),
        default=0,
    )
    said = list(gathered.messages)[begins : gathered.calls[number].messages_before]
    return [block.text for one in said if one.role != "system" for block in one.blocks if isinstance(block, Text)]


def named(session: str, agent: str = "") -> dict[str, Any]:
    headers = {"x-claude-code-session-id": session, **({"x-claude-code-agent-id": agent} if agent else {})}
    return {"headers": headers}


def test_text_added_to_a_message_after_an_interruption_continues_the_session() -> None:
    client = Client()
    rows = [client.ask("look", answer="Looked."), client.ask("and now do it", answer=None)]
    client.said[-1] = {"role": "user", "content": [*client.said[-1]["content"], {"type": "text", "text": "but slowly"}]}
    rows += [client.ask(), client.ask("go on")]
    [(_, entries)] = sessions(rows)
    assert (calls(entries), gather(entries).compactions) == (4, [])
    assert prompt(entries, 2) == ["look", "Looked.", "and now do it", "but slowly"]


def test_an_answer_that_the_client_left_out_is_of_its_call_and_of_no_prompt() -> None:
    client = Client()
    interrupted = client.ask("look", answer=None)
    interrupted["response"] |= {"usage": {"input_tokens": 9, "output_tokens": 7}}
    [(_, entries)] = sessions([interrupted, client.ask("no, wait"), client.ask("go on")])
    assert prompt(entries, 2) == ["look", "no, wait", "Answer to 2 messages.", "go on"]
    first = gather(entries).calls[0]
    assert first.usage is not None
    assert first.usage.output == 7


def test_a_named_session_goes_on_where_its_client_compacts() -> None:
    for name in (named("one"), {"headers": {"x-session-affinity": "one"}}):
        before, after = Client(named=name), Client(named=name)
        rows = [before.ask("a"), before.ask("b"), after.ask("# What was done so far"), after.ask("c")]
        assert shape(rows) == [(4, 1)]


def test_a_session_without_a_name_goes_on_where_the_new_window_holds_the_summary_of_the_old() -> None:
    before, aside, after = Client(), Client("You write summaries.", ()), Client()
    rows = [before.ask("a"), before.ask("b"), aside.ask("Sum up: a, b", answer=SUMMARY)]
    rows += [after.ask(f"Summary of what came before:\n\n{SUMMARY}\n"), after.ask("c")]
    assert shape(rows) == [(4, 1), (1, 0)]
    asked_in_the_session = [before.ask("c"), before.ask("Sum up", answer=SUMMARY)]
    assert shape([*rows[:2], *asked_in_the_session, *rows[3:]]) == [(6, 1)]


def test_a_session_without_a_name_goes_on_where_the_new_window_keeps_messages_of_the_old() -> None:
    before, after = Client(), Client()
    rows = [before.ask("a"), before.ask(LONG)]
    after.said = [{"role": "user", "content": "(older messages left out)"}, *before.said[-2:]]
    assert shape([*rows, after.ask("c")]) == [(3, 1)]


def test_another_conversation_of_the_same_agent_is_a_session_of_its_own() -> None:
    first, second = Client(), Client()
    rows = [first.ask("a"), first.ask(LONG), second.ask("an example", "b"), second.ask("c")]
    assert shape(rows) == [(2, 0), (2, 0)]
    again = Client()
    assert shape([*rows, again.ask("a"), again.ask("d")]) == [(2, 0), (2, 0), (2, 0)]


def test_conversations_that_share_the_key_of_a_cache_or_a_user_are_kept_apart() -> None:
    for name in ({"prompt_cache_key": "all"}, {"metadata": {"user_id": "somebody"}}):
        first, second = Client(), Client()
        rows = [first.ask("a"), first.ask("b"), second.ask("c"), second.ask("d")]
        for row in rows:
            row["request"] |= name
        assert shape(rows) == [(2, 0), (2, 0)]


def test_sub_agents_and_titles_of_a_session_are_sessions_of_their_own() -> None:
    name = named("one")
    agent, title = Client(named=name), Client("You name conversations.", (), name)
    first, second = (Client("You search.", ("read",), name) for _ in range(2))
    rows = [title.ask("a"), agent.ask("a"), agent.ask("b"), first.ask("find x"), first.ask("more")]
    rows += [second.ask("find y"), second.ask("more"), agent.ask("c"), agent.ask("d")]
    assert shape(rows) == [(1, 0), (4, 0), (2, 0), (2, 0)]


def test_a_sub_agent_of_the_same_instructions_is_told_by_its_parent_going_on_and_by_its_name() -> None:
    agent, sub = Client(named=named("one")), Client(named=named("one"))
    rows = [agent.ask("a"), sub.ask("find x"), sub.ask("more"), agent.ask("b")]
    assert shape(rows) == [(2, 0), (2, 0)]
    called = Client(named=named("one", "sub-1"))
    assert shape([*rows, called.ask("find y"), called.ask("more")]) == [(2, 0), (2, 0), (2, 0)]


def test_two_ways_from_one_beginning_that_both_go_on_are_two_sessions_and_no_call_counts_twice() -> None:
    one = Client()
    rows = [one.ask("a"), one.ask("b")]
    other = Client(said=list(one.said))
    rows += [one.ask("left"), other.ask("right"), one.ask("left again"), other.ask("right again")]
    (_, first), (_, second) = sessions(rows)
    assert (calls(first), calls(second)) == (4, 2)
    assert prompt(second, 1)[-3:] == ["right", "Answer to 5 messages.", "right again"]
    assert not gather(second).compactions


def test_side_requests_are_left_out_and_counted() -> None:
    client = Client()
    rows = [client.ask("a"), client.ask("b")]
    aside = Client(said=list(client.said))
    rows += [aside.ask("What might the user ask next?"), client.ask("c"), client.ask("d")]
    [(head, entries)] = sessions(rows)
    assert (calls(entries), gather(entries).compactions) == (4, [])
    assert head.flags == {"no_times": True, "branches": 2, "abandoned_calls": 1}


def test_a_long_way_that_a_user_turns_back_from_stays_in_the_bill() -> None:
    client = Client()
    rows = [client.ask("a"), client.ask("b")]
    turned = Client(said=list(client.said))
    rows += [client.ask("wrong"), client.ask("still wrong"), turned.ask("right"), turned.ask("good")]
    assert shape(rows) == [(6, 1)]


def test_a_client_that_clears_old_content_continues_its_session_without_losing_a_call() -> None:
    client = Client()
    rows = [client.ask("a", answer=LONG), client.ask("b"), client.ask(LONG + "!"), client.ask("c")]
    client.said[1] = {"role": "assistant", "content": "(cleared)"}
    rows += [client.ask("d"), client.ask("e")]
    assert shape(rows) == [(6, 1)]


def test_messages_repeated_in_a_new_window_are_no_calls_and_their_results_may_leave() -> None:
    before = Client(named=named("one"))
    rows = [before.ask("a")]
    call = {"type": "tool_use", "id": "c1", "name": "bash", "input": {"command": "make"}}
    result = {"type": "tool_result", "tool_use_id": "c1", "content": "built"}
    rows[0]["response"]["content"] = [call]
    again: list[dict[str, Any]] = [{"role": "user", "content": "So far."}, {"role": "assistant", "content": [call]}]
    after = Client(named=named("one"), said=[*again, {"role": "user", "content": [result]}])
    [(_, entries)] = sessions([*rows, after.ask(), after.ask("b")])
    gathered = gather(entries)
    assert (len(gathered.calls), len(gathered.compactions)) == (3, 1)
    first, last = gathered.calls[1].blocks
    window = gathered.blocks[first:last]
    assert [block.kind for block in window] == ["user", "arguments", "result"]
    assert window[1].call_id == window[2].call_id == "c1~1"


def test_chat_requests_whose_instructions_stand_first_are_told_by_the_same_rules() -> None:
    def row(messages: list[Any]) -> dict[str, Any]:
        tools = [{"type": "function", "function": {"name": "bash"}}]
        return {"headers": {"session_id": "s"}, "body": {"model": "m", "tools": tools, "messages": messages}}

    system = {"role": "system", "content": "You are a careful agent."}
    call = {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": "{}"}}
    said = [system, {"role": "user", "content": "a"}, {"role": "assistant", "content": None, "tool_calls": [call]}]
    said.append({"role": "tool", "tool_call_id": "c1", "content": "done"})
    after = [system, {"role": "user", "content": "So far: a was done."}]
    found = sessions([row(said[:2]), row(said), row(after)])
    assert (len(found), calls(found[0][1])) == (1, 3)
    made = [
        one for one in found[0][1] if isinstance(one, Message) for block in one.blocks if isinstance(block, ToolCall)
    ]
    assert len(made) == 1
    assert sum(isinstance(one, HostEvent) for one in found[0][1]) == 1


@given(order=st.lists(st.integers(0, 3), min_size=1, max_size=20), name=st.sampled_from(["", "x-session-id"]))
def test_conversations_that_take_turns_in_a_log_are_told_apart_whole(order: list[int], name: str) -> None:
    clients = [Client(named={"headers": {name: str(number)}} if name else {}) for number in range(4)]
    rows = [clients[number].ask(f"{number} begins" if not clients[number].said else "go on") for number in order]
    asked = [order.count(number) for number in dict.fromkeys(order)]
    assert shape(rows) == [(count, 0) for count in asked]
