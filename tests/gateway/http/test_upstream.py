"""The way to the upstream: whose certificates are trusted, what the client is told where nothing answers, and too many headers."""

import asyncio
import json
import shutil
import socket
import ssl
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from tests.gateway.test_relay import raw
from tests.gateway.upstreams import Got, Upstream, run, says, stage

from pagein.gateway.http import upstream
from pagein.gateway.http.certificates import VARIABLE, trust
from pagein.gateway.kill_switch import Switch
from pagein.gateway.server import Gateway, GatewayParts
from pagein.gateway.settings import GatewaySettings

VENDORS = [("/v1/messages", "invalid_request_error"), ("/v1/responses", "invalid_request_error")]
needs_openssl = pytest.mark.skipif(shutil.which("openssl") is None, reason="there is no openssl on this machine")


def openssl(folder: Path, *arguments: str) -> None:
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)  # noqa: S603, S607 -- our own


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a company's own authority (ca.pem) and a server that it vouches for (server.pem, server.key)."""
    folder = tmp_path_factory.mktemp("authority")
    key = ("-newkey", "rsa:2048", "-nodes", "-days", "2")
    openssl(folder, "req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=our own authority")
    openssl(folder, "req", *key[:3], "-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=127.0.0.1")
    (folder / "san").write_text("subjectAltName=IP:127.0.0.1\n")
    signed = ("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", "san")
    openssl(folder, "x509", "-req", "-in", "server.csr", *signed, "-out", "server.pem")
    return folder


@asynccontextmanager
async def behind_tls(authority: Path, tmp_path: Path) -> AsyncIterator[Gateway]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority / "server.pem", authority / "server.key")
    server = await asyncio.start_server(Upstream(says(b"{}")).serve, "127.0.0.1", 0, ssl=context)
    url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with Gateway(
        GatewaySettings(anthropic=url, port=0), GatewayParts(switch=Switch(tmp_path / "off", {}))
    ) as gateway:
        yield gateway
    server.close()
    await server.wait_closed()


async def told(gateway: Gateway) -> tuple[int, str]:
    async with aiohttp.ClientSession() as client, client.post(gateway.url + "/v1/messages", json={}) as answer:
        body = await answer.json(content_type=None)
        return answer.status, body.get("error", {}).get("message", "")


@needs_openssl
def test_certificates_that_the_clients_trust_by_their_environment_are_trusted_here_too(
    authority: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def go() -> tuple[int, str]:
        async with behind_tls(authority, tmp_path) as gateway:
            return await told(gateway)

    monkeypatch.delenv(VARIABLE, raising=False)
    status, message = run(go())
    assert status == 502
    assert VARIABLE in message
    assert "start pagein serve again" in message
    monkeypatch.setenv(VARIABLE, str(authority / "ca.pem"))
    assert run(go()) == (200, "")


@needs_openssl
@pytest.mark.parametrize("content", [None, "", "no certificate"])
def test_a_file_of_certificates_that_cannot_be_read_is_told_of_and_left_out(
    content: str | None, authority: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "ca.pem"
    if content is not None:
        file.write_text(content)
    monkeypatch.setenv(VARIABLE, str(file))

    async def go() -> list[str]:
        async with behind_tls(authority, tmp_path) as gateway:
            assert (await told(gateway))[0] == 502
            return gateway.board.notices

    (notice,) = run(go())
    assert str(file) in notice
    assert len(trust({}).context.get_ca_certs()) == len(trust({VARIABLE: str(file)}).context.get_ca_certs())


def test_an_upstream_that_takes_no_connection_or_none_knows_is_told_with_the_remedy(tmp_path: Path) -> None:
    async def go() -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            nowhere = f"http://127.0.0.1:{free.getsockname()[1]}"
            settings = GatewaySettings(anthropic=nowhere, openai="http://nobody.invalid", port=0)
            async with (
                Gateway(settings, GatewayParts(switch=Switch(tmp_path / "off", {}))) as gateway,
                aiohttp.ClientSession() as client,
            ):
                for path, word in (("/v1/messages", "nothing takes connections"), ("/v1/responses", "its name is not")):
                    async with client.post(gateway.url + path, json={}) as answer:
                        message = (await answer.json())["error"]["message"]
                    assert answer.status == 502
                    assert word in message
                    assert "--anthropic" in message

    run(go())


def test_one_that_ends_the_connection_is_told_with_the_remedy(tmp_path: Path) -> None:
    async def answer(_: Got, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async def go() -> None:
        async with stage(answer, tmp_path) as on:
            status, body = await on.post("/v1/messages", b"{}")
            assert status == 502
            assert "sending the request again may help" in json.loads(body)["error"]["message"]

    run(go())


def test_every_failure_has_words() -> None:
    for kind, words in upstream._REMEDIES:
        assert upstream.remedy(kind.__new__(kind)) == words
    assert "pagein doctor" in upstream.remedy(aiohttp.ClientError())


@pytest.mark.parametrize(("path", "kind"), VENDORS)
@pytest.mark.parametrize(
    "head",
    [
        "".join(f"x-{number}: 1\r\n" for number in range(200)),
        f"x-state: {'s' * 70_000}\r\n",
        f"x-state: {'s' * 300_000}\r\n",
    ],
    ids=["200 headers", "70 KB", "300 KB"],
)
def test_too_many_headers_and_too_long_ones_are_refused_in_the_vendors_form(
    path: str, kind: str, head: str, tmp_path: Path
) -> None:
    async def go() -> None:
        async with stage(says(b"{}"), tmp_path) as on:
            start = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 2\r\n"
            answer = await raw(on.gateway.port, (start + head + "\r\n{}").encode())
            top, _, body = answer.partition(b"\r\n\r\n")
            assert top.startswith(b"HTTP/1.1 431 ")
            error = json.loads(body)["error"]
            assert error["type"] == kind
            assert error["message"].startswith("pagein: ")
            assert on.upstream.got == []

    run(go())


def test_as_many_and_as_long_headers_as_vendors_take_pass(tmp_path: Path) -> None:
    async def go() -> None:
        async with stage(says(b"{}"), tmp_path) as on:
            head = "".join(f"x-{number}: 1\r\n" for number in range(120)) + f"x-state: {'s' * 60_000}\r\n"
            start = "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 2\r\n"
            assert (await raw(on.gateway.port, (start + head + "\r\n{}").encode())).startswith(b"HTTP/1.1 200 ")
            assert on.upstream.got[0].header("x-state") == ["s" * 60_000]

    run(go())


@pytest.mark.parametrize("length", ["", "Content-Length: 0\r\n", "Content-Length: 2\r\n"])
def test_a_deletion_has_the_length_that_the_client_sent_and_no_other(length: str, tmp_path: Path) -> None:
    async def go() -> None:
        async with stage(says(b"{}"), tmp_path) as on:
            head = f"DELETE /v1/files/f HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{length}\r\n"
            await raw(on.gateway.port, head.encode() + (b"{}" if "2" in length else b""))
            (got,) = on.upstream.got
            assert got.header("content-length") == ([length.partition(": ")[2].strip()] if length else [])
            assert got.header("transfer-encoding") == []
            assert got.body == (b"{}" if "2" in length else b"")

    run(go())
