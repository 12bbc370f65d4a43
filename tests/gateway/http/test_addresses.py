import asyncio
from pathlib import Path

import pytest
from tests.gateway.upstreams import run, says, stage

from pagein.gateway.http.addresses import in_brackets, is_this_machine


@pytest.mark.parametrize(
    ("host", "near"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("[::1]", True),
        ("localhost", True),
        ("0.0.0.0", False),  # noqa: S104 -- that is the case
        ("::", False),
        ("192.168.1.4", False),
        ("box.lan", False),
        ("", False),
    ],
)
def test_what_other_machines_may_reach_is_told_from_what_they_may_not(host: str, near: bool) -> None:  # noqa: FBT001
    assert is_this_machine(host) is near


def test_ipv6_stands_in_brackets_once() -> None:
    assert [in_brackets(host) for host in ("::1", "[::1]", "127.0.0.1", "box")] == [
        "[::1]",
        "[::1]",
        "127.0.0.1",
        "box",
    ]


def test_a_path_with_an_escaped_end_of_line_passes(tmp_path: Path) -> None:
    async def go() -> None:
        async with stage(says(b"{}"), tmp_path) as on:
            reader, writer = await asyncio.open_connection("127.0.0.1", on.gateway.port)
            writer.write(b"GET /v1/files/a%0ab HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            await writer.drain()
            answer = await reader.read(-1)
            writer.close()
            assert answer.startswith(b"HTTP/1.1 200")
            assert on.upstream.got[0].line == "GET /v1/files/a%0ab HTTP/1.1"

    run(go())
