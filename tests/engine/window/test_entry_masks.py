"""Very big arguments that are masked before any request shows them, in the bytes of real requests."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.engine.window.test_shown_once import Talk, answered, big

import pagein
from pagein.engine.engine import Engine, Settings
from pagein.model.entries import MASKED_ON_ENTRY
from pagein.model.journal_notes import CachedPrefixNote, PassthroughNote
from pagein.model.messages import Usage
from pagein.policy.eviction.argument_masks import AT_ONCE
from pagein.policy.eviction.residency import PRICED
from pagein.providers.wire.tool_offers import ToolOffer

MASKING = replace(PRICED, arguments=AT_ONCE)
TEXT = big("file", 1_200)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with pagein.open(tmp_path / "store.db", workspace=tmp_path, settings=Settings(MASKING)) as one:
        yield one


def begun(engine: Engine) -> Talk:
    talk = Talk()
    answered(engine, talk.runs("ok"), 10.0)
    answered(engine, talk.runs("ok"), 20.0)
    return talk


def write(talk: Talk, text: str) -> Talk:
    return talk.work(("Write", {"file_path": "/w/a.py", "content": text}, "written"))


def written(body: bytes, call: int) -> str:
    blocks = (one for message in json.loads(body)["messages"] for one in message["content"])
    return str(next(one["input"]["content"] for one in blocks if one.get("id") == f"toolu_{call}"))


def test_a_very_big_text_is_masked_in_the_first_request_that_has_it(engine: Engine) -> None:
    talk = begun(engine)
    before = answered(engine, talk.runs("ok"), 30.0)
    first = answered(engine, write(talk, TEXT), 40.0)
    assert first.opened is not None
    assert (first.opened.reason, first.opened.calls) == (MASKED_ON_ENTRY, ("toolu_4",))
    assert first.opened.is_uncached
    mask = written(first.body, 4)
    assert "written text - 1,201 lines" in mask
    assert json.loads(engine.session("one").recall(mask.split()[1]))["content"] == TEXT
    # what the provider has cached stays as it was
    sent, now = json.loads(before.body)["messages"], json.loads(first.body)["messages"]
    for message in (*sent, *now):
        for block in message["content"]:
            block.pop("cache_control", None)
    assert now[: len(sent)] == sent
    # and so does the mask
    second = answered(engine, talk.runs("ok"), 50.0)
    assert second.opened is None
    assert written(second.body, 4) == mask


def test_the_mask_is_capital_for_a_later_rewrite(engine: Engine) -> None:
    def saved() -> float:
        session = engine.session("one")
        return session.journal.state_at(session.leaf).account.saved

    talk = begun(engine)
    before = saved()
    answered(engine, write(talk, TEXT), 30.0)
    assert saved() - before > len(TEXT) / 4 * 0.5


def test_a_smaller_text_and_a_failed_call_enter_whole(engine: Engine) -> None:
    talk = begun(engine)
    assert answered(engine, write(talk, TEXT[:19_000]), 30.0).opened is None
    write(talk, TEXT).messages[-1]["content"][0]["is_error"] = True
    assert answered(engine, talk, 40.0).opened is None


@pytest.mark.parametrize(
    "note", [lambda: CachedPrefixNote(3600.0, kept=1), PassthroughNote], ids=["keep-alive", "unmodified"]
)
def test_a_text_that_a_request_in_between_may_have_cached_enters_whole(
    engine: Engine, note: Callable[[], CachedPrefixNote | PassthroughNote]
) -> None:
    talk = begun(engine)
    engine.session("one").note(note())
    first = answered(engine, write(talk, TEXT), 30.0)
    assert first.opened is None
    assert written(first.body, 3) == TEXT
    assert answered(engine, write(talk, TEXT), 40.0).opened is not None  # the request after it is as any other


def test_texts_stay_where_no_hook_guards_them_and_where_the_size_is_not_set(tmp_path: Path) -> None:
    for number, rules in enumerate((None, replace(AT_ONCE, guarded=True), replace(AT_ONCE, on_entry=None))):
        chosen = Settings(replace(PRICED, arguments=rules))
        with pagein.open(tmp_path / f"{number}.db", workspace=tmp_path, settings=chosen) as engine:
            assert answered(engine, write(begun(engine), TEXT), 30.0).opened is None


def test_a_text_enters_whole_while_the_recall_tools_wait_for_the_first_eviction(engine: Engine) -> None:
    """They would stand in front of the whole prompt, which the provider would write again."""
    talk, offers = Talk(), (ToolOffer("peek", "Show it."), ToolOffer("search", "Find it."))
    for at in (10.0, 20.0, 30.0):
        talk = talk.runs("ok") if at < 30.0 else write(talk, TEXT)
        prepared = engine.prepare(
            talk.body(system="be good", tools=[{"name": "Bash", "input_schema": {"type": "object"}}]),
            "anthropic",
            at=at,
            hint="one",
            offers=offers,
        )
        assert prepared.failure is None
        engine.observe(prepared, Usage(fresh=3, read=len(prepared.body) // 4, written=500, output=40))
    assert prepared.opened is None
    assert written(prepared.body, 3) == TEXT
