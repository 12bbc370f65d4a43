"""Results that a request shows once, in the bytes of real requests: breakpoints, stubs, retries, restarts, forks."""

import copy
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pagein
from pagein.engine.engine import Engine, Settings
from pagein.engine.prepared_request import PreparedRequest
from pagein.engine.window import shown_once
from pagein.model.entries import SHOWN_ONCE, Body, CompactionEntry, NoteEntry, RequestSent
from pagein.model.journal_notes import CachedPrefixNote, PassthroughNote, ShownOnceNote
from pagein.model.messages import Usage
from pagein.policy.eviction.residency import PRICED

MARK = {"type": "ephemeral"}
FRONT = "be good " * 3_000
OUTPUT = "test {} of {} passed\n"


def big(name: object, lines: int = 300) -> str:
    return "".join(OUTPUT.format(line, name) for line in range(lines))


class Talk:
    """A conversation of a client that marks the end of its requests, and pays by what the cache holds."""

    def __init__(self, model: str = "claude-sonnet-4-5") -> None:
        self.model = model
        self.messages: list[dict[str, Any]] = [{"role": "user", "content": [{"type": "text", "text": "make it work"}]}]
        self.calls = 0

    def work(self, *results: tuple[str, dict[str, Any], str], thinks: bool = False) -> "Talk":
        """Let the model call tools, by name, arguments and result."""
        asked: list[dict[str, Any]] = [{"type": "text", "text": f"now {len(self.messages)}"}]
        if thinks:
            asked.insert(0, {"type": "thinking", "thinking": "hm", "signature": "c2ln" * 40})
        answers: list[dict[str, Any]] = []
        for name, arguments, text in results:
            self.calls += 1
            asked.append({"type": "tool_use", "id": f"toolu_{self.calls}", "name": name, "input": arguments})
            answers.append({"type": "tool_result", "tool_use_id": f"toolu_{self.calls}", "content": text})
        self.messages += [{"role": "assistant", "content": asked}, {"role": "user", "content": answers}]
        return self

    def runs(self, *outputs: str) -> "Talk":
        return self.work(*(("Bash", {"command": f"make {place}"}, text) for place, text in enumerate(outputs)))

    def body(self, *, marked: bool = True, **fields: object) -> bytes:
        said = copy.deepcopy(self.messages)
        if marked:
            said[-1]["content"][-1]["cache_control"] = MARK
        tools = [
            {
                "name": name,
                "description": "d",
                "input_schema": {"type": "object", "properties": {key: {"type": "string"}}},
            }
            for name, key in (("Bash", "command"), ("Read", "file_path"), ("Edit", "file_path"))
        ]
        system = [{"type": "text", "text": FRONT, "cache_control": MARK}]
        whole = {"model": self.model, "max_tokens": 900, "system": system, "tools": tools, "messages": said, **fields}
        return json.dumps(whole).encode()


def ask(engine: Engine, talk: Talk, at: float, *, body: bytes | None = None) -> PreparedRequest:
    prepared = engine.prepare(talk.body() if body is None else body, "anthropic", at=at, hint="one")
    assert prepared.failure is None
    return prepared


def answered(engine: Engine, talk: Talk, at: float, *, body: bytes | None = None) -> PreparedRequest:
    """Send a request whose prompt is read from the cache but for its last part."""
    prepared = ask(engine, talk, at, body=body)
    tokens = len(prepared.body) // 4
    engine.observe(prepared, Usage(fresh=3, read=tokens - 500, written=500, output=40))
    return prepared


def marks(body: bytes) -> list[tuple[int, int]]:
    said = json.loads(body)["messages"]
    return [
        (place, block)
        for place, message in enumerate(said)
        for block, one in enumerate(message["content"])
        if "cache_control" in one
    ]


def shown(body: bytes, call: int) -> str:
    blocks = (one for message in json.loads(body)["messages"] for one in message["content"])
    return str(next(one["content"] for one in blocks if one.get("tool_use_id") == f"toolu_{call}"))


def opened(folder: Path) -> Engine:
    return pagein.open(folder / "store.db", workspace=folder, settings=Settings(PRICED))


@pytest.fixture
def begun(tmp_path: Path) -> tuple[Engine, Talk]:
    """A session whose next big output may be shown once: a size of the prompt prefix is known."""
    engine, talk = opened(tmp_path), Talk()
    answered(engine, talk.runs("ok"), 10.0)
    answered(engine, talk.runs("ok"), 20.0)
    return engine, talk


def test_an_output_stands_behind_the_last_breakpoint_and_is_a_stub_in_the_next_request(
    begun: tuple[Engine, Talk],
) -> None:
    engine, talk = begun
    first = answered(engine, talk.runs(big("one")), 30.0)
    assert shown(first.body, 3) == big("one")
    assert marks(first.body) == [(5, 1)]  # on the call, in front of its output
    second = answered(engine, talk.runs("ok"), 40.0)
    assert second.opened is not None
    assert (second.opened.reason, second.opened.calls) == (SHOWN_ONCE, ("toolu_3",))
    stub = shown(second.body, 3)
    assert ", shown once]" in stub
    name = stub.split()[1]
    assert engine.session("one").recall(name) == big("one")
    # what the request before cached is repeated, and a breakpoint stands at its end
    assert marks(second.body) == [(5, 1), (8, 0)]
    assert cached(first.body) == beginning(second.body, (5, 1))


def test_no_output_is_shown_once_beside_an_image_whose_tokens_no_estimate_counts(begun: tuple[Engine, Talk]) -> None:
    engine, talk = begun
    talk.runs(big("one"))
    talk.messages[-1]["content"].append(
        {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}}
    )
    assert marks(answered(engine, talk, 30.0).body) == [(6, 1)], "the image would be paid for twice"


@pytest.mark.parametrize("restarts", [False, True])
def test_a_client_that_returns_to_a_model_reads_what_that_model_cached_in_front_of_the_results(
    begun: tuple[Engine, Talk], tmp_path: Path, *, restarts: bool
) -> None:
    engine, talk = begun
    first = answered(engine, talk.runs(big("one")), 30.0)
    talk.model = "claude-opus-4-5"
    for at in (40.0, 50.0, 60.0):
        other = answered(engine, talk.runs("ok"), at)
        assert (5, 1) not in marks(other.body)[1:], "another model has a cache of its own"
    talk.model = "claude-sonnet-4-5"
    if restarts:
        engine.close()
        engine = opened(tmp_path)
    back = answered(engine, talk.runs("ok"), 70.0)
    assert marks(back.body) == [(5, 1), (14, 0)]
    assert cached(first.body) == beginning(back.body, (5, 1))
    assert marks(answered(engine, talk.runs("ok"), 80.0).body) == [(16, 0)]


def test_breakpoints_that_are_the_clients_own_stay_where_they_are(tmp_path: Path) -> None:
    engine = pagein.open(tmp_path / "store.db", workspace=tmp_path, settings=Settings(PRICED, marks="respected"))
    talk = Talk()
    for at in (10.0, 20.0):
        answered(engine, talk.runs("ok"), at)
    body = talk.runs(big("one")).body()
    assert marks(answered(engine, talk, 30.0, body=body).body) == marks(body)
    after = answered(engine, talk.runs("ok"), 40.0)
    assert after.opened is None
    assert shown(after.body, 3) == big("one")


def cached(body: bytes) -> list[Any]:
    """The messages up to the last breakpoint."""
    return beginning(body, marks(body)[-1])


def beginning(body: bytes, last: tuple[int, int]) -> list[Any]:
    said: list[Any] = json.loads(body)["messages"][: last[0] + 1]
    said[-1]["content"] = said[-1]["content"][: last[1] + 1]
    for message in said:
        for one in message["content"]:
            one.pop("cache_control", None)
    return said


def fully_marked(talk: Talk) -> bytes:
    """A request with four breakpoints: tools, instructions, and the two newest messages of the user."""
    asked = json.loads(talk.body())
    asked["tools"][-1]["cache_control"] = MARK
    asked["messages"][-3]["content"][-1]["cache_control"] = MARK
    return json.dumps(asked).encode()


def test_more_parallel_outputs_than_the_look_back_are_read_over_by_a_breakpoint_also_of_a_client_with_four(
    begun: tuple[Engine, Talk],
) -> None:
    engine, talk = begun
    first = answered(engine, talk.runs(*(big(place) for place in range(25))), 30.0, body=fully_marked(talk))
    assert marks(first.body)[-1] == (5, 25)
    second = answered(engine, talk.runs("ok"), 40.0, body=fully_marked(talk))
    assert second.opened is not None
    assert marks(second.body) == [(5, 25), (8, 0)]
    assert ask(engine, talk, 41.0, body=fully_marked(talk)).body == second.body


def test_breakpoints_that_are_to_be_respected_stay_behind_the_outputs(tmp_path: Path) -> None:
    settings = Settings(PRICED, marks="respected")
    with pagein.open(tmp_path / "store.db", workspace=tmp_path, settings=settings) as engine:
        talk = Talk()
        for at, output in ((10.0, "ok"), (20.0, "ok"), (30.0, big("one"))):
            sent = answered(engine, talk.runs(output), at)
        assert marks(sent.body) == [(6, 0)]


def test_a_retry_is_the_same_request_also_in_another_process(begun: tuple[Engine, Talk], tmp_path: Path) -> None:
    engine, talk = begun
    first = ask(engine, talk.runs(big("one")), 30.0)
    assert ask(engine, talk, 31.0).body == first.body
    engine.close()
    with opened(tmp_path) as other:
        again = ask(other, talk, 32.0)
        assert (again.placed, again.body) == ("retried", first.body)
        following = ask(other, talk.runs("ok"), 40.0)
        assert following.opened is not None
        assert following.opened.reason == SHOWN_ONCE
        assert ask(other, talk, 41.0).body == following.body


def test_of_several_results_the_breakpoint_stands_in_front_of_the_first_that_goes(begun: tuple[Engine, Talk]) -> None:
    engine, talk = begun
    first = answered(engine, talk.runs("short", big("one"), big("two")), 30.0)
    assert marks(first.body) == [(6, 0)]  # on the short result
    second = answered(engine, talk.runs("ok"), 40.0)
    assert second.opened is not None
    assert second.opened.calls == ("toolu_4", "toolu_5")
    assert shown(second.body, 3) == "short"


def test_a_read_of_a_file_and_a_failure_stay(begun: tuple[Engine, Talk]) -> None:
    engine, talk = begun
    text = "".join(f"{line:6}\tline {line}\n" for line in range(1, 500))
    first = answered(engine, talk.work(("Read", {"file_path": "/w/a.py"}, text)), 30.0)
    assert marks(first.body) == [(6, 0)]
    talk.runs(big("one"))
    talk.messages[-1]["content"][0]["is_error"] = True
    assert marks(answered(engine, talk, 40.0).body) == [(8, 0)]
    last = answered(engine, talk.runs("ok"), 50.0)
    assert last.opened is None


def test_a_request_without_a_breakpoint_at_its_end_shows_nothing_once(begun: tuple[Engine, Talk]) -> None:
    engine, talk = begun
    talk.runs(big("one"))
    answered(engine, talk, 30.0, body=talk.body(marked=False))
    following = answered(engine, talk.runs("ok"), 40.0)
    assert following.opened is None
    talk.runs(big("two"))
    answered(engine, talk, 50.0, body=talk.body(marked=False, cache_control=MARK))  # the provider marks the end itself
    assert answered(engine, talk.runs("ok"), 60.0).opened is None


def test_a_short_prompt_and_a_model_that_binds_its_thinking_show_nothing_once(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        talk = Talk("claude-opus-5-5")
        for turn in range(4):
            talk.work(("Bash", {"command": "make"}, big(turn)), thinks=True)
            prepared = answered(engine, talk, 10.0 * turn)
            assert marks(prepared.body)[-1] == (len(talk.messages) - 1, 0)


def test_the_setting_forbids_it_and_sets_the_size(tmp_path: Path) -> None:
    for least, once in ((None, False), (100_000, False), (300, True)):
        chosen = Settings(replace(PRICED, shown_once=least))
        with pagein.open(tmp_path / f"{least}.db", workspace=tmp_path, settings=chosen) as engine:
            talk = Talk()
            for turn in range(3):
                answered(engine, talk.runs("ok"), 10.0 * turn)
            first = answered(engine, talk.runs(big("one", 120)), 40.0)
            assert (marks(first.body)[-1] == (7, 1)) == once
            assert (answered(engine, talk.runs("ok"), 50.0).opened is not None) == once


def test_a_keep_alive_request_in_between_keeps_the_output(begun: tuple[Engine, Talk]) -> None:
    """It wrote the whole prompt to the cache: a stub would make the provider write it again."""
    engine, talk = begun
    answered(engine, talk.runs(big("one")), 30.0)
    session = engine.session("one")
    session.note(CachedPrefixNote(3600.0, kept=1))
    assert answered(engine, talk.runs("ok"), 40.0).opened is None


def test_an_output_stays_that_no_answer_of_the_model_followed(begun: tuple[Engine, Talk]) -> None:
    """The call failed, and the client goes on with other words: nobody has seen the output yet."""
    engine, talk = begun
    ask(engine, talk.runs(big("one")), 30.0)
    talk.messages.append({"role": "user", "content": [{"type": "text", "text": "are you there?"}]})
    following = answered(engine, talk, 40.0)
    assert following.opened is None
    assert shown(following.body, 3) == big("one")


@pytest.mark.parametrize(
    "between",
    [CompactionEntry(2), RequestSent(0, 7, 30.0), NoteEntry.of(PassthroughNote())],
    ids=lambda one: type(one).__name__,
)
def test_a_compaction_another_request_or_an_unmodified_retry_in_between_keeps_the_output(between: Body) -> None:
    note = ShownOnceNote(("toolu_3",), 500.0)
    after = shown_once.step(shown_once.NOTHING_SHOWN, NoteEntry.of(note))
    assert after.note == note
    assert shown_once.step(after, between).note is None


def test_a_pinned_output_stays(begun: tuple[Engine, Talk]) -> None:
    engine, talk = begun
    answered(engine, talk.runs(big("one")), 30.0)
    engine.session("one").hand.veto("toolu_3")
    following = answered(engine, talk.runs("ok"), 40.0)
    assert following.opened is None
    assert shown(following.body, 3) == big("one")


def test_a_fork_before_the_output_knows_nothing_of_it(begun: tuple[Engine, Talk]) -> None:
    engine, talk = begun
    before = copy.deepcopy(talk)
    answered(engine, talk.runs(big("one")), 30.0)
    other = answered(engine, before.runs("another way"), 40.0)
    assert (other.placed, other.opened) == ("forked", None)
    assert answered(engine, talk.runs("ok"), 50.0).opened is not None  # the first branch goes on as if alone


def test_it_is_journaled_with_its_request_and_only_if_the_breakpoint_moved(begun: tuple[Engine, Talk]) -> None:
    engine, talk = begun
    answered(engine, talk.runs(big("one")), 30.0)
    journal = engine.session("one").journal
    notes = [one.body.note for one in journal.branch(engine.session("one").leaf) if isinstance(one.body, NoteEntry)]
    found = [one for one in notes if isinstance(one, ShownOnceNote)]
    assert [one.calls for one in found] == [("toolu_3",)]
    assert found[0].saved > 0


_SIZES = st.sampled_from((3, 60, 150, 400))


@settings(max_examples=25, deadline=None)
@given(
    turns=st.lists(st.lists(st.tuples(st.sampled_from(("Bash", "Read")), _SIZES), min_size=1, max_size=4), max_size=9)
)
def test_what_a_request_caches_is_how_the_next_begins(
    turns: list[list[tuple[str, int]]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Law 4 for a provider that compares bytes: up to the last breakpoint, unless an epoch rewrites the window."""
    folder = tmp_path_factory.mktemp("once")
    with opened(folder) as engine:
        talk, before, at = Talk(), None, 0.0
        for place, turn in enumerate(([("Bash", 3)], [("Bash", 3)], *turns)):
            arguments = {"Bash": {"command": "make"}, "Read": {"file_path": f"/w/{place}.py"}}
            talk.work(*((name, arguments[name], big((place, at), lines)) for name, lines in turn))
            at += 10.0
            now = answered(engine, talk, at)
            places = marks(now.body)
            assert 0 < len(places) <= 3
            if before is not None and (now.opened is None or now.opened.is_uncached):
                assert cached(before.body) == beginning(now.body, marks(before.body)[-1])
            before = now
