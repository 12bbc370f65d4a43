"""The protocol on two pipes: order, errors, cancellation, questions in between, and the end of the input."""

import json
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.delegation.asked_sessions import asked

from pagein.errors import BadInput
from pagein.pi_host.bridge import Bridge, ExtensionLink, Later
from pagein.pi_host.commands import answer_tool
from pagein.pi_host.protocol import BranchDelta, ContextEvent, ModelCall, Settle
from pagein.testing.scripted_children import reply

Answer = Callable[[object, ExtensionLink], object]


class Extension:
    """The other end of a bridge."""

    def __init__(self, answer: Answer) -> None:
        reader, self._out = os.pipe()
        self._in, writer = os.pipe()
        source, sink = os.fdopen(reader, "rb"), os.fdopen(writer, "wb")
        self._lines = os.fdopen(self._in, "rb")
        self._sink = os.fdopen(self._out, "wb")
        self._streams = (source, sink)
        self.thread = threading.Thread(target=Bridge(source, sink, answer).run)
        self.thread.start()

    def send(self, message: Any) -> None:  # noqa: ANN401 - any JSON
        self.write(json.dumps(message).encode())

    def write(self, line: bytes) -> None:
        self._sink.write(line + b"\n")
        self._sink.flush()

    def receive(self) -> Any:  # noqa: ANN401 - any JSON
        return json.loads(self._lines.readline())

    def close(self) -> None:
        if not self._sink.closed:
            self._sink.close()
        self.thread.join(10)
        assert not self.thread.is_alive(), "the end of the input ends the bridge"
        for one in (*self._streams, self._lines):
            one.close()


@pytest.fixture
def meet() -> Iterator[Callable[[Answer], Extension]]:
    made: list[Extension] = []

    def begin(answer: Answer) -> Extension:
        made.append(Extension(answer))
        return made[-1]

    yield begin
    for one in made:
        one.close()


SETTLE = {"method": "settle"}


def test_requests_are_answered_in_order_and_what_is_no_message_changes_nothing(
    meet: Callable[[Answer], Extension],
) -> None:
    there = meet(lambda event, _: {"was": type(event).__name__})
    for line in (b"", b"no JSON", b"[1]", b'{"id": 3, "result": 1}'):
        there.write(line)
    for number in range(3):
        there.send({"id": number, **SETTLE})
    assert [there.receive() for _ in range(3)] == [{"id": number, "result": {"was": "Settle"}} for number in range(3)]


def test_what_fails_is_an_error_of_that_request_alone(meet: Callable[[Answer], Extension]) -> None:
    def answer(event: object, _: ExtensionLink) -> object:
        if isinstance(event, ContextEvent):
            raise BadInput("broken")
        return {}

    there = meet(answer)
    there.send({"id": 1, "method": "context", "params": {"branch": {"known": None, "entries": []}}})
    there.send({"id": 2, "method": "context", "params": {"branch": 7}})
    there.send({"id": 3, "method": "no such"})
    there.send({"id": 5, "method": ["settle"]})
    there.send({"id": 4, **SETTLE})
    told = {one["id"]: one for one in (there.receive() for _ in range(5))}
    assert told[1]["error"] == "BadInput: broken"
    assert "branch" in told[2]["error"]
    assert "no such" in told[3]["error"]
    assert "settle" in told[5]["error"]
    assert told[4]["result"] == {}


def test_a_cancellation_overtakes_and_reaches_the_request_under_way(meet: Callable[[Answer], Extension]) -> None:
    begun = threading.Event()

    def answer(_: object, link: ExtensionLink) -> object:
        begun.set()
        return {"cancelled": link.signal.wait(10)}

    there = meet(answer)
    there.send({"id": 1, **SETTLE})
    assert begun.wait(10)
    there.send({"method": "cancel", "params": {"request": 1}})
    assert there.receive() == {"id": 1, "result": {"cancelled": True}}


@pytest.mark.parametrize(("reply", "confirmed"), [(True, True), (False, False), (None, False), ("yes", False)])
def test_a_person_is_asked_while_a_request_is_under_way(
    meet: Callable[[Answer], Extension], reply: object, confirmed: object
) -> None:
    there = meet(lambda _, link: {"confirmed": link.confirm("title", "message")})
    there.send({"id": 1, **SETTLE})
    asked = there.receive()
    assert (asked["method"], asked["params"]) == ("confirm", {"title": "title", "message": "message"})
    there.send({"id": asked["id"], "result": reply})
    assert there.receive() == {"id": 1, "result": {"confirmed": confirmed}}


@pytest.mark.parametrize("agrees", [True, False])
def test_a_person_at_pi_is_asked_before_many_children(
    meet: Callable[[Answer], Extension], tmp_path: Path, *, agrees: bool
) -> None:
    """The question comes from the event loop of the children, whose thread is not the request's."""
    room = asked(tmp_path, lambda _: reply("ok"))
    session = room.session()
    ids = room.ingested(session, **{f"f{number}": f"{number}\n" for number in range(11)})
    call = ModelCall("call-1", "rlm_batch", {"instructions": "What?", "targets": ids})
    there = meet(lambda _, link: Later(lambda: answer_tool(session, call, link, 0.0, pages=True)))
    there.send({"id": 1, **SETTLE})
    question = there.receive()
    assert question["method"] == "confirm"
    assert question["params"]["message"].startswith("Ask 11 child models, which may cost up to $")
    there.send({"id": question["id"], "result": agrees})
    text = there.receive()["result"]["text"]
    assert (text.count("\nok\n"), text == "Cancelled by user") == ((11, False) if agrees else (0, True))
    room.close()


def test_half_of_a_character_survives_both_ways(meet: Callable[[Answer], Extension]) -> None:
    there = meet(lambda event, _: event.branch.entries[0] if isinstance(event, ContextEvent) else Settle())
    entry = {"id": "x", "text": "\ud83d and \u2028"}
    there.send({"id": 1, "method": "context", "params": {"branch": {"known": None, "entries": [entry]}}})
    assert there.receive() == {"id": 1, "result": entry}
    assert BranchDelta().entries == ()


def test_the_end_of_the_input_cancels_what_is_under_way(meet: Callable[[Answer], Extension]) -> None:
    there = meet(lambda _, link: {"cancelled": link.signal.wait(10)})
    there.send({"id": 1, **SETTLE})
    there.close()
