"""Arguments of tool calls that carry text of files: which of it is needed no more, and what stands in its place.

A call that wrote or edited a file stays in the window with all the text that it wrote. Two kinds of text are told apart:

- *replaced* text, which an edit that succeeded took out of the file (`old_string`): nobody can quote it from there again;
- *written* text (`new_string`, `content`, the body of a patch): it shows what the file holds, and a later edit may quote it.

Masked arguments are JSON of the same shape and keys: only these texts change, each into a line that names the object which holds
the arguments as they were. What the model writes anew is told from that line by the echo guard (`policy.reads.echo_guard`).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from pagein.errors import BadSetting
from pagein.model.codec import decode_json, encode_json
from pagein.model.messages import ToolCall
from pagein.policy.stubs.result_stubs import TOOL_NAME, one_line

Which: TypeAlias = Literal["replaced", "written"]

_REPLACED: Final = frozenset({"oldstring", "oldtext", "oldstr"})
_WRITTEN: Final = frozenset({"newstring", "newtext", "newstr", "content", "contents", "filetext", "newsource"})
_PATCH: Final = "*** Begin Patch"
_CHANGES: Final = frozenset({"write", "edit"})
_DEEPEST: Final = 8
_STUB_CHARS: Final = 130
"""What a stub is taken to be long when its call is weighed: it names an object, a tool and what it stands for."""
_PER_TOKEN: Final = 4


@dataclass(frozen=True, slots=True)
class ArgumentRules:
    """When arguments of calls that wrote files may be masked, in model calls.

    replaced: calls after which text that an edit replaced may go, and written text that a later write of the file or a whole read of it
    has made needless; None: such text has no time of its own. alone: calls that a file must have been left alone before all text of its
    calls may go; None: never. chars: arguments with fewer characters stay. text: so do shorter texts in them. gain: tokens that must be spared.
    """

    replaced: int | None = 3
    alone: int | None = 20
    chars: int = 1200
    text: int = 240
    gain: int = 100

    def __post_init__(self) -> None:
        for name in ("replaced", "alone"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise BadSetting(f"{name} must be 1 or more, not {value}")
        if self.text <= _STUB_CHARS:
            raise BadSetting(f"text must be more than {_STUB_CHARS} characters, which a stub may have, not {self.text}")


CAREFUL: Final = ArgumentRules(chars=10_000)
"""What the setting `arguments` asks for. A quote is lost as often with a short text as with a long one, and a long one spares more: so
only big arguments are masked (docs/residency.md)."""
SOON: Final = ArgumentRules(replaced=2, alone=10)
"""Beside settings that put the bill before the quotes (`policy.eviction.residency.THRIFTY`)."""


@dataclass(frozen=True, slots=True)
class Weight:
    """What a call's arguments hold: characters in all, and those that would stay if replaced text, or all text of files, were masked."""

    chars: int
    without_replaced: int
    without_any: int


NOTHING: Final = Weight(0, 0, 0)


def weight(call: ToolCall, rules: ArgumentRules) -> Weight:
    """How much of a call's arguments may go one day: nothing of it where it wrote no file."""
    arguments = call.arguments
    if len(arguments) < rules.chars or not any(one.op in _CHANGES for one in call.accesses):
        return NOTHING
    spared = {"replaced": 0, "written": 0}
    for which, text in _texts(parse_arguments(arguments), rules.text):
        spared[which] += len(text) - _STUB_CHARS
    whole = len(arguments)
    return Weight(whole, whole - spared["replaced"], max(0, whole - spared["replaced"] - spared["written"]))


def mask_arguments(arguments: str, object_id: str, tool: str, rules: ArgumentRules, *, written: bool) -> str:
    """The arguments without replaced text, and where `written` without written text too."""
    label = one_line(tool)[:TOOL_NAME] or "tool"

    def short(which: Which, text: str) -> str:
        if which == "written" and not written:
            return text
        lines = text.count("\n") + 1
        return (
            f"[pagein: {object_id} | {label} | {len(text) // _PER_TOKEN:,} tokens | {which} text - {lines:,} lines] "
            f'Use peek("{object_id}") to view.'
        )

    return encode_json(_change_texts(parse_arguments(arguments), "", rules.text, short)).decode(
        "utf-8", "surrogatepass"
    )


def same_but_texts(one: str, other: str) -> bool:
    """Whether two arguments have the same shape and keys, and differ in strings alone."""
    return _alike(parse_arguments(one), parse_arguments(other), _DEEPEST)


def parse_arguments(arguments: str) -> object:
    """The value of arguments, None where they are no JSON."""
    try:
        return decode_json(arguments.encode("utf-8", "surrogatepass"))
    except ValueError:
        return None


def _texts(value: object, shortest: int) -> Iterator[tuple[Which, str]]:
    found: list[tuple[Which, str]] = []

    def seen(which: Which, text: str) -> str:
        found.append((which, text))
        return text

    _change_texts(value, "", shortest, seen)
    yield from found


def _change_texts(
    value: Any,  # noqa: ANN401 -- any JSON
    name: str,
    shortest: int,
    change: Callable[[Which, str], str],
    deep: int = _DEEPEST,
) -> object:
    if isinstance(value, str):
        which = _which(name, value) if len(value) >= shortest else None
        return value if which is None else change(which, value)
    if deep > 0 and isinstance(value, dict):
        return {key: _change_texts(inner, str(key), shortest, change, deep - 1) for key, inner in value.items()}
    if deep > 0 and isinstance(value, list):
        return [_change_texts(inner, name, shortest, change, deep - 1) for inner in value]
    return value


def _which(name: str, text: str) -> Which | None:
    key = name.replace("_", "").lower()
    if key in _REPLACED:
        return "replaced"
    return "written" if key in _WRITTEN or _PATCH in text else None


def _alike(one: object, other: object, deep: int) -> bool:
    if isinstance(one, str) and isinstance(other, str):
        return True
    if deep > 0 and isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(_alike(one[key], other[key], deep - 1) for key in one)
    if deep > 0 and isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(
            _alike(first, second, deep - 1) for first, second in zip(one, other, strict=True)
        )
    return one == other
