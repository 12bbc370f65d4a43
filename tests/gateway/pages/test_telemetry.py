"""The export of model calls to an OpenTelemetry collector: a server on loopback that decodes what it is sent."""

import asyncio
import io
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from pagein import wiring
from pagein.errors import BadSetting
from pagein.gateway.curation.engine_curator import EngineCurator
from pagein.gateway.pages.json_logs import logger_to
from pagein.gateway.pages.telemetry_names import DURATION, TOKENS
from pagein.gateway.server import Gateway, GatewayParts
from pagein.gateway.settings import GatewaySettings
from pagein.simulator import SimulatedProvider

SECRET = "the word that must not leave"  # noqa: S105 - no secret


@contextmanager
def collector() -> Iterator[tuple[str, dict[str, list[bytes]]]]:
    """The address of a collector, and the bodies that it got by path."""
    got: dict[str, list[bytes]] = {}

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            assert self.headers.get("content-encoding", "identity") == "identity"
            got.setdefault(self.path, []).append(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", got
    finally:
        server.shutdown()
        server.server_close()


def attributes(some: Any) -> dict[str, object]:  # noqa: ANN401 - of protobuf
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in some}


async def call(gateway: Gateway) -> int:
    body = {
        "model": "claude-sonnet-4-5",
        "max_tokens": 9,
        "messages": [{"role": "user", "content": SECRET}],
    }
    headers = {"x-api-key": SECRET, "anthropic-version": "2023-06-01"}
    async with (
        aiohttp.ClientSession() as http,
        http.post(f"{gateway.url}/v1/messages", json=body, headers=headers) as answer,
    ):
        await answer.read()
        return answer.status


async def serve(otel: str, folder: Path) -> float:
    """Make two calls through a gateway with this collector. Return the seconds that its end took."""
    async with SimulatedProvider([[{"text": SECRET}]] * 2) as provider:
        settings = GatewaySettings(anthropic=provider.url, openai=provider.url, port=0, otel=otel)
        curator = EngineCurator(wiring.open(folder / "s.pagein"))
        async with Gateway(settings, GatewayParts(curator, logger=logger_to(io.StringIO()))) as gateway:
            for _ in range(2):
                assert await call(gateway) == 200
            await gateway.settle()
            began = time.monotonic()
        return time.monotonic() - began


def test_calls_reach_a_collector_as_spans_and_metrics_without_content(tmp_path: Path) -> None:
    with collector() as (address, got):
        asyncio.run(serve(address, tmp_path))
    bodies = got["/v1/traces"] + got["/v1/metrics"]
    assert not any(SECRET.encode() in body for body in bodies)
    traces = [ExportTraceServiceRequest.FromString(body) for body in got["/v1/traces"]]
    resources = [one for told in traces for one in told.resource_spans]
    assert attributes(resources[0].resource.attributes)["service.name"] == "pagein"
    spans = [span for one in resources for scope in one.scope_spans for span in scope.spans]
    assert [span.name for span in spans] == ["chat claude-sonnet-4-5"] * 2
    told = attributes(spans[0].attributes)
    assert told["gen_ai.operation.name"] == "chat"
    assert told["gen_ai.provider.name"] == "anthropic"
    assert told["gen_ai.request.model"] == "claude-sonnet-4-5"
    assert told["http.response.status_code"] == 200
    assert isinstance(told["gen_ai.usage.input_tokens"], int)
    assert told["gen_ai.usage.input_tokens"] > 0
    assert told["gen_ai.conversation.id"]
    assert spans[0].end_time_unix_nano > spans[0].start_time_unix_nano > 0
    metrics = [
        metric
        for body in got["/v1/metrics"]
        for one in ExportMetricsServiceRequest.FromString(body).resource_metrics
        for scope in one.scope_metrics
        for metric in scope.metrics
    ]
    points = {metric.name: list(metric.histogram.data_points) for metric in metrics if metric.HasField("histogram")}
    tokens = {attributes(one.attributes)["gen_ai.token.type"]: one for one in points[TOKENS]}
    assert (set(tokens), tokens["input"].count) == ({"input", "output"}, 2)
    assert tokens["input"].sum == sum(attributes(span.attributes)["gen_ai.usage.input_tokens"] for span in spans)  # type: ignore[misc]
    assert points[DURATION][0].count == 2


def test_a_collector_that_is_not_there_costs_no_call_and_holds_no_end_up(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        assert asyncio.run(serve(f"http://127.0.0.1:{taken.getsockname()[1]}", tmp_path)) < 20


def test_an_address_that_is_none_is_refused() -> None:
    with pytest.raises(BadSetting, match="otel"):
        GatewaySettings(otel="localhost:4318")
