"""Recorded sessions, sent call by call as by their clients, on a real store: no request is refused, and nothing is lost."""

import json
from pathlib import Path

import pytest
from tests.engine import wire_clients as clients
from tests.engine.log.repaired_messages import repair_messages
from tests.providers.validity.test_recorded_requests import SESSIONS, TARGETS, said_in

import pagein
from pagein.providers.validity import NOTHING_RECEIVED, Api, target
from pagein.providers.wire import check_body, render, with_request

pytestmark = pytest.mark.corpus
_CALLS = 60


@pytest.mark.parametrize("path", SESSIONS, ids=lambda path: path.name)
@pytest.mark.parametrize(("api", "model"), TARGETS)
def test_recorded_sessions_are_prepared_without_a_failure_a_refusal_or_a_loss(
    tmp_path: Path, path: Path, api: Api, model: str
) -> None:
    said = said_in(path)
    calls = [place for place, one in enumerate(said) if one.role == "assistant" and place]
    received = NOTHING_RECEIVED
    objects: dict[str, str] = {}
    with pagein.open(tmp_path / "store.db", workspace=tmp_path) as engine:
        for call in calls[:: max(len(calls) // _CALLS, 1)]:
            body = json.dumps(render(repair_messages(said[:call])[0], api, model=model)).encode()
            prepared = engine.prepare(body, api, at=said[call].at or 30.0 * call, hint="recorded")
            assert prepared.failure is None
            theirs, ours = json.loads(body), prepared.request
            assert check_body(ours, api, target(model, betas=[]), received) == []
            received = with_request(received, ours, api)
            left = (*prepared.previewed, *(prepared.opened.paged if prepared.opened else ()))
            objects.update((one.call_id, one.object_id) for one in left)
            before, shown = clients.results_of(theirs, api), clients.results_of(ours, api)
            assert list(before) == list(shown)
            for name in (name for name in before if before[name] != shown[name]):
                assert engine.recall(objects[name]) == before[name]
