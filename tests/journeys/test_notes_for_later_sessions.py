"""A model that is told to keep notes writes one, and a later session finds it: through a real gateway."""

import json
from pathlib import Path
from typing import Any

from tests.gateway.processes import ended, gateway_process
from tests.journeys.coding_client import CodingClient, uses

from pagein.simulator import SimulatedProvider
from pagein.tools.note_guidance import NOTES

NOTE = "---\ntags: [build]\n---\n# Why the build is slow\n\nThe cache key holds the time. See [[ci]].\n"
SETTINGS = {"PAGEIN_NOTE_GUIDANCE": "1", "PAGEIN_RECALL_EVERYTHING": "1"}


def told(body: dict[str, Any]) -> dict[str, str]:
    """What the tools of a request say of themselves."""
    return {one["name"]: one["description"] for one in body["tools"]}


def test_a_later_session_finds_what_an_earlier_one_was_told_to_note(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    with SimulatedProvider() as provider, gateway_process(provider.url, tmp_path, **SETTINGS) as (url, process):
        first = CodingClient(url, folder, "first")
        first.asks(
            "Why is the build slow?",
            [uses("Write", file_path=str(folder / "kept/build.md"), content=NOTE)],
            [{"text": "It is the cache key."}],
        )
        second = CodingClient(url, folder, "second")
        answer = second.asks(
            "The build is slow again. Do we know why?",
            [uses("search", pattern="build is slow", everything=True, type="note")],
            [{"capture": {"note": "([0-9a-f-]{36})[^\\n]*build"}}, uses("peek", id="{{note}}")],
            [{"text": "The cache key holds the time."}],
        )
        assert ended(process) == 0
    assert [record.refused for record in provider.requests if record.refused] == []
    bodies = [record.body for record in provider.requests]
    assert all(NOTES in told(body)["search"] for body in bodies)
    assert answer == "The cache key holds the time."
    last = json.dumps(bodies[-1]["messages"])
    assert json.dumps(NOTE)[1:-1] in last
    assert "[[[ci]] is ci: no such object]" in last


def test_by_default_no_request_is_longer_for_it(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    with SimulatedProvider() as provider, gateway_process(provider.url, tmp_path) as (url, _):
        # the prompt prefix is long enough that pagein's tools do not wait
        CodingClient(url, tmp_path / "work", "one", rules="Write plain code. " * 500).asks(
            "Hello.", [{"text": "Hello."}]
        )
    assert NOTES not in json.dumps(provider.requests[0].body)
    assert "search" in told(provider.requests[0].body)
