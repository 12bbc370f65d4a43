"""Serialise values with shared parts: an object with two occurrences is a single object again after reading.

Rules of this file
------------------
1. Only values of known kinds are read: plain values, and classes that the caller names. The bytes cannot name code to
   run or import.
2. The bytes begin with a digest of the rest. Damaged bytes, and bytes for different classes, are refused with BadInput.
3. Fields that a class initialises itself (`init=False`) are created anew.
"""

import hashlib
import sys
from array import array
from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, Final, TypeAlias

import msgspec

from pagein.errors import BadInput

_DIGEST: Final = 16
_PLAIN: Final = (str, bytes, int, float, bool, type(None))
_TUPLE, _LIST, _DICT, _SET, _OUTSIDE, _FIRST_CLASS = range(6)
_WIDTH: Final = "I"
Builder: TypeAlias = Callable[[list[Any]], object]


class _Shape:
    """The stored fields of a class, and the function to set their values."""

    def __init__(self, kind: type) -> None:
        self.kind = kind
        self.made: dict[str, Callable[[], object]] = {}
        if is_dataclass(kind):
            self.names = [one.name for one in fields(kind) if one.init]
            for one in fields(kind):
                if not one.init and one.default_factory is not MISSING:
                    self.made[one.name] = one.default_factory
        elif issubclass(kind, msgspec.Struct):
            self.names = list(kind.__struct_fields__)
        else:
            self.names = [name for name in getattr(kind, "__slots__", ()) if not name.startswith("__")]

    def builder(self) -> Builder:
        """Return a function from field values to a new instance. The function runs once per value of a graph and must be fast."""
        kind, count = self.kind, len(self.names)
        if issubclass(kind, msgspec.Struct):
            return lambda values: kind(*values)
        puts = [getattr(kind, name).__set__ for name in self.names]
        extra = [(getattr(kind, name).__set__, factory) for name, factory in self.made.items()]
        new = object.__new__

        def build(values: list[Any]) -> object:
            if len(values) != count:
                raise ValueError(f"{kind.__qualname__} has {count} fields, not {len(values)}")
            made = new(kind)
            for put, value in zip(puts, values, strict=False):
                put(made, value)
            for put, factory in extra:
                put(made, factory())
            return made

        return build


class Graphs:
    """Writer and reader for graphs of the given classes.

    classes: every class that may occur beside plain values, tuples, lists, dictionaries and frozen sets.
    outside: named objects that both sides already have.
    """

    def __init__(self, classes: Collection[type], outside: Mapping[str, object] | None = None) -> None:
        ordered = sorted(set(classes), key=lambda one: (one.__module__, one.__qualname__))
        self._shapes = [_Shape(one) for one in ordered]
        self._numbers = {one: number for number, one in enumerate(ordered, _FIRST_CLASS)}
        self._outside = dict(outside or {})
        self._names = {id(one): name for name, one in self._outside.items()}
        told = repr([(one.kind.__module__, one.kind.__qualname__, one.names) for one in self._shapes])
        self.version = hashlib.sha256(told.encode()).hexdigest()[:16]
        """A digest of the classes and their fields."""

    def encode(self, root: object, names: Mapping[int, str] | None = None) -> bytes:
        """Encode a graph as bytes. Raises BadInput for a value of an unknown kind.

        names: names by `id` of objects that the reader receives by name.
        """
        writer = _Writer(self._numbers, self._shapes, {**self._names, **(names or {})})
        last = writer.write(root)
        try:
            atoms = msgspec.msgpack.encode(list(writer.atoms))
        except (msgspec.MsgspecError, UnicodeEncodeError, OverflowError) as problem:
            raise BadInput(f"a value cannot be kept: {problem}") from problem
        rows = writer.rows if sys.byteorder == "little" else _swap_bytes(writer.rows)
        body = len(atoms).to_bytes(8, "little") + last.to_bytes(8, "little") + atoms + rows.tobytes()
        return hashlib.blake2b(body, digest_size=_DIGEST).digest() + body

    def decode(self, data: bytes, named: Callable[[str], object]) -> Any:  # noqa: ANN401 -- whatever was encoded
        """Decode a graph. Raises BadInput for damaged bytes.

        named: returns the object that was encoded under a name.
        """
        digest, body = data[:_DIGEST], memoryview(data)[_DIGEST:]
        if hashlib.blake2b(body, digest_size=_DIGEST).digest() != digest:
            raise BadInput("the bytes of a graph are damaged")
        try:
            return self._read(body, named)
        except (msgspec.MsgspecError, IndexError, ValueError, TypeError, OverflowError) as problem:
            raise BadInput(f"the bytes are no graph: {problem}") from problem

    def _read(self, body: memoryview, named: Callable[[str], object]) -> object:
        size, last = int.from_bytes(body[:8], "little"), int.from_bytes(body[8:16], "little")
        table: list[Any] = msgspec.msgpack.decode(body[16 : 16 + size], type=list)
        rows = array(_WIDTH)
        rows.frombytes(body[16 + size :])
        if sys.byteorder != "little":
            rows = _swap_bytes(rows)
        builders = [one.builder() for one in self._shapes]
        numbers = rows.tolist()
        at, end, get = 0, len(numbers), table.__getitem__
        add = table.append
        while at < end:
            kind, count = numbers[at], numbers[at + 1]
            at += 2 + count
            values = list(map(get, numbers[at - count : at]))
            if kind >= _FIRST_CLASS:
                add(builders[kind - _FIRST_CLASS](values))
            elif kind == _OUTSIDE:
                name = values[0]
                add(self._outside[name] if name in self._outside else named(name))
            elif kind == _TUPLE:
                add(tuple(values))
            elif kind == _DICT:
                add(dict(zip(values[::2], values[1::2], strict=True)))
            elif kind == _SET:
                add(frozenset(values))
            else:
                add(values)
        return table[last]


class _Writer:
    """Numbers every value, parts before wholes, and plain values first."""

    def __init__(self, numbers: Mapping[type, int], shapes: list[_Shape], names: Mapping[int, str]) -> None:
        self._numbers = numbers
        self._shapes = shapes
        self._names = names
        self._plain: dict[tuple[type, object], int] = {}
        self._placed: dict[int, int] = {}
        self._kept: list[object] = []  # keeps the values alive, so that no `id` is reused meanwhile
        self._made: list[tuple[int, list[int]]] = []  # references: plain values by -1 - number, others by number
        self.atoms: list[object] = []
        self.rows = array(_WIDTH)

    def write(self, root: object) -> int:
        waiting: list[tuple[object, bool]] = [(root, False)]
        while waiting:
            value, ready = waiting.pop()
            if isinstance(value, _PLAIN):
                self._atom(value)
                continue
            if id(value) in self._placed:
                continue
            kind, parts = self._parts(value)
            if ready:
                self._placed[id(value)] = len(self._made)
                self._kept.append(value)
                self._made.append((kind, [self._reference(one) for one in parts]))
                continue
            waiting.append((value, True))
            waiting += [(one, False) for one in parts if isinstance(one, _PLAIN) or id(one) not in self._placed]
        base = len(self.atoms)
        for kind, references in self._made:
            self.rows.append(kind)
            self.rows.append(len(references))
            self.rows.extend([-1 - one if one < 0 else base + one for one in references])
        last = self._reference(root)
        return -1 - last if last < 0 else base + last

    def _atom(self, value: object) -> int:
        key = type(value), value
        found = self._plain.get(key)
        if found is None:
            found = self._plain[key] = len(self.atoms)
            self.atoms.append(value)
        return found

    def _reference(self, value: object) -> int:
        return -1 - self._atom(value) if isinstance(value, _PLAIN) else self._placed[id(value)]

    def _parts(self, value: object) -> tuple[int, list[object]]:
        name = self._names.get(id(value))
        if name is not None:
            return _OUTSIDE, [name]
        number = self._numbers.get(type(value))
        if number is not None:
            return number, [getattr(value, one) for one in self._shapes[number - _FIRST_CLASS].names]
        if type(value) is tuple:
            return _TUPLE, list(value)
        if type(value) is dict:
            return _DICT, [part for item in value.items() for part in item]
        if type(value) is frozenset:
            return _SET, sorted(value, key=repr)
        if type(value) is list:
            return _LIST, list(value)
        raise BadInput(f"a {type(value).__qualname__} cannot be kept in a graph")


def _swap_bytes(rows: "array[int]") -> "array[int]":
    swapped = array(_WIDTH, rows)
    swapped.byteswap()
    return swapped
