"""Reports of hooks: each is for one session and one store, and old ones go."""

import json
import os
from pathlib import Path

import pytest

import pagein
from pagein.gateway.curation.engine_curator import EngineCurator
from pagein.gateway.curation.guarded_curator import CurationRequest
from pagein.gateway.curation.session_hints import Hint
from pagein.gateway.guard_reports import GuardReports
from pagein.model.entries import NoteEntry

NOW = 1_800_000_000.0


def test_a_session_is_guarded_for_the_store_that_its_hook_looks_into(tmp_path: Path) -> None:
    reports = GuardReports(tmp_path / "guards")
    assert not reports.is_guarded("one", "/a.pagein")
    reports.report("one", "/a.pagein", NOW)
    assert reports.is_guarded("one", "/a.pagein")
    assert reports.is_reported("one")
    assert not reports.is_guarded("one", "/b.pagein")
    assert not reports.is_guarded("two", "/a.pagein")
    (kept,) = (tmp_path / "guards").iterdir()
    assert kept.stat().st_mode & 0o077 == 0
    os.utime(kept, (NOW, NOW))
    reports.report("two", "/a.pagein", NOW + 31 * 86_400)
    assert not reports.is_reported("one")
    assert reports.is_reported("two")


def test_a_damaged_report_counts_as_none_and_one_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    reports = GuardReports(tmp_path)
    reports.report("one", "/a.pagein", NOW)
    (file,) = tmp_path.iterdir()
    file.write_bytes(b"\xff")
    assert not reports.is_guarded("one", "/a.pagein")
    with pytest.raises(FileExistsError):
        GuardReports(file).report("one", "/a.pagein", NOW)


def test_the_gateway_notes_in_the_journal_that_a_session_is_guarded(tmp_path: Path) -> None:
    with pagein.open(tmp_path / "s.pagein", workspace=tmp_path) as engine:
        curator = EngineCurator(engine, guarded=lambda session: session == "guarded")
        for name in ("guarded", "other"):
            said = [{"role": "user", "content": f"hello from {name}"}]
            body = json.dumps({"model": "claude-sonnet-4-5", "max_tokens": 9, "messages": said}).encode()
            hint = Hint(name, "x-claude-code-session-id", "a-sub-agent")
            asked = CurationRequest(body, "anthropic", hint, 1.0)
            assert curator.prepare(asked).session == f"{name}/a-sub-agent"
        kept = {name: engine.session(f"{name}/a-sub-agent").journal for name in ("guarded", "other")}
        notes = {
            name: {entry.body.kind for entry in journal if isinstance(entry.body, NoteEntry)}
            for name, journal in kept.items()
        }
    assert "session.guarded" in notes["guarded"]
    assert "session.guarded" not in notes["other"]
