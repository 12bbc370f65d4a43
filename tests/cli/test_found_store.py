"""Commands find the store of the running gateway from any folder; a named or configured store wins."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.cli.conftest import Ran

from pagein import wiring
from pagein.archive import find_store
from pagein.errors import BadInput
from pagein.gateway.announced_store import AnnouncedStore, announce, default_folder, running_stores
from pagein.store.sqlite.sqlite_store import SqliteStore


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with data and configuration folders of its own."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("PAGEIN_STORE", raising=False)
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path / "project"


@pytest.fixture
def gateway(project: Path) -> Iterator[AnnouncedStore]:
    told = AnnouncedStore(
        str(project.parent / "all.pagein"), str(project.parent / "elsewhere"), "http://127.0.0.1:1", 5.0
    )
    fill(Path(told.store))
    with announce(default_folder(), told):
        yield told


def fill(path: Path) -> None:
    """Make a store, which is created with its first content."""
    store = SqliteStore(path)
    store.put(b"content")
    store.close()


def test_the_store_of_the_running_gateway_is_found(gateway: AnnouncedStore) -> None:
    place = find_store()
    assert (place.store, place.workspace) == (gateway.store, gateway.workspace)
    assert place.told == f"the store of the gateway at http://127.0.0.1:1: {gateway.store}"
    with announce(default_folder(), AnnouncedStore("postgresql://me@db/x", "/", "http://127.0.0.1:2", 1.0)):
        assert find_store().store == "postgresql://me@db/x"
        assert f"other gateways use {gateway.store}" in find_store().told


@pytest.mark.usefixtures("project")
def test_a_gateway_that_stored_nothing_yet_says_so() -> None:
    with (
        announce(default_folder(), AnnouncedStore("/nowhere/one.pagein", "/", "http://127.0.0.1:2", 1.0)),
        pytest.raises(BadInput, match="has stored nothing yet"),
    ):
        find_store()


def test_the_own_store_needs_no_words(project: Path) -> None:
    own = wiring.store_file()
    assert own is not None
    fill(own)
    with announce(default_folder(), AnnouncedStore(str(own), str(project), "http://127.0.0.1:1", 5.0)):
        assert find_store().told == ""
        (project / "src").mkdir()
        os.chdir(project / "src")  # a folder of the gateway's own
        assert (find_store().store, find_store().told) == (str(own), "")


def test_what_is_named_or_configured_wins(
    gateway: AnnouncedStore, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert find_store("one.pagein").store == "one.pagein"
    assert (find_store(None, ".").store, find_store(None, ".").workspace) == (None, ".")
    assert find_store("").store == gateway.store
    monkeypatch.setenv("PAGEIN_CONFIG", str(project / "own.toml"))
    (project / "own.toml").write_text('store = "mine.pagein"\n')
    assert find_store().store is None
    monkeypatch.delenv("PAGEIN_CONFIG")
    monkeypatch.setenv("PAGEIN_STORE", str(project / "mine.pagein"))
    assert find_store().store is None
    assert gateway.store != str(wiring.store_file())


@pytest.mark.usefixtures("project")
def test_without_any_store_the_error_says_how_to_get_one() -> None:
    with pytest.raises(BadInput, match="`pagein run AGENT` records"):
        find_store()
    own = wiring.store_file()
    assert own is not None
    other = own.with_name("other-0123.pagein")
    other.parent.mkdir(parents=True)
    fill(other)
    with pytest.raises(BadInput, match=r"named with --store: .*other-0123\.pagein"):
        find_store()
    fill(own)
    assert find_store().told == ""


@pytest.mark.parametrize(
    ("named", "public"),
    [
        ("postgresql://me:secret@db:5432/x", "postgresql://me@db:5432/x"),
        ("postgresql://me@db/x?password=secret&sslmode=require", "postgresql://me@db/x?sslmode=require"),
        ("postgresql://db/x", "postgresql://db/x"),
        (":memory:", None),
        ("/data/one.pagein", "/data/one.pagein"),
    ],
)
def test_no_password_is_announced(project: Path, named: str, public: str | None) -> None:
    assert wiring.public_address(named, workspace=project) == public


def test_a_command_in_another_folder_finds_the_gateway(tmp_path: Path, run: Callable[..., Ran]) -> None:
    home, away = tmp_path / "home", tmp_path / "away"
    for folder in (home, away):
        folder.mkdir()
    keep = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    serving = subprocess.Popen(
        [sys.executable, "-m", "pagein", "serve", "--port", "0", "--json", "--log", "log"],
        cwd=home, env={**keep, "HOME": str(home)}, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        assert serving.stdout
        url = json.loads(serving.stdout.readline())["url"]
        [announced] = running_stores(home / ".local" / "share" / "pagein" / "gateways")
        fill(Path(announced.store))
        found = run("sessions", "--json", cwd=away)
        assert (found.status, json.loads(found.out)) == (0, {"sessions": [], "more": False, "agents": []})
        assert f"the store of the gateway at {url}: {home}" in found.err
        asked = run("status", "--json", cwd=away)
        told = json.loads(asked.out)
        assert (told["gateway"]["url"], told["gateway"]["problem"]) == (url, "")
        assert (told["store"]["where"], told["store"]["problem"]) == (announced.store, "")
        installed, entries = run("install", "cursor", "--http", "--yes", cwd=away), home / ".cursor" / "mcp.json"
        token = (home / ".local" / "share" / "pagein" / "gateway.token").read_text().strip()
        entry = {"url": f"{url}/mcp", "headers": {"Authorization": f"Bearer {token}"}}
        assert json.loads(entries.read_text()) == {"mcpServers": {"pagein": entry}}
        assert ("Bearer TOKEN" in installed.out, token in installed.out) == (True, False)
        assert "leave --project or --http out" in run("install", "cursor", "--http", "--project", cwd=away).err
        assert token not in run("uninstall", "cursor", "--yes", cwd=away).out
        assert not entries.exists()
    finally:
        serving.terminate()
        serving.communicate(timeout=60)
    gone = run("sessions", cwd=away)
    assert gone.status == 2
    assert "no gateway runs" in gone.err
    assert "named with --store" in gone.err
    assert "start one by `pagein serve`" in run("install", "cursor", "--http", cwd=away).err
