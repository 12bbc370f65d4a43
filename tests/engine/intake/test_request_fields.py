import json
import threading
from pathlib import Path
from types import MappingProxyType

import pytest

import pagein
from pagein.engine.intake.request_fields import Request, body_of
from pagein.errors import BadInput, BadSetting, HostError


class Omit:
    """As both SDKs call what is not to be sent."""


class Dumped:
    """An object of an SDK: what it was made of, and fields that were never set."""

    def __init__(self, **given: object) -> None:
        self._given = given

    def model_dump(self, *, exclude: object = None, exclude_unset: bool = False, **_: object) -> dict[str, object]:
        held_back = exclude if isinstance(exclude, set) else set()
        shown = {name: value for name, value in self._given.items() if name not in held_back}
        return shown if exclude_unset else {**shown, "unset": None}


class Parsed(Dumped):
    __api_exclude__ = {"parsed"}  # noqa: RUF012 -- as the SDKs have it


MODEL = {"model": "claude-sonnet-5-5", "max_tokens": 100}


def fields(request: Request) -> object:
    return json.loads(body_of(request))


def test_a_replys_own_objects_become_what_the_sdk_would_send() -> None:
    said = Dumped(
        role="assistant", content=[Dumped(type="text", text="hello"), Parsed(type="text", text="x", parsed=1)]
    )
    request = {**MODEL, "messages": [{"role": "user", "content": "hi"}, said]}
    assert fields(request) == {
        **MODEL,
        "messages": [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": [{"type": "text", "text": "hello"}, {"type": "text", "text": "x"}]},
        ],
    }


def test_objects_and_what_they_are_sent_as_are_one_message() -> None:
    plain = {"role": "assistant", "content": [{"type": "text", "text": "hello"}]}
    dumped = {"role": "assistant", "content": [Dumped(type="text", text="hello")]}
    user = {"role": "user", "content": "hi"}
    with pagein.open(":memory:") as engine:
        session = engine.session("one")
        first = session.prepare({**MODEL, "messages": [user, dumped, user]})
        again = session.prepare({**MODEL, "messages": [user, plain, user]})
    assert (again.placed, again.body) == ("retried", first.body)


def test_whatever_may_be_iterated_is_a_list() -> None:
    user = {"role": "user", "content": "hi"}
    for messages in ((user,), iter([user]), (one for one in [user]), [MappingProxyType(user)]):
        assert fields({**MODEL, "messages": messages}) == {**MODEL, "messages": [user]}


def test_fields_that_are_not_to_be_sent_are_left_out() -> None:
    assert fields({**MODEL, "temperature": Omit(), "messages": []}) == {**MODEL, "messages": []}


def test_text_that_no_encoding_holds_is_sent_as_it_is() -> None:
    said = Dumped(role="assistant", content="\ud83d")
    assert fields({"messages": [said]}) == {"messages": [{"role": "assistant", "content": "\ud83d"}]}


@pytest.mark.parametrize("request_", [None, "{}", ["hi"], 3, object()])
def test_what_is_no_request_is_told_as_what_it_is(request_: object) -> None:
    with pytest.raises(BadInput, match=f"{type(request_).__name__}: give the fields"):
        body_of(request_)  # type: ignore[arg-type]


def test_what_no_request_can_hold_is_told_with_its_place() -> None:
    request = {**MODEL, "messages": [{"role": "user", "content": [{"type": "text", "text": object()}]}]}
    with pytest.raises(BadInput, match=r"messages\[0\]\.content\[0\]\.text is a object"):
        body_of(request)


def test_a_request_that_holds_itself_is_told() -> None:
    request: dict[str, object] = {**MODEL}
    request["messages"] = [request]
    with pytest.raises(BadInput, match="JSON"):
        body_of(request)


def test_a_reply_is_observed_for_the_request_that_it_answers() -> None:
    with pagein.open(":memory:") as engine:
        session = engine.session("two")
        first = session.prepare({**MODEL, "messages": [{"role": "user", "content": "one"}]})
        session.prepare({**MODEL, "messages": [{"role": "user", "content": "two"}]})
        usage = {"input_tokens": 700, "output_tokens": 1}
        assert session.observe({"usage": usage}, first).usage is not None
        assert [entry.parent for entry in session.journal.newest(1)] == [first.entry]


def test_calls_of_several_threads_are_observed_each_for_its_own() -> None:
    failures: list[str] = []
    with pagein.open(":memory:") as engine:
        session = engine.session("three")

        def call(number: int) -> None:
            for turn in range(5):
                said = [{"role": "user", "content": f"{number}"}, {"role": "assistant", "content": "a"}] * (turn + 1)
                prepared = session.prepare({**MODEL, "messages": [*said, {"role": "user", "content": f"{turn}"}]})
                seen = session.observe({"usage": {"input_tokens": 10, "output_tokens": 1}}, prepared)
                failures.extend(why for why in (prepared.failure, seen.failure) if why)

        threads = [threading.Thread(target=call, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert failures == []


def test_what_is_no_reply_is_told_and_fails_nothing() -> None:
    with pagein.open(":memory:") as engine:
        session = engine.session("four")
        with pytest.raises(HostError, match="before any request"):
            session.observe({"usage": {}})
        session.prepare({**MODEL, "messages": [{"role": "user", "content": "one"}]})
        for reply in (None, object(), "text"):
            assert "final message" in (session.observe(reply).failure or "")  # type: ignore[arg-type]


def test_an_event_that_tells_of_the_answer_alone_teaches_nothing_of_the_request() -> None:
    with pagein.open(":memory:") as engine:
        session = engine.session("five")
        session.prepare({**MODEL, "messages": [{"role": "user", "content": "one"}]})
        seen = session.observe({"type": "message_delta", "usage": {"output_tokens": 3}})
    assert (seen.usage, seen.shortfall, seen.failure) == (None, 0, None)


def test_a_name_that_is_no_text_is_told() -> None:
    with pagein.open(":memory:") as engine:
        for name in (None, 3):
            with pytest.raises(BadInput, match=f"a session's name is a text, not {name}"):
                engine.session(name)  # type: ignore[arg-type]


def test_a_store_of_a_kind_that_there_is_not_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadSetting, match="no stores at mysql:// addresses; name a file"):
        pagein.open("mysql://localhost/x")
    with pytest.raises(BadSetting, match="by a path or an address, not 3"):
        pagein.open(3)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []
