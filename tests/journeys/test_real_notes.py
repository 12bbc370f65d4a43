"""Real coding agents are told to keep notes; a later session finds a note, though the file is gone by then."""

import json
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pytest
from tests.agents import GatewayProcess, Job, Place, agent_named, commands_folder, work
from tests.agents.jobs import CallStep, JobPrompt, SayStep

from pagein.model.writes import Query
from pagein.store.sqlite.sqlite_store import SqliteStore
from pagein.tools.note_guidance import NOTES

pytestmark = pytest.mark.clients

NOTE: Final = "---\ntags: [build]\n---\n# Why the build is slow\n\nThe cache key holds the time. See [[ci]].\n"
SETTINGS: Final = {"PAGEIN_NOTE_GUIDANCE": "1", "PAGEIN_RECALL_EVERYTHING": "1"}
WRITES: Final[dict[str, Callable[[Path], CallStep]]] = {
    "claude-code": lambda path: CallStep("Write", {"file_path": str(path), "content": NOTE}),
    "pi-anthropic": lambda path: CallStep("write", {"path": str(path), "content": NOTE}),
    "opencode-anthropic": lambda path: CallStep("write", {"filePath": str(path), "content": NOTE}),
}
"""How the model of each agent writes the note."""


def _job(name: str, words: str, *calls: CallStep | SayStep) -> Job:
    return Job(name, {"README.md": "# A build\n"}, (JobPrompt(name, words, tuple((call,) for call in calls)),))


@pytest.mark.parametrize("name", WRITES)
def test_a_later_session_of_a_real_agent_finds_the_note_of_an_earlier_one(name: str) -> None:
    commands = commands_folder()
    if commands is None:
        pytest.skip("coding agents are not installed: make clients")
    agent = agent_named(name)
    with TemporaryDirectory(prefix="pagein-agents-") as folder:
        place = Place(Path(folder) / "agent", commands)
        gateway = GatewayProcess(Path(folder) / "gateway", SETTINGS)
        write = WRITES[name](place.workspace / "kept" / "slow-build.md")
        first = work(agent, _job("notes-1", "Why is the build slow?", write, SayStep("The cache key.")), place, gateway)
        assert first.files["kept/slow-build.md"] == NOTE
        search = CallStep("search", {"pattern": "build is slow", "everything": True, "type": "note"})
        peek = CallStep("peek", {"id": "slow-build"})
        asked = "The build is slow again. Do we know why?"
        second = work(
            agent, _job("notes-2", asked, search, peek, SayStep("The cache key holds the time.")), place, gateway
        )
        assert second.files == {"README.md": "# A build\n"}
        assert second.answers == ("The cache key holds the time.",)
        assert (first.bill.refused, second.bill.refused, gateway.failures) == (0, 0, {})
        store = SqliteStore(Path(gateway.store))
        (note,) = store.objects(Query(types=frozenset({"note"})))
        assert (store.content(note), note.metadata["tags"], note.metadata["known"]) == (NOTE, ("build",), "whole")
        store.close()
    assert NOTES in second.last_body["tools"][-1]["description"]
    last = json.dumps(second.last_body)
    assert note.id in last
    assert "The cache key holds the time. See [[ci]]." in last
    assert "[[[ci]] is ci: no such object]" in last
