"""Repair a conversation for the rules of its provider.

Rules of this file
------------------
1. A valid conversation comes out as the very messages that went in.
2. A sent request is never changed again: every repair happens between two requests (law 4). So the messages after an
   assistant message are *held* until the next assistant message, or the next request, settles them.
3. Each call is answered right after its message, once. An unanswered call gets a result with a note.
4. Text is never lost: a result without its call becomes text.

Recordings have all of these gaps: calls of a client that died, results cut from their calls by a compaction, late
results, two assistant messages in a row. See rules M1-M4, M7, M8, C1 and C2 in docs/reference/rules.md.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from pagein.engine.log.rendering import Cell, WindowPiece, length, push
from pagein.model.messages import Block, Message, Other, Role, Text, Thinking, ToolCall, ToolResult

UNANSWERED: Final = "[no result was recorded for this call]"
NOBODY_SPOKE: Final = "[no message of the user was recorded here]"
_MADE_UP: Final = "repair"
_NOT_THE_MODELS: Final = (ToolResult,)
_NOT_THE_USERS: Final = (ToolCall, Thinking)


@dataclass(frozen=True, slots=True)
class Repairs:
    """Counts of repaired messages or blocks.

    unanswered: calls that got a result with a note.
    orphans: results turned into text.
    merged: assistant messages joined with the message before.
    fillers: invented user messages.
    emptied: messages dropped as empty.
    moved: results moved in front of text.
    twins: calls turned into text because an earlier call in the message has the same id.
    """

    unanswered: int = 0
    orphans: int = 0
    merged: int = 0
    fillers: int = 0
    emptied: int = 0
    moved: int = 0
    twins: int = 0


NO_REPAIRS: Final = Repairs()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _OpenPiece:
    piece: WindowPiece
    before: "_OpenPiece | None"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RequestDraft:
    """The next request in the making: settled messages, and held messages since the last assistant message.

    tip: the settled messages.
    head: number of leading system messages.
    said: messages so far.
    calls: assistant messages so far.
    repairs: counts of repairs.
    unsettled: the held messages.
    """

    tip: Cell | None = None
    head: int = 0
    said: int = 0
    calls: int = 0
    repairs: Repairs = NO_REPAIRS
    unsettled: _OpenPiece | None = None
    # result of `ready`, cached: it is asked for at each step of a call and costs as much as there is held
    _ready: "list[RequestDraft]" = field(default_factory=list, init=False)

    def with_said(self, message: Message, tokens: Sequence[int] = (), weight: int = 0) -> "RequestDraft":
        """Append a message, in amortised O(1).

        tokens: estimate for each tool result in it.
        weight: estimate for the whole message.
        """
        next_draft = self.with_piece(WindowPiece(message, tuple(tokens), None, self.said + 1, weight))
        return replace(next_draft, calls=self.calls + 1) if message.role == "assistant" else next_draft

    def with_piece(self, piece: WindowPiece) -> "RequestDraft":
        """Append a piece. An assistant message settles the held messages."""
        role = piece.message.role
        full, orphans, twins = _clean_piece(piece)
        repairs = _count_repairs(self.repairs, orphans=orphans, twins=twins)
        here = replace(self, said=max(self.said, piece.said), repairs=repairs)
        if full is None:
            return replace(here, repairs=_count_repairs(here.repairs, emptied=1))
        if role == "assistant":
            return _with_answer(here.settle(), full)
        return replace(here, unsettled=_OpenPiece(full, here.unsettled))

    def settle(self) -> "RequestDraft":
        """Move the held messages into the request, in a valid order."""
        calls = _calls(self.tip)
        if self.unsettled is None and not calls:
            return self
        ordered, repairs = _order_answers(calls, list(self.open_pieces()), self.repairs)
        tip, head = self.tip, self.head
        for piece in ordered:
            if piece.message.role == "system" and length(tip) == head:
                head += 1
            tip = push(tip, piece if piece.born is not None else replace(piece, born=self.calls))
        return replace(self, tip=tip, head=head, repairs=repairs, unsettled=None)

    def ready(self) -> "RequestDraft":
        """Settle the draft, and end with a message that a model can answer."""
        if not self._ready:
            draft = self.settle()
            self._ready.append(_with_filler(draft) if _is_answer(draft.tip) or _nobody_spoke(draft) else draft)
        return self._ready[0]

    def open_pieces(self) -> Iterator[WindowPiece]:
        """Iterate over the held messages in order."""
        link, found = self.unsettled, []
        while link is not None:
            found.append(link.piece)
            link = link.before
        return reversed(found)


def _with_answer(draft: RequestDraft, piece: WindowPiece) -> RequestDraft:
    """Append an assistant message to a draft without held messages."""
    if _nobody_spoke(draft):
        return _with_answer(_with_filler(draft), piece)
    if draft.tip is None or not _is_answer(draft.tip):
        return replace(draft, tip=push(draft.tip, piece))
    # Every sent request ends with a user's message, so the assistant message at the tip was not sent and may still change.
    first = draft.tip.piece
    both = replace(piece.message, blocks=(*first.message.blocks, *piece.message.blocks))
    tip = push(draft.tip.before, replace(piece, message=both, weight=first.weight + piece.weight))
    return replace(draft, tip=tip, repairs=_count_repairs(draft.repairs, merged=1))


def _with_filler(draft: RequestDraft) -> RequestDraft:
    filler = WindowPiece(Message("user", (Text(NOBODY_SPOKE, injected=_MADE_UP),)), born=draft.calls, said=draft.said)
    return replace(draft, tip=push(draft.tip, filler), repairs=_count_repairs(draft.repairs, fillers=1))


def _nobody_spoke(draft: RequestDraft) -> bool:
    return length(draft.tip) == draft.head


def _is_answer(tip: Cell | None) -> bool:
    return tip is not None and tip.piece.message.role == "assistant"


def _calls(tip: Cell | None) -> tuple[ToolCall, ...]:
    """Return the calls of the last message, which need results."""
    if tip is None or not _is_answer(tip):
        return ()
    return tuple(block for block in tip.piece.message.blocks if isinstance(block, ToolCall))


def _clean_piece(piece: WindowPiece) -> tuple[WindowPiece | None, int, int]:
    """Remove blank text, misplaced blocks and duplicate call ids.

    Returns the rest (None if nothing remains), and the numbers of results and of calls that became text.
    """
    blocks = piece.message.blocks
    models = piece.message.role == "assistant"
    wrong = _NOT_THE_MODELS if models else _NOT_THE_USERS
    twins = _twins(blocks) if models else frozenset()
    if not twins and not any(isinstance(block, wrong) or _is_blank(block) for block in blocks):
        return (piece if blocks else None), 0, 0
    kept: list[Block] = []
    for index, block in enumerate(blocks):
        if isinstance(block, wrong) or index in twins:
            kept.extend(_as_text(block))
        elif not _is_blank(block):
            kept.append(block)
    tokens = () if models else piece.tokens
    orphans = sum(isinstance(block, ToolResult) for block in blocks) if models else 0
    message = replace(piece.message, blocks=tuple(kept))
    return (replace(piece, message=message, tokens=tokens) if kept else None), orphans, len(twins)


def _twins(blocks: Sequence[Block]) -> frozenset[int]:
    """Return the indexes of calls whose id an earlier call has."""
    seen: set[str] = set()
    found: set[int] = set()
    for index, block in enumerate(blocks):
        if isinstance(block, ToolCall):
            if block.id in seen:
                found.add(index)
            seen.add(block.id)
    return frozenset(found)


def _is_blank(block: Block) -> bool:
    text = block.text if isinstance(block, Text) else block.json if isinstance(block, Other) else "full"
    return not text or text.isspace()


def _as_text(block: Block) -> tuple[Block, ...]:
    """Return a misplaced call, result or thought as text."""
    match block:
        case ToolResult():
            text = f"[result of call {block.call_id}]\n{block.text}"
            return (Text(text, injected=_MADE_UP, withheld=block.withheld), *block.images)
        case ToolCall():
            text = f"[call {block.id} of {block.name}]\n{block.arguments}"
            return (Text(text, injected=_MADE_UP, withheld=block.withheld),)
        case Thinking(text=text) if text and not text.isspace():
            return (Text(text, injected=_MADE_UP),)
        case _:
            return ()


def _count_repairs(repairs: Repairs, **more: int) -> Repairs:
    grown = {name: getattr(repairs, name) + count for name, count in more.items() if count}
    return replace(repairs, **grown) if grown else repairs


def _is_in_order(calls: Sequence[ToolCall], held: Sequence[WindowPiece]) -> bool:
    """Return whether each call has exactly one result and the results come before text."""
    waiting = {call.id for call in calls}
    text_came = False
    for piece in held:
        for block in piece.message.blocks:
            if not isinstance(block, ToolResult):
                text_came = True
            elif text_came or block.call_id not in waiting:
                return False
            else:
                waiting.discard(block.call_id)
        if text_came and piece.message.role == "tool":
            return False
    return not waiting


def _order_answers(
    calls: Sequence[ToolCall], held: list[WindowPiece], repairs: Repairs
) -> tuple[list[WindowPiece], Repairs]:
    """Order held messages: results first, one result for each call."""
    if _is_in_order(calls, held):
        return held, repairs
    waiting = {call.id: call for call in calls}
    answers: list[WindowPiece] = []
    rest: list[WindowPiece] = []
    for piece in held:
        ours, others = _split_answers(piece, waiting)
        orphans = sum(isinstance(block, ToolResult) for block in piece.message.blocks) - len(ours)
        repairs = _count_repairs(repairs, orphans=orphans, moved=len(ours) if rest else 0)
        if ours:
            blocks, tokens = zip(*ours, strict=True)
            answering = replace(piece.message, blocks=blocks)
            answers.append(replace(piece, message=answering, tokens=tokens, weight=min(sum(tokens), piece.weight)))
        if others:
            role: Role = "user" if piece.message.role == "tool" else piece.message.role
            left = replace(piece.message, role=role, blocks=tuple(others))
            weight = max(0, piece.weight - sum(count for _, count in ours))
            rest.append(replace(piece, message=left, tokens=(), weight=weight))
    if waiting:
        made_up = tuple(ToolResult(call.id, UNANSWERED, call.name) for call in waiting.values())
        said = held[-1].said if held else 0
        answers.append(WindowPiece(Message("tool", made_up), (0,) * len(made_up), said=said))
    return [*answers, *rest], _count_repairs(repairs, unanswered=len(waiting))


def _split_answers(
    piece: WindowPiece, waiting: dict[str, ToolCall]
) -> tuple[list[tuple[ToolResult, int]], list[Block]]:
    """Split a piece into results for waiting calls, with their tokens, and other blocks. Answered calls stop waiting."""
    tokens = iter(piece.tokens)
    ours: list[tuple[ToolResult, int]] = []
    others: list[Block] = []
    for block in piece.message.blocks:
        if not isinstance(block, ToolResult):
            others.append(block)
            continue
        count = next(tokens, 0)
        if waiting.pop(block.call_id, None) is not None:
            ours.append((block, count))
        else:
            others.extend(_as_text(block))
    return ours, others
