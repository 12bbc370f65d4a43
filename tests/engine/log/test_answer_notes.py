"""Each answer is journaled as its client saw it, redacted, and no request depends on it."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.wire_clients import Conversation, Turn, body
from tests.policy.privacy.test_keys_in_texts import KEYS

import pagein
from pagein.engine.conversation import ClientAnswer
from pagein.engine.engine import Engine
from pagein.memory.indexer import Indexer
from pagein.model.codec import decode_message
from pagein.model.entries import Entry, NoteEntry
from pagein.model.memory_notes import AnswerNote
from pagein.model.messages import Message, Text, Thinking, ToolCall, Usage
from pagein.providers.validity import Api
from pagein.providers.wire.request_body import message_of, open_body
from pagein.store.sqlite.sqlite_store import SqliteStore
from pagein.testing.memory_upkeep import MemoryUpkeep
from pagein.tools.session_commands import chat

APIS: Sequence[Api] = ("anthropic", "openai_chat", "openai_responses", "gemini_generate_content")
TALK = Conversation(
    "please fix it",
    (
        Turn("I look.", ("one\n" * 40, "two\n" * 40), thinks=True),
        Turn("I see.", ("three\n" * 2_000,)),
        Turn("It is fixed.", (), "thank you"),
        Turn("Gladly.", (), "bye"),
    ),
)
_ID = re.compile(rb"pg-[0-9a-f-]+")  # holds a tag of the store
USED = Usage(fresh=100, written=1_000, output=20)


def answer_in(api: Api, place: int, talk: Conversation = TALK) -> tuple[bytes, ...]:
    """What the model said in a turn, as its client sends it back."""
    before, after = (open_body(body(talk.until(count), api), api).items for count in (place, place + 1))
    items = after[len(before) :]
    return tuple(one for at, one in enumerate(items) if message_of(one, api, at)[1].role == "assistant")


def ask(engine: Engine, api: Api, place: int, answer: ClientAnswer | Usage, talk: Conversation = TALK) -> bytes:
    prepared = engine.prepare(body(talk.until(place), api), api, at=100.0 * (place + 1), hint="one")
    assert prepared.failure is None
    assert engine.observe(prepared, answer).failure is None
    return prepared.body


def noted(engine: Engine) -> list[Message]:
    found = engine.session("one").journal.entries.values()
    notes = [one.body.note for one in found if isinstance(one.body, NoteEntry)]
    messages = [decode_message(one.message.encode()) for one in notes if isinstance(one, AnswerNote)]
    return [one for one in messages if isinstance(one, Message)]


@pytest.mark.parametrize("api", APIS)
def test_requests_are_the_same_with_answers_and_without(api: Api, tmp_path: Path) -> None:
    with pagein.open(tmp_path / "with.db") as noting, pagein.open(tmp_path / "without.db") as other:
        for place in range(len(TALK.turns)):
            sent = ask(noting, api, place, ClientAnswer(USED, answer_in(api, place)))
            assert _ID.sub(b"", sent) == _ID.sub(b"", ask(other, api, place, USED))
        assert [one.blocks[-1].text for one in noted(noting) if isinstance(one.blocks[-1], Text)] == [
            "It is fixed.",
            "Gladly.",
        ]
        assert sum(isinstance(block, ToolCall) for one in noted(noting) for block in one.blocks) == 3
        assert noted(other) == []


@pytest.mark.parametrize("api", APIS)
def test_the_chat_has_each_answer_once_whatever_its_client_sends_back(api: Api, tmp_path: Path) -> None:
    for last in range(1, len(TALK.turns) + 1):
        path = tmp_path / f"{last}.db"
        with pagein.open(path) as engine:
            for place in range(last):
                ask(engine, api, place, ClientAnswer(USED, answer_in(api, place)))
        store = SqliteStore(path)
        Indexer(store).save_open_chats(9_000.0)
        _, turns = chat(store, "one")
        said = [part["text"] for turn in turns for part in turn["steps"] if part.get("role") == "assistant"]
        assert said == [turn.said for turn in TALK.turns[:last]]
        store.close()


def test_an_answer_that_came_after_the_next_request_is_not_journaled(tmp_path: Path) -> None:
    with pagein.open(tmp_path / "s.db") as engine:
        first = engine.prepare(body(TALK.until(0), "anthropic"), "anthropic", at=1.0, hint="one")
        ask(engine, "anthropic", 1, USED)
        engine.observe(first, ClientAnswer(USED, answer_in("anthropic", 0)))
        assert noted(engine) == []


def test_keys_and_calls_on_excluded_files_are_not_journaled(tmp_path: Path) -> None:
    key = KEYS["github-token"]
    blocks = [
        {"type": "text", "text": f"the key is {key}"},
        {"type": "tool_use", "id": "c1", "name": "Write", "input": {"file_path": "/w/.env", "content": "TOKEN=1"}},
    ]
    item = json.dumps({"role": "assistant", "content": blocks}).encode()
    with pagein.open(tmp_path / "s.db") as engine:
        ask(engine, "anthropic", 0, ClientAnswer(USED, (item,)))
        assert len(noted(engine)) == 1
    store = SqliteStore(tmp_path / "s.db")
    text = repr([one for one in store.entries("one") if isinstance(one, Entry)])
    store.close()
    assert key not in text
    assert "TOKEN=1" not in text


def test_the_library_journals_the_whole_reply(tmp_path: Path) -> None:
    reply: dict[str, Any] = {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "thinking", "thinking": "hm", "signature": "x" * 99}, {"type": "text", "text": "done"}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 10, "output_tokens": 2},
    }
    with pagein.open(tmp_path / "s.db") as engine:
        session = engine.session("one")
        session.prepare(body(TALK.until(0), "anthropic"), at=5.0)
        assert session.observe(reply).usage == Usage(fresh=10, output=2)
        assert [one.blocks for one in noted(engine)] == [(Thinking("hm"), Text("done"))]
        assert session.observe({"usage": reply["usage"]}).failure is None
        assert len(noted(engine)) == 1, "a usage alone has no answer"


@given(
    st.lists(st.sampled_from(["text", "empty", "thinking", "call"]), max_size=5), st.booleans(), st.sampled_from(APIS)
)
def test_any_answer_is_journaled_or_left_out(kinds: list[str], is_whole: bool, api: Api) -> None:  # noqa: FBT001 - drawn
    blocks = {
        "text": {"type": "text", "text": "words"},
        "empty": {"type": "text", "text": ""},
        "thinking": {"type": "thinking", "thinking": "hm", "signature": "s"},
        "call": {"type": "tool_use", "id": "c", "name": "Bash", "input": {}},
    }
    items: tuple[bytes, ...] = (json.dumps({"role": "assistant", "content": [blocks[one] for one in kinds]}).encode(),)
    if api != "anthropic":
        items = tuple(answer_in(api, 0)[: len(kinds)])
    engine = Engine(blobs=(store := MemoryUpkeep()), journals=store, counter=pagein.wiring.default_counter())
    prepared = engine.prepare(body(TALK.until(0), api), api, at=1.0, hint="one")
    assert engine.observe(prepared, ClientAnswer(None, items, is_whole)).failure is None
    has_words = bool(items) and ("text" in kinds or "call" in kinds) if api == "anthropic" else None
    if has_words is not None:
        assert len(noted(engine)) == has_words
    assert all(one.stop == (None if is_whole else "cut short") for one in noted(engine))
