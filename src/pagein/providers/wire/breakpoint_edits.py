"""Cache breakpoints on decoded request bodies, by `breakpoint_plan`. Nothing else in the body changes.

The only exception: a string content is a short form of one text block. It is written out to carry a breakpoint.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any, Final, Literal, TypeAlias

from pagein.errors import HostError
from pagein.providers.caches.breakpoint_plan import DEFAULT, FIRST, Manner, Memory, Outline, plan_breakpoints
from pagein.providers.caches.breakpoint_rules import MAX_MARKS
from pagein.providers.caches.cache_values import LONG, SHORT, Breakpoint
from pagein.providers.validity.breakpoint_checks import breakpoints_of
from pagein.providers.validity.thinking_bonds import canonical, hash_parts
from pagein.providers.validity.turns import Api, PromptTurn, TurnPart, Turns, Wire, object_at, objects_at
from pagein.providers.wire.body_check import turns_of
from pagein.providers.wire.formats import format_named
from pagein.providers.wire.wire_format import BreakpointForm

Client: TypeAlias = Literal["kept", "replaced"]
"""Whether the client's own breakpoints are kept or replaced."""
Address: TypeAlias = tuple[int, int]
"""The address of a block: its message, and its place in the message.

For tools and system, the message is TOOLS or SYSTEM.
"""

TOOLS: Final = -2
SYSTEM: Final = -1


@dataclass(frozen=True, slots=True)
class Wishes:
    """Settings for the breakpoints of a request.

    frontier: message and block of the first result that a later edit may change; None without such a result.
    memory: of the last request on this branch.
    client: whether the client's breakpoints are kept or replaced.
    manner: None for the TTLs of the client's own breakpoints.
    tokens: size of each block of the prompt, tools and system first, to respect the smallest cached prefix; None: not
        counted.
    """

    frontier: Address | None = None
    memory: Memory = FIRST
    client: Client = "kept"
    manner: Manner | None = None
    tokens: Sequence[float] | None = None


@dataclass(frozen=True, slots=True)
class Changes:
    """Changes to the breakpoints of a body.

    marks: the new breakpoint of each changed block, None to remove it.
    automatic: whether to remove the automatic breakpoint.
    inner: whether to remove breakpoints inside results too.
    memory: the memory to keep once the request is answered.
    """

    api: Api
    marks: Mapping[Address, Wire | None] = field(default_factory=dict)
    automatic: bool = False
    inner: bool = False
    memory: Memory = FIRST

    @property
    def is_nothing(self) -> bool:
        """Whether the body stays unchanged."""
        return not self.marks and not self.automatic

    @property
    def by_message(self) -> dict[int, dict[int, Wire | None]]:
        """The new breakpoints by message and block."""
        found: dict[int, dict[int, Wire | None]] = {}
        for (message, block), mark in self.marks.items():
            found.setdefault(message, {})[block] = mark
        return found

    @property
    def field(self) -> str:
        """The field of a block that holds its breakpoint."""
        return _form(self.api).field

    @property
    def contents(self) -> str:
        """The field of the body that holds the messages."""
        return format_named(self.api).requests.items

    @property
    def text(self) -> str:
        """The type of block behind the short form of a string."""
        return _form(self.api).text


NO_WISHES: Final = Wishes()


def changes(body: Wire, api: Api, wishes: Wishes = NO_WISHES) -> Changes:
    """Compute the breakpoints to add to and remove from a request body. A format without breakpoints has no changes.

    Raises HostError if the number of sizes differs from the number of blocks.
    """
    form = format_named(api).cache.breakpoints
    if form is None:
        return Changes(api)
    turns = turns_of(body, api)
    placing = list(_parts(turns))
    parts = [part for _, part in placing]
    replaced = wishes.client == "replaced"
    automatic = object_at(body, form.automatic) if form.automatic else {}
    taken = [] if replaced else _client_breakpoints(placing, automatic, form)
    used = 0 if replaced else len(list(breakpoints_of(turns))) + bool(automatic)
    manner = wishes.manner or _client_manner(parts, automatic)
    most = MAX_MARKS
    if not form.marks_end:
        # The provider itself uses one of the writes of a request, at the newest message (O4, O5).
        manner, most = replace(manner, ends=False), MAX_MARKS - 1
    outline = _outline(turns, placing, wishes.tokens, form)
    position = _position(parts, wishes.frontier)
    chosen = plan_breakpoints(outline, position, wishes.memory, manner, taken, max(most - used, 0))
    wanted = {mark.position: form.word(mark) for mark in chosen.marks}
    marks: dict[Address, Wire | None] = {}
    for place, part in enumerate(parts, 1):
        word = wanted.get(place, None if replaced else part.mark)
        if word != part.mark or (replaced and _has_inner(part)):
            marks[_address(part)] = _mark(part, word, form)
    return Changes(api, marks, bool(automatic) and replaced, replaced, chosen.memory)


def with_changes(body: Wire, changes: Changes) -> dict[str, Any]:
    """Apply breakpoint changes to a copy of a body."""
    made = dict(body)
    if changes.automatic:
        made.pop("cache_control", None)
    by_message = changes.by_message
    if TOOLS in by_message:
        made["tools"] = _blocks(made["tools"], by_message.pop(TOOLS), changes)
    if SYSTEM in by_message:
        made["system"] = _blocks(made["system"], by_message.pop(SYSTEM), changes)
    if by_message:
        messages = list(made[changes.contents])
        for place, marks in by_message.items():
            messages[place] = {**messages[place], "content": _blocks(messages[place]["content"], marks, changes)}
        made[changes.contents] = messages
    return made


def add_breakpoints(body: Wire, api: Api, wishes: Wishes = NO_WISHES) -> tuple[dict[str, Any], Memory]:
    """Add breakpoints to a body. Return the body, and the memory to keep after the answer."""
    made = changes(body, api, wishes)
    return with_changes(body, made), made.memory


def _parts(turns: Turns) -> Iterator[tuple[PromptTurn | None, TurnPart]]:
    """Yield the blocks of a prompt, in order, each with the turn."""
    yield from ((None, part) for part in turns.head)
    yield from ((turn, part) for turn in turns.turns for part in turn.parts)


def _outline(
    turns: Turns,
    placing: Sequence[tuple[PromptTurn | None, TurnPart]],
    tokens: Sequence[float] | None,
    form: BreakpointForm,
) -> Outline:
    names: list[bytes] = []
    name = b""
    for turn, part in placing:
        name = hash_parts(name, turn.side.encode() if turn is not None else b"", canonical(part))
        names.append(name)
    if tokens is not None and len(tokens) != len(names):
        raise HostError(f"sizes were given for {len(tokens)} blocks of a prompt of {len(names)}")
    cumulative = None if tokens is None else list(accumulate(tokens))
    eligible = [form.may_carry(turn, part) for turn, part in placing]
    return Outline(names, eligible, len(turns.head), cumulative)


def _client_breakpoints(
    placing: Sequence[tuple[PromptTurn | None, TurnPart]], automatic: Wire, form: BreakpointForm
) -> list[Breakpoint]:
    """The client's remaining breakpoints, with the automatic breakpoint at the provider's block."""
    found = [
        Breakpoint(place, _seconds(part.mark)) for place, (_, part) in enumerate(placing, 1) if part.mark is not None
    ]
    if automatic:
        falls = next((len(placing) - back for back, one in enumerate(reversed(placing)) if form.may_carry(*one)), 0)
        if falls and falls not in {mark.position for mark in found}:
            found.append(Breakpoint(falls, _seconds(str(automatic.get("ttl") or "5m"))))
    return found


def _client_manner(parts: Sequence[TurnPart], automatic: Wire) -> Manner:
    """The TTLs of the client's own breakpoints: in the head, and of the last breakpoint."""
    head = [_seconds(part.mark) for part in parts if part.mark is not None and part.message < 0]
    rest = [_seconds(part.mark) for part in parts if part.mark is not None and part.message >= 0]
    if automatic:
        rest.append(_seconds(str(automatic.get("ttl") or "5m")))
    end = rest[-1] if rest else SHORT
    return replace(DEFAULT, head=max([*head, end]), frontier=end, end=end)


def _position(parts: Sequence[TurnPart], address: Address | None) -> int | None:
    if address is None:
        return None
    return next((place for place, part in enumerate(parts, 1) if (part.message, part.block) == address), None)


def _address(part: TurnPart) -> Address:
    return (TOOLS if part.kind == "tool" else part.message, part.block)


def _has_inner(part: TurnPart) -> bool:
    return part.kind == "result" and any("cache_control" in one for one in objects_at(part.wire, "content"))


def _seconds(word: str | None) -> int:
    return LONG if word == "1h" else SHORT


def _mark(part: TurnPart, word: str | None, form: BreakpointForm) -> Wire | None:
    if word is None:
        return None
    return object_at(part.wire, form.field) if word == part.mark else form.mark(word)


def _form(api: Api) -> BreakpointForm:
    """The form of breakpoints. Raises HostError for a format without them."""
    form = format_named(api).cache.breakpoints
    if form is None:
        raise HostError(f"the wire format {api} has no cache breakpoints")
    return form


def _blocks(content: object, marks: Mapping[int, Wire | None], changes: Changes) -> list[Any]:
    if isinstance(content, str):
        return [{"type": changes.text, "text": content, changes.field: marks[0]}]
    blocks = list(content) if isinstance(content, list) else []
    for place, mark in marks.items():
        blocks[place] = _block(blocks[place], mark, changes)
    return blocks


def _block(block: Wire, mark: Wire | None, changes: Changes) -> Wire:
    made = {name: value for name, value in block.items() if name != changes.field}
    if changes.inner and block.get("type") == "tool_result" and isinstance(block.get("content"), list):
        made["content"] = [
            {name: value for name, value in one.items() if name != changes.field} if isinstance(one, dict) else one
            for one in block["content"]
        ]
    return made if mark is None else {**made, changes.field: mark}
