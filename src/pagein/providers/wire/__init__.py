"""Request bodies of the three wire formats: decoded for us, re-emitted byte for byte where we changed nothing."""

from pagein.providers.wire.request_body import WireRequest, decode, render

__all__ = ["WireRequest", "decode", "render"]
