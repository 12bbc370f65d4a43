import asyncio
import re
import stat
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import aiohttp
import pytest
from tests.gateway.stream.test_reply_reader import MESSAGES
from tests.gateway.upstreams import Stage, run, says, stage, streams, until

from pagein.errors import BadInput, StoreError
from pagein.gateway.curation.guarded_curator import CuratedRequest, CurationRequest, PassThrough, UsageAccount
from pagein.gateway.kill_switch import Switch, turn_off, turn_on
from pagein.gateway.settings import GatewaySettings
from pagein.providers.wire.streams.model_reply import ModelReply

BODY = b'{"model":"m",   "messages":[{"role":"user","content":"a long result"}]}'
SHORTER = b'{"model":"m","messages":[{"role":"user","content":"a stub"}]}'
JSON = {"Content-Type": "application/json"}


class Scripted(PassThrough):
    """A curator that does what a test says."""

    def __init__(self, prepare: Callable[[CurationRequest], CuratedRequest]) -> None:
        self._prepare = prepare
        self.asked: list[CurationRequest] = []
        self.seen: list[ModelReply] = []
        self.closed = False

    def prepare(self, asked: CurationRequest) -> CuratedRequest:
        self.asked.append(asked)
        return self._prepare(asked)

    def observe(self, curated: CuratedRequest, reply: ModelReply) -> UsageAccount:
        self.seen.append(reply)
        return UsageAccount(
            cost=10.0, saved=5.0, shortfall=3, explanation="it was too old", cause="expired", who="nobody"
        )

    def close(self) -> None:
        self.closed = True


def shortened(asked: CurationRequest) -> CuratedRequest:
    return CuratedRequest(SHORTER, "s", "m", epoch="cold", replaced=1, saved=len(asked.body) - len(SHORTER))


def failing(problem: Exception) -> Callable[[CurationRequest], CuratedRequest]:
    def prepare(_: CurationRequest) -> CuratedRequest:
        raise problem

    return prepare


def test_what_the_curator_decides_goes_out_and_its_answer_comes_back_to_it(tmp_path: Path) -> None:
    curator = Scripted(shortened)

    async def go() -> None:
        async with stage(streams(MESSAGES), tmp_path, curator=curator) as on:
            await on.post("/v1/messages", BODY, X_Claude_Code_Session_Id="abc", X_Claude_Code_Agent_Id="sub")
            assert on.upstream.got[0].body == SHORTER
            assert on.upstream.got[0].header("content-length") == [str(len(SHORTER))]
            (call,) = await on.calls()
            assert (call["session"], call["epoch"], call["replaced"], call["cause"]) == ("s", "cold", 1, "expired")
            figures = on.gateway.metrics.text().decode()
            assert "pagein_saved_bit 5.0" in figures
            assert 'pagein_cache_shortfalls_total{cause="expired",who="nobody"} 1.0' in figures
            assert 'pagein_tokens_total{kind="read",route="messages"} 70.0' in figures

    run(go())
    assert curator.asked[0].body == BODY
    assert curator.asked[0].hint is not None
    assert curator.asked[0].hint.key == "abc/sub"
    assert curator.seen[0].finished
    assert curator.closed


@pytest.mark.parametrize(
    ("prepare", "kind"),
    [
        (failing(RuntimeError("a bug")), "engine"),
        (failing(StoreError("database is locked")), "engine"),
        (failing(BadInput("no request")), "unreadable"),
        (failing(RecursionError("too deep")), "engine"),
        (lambda _: CuratedRequest(b""), "invalid"),
        (lambda asked: CuratedRequest(asked.body, failure="could not be stored"), "engine"),
    ],
    ids=["bug", "locked", "unreadable", "deep", "empty", "reported"],
)
def test_where_the_curator_fails_the_clients_bytes_go_out_once_with_a_warning(
    prepare: Callable[[CurationRequest], CuratedRequest], kind: str, tmp_path: Path
) -> None:
    async def go() -> None:
        settings = GatewaySettings(budget=60, grace=2)
        async with stage(says(b"{}"), tmp_path, curator=Scripted(prepare), settings=settings) as on:
            await went_as_it_came(on, kind)

    run(go())


def test_where_the_curator_takes_too_long_the_clients_bytes_go_out_once_with_a_warning(tmp_path: Path) -> None:
    leave = threading.Event()

    def slow(_: CurationRequest) -> CuratedRequest:
        leave.wait()
        return CuratedRequest(SHORTER)

    async def go() -> None:
        settings = GatewaySettings(budget=0.1, grace=2)
        async with stage(says(b"{}"), tmp_path, curator=Scripted(slow), settings=settings) as on:
            try:
                await went_as_it_came(on, "budget")
            finally:
                leave.set()

    run(go())


async def went_as_it_came(on: Stage, kind: str) -> None:
    async with on.client.post(on.url + "/v1/messages", data=BODY, headers=JSON) as answer:
        assert answer.status == 200
        assert answer.headers["x-pagein-warning"] == kind
    assert [got.body for got in on.upstream.got] == [BODY]
    assert f'pagein_failures_total{{kind="{kind}"}} 1.0' in on.gateway.metrics.text().decode()


def test_where_every_thread_hangs_requests_no_longer_wait_for_one(tmp_path: Path) -> None:
    leave = threading.Event()

    def hanging(asked: CurationRequest) -> CuratedRequest:
        leave.wait()
        return CuratedRequest(asked.body)

    async def go() -> None:
        settings = GatewaySettings(budget=0.2, grace=2)
        async with stage(says(b"{}"), tmp_path, curator=Scripted(hanging), settings=settings) as on:
            try:
                while 'kind="busy"' not in on.gateway.metrics.text().decode():
                    await asyncio.gather(*(on.post("/v1/messages", BODY) for _ in range(9)))
            finally:
                leave.set()
            while (await on.calls())[-1]["failure"]:  # until they are back
                await on.post("/v1/messages", BODY)
            assert {got.body for got in on.upstream.got} == {BODY}

    run(go())


def test_a_failure_after_the_answer_harms_nobody(tmp_path: Path) -> None:
    class Sour(Scripted):
        def observe(self, curated: CuratedRequest, reply: ModelReply) -> UsageAccount:
            raise StoreError("disk full")

    async def go() -> None:
        async with stage(streams(MESSAGES), tmp_path, curator=Sour(shortened)) as on:
            assert await on.post("/v1/messages", BODY) == (200, b"".join(MESSAGES))
            await on.calls()
            assert 'pagein_failures_total{kind="observe"} 1.0' in on.gateway.metrics.text().decode()

    run(go())


@pytest.mark.parametrize("how", ["header", "file", "environment"])
def test_the_kill_switch_passes_everything_byte_for_byte(how: str, tmp_path: Path) -> None:
    curator = Scripted(shortened)
    environment = {"PAGEIN_OFF": "1"} if how == "environment" else {}

    async def go() -> None:
        async with stage(streams(MESSAGES), tmp_path, curator=curator, environment=environment) as on:
            headers = {"Accept-Encoding": "br, gzip"} | ({"X-Pagein": "Off"} if how == "header" else {})
            if how == "file":
                turn_off(tmp_path / "off")
            async with on.client.post(on.url + "/v1/messages", data=BODY, headers=JSON | headers) as answer:
                assert await answer.read() == b"".join(MESSAGES)
            got = on.upstream.got[0]
            assert got.body == BODY
            assert got.header("accept-encoding") == ["br, gzip"]
            assert not [name for name, _ in got.headers if "pagein" in name.lower()]
            if how == "file":
                turn_on(tmp_path / "off")
                await on.post("/v1/messages", BODY)
                assert on.upstream.got[1].body == SHORTER

    run(go())
    assert len(curator.asked) == (1 if how == "file" else 0)


def test_the_switch_is_the_users_only_and_names_who_threw_it(tmp_path: Path) -> None:
    file = tmp_path / "data" / "off"
    turn_off(file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert Switch(file, {}).why().startswith("pagein off")
    turn_on(file)
    turn_on(file)
    assert Switch(file, {}).why() == ""
    assert Switch(file, {"PAGEIN_OFF": "yes"}).why() == "PAGEIN_OFF is set"
    assert not Switch(file, {"PAGEIN_OFF": "0"}).is_off()


SUBSCRIPTIONS = ["Bearer sk-ant-oat01-abcdef", "bearer eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl"]
KEYS = ["Bearer sk-proj-abcdefgh", "Bearer dummy", "Basic dXNlcjpwYXNzd29yZA=="]


@pytest.mark.parametrize("credential", [*SUBSCRIPTIONS, *KEYS])
@pytest.mark.parametrize("allowed", [True, False], ids=["allowed", "not allowed"])
def test_a_subscriptions_login_passes_untouched_and_is_measured(
    credential: str, allowed: object, tmp_path: Path
) -> None:
    curator = Scripted(shortened)
    untouched = credential in SUBSCRIPTIONS and not allowed

    async def go() -> None:
        settings = replace(GatewaySettings(grace=2, budget=60), subscriptions=bool(allowed))
        async with stage(streams(MESSAGES), tmp_path, curator=curator, settings=settings) as on:
            for _ in range(2):
                await on.post("/v1/messages", BODY, Authorization=credential, Anthropic_Beta="oauth-2025-04-20,x")
            got = on.upstream.got[0]
            assert got.body == (BODY if untouched else SHORTER)
            assert got.header("authorization") == [credential]
            assert got.header("anthropic-beta") == ["oauth-2025-04-20,x"]
            call = (await on.calls())[0]
            assert (call["passed"], call["read"]) == ("subscription" if untouched else "", 70)
            assert len([line for line in on.logged() if line["event"] == "notice"]) == int(untouched)

    run(go())


def test_an_api_key_beside_a_token_is_an_api_key(tmp_path: Path) -> None:
    async def go() -> None:
        async with stage(says(b"{}"), tmp_path, curator=Scripted(shortened)) as on:
            await on.post("/v1/messages", BODY, Authorization=SUBSCRIPTIONS[0], X_Api_Key="sk-ant-api03-x")
            assert on.upstream.got[0].body == SHORTER

    run(go())


def test_no_secret_and_no_body_is_ever_logged(tmp_path: Path) -> None:
    secret, said = "sk-ant-oat-SECRET", "WORDS-OF-THE-USER"

    async def go() -> None:
        curator = Scripted(failing(RuntimeError("a bug")))
        async with stage(
            says(b'{"error":"' + said.encode() + b'"}', status="400 Bad Request"), tmp_path, curator=curator
        ) as on:
            body = b'{"messages":"' + said.encode() + b'"}'
            for path in ("/v1/messages?key=" + secret, "/v1/other?key=" + secret):
                await on.post(path, body, Authorization="Bearer " + secret, X_Api_Key=secret, Cookie=secret)
            reader, writer = await asyncio.open_connection("127.0.0.1", on.gateway.port)
            writer.write(f"POST /v1/messages HTTP/1.1\r\nX-Api-Key {secret}\r\n\r\n{said}".encode())
            await reader.read(-1)
            writer.close()
            await on.calls()
            kept = on.log.getvalue() + repr(on.gateway.board.sessions()) + on.gateway.metrics.text().decode()
            assert secret not in kept
            assert said not in kept

    run(go())


@pytest.mark.parametrize("page", ["/healthz", "/metrics"])
def test_own_pages_answer_only_to_names_of_this_machine(page: str, tmp_path: Path) -> None:
    async def asked(on_url: str, client: aiohttp.ClientSession, **headers: str) -> int:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        async with client.get(on_url + page, headers=named) as answer:
            # without the token a page is asked for under a right name when it is refused for that alone
            return 200 if answer.status == 401 and page != "/healthz" else answer.status

    async def go() -> None:
        settings = GatewaySettings(grace=1, hosts=("box.example",))
        async with stage(says(b"{}"), tmp_path, settings=settings) as on:
            for host in ("127.0.0.1:1", "localhost:8790", "LOCALHOST", "[::1]:80", "box.example:8790"):
                assert await asked(on.url, on.client, Host=host) == 200, host
            for host in ("evil.example:8790", "localhost.evil.example", "127.0.0.1.evil.example", "10.0.0.1"):
                assert await asked(on.url, on.client, Host=host) == 403, host
            assert await asked(on.url, on.client, Sec_Fetch_Site="cross-site") == 403
            assert on.upstream.got == []

    run(go())


def test_figures_are_what_prometheus_reads(tmp_path: Path) -> None:
    async def go() -> None:
        async with stage(says(b"{}"), tmp_path) as on:
            await on.post("/v1/messages", BODY)
            async with on.client.get(on.url + "/metrics", headers=on.shown) as answer:
                lines = (await answer.text()).splitlines()
            assert all(re.fullmatch(r"#.*|[a-z_]+(\{[^}]*\})? [-+.e\w]+", line) for line in lines)
            assert 'pagein_requests_total{route="messages",status="200"} 1.0' in lines

    run(go())


def test_a_gateway_that_ends_lets_calls_under_way_come_to_their_end(tmp_path: Path) -> None:
    async def go() -> None:
        hold = asyncio.Event()
        async with stage(streams(MESSAGES, hold=hold), tmp_path) as on:
            call = asyncio.ensure_future(on.post("/v1/messages", BODY))
            await until(lambda: on.upstream.got)
            assert on.gateway.under_way == 1
            draining = asyncio.ensure_future(on.gateway.drain(60))
            await until(lambda: on.gateway._site is None)
            with pytest.raises(aiohttp.ClientConnectorError):
                async with aiohttp.ClientSession() as late:
                    await late.get(on.url + "/healthz")
            assert not draining.done()
            hold.set()
            assert await draining
            assert await call == (200, b"".join(MESSAGES))

    run(go())


def test_a_gateway_that_is_ended_twice_does_not_wait(tmp_path: Path) -> None:
    async def go() -> None:
        never = asyncio.Event()
        async with stage(streams(MESSAGES, hold=never), tmp_path, settings=GatewaySettings(grace=0.1)) as on:
            call = asyncio.ensure_future(on.post("/v1/messages", BODY))
            await until(lambda: on.upstream.got)
            assert await on.gateway.stop(0.1) is False
            with pytest.raises(aiohttp.ClientError):
                await call

    run(go())
