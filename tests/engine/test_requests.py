"""Requests of a provider, prepared by an engine on a real store."""

import asyncio
import json
import sqlite3
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from tests.engine import wire_clients as clients
from tests.engine.wire_clients import Conversation, Manner, Turn

import pagein
from pagein.engine.engine import Engine, Settings
from pagein.engine.log.request_draft import size
from pagein.engine.send import rendered_bytes, splice
from pagein.engine.send.call import PendingCall
from pagein.engine.send.recall_exchanges import RecallExchange
from pagein.engine.send.rendered_bytes import Bytes
from pagein.engine.send.sent_changes import WindowLayout
from pagein.errors import BadInput
from pagein.model.messages import Usage
from pagein.policy.eviction.overflow import Valve
from pagein.policy.stubs.previews import Previews
from pagein.providers.validity import Api
from pagein.providers.wire import check_body
from pagein.providers.wire.tool_offers import ToolOffer
from pagein.testing.eager_residency import eager

EAGER = Settings(eager(batch_tokens=300, keep_calls=1, min_tokens=60))
BIG = "word " * 300
APIS: tuple[Api, ...] = ("anthropic", "openai_chat", "openai_responses")
TALK = Conversation("please do it")
PLAIN = Manner()


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with opened(tmp_path) as made:
        yield made


def opened(folder: Path, settings: Settings = EAGER) -> Engine:
    return pagein.open(folder / "store.db", workspace=folder, settings=settings)


def worked(turns: int, talk: Conversation = TALK, text: str = BIG) -> Conversation:
    for _ in range(turns):
        talk = talk.then(Turn("on it", (text,)))
    return talk


def walk(engine: Engine, api: Api, turns: int, *, hint: str | None = "one", manner: Manner = PLAIN) -> list[Any]:
    """Every request of a conversation that long."""
    talks = [worked(count) for count in range(turns + 1)]
    return [
        engine.prepare(clients.body(talk, api, manner), api, at=10.0 * place, hint=hint)
        for place, talk in enumerate(talks)
    ]


@pytest.mark.parametrize("api", APIS)
def test_a_request_in_which_nothing_is_replaced_goes_out_as_the_very_bytes(engine: Engine, api: Api) -> None:
    body = clients.body(worked(1), api, Manner(spaces=True))
    prepared = engine.prepare(body, api, at=0.0)
    assert prepared.body is body
    assert not prepared.is_changed
    assert prepared.placed == "new"


@pytest.mark.parametrize("api", APIS)
def test_all_but_the_replaced_content_keeps_its_bytes(tmp_path: Path, api: Api) -> None:
    with opened(tmp_path, Settings(EAGER.residency, marks="respected")) as engine:
        prepared = walk(engine, api, 5, manner=Manner(spaces=True))[-1]
    assert prepared.replaced
    theirs = clients.body(worked(5), api, Manner(spaces=True))
    for item in json.loads(theirs)["input" if api == "openai_responses" else "messages"]:
        raw = json.dumps(item).encode()
        assert raw in prepared.body or BIG.encode() in raw


def test_the_same_request_again_is_not_decided_again_by_whomever(tmp_path: Path) -> None:
    body = clients.body(worked(4), "anthropic")
    with opened(tmp_path) as engine, opened(tmp_path) as other:
        first = walk(engine, "anthropic", 4)[-1]
        assert first.replaced
        again = [one.prepare(body, "anthropic", at=9999.0, hint="one") for one in (engine, other)]
    with opened(tmp_path, Settings()) as later:  # settings of another day
        again.append(later.prepare(body, "anthropic", at=99999.0, hint="one"))
    assert [one.placed for one in again] == ["retried"] * 3
    assert [one.body for one in again] == [first.body] * 3


def test_two_processes_that_take_turns_go_on_with_what_each_other_decided(tmp_path: Path) -> None:
    with opened(tmp_path) as one, opened(tmp_path) as other:
        bodies = []
        for count in range(6):
            body = clients.body(worked(count), "anthropic")
            engine = (one, other)[count % 2]
            bodies.append(engine.prepare(body, "anthropic", at=10.0 * count, hint="one"))
    assert [prepared.failure for prepared in bodies] == [None] * 6
    assert [prepared.placed for prepared in bodies] == ["new", *["continued"] * 5]
    assert bodies[-1].replaced >= bodies[-2].replaced > 0


def test_two_processes_that_get_the_same_request_at_once_decide_once(tmp_path: Path) -> None:
    bodies = [clients.body(worked(count), "anthropic") for count in range(8)]
    with opened(tmp_path) as one, opened(tmp_path) as other:
        for place, body in enumerate(bodies):
            found: list[Any] = []
            both = threading.Barrier(2)

            def ask(engine: Engine, body: bytes = body, at: float = 10.0 * place) -> None:
                both.wait()  # noqa: B023 -- both threads end before the next pair begins
                found.append(engine.prepare(body, "anthropic", at=at, hint="one"))  # noqa: B023 -- as above

            threads = [threading.Thread(target=ask, args=(engine,)) for engine in (one, other)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            first, second = found
            assert (first.failure, second.failure) == (None, None)
            assert first.body == second.body
            assert sorted([first.placed, second.placed])[1] == "retried"
    assert first.replaced


def test_a_client_that_moves_its_marks_and_writes_strings_for_lists_goes_on(engine: Engine) -> None:
    engine.prepare(clients.body(worked(1), "anthropic", Manner(marks=2)), "anthropic", at=0.0, hint="one")
    prepared = engine.prepare(
        clients.body(worked(2), "anthropic", Manner(lists=False, marks=0)), "anthropic", at=1.0, hint="one"
    )
    assert (prepared.placed, prepared.shared, prepared.changed_by_client) == ("continued", 3, ())


def test_an_edit_of_an_old_message_parts_from_the_branch_there_and_is_told_of(engine: Engine) -> None:
    walk(engine, "anthropic", 3)
    edited = worked(1).then(Turn("on it", ("other",)))
    prepared = engine.prepare(clients.body(edited, "anthropic"), "anthropic", at=99.0, hint="one")
    assert (prepared.placed, prepared.shared, prepared.changed_by_client) == ("forked", 4, ("messages",))


def test_a_change_of_tools_model_or_instructions_is_told_of_and_the_conversation_goes_on(engine: Engine) -> None:
    engine.prepare(clients.body(worked(1), "anthropic"), "anthropic", at=0.0, hint="one")
    other = Manner(system="be better", model="claude-opus-4-6")
    prepared = engine.prepare(clients.body(worked(2), "anthropic", other), "anthropic", at=1.0, hint="one")
    assert (prepared.placed, prepared.changed_by_client) == ("continued", ("model", "system"))


def test_a_clients_own_compaction_begins_a_window_of_the_same_session(engine: Engine) -> None:
    before = walk(engine, "anthropic", 4)[-1]
    fresh = clients.body(Conversation("a summary of what was done"), "anthropic")
    prepared = engine.prepare(fresh, "anthropic", at=99.0, hint="one")
    assert (prepared.placed, prepared.shared, prepared.replaced) == ("compacted", 0, 0)
    assert prepared.session == before.session
    assert prepared.epoch == before.epoch + 1
    assert prepared.body == fresh


def test_a_sub_agent_begins_with_nothing_and_its_parent_goes_on_untouched(engine: Engine) -> None:
    walk(engine, "anthropic", 3)
    agent = clients.body(Conversation("look for it"), "anthropic", Manner(system="you are a searcher"))
    assert engine.prepare(agent, "anthropic", at=31.0, hint="one").placed == "new"
    prepared = engine.prepare(clients.body(worked(4), "anthropic"), "anthropic", at=40.0, hint="one")
    assert (prepared.placed, prepared.changed_by_client) == ("continued", ())


def test_without_a_hint_a_session_is_told_by_its_first_message(engine: Engine) -> None:
    first, second = walk(engine, "openai_chat", 1, hint=None)
    other = engine.prepare(clients.body(Conversation("hello"), "openai_chat"), "openai_chat", at=0.0)
    assert first.session == second.session != other.session
    assert second.placed == "continued"


def test_a_long_history_that_nobody_saw_before_works_at_once(engine: Engine) -> None:
    prepared = engine.prepare(clients.body(worked(250), "anthropic"), "anthropic", at=0.0, hint="one")
    assert prepared.failure is None
    assert prepared.messages == 501
    assert prepared.replaced > 240


def test_parallel_requests_of_one_session_and_of_several_do_not_mix(engine: Engine) -> None:
    failures: list[object] = []

    def drive(number: int) -> None:
        hint = f"session {number % 2}"
        for count in range(6):
            talk = worked(count, Conversation(f"task {number}"))
            prepared = engine.prepare(clients.body(talk, "anthropic"), "anthropic", at=10.0 * count, hint=hint)
            ours = clients.results_of(json.loads(prepared.body), "anthropic")
            if prepared.failure or len(ours) != count or prepared.session != hint:
                failures.append(prepared)

    threads = [threading.Thread(target=drive, args=(number,)) for number in range(6)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert failures == []


def test_what_no_provider_would_read_is_the_callers_to_refuse(engine: Engine) -> None:
    for body in (b"", b"[]", b'{"messages": 3}', b'{"messages": [1]}', b"[" * 100_000):
        with pytest.raises(BadInput):
            engine.prepare(body, "anthropic", at=0.0)


def test_a_request_that_is_invalid_by_itself_is_left_alone(engine: Engine) -> None:
    messages = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "Bash", "input": {}}]},
        {"role": "user", "content": "no result"},
    ]
    body = json.dumps({"model": "claude-sonnet-4-5", "max_tokens": 9, "messages": messages}).encode()
    prepared = engine.prepare(body, "anthropic", at=0.0)
    assert prepared.repaired
    assert prepared.body is body
    assert prepared.failure is None


def test_with_a_locked_store_the_last_rendering_goes_out_with_the_news_behind_it(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        last = walk(engine, "anthropic", 4)[-1]
        shown = clients.results_of(json.loads(last.body), "anthropic")
        with _locked(tmp_path / "store.db", engine):
            prepared = engine.prepare(clients.body(worked(5), "anthropic"), "anthropic", at=50.0, hint="one")
        ours = clients.results_of(json.loads(prepared.body), "anthropic")
        assert "StoreError" in (prepared.failure or "")
        assert list(ours.values()) == [*shown.values(), BIG]
        after = engine.prepare(clients.body(worked(6), "anthropic"), "anthropic", at=60.0, hint="one")
    assert (after.failure, after.placed) == (None, "continued")


@dataclass
class _locked:  # noqa: N801 -- reads as what it is
    """Another process that writes to the store and does not end."""

    path: Path
    engine: Engine

    def __enter__(self) -> None:
        blobs: Any = self.engine._blobs
        blobs._database._open_connection().execute("PRAGMA busy_timeout=50")
        self._other = sqlite3.connect(self.path, isolation_level=None)
        self._other.execute("BEGIN IMMEDIATE")

    def __exit__(self, *_: object) -> None:
        self._other.execute("ROLLBACK")
        self._other.close()


def test_a_bug_of_ours_lets_the_original_out(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    body = clients.body(worked(2), "anthropic")
    traffic = engine.session("one").traffic
    monkeypatch.setattr(traffic._stages, "run", lambda *_: 1 / 0)
    prepared = engine.prepare(body, "anthropic", at=0.0, hint="one")
    assert prepared.body is body
    assert "ZeroDivisionError" in (prepared.failure or "")


def test_what_would_be_refused_is_not_sent_and_not_kept(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A renderer gone mad: it loses a result. The checker objects, and the decision is taken back."""
    walk(engine, "anthropic", 2)
    traffic = engine.session("one").traffic
    whole = traffic._stages.renderer.render

    def lossy(call: PendingCall, layout: WindowLayout) -> Bytes:
        made = whole(call, layout)
        lost = [one.replace(b'"tool_result"', b'"text"') for one in made.items]
        return replace(made, body=call.envelope.body(lost), items=lost)

    monkeypatch.setattr(traffic._stages.renderer, "render", lossy)
    body = clients.body(worked(4), "anthropic")
    prepared = engine.prepare(body, "anthropic", at=99.0, hint="one")
    assert "would be refused" in (prepared.failure or "")
    assert check_body(json.loads(prepared.body), "anthropic") == []
    monkeypatch.undo()
    again = engine.prepare(body, "anthropic", at=99.0, hint="one")
    assert (again.placed, again.body) == ("retried", prepared.body)  # what went out instead is what was sent


@pytest.mark.parametrize("checked_whole", [0, 1 << 20])
def test_what_is_new_in_a_request_is_held_to_the_rules_however_large_it_is(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, checked_whole: int
) -> None:
    """A renderer that loses results."""
    monkeypatch.setattr(rendered_bytes, "_CHECKED_WHOLE", checked_whole)
    assert any(one.opened for one in walk(engine, "anthropic", 4))
    monkeypatch.setattr(splice, "with_texts", lambda *_: b'{"role":"user","content":[]}')
    monkeypatch.setattr(splice, "_in_shape", lambda made, *_: made)
    prepared = [
        engine.prepare(clients.body(worked(count), "anthropic"), "anthropic", at=count, hint="one")
        for count in range(5, 9)
    ]
    assert any("would be refused" in (one.failure or "") for one in prepared)
    assert not any(one.opened for one in prepared)
    assert all(check_body(json.loads(one.body), "anthropic") == [] for one in prepared)


def test_a_message_that_lost_its_shape_is_not_sent_however_large_the_request(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    big = clients.body(worked(80, text=4 * BIG), "anthropic")
    monkeypatch.setattr(splice, "with_texts", lambda item, *_: item.replace(b'"tool_result"', b'"document"', 1))
    prepared = engine.prepare(big, "anthropic", at=0.0, hint="one")
    assert len(big) > 400_000
    assert "lost its shape" in (prepared.failure or "")
    assert prepared.body is big


def test_what_may_not_be_stored_stays_in_the_request_after_a_restart(tmp_path: Path) -> None:
    call = {"type": "tool_use", "id": "a", "name": "Read", "input": {"file_path": "/app/.env"}}
    result = {"type": "tool_result", "tool_use_id": "a", "content": "KEY=1\n" * 200}
    messages = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [result]},
    ]
    for count in range(4):
        messages += [{"role": "assistant", "content": f"{count}"}, {"role": "user", "content": "on"}]
        body = json.dumps({"model": "claude-sonnet-4-5", "max_tokens": 9, "messages": messages}).encode()
        with opened(tmp_path) as engine:
            assert engine.prepare(body, "anthropic", at=0.0, hint="one").body is body


def test_outputs_enter_as_previews_in_the_clients_bytes(tmp_path: Path) -> None:
    settings = Settings(eager(batch_tokens=10**6, min_tokens=60, previews=Previews(1000, 400)))
    with opened(tmp_path, settings) as engine:
        prepared = walk(engine, "openai_responses", 2)[-1]
        assert prepared.replaced == 2
        assert len(prepared.previewed) == 1
        assert engine.recall(prepared.previewed[0].object_id) == BIG


# --- what the provider says ---


def reply(read: int, written: int, fresh: int = 5) -> dict[str, Any]:
    usage = {"cache_read_input_tokens": read, "cache_creation_input_tokens": written, "input_tokens": fresh}
    return {"type": "message", "usage": {**usage, "output_tokens": 7}}


def test_usage_calibrates_the_branch_although_the_client_sends_none_back(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        for count in range(3):
            prepared = engine.prepare(clients.body(worked(count), "anthropic"), "anthropic", at=count, hint="one")
            observed = engine.observe(prepared, reply(0, 4000 + 1000 * count))
            assert observed.failure is None
            assert observed.usage == Usage(5, 0, 4000 + 1000 * count, 0, 7)
        state = engine.session("one").journal.state_at(engine.session("one").leaf)
        assert state.floor is not None
        assert state.floor > 3000
    with opened(tmp_path) as later:
        session = later.session("one")
        assert session.journal.state_at(session.leaf).scale == state.scale


def test_a_report_of_light_text_divides_it_between_the_prompt_prefix_and_the_messages(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        fields = json.loads(clients.body(worked(3), "anthropic"))
        body = json.dumps({**fields, "system": "Be brief. " * 2000}).encode()
        prepared = engine.prepare(body, "anthropic", at=0, hint="one")
        session = engine.session("one")
        state = session.journal.state_at(session.leaf)
        sent = size(state.sent)
        assert state.prefix == pytest.approx(20_000 / 2.85, rel=0.05)
        engine.observe(prepared, reply(0, round(0.6 * (state.prefix + sent)), fresh=0))
        engine.prepare(body, "anthropic", at=1, hint="one")
        state = session.journal.state_at(session.leaf)
        assert state.scale == pytest.approx(0.6, abs=0.01)
        assert state.floor == pytest.approx(0.6 * state.prefix, rel=0.02)


def test_a_report_too_small_for_the_prompt_prefix_measures_the_prefix_anew(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        floors = []
        for count, reported in enumerate((9000, 9500, 1500, 1500)):
            prepared = engine.prepare(clients.body(worked(count), "anthropic"), "anthropic", at=count, hint="one")
            engine.observe(prepared, reply(0, reported))
            engine.prepare(clients.body(worked(count + 1), "anthropic"), "anthropic", at=count, hint="one")
            state = engine.session("one").journal.state_at(engine.session("one").leaf)
            floors.append(state.floor or 0.0)
        assert floors[0] == floors[1]
        assert floors[0] > 8000
        assert floors[2] <= 1505
        assert floors[3] == floors[2]


@pytest.mark.parametrize(
    ("second", "at", "read", "cause", "who"),
    [
        (Manner(), 10.0, 1000, "none", "nobody"),
        (Manner(), 10.0, 0, "unexplained", "provider"),
        (Manner(), 1000.0, 0, "expired", "nobody"),
        (Manner(system="be better"), 10.0, 0, "system", "client"),
        (Manner(model="claude-opus-4-6"), 10.0, 0, "model", "client"),
    ],
)
def test_a_cache_that_was_read_less_than_expected_is_explained(
    tmp_path: Path, second: Manner, at: float, read: int, cause: str, who: str
) -> None:
    with opened(tmp_path, Settings(eager(batch_tokens=10**6))) as engine:
        talk = Conversation("word " * 4000)
        asked = engine.prepare(clients.body(talk, "anthropic"), "anthropic", at=0.0, hint="one")
        first = engine.observe(asked, reply(0, 6000))
        assert first.diagnosis.cause == "first"
        longer = talk.then(Turn("well", words="and now"))
        asked = engine.prepare(clients.body(longer, "anthropic", second), "anthropic", at=at, hint="one")
        observed = engine.observe(asked, reply(6000 if read else 0, 50 if read else 6050))
        assert (observed.diagnosis.cause, observed.diagnosis.who) == (cause, who)


def test_our_own_epoch_is_named_where_it_cost_a_read(engine: Engine) -> None:
    causes = []
    for count in range(5):
        body = clients.body(worked(count, text=20 * BIG), "anthropic")
        prepared = engine.prepare(body, "anthropic", at=count, hint="one")
        full = len(prepared.body) // 3
        observed = engine.observe(prepared, reply(0, full) if prepared.opened else reply(full - 500, 500))
        causes.append((prepared.opened is not None, observed.diagnosis.cause, observed.diagnosis.who))
    assert (True, "messages", "us") in causes
    assert all(one == (True, "messages", "us") for one in causes if one[0])


def test_a_reply_without_usage_is_no_failure(engine: Engine) -> None:
    prepared = engine.prepare(clients.body(TALK, "anthropic"), "anthropic", at=0.0, hint="one")
    observed = engine.observe(prepared, {"type": "error"})
    assert (observed.usage, observed.failure) == (None, None)


# --- the library ---


class Reply:
    """As the object of an SDK."""

    def model_dump(self) -> dict[str, Any]:
        return reply(100, 50)


def test_a_library_session_takes_the_fields_of_a_request_and_gives_them(engine: Engine) -> None:
    session = engine.session("by hand")
    fields = json.loads(clients.body(TALK, "anthropic"))
    prepared = session.prepare(fields, at=1.0)
    assert prepared.request == fields
    assert prepared.api == "anthropic"
    assert session.observe(Reply()).usage == Usage(5, 100, 50, 0, 7)


def test_coroutines_have_it_done_in_a_thread(engine: Engine) -> None:
    async def both() -> tuple[bytes, int]:
        body = clients.body(TALK, "openai_chat")
        prepared = await engine.aprepare(body, "openai_chat", at=0.0, hint="one")
        observed = await engine.aobserve(prepared, Usage(10))
        session = engine.session("by hand")
        await session.aprepare(body)
        await session.aobserve({"usage": {"prompt_tokens": 9}})
        return prepared.body, observed.usage.prompt if observed.usage else 0

    assert asyncio.run(both()) == (clients.body(TALK, "openai_chat"), 10)


@pytest.mark.parametrize("api", APIS)
def test_the_format_of_a_request_is_told_by_its_fields(engine: Engine, api: Api) -> None:
    assert engine.session("by hand").prepare(clients.body(worked(1), api)).api == api


# --- tools of ours ---

PEEK = ToolOffer("peek", "Bring back what was paged out.")


def test_tools_are_offered_behind_the_clients_own_and_only_where_it_offers_any(engine: Engine) -> None:
    fields = json.loads(clients.body(TALK, "anthropic"))
    schema = {"type": "object", "properties": {"command": {}}}
    # so long that the recall tools come with the first request
    bash = {"name": "Bash", "description": "run it " * 1_000, "input_schema": schema}
    tools = [{**bash, "cache_control": {"type": "ephemeral"}}]
    body = json.dumps({**fields, "tools": tools}).encode()
    prepared = engine.prepare(body, "anthropic", at=0.0, hint="one", offers=(PEEK,))
    assert [one["name"] for one in prepared.request["tools"]] == ["Bash", "peek"]
    assert prepared.request["tools"][0] == tools[0]
    assert check_body(prepared.request, "anthropic") == []
    title = clients.body(Conversation("a title for it"), "anthropic")
    assert engine.prepare(title, "anthropic", at=0.0, hint="two", offers=(PEEK,)).body is title


@pytest.mark.parametrize("api", APIS)
def test_turns_that_the_client_did_not_see_stand_where_they_stood(tmp_path: Path, api: Api) -> None:
    merged, actual, between = _exchange(api)
    with opened(tmp_path) as engine:
        first = engine.prepare(_request(api, []), api, at=0.0, hint="one")
        assert engine.splice_answer(first, RecallExchange(merged, actual)) is None
        news = [json.loads(one) for one in merged]
        second = engine.prepare(_request(api, [*news, _words(api, "go on")]), api, at=1.0, hint="one")
        assert second.failure is None
        assert second.request == json.loads(_request(api, [*map(json.loads, actual), _words(api, "go on")]))
        assert between in second.body
    with opened(tmp_path) as later:
        assert later.prepare(_request(api, [*news, _words(api, "go on")]), api, at=2.0, hint="one").body == second.body


def test_results_of_ours_join_those_of_the_client(engine: Engine) -> None:
    ours = {"type": "tool_use", "id": "p1", "name": "peek", "input": {}}
    theirs = {"type": "tool_use", "id": "b1", "name": "Bash", "input": {}}
    answer = {"type": "tool_result", "tool_use_id": "p1", "content": "brought back"}
    merged = {"role": "assistant", "content": [theirs]}
    actual = {"role": "assistant", "content": [ours, theirs]}
    first = engine.prepare(_request("anthropic", []), "anthropic", at=0.0, hint="one")
    raw = [json.dumps(one).encode() for one in (merged, actual, answer)]
    assert engine.splice_answer(first, RecallExchange((raw[0],), (raw[1],), (raw[2],))) is None
    done = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "b1", "content": "ok"}]}
    second = engine.prepare(_request("anthropic", [merged, done]), "anthropic", at=1.0, hint="one")
    assert second.request["messages"][1] == actual
    assert [one["tool_use_id"] for one in second.request["messages"][2]["content"]] == ["p1", "b1"]
    assert check_body(second.request, "anthropic") == []


def _request(api: Api, news: list[Any]) -> bytes:
    fields = json.loads(clients.body(TALK, api, Manner(marks=0)))
    key = "input" if api == "openai_responses" else "messages"
    return json.dumps({**fields, key: [*fields[key], *news]}, separators=(",", ":")).encode()


def _words(api: Api, text: str) -> dict[str, Any]:
    return {"role": "user", "content": text if api != "openai_responses" else [{"type": "input_text", "text": text}]}


def _exchange(api: Api) -> tuple[tuple[bytes, ...], tuple[bytes, ...], bytes]:
    """An answer as the client saw it, and the turns that it was: a peek in between."""
    said: list[Any]
    if api == "anthropic":
        said = [
            {"role": "assistant", "content": [{"type": "text", "text": "one"}, _use("p1")]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "p1", "content": "brought back"}]},
            {"role": "assistant", "content": [{"type": "text", "text": "two"}]},
        ]
        merged = [{"role": "assistant", "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]}]
    elif api == "openai_chat":
        call = {"id": "p1", "type": "function", "function": {"name": "peek", "arguments": "{}"}}
        said = [
            {"role": "assistant", "content": "one", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "p1", "content": "brought back"},
            {"role": "assistant", "content": "two"},
        ]
        merged = [{"role": "assistant", "content": "onetwo"}]
    else:
        said = [
            _message("one"),
            {"type": "function_call", "call_id": "p1", "name": "peek", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "p1", "output": "brought back"},
            _message("two"),
        ]
        merged = [_message("one"), _message("two")]
    return tuple(map(_raw, merged)), tuple(map(_raw, said)), b"brought back"


def _use(name: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": name, "name": "peek", "input": {}}


def _message(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}


def _raw(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


# --- marks ---


def test_where_an_epoch_opens_a_mark_of_ours_stands_at_the_frontier_beside_the_clients(tmp_path: Path) -> None:
    marked = {}
    for manner in ("extended", "respected"):
        settings = Settings(EAGER.residency, marks=manner)
        with opened(tmp_path / manner, settings) as engine:
            found = next(one for one in walk(engine, "anthropic", 6) if one.opened and one.replaced)
            assert check_body(found.request, "anthropic") == []
            marked[manner] = found.body.count(b'"cache_control"')
    assert marked["respected"] == 1
    assert 1 < marked["extended"] <= 4


# --- clients that say everything anew ---


def test_a_client_that_changes_its_first_message_from_call_to_call_does_not_fill_the_store(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        placed = []
        for count in range(12):
            body = clients.body(worked(30, Conversation(f"it is {count} o'clock")), "anthropic")
            prepared = engine.prepare(body, "anthropic", at=10.0 * count, hint="one")
            assert prepared.failure is None
            placed.append(prepared.placed)
        assert placed[-1] == "passed"
        assert placed.count("passed") >= 7
        assert prepared.body is body
        steady = engine.prepare(
            clients.body(worked(31, Conversation("it is 11 o'clock")), "anthropic"), "anthropic", at=999.0, hint="one"
        )
        assert steady.placed == "compacted"
        assert steady.replaced


def test_a_window_that_is_full_of_what_must_stay_is_told_of(tmp_path: Path) -> None:
    settings = Settings(eager(batch_tokens=10**6), valve=Valve(window=2000))
    with opened(tmp_path, settings) as engine:
        small = clients.body(worked(0), "anthropic")
        assert not engine.prepare(small, "anthropic", at=0.0, hint="small").crowded
        large = clients.body(replace(worked(0), first="go on " * 4000), "anthropic")
        assert engine.prepare(large, "anthropic", at=0.0, hint="large").crowded
