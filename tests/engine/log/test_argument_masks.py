"""Arguments of finished calls, masked in the requests of clients in three formats: bytes in, bytes out, kept and recalled."""

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from tests.policy.clients.client_requests import APIS, body

import pagein
from pagein.engine.engine import Engine, Settings
from pagein.engine.prepared_request import PreparedRequest
from pagein.engine.send.call import RequestFacts
from pagein.model.codec import decode_entry, encode_entry
from pagein.model.entries import Entry, EpochEntry, PagedOut
from pagein.model.messages import Message, Text, ToolCall, ToolResult
from pagein.model.names import ContentHash
from pagein.policy.eviction.argument_masks import ArgumentRules
from pagein.providers.wire import check_body
from pagein.providers.wire.request_body import with_arguments
from pagein.testing.eager_residency import eager

RULES = ArgumentRules(gain=20)
EAGER = Settings(residency=eager(keep_calls=2, min_tokens=50, arguments=RULES, replaced=1, alone=3))
OLD = "".join(f"an old line {n} of the file\n" for n in range(60))
NEW = "".join(f"a new line {n} of the file\n" for n in range(60))
CLIENTS = ("claude-code", "codex", "opencode")
PATCH = "*** Begin Patch\n*** Update File: a.py\n" + "".join(f"+{line}\n" for line in NEW.split("\n"))
EDITS: dict[str, tuple[str, dict[str, str]]] = {
    "claude-code": ("Edit", {"file_path": "a.py", "old_string": OLD, "new_string": NEW}),
    "opencode": ("edit", {"filePath": "a.py", "oldString": OLD, "newString": NEW}),
    "codex": ("apply_patch", {"input": PATCH}),
}


@dataclass
class Client:
    """A client that says what it said before, and more, each time."""

    name: str
    engine: Engine
    said: list[Message] = field(default_factory=lambda: [Message("user", (Text("change a.py"),))])
    sent: list[PreparedRequest] = field(default_factory=list)
    model: str = ""

    def call(self, name: str, arguments: dict[str, str], text: str = "ok") -> PreparedRequest:
        call_id = f"call_{len(self.said)}"
        self.said.append(Message("assistant", (ToolCall(call_id, name, json.dumps(arguments)),)))
        result = (ToolResult(call_id, text),)
        self.said.append(Message("user", result) if self.name == "claude-code" else Message("tool", result))
        return self.ask()

    def edit(self, text: str = "The file a.py has been updated.") -> PreparedRequest:
        return self.call(*EDITS[self.name], text)

    def other(self) -> PreparedRequest:
        name, key = {
            "claude-code": ("Bash", "command"),
            "opencode": ("bash", "command"),
            "codex": ("exec_command", "cmd"),
        }[self.name]
        return self.call(name, {key: "true"}, "done")

    def ask(self, *, guarded: bool = False) -> PreparedRequest:
        made = body(self.name, self.said)
        if self.model:
            made = json.dumps({**json.loads(made), "model": self.model}).encode()
        prepared = self.engine.prepare(made, APIS[self.name], at=None, hint="s1", facts=RequestFacts(guarded=guarded))
        assert prepared.failure is None
        assert check_body(json.loads(prepared.body), APIS[self.name]) == []
        self.sent.append(prepared)
        return prepared


def opened(path: Path, settings: Settings = EAGER) -> Engine:
    return pagein.open(path / "store.pagein", workspace=path, settings=settings)


def calls_in(client: str, sent: bytes) -> list[dict[str, Any]]:
    """The arguments of each call in a request."""
    value = json.loads(sent)
    if client == "claude-code":
        return [block["input"] for one in value["messages"] for block in one["content"] if block["type"] == "tool_use"]
    if client == "codex":
        return [json.loads(one["arguments"]) for one in value["input"] if one["type"] == "function_call"]
    return [
        json.loads(one["tool_calls"][0]["function"]["arguments"]) for one in value["messages"] if one.get("tool_calls")
    ]


def paged(client: Client) -> list[PagedOut]:
    return [one for sent in client.sent if sent.opened is not None for one in sent.opened.paged]


@pytest.mark.parametrize("name", CLIENTS)
def test_text_of_a_file_that_was_left_alone_leaves_the_call_and_is_recalled_exactly(name: str, tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        client = Client(name, engine)
        client.ask()
        client.edit()
        for _ in range(5):
            last = client.other()
        said = EDITS[name][1]
        shown = calls_in(name, last.body)[0]
        assert list(shown) == list(said)
        changed = {key for key in said if shown[key] != said[key]}
        assert changed == {key for key in said if len(said[key]) > 100}
        object_id = paged(client)[-1].object_id
        assert all(object_id in shown[key] for key in changed)
        assert json.loads(engine.recall(object_id)) == said
        assert calls_in(name, last.body)[1:] == calls_in(name, body(name, client.said))[1:]
        assert {one.part for one in paged(client)} == {"arguments"}


def test_replaced_text_leaves_first_and_the_rest_later(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        client = Client("claude-code", engine)
        client.ask()
        client.edit()
        client.other()
        first = calls_in("claude-code", client.sent[-1].body)[0]
        assert first["new_string"] == NEW
        assert first["old_string"] != OLD
        for _ in range(4):
            client.other()
        then = calls_in("claude-code", client.sent[-1].body)[0]
        assert then["old_string"] == first["old_string"]
        assert then["new_string"] != NEW
        assert len({one.object_id for one in paged(client)}) == 1


@pytest.mark.parametrize("name", CLIENTS)
def test_within_an_epoch_each_request_extends_the_one_before(name: str, tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        client = Client(name, engine)
        client.ask()
        for _ in range(3):
            client.edit()
            client.other()
            client.other()
        field_of = "input" if name == "codex" else "messages"
        for before, after in zip(client.sent, client.sent[1:], strict=False):
            if after.opened is None:
                sent = json.loads(before.body)[field_of]
                assert json.loads(after.body)[field_of][: len(sent)] == sent
        assert any(one.opened is not None for one in client.sent)


@pytest.mark.parametrize("name", CLIENTS)
def test_another_process_sends_the_same_bytes(name: str, tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        client = Client(name, engine)
        client.ask()
        client.edit()
        for _ in range(5):
            last = client.other()
    with opened(tmp_path) as engine:
        assert engine.prepare(body(name, client.said), APIS[name], at=None, hint="s1").body == last.body
        client.engine = engine
        assert calls_in(name, client.other().body)[0] == calls_in(name, last.body)[0]


def test_calls_that_failed_calls_of_excluded_files_and_thinking_that_is_bound_are_left_alone(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        client = Client("claude-code", engine)
        client.ask()
        client.edit("<tool_use_error>String to replace not found in file.</tool_use_error>")
        client.call("Write", {"file_path": ".env", "content": NEW}, "File created successfully at: .env")
        for _ in range(6):
            last = client.other()
        assert not last.is_changed
    (tmp_path / "bound").mkdir()
    with opened(tmp_path / "bound") as engine:
        client = Client("claude-code", engine, model="claude-unheard-of")
        client.ask()
        client.edit()
        for _ in range(6):
            last = client.other()
        assert not last.is_changed


def test_without_the_setting_no_arguments_change(tmp_path: Path) -> None:
    with opened(tmp_path, Settings(residency=replace(EAGER.residency, arguments=None))) as engine:
        client = Client("claude-code", engine)
        client.ask()
        client.edit()
        for _ in range(6):
            last = client.other()
        assert not last.is_changed


def test_guarded_masks_wait_for_the_report_of_a_hook(tmp_path: Path) -> None:
    guarded = Settings(residency=replace(EAGER.residency, arguments=replace(RULES, guarded=True)))
    with opened(tmp_path, guarded) as engine:
        client = Client("claude-code", engine)
        client.ask()
        client.edit()
        for _ in range(6):
            last = client.other()
        assert not last.is_changed, "nothing stops a call that would quote a mask"
        client.said.append(Message("user", (Text("and now b.py"),)))
        client.ask(guarded=True)
        client.edit()
    with opened(tmp_path, guarded) as engine:  # the report is in the journal, so another process knows it
        client.engine = engine
        for _ in range(6):
            last = client.other()
        masked = [one.get("new_string") != NEW for one in calls_in("claude-code", last.body) if "new_string" in one]
        assert masked == [False, True], "the hook looked at the second edit"


def test_what_the_user_pins_stays_and_what_he_restores_comes_back(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        client = Client("claude-code", engine)
        client.ask()
        client.edit()
        client.other()
        session = engine.session("s1")
        session.hand.pin("call_1")
        session.hand.epoch()
        for _ in range(4):
            last = client.other()
        assert calls_in("claude-code", last.body)[0]["new_string"] == NEW
        assert calls_in("claude-code", last.body)[0]["old_string"] == OLD, "a pin brings back what is out"
        session.hand.unpin("call_1")
        assert session.hand.wishes.calls_that_stay == frozenset()
        for _ in range(5):
            last = client.other()
        assert calls_in("claude-code", last.body)[0]["new_string"] != NEW
        session.hand.restore(paged(client)[-1].object_id)
        session.hand.epoch()
        back = client.other()
        assert calls_in("claude-code", back.body)[0] == EDITS["claude-code"][1]


def test_a_copy_of_a_stub_in_a_later_call_is_told_to_the_model(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        client = Client("claude-code", engine)
        client.ask()
        client.edit()
        for _ in range(4):
            client.other()
        stub = calls_in("claude-code", client.sent[-1].body)[0]["new_string"]
        copied = client.call("Write", {"file_path": "b.py", "content": stub}, "File created successfully at: b.py")
        last = json.loads(copied.body)["messages"][-1]["content"][-1]["text"]
        assert "only stands for other text" in last
        assert paged(client)[0].object_id in last


def test_the_journal_keeps_which_part_of_a_call_left_and_reads_what_older_ones_wrote() -> None:
    left = PagedOut("c", "pg-0-0", ContentHash.of(b"x"), 5, 20, "stub", 1, 0, short="s", part="arguments")
    entry = Entry("e", None, EpochEntry(1, 1, (left,)))
    assert decode_entry(encode_entry(entry)) == entry
    older = Entry("e", None, EpochEntry(1, 1, (replace(left, part="result"),)))
    assert b'"part"' not in encode_entry(older)
    assert decode_entry(encode_entry(older)) == older


def test_on_the_wire_nothing_but_the_arguments_changes() -> None:
    chat = (
        b'{"role":"assistant","x": 1.50,"content":null,"tool_calls":[ {"id":"a","type":"function","function":{"name":"f",'
        b'"arguments":"{}"},"y":[1e3]},{"id":"b","type":"custom","custom":{"name":"p","input":"old"}}]}'
    )
    made = with_arguments(chat, "openai_chat", {0: '{"a":"b"}', 1: '"new"'})
    assert b'"x":1.50' in made
    assert b'"y":[1e3]' in made
    calls = json.loads(made)["tool_calls"]
    assert (calls[0]["function"]["arguments"], calls[1]["custom"]["input"]) == ('{"a":"b"}', "new")
    spoken = b'{"role":"assistant","content":"hi","reasoning_content":"hm","tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]}'
    assert (
        json.loads(with_arguments(spoken, "openai_chat", {2: '{"z":1}'}))["tool_calls"][0]["function"]["arguments"]
        == '{"z":1}'
    )
    old = b'{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}}'
    assert json.loads(with_arguments(old, "openai_chat", {0: '{"z":1}'}))["function_call"]["arguments"] == '{"z":1}'
    custom = b'{"type":"custom_tool_call","call_id":"c","n":1.0,"name":"apply_patch","input":"x"}'
    made = with_arguments(custom, "openai_responses", {0: '"*** patch"'})
    assert made == b'{"type":"custom_tool_call","call_id":"c","n":1.0,"name":"apply_patch","input":"*** patch"}'
    call = b'{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}'
    assert json.loads(with_arguments(call, "openai_responses", {0: '{"a":1}'}))["arguments"] == '{"a":1}'
    block = b'{"role":"assistant","content":[{"type":"thinking","thinking":"x","signature":"s"},{"type":"tool_use","id":"a","input":{"q":1},"k":1.0}]}'
    made = with_arguments(block, "anthropic", {1: '{"q":"\\ud800"}'})
    assert b'"k":1.0' in made
    assert json.loads(made)["content"][1]["input"] == {"q": "\ud800"}
