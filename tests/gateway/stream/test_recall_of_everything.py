"""A model behind a gateway asks what an earlier session knew: answered only where the user's setting allows it."""

import json
from pathlib import Path

import pytest
from tests.gateway.recalling_clients import KINDS, Kind, stage
from tests.gateway.stream.test_recalls import CALL
from tests.gateway.upstreams import run
from tests.store.search.remembered_sessions import Remembered, answered

from pagein.store.sqlite.sqlite_store import SqliteStore

WORDS = "the token expires after an hour"


def earlier_session(folder: Path) -> str:
    store = SqliteStore(folder / "s.pagein")
    one = Remembered(store, "0199-login")
    one.say("why does the login fail?", answered(WORDS))
    store.close()
    return one.chat


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("allowed", [True, False], ids=["allowed", "by default"])
def test_two_calls_reach_an_earlier_session_where_it_is_allowed(kind: Kind, allowed: object, tmp_path: Path) -> None:
    chat = earlier_session(tmp_path)
    search = {"tool": "search", "args": {"pattern": "token expires", "everything": True, "session": "0199"}}
    peek = {"tool": "peek", "args": {"id": f"{chat}@1", "turns": "1"}}
    script: list[object] = [[CALL], [search], [peek], [{"text": "I see"}]]

    async def go() -> None:
        async with stage(kind, script, tmp_path, stream=True, everything=bool(allowed)) as here:
            await here.client.turn()
            assert "I see" in "".join(await here.client.turn())
            requests = here.provider.requests
            offered = {json.dumps(record.body["tools"]) for record in requests}
            assert len(offered) == 1
            assert ("everything" in offered.pop()) is bool(allowed)
            assert (WORDS in json.dumps(requests[2].body)) is bool(allowed)
            assert ("why does the login fail?" in json.dumps(requests[3].body)) is bool(allowed)

    run(go())


def test_a_running_conversation_keeps_its_tools_when_the_setting_changes(tmp_path: Path) -> None:
    from tests.gateway.recalling_clients import Messages

    async def go() -> None:
        async with stage(Messages, [[CALL], [{"text": "hm"}]], tmp_path, stream=True) as here:
            await here.client.turn()
            items, before = here.client.items, here.provider.requests[0].body["tools"]
        async with stage(Messages, [[{"text": "done"}]], tmp_path, stream=True, everything=True) as here:
            here.client.items = items
            await here.client.turn()
            assert here.provider.requests[0].body["tools"] == before

    run(go())
