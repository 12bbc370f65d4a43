"""A gateway that follows the files of its sessions: what was changed beside the agent, compared with git's own history."""

import json
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.agents.gateway_process import GatewayProcess
from tests.journeys.coding_client import CodingClient, uses
from typer.testing import CliRunner

from pagein import wiring
from pagein.cli.cli import app
from pagein.memory.indexer import Indexer
from pagein.memory.projection_check import projection_faults
from pagein.model.versions import Version
from pagein.model.writes import EVERYTHING, Query
from pagein.ports import WholeStore
from pagein.simulator import SimulatedProvider
from pagein.upkeep import check_store

pytestmark = pytest.mark.slow

APP = "def one():\n    return 1\n\n\ndef two():\n    return 2\n"
SLOWLY = "sleep 0.5; "
DONE = [{"text": "Done."}]


@dataclass
class Work:
    """A workspace with a git history of each step, a gateway before it, and the commands of its user."""

    folder: Path
    gateway: GatewayProcess
    client: CodingClient
    steps: dict[str, str] = field(default_factory=dict)

    def git(self, *arguments: str) -> str:
        who = ("-c", "user.name=t", "-c", "user.email=t@example.com")
        ran = subprocess.run(  # noqa: S603 - git in a folder of the test
            ["git", *who, *arguments],  # noqa: S607 - the git of this machine
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=True,
        )
        return ran.stdout

    def commit(self, step: str) -> None:
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", step)
        self.steps[step] = self.git("rev-parse", "HEAD").strip()

    def ask(self, *arguments: str) -> Any:  # noqa: ANN401 - as it was printed
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(self.folder)
            ran = CliRunner().invoke(app, [*arguments, "--json", "--store", str(self.gateway.store)])
        assert ran.exit_code == 0, (arguments, ran.output, ran.exception)
        return json.loads(ran.stdout)

    def history(self, path: str) -> list[dict[str, Any]]:
        """The versions of a file, the oldest first, with their texts."""
        found = list(reversed(self.ask("history", path)["versions"]))
        for one in found:
            shown = self.ask("show", f"{one['id']}@{one['version']}")
            one["content"], one["metadata"] = shown["content"], shown["metadata"]
        return found

    def has(self, path: str, op: str, count: int = 1) -> Callable[[], bool]:
        def is_there() -> bool:
            with closing(wiring.open_for_upkeep(self.gateway.store, looks=True)) as store:
                found = [one for kind in ("path", "last_path") for one in _at(store, kind, str(self.folder / path))]
                versions = [version for one in found for version in store.history(one.id)]
            return [one.metadata.get("op") for one in versions].count(op) >= count

        return is_there


def _at(store: WholeStore, field_: str, path: str) -> Sequence[Version]:
    return store.objects(Query(where={field_: path}, deleted=None))


def wait_for(true: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, f"it was not told within {seconds:.0f} s"
        time.sleep(0.3)


@contextmanager
def workplace(place: Path, follows: str) -> Iterator[Work]:
    folder = place / "work"
    folder.mkdir(parents=True)
    gateway = GatewayProcess(place / "gateway", {"PAGEIN_FOLLOW_FILES": follows})
    with SimulatedProvider() as provider, gateway.door(provider.url) as url:
        work = Work(folder, gateway, CodingClient(url, folder, "monday"))
        work.git("init", "-q")
        (folder / "app.py").write_text(APP)
        (folder / "gone.py").write_text("gone = 1\n")
        (folder / ".env").write_text("KEY=1\n")
        work.commit("start")
        yield work


def do_the_job(work: Work, *, waits: bool) -> None:
    """An agent reads and edits, changes a file unseen, and ends; then a person edits, moves and deletes files by hand."""
    code, gone = str(work.folder / "app.py"), str(work.folder / "gone.py")
    work.client.asks(
        "Make one() return 10.",
        [uses("Read", file_path=code), uses("Read", file_path=gone), uses("Read", file_path=str(work.folder / ".env"))],
        [uses("Edit", file_path=code, old_string="return 1\n", new_string="return 10\n")],
        [uses("Bash", command=f"{SLOWLY}sed -i 's/return 2/return 20/' app.py; {SLOWLY}true")],
        DONE,
    )
    work.commit("agent")
    if waits:
        wait_for(work.has("app.py", "change"))
    (work.folder / "app.py").write_text((work.folder / "app.py").read_text().replace("def two", "def second"))
    (work.folder / ".env").write_text("KEY=2\n")
    work.commit("hand")
    if waits:
        wait_for(work.has("app.py", "change", 2))
    (work.folder / "app.py").rename(work.folder / "main.py")
    (work.folder / "gone.py").unlink()
    work.commit("moved")
    if waits:
        wait_for(work.has("main.py", "move"))
        wait_for(work.has("gone.py", "delete"))
    work.client.asks(
        "Make one() return 100.",
        [uses("Read", file_path=str(work.folder / "main.py"))],
        [uses("Edit", file_path=str(work.folder / "main.py"), old_string="return 10\n", new_string="return 100\n")],
        DONE,
    )
    work.commit("again")
    wait_for(work.has("main.py", "edit", 2 if waits else 1))


def answers(work: Work, path: str) -> dict[str, str]:
    return {one["text"].strip(): one["answer"] for one in work.ask("blame", path)["lines"]}


def test_changes_beside_the_agent_are_versions_of_the_same_object_as_git_has_them(tmp_path: Path) -> None:
    with workplace(tmp_path, "person") as work:
        do_the_job(work, waits=True)
        versions = work.history("main.py")
        told = [(one["op"], one["content"]) for one in versions if one["op"] != "read"]
        texts = {step: work.git("show", f"{digest}:./{name}") for step, digest, name in named(work)}
        edited = APP.replace("return 1\n", "return 10\n")
        assert [op for op, _ in told] == ["edit", "change", "change", "move", "edit"]
        assert [text.strip() for _, text in told] == [
            edited.strip(),
            texts["agent"].strip(),
            texts["hand"].strip(),
            texts["moved"].strip(),
            texts["again"].strip(),
        ]
        assert len({one["id"] for one in versions}) == 1
        assert versions[0]["id"] == work.ask("history", "app.py")["id"], "the old path still finds it"
        (gone,) = [one for one in work.history("gone.py") if one["op"] == "delete"]
        assert gone["content"] is None
        lines = answers(work, "main.py")
        assert lines["return 100"] == "agent"
        assert lines["return 20"] == "unknown", "a command of the agent did it, and no call tells"
        assert lines["def second():"] == "person"
        assert lines["def one():"] == "unknown"
        assert not [one for one in work.ask("objects", "--type", "file")["objects"] if ".env" in str(one)]
    store = wiring.open_for_upkeep(work.gateway.store)
    assert check_store(store).findings == []
    before = sorted((one.id, one.number, one.object_hash.hex, one.at) for one in store.objects(EVERYTHING))
    Indexer(store).drop(store)
    Indexer(store).catch_up()
    assert sorted((one.id, one.number, one.object_hash.hex, one.at) for one in store.objects(EVERYTHING)) == before
    assert list(projection_faults(store)) == []
    assert not any(b"KEY=" in store.get(name) for name in store.names())
    store.close()


def named(work: Work) -> Iterator[tuple[str, str, str]]:
    for step, digest in work.steps.items():
        yield step, digest, "app.py" if step in ("start", "agent", "hand") else "main.py"


def test_the_calls_of_an_agent_behind_another_gateway_of_the_store_are_its_own(tmp_path: Path) -> None:
    with workplace(tmp_path, "person") as work:
        code = str(work.folder / "app.py")
        work.client.asks("Look.", [uses("Read", file_path=code)], DONE)
        wait_for(work.has("app.py", "read"))
        other = GatewayProcess(tmp_path / "other", {"PAGEIN_FOLLOW_FILES": "person"}, str(work.gateway.store))
        with SimulatedProvider() as provider, other.door(provider.url) as url:
            CodingClient(url, work.folder, "tuesday").asks(
                "Make one() return 10, and two() 20.",
                [uses("Read", file_path=code)],
                [uses("Edit", file_path=code, old_string="return 1\n", new_string="return 10\n"), _later()],
                [uses("Edit", file_path=code, old_string="return 2\n", new_string="return 20\n"), _later()],
                DONE,
            )
            wait_for(work.has("app.py", "edit", 2))
            (work.folder / "app.py").write_text((work.folder / "app.py").read_text().replace("def two", "def second"))
            wait_for(work.has("app.py", "change"))
        time.sleep(1.0)  # both gateways tell what they found
        assert [one["op"] for one in work.history("app.py") if one["op"] != "read"] == ["edit", "edit", "change"]
        lines = answers(work, "app.py")
        assert {lines["return 10"], lines["return 20"]} == {"agent"}
        assert lines["def second():"] == "person"


def _later() -> dict[str, Any]:
    """A command that gives another gateway time to look at the files."""
    return uses("Bash", command="sleep 2.5")


def test_without_the_setting_the_same_changes_are_unknown_and_never_wrong(tmp_path: Path) -> None:
    with workplace(tmp_path, "off") as work:
        do_the_job(work, waits=False)
        lines = answers(work, "main.py")
        assert lines["return 100"] == "agent"
        assert {lines[one] for one in ("return 20", "def second():", "def one():")} == {"unknown"}
        versions = work.history("main.py") + work.history("app.py")
        assert {one["op"] for one in versions} <= {"read", "edit"}
        for one in versions:
            assert one["known"] != "whole" or one["content"].strip() in {
                APP.replace("return 1\n", "return 10\n").strip(),
                *(work.git("show", f"{digest}:./{name}").strip() for _, digest, name in named(work)),
            }
