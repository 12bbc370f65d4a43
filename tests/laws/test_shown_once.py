"""Law 4 where results are shown once: what a request left in the cache is how the next one on the branch begins.

Held over random trees of requests to the bytes that were sent, by code that shares no decision with the engine.
"""

import contextlib
import json
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.engine import wire_clients as clients
from tests.laws.test_client_requests import Run

import pagein
from pagein.engine.engine import Engine, Settings
from pagein.engine.prepared_request import PreparedRequest
from pagein.errors import BadInput
from pagein.model.entries import NoteEntry
from pagein.model.journal_notes import CachedPrefixNote, PassthroughNote, ShownOnceNote
from pagein.model.messages import Usage
from pagein.policy.eviction.presets import PRESETS
from pagein.providers.validity import Api
from pagein.providers.wire import check_body

FRONT = 20_000  # tokens of tools and instructions, as the provider reports them
BIG = "word " * 1300

TURNS = st.builds(
    clients.Turn,
    said=st.sampled_from(["let me see", "on it"]),
    results=st.lists(st.sampled_from(["ok", "word " * 250, BIG, BIG, "other " * 1100]), max_size=3).map(tuple),
    words=st.sampled_from(["", "", "", "go on"]),
)
STEPS = st.lists(
    st.one_of(
        *[st.tuples(st.just("say"), TURNS)] * 4,
        st.tuples(st.just("words"), st.sampled_from(["and this", "what about it"])),
        st.tuples(st.just("marks"), st.integers(0, 3)),
        st.tuples(st.sampled_from(["retry", "restart", "kept alive", "passed"]), st.none()),
        st.tuples(st.sampled_from(["fork", "switch", "veto", "drop", "restore"]), st.integers(0, 8)),
    ),
    min_size=6,
    max_size=18,
)


class Watch(Run):
    """What the provider has cached of each request, as far as its breakpoints tell.

    cached: the blocks up to a request's last breakpoint, by the names of its messages. once: requests that showed something once.
    """

    def __init__(self, folder: Path, api: Api, preset: str) -> None:
        self.preset = preset
        super().__init__(folder, api)
        self.cached: dict[tuple[str, ...], list[Any]] = {}
        self.whole: dict[tuple[str, ...], list[Any]] = {}
        self.last: tuple[str, ...] = ()
        self.once = self.kept = 0
        self.was_retried = False

    def opened(self) -> Engine:
        chosen = Settings(PRESETS[self.preset].residency)  # type: ignore[index]
        return pagein.open(self.folder / "store.db", workspace=self.folder, settings=chosen)

    def send(self, talk: clients.Conversation, manner: clients.Manner) -> PreparedRequest:
        prepared = super().send(talk, manner)
        tokens = len(prepared.body) // 4 + FRONT
        self.engine.observe(prepared, Usage(fresh=3, read=tokens - 500, written=500, output=40))
        return prepared

    def hold(self, body: bytes, prepared: PreparedRequest) -> None:
        assert prepared.failure is None
        theirs, ours = json.loads(body), json.loads(prepared.body)
        assert not check_body(ours, self.api)
        self.hold_lossless(clients.results_of(theirs, self.api), clients.results_of(ours, self.api), prepared)
        names = tuple(json.dumps(one) for one in blocks_of(theirs))
        blocks, marks = blocks_of(ours), marks_of(ours)
        if names in self.whole:
            assert blocks == self.whole[names]
        else:
            self.hold_answered(ours, prepared)
            parents = (names[:count] for count in range(len(names) - 1, 0, -1))
            parent = next((one for one in parents if one in self.cached), ())
            if parent and (prepared.opened is None or prepared.opened.is_uncached):
                before = self.cached[parent]
                assert blocks[: len(before)] == before, "what the parent left in the cache is not repeated (law 4)"
        left = blocks[: max(marks, default=-1) + 1]
        self.cached[names] = max(left, self.cached.get(names, []), key=len)
        self.whole[names], self.last, self.was_retried = blocks, names, prepared.placed == "retried"

    def hold_answered(self, ours: Mapping[str, Any], prepared: PreparedRequest) -> None:
        """Nothing leaves unseen: the model has answered behind each result that left."""
        paged = prepared.opened.paged if prepared.opened else ()
        self.once += prepared.opened is not None and prepared.opened.is_uncached
        answers = [place for place, one in enumerate(ours["messages"]) if one["role"] == "assistant"]
        left = {one.call_id for one in paged}
        for place, message in enumerate(ours["messages"]):
            if any(one.get("tool_use_id") in left for one in message["content"] if isinstance(one, dict)):
                assert place < answers[-1]

    def cache_all(self, note: CachedPrefixNote | PassthroughNote) -> None:
        """The whole prompt of the last request was written to the cache. Only where the session stands at it."""
        if not self.was_retried:
            self.engine.session("one").note(note)
            self.cached[self.last] = self.whole[self.last]

    def touch(self, kind: str, talk: clients.Conversation, number: int) -> None:
        ids = [name for place in range(len(talk.turns)) for name in talk.ids(place)]
        if ids:
            hand = self.engine.session("one").hand
            with contextlib.suppress(BadInput):  # it never leaves, or never left
                {"veto": hand.veto, "drop": hand.drop, "restore": hand.restore}[kind](ids[number % len(ids)])


def blocks_of(body: Mapping[str, Any]) -> list[Any]:
    return [
        [message["role"], {key: value for key, value in block.items() if key != "cache_control"}]
        for message in body["messages"]
        for block in message["content"]
    ]


def marks_of(body: Mapping[str, Any]) -> list[int]:
    blocks = [block for message in body["messages"] for block in message["content"]]
    return [place for place, block in enumerate(blocks) if "cache_control" in block]


def step(
    run: Watch, talk: clients.Conversation, kind: str, what: object, history: list[clients.Conversation]
) -> clients.Conversation:
    match kind, what:
        case "say", clients.Turn():
            return talk.then(replace(what, words=what.words or ("" if what.results else "go on")))
        case "words", str():  # the call before failed: the user says more, and no answer stands in between
            return talk if not talk.turns else talk.until(len(talk.turns) - 1).then(replace(talk.turns[-1], words=what))
        case "fork", int():
            return talk.until(what % (len(talk.turns) + 1))
        case "switch", int():
            return history[what % len(history)]
        case "kept alive", _:
            run.kept += 1
            run.cache_all(CachedPrefixNote(3600.0, kept=run.kept))
        case "passed", _:
            run.cache_all(PassthroughNote())
        case "restart", _:
            run.engine.close()
            run.engine = run.opened()
        case "veto" | "drop" | "restore", int():
            run.touch(kind, talk, what)
    return talk


@pytest.mark.parametrize("preset", ["careful", "thrifty"])
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps=STEPS)
def test_what_a_request_left_in_the_cache_is_how_the_next_one_begins(
    preset: str, steps: list[tuple[str, object]]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        run, manner = Watch(Path(folder), "anthropic", preset), clients.Manner(marked_system=True)
        talk = clients.Conversation("please do it")
        history = [talk]
        run.send(talk, manner)
        for kind, what in steps:
            if kind == "marks" and isinstance(what, int):
                manner = replace(manner, marks=what)
            talk = step(run, talk, kind, what, history)
            history.append(talk)
            run.send(talk, manner)
        run.engine.close()


def test_the_watch_sees_results_that_were_shown_once() -> None:
    with tempfile.TemporaryDirectory() as folder:
        run, talk = Watch(Path(folder), "anthropic", "careful"), clients.Conversation("please do it")
        for text in ("ok", "ok", BIG, BIG, "ok"):
            talk = talk.then(clients.Turn("on it", (text,)))
            run.send(talk, clients.Manner(marked_system=True))
        assert run.once == 2
        run.engine.close()


@pytest.mark.parametrize("api", ["openai_chat", "openai_responses", "gemini_generate_content"])
@pytest.mark.parametrize("preset", sorted(PRESETS))
def test_where_the_provider_caches_by_itself_nothing_is_shown_once(api: Api, preset: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        talk = clients.Conversation("please do it")
        chosen = Settings(PRESETS[preset].residency)  # type: ignore[index]
        with pagein.open(Path(folder) / "store.db", workspace=folder, settings=chosen) as engine:
            for turn, text in enumerate(("ok", "ok", BIG, BIG, "ok", "ok")):
                talk = talk.then(clients.Turn("on it", (text,)))
                model = "gemini-2.5-pro" if api == "gemini_generate_content" else ""
                prepared = engine.session("one").prepare(clients.body(talk, api), at=10.0 * turn, api=api, model=model)
                assert prepared.opened is None or not prepared.opened.is_uncached
                engine.session("one").observe(Usage(fresh=500, read=FRONT, written=0, output=40), prepared)
            notes = [one.body.note for one in engine.session("one").journal if isinstance(one.body, NoteEntry)]
            assert not any(isinstance(one, ShownOnceNote) for one in notes)
