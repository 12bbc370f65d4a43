"""A real pi in the pooled layout: references, active contents, the tools for them, and a session resumed in a new process."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from tests.agents.agent_drivers import commands_folder
from tests.agents.pi_process import PiPlace, running_pi, shown_results

from pagein.simulator import SimulatedProvider

pytestmark = pytest.mark.clients
FIRST = r"toolcall_ref id=([\w|-]+) tool=bash status=ok"
"""How a model finds the id of the first output in its reference."""


def test_contents_stand_behind_their_references_and_are_put_away_brought_back_and_resumed() -> None:
    commands = commands_folder()
    if commands is None:
        pytest.skip("coding agents are not installed: make clients")
    with TemporaryDirectory(prefix="pagein-pi-") as name, SimulatedProvider() as provider:
        place = PiPlace(Path(name), commands, settings={"PAGEIN_LAYOUT": "pooled"})
        place.workspace.mkdir()
        (place.workspace / "rows.py").write_text(
            "for n in range(100): print('row', n, 'of the output')\n", encoding="utf-8"
        )
        run = {"tool": "bash", "args": {"command": "python3 rows.py"}}
        put_away = {"tool": "deactivate", "args": {"id": "{{id}}"}}
        bring = {"tool": "activate", "args": {"id": "{{id}}"}}
        with running_pi(place, provider) as pi:
            pi.prompt([run], [{"capture": {"id": FIRST}}, put_away], [{"capture": {"id": FIRST}}, bring])
            rows, away, back = pi.answers()
            assert rows.endswith("row 99 of the output\n"), "pi's session keeps the output"
            assert away.startswith("Deactivated ")
            assert back.startswith("Activated ")
            shown = shown_results(provider)
            assert shown[0].startswith("toolcall_ref id=")
            assert shown[0].endswith("use activate with this id.")
            sent = str(provider.requests[-1].body["messages"])
            assert sent.count("row 99 of the output") == 1, "once, behind its reference"
            assert "METADATA_POOL lists" in sent
            assert {"activate", "deactivate", "pin", "unpin"} <= {
                one["name"] for one in provider.requests[0].body["tools"]
            }
            assert "1 active" in next(
                one["widgetLines"][0] for one in reversed(pi.events) if one.get("method") == "setWidget"
            )
            assert not [one for one in pi.events if one.get("type") == "extension_error"]
        number = len(provider.requests)
        with running_pi(place, provider, "-c") as pi:
            pi.prompt([{"capture": {"id": FIRST}}, {"tool": "pin", "args": {"id": "{{id}}"}}])
            again = provider.requests[number].body["messages"]
            before = provider.requests[number - 1].body["messages"]
            texts = [str(one["content"]).replace("'cache_control': {'type': 'ephemeral'}", "") for one in again]
            assert "toolcall_ref" in "".join(texts)
            assert str(again).count("row 99 of the output") == 1
            assert len(again) > len(before)
            assert pi.answers()[-1].startswith("Pinned ")
        assert all(one.usage is not None for one in provider.requests), "no request was refused"
