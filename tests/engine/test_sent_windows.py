"""The gateway's view of a window as a proof: only content that it sent before the call, on the call's branch, counts."""

import json
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engine import wire_clients as clients
from tests.engine.window.sized_sessions import opened

import pagein
from pagein.engine.conversation import ClientAnswer
from pagein.engine.engine import Engine
from pagein.engine.log.standing_receipts import standing_receipt
from pagein.engine.reads import testimony
from pagein.engine.reads.session_reads import ReadResult
from pagein.engine.sent_windows import SentWindows, ToolRequest
from pagein.mcp.tool_answers import Caller, ToolAnswers
from pagein.model import read_records
from pagein.model.entries import EpochEntry
from pagein.model.messages import Message, Text, ToolCall, ToolResult, Usage
from pagein.model.read_events import FileRead
from pagein.policy.eviction.overflow import Valve

LINES = [f"value_{number} = compute({number}) + {number * 7}\n" for number in range(40)]
MARKER = "[readcache: unchanged, 41 lines]"
CLEARS: Final = {"context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]}}
Wire = dict[str, Any]


class GatewayClient:
    """A client behind a gateway. `told`: whether it tells the MCP server the ids of its calls."""

    def __init__(self, engine: Engine, answers: ToolAnswers, *, told: bool) -> None:
        self.engine, self.answers, self.told = engine, answers, told
        self.calls = 0
        self.messages: list[Wire] = [{"role": "user", "content": "What about the table?"}]
        self.places = [self.messages]
        self.fields: Wire = {}

    def ask(self, arguments: Wire) -> tuple[str, dict[str, str]]:
        """Let the model call the tool. Returns the call's id, and the results in the request, as they surely reached the model."""
        body = {"model": "claude-sonnet-4-5", "max_tokens": 100, **self.fields, "messages": self.messages}
        at = 100.0 * (self.calls + 1)
        prepared = self.engine.prepare(json.dumps(body).encode(), "anthropic", at=at, hint="gate")
        assert prepared.failure is None
        answer = ClientAnswer(Usage(fresh=100), (json.dumps(self.say(arguments)).encode(),))
        assert self.engine.observe(prepared, answer).failure is None
        return f"toolu_{self.calls}", {} if self.fields else clients.results_of(prepared.request, "anthropic")

    def say(self, arguments: Wire) -> Wire:
        """Return the next answer of the model, a call of the tool."""
        self.calls += 1
        call = {"type": "tool_use", "id": f"toolu_{self.calls}", "name": "mcp__pagein__read", "input": arguments}
        said = {"role": "assistant", "content": [call]}
        self.messages = [*self.messages, said]
        return said

    def call(self, name: str, arguments: Wire) -> ReadResult:
        caller = Caller("tester", name if self.told else "")
        return self.answers.answer("read", arguments, caller, threading.Event())

    def take(self, name: str, text: str) -> None:
        result = {"type": "tool_result", "tool_use_id": name, "content": [{"type": "text", "text": text}]}
        self.messages = [*self.messages, {"role": "user", "content": [result]}]
        self.places.append(self.messages)

    def read(self, **more: object) -> str:
        arguments = {"mode": "file", "target": "a.py", **more}
        name, _ = self.ask(arguments)
        found = self.call(name, arguments)
        self.take(name, found.text)
        return found.text.partition("\n[known=")[0]

    def compact(self, luck: random.Random) -> None:
        self.messages = [{"role": "user", "content": f"Summary {luck.randrange(9)}."}]

    def go_back(self, luck: random.Random) -> None:
        self.messages = luck.choice(self.places)

    def clear_or_keep(self, _: random.Random) -> None:
        """From now on have the provider clear results, also those on which markers in the window rest; or no longer."""
        self.fields = {} if self.fields else CLEARS


steps = st.lists(
    st.tuples(
        st.sampled_from(("read", "read", "read", "edit", "compact", "back", "clear", "cut", "aside", "lie")),
        st.integers(0, 39),
    ),
    min_size=3,
    max_size=14,
)


@pytest.mark.parametrize("told", [True, False])
@settings(max_examples=25)
@given(done=steps, luck=st.randoms(use_true_random=False))
def test_the_witness_agrees_with_each_answer_that_a_sent_request_proves(
    tmp_path_factory: pytest.TempPathFactory, done: list[tuple[str, int]], luck: random.Random, *, told: bool
) -> None:
    """A client that compacts, goes back, has results cleared or cut, calls past the gateway and tells wrong ids quotes nothing."""
    folder = tmp_path_factory.mktemp("window")
    file, lines = folder / "a.py", list(LINES)
    file.write_text("".join(lines))
    with pagein.open(folder / "store.db", workspace=folder) as engine:
        client = GatewayClient(engine, ToolAnswers(engine, str(folder)), told=told)

        witness = Witness(engine)
        for kind, number in done:
            arguments: Wire = {"mode": "file", "target": "a.py", **({"offset": min(number, 30)} if number % 2 else {})}
            if kind == "edit":
                lines[number] = f"changed_{luck.randrange(3)}\n"
                file.write_text("".join(lines))
            elif kind in ("compact", "back", "clear"):
                {"compact": client.compact, "back": client.go_back, "clear": client.clear_or_keep}[kind](luck)
            elif kind in ("aside", "lie"):  # a model that the gateway does not see, and one that tells another's id
                name = f"toolu_{luck.randint(0, client.calls)}" if kind == "lie" else ""
                witness.judge(client.call(name, arguments), {})
            else:
                name, seen = client.ask(arguments)
                found = client.call(name, arguments)
                event = witness.judge(found, seen)
                client.take(name, found.text[20:] if kind == "cut" else found.text)
                if kind == "read":
                    witness.answers[name] = event, shown(found), found.text


class Witness:
    """Judges each answer by what the request before it showed. answers: those that were shown whole, by their calls."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.answers: dict[str, tuple[FileRead, str, str]] = {}

    def judge(self, found: ReadResult, seen: dict[str, str]) -> FileRead:
        event = read_records.decode(found.details)
        assert isinstance(event, FileRead)
        told = testimony.Testimony()
        for name, text in seen.items():
            if name in self.answers and self.answers[name][2] == text:
                told.add(name, *self.answers[name][:2])
        told.add(testimony.CANDIDATE, event, shown(found))
        objections = told.objections(self.engine._blobs.get)
        assert [one for one in objections if one.call_id == testimony.CANDIDATE] == []
        return event


def shown(found: ReadResult) -> str:
    """An answer without what stands below its text."""
    return found.text.partition("\n[known=")[0].partition("\n[not known")[0]


@pytest.mark.parametrize("told", [True, False])
def test_a_second_read_gets_a_marker_and_one_behind_a_compaction_or_on_another_branch_the_text(
    tmp_path: Path, *, told: bool
) -> None:
    (tmp_path / "a.py").write_text("".join(LINES))
    with pagein.open(tmp_path / "store.db", workspace=tmp_path) as engine:
        client = GatewayClient(engine, ToolAnswers(engine, str(tmp_path)), told=told)
        start = client.messages
        answers = [client.read(), client.read(), client.read(fresh=True)]
        client.messages = start
        answers += [client.read(), client.read()]
        client.messages = [{"role": "user", "content": "A summary."}]
        answers += [client.read(), client.read()]
    text = "".join(LINES)
    assert answers == [text, MARKER, text, text, MARKER, text, MARKER]


def test_what_a_provider_may_have_cleared_proves_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("".join(LINES))
    with pagein.open(tmp_path / "store.db", workspace=tmp_path) as engine:
        client = GatewayClient(engine, ToolAnswers(engine, str(tmp_path)), told=True)
        answers = [client.read(), client.read()]
        client.fields = CLEARS
        answers += [client.read(), client.read()]
        client.fields = {}
        answers += [client.read()]  # only what came behind the last request with edits stands
    text = "".join(LINES)
    assert answers == [text, MARKER, text, text, MARKER]


def test_the_window_of_a_stdio_server_is_found_in_the_store_that_a_gateway_writes(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("".join(LINES))
    store = tmp_path / "store.db"
    with pagein.open(store, workspace=tmp_path) as gateway, pagein.open(store, workspace=tmp_path) as own:
        client = GatewayClient(gateway, ToolAnswers(own, str(tmp_path)), told=True)
        assert [client.read(), client.read()] == ["".join(LINES), MARKER]


def test_a_call_that_is_over_and_one_that_nobody_knows_prove_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("".join(LINES))
    with pagein.open(tmp_path / "store.db", workspace=tmp_path) as engine:
        client = GatewayClient(engine, ToolAnswers(engine, str(tmp_path)), told=True)
        client.read()
        client.read()
        windows = SentWindows(engine._journals)
        arguments = {"mode": "file", "target": "a.py"}

        def stands(name: str, tool: str = "read", at: float = 0.0, **more: object) -> list[str] | None:
            found = windows.standing(ToolRequest(name, tool, {**arguments, **more}, at))
            return None if found is None else list(found)

        assert stands("toolu_9") is None
        client.ask(arguments)
        assert stands("toolu_1") is None  # it has a result
        assert stands("toolu_3", tool="peek") is None
        assert stands("toolu_3") == ["toolu_1"]
        assert stands("toolu_3") is None  # it was found once
        answered = next(one.asked["toolu_3"].at for one in windows._followed.values() if "toolu_3" in one.asked)
        windows = SentWindows(engine._journals)
        assert stands("", at=answered + 11) is None
        assert stands("", at=answered, offset=3) is None
        assert stands("", at=answered) == ["toolu_1"]
        assert stands("", at=answered) is None


def test_of_two_windows_with_the_same_call_only_what_both_show_counts(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("".join(LINES))
    with pagein.open(tmp_path / "store.db", workspace=tmp_path) as engine:
        client = GatewayClient(engine, ToolAnswers(engine, str(tmp_path)), told=False)
        client.read()
        arguments = {"mode": "file", "target": "a.py"}
        client.ask(arguments)
        client.compact(random.Random(1))  # noqa: S311 - a choice
        client.ask(arguments)
        assert client.call("", arguments).text.startswith("value_0")


def _read_over_mcp(call: str, text: str) -> list[Message]:
    asked = Message("assistant", (ToolCall(call, "mcp__pagein__read", '{"target":"a.py"}'),))
    return [asked, Message("tool", (ToolResult(call, text, "mcp__pagein__read"),))]


@pytest.mark.parametrize("has_marker", [True, False])
def test_a_read_with_a_receipt_leaves_a_full_window_with_its_turn_unless_a_later_answer_may_rest_on_it(
    tmp_path: Path, *, has_marker: bool
) -> None:
    text = "value = 1\n" * 100 + "[known=0123456789]"
    with opened(tmp_path, valve=Valve(window=20_000, pastes=2000)) as engine:
        session = engine.session("gate")
        session.append(Message("user", (Text("please look"),)))
        for message in (*_read_over_mcp("read-1", text), *_read_over_mcp("read-2", MARKER if has_marker else "none")):
            session.append(message)
        for number in range(12):
            session.append(Message("assistant", (Text(f"answer {number} " + "a" * 600),)))
            session.append(Message("user", (Text(f"question {number} " + "q" * 600),)))
            session.advance()
        session.append(Message("assistant", (Text("more " + "m" * 2000),)))
        session.append(Message("user", (Text("and now?"),)))
        session.advance()
        left = {call for one in session.journal if isinstance(one.body, EpochEntry) for call in one.body.calls}
        assert any(one.body.turns for one in session.journal if isinstance(one.body, EpochEntry))
        assert ("read-1" in left) is not has_marker
        # a transcript would still show the read; the gateway's own journal says that it is gone
        assert session.sent_windows.evicted_among(["read-1", "read-2"]) == left


def test_nobody_waits_twice_for_the_same_answer(tmp_path: Path) -> None:
    with pagein.open(tmp_path / "store.db", workspace=tmp_path) as engine:
        session = engine.session("gate")
        session.append(Message("user", (Text("please look"),)))
        session.advance(at=5000.0)
        windows = SentWindows(engine._journals)
        assert windows.awaits_answers(5001.0)
        assert not windows.awaits_answers(9000.0)  # nobody answers so late
        windows.give_up()
        assert not windows.awaits_answers(5001.0)
        session.append(Message("assistant", (Text("I look"),)))
        session.append(Message("user", (Text("and?"),)))
        session.advance(at=5002.0)
        assert windows.awaits_answers(5003.0)


_GATEWAY = """
import json, os, signal, sys, time, pagein
engine = pagein.open(sys.argv[1], workspace=sys.argv[2])
body = {"model": "claude-sonnet-4-5", "max_tokens": 100, "messages": [{"role": "user", "content": "please look"}]}
prepared = engine.prepare(json.dumps(body).encode(), "anthropic", at=time.time(), hint="gate")
print(prepared.failure, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_gateway_that_was_killed_before_its_answer_came_costs_one_wait_and_no_receipt(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("".join(LINES))
    store = tmp_path / "store.db"
    killed = subprocess.run(  # noqa: S603 - our own script
        [sys.executable, "-c", _GATEWAY, str(store), str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert (killed.returncode, killed.stdout) == (-signal.SIGKILL, "None\n"), killed.stderr
    with pagein.open(store, workspace=tmp_path) as engine:
        answers = ToolAnswers(engine, str(tmp_path))

        def read(name: str, **more: object) -> str:
            arguments = {"mode": "file", "target": "a.py", **more}
            return answers.answer("read", arguments, Caller("tester", name), threading.Event()).text

        text, _, receipt = read("toolu_1").rpartition("\n[known=")
        assert text == "".join(LINES)
        assert read("toolu_2") == f"{text}\n[known={receipt}"
        assert not engine.session("mcp-tester", workspace=tmp_path).sent_windows.awaits_answers(time.time())
        assert read("toolu_3", known=[receipt.removesuffix("]")]) == MARKER


@pytest.mark.parametrize("head", ["", "Wall time: 0.0068 seconds\nOutput:", "Wall time: 0.0068 seconds\nOutput:\n"])
def test_what_codex_puts_in_front_of_a_result_is_no_part_of_the_answer(head: str) -> None:
    plain, framed = (standing_receipt(f"{one}value = 1\nmore\n[known=0123456789]") for one in ("", head))
    assert plain is not None
    assert framed is not None
    assert plain.traces <= framed.traces
    assert standing_receipt("value = 1\n[known=012]") is None


_ALL = 1000
_DYING_GATEWAY = """
import json, os, signal, sys, threading, time, pagein
from pagein.engine.conversation import ClientAnswer
from pagein.model.messages import Usage

def take_turn(store, folder, body, said, statements):
    engine = pagein.open(store, workspace=folder)
    prepared = engine.prepare(json.dumps(body).encode(), "anthropic", at=time.time(), hint="gate")
    assert prepared.failure is None, prepared.failure
    print("asked", flush=True)
    time.sleep(0.05)  # the server of the tool asks the first time
    done = 0

    def count(_, event, function):
        nonlocal done
        if event == "c_call" and getattr(function, "__name__", "") in ("execute", "executemany"):
            done += 1
            if done > statements:
                os.kill(os.getpid(), signal.SIGKILL)

    threading.setprofile(count)
    sys.setprofile(count)
    if statements == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    engine.observe(prepared, ClientAnswer(Usage(fresh=100), (json.dumps(said).encode(),)))
    sys.setprofile(None)
    print("answered", flush=True)
    os.kill(os.getpid(), signal.SIGKILL)

for line in sys.stdin:
    child = os.fork()
    if child == 0:
        take_turn(*json.loads(line))
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@pytest.fixture(scope="module")
def dying_gateways() -> Iterator[subprocess.Popen[str]]:
    """A process that makes a gateway of each line, and kills it."""
    start = [sys.executable, "-c", _DYING_GATEWAY]
    with subprocess.Popen(start, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603 - our own script
        yield process
        assert process.stdin is not None
        process.stdin.close()


@pytest.mark.parametrize(("statements", "told"), [(0, True), (6, False), (12, True), (_ALL, False)])
def test_a_gateway_that_dies_in_mid_proof_gives_no_marker_without_its_journal(
    tmp_path: Path, dying_gateways: subprocess.Popen[str], statements: int, *, told: bool
) -> None:
    """It is killed before it journals the answer with the call, in the middle, or behind it; then it starts again.

    statements: of SQL, that the gateway may begin while it journals the answer.
    """
    (tmp_path / "a.py").write_text("".join(LINES))
    store, arguments = tmp_path / "store.db", {"mode": "file", "target": "a.py"}
    with pagein.open(store, workspace=tmp_path) as own:
        answers = ToolAnswers(own, str(tmp_path))
        with pagein.open(store, workspace=tmp_path) as first:
            client, witness = GatewayClient(first, answers, told=told), Witness(first)
            name, seen = client.ask(arguments)
            found = client.call(name, arguments)
            witness.answers[name] = witness.judge(found, seen), shown(found), found.text
            client.take(name, found.text)
        body = {"model": "claude-sonnet-4-5", "max_tokens": 100, "messages": client.messages}
        said = client.say(arguments)
        assert dying_gateways.stdin is not None
        assert dying_gateways.stdout is not None
        dying_gateways.stdin.write(json.dumps([str(store), str(tmp_path), body, said, statements]) + "\n")
        dying_gateways.stdin.flush()
        assert dying_gateways.stdout.readline() == "asked\n"
        began = time.monotonic()
        found = client.call("toolu_2", arguments)  # while the gateway dies
        took = time.monotonic() - began
        lines = [dying_gateways.stdout.readline()]
        if lines == ["answered\n"]:
            lines.append(dying_gateways.stdout.readline())
        assert lines[-1] == f"{-signal.SIGKILL}\n"
        assert took < 5  # the patience is 0.4 seconds; a machine may be busy
        has_marker = shown(found) == MARKER
        assert has_marker or shown(found) == "".join(LINES)
        with pagein.open(store, workspace=tmp_path) as again:
            is_journaled = any("toolu_2" in repr(one.body) for one in again.session("gate").journal)
            assert has_marker is is_journaled is (lines[0] == "answered\n")
            assert is_journaled or statements < _ALL
            client.engine, witness.engine = again, again
            event = witness.judge(found, {"toolu_1": witness.answers["toolu_1"][2]})
            witness.answers["toolu_2"] = event, shown(found), found.text
            client.take("toolu_2", found.text)
            assert client.read() == MARKER
            client.compact(random.Random(1))  # noqa: S311 - a choice
            assert client.read() == "".join(LINES)
