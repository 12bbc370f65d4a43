"""Request bodies of the three wire formats: decoded for pagein, re-emitted byte for byte if unchanged.

Beside them: edits of cache breakpoints, TTLs and tools in a body, and the usage in answers.
"""

from pagein.providers.wire.request_body import WireRequest, decode, render

__all__ = ["WireRequest", "decode", "render"]
