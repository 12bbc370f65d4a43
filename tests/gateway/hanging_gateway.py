"""A gateway in a process of its own, of which one part never comes back: `python -m tests.gateway.hanging_gateway UPSTREAM PART`."""

import json
import logging
import sys
import tempfile
import threading
from pathlib import Path

from pagein.engine.send.recall_exchanges import RecallExchange
from pagein.gateway.curation.guarded_curator import CuratedRequest, CurationRequest, PassThrough, UsageAccount
from pagein.gateway.http.addresses import with_token
from pagein.gateway.kill_switch import Switch
from pagein.gateway.pages.json_logs import logger_to
from pagein.gateway.pages.session_views import HitView, Inside
from pagein.gateway.process import serve_until_signal
from pagein.gateway.server import Gateway, GatewayParts
from pagein.gateway.settings import GatewaySettings
from pagein.providers.wire.streams.model_reply import ModelReply
from pagein.providers.wire.streams.model_turn import OwnCall, OwnToolResult

PARTS = ("prepare", "observe", "recall", "spliced", "close", "looker")


class Hanging(PassThrough):
    """Offers a tool of ours, and hangs in one part; which of the parts were come to stands on standard error."""

    def __init__(self, part: str) -> None:
        self._part = part

    def _come_to(self, part: str) -> None:
        if part == self._part:
            sys.stderr.write(f"hangs in {part}\n")
            sys.stderr.flush()
            threading.Event().wait()

    def prepare(self, asked: CurationRequest) -> CuratedRequest:
        self._come_to("prepare")
        return CuratedRequest(asked.body, "s", tools=frozenset({"peek"}))

    def observe(self, curated: CuratedRequest, reply: ModelReply) -> UsageAccount:
        self._come_to("observe")
        return super().observe(curated, reply)

    def recall(self, curated: CuratedRequest, call: OwnCall) -> OwnToolResult:
        self._come_to("recall")
        return super().recall(curated, call)

    def splice_answer(self, curated: CuratedRequest, exchange: RecallExchange) -> str:
        self._come_to("spliced")
        return super().splice_answer(curated, exchange)

    def close(self) -> None:
        self._come_to("close")

    def inside(self, session: str) -> Inside:
        self._come_to("looker")
        return Inside(name=session, window={}, epochs=[], objects=[])

    def search(self, text: str) -> list[HitView]:
        del text
        self._come_to("looker")
        return []


def _tell(gateway: Gateway) -> None:
    print(json.dumps({"url": with_token(gateway.url, gateway.token)}), flush=True)  # noqa: T201


def main() -> None:
    upstream, part = sys.argv[1:]
    curator = Hanging(part)
    with tempfile.TemporaryDirectory() as folder:
        settings = GatewaySettings(anthropic=upstream, openai=upstream, port=0, budget=0.5)
        parts = GatewayParts(curator, curator, Switch(Path(folder) / "off", {}), logger_to(sys.stderr, logging.INFO))
        serve_until_signal(Gateway(settings, parts), _tell)


if __name__ == "__main__":
    main()
