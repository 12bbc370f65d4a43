"""Request bodies of the three wire formats: decoded for pagein, re-emitted byte for byte if unchanged."""

from pagein.providers.wire.request_body import WireRequest, decode, render

__all__ = ["WireRequest", "decode", "render"]
