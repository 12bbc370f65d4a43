"""Frames of server-sent events."""

from collections.abc import Mapping
from typing import Any

from pagein.model.json_text import encode_json


def event_frame(event: Mapping[str, Any]) -> bytes:
    """An event named by the field `type`."""
    return b"event: " + str(event["type"]).encode() + b"\n" + data(event)


def data(event: Mapping[str, Any]) -> bytes:
    """An event without a name."""
    return b"data: " + encode_json(event) + b"\n\n"
