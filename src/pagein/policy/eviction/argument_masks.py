"""Masks for file text in the arguments of old tool calls: choice of the text, and the line in its place.

A call that wrote or edited a file stays in the window with the text that it wrote. There are two kinds of such text:

- *replaced* text, which a successful edit took out of the file (`old_string`): the model cannot quote it from the file
  again;
- *written* text (`new_string`, `content`, the body of a patch): it shows the contents of the file, and a later edit may
  quote it.

Masked arguments are JSON of the same shape and keys. Only these texts change, each into a line with the id of the
object that holds the original arguments. The echo guard (`policy.reads.echo_guard`) tells that line from text that the
model writes anew.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from pagein.errors import BadSetting
from pagein.model.json_text import decode_json, encode_json
from pagein.model.messages import ToolCall
from pagein.policy.stubs.recall_ways import Way
from pagein.policy.stubs.result_stubs import TOOL_NAME, one_line

Which: TypeAlias = Literal["replaced", "written"]

_REPLACED: Final = frozenset({"oldstring", "oldtext", "oldstr"})
_WRITTEN: Final = frozenset({"newstring", "newtext", "newstr", "content", "contents", "filetext", "newsource"})
_PATCH: Final = "*** Begin Patch"
_CHANGES: Final = frozenset({"write", "edit"})
_DEEPEST: Final = 8
_STUB_CHARS: Final = 130
"""Assumed length of a stub when a call is weighed: an object id, a tool name and a description."""
_PER_TOKEN: Final = 4


@dataclass(frozen=True, slots=True)
class ArgumentRules:
    """Sizes at which arguments of file-writing calls may be masked. Their ages are in the residency table.

    chars: minimum length of arguments, in characters. text: minimum length of a text in them.
    gain: minimum number of tokens saved.
    on_entry: minimum length of arguments, in characters, that are masked before any request shows them; None: none are.
    guarded: whether they are masked only in sessions whose agent reported a hook that stops calls which quote a mask.
    """

    chars: int = 1200
    text: int = 240
    gain: int = 100
    guarded: bool = False
    on_entry: int | None = None

    def __post_init__(self) -> None:
        if self.text <= _STUB_CHARS:
            raise BadSetting(f"text must be more than {_STUB_CHARS} characters, which a stub may have, not {self.text}")


CAREFUL: Final = ArgumentRules(chars=10_000)
"""Rules of the setting `arguments`: mask only big arguments (docs/reference/residency.md).

A lost quote is as likely with a short text as with a long one, and a long one saves more.
"""
SOON: Final = ArgumentRules()
"""Rules of the presets that accept more recalls for a lower bill (`policy.eviction.presets`)."""
AT_ONCE: Final = ArgumentRules(on_entry=20_000)
"""Rules of the preset `thrifty`: an edit soon after such a call has to recall the text that it quotes."""


@dataclass(frozen=True, slots=True)
class Weight:
    """Characters in a call's arguments.

    chars: as sent. without_replaced: with replaced text masked. without_any: with every file text masked.
    """

    chars: int
    without_replaced: int
    without_any: int


NOTHING: Final = Weight(0, 0, 0)


def weight(call: ToolCall, rules: ArgumentRules) -> Weight:
    """Return the maskable size of a call's arguments; zero if the call wrote no file."""
    arguments = call.arguments
    if len(arguments) < rules.chars or not any(one.op in _CHANGES for one in call.accesses):
        return NOTHING
    spared = {"replaced": 0, "written": 0}
    for which, text in _texts(parse_arguments(arguments), rules.text):
        spared[which] += len(text) - _STUB_CHARS
    whole = len(arguments)
    return Weight(whole, whole - spared["replaced"], max(0, whole - spared["replaced"] - spared["written"]))


def mask_arguments(arguments: str, object_id: str, tool: str, rules: ArgumentRules, way: Way, *, written: bool) -> str:
    """Mask replaced text in the arguments, and with `written` also written text.

    way: how the model recalls.
    """
    label = one_line(tool)[:TOOL_NAME] or "tool"

    def short(which: Which, text: str) -> str:
        if which == "written" and not written:
            return text
        lines = text.count("\n") + 1
        return (
            f"[pagein: {object_id} | {label} | {len(text) // _PER_TOKEN:,} tokens | {which} text - {lines:,} lines] "
            f"{way.view_words(object_id)}."
        )

    return encode_json(_change_texts(parse_arguments(arguments), "", rules.text, short)).decode(
        "utf-8", "surrogatepass"
    )


def same_but_texts(one: str, other: str) -> bool:
    """Return whether two arguments have the same shape and keys, and differ only in strings."""
    return _alike(parse_arguments(one), parse_arguments(other), _DEEPEST)


def parse_arguments(arguments: str) -> object:
    """Return the JSON value of arguments; None if invalid."""
    try:
        return decode_json(arguments.encode("utf-8", "surrogatepass"))
    except ValueError:
        return None


def _texts(value: object, shortest: int) -> Iterator[tuple[Which, str]]:
    found: list[tuple[Which, str]] = []

    def collect(which: Which, text: str) -> str:
        found.append((which, text))
        return text

    _change_texts(value, "", shortest, collect)
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
