"""Evict from a nearly full window: failed outputs, long user texts, whole turns.

Rules of this file
------------------
1. The user's last message and the model's last message stay, with all answers to the latter; system messages stay too.
2. A call and its result are evicted together: as a step, which is an assistant message and the messages up to the next
   one. A turn begins with words of a person and ends before the next such words; it is evicted whole, or some of its
   steps are.
3. Content that must not be stored stays (law 9), with its step; so do pinned results and content without a text form.
4. A read with a receipt stays while a marker or diff follows it: no request shows on which receipts a marker or diff depends.
5. Oldest first, until enough is evicted. Content stays if its stub would not be shorter.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from pagein.engine.log.block_texts import words_of
from pagein.engine.log.pageout import text_name
from pagein.engine.log.request_draft import WindowPiece
from pagein.engine.log.turn_removal import is_spoken
from pagein.model.messages import Block, Image, Message, Text, ToolCall, ToolResult
from pagein.policy.eviction.residents import Resident
from pagein.policy.privacy.exclusions import is_withheld, may_show_excluded
from pagein.policy.reads.receipt_lines import has_receipt
from pagein.policy.stubs import turn_stubs as policy
from pagein.policy.stubs.result_stubs import LONGEST, MARKER

_TOKENS_PER_CHAR: Final = 0.25
_FOR_WORDS, _FOR_INSTRUCTIONS = 0.05, 0.2


@dataclass(frozen=True, slots=True)
class Room:
    """The room for texts in place of evicted turns.

    each: tokens per character.
    words: characters for the user's words.
    instructions: characters for the client's instructions.
    """

    each: float
    words: int
    instructions: int


@dataclass(frozen=True, slots=True)
class FullWindow:
    """A nearly full window.

    pieces: its messages.
    newest: number of the coming model call.
    held: calls that stay.
    excluded: name patterns of files that are never stored.
    allowed: tokens that may remain.
    first_answer: first assistant message; the number of messages without one.
    last_answer: last assistant message; -1 without one.
    last_spoken: last message with words of a person; -1 without one.
    last_marker: last message with a result that holds a marker or diff; -1 without one.
    """

    pieces: Sequence[WindowPiece]
    newest: int
    held: Collection[str]
    excluded: tuple[str, ...]
    allowed: float
    first_answer: int = field(init=False)
    last_answer: int = field(init=False)
    last_spoken: int = field(init=False)
    last_marker: int = field(init=False)

    def __post_init__(self) -> None:
        # computed once: each needs a walk through the window, and every candidate step asks for them
        object.__setattr__(self, "first_answer", first_answer(self.pieces))
        object.__setattr__(self, "last_answer", _last(self.pieces, lambda one: one.role == "assistant"))
        object.__setattr__(self, "last_spoken", _last(self.pieces, is_spoken))
        object.__setattr__(self, "last_marker", _last(self.pieces, _has_marker))

    def room(self) -> "Room":
        """Return the room for texts in place of evicted turns, in proportion to `allowed`."""
        chars = sum(_chars(block) for piece in self.pieces for block in piece.message.blocks)
        tokens = sum(piece.weight for piece in self.pieces)
        each = tokens / chars if tokens and chars else _TOKENS_PER_CHAR
        words, instructions = (round(self.allowed * share / each) for share in (_FOR_WORDS, _FOR_INSTRUCTIONS))
        return Room(each, min(words, policy.ALL_WORDS), min(instructions, policy.INSTRUCTIONS))

    def sent(self) -> Iterator[tuple[int, WindowPiece, int, int]]:
        """Yield the pieces that an earlier call saw: place, piece, first call with the piece, tokens before."""
        before = 0
        for place, piece in enumerate(self.pieces):
            if piece.born is not None and piece.born < self.newest:
                yield place, piece, piece.born, before
            before += piece.weight


@dataclass(frozen=True, slots=True)
class TurnRemoval:
    """Messages to evict whole.

    carrier: place of the message that will report the removal.
    runs: first and last places of the messages.
    turns: number of turns; 0 for steps of one turn.
    gain: estimated tokens saved.
    """

    carrier: int
    runs: tuple[tuple[int, int], ...]
    turns: int
    gain: int

    @property
    def first(self) -> int:
        """The first message that changes."""
        return min(self.carrier, self.runs[0][0])

    @property
    def places(self) -> list[int]:
        """The places of the evicted messages."""
        return [place for first, last in self.runs for place in range(first, last + 1)]


def failures(seen: FullWindow) -> Iterator[Resident]:
    """Yield outputs of failed calls, oldest first."""
    calls = _calls(seen.pieces)
    for place, piece, born, before in seen.sent():
        tokens = iter(piece.tokens)
        for index, block in enumerate(piece.message.blocks):
            if not isinstance(block, ToolResult):
                continue
            count, call = next(tokens, 0), calls.get(block.call_id)
            if not block.is_error or len(block.text) <= LONGEST or call is None:
                continue
            if count and _is_free(call, seen) and _is_free(block, seen):
                yield Resident(block.call_id, place, index, count, born, before)


def long_user_texts(seen: FullWindow, chars: int) -> Iterator[Resident]:
    """Yield user texts of at least `chars` characters, oldest first, without the client's texts before the
    conversation.
    """
    last, first = seen.last_spoken, seen.first_answer
    for place, piece, born, before in seen.sent() if chars else ():
        if piece.message.role == "user" and place != last:
            for index, block in enumerate(piece.message.blocks):
                if not isinstance(block, Text) or len(block.text) < chars or block.injected is not None:
                    continue
                if is_withheld(block) or (place < first and policy.is_by_host(block)):
                    continue
                tokens = _share(piece, block)
                stays = round(tokens * (chars / 4 + LONGEST) / len(block.text))
                name = text_name(block.text)
                yield Resident(name, place, index, tokens, born, before, form="text", stays=stays)


def whole(seen: FullWindow, most: float, spared: Sequence[Resident]) -> list[TurnRemoval]:
    """Return turns, and steps of other turns, until `most` tokens are evicted.

    spared: evictions that are planned already.
    """
    lighter: dict[int, int] = {}
    for one in spared:
        lighter[one.message] = lighter.get(one.message, 0) + one.gain
    weights = [
        0 if piece.message.role == "system" else max(0, piece.weight - lighter.get(place, 0))
        for place, piece in enumerate(seen.pieces)
    ]
    room, turns = seen.room(), _turns(seen)
    runs = {run[0].first: run for run in _whole_turns(seen, turns)}
    within = {turn.first for run in runs.values() for turn in run}
    going: list[TurnRemoval] = []
    for turn in turns:
        taken: TurnRemoval | None = None
        if most > 0 and turn.first in runs:
            taken = _of_turns(seen, weights, runs[turn.first], most, room)
        elif most > 0 and turn.first not in within:
            taken = _of_steps(seen, weights, turn, most, room)
        if taken is not None:
            going.append(taken)
            most -= taken.gain
    return going


# --- turns and steps ---


@dataclass(frozen=True, slots=True)
class _Turn:
    """A turn, by the places of its messages.

    first, last: its first and last message; the user's words come before the first step.
    steps: first and last place of each step.
    is_spoken: True if a person's words begin the turn.
    """

    first: int
    last: int
    steps: tuple[tuple[int, int], ...]
    is_spoken: bool


def _turns(seen: FullWindow) -> list[_Turn]:
    """Return the turns of a window."""
    pieces = seen.pieces
    start = next((place for place, piece in enumerate(pieces) if piece.message.role != "system"), len(pieces))
    begins = [start, *(place for place in range(start + 1, len(pieces)) if _begins(pieces, place))]
    found: list[_Turn] = []
    for first, behind in zip(begins, [*begins[1:], len(pieces)], strict=True):
        answers = [place for place in range(first, behind) if pieces[place].message.role == "assistant"]
        ends = [*(place - 1 for place in answers[1:]), behind - 1]
        is_begun = first < len(pieces) and is_spoken(pieces[first].message)
        found.append(_Turn(first, behind - 1, tuple(zip(answers, ends, strict=False)), is_begun))
    return found


def _begins(pieces: Sequence[WindowPiece], place: int) -> bool:
    """Return whether a turn begins here: a person speaks after an answer, or after unanswered results."""
    if not _can_tell(pieces[place]):
        return False
    before = next((one for one in range(place - 1, -1, -1) if pieces[one].message.role != "system"), -1)
    if before < 0:
        return False
    said = pieces[before].message
    if said.role == "assistant":
        return not any(isinstance(block, ToolCall) for block in said.blocks)
    return any(isinstance(block, ToolResult) for block in said.blocks)


def _can_tell(piece: WindowPiece) -> bool:
    """Return whether a message holds only words of a person, and can carry pagein's text."""
    return is_spoken(piece.message) and not any(isinstance(block, ToolResult) for block in piece.message.blocks)


def _whole_turns(seen: FullWindow, turns: Sequence[_Turn]) -> Iterator[list[_Turn]]:
    """Yield runs of turns that may be evicted whole, each followed by a turn to report the removal."""
    run: list[_Turn] = []
    for turn, following in pairwise(turns):
        places = range(turn.first, turn.last + 1)
        if seen.last_answer not in places and following.is_spoken and _may_leave(seen, places):
            run.append(turn)
            continue
        if run:
            yield run
        run = []
    if run:
        yield run


def _may_leave(seen: FullWindow, places: Iterable[int]) -> bool:
    """Return whether the messages may be stored and are not pinned, and no later answer may rest on them."""
    return all(
        _is_free(block, seen) and not (place < seen.last_marker and _has_receipt(block))
        for place in places
        for block in seen.pieces[place].message.blocks
    )


def _is_free(block: Block, seen: FullWindow) -> bool:
    if is_withheld(block):
        return False
    match block:
        case Image():
            return False  # only the client has its bytes
        case ToolCall(id=call):
            return call not in seen.held and not may_show_excluded(block, seen.excluded)
        case ToolResult(call_id=call, images=images):
            return call not in seen.held and not images
        case _:
            return True


def _of_turns(
    seen: FullWindow, weights: Sequence[int], run: Sequence[_Turn], most: float, room: Room
) -> TurnRemoval | None:
    """Return the first turns of a run that save `most` tokens.

    None if nothing would be saved.
    """
    gain, taken, tokens, said = -1, 0, 0, 0
    instructions = 0
    while taken < len(run) and gain < most:
        places = range(run[taken].first, run[taken].last + 1)
        taken += 1
        for place in places:
            piece = seen.pieces[place]
            tokens += weights[place]
            said += len(policy.words_of([piece.message]))
            said += sum(len(one) for absent in piece.absent for one in absent.left.words)
            told = (len(absent.left.instructions) for absent in piece.absent)
            if place < seen.first_answer:
                instructions += len(policy.instructions_in([piece.message], room.instructions))
            instructions = min(max(instructions, *told, 0), room.instructions)
        gain = tokens - round(room.each * (policy.FRAME + min(said, room.words) + instructions))
    carrier = run[taken - 1].last + 1  # the next turn, which reports the removal
    return TurnRemoval(carrier, ((run[0].first, run[taken - 1].last),), taken, gain) if gain > 0 else None


def _of_steps(seen: FullWindow, weights: Sequence[int], turn: _Turn, most: float, room: Room) -> TurnRemoval | None:
    """Return the first steps of a turn that save `most` tokens, without the last step.

    None if nothing would be saved.
    """
    head = range(turn.first, turn.steps[0][0]) if turn.steps else ()
    carrier = next((place for place in reversed(head) if _can_tell(seen.pieces[place])), None)
    if carrier is None:
        return None
    gain = -round(policy.FRAME_OF_STEPS * room.each)
    runs: list[tuple[int, int]] = []
    for first, last in turn.steps[:-1]:
        places = range(first, last + 1)
        if gain >= most:
            break
        if seen.last_spoken not in places and _may_leave(seen, places):
            runs.append((first, last))
            gain += sum(weights[place] for place in places)
    return TurnRemoval(carrier, tuple(runs), 0, gain) if gain > 0 else None


# ---


def _last(pieces: Sequence[WindowPiece], wanted: Callable[[Message], bool]) -> int:
    return next((place for place in range(len(pieces) - 1, -1, -1) if wanted(pieces[place].message)), -1)


def first_answer(pieces: Sequence[WindowPiece]) -> int:
    """Return the place of the first assistant message; earlier messages begin the conversation."""
    return next((place for place, piece in enumerate(pieces) if piece.message.role == "assistant"), len(pieces))


def _calls(pieces: Iterable[WindowPiece]) -> dict[str, ToolCall]:
    return {block.id: block for piece in pieces for block in piece.message.blocks if isinstance(block, ToolCall)}


def _has_marker(message: Message) -> bool:
    """Return whether a result may stand for lines that an earlier read over MCP showed."""
    return any(isinstance(block, ToolResult) and MARKER in block.text for block in message.blocks)


def _has_receipt(block: Block) -> bool:
    return isinstance(block, ToolResult) and has_receipt(block.text)


def _share(piece: WindowPiece, block: Block) -> int:
    """Return the tokens of a text in a message, by characters."""
    chars = sum(len(words_of(one)) for one in piece.message.blocks)
    return round((piece.weight - sum(piece.tokens)) * len(words_of(block)) / chars) if chars else 0


def _chars(block: Block) -> int:
    return len(block.text) if isinstance(block, ToolResult) else len(words_of(block))
