"""The recommendation of `pagein tune`: chosen on the earlier sessions, judged on the later ones."""

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from pagein.model.bill import Figures, SessionBill
from pagein.replay.policies.ablation import layers_missing
from pagein.replay.results.recommendation import LEAST, SURE, WORTH, Candidate, candidates, tune

TRIED = candidates(masking=False)
NOW = TRIED[0]
BASE = 1_000_000.0


def paid(cost: float, lost: int = 0) -> Figures:
    counts = dict.fromkeys(Figures.__annotations__, 0)
    return Figures(**{**counts, "cost": cost, "usd": None, "quotes_lost": lost, "quotes_total": 100})  # type: ignore[typeddict-item]


def session(place: int, costs: Mapping[Candidate, float], lost: Mapping[Candidate, int] | None = None) -> SessionBill:
    told = {one.policy: paid(costs.get(one, 0.9 * BASE), (lost or {}).get(one, 0)) for one in TRIED}
    policies = {"append": paid(BASE), **told}
    name = f"s{place}"
    return SessionBill(
        file=name,
        id=name,
        title=name,
        project=None,
        began=float(place),
        source="x",
        agent="claude-code",
        parent=None,
        prices="generic",
        flags={},
        policies=policies,
    )


def test_each_choice_is_a_policy_of_the_replay() -> None:
    for masking in (False, True):
        found = [one.policy for one in candidates(masking=masking)]
        assert len(set(found)) == 6
        assert all(layers_missing(name) is not None for name in found)
    assert [one.words for one in TRIED[:2]] == ["careful, keep-alive off", "careful, keep-alive on"]


def test_what_saves_early_and_late_is_advised() -> None:
    better = TRIED[4]
    found = tune([session(place, {better: 0.8 * BASE + place}) for place in range(12)], TRIED, NOW)
    assert (found.advice, found.chosen, found.earlier, found.later) == (better, better, 8, 4)
    assert 0.1 < found.saving < 0.12


def test_what_saves_early_only_is_not_advised() -> None:
    lucky = TRIED[4]
    sessions = [session(place, {lucky: (0.7 if place < 8 else 0.95) * BASE}) for place in range(12)]
    found = tune(sessions, TRIED, NOW)
    assert (found.advice, found.chosen) == (NOW, lucky)
    assert "saves nothing in the later sessions" in found.why
    assert found.saving < 0


def test_too_small_a_saving_is_told_as_such() -> None:
    found = tune([session(place, {TRIED[4]: 0.899 * BASE}) for place in range(12)], TRIED, NOW)
    assert (found.advice, found.chosen) == (NOW, TRIED[4])
    assert "saves too little" in found.why


def test_settings_in_force_that_lose_quotes_are_told() -> None:
    now, better = TRIED[4], TRIED[2]
    lost = {one: 5 if one == now else 20 for one in TRIED}
    found = tune([session(place, {now: 0.5 * BASE}, lost) for place in range(12)], TRIED, now)
    assert (found.advice, found.chosen) == (now, now)
    assert found.why.endswith("thrifty, keep-alive off, which is in force, loses too many quotes")
    as_many = lost | {better: 5}
    found = tune([session(place, {now: 0.8 * BASE, better: 0.5 * BASE}, as_many) for place in range(12)], TRIED, now)
    assert found.advice == better, "a choice that loses no more than the settings in force is allowed"


def test_sessions_stand_in_the_order_of_their_beginnings() -> None:
    lucky = TRIED[4]
    sessions = [session(place, {lucky: (0.7 if place < 8 else 0.95) * BASE}) for place in range(12)]
    assert tune(sessions[::-1], TRIED, NOW) == tune(sessions, TRIED, NOW)


def test_what_loses_quotes_is_never_chosen() -> None:
    cheap, second = TRIED[4], TRIED[2]
    costs = {cheap: 0.5 * BASE, second: 0.8 * BASE}
    assert tune([session(place, costs, {cheap: 2}) for place in range(12)], TRIED, NOW).advice == second
    late = [session(place, costs, {cheap: 3 if place >= 8 else 0}) for place in range(12)]
    found = tune(late, TRIED, NOW)
    assert found.advice == NOW
    assert "loses too many quotes in the later" in found.why


def test_few_sessions_advise_nothing() -> None:
    found = tune([session(place, {TRIED[4]: 0.1 * BASE}) for place in range(LEAST - 1)], TRIED, NOW)
    assert (found.advice, found.chosen) == (NOW, None)


@given(
    st.lists(st.lists(st.floats(0.3, 1.5), min_size=len(TRIED), max_size=len(TRIED)), min_size=LEAST, max_size=30),
    st.integers(0, len(TRIED) - 1),
)
def test_a_change_always_saves_beyond_noise_on_the_later_sessions(shares: list[list[float]], at: int) -> None:
    now = TRIED[at]
    sessions = [
        session(place, {one: share * BASE for one, share in zip(TRIED, row, strict=True)})
        for place, row in enumerate(shares)
    ]
    found = tune(sessions, TRIED, now)
    if found.advice == now:
        return
    later = sessions[found.earlier :]
    saved = [one["policies"][now.policy]["cost"] - one["policies"][found.advice.policy]["cost"] for one in later]
    mean = sum(saved) / len(saved)
    spread = (sum((one - mean) ** 2 for one in saved) / (len(saved) - 1) * len(saved)) ** 0.5
    assert sum(saved) > SURE * spread * (1 - 1e-9)
    assert sum(saved) > WORTH * sum(one["policies"][now.policy]["cost"] for one in later)
