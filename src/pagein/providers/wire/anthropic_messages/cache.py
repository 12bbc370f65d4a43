"""Cache breakpoints of Anthropic Messages."""

from typing import Final

from pagein.providers.caches.cache_values import LONG, Breakpoint
from pagein.providers.validity.turns import PromptTurn, TurnPart, Wire
from pagein.providers.wire.json_values import Json
from pagein.providers.wire.wire_format import BreakpointForm, CacheForm

_CACHED: Final = ("tool", "text", "image", "call", "result")
_ALSO_CACHED: Final = ("document", "search_result")


def may_carry(_turn: PromptTurn | None, part: TurnPart) -> bool:
    """Whether the provider accepts a breakpoint on a block (A9, M17)."""
    if part.kind == "text" and not part.text.strip() and part.wire.get("type") in (None, "text", "input_text"):
        return False
    if part.kind == "other":
        return part.wire.get("type") in _ALSO_CACHED
    return part.kind in _CACHED and part.wire.get("defer_loading") is not True


def _word(mark: Breakpoint) -> str:
    return "1h" if mark.ttl == LONG else "5m"


def _mark(word: str) -> Wire:
    return {"type": "ephemeral", "ttl": "1h"} if word == "1h" else {"type": "ephemeral"}


def _miss_question(before: str | None) -> tuple[str, Json]:
    return "diagnostics", {"previous_message_id": before}


FORM: Final = CacheForm(
    "generic:",
    BreakpointForm("cache_control", "text", may_carry, _word, _mark, automatic="cache_control"),
    needs_breakpoints=True,
    depends_on_settings=True,
    takes_ttls=True,
    miss_question=_miss_question,
)
