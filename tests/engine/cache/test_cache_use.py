"""A client of Messages that marks nothing is decided for at the price of no cache, from mark to mark and through restarts."""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.engine import wire_clients as clients
from tests.engine.wire_clients import Conversation, Manner, Turn

import pagein
from pagein.engine.cache.cache_inputs import (
    FROM_THE_START,
    CacheUse,
    has_marks,
    marks_front,
    prices_without_cache,
    step,
)
from pagein.engine.engine import Engine
from pagein.engine.intake.message_chain import transcript
from pagein.model.entries import NoteEntry, RequestSent
from pagein.model.journal_notes import CacheMarksNote
from pagein.policy.economics.rewrite_cost import (
    Account,
    Moment,
    account_after_call,
    economics_at_entrance,
    rewrite_cost,
)
from pagein.providers.validity import Api
from pagein.providers.wire.request_body import open_body

MODEL = "claude-sonnet-4-5"
MARK = {"type": "ephemeral"}
MARKED, UNMARKED = Manner(marks=1, model=MODEL), Manner(marks=0, model=MODEL)
FRONT = Manner(marks=0, model=MODEL, marked_system=True)
UNCACHED = CacheUse(marks=False)


def marks(body: dict[str, Any], api: Api = "anthropic") -> bool:
    envelope = open_body(json.dumps(body).encode(), api)
    return has_marks(envelope.fields, transcript(envelope.items, api))


def asked(**fields: object) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(clients.body(Conversation("please"), "anthropic", UNMARKED))
    return body | fields


def test_only_a_mark_lets_the_cache_take_part_in_a_request_of_messages() -> None:
    assert not marks(asked())
    assert marks(asked(cache_control=MARK))
    assert marks(json.loads(clients.body(Conversation("please"), "anthropic", MARKED)))


SYSTEM = {"system": [{"type": "text", "text": "be good", "cache_control": MARK}]}
TOOLS = {"tools": [{"name": "a", "input_schema": {"type": "object"}, "cache_control": MARK}]}


@pytest.mark.parametrize("front", [SYSTEM, TOOLS, SYSTEM | TOOLS])
def test_marks_in_front_of_the_conversation_let_the_cache_hold_nothing_behind_them(front: dict[str, Any]) -> None:
    envelope = open_body(json.dumps(asked(**front)).encode(), "anthropic")
    script = transcript(envelope.items, "anthropic")
    assert not has_marks(envelope.fields, script)
    assert marks_front(envelope.fields, script)
    whole = json.loads(clients.body(Conversation("please"), "anthropic", MARKED)) | front
    assert marks(whole)


def test_what_stands_in_front_has_the_price_of_the_cache_and_the_conversation_its_full_price() -> None:
    found, plain = prices_without_cache(MODEL, None, UNCACHED, front=True), prices_without_cache(MODEL, None, UNCACHED)
    assert found is not None
    assert plain is not None
    assert (found.read, found.write, found.uncached) == (1.0, 1.0, 0.0)
    moment = Moment(1100.0, 1000.0, 10_000, 500, floor=20_000.0)
    bill, dearer = (account_after_call(Account(), moment, one).bill for one in (found, plain))
    assert bill == pytest.approx(0.1 * 20_000 + 10_000)
    assert dearer == pytest.approx(20_000 + 10_000)
    assert rewrite_cost(moment, found, 2_000, 1_000) == 0.0
    begun = economics_at_entrance(found, 700.0)
    assert begun.entrance == 0.0  # our tools are written once, with those that are marked
    assert rewrite_cost(moment, begun, 2_000, 1_000) == pytest.approx((2.0 - 0.1) * 20_000)


def test_a_provider_that_tells_of_what_stands_in_front_tells_of_nothing_behind_it() -> None:
    front = step(FROM_THE_START, NoteEntry.of(CacheMarksNote("front")))
    told = step(front, NoteEntry("request.answered", '{"fresh":5000,"read":20000}'))
    assert not told.told
    assert step(front, NoteEntry("request.answered", '{"fresh":3,"read":20000,"written":5000}')).told
    again = step(step(front, NoteEntry("request.answered", '{"fresh":9,"written":20000}')), NoteEntry("request.answered", '{"fresh":900,"read":20000}'))  # fmt: skip
    assert not again.told


def test_what_only_looks_like_a_mark_is_none() -> None:
    null = [{"type": "text", "text": "be good", "cache_control": None}]
    said = [{"role": "user", "content": 'I read "cache_control": {"type": "ephemeral"} in it'}]
    assert not marks(asked(system=null, messages=said, cache_control=None))


@pytest.mark.parametrize("api", ["openai_chat", "openai_responses"])
def test_other_formats_need_no_marks(api: Api) -> None:
    assert marks(json.loads(clients.body(Conversation("please"), api, UNMARKED)), api)


@pytest.mark.parametrize(("model", "waits"), [(MODEL, True), ("gpt-5.6", False), ("deepseek-v4-pro", False)])
def test_only_a_cache_that_waits_for_marks_misses_them(model: str, waits: bool) -> None:  # noqa: FBT001 -- a case
    found = prices_without_cache(model, None, UNCACHED)
    assert (found is not None) is waits
    if found is not None:
        assert (found.read, found.write, found.uncached) == (1.0, 1.0, 0.0)


def test_a_provider_that_tells_of_a_cache_is_believed() -> None:
    told = step(UNCACHED, NoteEntry("request.answered", '{"fresh":5,"read":2000}'))
    assert prices_without_cache(MODEL, None, told) is None
    assert prices_without_cache(MODEL, None, step(UNCACHED, NoteEntry("request.answered", '{"fresh":5}'))) is not None


def test_what_the_cache_may_hold_still_has_its_price_until_nobody_keeps_it_any_more() -> None:
    stopped = step(step(FROM_THE_START, RequestSent(0, 3, 1000.0)), NoteEntry.of(CacheMarksNote("unmarked")))
    now, later, unknown = (prices_without_cache(MODEL, at, stopped) for at in (1100.0, 1000.0 + 3601.0, None))
    assert now is not None
    assert later is not None
    moment = Moment(1100.0, 1000.0, 10_000, 0)
    assert rewrite_cost(moment, now, 2_000, 1_000) > 1.15 * 7_000
    assert rewrite_cost(moment, later, 2_000, 1_000) == 0.0
    assert unknown == now


def test_a_request_without_marks_leaves_nothing_to_go_back_to() -> None:
    assert step(UNCACHED, RequestSent(0, 3, 1000.0)) == UNCACHED


# --- sessions ---


def talks(count: int) -> Iterator[Conversation]:
    talk = Conversation("please do it")
    for number in range(count):
        talk = talk.then(Turn(f"part {number}", (f"{number} " + "word " * 1200,)))
        yield talk


def walked(engine: Engine, manners: Sequence[Manner], start: int = 0, gap: float = 10.0) -> list[Any]:
    """The requests of a conversation from this one on."""
    asking = enumerate(zip(talks(len(manners)), manners, strict=True))
    bodies = [(place, clients.body(talk, "anthropic", manner)) for place, (talk, manner) in asking]
    return [engine.prepare(one, "anthropic", at=gap * place, hint="one") for place, one in bodies[start:]]


def noted(engine: Engine) -> list[str]:
    """What the journal of the session says of marks."""
    journal = engine.session("one").journal
    bodies = [one.body for one in journal.newest(len(journal))]
    return [one.data for one in bodies if isinstance(one, NoteEntry) and isinstance(one.note, CacheMarksNote)]


@pytest.mark.parametrize(
    ("manners", "told"),
    [
        ([MARKED] * 12, []),
        ([UNMARKED] * 4, ["unmarked"]),
        ([MARKED, MARKED, UNMARKED, UNMARKED, MARKED], ["unmarked", "marked"]),
        ([FRONT] * 3, ["front"]),
        ([FRONT, UNMARKED, FRONT, MARKED, FRONT], ["front", "unmarked", "front", "marked", "front"]),
    ],
)
def test_only_what_changes_is_journaled(manners: list[Manner], told: list[str], tmp_path: Path) -> None:
    with pagein.open(tmp_path / "s", workspace=tmp_path) as engine:
        walked(engine, manners)
        assert noted(engine) == told


def test_results_leave_without_marks_as_soon_as_they_are_old(tmp_path: Path) -> None:
    first = {}
    for name, manner in (("marked", MARKED), ("unmarked", UNMARKED), ("front", FRONT)):
        with pagein.open(tmp_path / name, workspace=tmp_path) as engine:
            made = walked(engine, [manner] * 14)
            first[name] = next((place for place, one in enumerate(made) if one.rewrites), 99)
    assert first["unmarked"] == first["front"] == 5
    assert first["marked"] > first["unmarked"]


@pytest.mark.parametrize(
    "manners",
    [
        [UNMARKED] * 16,
        [UNMARKED] * 8 + [MARKED] * 8,
        [MARKED] * 8 + [UNMARKED] * 8,
        [MARKED, UNMARKED] * 8,
        [FRONT, MARKED, FRONT, UNMARKED] * 4,
    ],
)
def test_another_process_goes_on_with_the_same_bytes(manners: list[Manner], tmp_path: Path) -> None:
    with pagein.open(tmp_path / "whole", workspace=tmp_path) as engine:
        whole = [one.body for one in walked(engine, manners)]
    parts: list[bytes] = []
    for start in range(0, len(manners), 3):
        with pagein.open(tmp_path / "parts", workspace=tmp_path) as engine:
            parts += [one.body for one in walked(engine, manners[: start + 3], start)]
            again = [one.body for one in walked(engine, manners[: start + 3])]
            assert again[start:] == parts[start:]
    assert [named(one) for one in parts] == [named(one) for one in whole]


def named(body: bytes) -> bytes:
    """A body without what only its store knows."""
    return re.sub(rb"pg-[0-9a-f-]+", b"pg", body)


def test_a_client_that_begins_to_mark_has_a_window_that_stays(tmp_path: Path) -> None:
    with pagein.open(tmp_path / "s", workspace=tmp_path) as engine:
        made = walked(engine, [UNMARKED] * 8 + [MARKED] * 6)
    assert all(one.opened is not None for one in made[5:8])
    assert not any(one.rewrites for one in made[9:])


def test_a_client_that_stops_marking_pays_by_letting_results_leave(tmp_path: Path) -> None:
    with pagein.open(tmp_path / "s", workspace=tmp_path) as engine:
        made = walked(engine, [MARKED] * 8 + [UNMARKED] * 20, gap=240.0)
    assert not any(one.rewrites for one in made[:8])
    assert all(one.opened is not None for one in made[-3:])
