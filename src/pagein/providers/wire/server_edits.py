"""Detect requests whose own settings let the provider remove tool results.

Then nobody but the provider knows what its model sees of earlier results.
"""

from collections.abc import Mapping
from typing import Any, Final

from pagein.model.json_text import decode_json

EDITING_FIELDS: Final = frozenset({"context_management", "truncation"})
"""The fields by which a request can ask for such edits. Few requests have any."""
_KEEPS_RESULTS: Final = "clear_thinking"
"""How the kinds of those edits begin that leave results alone."""


def may_clear_results(fields: Mapping[str, bytes]) -> bool:
    """Return whether a request asks for such edits. A form that nobody knows counts as one.

    fields: top-level fields of the body, as their bytes.
    """
    if b'"auto"' in fields.get("truncation", b""):
        return True
    asked = fields.get("context_management")
    return asked is not None and _asks(decode_json(asked))


def _asks(asked: Any) -> bool:  # noqa: ANN401 -- any JSON
    if not asked:
        return False
    edits = asked.get("edits", []) if isinstance(asked, dict) else asked
    kinds = [one.get("type") if isinstance(one, dict) else None for one in edits] if isinstance(edits, list) else [None]
    return not all(isinstance(kind, str) and kind.startswith(_KEEPS_RESULTS) for kind in kinds)
