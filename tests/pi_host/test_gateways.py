"""A gateway beside pi: which requests tell it whose they are, and who of the two changes what the model is shown."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.pi_host.fake_pi import FakePi

import pagein
from pagein.pi_host.host import PiSettings

GATEWAY = "http://127.0.0.1:8790"
TEXT = "a line of the file\nanother line of the file\n"


@pytest.fixture
def pi(tmp_path: Path) -> Iterator[FakePi]:
    (tmp_path / "a.txt").write_text(TEXT, encoding="utf-8")
    with pagein.open(tmp_path / "s.pagein", workspace=tmp_path) as engine:
        yield FakePi(engine, tmp_path, PiSettings())


def headers(pi: FakePi, address: str) -> set[str]:
    """The names of pagein's headers that requests to an address carry."""
    told = pi.ask("begin", address=address)["headers"]
    assert told.get("x-pagein-session", "s1") == "s1"
    return {name.removeprefix("x-pagein-") for name in told}


@pytest.mark.parametrize(
    ("address", "named"),
    [
        (GATEWAY, True),
        ("http://localhost:11434/v1", True),
        ("http://[::1]:8790", True),
        ("https://box.example/t-0a1b/v1", True),
        ("https://api.anthropic.com", False),
        ("https://api.example/v1/t-0a1b", False),
        ("http://127.0.0.1.example:8790", False),
        ("http://[half", False),
        ("", False),
    ],
)
def test_only_an_address_that_may_be_a_gateways_is_told_whose_the_requests_are(
    pi: FakePi, address: str, *, named: bool
) -> None:
    assert ("session" in headers(pi, address)) is named


def test_a_running_gateway_is_left_the_window_until_the_extension_pages(pi: FakePi) -> None:
    assert headers(pi, GATEWAY) == {"session", "extension"}, "it may be anything that listens there"
    pi.gateways = ["http://localhost:8790"]
    assert headers(pi, f"{GATEWAY}/v1") == {"session"}
    assert pi.call(("read", {"path": "a.txt"})) + pi.call(("read", {"path": "a.txt"})) == [TEXT, TEXT]
    assert "left to the gateway" in pi.order("readcache-status")
    pi.order("rlm", "on")
    assert headers(pi, GATEWAY) == {"session", "extension"}
    pi.order("rlm", "off")
    assert headers(pi, GATEWAY) == {"session", "extension"}, "what left is a stub still"


def test_a_session_with_markers_stays_with_the_extension(pi: FakePi) -> None:
    pi.ask("begin", address="https://api.anthropic.com")
    pi.call(("read", {"path": "a.txt"}))
    assert pi.call(("read", {"path": "a.txt"})) != [TEXT]
    pi.gateways = [GATEWAY]
    assert headers(pi, GATEWAY) == {"session", "extension"}, "the gateway could evict what the marker rests on"
