"""Recorded reads under the read policy: their savings, and the proof of each answer."""

import json
from pathlib import Path

import pytest
from scripts.read_replay import ReadFigures, replay_reads

from pagein.model.messages import FileAccess, HostEvent, Message, Recorded, ToolCall, ToolResult
from pagein.replay.readers import Source, find, read_source, snapshots_beside

CORPUS = Path(__file__).parents[3] / "shared" / "corpus"
LINES = [f"line {n} of a file that is long enough to be worth a marker" for n in range(1, 201)]


def _reads(name: str, lines: list[str], first: int = 1) -> list[Recorded]:
    numbered = "\n".join(f"{n:6}→{line}" for n, line in enumerate(lines, first))
    call = ToolCall(name, "Read", '{"file_path":"a.py"}', (FileAccess("read", "a.py", first, first + len(lines) - 1),))
    return [Message("assistant", (call,)), Message("tool", (ToolResult(name, numbered, "Read"),))]


def _edits(name: str, old: str, new: str, before: str | None = None) -> list[Recorded]:
    arguments = json.dumps({"file_path": "a.py", "old_string": old, "new_string": new})
    call = ToolCall(name, "Edit", arguments, (FileAccess("edit", "a.py"),))
    return [Message("assistant", (call,)), Message("tool", (ToolResult(name, "ok", "Edit", before=before),))]


def _replayed(*parts: list[Recorded], authored: bool = False, **snapshots: str) -> ReadFigures:
    return replay_reads([entry for part in parts for entry in part], snapshots.get, authored=authored)


def test_reading_the_same_lines_again_costs_a_marker() -> None:
    figures = _replayed(_reads("r1", LINES), _reads("r2", LINES[49:99], 50))
    assert figures.modes == {"full": 1, "unchanged_range": 1}
    assert figures.saved > 0.9 * figures.repeated
    assert not figures.objections


def test_a_compaction_forgets_what_was_read() -> None:
    figures = _replayed(_reads("r1", LINES), [HostEvent("compaction")], _reads("r2", LINES))
    assert figures.modes == {"full": 2}
    assert figures.saved == 0
    assert figures.repeated == 0


def test_a_file_is_taken_from_the_snapshot_before_its_next_edit() -> None:
    text = "\n".join(LINES)
    figures = _replayed(_reads("r1", LINES[:50]), _edits("e1", LINES[9], "changed", "s1"), s1=text)
    assert figures.sources == {"snapshot": 1}


def test_lines_untouched_by_an_edit_stay_known() -> None:
    text = "\n".join(LINES)
    after = [*LINES[:9], "changed", *LINES[10:]]
    parts = (_reads("r1", LINES), _edits("e1", LINES[9], "changed", "s1"), _reads("r2", after))
    figures = _replayed(*parts, authored=True, s1=text)
    assert figures.modes["full"] == 1
    assert figures.saved > 0.9 * figures.repeated
    assert not figures.objections


def test_without_snapshots_a_file_is_rebuilt_from_reads_and_edits() -> None:
    after = [*LINES[:9], "changed", *LINES[10:]]
    figures = _replayed(_reads("r1", LINES[:100]), _edits("e1", LINES[9], "changed"), _reads("r2", after[:100]))
    assert figures.sources == {"rebuilt": 2}
    assert figures.modes["full"] == 1
    assert not figures.objections


def test_results_without_line_numbers_are_not_counted() -> None:
    call = ToolCall("r", "read", "{}", (FileAccess("read", "a.py"),))
    plain: list[Recorded] = [Message("assistant", (call,)), Message("tool", (ToolResult("r", "\n".join(LINES)),))]
    assert _replayed(plain).reads == 0


@pytest.mark.corpus
@pytest.mark.slow
@pytest.mark.skipif(not CORPUS.exists(), reason="the corpus is not beside the checkout")
@pytest.mark.parametrize("name", ["oh-my-posh", "context-evaluator"])
def test_four_fifths_of_what_reads_repeat_is_saved_and_all_of_it_is_proven(name: str) -> None:
    archive = CORPUS / "dev" / f"{name}.tar.xz"
    snapshots = snapshots_beside(archive)
    alone, beside = ReadFigures(), ReadFigures()
    for source in find([archive]):
        assert isinstance(source, Source)
        for session in read_source(source):
            entries = list(session.entries)
            if session.head.parent is None:
                alone.add(replay_reads(entries, snapshots.get, authored=False))
                beside.add(replay_reads(entries, snapshots.get, authored=True))
    assert alone.objections == []
    assert beside.objections == []
    # not more: where three of four files are rebuilt, nobody can tell the place of many an edit
    assert alone.saved >= 0.8 * alone.repeated
    assert beside.saved > alone.saved
