"""Who is answered: pages want the token, model calls must come from this machine's own programs, and beyond loopback all want it."""

import asyncio
import contextlib
import json
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from tests.gateway.browser import browsing, needs_browser
from tests.gateway.processes import gateway_process, token_in
from tests.gateway.test_serve import HEADERS, cli, conversation
from tests.gateway.upstreams import Stage, run, says, stage
from yarl import URL

from pagein.errors import BadSetting
from pagein.gateway.http.access_token import ensure_token, fresh, read_token
from pagein.gateway.http.addresses import with_token, without_token
from pagein.gateway.http.headers import without_cookie
from pagein.gateway.settings import GatewaySettings
from pagein.simulator import SimulatedProvider

PAGES = ["/", "/api/state", "/api/session?name=x", "/api/search?q=x", "/metrics"]
CALLS = ["/v1/messages", "/v1/chat/completions", "/v1/responses", "/anthropic/v1/messages"]
EVERYWHERE = "0.0.0.0"  # noqa: S104 -- that is the case


@contextlib.asynccontextmanager
async def open_stage(tmp_path: Path) -> AsyncIterator[Stage]:
    """A gateway that other machines may reach."""
    async with stage(says(b"{}"), tmp_path, settings=GatewaySettings(host=EVERYWHERE, grace=1, budget=60)) as on:
        yield on


async def status_of(on: Stage, path: str, method: str = "GET", **headers: str) -> int:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    data = b"{}" if method == "POST" else None
    async with on.client.request(method, on.url + path, headers=named, data=data, allow_redirects=False) as answer:
        return answer.status


@pytest.mark.parametrize("path", PAGES)
def test_a_page_wants_the_token_also_on_this_machine(path: str, tmp_path: Path) -> None:
    async def go() -> None:
        async with stage(says(b"{}"), tmp_path) as on:
            token = on.gateway.token
            assert await status_of(on, path) == 401
            assert await status_of(on, path, x_pagein_token=fresh()) == 401
            assert await status_of(on, path, Authorization="Bearer wrong", Cookie=f"pagein={token}") == 401
            right = {"x_pagein_token": token}, {"Authorization": f"Bearer {token}"}
            for headers in right:
                assert await status_of(on, path, **headers) in (200, 404)  # 404: no such session
            assert on.upstream.got == []

    run(go())


def test_the_link_sets_a_cookie_that_no_script_reads_and_no_other_site_sends_and_the_token_leaves_the_address(
    tmp_path: Path,
) -> None:
    async def go() -> None:
        async with stage(says(b"{}"), tmp_path) as on:
            async with on.client.get(on.gateway.page, allow_redirects=False) as answer:
                assert (answer.status, answer.headers["Location"]) == (303, "/")
                cookie = answer.headers["Set-Cookie"]
            assert {part.strip() for part in cookie.split(";")[1:]} == {"HttpOnly", "SameSite=Strict", "Path=/"}
            assert on.gateway.token not in cookie
            pair = cookie.partition(";")[0]
            for path in PAGES:
                assert await status_of(on, path, Cookie=pair) in (200, 404)
                assert await status_of(on, path, Cookie=pair, Host="evil.example") == 403
                assert await status_of(on, path, Cookie=pair, Sec_Fetch_Site="same-site") == 403

    run(go())


@pytest.mark.parametrize("path", CALLS)
def test_a_page_in_a_browser_cannot_post_a_model_call(path: str, tmp_path: Path) -> None:
    async def go() -> None:
        async with stage(says(b"{}"), tmp_path) as on:
            port = on.gateway.port
            for headers in (
                {"Host": f"rebound.example:{port}", "Origin": f"http://rebound.example:{port}"},
                {"Host": f"rebound.example:{port}"},
                {"Origin": "https://evil.example"},
                {"Origin": f"http://localhost:{port + 1}"},
                {"Origin": "null"},
                {"Sec_Fetch_Site": "cross-site"},
                {"Sec_Fetch_Site": "same-site"},
            ):
                assert await status_of(on, path, "POST", **headers) == 403, headers
            assert on.upstream.got == []
            for headers in (
                {},
                {"Host": f"localhost:{port}"},
                {"Sec_Fetch_Mode": "cors"},
                {"Origin": "https://evil.example", "x_pagein_token": on.gateway.token},
            ):
                assert await status_of(on, path, "POST", **headers) == 200, headers

    run(go())


def test_a_refusal_has_the_form_of_the_vendor(tmp_path: Path) -> None:
    async def go() -> None:
        async with stage(says(b"{}"), tmp_path) as on:
            for path, kind in (("/v1/messages", "permission_error"), ("/v1/responses", "invalid_request_error")):
                async with on.client.post(on.url + path, data=b"{}", headers={"Host": "box.lan"}) as answer:
                    error = (await answer.json())["error"]
                assert error["type"] == kind
                assert "--allow-host" in error["message"]

    run(go())


def test_beyond_loopback_everything_wants_the_token_whatever_name_is_asked_for(tmp_path: Path) -> None:
    async def go() -> None:
        async with open_stage(tmp_path) as on:
            token = on.gateway.token
            for path, method in (*((path, "GET") for path in PAGES), *((path, "POST") for path in CALLS)):
                for headers in ({}, {"Host": "localhost"}, {"Authorization": "Bearer sk-of-the-vendor"}):
                    assert await status_of(on, path, method, **headers) == 401, (path, headers)
                assert await status_of(on, f"/t-{fresh()}{path}", method) == 401
            assert await status_of(on, "/v1/models") == 401
            assert on.upstream.got == []
            assert await status_of(on, "/v1/messages", "POST", Authorization=f"Bearer {token}") == 401
            for path in CALLS:
                assert await status_of(on, path, "POST", x_pagein_token=token, Host="192.0.2.7:8790") == 200
                assert await status_of(on, f"/t-{token}{path}", "POST", Host="192.0.2.7:8790") == 200
            assert await status_of(on, f"/t-{token}/metrics") == 200

    run(go())


def test_what_shows_the_token_is_taken_off_before_upstream_and_log(tmp_path: Path) -> None:
    async def go() -> None:
        async with open_stage(tmp_path) as on:
            token = on.gateway.token
            await on.post(f"/t-{token}/v1/messages?beta=true", b'{"messages":[]}', Authorization="Bearer sk-key")
            await on.post(f"/t-{token}//v1/chat/completions", b"{}", x_pagein_token=token, Cookie="a=1; pagein=x; b=2")
            await on.post("/v1/responses", b"{}", x_pagein_token=token, Cookie="pagein=x")
            await on.calls()
            lines = [got.line for got in on.upstream.got]
            paths = ["/v1/messages?beta=true", "/v1/chat/completions", "/v1/responses"]
            assert lines == [f"POST {path} HTTP/1.1" for path in paths]
            assert [got.header("cookie") for got in on.upstream.got] == [[], ["a=1; b=2"], []]
            assert on.upstream.got[0].header("authorization") == ["Bearer sk-key"]
            for got in on.upstream.got:
                assert token not in repr(got.headers)
            assert token not in on.log.getvalue()

    run(go())


@pytest.mark.parametrize("path", ["/favicon.ico", "/api/sessions", "/v1/models", "/healthz//x", "/v1/messages"])
def test_a_bearer_that_is_the_token_goes_to_no_vendor_on_any_path(path: str, tmp_path: Path) -> None:
    async def go() -> None:
        async with stage(says(b"{}"), tmp_path) as on:
            token = on.gateway.token
            for told in (f"Bearer {token}", f"bearer   {token} "):
                assert await status_of(on, path, Authorization=told) == 200
            assert await status_of(on, path, Authorization="Bearer sk-key") == 200
            found = [got.header("authorization") for got in on.upstream.got]
            assert found == [[], [], ["Bearer sk-key"]]

    run(go())


@pytest.mark.parametrize("name", ["x-api-key", "X-Api-Key", "api-key", "x-goog-api-key", "Authorization"])
def test_a_key_that_is_the_token_goes_to_no_vendor_under_any_name(name: str, tmp_path: Path) -> None:
    """A client whose key is set to the token sends it where its vendor wants the key."""

    async def go() -> None:
        async with stage(says(b"{}"), tmp_path) as on:
            token = on.gateway.token
            for told in (token, f" {token} ", f"Bearer {token}", "sk-key"):
                assert await status_of(on, "/v1/messages", "POST", **{name: told}) == 200
            assert [got.header(name.lower()) for got in on.upstream.got] == [[], [], [], ["sk-key"]]
            assert token not in repr([got.headers for got in on.upstream.got])
            assert token not in on.log.getvalue()

    run(go())


@pytest.mark.parametrize("page", ["/metrics", "/healthz", "/api/state", "/api/session", "/api/search"])
def test_a_page_with_a_slash_behind_it_is_not_passed_on(page: str, tmp_path: Path) -> None:
    async def go() -> None:
        async with stage(says(b"{}"), tmp_path) as on:
            token = on.gateway.token
            for path in (f"{page}/", f"{page}//?q=x", f"/t-{token}{page}/"):
                for method in ("GET", "POST"):
                    assert await status_of(on, path, method, Authorization=f"Bearer {token}") == 404
            assert await status_of(on, f"{page}/", Host="evil.example") == 403
            assert on.upstream.got == []

    run(go())


def test_a_message_to_a_service_under_another_spelling_of_its_path_is_not_passed_on(tmp_path: Path) -> None:
    """It may hold what the user's model reads, and the vendor that it would go to is not the user's."""

    async def serve(_: web.Request) -> web.Response:
        return web.Response(status=202)

    async def go() -> None:
        async with stage(says(b"{}"), tmp_path, services={"/mcp": serve}) as on:
            told = {"Authorization": f"Bearer {on.gateway.token}"}
            assert await status_of(on, "/mcp", "POST", **told) == 202
            for path in ("/mcp/", "//mcp", "/mcp/?q=x", f"/t-{on.gateway.token}/mcp"):
                assert await status_of(on, path, "POST", **told) == 404
            assert on.upstream.got == []

    run(go())


@pytest.mark.parametrize(
    "path",
    [
        "/mcp/../mcp",
        "/mcp/.",
        "/x/../mcp",
        "/openai/../mcp",
        "/mcp/%2e%2e/mcp",
        "/%2E./mcp",
        "/v1/mcp",
        "/anthropic/mcp",
        "/mcp/mcp",
        "/mcp/more",
        "/MCP",
        "/%6dcp/",
        "/mcp%2f",
        "/mcp%20",
        "/mcp;a=b",
        "/mcp%3Fa",
        "/mcp\\..\\mcp",
        "/t-TOKEN/../mcp",
        "/t-TOKEN/v1/mcp",
        "/x/../t-TOKEN/mcp",
        "http://127.0.0.1/mcp/../mcp",
    ],
)
def test_a_message_that_bears_the_token_reaches_no_vendor_by_a_path_with_a_services_name(
    path: str, tmp_path: Path
) -> None:
    """Clients normalise paths before they send them, so the request is written by hand."""

    async def serve(_: web.Request) -> web.Response:
        return web.Response(status=202)

    async def go() -> None:
        async with stage(says(b"{}"), tmp_path, services={"/mcp": serve}) as on:
            token, home = on.gateway.token, URL(on.url)
            reader, writer = await asyncio.open_connection(home.host, home.port)
            head = (
                f"POST {path.replace('TOKEN', token)} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n"
            )
            writer.write(f"{head}Content-Length: 2\r\nConnection: close\r\n\r\n{{}}".encode())
            answer = await reader.read()
            writer.close()
            assert answer.split()[1] in (b"202", b"404"), answer
            assert on.upstream.got == []

    run(go())


@pytest.mark.parametrize(
    "path",
    ["/mcp/.", "/x/../mcp", "/openai/..%2fmcp", "/./mcp/more", "/..//MCP", "/a/b/../../../mcp", "/x/../t-TOKEN/mcp"],
)
def test_a_raw_path_that_leads_to_a_service_reaches_no_vendor_without_a_token(path: str, tmp_path: Path) -> None:
    async def serve(_: web.Request) -> web.Response:
        return web.Response(status=202)

    async def go() -> None:
        async with stage(says(b"{}"), tmp_path, services={"/mcp": serve}) as on:
            home = URL(on.url)
            reader, writer = await asyncio.open_connection(home.host, home.port)
            head = f"POST {path.replace('TOKEN', on.gateway.token)} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            writer.write(f"{head}Content-Length: 2\r\nConnection: close\r\n\r\n{{}}".encode())
            answer = await reader.read()
            writer.close()
            assert answer.split()[1] == b"404", answer
            assert on.upstream.got == []

    run(go())


@pytest.mark.parametrize(
    "path",
    [
        *("/v1/mcp", "/v1/mcp/servers?limit=1", "/proxy/mcp", "/anthropic/mcp", "/x/y/../mcp", "/t-TOKEN/v1/mcp"),
        *("/v1/mcp_servers?limit=1", "/v1/files/a.b..c", "/v1/models?path=../mcp"),
    ],
)
def test_a_path_that_only_looks_like_a_services_is_passed_on(path: str, tmp_path: Path) -> None:
    async def serve(_: web.Request) -> web.Response:
        return web.Response(status=202)

    async def go() -> None:
        async with stage(says(b"{}"), tmp_path, services={"/mcp": serve}) as on:
            assert await status_of(on, path.replace("TOKEN", on.gateway.token)) == 200
            assert len(on.upstream.got) == 1

    run(go())


def test_health_is_open_to_all_and_tells_strangers_no_paths(tmp_path: Path) -> None:
    async def go() -> None:
        (tmp_path / "off").touch()
        async with open_stage(tmp_path) as on:
            for host in ("192.0.2.7", "box.lan"):
                async with on.client.get(on.url + "/healthz", headers={"Host": host}) as answer:
                    assert answer.status == 200
                    told = await answer.json()
                assert set(told) == {"status", "version", "off", "curating", "store", "memory"}
                assert told["off"] == "yes"
            async with on.client.get(on.url + "/healthz", headers=on.shown) as answer:
                assert str(tmp_path) in (await answer.json())["off"]

    run(go())


def test_the_token_is_the_users_alone_and_the_same_after_a_restart(tmp_path: Path) -> None:
    told = []
    with SimulatedProvider() as provider:
        for _ in range(2):
            with gateway_process(provider.url, tmp_path) as (_, process):
                told.append(token_in(tmp_path))
                process.terminate()
    assert told[0] == told[1]
    file = tmp_path / "data" / "pagein" / "gateway.token"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_a_token_that_others_may_know_is_made_anew(tmp_path: Path) -> None:
    file = tmp_path / "new" / "gateway.token"
    first = ensure_token(file)
    assert ensure_token(file) == read_token(file) == first
    file.chmod(0o644)
    assert read_token(file) == ""
    second = ensure_token(file)
    assert second != first
    for text in ("", "short", "a b" * 20, "\n" * 50):
        file.write_text(text)
        assert len(ensure_token(file)) >= 43
    other = tmp_path / "other"
    other.write_text(fresh())
    other.chmod(0o600)
    file.unlink()
    file.symlink_to(other)
    assert ensure_token(file) != other.read_text()
    assert not file.is_symlink()
    assert [one.name for one in file.parent.iterdir()] == [file.name]
    with pytest.raises(BadSetting, match="cannot be kept"):
        ensure_token(other / "gateway.token")


def test_a_gateway_that_cannot_keep_its_token_serves_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("no folder")
    with SimulatedProvider() as provider, gateway_process(provider.url, tmp_path) as (url, process):
        assert run(_posted(url)) == 200
        process.terminate()
        assert "good until it ends" in process.communicate()[1]


def test_beyond_loopback_the_start_says_so_and_gives_agents_an_address_that_works(tmp_path: Path) -> None:
    with (
        SimulatedProvider() as provider,
        gateway_process(provider.url, tmp_path, "--host", EVERYWHERE) as (url, process),
    ):
        token = token_in(tmp_path)
        base = with_token(url, token)
        assert run(_posted(base)) == 200
        assert run(_posted(url)) == 401
        upstreams = ("--anthropic", provider.url, "--openai", provider.url, "--store", str(tmp_path / "s.pagein"))
        told = {"ANTHROPIC_BASE_URL": base, "ENABLE_TOOL_SEARCH": "true", "ANTHROPIC_MODEL": "claude-opus-5[1m]"}
        found = cli("doctor", "--json", "--url", url, *upstreams, folder=tmp_path, **told)
        assert found.returncode == 0, found.stdout
        assert token not in found.stdout
        levels = {one["what"]: one["level"] for one in json.loads(found.stdout)["findings"]}
        assert levels["Claude Code"] == levels["gateway"] == "fine"
        (tmp_path / "data" / "pagein" / "gateway.token").unlink()
        ensure_token(tmp_path / "data" / "pagein" / "gateway.token")
        closed = cli("doctor", "--json", "--url", url, *upstreams, folder=tmp_path)
        wrong = {one["what"]: one["told"] for one in json.loads(closed.stdout)["findings"] if one["level"] == "wrong"}
        assert "another token" in wrong["gateway"]
        process.terminate()
        said = process.communicate()[1]
        assert "answers only requests with its token" in said
        assert token not in said


def test_addresses_are_printed_and_compared_without_their_token() -> None:
    assert without_token("http://h:1/t-abc") == without_token("http://h:1/") == "http://h:1/"
    assert without_token("http://h:1/t-abc/v1") == "http://h:1/v1"


def test_a_cookie_of_ours_is_taken_out_and_others_stay_as_they_were() -> None:
    assert without_cookie([("Cookie", "a=1;b=pagein")], "pagein") == [("Cookie", "a=1; b=pagein")]
    assert without_cookie([("Cookie", "a=1;b=2"), ("X", "pagein=1")], "pagein") == [
        ("Cookie", "a=1;b=2"),
        ("X", "pagein=1"),
    ]
    assert without_cookie([("cookie", "pagein=1"), ("X", "")], "pagein") == [("X", "")]


@needs_browser
def test_a_browser_opens_the_page_by_its_link_and_a_page_of_another_port_gets_nothing(tmp_path: Path) -> None:
    async def go() -> None:
        async with stage(says(b"{}"), tmp_path) as on, browsing(on.gateway.page, tmp_path / "browser") as page:
            await page.until("document.querySelector('#overview h2') !== null")
            assert on.gateway.token not in str(await page.value("location.href"))
            assert await page.value("document.cookie") == ""
            assert await page.value("fetch('/metrics').then((answer) => answer.status)") == 200
            # a server of somebody else's on this machine: the same site for a browser, cookie included
            server = await asyncio.start_server(_other_server, "127.0.0.1", 0)
            port = server.sockets[0].getsockname()[1]
            await page.tell("Page.navigate", url=f"http://127.0.0.1:{port}/")
            await page.until(f"location.port === '{port}' && document.readyState === 'complete'")
            opened = await page.value(
                f"fetch('{on.url}/api/state', {{credentials: 'include'}}).then(() => 'read', () => 'closed')"
            )
            assert opened == "closed"
            await page.value(
                f"fetch('{on.url}/v1/messages', {{method: 'POST', mode: 'no-cors', body: '{{}}'}}).then(() => 1, () => 0)"
            )
            assert on.upstream.got == []
            server.close()

    run(go())


@needs_browser
def test_a_browser_without_the_link_is_told_what_to_open(tmp_path: Path) -> None:
    async def go() -> None:
        async with stage(says(b"{}"), tmp_path) as on, browsing(on.url, tmp_path / "browser") as page:
            await page.until("document.body.innerText.includes('open the link that pagein serve printed')")

    run(go())


async def _other_server(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi")
    await writer.drain()
    writer.close()


async def _posted(url: str) -> int:
    async with (
        aiohttp.ClientSession() as client,
        client.post(url + "/v1/messages", json=conversation(0), headers=HEADERS) as answer,
    ):
        return answer.status
