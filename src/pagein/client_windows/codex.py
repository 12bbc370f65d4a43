"""The tool results in a window of codex, from the rollout file.

A rollout is a list: what stands before a call is what its model saw, back to the last boundary. A boundary is a
compaction, a rollback of turns, a row that is no JSON, and one of an unknown kind.
"""

import re
from collections.abc import Mapping
from typing import Final

from pagein.client_windows.transcript_tail import Row
from pagein.engine.log.standing_receipts import StandingReceipt, standing_receipt

_KNOWN: Final = frozenset((
    "session_meta", "response_item", "event_msg", "turn_context", "token_usage_record", "world_state", "security_risk_score",
    "dynamic_tools_updated", "inter_agent_communication", "inter_agent_communication_metadata", "realtime_item",
))  # fmt: skip
"""Kinds of rows that take nothing out of the window by themselves."""
_LOSS: Final = re.compile("compact|roll(?:ed_)?back|revert|rewind|truncat")
"""What the name of a payload has in it that takes something out."""
_HEAD: Final = re.compile(r"Wall time: [0-9.]+ seconds\nOutput:(?:\n|\Z)")
_LONGEST: Final = 9_000
"""Bytes of a result that codex shows whole to every model. Of longer ones it may show the beginning and the end."""


class CodexRollout:
    """The rows of a rollout so far."""

    def __init__(self) -> None:
        self._standing: dict[str, StandingReceipt] = {}
        self._at_call: dict[str, tuple[str, ...]] = {}
        self._receipts: dict[str, StandingReceipt] = {}

    def take(self, row: Row | None) -> None:
        """Take the next row."""
        payload = {} if row is None else row.get("payload", {})
        payload = payload if isinstance(payload, dict) else {}
        if row is None or row.get("type") not in _KNOWN or _LOSS.search(str(payload.get("type"))):
            self._standing = {}
            return
        name = payload.get("call_id")
        if row.get("type") != "response_item" or not isinstance(name, str):
            return
        if payload.get("type") == "function_call":
            self._at_call[name] = tuple(self._standing)
        elif payload.get("type") == "function_call_output":
            found = _receipt(payload.get("output"))
            if found is not None and self._receipts.setdefault(name, found) == found:
                self._standing[name] = found
            else:
                self._standing.pop(name, None)

    def standing(self, call_id: str) -> Mapping[str, StandingReceipt] | None:
        """Return the receipts before a call, by the ids of their calls; None if the call is not here yet."""
        names = self._at_call.get(call_id)
        return None if names is None else {one: self._standing[one] for one in names if one in self._standing}


def _receipt(output: object) -> StandingReceipt | None:
    """Return the receipt of a result with a single text below codex's own head."""
    parts = output if isinstance(output, list) else [{"text": output}]
    texts = [text for one in parts if isinstance(one, dict) and isinstance(text := one.get("text"), str)]
    if len(texts) != len(parts):
        return None
    if len(texts) > 1 and _HEAD.fullmatch(texts[0]):
        texts = texts[1:]
    if len(texts) != 1 or len(texts[0].encode("utf-8", "surrogatepass")) > _LONGEST:
        return None
    return standing_receipt(_HEAD.sub("", texts[0], count=1))
