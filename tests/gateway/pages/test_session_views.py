"""A repeated look into a session costs only the news since the last look."""

import json
from pathlib import Path

from tests.call_counts import counted

import pagein
from pagein.engine.engine import Engine, Settings
from pagein.gateway.pages.session_views import EngineLooker
from pagein.policy.eviction.quote_odds import QuoteOdds
from pagein.policy.eviction.residency import Residency
from pagein.policy.eviction.residency_rules import ResidencyRules, judged_reads
from pagein.testing.eager_residency import eager

EAGER = Settings(eager(batch_tokens=600, keep_calls=1, min_tokens=60))


def requests(engine: Engine, first: int, last: int, tool: str = "Bash", argument: str = "command") -> None:
    """Turns of one session, each with a result that is to leave."""
    messages: list[dict[str, object]] = [{"role": "user", "content": "go on"}]
    for turn in range(last):
        call = {"type": "tool_use", "id": f"c{turn}", "name": tool, "input": {argument: f"make {turn}"}}
        result = {"type": "tool_result", "tool_use_id": f"c{turn}", "content": f"line of {turn}\n" * 60}
        messages += [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
        if turn >= first:
            tools = [{"name": tool, "input_schema": {"type": "object", "properties": {argument: {"type": "string"}}}}]
            body = {"model": "claude-sonnet-4-5", "max_tokens": 9, "tools": tools, "messages": messages}
            assert engine.prepare(json.dumps(body).encode(), "anthropic", at=10.0 * turn, hint="one").failure is None


def test_a_poll_behind_which_nothing_happened_looks_at_nothing_and_one_behind_a_turn_at_that_turn(
    tmp_path: Path,
) -> None:
    with pagein.open(tmp_path / "store.db", workspace=tmp_path, settings=EAGER) as engine:
        looker = EngineLooker(engine, lambda _: ())
        requests(engine, 0, 30)
        first, calls = counted(lambda: looker.inside("one"))
        assert calls["Journal.entry"] > 60
        assert len(first["epochs"]) > 3
        again, calls = counted(lambda: looker.inside("one"))
        assert again == first
        assert calls["Journal.entry"] == calls["pieces_since"] == 0
        requests(engine, 30, 31)
        _, calls = counted(lambda: looker.inside("one"))
        assert 0 < calls["Journal.entry"] < 12


def test_what_is_told_piece_by_piece_is_what_is_told_at_once(tmp_path: Path) -> None:
    with pagein.open(tmp_path / "store.db", workspace=tmp_path, settings=EAGER) as engine:
        looker = EngineLooker(engine, lambda _: ())
        for turn in range(24):
            requests(engine, turn, turn + 1)
            assert looker.inside("one") == EngineLooker(engine, lambda _: ()).inside("one")


def test_the_reasons_for_reads_that_an_edit_will_hardly_quote_stand_with_their_epoch(tmp_path: Path) -> None:
    never = QuoteOdds(-16_000, (("since edit", -10),), (0,))
    judging = Residency(ResidencyRules(judged_reads(never)), 60, None, None, batch_tokens=600)
    with pagein.open(tmp_path / "store.db", workspace=tmp_path, settings=Settings(judging)) as engine:
        requests(engine, 0, 12, "Read", "file_path")
        epochs = EngineLooker(engine, lambda _: ()).inside("one")["epochs"]
    assert epochs
    assert all(len(epoch["unlikely"]) == epoch["out"] for epoch in epochs)
    assert all(one.endswith(" calls without an edit") for epoch in epochs for one in epoch["unlikely"])
