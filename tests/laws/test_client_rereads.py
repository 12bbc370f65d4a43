"""The laws over random work of each client, on the bytes that go out: proven, lossless, frozen, no longer than they came."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engine.reads.test_reread_notes import FILE, Client
from tests.policy.clients.client_requests import APIS
from tests.policy.clients.working_clients import CLIENTS, REPEATED, read_arguments

import pagein
from pagein.engine.engine import Settings
from pagein.model.messages import Message, Text, ToolResult
from pagein.policy.audit.witness import witness
from pagein.providers.wire.request_body import decode
from pagein.testing.eager_residency import eager

EAGER = Settings(residency=eager(batch_tokens=300, keep_calls=2, keep_reads=3, min_tokens=50), witness=True)
PLACE = st.integers(1, 30)
STEPS = st.one_of(
    st.tuples(st.just("read"), st.none() | PLACE, st.none() | PLACE),
    st.tuples(st.just("read"), st.none(), st.none()),
    st.tuples(st.just("edit"), PLACE, st.none()),
    st.tuples(st.just("insert"), PLACE, st.none()),
    st.tuples(st.just("long"), PLACE, st.none()),
    st.tuples(st.just("repeat"), st.none(), st.none()),
    st.tuples(st.just("say"), st.none(), st.none()),
    st.tuples(st.just("fork"), PLACE, st.none()),
)


@settings(max_examples=60, deadline=None)
@given(name=st.sampled_from(CLIENTS), steps=st.lists(STEPS, min_size=4, max_size=24))
def test_the_laws_hold_for_what_goes_out(name: str, steps: list[tuple[str, int | None, int | None]]) -> None:
    with pagein.open(":memory:", settings=EAGER) as engine:
        client = Client(name, engine)
        text = FILE
        client.ask()
        before: list[Any] = []
        epoch = 0
        for what, one, other in steps:
            text = _step(client, text, what, one, other)
            sent = client.sent[-1]
            assert sent.failure is None
            out = json.loads(sent.body)["input" if name == "codex" else "messages"]
            if sent.epoch == epoch and what != "fork":
                assert out[: len(before)] == before
            before, epoch = out, sent.epoch
            _judge(client)


def _judge(client: Client) -> None:
    api = APIS[client.name]
    sent = client.sent[-1]
    session = client.engine.session("s1")
    reads = session.window_files.client
    out = decode(sent.body, api).messages
    assert witness(out, reads.claims(), reads.versions().get) == ()
    asked = {
        block.call_id: block.text
        for one in decode(sent.original, api).messages
        for block in one.blocks
        if isinstance(block, ToolResult)
    }
    for one in session.journal.state_at(session.leaf).hand.away.values():
        if one.call_id in asked:
            assert client.engine.recall(one.object_id) == asked[one.call_id]


def _step(client: Client, text: str, what: str, one: int | None, other: int | None) -> str:
    lines = text.split("\n")
    match what:
        case "read":
            client.read(text, one, other)
        case "edit":
            at = one or 1
            new = f"{lines[at]} and more"
            _edit(client, lines[at], new)
            lines[at] = new
        case "insert":
            lines[one or 1 : one or 1] = ["here", "is", "something", "new"]
        case "long":
            client.call(*_make(client, one), "".join(f"step {n}\n" for n in range(40 * (one or 1))))
        case "repeat" if client.name == "claude-code":
            name, arguments = read_arguments(client.name, "a.py", None, None)
            client.call(name, arguments, REPEATED)
        case "fork":
            # as after a rewind: the end is cut off, and something else is said
            keep = max(1, len(client.said) - 2 * (one or 1))
            client.said = [*client.said[:keep], Message("user", (Text(f"no, rather {one}"),))]
            client.ask()
        case _:
            client.said.append(Message("assistant", (Text("done"),)))
            client.said.append(Message("user", (Text("go on"),)))
            client.ask()
    return "\n".join(lines)


def _make(client: Client, one: int | None) -> tuple[str, dict[str, object]]:
    command = f"make {one}"
    return ("exec_command", {"cmd": command}) if client.name == "codex" else ("Bash", {"command": command})


def _edit(client: Client, old: str, new: str) -> None:
    calls: dict[str, tuple[str, dict[str, object]]] = {
        "claude-code": ("Edit", {"file_path": "a.py", "old_string": old, "new_string": new}),
        "codex": (
            "apply_patch",
            {"input": f"*** Begin Patch\n*** Update File: a.py\n@@\n-{old}\n+{new}\n*** End Patch"},
        ),
        "opencode": ("edit", {"filePath": "a.py", "oldString": old, "newString": new}),
        "pi": ("edit", {"path": "a.py", "edits": [{"oldText": old, "newText": new}]}),
        "gemini-cli": ("replace", {"file_path": "a.py", "old_string": old, "new_string": new}),
    }
    client.call(*calls[client.name], "Done.")
