"""Export each model call to an OpenTelemetry collector, as a span and in metrics, over HTTP. Needs the extra `otel`.

No content leaves: names, figures and causes only. The export runs in threads of its own, with a bounded queue. A collector that does
not answer costs no call anything.
"""

from typing import TYPE_CHECKING, Final

from pagein.errors import BadSetting
from pagein.gateway.pages import telemetry_names as names
from pagein.gateway.pages.call_history import CallRecord

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics.export import MetricReader
    from opentelemetry.sdk.trace import SpanProcessor

_SECONDS: Final = 2.0
"""How long one attempt to export may take."""
_NANO: Final = 1_000_000_000


class Telemetry:
    """The export of a gateway's calls.

    Authentication, if the collector wants any, comes from the variables that OpenTelemetry defines, such as
    `OTEL_EXPORTER_OTLP_HEADERS`.
    """

    def __init__(self, version: str, spans: "SpanProcessor", metrics: "MetricReader") -> None:
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.view import ExplicitBucketHistogramAggregation, View
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider

        resource = Resource.create({"service.name": names.SERVICE, "service.version": version})
        self._spans = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._spans.add_span_processor(spans)
        views = [
            View(instrument_name=name, aggregation=ExplicitBucketHistogramAggregation(buckets))
            for name, buckets in ((names.TOKENS, names.TOKEN_BUCKETS), (names.DURATION, names.SECOND_BUCKETS))
        ]
        self._metrics = MeterProvider([metrics], resource=resource, shutdown_on_exit=False, views=views)
        self._tracer = self._spans.get_tracer(names.SERVICE, version)
        meter = self._metrics.get_meter(names.SERVICE, version)
        self._tokens = meter.create_histogram(names.TOKENS, "{token}", "Tokens of a model call")
        self._duration = meter.create_histogram(names.DURATION, "s", "Time of a model call")
        self._saved = meter.create_up_down_counter(names.SAVED, "{token}", "Saved, in base-input-token equivalents")
        self._recalls = meter.create_counter(names.RECALLS, "{call}", "Recall calls that were answered")

    def add(self, call: CallRecord, vendor: str) -> None:
        """Queue a finished call for export."""
        from opentelemetry.trace import SpanKind, Status, StatusCode

        common = names.common_attributes(call, vendor)
        span = self._tracer.start_span(
            names.span_name(call),
            kind=SpanKind.CLIENT,
            attributes=names.span_attributes(call, vendor),
            start_time=int(call.at * _NANO),
        )
        if failure := names.error_type(call):
            span.set_status(Status(StatusCode.ERROR, failure))
        span.end(end_time=int((call.at + call.took) * _NANO))
        for kind, tokens in names.token_counts(call):
            self._tokens.record(tokens, {**common, names.TOKEN_TYPE: kind})
        self._duration.record(call.took, common)
        if call.saved is not None:
            self._saved.add(call.saved)
        if call.recalls:
            self._recalls.add(call.recalls)

    def close(self) -> None:
        """Send what is queued, and end. Takes a few seconds at most if the collector does not answer."""
        self._spans.shutdown()
        self._metrics.shutdown(timeout_millis=_SECONDS * 1000)


def open_telemetry(address: str, version: str) -> Telemetry:
    """Return the export to the collector at an address. Raises BadSetting if the extra is not installed."""
    try:
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as missing:
        raise BadSetting(
            "the setting otel needs a package that is not installed; install pagein with the extra otel: pip install '.[otel]'"
        ) from missing
    base = address.rstrip("/")
    spans = BatchSpanProcessor(OTLPSpanExporter(f"{base}/v1/traces", timeout=_SECONDS))
    metrics = PeriodicExportingMetricReader(OTLPMetricExporter(f"{base}/v1/metrics", timeout=_SECONDS))
    return Telemetry(version, spans, metrics)
