"""Metrics for Prometheus."""

import time
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from pagein.model.messages import Usage

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_BUCKETS: Final = (0.0005, 0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1.0, 2.0, 5.0)


class Metrics:
    """The counters of a gateway. Label values come from fixed lists, so that the number of series is bounded.

    ended: when the last request ended, in seconds of the monotonic clock; minus infinity before the first.
    """

    def __init__(self) -> None:
        self.ended = float("-inf")
        self.registry = CollectorRegistry()
        self._requests = Counter("pagein_requests", "Requests answered", ["route", "status"], registry=self.registry)
        self._passed = Counter(
            "pagein_passed", "Model calls passed through as they were", ["why"], registry=self.registry
        )
        self._failures = Counter(
            "pagein_failures", "Failures that the client was kept from", ["kind"], registry=self.registry
        )
        self._breaks = Counter(
            "pagein_breaks", "Answers that did not come to their end", ["side"], registry=self.registry
        )
        self._tokens = Counter(
            "pagein_tokens", "Tokens by how they are billed", ["route", "kind"], registry=self.registry
        )
        self._saved = Gauge("pagein_saved_bit", "Saved so far, in base-input-token equivalents", registry=self.registry)
        self._epochs = Counter("pagein_epochs", "Epochs opened", ["side"], registry=self.registry)
        self._shortfalls = Counter(
            "pagein_cache_shortfalls",
            "Calls that read less from the cache than was to be expected",
            ["cause", "who"],
            registry=self.registry,
        )
        self._short_tokens = Counter(
            "pagein_cache_shortfall_tokens", "Tokens by which they fell short", registry=self.registry
        )
        self._added = Histogram(
            "pagein_added_seconds",
            "Time a model call was held before it was sent on",
            registry=self.registry,
            buckets=_BUCKETS,
        )
        self._recalls = Counter(
            "pagein_recalls", "Calls of recall tools that were answered", ["tool", "answer"], registry=self.registry
        )
        self._keep_alives = Counter(
            "pagein_keep_alives", "Keep-alive requests, by what became of them", ["result"], registry=self.registry
        )
        self._keep_alive_bit = Counter(
            "pagein_keep_alive_bit", "What they cost, in base-input-token equivalents", registry=self.registry
        )
        self._under_way = Gauge("pagein_under_way", "Requests being answered now", registry=self.registry)

    def count_begin(self) -> None:
        """Count an incoming request."""
        self._under_way.inc()

    def count_end(self, route: str, status: int) -> None:
        """Count a finished request; status 0 for no answer."""
        self._under_way.dec()
        self.ended = time.monotonic()
        self._requests.labels(route, str(status)).inc()

    def count_passthrough(self, why: str) -> None:
        """Count a passthrough model call."""
        self._passed.labels(why).inc()

    def count_failure(self, kind: str) -> None:
        """Count a failure of pagein or the upstream."""
        self._failures.labels(kind).inc()

    def count_break(self, side: str) -> None:
        """Count a broken answer, by the `upstream` or by the `client`."""
        self._breaks.labels(side).inc()

    def observe_wait(self, seconds: float) -> None:
        """Record the time of a model call in the gateway."""
        self._added.observe(seconds)

    def count_usage(self, route: str, usage: Usage) -> None:
        """Count the usage reported by the provider."""
        for kind, count in (
            ("read", usage.read),
            ("written", usage.written),
            ("fresh", usage.fresh),
            ("output", usage.output),
        ):
            self._tokens.labels(route, kind).inc(count)

    def count_savings(self, bit: float) -> None:
        """Add the savings of a call; negative for a more expensive call."""
        self._saved.inc(bit)

    def count_epoch(self, side: str) -> None:
        """Count an opened epoch, by `us` or by the `client`."""
        self._epochs.labels(side).inc()

    def count_shortfall(self, cause: str, who: str, tokens: int) -> None:
        """Count a cache miss."""
        self._shortfalls.labels(cause, who).inc()
        self._short_tokens.inc(tokens)

    def count_recall(self, tool: str, *, is_error: bool) -> None:
        """Count an answered recall call."""
        self._recalls.labels(tool, "error" if is_error else "text").inc()

    def count_keepalive(self, result: str, bit: float) -> None:
        """Count a keep-alive request, sent or not."""
        self._keep_alives.labels(result).inc()
        self._keep_alive_bit.inc(bit)

    def text(self) -> bytes:
        """Return the page for Prometheus."""
        return generate_latest(self.registry)
