"""Re-reads of real-looking clients through the engine: bytes in, bytes out, kept and proven."""

import json
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.policy.clients.client_requests import APIS, body, results_in
from tests.policy.clients.working_clients import CLIENTS, REPEATED, read_arguments, shown_by

import pagein
from pagein.engine.engine import Engine, Settings
from pagein.engine.prepared_request import PreparedRequest
from pagein.model.messages import Message, Text, ToolCall, ToolResult
from pagein.policy.audit.witness import witness
from pagein.testing.eager_residency import eager

FILE = "".join(f"line {n} of the file, with words of its own\n" for n in range(1, 41))
EAGER = Settings(residency=eager(keep_calls=2, keep_reads=2, min_tokens=50), witness=True)


@dataclass
class Client:
    """A client that says what it said before, and more, each time."""

    name: str
    engine: Engine
    said: list[Message] = field(default_factory=lambda: [Message("user", (Text("look at a.py"),))])
    sent: list[PreparedRequest] = field(default_factory=list)

    def call(self, name: str, arguments: dict[str, object], text: str) -> str:
        """A call, its result, and the request behind it; what stands there for the result."""
        call_id = f"call_{len(self.said)}"
        self.said.append(Message("assistant", (ToolCall(call_id, name, json.dumps(arguments)),)))
        result = (ToolResult(call_id, text),)
        self.said.append(Message("user", result) if self.name == "claude-code" else Message("tool", result))
        return results_in(self.name, self.ask().body)[call_id]

    def read(self, text: str = FILE, first: int | None = None, count: int | None = None) -> str:
        name, arguments = read_arguments(self.name, "a.py", first, count)
        return self.call(name, arguments, shown_by(self.name, "a.py", text, first, count))

    def ask(self) -> PreparedRequest:
        made = self.engine.prepare(body(self.name, self.said), APIS[self.name], at=None, hint="s1")
        assert made.failure is None
        self.sent.append(made)
        return made

    def results(self) -> dict[str, str]:
        return results_in(self.name, self.sent[-1].body)


def opened(path: Path, settings: Settings | None = None) -> Engine:
    return pagein.open(path / "store.pagein", workspace=path, settings=settings)


@pytest.mark.parametrize("name", CLIENTS)
def test_a_read_made_again_goes_out_as_a_marker_and_all_else_as_the_client_sent_it(name: str, tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        client = Client(name, engine)
        client.ask()
        first = client.read()
        assert first == shown_by(name, "a.py", FILE, None, None)
        again = client.read()
        assert "[readcache: unchanged" in again
        assert len(again) < len(first) / 2
        assert [one.is_changed for one in client.sent] == [False, False, True]
        assert json.loads(client.sent[-1].body).keys() == json.loads(body(name, client.said)).keys()
        object_id = client.sent[-1].previewed[0].object_id
        assert engine.recall(object_id) == first


@pytest.mark.parametrize("name", CLIENTS)
def test_what_was_sent_stays_and_another_process_sends_the_same(name: str, tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        client = Client(name, engine)
        client.read()
        client.read()
        client.read(FILE.replace("line 20", "line twenty"))
        client.call("update_plan", {}, "done")
        before = client.results()
        kept = client.sent[-1].body
    with opened(tmp_path) as engine:
        again = Client(name, engine, client.said)
        assert again.ask().body == kept
        assert again.sent[-1].placed == "retried"
        client.engine = engine
        client.read()
        after = client.results()
        assert {call: after[call] for call in before} == before


@pytest.mark.parametrize("name", CLIENTS)
def test_an_epoch_that_takes_a_base_takes_what_rests_on_it_and_the_witness_is_silent(name: str, tmp_path: Path) -> None:
    with opened(tmp_path, EAGER) as engine:
        client = Client(name, engine)
        first = client.read()
        client.read()
        for n in range(8):
            client.call("update_plan", {}, f"step {n} is done")
        results = list(client.results().values())
        assert results[0].startswith("[pagein: pg-")
        assert results[1].startswith("[pagein: pg-")
        for stub in results[:2]:
            assert engine.recall(stub.split()[1]) == first
        assert client.read() == first
        session = engine.session("s1")
        reads = session.window_files.client
        assert witness(session.window(), reads.claims(), reads.versions().get) == ()


def test_the_client_s_own_marker_gets_the_text_back_once_its_base_has_left(tmp_path: Path) -> None:
    with opened(tmp_path, EAGER) as engine:
        client = Client("claude-code", engine)
        first = client.read()
        name, arguments = read_arguments("claude-code", "a.py", None, None)
        assert client.call(name, arguments, REPEATED) == REPEATED
        for n in range(8):
            client.call("Bash", {"command": "make"}, f"step {n} is done")
        assert next(iter(client.results().values())).startswith("[pagein: pg-")
        assert client.call(name, arguments, REPEATED) == first
        shown = client.results()
        client.call("Bash", {"command": "make"}, "done")
        assert {call: client.results()[call] for call in shown} == shown
        assert client.call(name, arguments, REPEATED) == REPEATED


def test_a_text_that_is_given_back_is_charged_to_the_account_and_survives_a_restart(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        client = Client("claude-code", engine)
        first = client.read()
        name, arguments = read_arguments("claude-code", "a.py", None, None)
        client.call("Bash", {"command": "make"}, "done")
        session = engine.session("s1")
        session.hand.drop("call_1")
        session.hand.epoch()
        client.call("Bash", {"command": "make"}, "done")
        assert client.results()["call_1"].startswith("[pagein: pg-")
        absent = session.journal.state_at(session.leaf).account.absent
        assert client.call(name, arguments, REPEATED) == first
        assert session.journal.state_at(session.leaf).account.absent < absent
        kept = client.sent[-1].body
    with opened(tmp_path) as engine:
        again = Client("claude-code", engine, client.said)
        assert again.ask().body == kept
        assert engine.session("s1").window_files.client.path_of["call_7"] == "a.py"


@pytest.mark.parametrize("name", CLIENTS)
def test_an_answer_that_the_user_has_restored_is_the_client_s_text_again_and_a_base(name: str, tmp_path: Path) -> None:
    with opened(tmp_path, Settings(witness=True)) as engine:
        client = Client(name, engine)
        first = client.read()
        client.read()
        session = engine.session("s1")
        session.hand.restore("call_3")
        session.hand.epoch()
        client.call("update_plan", {}, "done")
        assert client.results()["call_3"] == first
        session.hand.drop("call_1")
        session.hand.epoch()
        client.call("update_plan", {}, "done")
        assert client.results()["call_1"].startswith("[pagein: pg-")
        assert client.results()["call_3"] == first
        assert "[readcache: unchanged" in client.read()
        reads = session.window_files.client
        assert witness(session.window(), reads.claims(), reads.versions().get) == ()


def test_a_base_stays_as_long_as_a_young_reference_to_it(tmp_path: Path) -> None:
    patient = Settings(residency=eager(keep_calls=4, keep_reads=4, min_tokens=50))
    with opened(tmp_path, patient) as engine:
        client = Client("claude-code", engine)
        first = client.read()
        name, arguments = read_arguments("claude-code", "a.py", None, None)
        for n in range(3):
            client.call("Bash", {"command": "make"}, f"step {n} is done")
        client.call(name, arguments, REPEATED)
        for n in range(3):
            client.call("Bash", {"command": "make"}, f"step {n} is done")
        assert next(iter(client.results().values())) == first


def test_a_request_that_offers_no_tools_does_not_make_a_stranger_of_the_client(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        client = Client("claude-code", engine)
        client.read()
        asked = json.loads(body("claude-code", [*client.said, Message("user", (Text("sum it up"),))]))
        del asked["tools"]
        assert engine.prepare(json.dumps(asked).encode(), "anthropic", at=None, hint="s1").failure is None
        assert client.read() == "[readcache: unchanged, 41 lines]"


@pytest.mark.parametrize("name", CLIENTS)
def test_behind_a_compaction_or_in_another_conversation_nothing_was_read(name: str, tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        client = Client(name, engine)
        first = client.read()
        client.read()
        client.said = [Message("user", (Text("what happened so far: a.py was read"),))]
        assert client.read() == first
        child = Client(name, engine, [Message("user", (Text("you are a sub-agent: look at a.py"),))])
        assert child.read() == first
        assert "[readcache: unchanged" in client.read()


def test_rereads_can_be_switched_off(tmp_path: Path) -> None:
    with opened(tmp_path, Settings(rereads=False)) as engine:
        client = Client("claude-code", engine)
        assert client.read() == client.read()


def test_a_stranger_s_results_are_left_alone(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        client = Client("claude-code", engine)
        for _ in range(2):
            client.call("mcp__files__Read", {"file_path": "a.py"}, shown_by("claude-code", "a.py", FILE, None, None))
        assert not any(one.is_changed for one in client.sent)


def test_a_failing_command_of_codex_is_known_by_its_exit_code_and_stays_whole(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        client = Client("codex", engine)
        long = "".join(f"error {n}: this went wrong in a way of its own\n" for n in range(400))
        told = f"Chunk ID: 1\nWall time: 0.1 seconds\nProcess exited with code 1\nOutput:\n{long}"
        assert client.call("exec_command", {"cmd": "make"}, told) == told
        right = told.replace("code 1", "code 0")
        assert client.call("exec_command", {"cmd": "make all"}, right) != right
