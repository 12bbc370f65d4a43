"""A model behind the gateway asks child models about evicted content, and the client sees one answer."""

import asyncio
import io
import itertools
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from tests.gateway.browser import browsing, needs_browser
from tests.gateway.recalling_clients import KINDS, Kind, Messages, Stage, unmarked
from tests.gateway.stream.test_recalls import CALL, CAPTURE, PREVIEWED
from tests.gateway.upstreams import run, until

from pagein import wiring
from pagein.delegation.call_tree import PROCESS_CALLS
from pagein.gateway import answer_stream
from pagein.gateway.curation.branch_children import TOOLS, GatewayChildren
from pagein.gateway.curation.engine_curator import EngineCurator, ToolTerms
from pagein.gateway.http.addresses import with_token
from pagein.gateway.kill_switch import Switch
from pagein.gateway.pages.json_logs import logger_to
from pagein.gateway.server import Gateway, GatewayParts
from pagein.gateway.settings import GatewaySettings
from pagein.policy.delegation.limits import DelegationLimits, DelegationSettings
from pagein.simulator import ProviderCall, ScriptTurn, SimulatedProvider
from pagein.simulator.script import scripts_from, turn_from
from pagein.simulator.turn_choice import choose_turn

QUERY = {"tool": "query", "args": {"instructions": "Which line says 198?", "target": ["{{id}}"]}}
BATCH = {"tool": "batch", "args": {"instructions": "Count.", "targets": ["{{id}}", "pg-01234567-89abcdef"]}}
EXTRACT = {"tool": "extract", "args": {"instructions": "List the last line.", "targets": ["{{id}}"]}}
REPLY = json.dumps({"answer": "it is line 199", "confidence": "high", "evidence": ["line 198 of what make said"]})
CHILD = "RLM child analyzer"
LIMITS = DelegationLimits(child_seconds=30, operation_seconds=60)
each = pytest.mark.parametrize("kind", KINDS)
both = pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])


def plays(*turns: object, child: object = ({"text": REPLY},)) -> Callable[[ProviderCall], ScriptTurn]:
    """A provider whose model takes these turns, and whose children all take one turn."""
    scripts, of_child = scripts_from([[CALL], *turns]), turn_from(list(child), "child")  # type: ignore[call-overload]
    return lambda asked: of_child if is_childs(asked.body) else choose_turn(asked, scripts).turn


def is_childs(body: object) -> bool:
    return CHILD in json.dumps(body)


@asynccontextmanager
async def stage(
    kind: Kind,
    script: object,
    folder: Path,
    *,
    stream: bool = True,
    limits: DelegationLimits = LIMITS,
    hour_usd: float = 5.0,
    subscriptions: bool = False,
) -> AsyncIterator[Stage]:
    async with SimulatedProvider(script) as provider, aiohttp.ClientSession() as http:
        url = provider.url
        settings = GatewaySettings(
            anthropic=url,
            openai=url,
            google=url,
            port=0,
            grace=2,
            budget=60,
            children=True,
            subscriptions=subscriptions,
        )
        engine = wiring.open(folder / "s.pagein", settings=PREVIEWED)
        parts = GatewayParts(
            EngineCurator(engine, tools=ToolTerms(children=TOOLS)),
            None,
            Switch(folder / "off", {}),
            logger_to(io.StringIO()),
            children=GatewayChildren(engine, DelegationSettings(limits), hour_usd),
        )
        async with Gateway(settings, parts) as gateway:
            yield Stage(kind(gateway.url, http, stream), provider, gateway)
        assert [one.refused for one in provider.requests if one.refused] == []
        assert PROCESS_CALLS.operations() == ()


def of_children(here: Stage) -> list[Any]:
    return [one for one in here.provider.requests if is_childs(one.body)]


def of_model(here: Stage) -> list[Any]:
    return [one for one in here.provider.requests if not is_childs(one.body)]


@each
@both
def test_a_child_is_asked_with_the_clients_key_and_answered_in_the_stream(
    kind: Kind, stream: object, tmp_path: Path
) -> None:
    async def go() -> None:
        script = plays([CAPTURE, {"text": "I ask. "}, QUERY], [{"text": "line 199"}], [{"text": "bye"}])
        async with stage(kind, script, tmp_path, stream=bool(stream)) as here:
            assert "Bash" in await here.client.turn()
            shown = "".join(await here.client.turn())
            assert shown.replace("\n", "").endswith("line 199")
            assert "query" not in json.dumps(here.client.items)
            here.client.items.append({"role": "user", "content": "go on"})
            assert "".join(await here.client.turn()) == "bye"
            (child,) = of_children(here)
            parents = of_model(here)
            logins = [{"x-api-key", "authorization"} & one.headers.keys() for one in (child, parents[0])]
            assert logins[0] == logins[1]
            assert "line 321 of what make said" in json.dumps(child.body)
            assert "build it" not in json.dumps(child.body)  # nothing of the client's conversation
            told = json.dumps(parents[-1].body)
            assert "it is line 199" in told
            assert "line 199" in told
            sent = [unmarked(one.body[here.client.key]) for one in parents]
            assert all(later[: len(earlier)] == earlier for earlier, later in itertools.pairwise(sent))

    run(go())


def test_an_answer_is_stored_and_a_foreign_object_is_not_shown_to_a_child(tmp_path: Path) -> None:
    async def go() -> None:
        script = plays([CAPTURE, BATCH], [CAPTURE, EXTRACT], [{"text": "done"}])
        async with stage(Messages, script, tmp_path) as here:
            await here.client.turn()
            await here.client.turn()
            assert len(of_children(here)) == 2
            told = json.dumps(of_model(here)[-1].body)
            assert told.count("kept as artifact ") == 1
            assert "it is line 199" in told
            assert "pg-01234567-89abcdef not found" in told
        with wiring.open(tmp_path / "s.pagein") as engine:
            assert any("it is line 199" in engine.recall(one) for one in _ids_in(told))

    run(go())


def _ids_in(told: str) -> list[str]:
    return [word.strip('".,;:()[]\\n') for word in told.replace("\\n", " ").split() if word.startswith(("pg-", "(pg-"))]


@pytest.mark.parametrize(
    ("child", "says"),
    [
        ([{"error": 401, "times": 0}], "RefusedKey"),
        ([{"error": 404, "times": 0}], "UnknownModel"),
        ([], "answered with nothing"),
        ([{"text": '{"answer": "broken'}], "broken"),
    ],
)
def test_a_child_that_fails_is_a_labelled_answer_and_the_model_goes_on(
    child: list[object], says: str, tmp_path: Path
) -> None:
    async def go() -> None:
        async with stage(Messages, plays([CAPTURE, QUERY], [{"text": "without"}], child=child), tmp_path) as here:
            await here.client.turn()
            assert await here.client.turn() == ["without"]
            assert says in json.dumps(of_model(here)[-1].body)

    run(go())


def test_a_client_gets_pings_and_ends_its_children_when_it_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answer_stream, "_QUIET", 0.05)

    async def read(here: Stage, parts: list[bytes]) -> None:
        async with here.client.http.post(here.client.url + "/v1/messages", json=here.client.body()) as answer:
            while part := await answer.content.readany():
                parts.append(part)

    async def go() -> None:
        parts: list[bytes] = []
        script = plays([CAPTURE, QUERY], [{"text": "never"}], child=[{"wait": 30}, {"text": REPLY}])
        async with stage(Messages, script, tmp_path) as here:
            await here.client.turn()
            asking = asyncio.ensure_future(read(here, parts))
            await until(lambda: of_children(here) and PROCESS_CALLS.operations() and b"event: ping" in b"".join(parts))
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
            await until(lambda: not PROCESS_CALLS.operations())
            assert len(of_model(here)) == 2  # the model was not asked to go on
            await until(lambda: here.gateway._children._spent)  # type: ignore[union-attr]
            ((_, usd),) = here.gateway._children._spent  # type: ignore[union-attr]
            assert 0 < usd < LIMITS.usd / 2  # what the call may have cost, and not all that was set aside

    run(go())


@needs_browser
def test_a_person_sees_the_children_at_work_on_the_page_and_cancels_them_and_the_model_goes_on(tmp_path: Path) -> None:
    async def go() -> None:
        script = plays([CAPTURE, QUERY], [{"text": "on without"}], child=[{"wait": 60}, {"text": REPLY}])
        async with stage(Messages, script, tmp_path) as here:
            await here.client.turn()
            asking = asyncio.ensure_future(here.client.turn())
            await until(lambda: of_children(here))
            async with browsing(with_token(here.gateway.url, here.gateway.token), tmp_path / "browser") as page:
                await page.until("document.querySelector('#children button') !== null")
                text = await page.text()
                assert "Children at work" in text
                assert "query “Which line says 198?”: 0 of 1; $0.0000 of at most $0." in text
                assert "turn 1" in text
                await page.value("document.querySelector('#children button').click()")
                assert "".join(await asking) == "on without"
                await page.until("document.querySelector('#children button') === null")
                assert "query “Which line says 198?”: 0 of 1; $0." in await page.text()  # the last one ended, first
                # this stage has no archive of sessions, which the page asks for, too
                assert all("404" in one and "/api/children" not in one for one in page.problems)
            assert "Partial: 0 of 1 answered: cancelled" in json.dumps(of_model(here)[-1].body)

    run(go())


def test_a_login_of_a_subscription_is_never_used_for_children(tmp_path: Path) -> None:
    async def go() -> None:
        async with stage(Messages, plays([{"text": "done"}]), tmp_path, subscriptions=True) as here:
            for headers in ({"authorization": "Bearer sk-ant-oat01-abc"}, {"x-api-key": "own"}):
                url = here.client.url + "/v1/messages"
                here.client.items = [{"role": "user", "content": f"build for {next(iter(headers))}"}]
                async with here.client.http.post(url, json=here.client.body(), headers=headers) as answer:
                    assert answer.status == 200
            tools = [{one["name"] for one in record.body["tools"]} for record in here.provider.requests]
            assert [{"query", "batch"} <= one for one in tools] == [False, True]

    run(go())


def test_the_cap_of_the_hour_ends_the_children_and_says_so(tmp_path: Path) -> None:
    async def go() -> None:
        script = plays([CAPTURE, QUERY], [CAPTURE, QUERY], [{"text": "done"}])
        async with stage(Messages, script, tmp_path, hour_usd=0.1) as here:
            here.gateway._children._spent.append((time.monotonic(), 0.1))  # type: ignore[union-attr]
            await here.client.turn()
            assert await here.client.turn() == ["done"]
            assert of_children(here) == []
            assert "children_hour_usd" in json.dumps(of_model(here)[-1].body)

    run(go())
