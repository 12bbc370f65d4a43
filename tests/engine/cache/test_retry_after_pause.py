"""A client repeats a request after a pause: from then on the cache holds the prompt again."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.engine.window.test_shown_once import Talk, big

import pagein
from pagein.engine.engine import Settings
from pagein.model.messages import Usage
from pagein.policy.eviction.residency import PRICED


@pytest.mark.parametrize("repeats", [True, False])
def test_the_request_after_a_repeated_one_is_not_taken_for_cold(tmp_path: Path, repeats: bool) -> None:  # noqa: FBT001
    with pagein.open(
        tmp_path / "store.db", workspace=tmp_path, settings=Settings(replace(PRICED, shown_once=None))
    ) as engine:
        talk = Talk()

        def send(at: float, read: float) -> str | None:
            prepared = engine.prepare(talk.body(), "anthropic", at=at, hint="one", lasting=0.0)
            tokens = len(prepared.body) // 4
            engine.observe(
                prepared, Usage(fresh=3, read=int(read * tokens), written=tokens - int(read * tokens), output=40)
            )
            return prepared.opened.reason if prepared.opened is not None else None

        for number in range(8):
            talk.runs(big(number))
            send(10.0 * number, 0.9)
        if repeats:
            send(2000.0, 0.0)
        talk.runs("ok")
        assert send(2010.0, 0.9) == (None if repeats else "cold cache")
