"""Which gateway an agent is pointed to."""

from dataclasses import replace
from pathlib import Path

import pytest

from pagein.gateway.announced_store import AnnouncedStore, announce
from pagein.gateway.http.access_token import ensure_token
from pagein.gateway.launch.gateway_search import (
    GatewayPlaces,
    GatewayWish,
    agents_url,
    is_running,
    known_gateways,
    running_gateway,
)
from pagein.simulator import SimulatedProvider

TOLD = AnnouncedStore("/s.pagein", "/work", "http://127.0.0.1:8790", 1.0)


def test_a_gateway_that_other_machines_reach_gets_its_token_with_each_call(tmp_path: Path) -> None:
    token = ensure_token(tmp_path / "token")
    assert agents_url(TOLD, tmp_path / "token") == TOLD.url
    assert agents_url(replace(TOLD, is_open=True), tmp_path / "token") == f"{TOLD.url}/t-{token}"


def test_an_address_of_a_gateway_is_known_by_any_name_and_path(tmp_path: Path) -> None:
    with announce(tmp_path, replace(TOLD, url="http://127.0.0.1:9999")):
        is_gateway = known_gateways(TOLD.url, tmp_path)
        assert is_gateway("http://localhost:8790/v1")
        assert is_gateway("http://127.0.0.1:9999/t-abc/v1")
        assert not is_gateway("http://127.0.0.1:9998")
        assert not is_gateway("https://llm.example.com")


@pytest.mark.parametrize("lease", ["", "/1.lease"])
def test_a_program_that_is_no_gateway_is_not_used(tmp_path: Path, lease: str) -> None:
    """Also where a gateway of the user's is announced, an answer is wanted that only a gateway gives."""
    places = GatewayPlaces(tmp_path, tmp_path / "token", tmp_path / "log")
    with SimulatedProvider() as stranger:
        wish = GatewayWish(stranger.url, {}, TOLD.store, TOLD.workspace, "")
        with announce(tmp_path, replace(TOLD, url=stranger.url, lease=lease)):
            assert is_running(stranger.url, tmp_path)
            assert running_gateway(wish, places) is None
    assert not is_running(stranger.url, tmp_path)
