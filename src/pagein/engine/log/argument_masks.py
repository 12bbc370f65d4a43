"""Arguments of calls as residents of the window, and their masks (law 8).

Rules of this file
------------------
1. Only arguments of successful calls are residents: a failed call may be tried again with the same text.
2. The weight of a call's arguments is their share, by characters, of the weight of their message.
3. A call id that occurs twice in the message identifies neither call.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from pagein.engine.log.block_texts import chars_of
from pagein.engine.log.pin_state import Hand
from pagein.engine.log.request_draft import Cell, WindowPiece, size
from pagein.model.entries import PagedOut
from pagein.model.messages import ToolCall, ToolResult
from pagein.policy.eviction.argument_masks import ArgumentRules, Weight, weight
from pagein.policy.eviction.residency import Residency, ResidentSet
from pagein.policy.eviction.residents import Resident
from pagein.policy.privacy.exclusions import may_show_excluded


@dataclass(frozen=True, slots=True)
class CallMessage:
    """An assistant message with calls.

    piece: the message.
    place: its number in the request.
    before: tokens before it.
    """

    piece: WindowPiece
    place: int
    before: int

    @classmethod
    def of(cls, tip: Cell | None) -> "CallMessage | None":
        """Return the last message of a request; None for an empty request."""
        return None if tip is None else cls(tip.piece, tip.length - 1, size(tip.before))

    def share(self, call: ToolCall) -> int:
        """Estimate the tokens of a call's arguments."""
        chars = sum(chars_of(block) for block in self.piece.message.blocks)
        return round(self.piece.weight * len(call.arguments) / chars) if chars else 0


def residents(
    asking: CallMessage, answered: Mapping[str, int], hand: Hand, rules: ArgumentRules, excluded: tuple[str, ...]
) -> Iterator[Resident]:
    """Yield the arguments of this message that may be masked later.

    answered: successful calls, each with the first model call that sees the answer.
    hand: the pins.
    """
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
            call.id,
            asking.place,
            index,
            asking.share(call),
            born,
            asking.before,
            kept=kept,
            path=path,
            kind="file text",
            form="texts",
        )
        yield from _forms(whole, held, rules)


def _forms(whole: Resident, held: Weight, rules: ArgumentRules) -> Iterator[Resident]:
    if not held.chars or (whole.kept is not None and not whole.kept.short):
        return
    each = whole.tokens / held.chars
    forms = (
        replace(whole, stays=round(each * held.without_any)),
        replace(whole, stays=round(each * held.without_replaced), kind="replaced text", form="replaced"),
    )
    yield from (one for one in forms if one.gain >= rules.gain)


def successful_calls(piece: WindowPiece) -> Iterator[tuple[str, int]]:
    """Yield the successful calls answered in a message, each with the first model call after the answer."""
    if piece.born is not None:
        for block in piece.message.blocks:
            if isinstance(block, ToolResult) and not block.is_error:
                yield block.call_id, piece.born


def with_halves(
    standing: ResidentSet,
    before: ResidentSet,
    paged: Iterable[PagedOut],
    in_front: Mapping[int, int],
    residency: Residency,
) -> ResidentSet:
    """Keep half-masked arguments as residents, for a later eviction of the rest.

    before: the residents before the eviction. in_front: tokens in front of each message that moved.
    """
    halves = {(one.message, one.block): one for one in paged if one.part == "arguments" and one.short}
    if not halves or residency.arguments is None:
        return standing
    for one in before.waiting("file text"):
        half = halves.get((one.message, one.block))
        left = None if half is None else _half_masked(one, half, residency.arguments)
        standing = standing if left is None else standing.with_return(left.behind(in_front), residency.rules)
    return standing


def _half_masked(texts: Resident, paged: PagedOut, rules: ArgumentRules) -> Resident | None:
    """Return half-masked arguments as a resident for further masking; None if masking more gains too little."""
    if not paged.short or not paged.chars:
        return None
    each = paged.tokens / paged.chars
    left = replace(texts, kept=paged, tokens=round(each * len(paged.stub)), stays=round(each * len(paged.short)))
    return left if left.gain >= rules.gain else None
