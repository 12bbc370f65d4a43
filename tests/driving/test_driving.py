"""A session that is driven through the gateway over HTTP costs what a replay of the same requests says."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from pagein.model.messages import Recorded
from pagein.replay.readers import Source, find, read
from pagein.testing.driving import Bills, billed

ROOT = Path(__file__).resolve().parents[2]
DEMO = ROOT / "examples" / "demo-session.jsonl.gz"
MINI = ROOT.parent / "shared" / "corpus" / "mini"
# OpenAI's formats have what a model calls as text of its own making, so answers differ by a few tokens
SAME = 0.005
# The gateway offers tools of its own in every request, sees re-reads, and is told of usage after each call; a replay does not.
ALIKE = 0.03


def entries_of(path: Path) -> Sequence[Recorded]:
    source = next(iter(find([path])))
    assert isinstance(source, Source)
    return list(next(iter(read(source))).entries)


def check(found: Bills) -> None:
    append, pagein = found.replayed
    assert found.refused == 0
    assert append == pytest.approx(found.direct, rel=SAME)
    assert found.through / found.direct == pytest.approx(pagein / append, abs=ALIKE)


@pytest.mark.slow
def test_the_demo_costs_over_http_what_its_replay_says(tmp_path: Path) -> None:
    found = billed(entries_of(DEMO), tmp_path)
    check(found)
    assert found.through < found.direct


@pytest.mark.slow
@pytest.mark.corpus
@pytest.mark.parametrize(
    "name",
    [
        "nimbus__ses_31d09e82bffeXxzegJPtjeAK7u",
        "entireio-cli__1a289c77-a9da-491d-954a-2df7f0dd6a17-sub-a3d8042",
        "entireio-cli__df93cd9c-8436-49e5-af80-61126ae55a83",
        "context-evaluator__598cc9c4-cc88-410f-a833-53348451208e",
    ],
)
def test_a_recorded_session_costs_over_http_what_its_replay_says(name: str, tmp_path: Path) -> None:
    path = MINI / f"{name}.jsonl.gz"
    if not path.exists():
        pytest.skip("the recorded sessions are not here")
    check(billed(entries_of(path), tmp_path))
