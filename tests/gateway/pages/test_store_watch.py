"""A damaged, replaced or missing store is reported once and clearly, and stops no one's work."""

import json
import os
import shutil
import signal
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from tests.gateway.processes import gateway_process
from tests.gateway.test_serve import HEADERS, cli, conversation, sent
from tests.gateway.upstreams import run

from pagein import wiring
from pagein.gateway.pages.store_watch import Soundness
from pagein.simulator import SimulatedProvider
from pagein.store.upkeep.file_soundness import FileWatch


def overwritten(file: Path) -> None:
    size = file.stat().st_size
    with file.open("r+b") as opened:
        opened.seek(4096)
        opened.write(os.urandom(max(4096, size - 4096)))


def beheaded(file: Path) -> None:
    with file.open("r+b") as opened:
        opened.write(b"no database" * 10)


def cut(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 8192 * 4096)


def worked(folder: Path, turns: int) -> None:
    """Have a gateway fill a store, and end."""
    with SimulatedProvider() as provider, gateway_process(provider.url, folder) as (url, process):
        for turn in range(turns):
            run(sent(url, conversation(turn)))
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 0
    (folder / "gateway.jsonl").unlink()


def notices(folder: Path) -> list[str]:
    lines = [json.loads(line) for line in (folder / "gateway.jsonl").read_text().splitlines()]
    return [line["text"] for line in lines if line["event"] == "notice"]


async def asked(url: str, body: object) -> tuple[int, str]:
    async with aiohttp.ClientSession() as client, client.post(url + "/v1/messages", json=body, headers=HEADERS) as told:
        await told.read()
        return told.status, told.headers.get("x-pagein-warning", "")


async def health(url: str) -> dict[str, Any]:
    async with aiohttp.ClientSession() as client, client.get(url + "/healthz") as answer:
        return dict(await answer.json())


@pytest.mark.damages_store
@pytest.mark.parametrize("damage", [overwritten, beheaded, cut])
def test_on_a_damaged_store_calls_go_out_as_they_came_and_what_to_do_is_told_once(
    damage: Callable[[Path], None], tmp_path: Path
) -> None:
    worked(tmp_path, 6)
    damage(tmp_path / "s.pagein")
    with SimulatedProvider() as provider, gateway_process(provider.url, tmp_path) as (url, process):
        for turns in range(4, 8):
            assert run(asked(url, conversation(turns))) == (200, "engine")
            assert provider.requests[-1].body["messages"] == conversation(turns)["messages"]
        store = run(health(url))["store"]
        assert "is damaged" in store
        upstreams = ("--anthropic", provider.url, "--openai", provider.url, "--store", str(tmp_path / "s.pagein"))
        doctor = cli("doctor", "--json", "--url", url, *upstreams, folder=tmp_path)
        found = {one["what"]: one for one in json.loads(doctor.stdout)["findings"]}
        for what in ("store", "gateway"):
            assert found[what]["level"] == "wrong"
            assert "pagein check --repair" in found[what]["told"]
            assert "move the file away" in found[what]["told"]
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 0
    assert notices(tmp_path) == [store]


@pytest.mark.damages_store
@pytest.mark.parametrize("how", ["damaged", "deleted", "replaced"])
def test_what_becomes_of_a_store_under_a_gateway_that_runs_is_noticed(how: str, tmp_path: Path) -> None:
    worked(tmp_path, 6)
    file = tmp_path / "s.pagein"
    with SimulatedProvider() as provider, gateway_process(provider.url, tmp_path) as (url, _):
        assert run(asked(url, conversation(6))) == (200, "")
        if how == "damaged":
            (tmp_path / "s.pagein-wal").write_bytes(b"")
            overwritten(file)
        else:
            for one in tmp_path.glob("s.pagein*"):
                one.rename(tmp_path / f"old-{one.name}")
        if how == "replaced":
            file.touch()
        for turns in range(7, 10):
            assert run(asked(url, conversation(turns)))[0] == 200
        until_told(url, how)
        told = run(health(url))["store"]
        assert ("end what uses it" if how == "damaged" else "start again what uses it") in told
    assert notices(tmp_path) == [told]


def until_told(url: str, word: str) -> None:
    for _ in range(1200):
        if word in run(health(url))["store"]:
            return
        time.sleep(0.1)
    raise AssertionError("it was not noticed")


def test_that_a_store_takes_no_writes_is_told_until_it_takes_them_again(tmp_path: Path) -> None:
    worked(tmp_path, 4)
    with SimulatedProvider() as provider, gateway_process(provider.url, tmp_path, PAGEIN_BUDGET="3") as (url, _):
        assert run(asked(url, conversation(4))) == (200, "")
        lock = sqlite3.connect(tmp_path / "s.pagein", isolation_level=None)
        lock.execute("BEGIN IMMEDIATE")
        assert run(asked(url, conversation(5)))[0] == 200
        until_told(url, "the store has taken no writes for")
        status = cli("status", "--json", "--url", url, "--store", str(tmp_path / "s.pagein"), folder=tmp_path)
        assert "End what holds the store" in json.loads(status.stdout)["gateway"]["storing"]
        told = cli("status", "--url", url, "--store", str(tmp_path / "s.pagein"), folder=tmp_path).stdout
        assert "storing   has stopped: the store has taken no writes" in told
        lock.execute("ROLLBACK")
        lock.close()
        deadline = time.monotonic() + 120
        while run(health(url))["store"] + run(health(url))["memory"] and time.monotonic() < deadline:
            time.sleep(0.1)
        found = run(health(url))
        assert (found["store"], found["memory"]) == ("", "")


def test_a_file_that_is_well_busy_or_not_there_yet_is_no_damage(tmp_path: Path) -> None:
    file = tmp_path / "a folder?x=1" / "s #1%.pagein"
    watch = FileWatch(file)
    assert watch(thorough=True) == ""
    store = wiring.open_for_upkeep(file, new=True)
    store.put(b"words of an output " * 500)
    assert watch(thorough=True) == watch(thorough=False) == ""
    lock = sqlite3.connect(file, isolation_level=None)
    lock.execute("BEGIN EXCLUSIVE")
    assert watch(thorough=True) == ""
    lock.execute("ROLLBACK")
    lock.close()
    store.close()
    assert watch(thorough=True) == ""
    assert sorted(one.name for one in file.parent.iterdir() if "trajectory" not in one.name) == [file.name]


def test_a_disk_that_is_full_and_a_file_that_may_not_be_written_are_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = FileWatch(tmp_path / "s.pagein")
    watch.path.touch()
    assert watch(thorough=False) == ""
    with monkeypatch.context() as patch:
        usage = shutil.disk_usage(tmp_path)
        patch.setattr("pagein.store.upkeep.file_soundness.shutil.disk_usage", lambda _: usage._replace(free=4096))
        assert watch(thorough=False).endswith("stands on a disk that is full; make room there")
    with monkeypatch.context() as patch:
        patch.setattr("pagein.store.upkeep.file_soundness.os.access", lambda *_: False)
        assert "may not be written" in watch(thorough=False)
    assert watch(thorough=False) == ""


def test_it_is_looked_at_now_and_then_and_at_once_where_something_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr("pagein.gateway.pages.store_watch.time.monotonic", lambda: now[0])
    looks: list[bool] = []
    told: list[str] = []
    answers = iter(["", "it is gone", "it is gone", "", "it is gone"])

    def look(*, thorough: bool) -> str:
        looks.append(thorough)
        return next(answers)

    async def go() -> None:
        watch = Soundness(look, told.append)
        for seconds, failed in ((0, 0), (1, 1), (1, 1), (58, 0), (1, 0), (6, 1), (70, 0)):
            now[0] += seconds
            await watch.after(failed=bool(failed))

    run(go())
    assert looks == [False, True, False, True, False]
    assert told == ["it is gone", "it is gone"]


def test_a_look_that_fails_harms_nobody() -> None:
    def look(*, thorough: bool) -> str:
        raise RuntimeError(str(thorough))

    async def go() -> str:
        watch = Soundness(look, lambda _: None)
        await watch.after(failed=True)
        return await watch.ask()

    assert run(go()) == ""
