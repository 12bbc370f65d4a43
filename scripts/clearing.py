"""The provider's own clearing: find parameters that remove exactly the wanted results (rules M22 and M23).

Inside of a tool loop, where thinking is bound to its prefix, an edit of ours would be refused; the provider clears what stands in
front of the model and leaves the bindings of the prompt as it was sent (T7). What is cleared stays in the journal (law 1).

The planner does not use it (docs/decisions/0016): what may leave is seldom a run that the parameters can name, and clearing the part that
they can costs more than waiting for the user's turn. Beside that a `keep` that grows is another request to the provider, and whether its
cache takes it for the same prompt is not documented. Measure with a real account before this is relied on.

Rules of this file
------------------
1. The provider clears a run from the first call on, all but the tools that are named: what cannot be said so is not asked for.
2. What was cleared stays cleared: `keep` is counted from the end, so it grows with each later call, and the run stays as it was.
3. The client's own edits stay, in their order, in front of ours (M23). Where it has such an edit itself, or one that compacts,
   nothing is added. Body and header travel together: the one without the other is refused (M22).
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pagein.providers.validity.request_settings import edits_of
from pagein.providers.validity.turns import Wire

KIND: Final = "clear_tool_uses_20250919"
BETA: Final = "context-management-2025-06-27"
_FAMILY: Final = "context-management-"


@dataclass(frozen=True, slots=True)
class Use:
    """A call of a tool in a request. answered: whether its result stands there, and was not cleared before."""

    id: str
    tool: str
    answered: bool = True


@dataclass(frozen=True, slots=True)
class ClearRun:
    """A run of calls whose results go. through: how many calls it spans, from the first one on. spared: tools that stay in it."""

    through: int
    spared: tuple[str, ...] = ()

    def edit(self, uses: int) -> dict[str, Any]:
        """The edit for a request with so many calls. It is made whatever the size, as the decision was."""
        made: dict[str, Any] = {
            "type": KIND,
            "trigger": {"type": "tool_uses", "value": max(self.through - 1, 0)},
            "keep": {"type": "tool_uses", "value": max(uses - self.through, 0)},
        }
        return made | ({"exclude_tools": list(self.spared)} if self.spared else {})


def clear_run(uses: Sequence[Use], wanted: Collection[str]) -> ClearRun | None:
    """The parameters by which the results of the wanted calls go, and no others; None where that cannot be said.

    uses: all calls of the request, in order.
    """
    places = [place for place, use in enumerate(uses) if use.id in wanted]
    if not places or len(places) != len(set(wanted)) or not all(uses[place].answered for place in places):
        return None
    through = places[-1] + 1
    going = {uses[place].tool for place in places}
    staying = {use.tool for use in uses[:through] if use.id not in wanted and use.answered}
    return None if going & staying else ClearRun(through, tuple(sorted(staying)))


def grown(before: ClearRun, uses: Sequence[Use], wanted: Collection[str]) -> ClearRun | None:
    """A run that clears these besides what is cleared already; None where that cannot be said, or would bring something back."""
    run = uses[: before.through]
    gone = {use.id for use in run if use.tool not in before.spared and use.answered}
    return clear_run(uses, gone | set(wanted))


def uses_in(body: Wire) -> tuple[Use, ...]:
    """The calls of a Messages request, in order."""
    blocks = [
        block
        for message in body.get("messages", ())
        if isinstance(message, dict) and isinstance(message.get("content"), list)
        for block in message["content"]
        if isinstance(block, dict)
    ]
    answered = {str(block.get("tool_use_id")) for block in blocks if block.get("type") == "tool_result"}
    return tuple(
        Use(str(block.get("id")), str(block.get("name")), str(block.get("id")) in answered)
        for block in blocks
        if block.get("type") == "tool_use"
    )


def management(body: Wire, wanted: ClearRun) -> dict[str, Any] | None:
    """The field `context_management` of a request with this clearing beside the client's edits; None where theirs leave no room."""
    edits = edits_of(body)
    if any(_rules_out(edit) for edit in edits):
        return None
    given = body.get("context_management")
    fields: Mapping[str, Any] = given if isinstance(given, dict) else {}
    return {**fields, "edits": [*edits, wanted.edit(len(uses_in(body)))]}


def _rules_out(edit: Wire) -> bool:
    kind = str(edit.get("type"))
    return kind.startswith(("clear_tool_uses_", "compact_"))


def with_beta(header: str | None) -> str:
    """The value of `anthropic-beta` with what clearing needs; unchanged where a beta of that family is asked for already."""
    given = [one.strip() for one in (header or "").split(",") if one.strip()]
    if header is not None and any(one.startswith(_FAMILY) for one in given):
        return header
    return ",".join([*given, BETA])
