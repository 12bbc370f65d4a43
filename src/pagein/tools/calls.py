"""A tool as a host offers it to a model, a call of it, and reading the arguments that a model wrote."""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from pagein.engine.reads.session_reads import ReadResult
from pagein.engine.session import Session
from pagein.ports import Signal

Arguments: TypeAlias = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a tool.

    id: the call's own, by which its result stays warm; "" where the host has none. signal: called off once it is set. tell: told
    of progress, in words. confirm: asks a person whether to go on with so many files; None where nobody is to be asked.
    """

    arguments: Arguments = field(default_factory=dict)
    id: str = ""
    signal: Signal | None = None
    tell: Callable[[str], None] | None = None
    confirm: Callable[[int], bool] | None = None


@dataclass(frozen=True, slots=True)
class Offer:
    """A tool of a session.

    schema: JSON schema of its arguments. answer: answers with a result that the model can read, also where the arguments are
    wrong; never raises for what a model wrote, nor for a store that fails. legacy: its name over hosts that know it by another.
    """

    name: str
    description: str
    schema: Mapping[str, Any]
    answer: Callable[[Session, Call], ReadResult]
    legacy: str = ""


def schema(required: tuple[str, ...] = (), **properties: Mapping[str, object]) -> dict[str, Any]:
    """The JSON schema of an object with these properties."""
    return {
        "type": "object",
        "properties": {name: dict(one) for name, one in properties.items()},
        "required": [*required],
    }


def refusal_result(text: str) -> ReadResult:
    """An answer that says what is wrong."""
    return ReadResult(text, is_error=True)


class ArgumentReader:
    """The arguments of one call, taken one by one; what is wrong with them is gathered on the way."""

    def __init__(self, tool: str, arguments: Arguments) -> None:
        self._tool = tool
        self._arguments = arguments
        self._missing: list[str] = []
        self._wrong: list[str] = []

    def has(self, name: str) -> bool:
        """Whether the call says anything by this name."""
        return self._arguments.get(name) is not None

    def text(self, name: str) -> str:
        """A text that must be there and must not be blank."""
        value = self._arguments.get(name)
        if isinstance(value, str) and value.strip():
            return value
        if value is None or isinstance(value, str):
            self._missing.append(name)
        else:
            self._wrong.append(f"{name}: must be a text")
        return ""

    def texts(self, name: str) -> tuple[str, ...] | None:
        """A list of texts, or one text for a list of one; None where there is none."""
        value = self._arguments.get(name)
        if value is None:
            return None
        if isinstance(value, str):
            return (value,)
        if isinstance(value, list | tuple) and all(isinstance(one, str) for one in value):
            return tuple(str(one) for one in value)
        self._wrong.append(f"{name}: must be a list of texts")
        return None

    def whole(self, name: str, default: int) -> int:
        """A number, cut to a whole one."""
        value = self._arguments.get(name)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            self._wrong.append(f"{name}: must be a number")
            return default
        return int(value)

    def yes(self, name: str) -> bool:
        """Whether something is asked for."""
        return self._arguments.get(name) is True

    def problem(self) -> ReadResult | None:
        """What is wrong, in a form that a model can act on; None where all is well."""
        if self._missing:
            return refusal_result(f"Missing required parameter: {self._missing[0]}")
        if not self._wrong:
            return None
        lines = "\n".join(f"  - {line}" for line in self._wrong)
        given = json.dumps(dict(self._arguments), indent=2, default=str)
        return refusal_result(f'Validation failed for tool "{self._tool}":\n{lines}\n\nReceived arguments:\n{given}')
