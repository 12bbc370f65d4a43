"""A real pi with pagein's extension: what its model is shown, what its session keeps, and that nothing of ours stops it."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from tests.agents.agent_drivers import commands_folder, search_path
from tests.agents.pi_process import PiPlace, PiProcess, put_extension, running_pi, shown_results

from pagein.simulator import SimulatedProvider

pytestmark = pytest.mark.clients
NAVIGATE = str(Path(__file__).resolve().parents[1] / "fixtures" / "pi" / "navigate.ts")
WHOLE = "[readcache: unchanged, 31 lines]"
FOUND = r'rlm_peek\(\\?"(pg-[0-9a-f-]+)'
"""How a model finds the id in a stub."""
FILE = "".join(f"line {number} of the file\n" for number in range(1, 31))


def read(path: str = "a.txt", **lines: int) -> dict[str, Any]:
    return {"tool": "read", "args": {"path": path, **lines}}


@pytest.fixture
def place() -> Iterator[PiPlace]:
    commands = commands_folder()
    if commands is None:
        pytest.skip("coding agents are not installed: make clients")
    with TemporaryDirectory(prefix="pagein-pi-") as name:
        made = PiPlace(Path(name), commands, compaction={"keepRecentTokens": 10, "enabled": True})
        made.workspace.mkdir()
        (made.workspace / "a.txt").write_text(FILE, encoding="utf-8")
        yield made


@pytest.fixture
def provider() -> Iterator[SimulatedProvider]:
    with SimulatedProvider() as made:
        yield made


def kinds(pi: PiProcess) -> list[str]:
    """How each read of pi's session was answered, by the record that pi keeps."""
    return [one.get("details", {}).get("readcache", {}).get("mode", "-") for one in pi.results()]


def quiet(pi: PiProcess) -> bool:
    """Whether no extension failed."""
    return not [one for one in pi.events if one.get("type") == "extension_error"]


def test_a_reread_is_answered_by_a_marker_a_change_by_a_diff_and_a_refresh_by_the_text(
    place: PiPlace, provider: SimulatedProvider
) -> None:
    pagein = str(Path(sys.executable).with_name("pagein"))
    home = {"HOME": str(place.home), "PYTHONPATH": os.pathsep.join(sys.path), "PATH": os.environ["PATH"]}
    environment = {**home, "PI_CODING_AGENT_DIR": str(place.home / "pi")}
    for where in ([], ["--project"]):  # pi loads both, and one of them must do nothing
        command = [pagein, "install", "pi", "--yes", *where]
        subprocess.run(command, env=environment, check=True, cwd=place.workspace)  # noqa: S603 -- our own
    path = os.pathsep.join((str(Path(pagein).parent), search_path(place.commands)))
    with running_pi(replace(place, settings={"PATH": path}, is_new=True), provider, "-e", NAVIGATE) as pi:
        pi.prompt([read()], [read()], [read("a.txt:3-7")])
        assert pi.answers() == [FILE, WHOLE, "[readcache: unchanged in lines 3-7 of 31]"]
        assert shown_results(provider) == pi.answers(), "the model sees what the session keeps"
        assert len(pi.children()) == 1
        assert [one for one in pi.notices() if "pagein is at work" in one] == pi.notices()[:1]

        (place.workspace / "a.txt").write_text(FILE.replace("line 9 of", "line nine of"), encoding="utf-8")
        pi.prompt([read()])
        assert "-line 9 of the file\n+line nine of the file\n" in pi.answers()[-1]

        assert pi.order("/readcache-refresh a.txt") == "[readcache-refresh] invalidated full scope for a.txt"
        held = pi.branch()[-1]
        assert (held["type"], held["customType"], held["data"]["kind"]) == ("custom", "pi-readcache", "invalidate")
        pi.prompt(
            [read()], [{"tool": "readcache_refresh", "args": {"path": "a.txt", "offset": 2, "limit": 3}}], [read()]
        )
        assert kinds(pi) == ["full", "unchanged", "unchanged_range", "diff", "full", "-", "partly_known"]
        assert "line 3 of the file" in pi.answers()[-1]
        assert "mode counts: full=2" in pi.order("/readcache-status")
        answers = [told for name, told in json.loads(pi.order("/heard")) if name == "pagein:answer"]
        assert [one["record"]["mode"] for one in answers if one["changed"]] == [
            "unchanged",
            "unchanged_range",
            "diff",
            "partly_known",
        ]
        assert quiet(pi)


def test_what_a_branch_shows_is_known_there_alone(place: PiPlace, provider: SimulatedProvider) -> None:
    with running_pi(place, provider, "-e", NAVIGATE) as pi:
        pi.prompt([{"text": "nothing yet"}])
        before = pi.branch()[-1]["id"]
        pi.prompt([read()], [read()])
        behind = pi.branch()[-1]["id"]
        pi.order(f"/go {before}")
        pi.prompt([read()])
        assert pi.answers() == [FILE], "the other branch has not shown it"
        pi.order(f"/go {behind}")
        pi.prompt([read()])
        assert pi.answers() == [FILE, WHOLE, WHOLE]

        assert pi.command("compact")["success"]
        pi.prompt([read()], [read()], [read(offset=2, limit=4)])
        assert kinds(pi)[-3:] == ["full", "unchanged", "unchanged_range"], "a compaction ends what was known"
        pi.order(f"/go {behind}")
        pi.prompt([read()])
        assert pi.answers()[-1] == WHOLE, "before the compaction it is known"

        point = pi.command("get_fork_messages")["data"]["messages"][0]["entryId"]
        assert pi.command("fork", entryId=point)["success"]
        pi.prompt([read()])
        assert pi.answers() == [FILE]
        assert quiet(pi)


def test_a_session_is_resumed_from_pis_own_file_and_survives_the_death_of_pagein(
    place: PiPlace, provider: SimulatedProvider
) -> None:
    with running_pi(place, provider) as pi:
        pi.prompt([read()], [{"tool": "write", "args": {"path": "b.txt", "content": FILE}}])
        for child in pi.children():
            os.kill(child, signal.SIGKILL)
        pi.prompt([read()], [read("b.txt")])
        assert pi.answers()[-2:] == [WHOLE, WHOLE]
        assert pi.notices() == []
        pi.order("/readcache-refresh b.txt")
        pi.prompt([{"text": "an answer, for pi writes its file with answers"}])
    again = replace(place, settings={"PAGEIN_STORE": str(place.folder / "another.db")})
    with running_pi(again, provider, "-c") as pi:
        pi.prompt([read()], [read("b.txt")])
        assert pi.answers()[-2:] == [WHOLE, FILE], "the branch alone is enough, with its refreshes"
        assert quiet(pi)


def test_a_big_output_leaves_the_request_and_comes_back_by_its_id_and_no_text_of_ours_gets_into_a_file(
    place: PiPlace, provider: SimulatedProvider
) -> None:
    code = "".join(f"print('row', {number}, 'of an output that nobody needs for long')\n" for number in range(400))
    (place.workspace / "rows.py").write_text(code, encoding="utf-8")
    (place.workspace / "b.py").write_text(
        "def first():\n    return 1\n\n\ndef second():\n    return 2\n", encoding="utf-8"
    )
    with running_pi(replace(place, settings={"PAGEIN_PI_READ_MODES": "true"}), provider, "-e", NAVIGATE) as pi:
        assert pi.order("/rlm on") == "Paging is on."
        peek = {"tool": "rlm_peek", "args": {"id": "{{id}}", "offset": 0, "length": 50}}
        run = {"tool": "bash", "args": {"command": "python3 rows.py"}}
        pi.prompt([run], [{"capture": {"id": FOUND}}, peek], [{"text": "seen"}])
        whole, part = pi.answers()
        shown = shown_results(provider)
        assert len(whole) > 5 * len(shown[0]), "pi keeps the whole, the model sees a preview"
        assert part.startswith(whole[:50])
        assert "rlm_peek" in shown[0]
        assert "RLM Status: ON" in pi.order("/rlm status")
        assert "bash" in pi.order("/rlm inspect")
        assert [(name, len(told["results"])) for name, told in json.loads(pi.order("/heard"))] == [("pagein:window", 1)]
        pi.order("/rlm off")
        stub = {"tool": "write", "args": {"path": "c.txt", "content": 'Use rlm_peek("{{id}}") to view'}}
        pi.prompt([{"capture": {"id": FOUND}}, stub])
        assert "Nothing was written" in pi.answers()[-1], "a stub must not get into a file"
        symbol = {"tool": "read", "args": {"path": "b.py", "mode": "snippet", "start_line": 5, "end_line": 6}}
        pi.prompt([run], [symbol], [read("b.py")])
        assert shown_results(provider)[3] == whole, "nothing leaves any more"
        assert "def second():\n    return 2" in pi.answers()[-2]
        assert "def first" not in pi.answers()[-2]
        assert "rlm_peek" not in [one["name"] for one in provider.requests[-1].body["tools"]]

        assert pi.command("new_session")["success"]
        pi.prompt([read(), read("none.txt"), read()])
        assert min(shown_results(provider), key=len) == WHOLE, "parallel reads see one another"
        assert FILE in shown_results(provider)
        assert [one["isError"] for one in pi.results()] == [False, True, False]
        pi.prompt([read()], [{"tool": "write", "args": {"path": "c.txt", "content": f"head\n{WHOLE}\n"}}])
        assert pi.answers()[-2] == WHOLE
        assert "Nothing was written" in pi.answers()[-1], "a marker must not get into a file"
        assert not (place.workspace / "c.txt").exists()
        assert quiet(pi)


NEWER = "from pagein.pi_host import host; host.PROTOCOL = 99; from pagein.cli.cli import main; main()"
BROKEN: dict[str, dict[str, Any]] = {
    r"ENOENT": {"command": ["no-such-pagein", "pi"]},
    r"did not answer within": {"command": ["sh", "-c", "echo null; echo 7; echo '[{'; exec sleep 60"], "patience": 0.4},
    r"is not pagein": {"command": ["sh", "-c", 'echo "{\\"id\\":1,\\"result\\":7}"; exec cat']},
    r"pagein install pi --yes": {"command": [sys.executable, "-c", NEWER, "pi"]},
}
"""How pagein is started, by what a person is then told."""


def test_with_pagein_broken_pi_works_as_without_it_and_says_so_once(
    place: PiPlace, provider: SimulatedProvider
) -> None:
    put_extension(place)
    with running_pi(place, provider) as pi:
        for reason, launch in BROKEN.items():
            (place.extension / "launch.json").write_text(json.dumps(launch), encoding="utf-8")
            assert pi.command("new_session")["success"]  # which loads the extension anew
            before = len(pi.notices())
            pi.prompt([read()], [read()])
            pi.prompt([read()])
            assert pi.answers() == [FILE, FILE, FILE]
            assert len(pi.notices()) == before + 1
            assert re.search(reason, pi.notices()[-1])
        assert quiet(pi)


def test_without_a_store_pi_works_and_when_the_store_is_there_pagein_does(
    place: PiPlace, provider: SimulatedProvider
) -> None:
    blocked = place.folder / "blocked"
    blocked.write_text("where the folder of the store should be", encoding="utf-8")
    settings = {"PAGEIN_STORE": str(blocked / "store.db")}
    with running_pi(replace(place, settings=settings), provider) as pi:
        pi.prompt([read()], [read()])
        assert pi.answers() == [FILE, FILE]
        assert len(pi.notices()) == 1
        blocked.unlink()
        blocked.mkdir()
        time.sleep(2.1)  # for so long pi waits before it tries again
        pi.prompt([{"text": "starts it"}])
        assert "tracked scopes" in pi.order("/readcache-status")
        pi.prompt([read()], [read()])
        assert pi.answers()[-2:] == [FILE, WHOLE]
        assert len(pi.notices()) == 2
        assert quiet(pi)
