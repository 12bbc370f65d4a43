"""Wire formats: requests decoded and re-emitted byte for byte, answers read, merged and continued, requests checked.

A format is a folder; its contract is `wire_format.WireFormat`; `formats` lists them.
"""

from pagein.providers.wire.body_check import Checker, Violation, check_body, check_messages, with_request
from pagein.providers.wire.formats import FORMATS, RULES, format_named
from pagein.providers.wire.request_body import WireRequest, decode, render

__all__ = [
    "FORMATS",
    "RULES",
    "Checker",
    "Violation",
    "WireRequest",
    "check_body",
    "check_messages",
    "decode",
    "format_named",
    "render",
    "with_request",
]
