"""`pagein check` on stores of real runs finds no fault and exits with 0."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.engine.reads.test_reread_notes import EAGER, FILE, Client
from tests.policy.clients.working_clients import CLIENTS, REPEATED, read_arguments

import pagein
from pagein.cli.cli import main
from pagein.engine.engine import Settings
from pagein.model.entries import Entry, EntryId, PreviewEntry
from pagein.store.sqlite.sqlite_store import SqliteStore
from pagein.testing.store_soundness import unsound_stores

pytestmark = pytest.mark.damages_store


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str | Path) -> int:
    monkeypatch.setattr(sys, "argv", ["pagein", *map(str, arguments)])
    with pytest.raises(SystemExit) as left:
        main()
    return int(left.value.code or 0)


def worked(store: Path, name: str, settings: Settings | None) -> None:
    """A client reads, reads again what stayed and what changed, is shown its own marker, and works until something leaves."""
    with pagein.open(store, workspace=store.parent, settings=settings) as engine:
        client = Client(name, engine)
        client.read()
        client.read()
        client.read(FILE.replace("line 20", "line twenty"))
        client.read(first=3, count=20)
        for round_ in range(2):
            if name == "claude-code":
                client.call(*read_arguments(name, "a.py", None, None), REPEATED)
            for step in range(8):
                client.call("update_plan", {}, f"step {step} of round {round_} is done")
        client.read(first=3, count=20)


@pytest.mark.parametrize("settings", [None, EAGER], ids=["by price", "eager"])
@pytest.mark.parametrize("name", CLIENTS)
def test_a_store_of_reads_made_again_is_sound_and_so_are_its_copies(
    name: str, settings: Settings | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, copy, export = tmp_path / "one.pagein", tmp_path / "copy.pagein", tmp_path / "export.jsonl"
    worked(store, name, settings)
    assert answers_in(store)
    assert run(monkeypatch, "check", "--store", store, "-q") == 0
    assert run(monkeypatch, "check", "--repair", "--store", store, "-q") == 0
    assert run(monkeypatch, "export", str(export), "--store", store) == 0
    assert run(monkeypatch, "import", str(export), "--store", copy) == 0
    assert run(monkeypatch, "check", "--store", copy, "-q") == 0


def answers_in(store: Path) -> list[str]:
    """What entered in place of reads made again, by the journal."""
    opened = SqliteStore(store)
    try:
        entries = [one for one in opened.entries("s1") if isinstance(one, Entry)]
    finally:
        opened.close()
    paged = [one for entry in entries if isinstance(entry.body, PreviewEntry) for one in entry.body.paged]
    return [one.stub for one in paged if one.object_id not in one.stub]


@pytest.mark.parametrize("name", CLIENTS)
def test_an_answer_that_the_window_does_not_bear_out_is_found(name: str, tmp_path: Path) -> None:
    store = tmp_path / "one.pagein"
    worked(store, name, None)
    spoil(store, "[readcache: unchanged", "[something else")
    assert any("no answer of ours" in fault for faults in unsound_stores(tmp_path).values() for fault in faults)


def spoil(store: Path, old: str, new: str) -> None:
    """Write every entry of the session anew with other words."""
    opened = SqliteStore(store)
    before = [one for one in opened.entries("s1") if isinstance(one, Entry)]
    names: dict[EntryId | None, EntryId | None] = {None: None}
    spoilt = []
    for one in before:
        names[one.id] = f"{one.id}-again"
        body = one.body
        if isinstance(body, PreviewEntry):
            body = PreviewEntry(tuple(replace(paged, stub=paged.stub.replace(old, new)) for paged in body.paged))
        spoilt.append(Entry(f"{one.id}-again", names[one.parent], body, one.at))
    opened.append("s2", spoilt)
    opened.close()
