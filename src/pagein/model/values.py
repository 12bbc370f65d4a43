r"""Values of documents: JSON, with references at any place. Values are frozen and have a canonical form.

Canonical form
--------------
JSON without white space, object keys in the order of their code points, every character beyond ASCII escaped as
`\uXXXX` (lone surrogates and NUL too), numbers as Python writes them (integers without a point, floats as the shortest
text that reads back as the same). A reference is the object `{"$ref": {...}}`. A key of the document that begins with
`$` gets one more `$` in front. Different values have different canonical forms, even `1`, `1.0` and `true`.
"""

import json
import math
import re
from collections.abc import ItemsView, Iterator, Mapping
from typing import Final, TypeAlias

from pagein.errors import BadInput
from pagein.model.references import Reference, reference_from_fields, reference_to_fields

_REF: Final = "$ref"
_DEEPEST: Final = 100
_LARGEST: Final = 2**63
_encoder: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


class Fields(Mapping[str, "Value"]):
    """A frozen mapping from names to values. Made by `frozen_fields`, together with frozen values."""

    __slots__ = ("_held",)

    def __init__(self, held: Mapping[str, "Value"] | None = None) -> None:
        self._held: dict[str, Value] = dict(held or {})

    def __getitem__(self, name: str) -> "Value":
        return self._held[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._held)

    def __len__(self) -> int:
        return len(self._held)

    def __hash__(self) -> int:
        return hash(tuple(sorted(self._held)))

    def __eq__(self, other: object) -> bool:
        return self._held == other._held if type(other) is Fields else super().__eq__(other)

    def items(self) -> ItemsView[str, "Value"]:
        """Return the fields. A `Mapping` would look each one up."""
        return self._held.items()

    def __repr__(self) -> str:
        return f"Fields({self._held!r})"


Value: TypeAlias = bool | int | float | str | Reference | tuple["Value", ...] | Fields | None
NO_FIELDS: Final = Fields()


def frozen(value: object, path: str = "") -> Value:
    """Freeze a value: lists become tuples, mappings become `Fields`.

    Raises BadInput with the place of a value that is not JSON.
    """
    if path.count("/") > _DEEPEST:
        raise BadInput(f"{path[:80]}...: nested deeper than {_DEEPEST}")
    match value:
        case None | bool() | str() | Reference() | Fields():
            return value
        case int():
            if abs(value) >= _LARGEST:
                raise BadInput(f"{path}: an integer must fit into 64 bits")
            return value
        case float():
            if not math.isfinite(value):
                raise BadInput(f"{path}: a number must be finite, not {value}")
            return value
        case list() | tuple():
            return tuple(frozen(one, f"{path}/{place}") for place, one in enumerate(value))
        case Mapping():
            return frozen_fields(value, path)
    raise BadInput(f"{path or 'value'}: {type(value).__name__} is no JSON value and no reference")


def frozen_fields(fields: Mapping[str, object], path: str = "") -> Fields:
    """Freeze a mapping."""
    if isinstance(fields, Fields):
        return fields
    held: dict[str, Value] = {}
    for name, value in fields.items():
        if not isinstance(name, str):
            raise BadInput(f"{path}: a field's name must be text, not {type(name).__name__}")
        held[name] = frozen(value, f"{path}/{escape_name(name)}")
    return Fields(held)


def canonical(value: Value) -> str:
    """The canonical form of a value (see above)."""
    return _encoder.encode(_plain(value))


def parse_value(text: str | bytes) -> Value:
    """Parse a canonical form. Raises BadInput for any malformed text."""
    try:
        return _lift_value(json.loads(text))
    except (ValueError, RecursionError) as problem:
        raise BadInput(f"not a value: {problem}") from problem


def parse_fields(text: str | bytes) -> Fields:
    """Parse the canonical form of a mapping."""
    value = parse_value(text)
    if not isinstance(value, Fields):
        raise BadInput("not a mapping of fields")
    return value


# Types are compared, not matched: most time of a check and of an indexer is spent here, and `Fields` is slow to match.


def _plain(value: Value) -> object:
    if type(value) is Fields:
        return {f"${name}" if name.startswith("$") else name: _plain(one) for name, one in value.items()}
    if type(value) is Reference:
        return {_REF: reference_to_fields(value)}
    return [_plain(one) for one in value] if isinstance(value, tuple) else value


def _lift_value(raw: object) -> Value:
    if isinstance(raw, dict):
        if len(raw) == 1 and _REF in raw:
            return reference_from_fields(raw[_REF])
        # most are texts
        return Fields(
            {
                name[1:] if name.startswith("$$") else name: one if type(one) is str else _lift_value(one)
                for name, one in raw.items()
            }
        )
    if isinstance(raw, list):
        return tuple(map(_lift_value, raw))
    if raw is None or isinstance(raw, bool | int | float | str):
        return raw
    raise BadInput(f"{type(raw).__name__} is no JSON value")


# --- places ------------------------------------------------------------------------------------------------------


def references_in(value: Value, path: str = "") -> Iterator[tuple[str, Reference]]:
    """Yield the references in a value with their places (JSON pointers), in the order of keys and indexes."""
    if type(value) is Reference:
        yield path, value
    elif isinstance(value, tuple):
        for place, one in enumerate(value):
            if not isinstance(one, str):  # most of them are texts
                yield from references_in(one, f"{path}/{place}")
    elif type(value) is Fields:
        for name, one in sorted(value.items(), key=lambda one: one[0]):
            if not isinstance(one, str):
                yield from references_in(one, f"{path}/{escape_name(name)}")


def escape_name(name: str) -> str:
    """Escape a name as one step of a JSON pointer."""
    return name.replace("~", "~0").replace("/", "~1")


def place_order(path: str) -> tuple[tuple[int, int, str], ...]:
    """A key that sorts JSON pointers in reading order: indexes by number, names by text."""
    steps = path.split("/")[1:]
    # ASCII digits only: int() accepts more, and "²" is a digit that it refuses
    return tuple((0, int(step), "") if re.fullmatch(r"[0-9]{1,18}", step) else (1, 0, step) for step in steps)
