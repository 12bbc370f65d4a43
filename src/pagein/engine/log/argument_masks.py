"""Arguments of calls as residents of the window, and what stands in their place (law 8).

Rules of this file
------------------
1. Only arguments of calls that were answered and did not fail are residents: whatever failed may be tried again with the same text.
2. What a call's arguments weigh is their share, by characters, of what its message weighs.
3. A name of a call that stands twice in the message means none of the two.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from pagein.engine.log.message_weight import chars_of
from pagein.engine.log.pin_state import Hand
from pagein.engine.log.rendering import Cell, WindowPiece, size
from pagein.model.entries import PagedOut
from pagein.model.messages import ToolCall, ToolResult
from pagein.policy.eviction.argument_masks import ArgumentRules, Weight, weight
from pagein.policy.eviction.residents import Resident
from pagein.policy.privacy.exclusions import may_show_excluded


@dataclass(frozen=True, slots=True)
class CallMessage:
    """A message of the model's, where its calls stand. place: its number in the request. before: tokens in front of it."""

    piece: WindowPiece
    place: int
    before: int

    @classmethod
    def of(cls, tip: Cell | None) -> "CallMessage | None":
        """The last message of a request, None where there is none."""
        return None if tip is None else cls(tip.piece, tip.length - 1, size(tip.before))

    def share(self, call: ToolCall) -> int:
        """Tokens that a call's arguments weigh in it, estimated."""
        chars = sum(chars_of(block) for block in self.piece.message.blocks)
        return round(self.piece.weight * len(call.arguments) / chars) if chars else 0


def residents(
    asking: CallMessage, answered: Mapping[str, int], hand: Hand, rules: ArgumentRules, excluded: tuple[str, ...]
) -> Iterator[Resident]:
    """Arguments of this message that may be masked one day. answered: calls that were, and did not fail, with the model call that sees it."""
    calls = [(index, block) for index, block in enumerate(asking.piece.message.blocks) if isinstance(block, ToolCall)]
    names = [call.id for _, call in calls]
    for index, call in calls:
        born = answered.get(call.id)
        if born is None or names.count(call.id) > 1 or call.withheld is not None or may_show_excluded(call, excluded):
            continue
        held = weight(call, rules)
        path = next((one.path for one in call.accesses if one.op in ("write", "edit")), "")
        kept = hand.stands_for_arguments(call)
        whole = Resident(
            call.id, asking.place, index, asking.share(call), born, asking.before, kept=kept, path=path, form="texts"
        )
        yield from _forms(whole, held, rules)


def _forms(whole: Resident, held: Weight, rules: ArgumentRules) -> Iterator[Resident]:
    if not held.chars or (whole.kept is not None and not whole.kept.short):
        return
    each = whole.tokens / held.chars
    forms = (
        replace(whole, stays=round(each * held.without_any)),
        replace(whole, stays=round(each * held.without_replaced), form="replaced"),
    )
    yield from (one for one in forms if one.gain >= rules.gain)


def is_success(result: ToolResult) -> bool:
    """Whether nothing says that the call failed which this answers."""
    return not result.is_error


def half_masked(texts: Resident, paged: PagedOut, rules: ArgumentRules) -> Resident | None:
    """Arguments out of which replaced text has gone, as what may go on; None where no more of them may."""
    if not paged.short or not paged.chars:
        return None
    each = paged.tokens / paged.chars
    left = replace(texts, kept=paged, tokens=round(each * len(paged.stub)), stays=round(each * len(paged.short)))
    return left if left.gain >= rules.gain else None
