"""Results shown once, through the gateway and over HTTP: the provider bills less, refuses nothing, and never sees a rewrite."""

import json
import urllib.request
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.engine.window.test_shown_once import Talk, big, marks, shown

from pagein.engine.engine import Settings
from pagein.policy.eviction.residency import PRICED
from pagein.providers.tokens.counters import ratio_counter
from pagein.simulator.provider_thread import SimulatedProvider
from pagein.simulator.records import ProviderBill
from pagein.testing.recorded_time import GatewayTerms, SetClock, gateway_at

NOON = 1_790_000_000.0
OUTPUTS = ("ok", "ok", *(part for turn in range(4) for part in (big(turn), "ok")))


def driven(settings: Settings, folder: Path) -> tuple[ProviderBill, list[bytes], list[dict[str, Any]]]:
    """The bill of a session of a client with known tools, the requests that arrived, and the usages of the answers."""
    clock, talk, usages = SetClock(NOON), Talk(), list[dict[str, Any]]()
    with (
        SimulatedProvider([[{"text": f"now {turn}"}] for turn in range(len(OUTPUTS))]) as provider,
        gateway_at(provider.url, folder, GatewayTerms(clock, settings, ratio_counter(talk.model))) as address,
    ):
        for turn, output in enumerate(OUTPUTS):
            clock.set(NOON + 10.0 * turn)
            body = talk.runs(output).body(metadata={"user_id": "user_x_account__session_abc"})
            headers = {"content-type": "application/json", "x-api-key": "k", "anthropic-version": "2023-06-01"}
            request = urllib.request.Request(address + "/v1/messages", body, headers)  # noqa: S310 -- loopback
            with urllib.request.urlopen(request) as answer:  # noqa: S310 -- loopback
                usages.append(json.loads(answer.read())["usage"])
        return provider.bill(), [json.dumps(one.body).encode() for one in provider.requests], usages


def test_a_session_with_big_outputs_costs_less_and_rewrites_nothing(tmp_path: Path) -> None:
    ours, sent, usages = driven(Settings(PRICED), tmp_path / "ours")
    theirs, _, _ = driven(Settings(replace(PRICED, shown_once=None)), tmp_path / "theirs")
    assert (ours.refused, theirs.refused) == (0, 0)
    assert ours.bit < theirs.bit
    first, following = sent[2], sent[3]
    assert shown(first, 3) == big(0)
    assert marks(first) == [(5, 1)]
    assert "shown once" in shown(following, 3)
    for before, now in pairwise(usages):  # what one call left in the cache, the next one reads
        left = before["cache_read_input_tokens"] + before["cache_creation_input_tokens"]
        assert now["cache_read_input_tokens"] >= left
