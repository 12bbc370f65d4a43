"""A person types into a file between two calls of one turn, and the client does not look for it: no answer is wrong."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.memory.told_journal import Journal

from pagein.memory.indexer import Indexer
from pagein.memory.projection_check import projection_faults
from pagein.model.entries import MessageEntry, NoteEntry
from pagein.model.journal_notes import ClientNote
from pagein.model.messages import Message, ToolCall, ToolResult
from pagein.model.versions import Version
from pagein.model.writes import Query
from pagein.store.upkeep.sqlite_upkeep import SqliteUpkeep
from pagein.tools.blame_commands import blame
from pagein.tools.version_commands import diff
from pagein.workspace.git_blame import GitAbsence

SHOWN = "def first():\n    return 1\n\n\ndef second():\n    return 2\n"
TYPED = SHOWN.replace("def second", "# typed by hand just now\ndef second")
WRITTEN = TYPED.replace("return 1", "return 10")
BELIEVED = SHOWN.replace("return 1", "return 10")
OK = "Exit code: 0\nWall time: 0 seconds\nOutput:\n"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteUpkeep]:
    made = SqliteUpkeep(tmp_path / "s.pagein")
    yield made
    made.close()


class Codex(Journal):
    """A session of codex in `/w`, in one turn."""

    def __init__(self, store: SqliteUpkeep) -> None:
        super().__init__(store, "session-a")
        self.add(NoteEntry.of(ClientNote("codex")))
        self.say("let first return 10")
        self._calls = 0

    def call(self, tool: str, arguments: object, output: str = "") -> None:
        self._calls += 1
        name = f"call_{self._calls}"
        self.add(MessageEntry(Message("assistant", (ToolCall(name, tool, json.dumps(arguments)),))))
        self.add(MessageEntry(Message("user", (ToolResult(name, f"{OK}{output}", tool),))))

    def reads(self, text: str) -> None:
        self.call("exec_command", {"cmd": "cat /w/a.py"}, text)

    def edits(self, old: str, new: str) -> None:
        body = f"*** Begin Patch\n*** Update File: /w/a.py\n@@\n-{old}\n+{new}\n*** End Patch\n"
        self.call("apply_patch", {"input": body}, "Success.")


def versions(store: SqliteUpkeep) -> list[Version]:
    Indexer(store).catch_up()
    assert list(projection_faults(store)) == []
    (file,) = store.objects(Query(types=frozenset({"file"})))
    return list(store.history(file.id))


def told(store: SqliteUpkeep) -> list[tuple[object, object, str]]:
    """Deed, known and text of every version; no read of this client shows the last line end."""
    texts = [(one, (store.content(one) or "").rstrip("\n") + "\n") for one in versions(store)]
    return [(one.metadata["op"], one.metadata["known"], text) for one, text in texts]


def answers(store: SqliteUpkeep, text: str | None) -> dict[str, str]:
    found: dict[str, Any] = blame(store, "/w/a.py", text, GitAbsence("not asked"))
    return {line["text"]: line["answer"] for line in found["lines"]}


def test_an_edit_is_whole_only_when_the_file_is_shown_again(store: SqliteUpkeep) -> None:
    codex = Codex(store)
    codex.reads(SHOWN)
    codex.edits("    return 1", "    return 10")
    assert told(store) == [("read", "whole", SHOWN), ("edit", "likely", BELIEVED)]
    codex.reads(WRITTEN)
    assert told(store)[2:] == [("read", "whole", WRITTEN)]


def test_blame_takes_what_the_edit_wrote_and_nothing_else(store: SqliteUpkeep) -> None:
    codex = Codex(store)
    codex.reads(SHOWN)
    codex.edits("    return 1", "    return 10")
    versions(store)
    now = answers(store, WRITTEN)
    assert now.pop("    return 10") == "agent"
    assert set(now.values()) == {"unknown"}
    codex.edits("    return 2", "    return 20")
    codex.reads(WRITTEN.replace("return 2", "return 20"))
    versions(store)
    now = answers(store, None)
    assert {text for text, answer in now.items() if answer == "agent"} == {"    return 10", "    return 20"}
    assert now["# typed by hand just now"] == "unknown"


def test_the_last_change_of_a_file_is_the_likely_edit(store: SqliteUpkeep) -> None:
    codex = Codex(store)
    codex.reads(TYPED)
    codex.reads(SHOWN)
    codex.edits("    return 1", "    return 10")
    versions(store)
    shown = diff(store, "/w/a.py", read_file=lambda _: "")
    assert (shown["old"]["known"], shown["new"]["known"], shown["added"], shown["removed"]) == ("whole", "likely", 1, 1)
