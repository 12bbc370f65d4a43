"""A tool as offered by a host to a model, a call of the tool, and a reader of the model's arguments."""

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from pagein.engine.reads.session_reads import ReadResult
from pagein.engine.session import Session
from pagein.ports import Signal

Arguments: TypeAlias = Mapping[str, object]
_SPAN: Final = re.compile(r"([0-9]{1,9})(?:\s*-\s*([0-9]{1,9}))?")


@dataclass(frozen=True, slots=True)
class ConsentQuestion:
    """A question to the person at the host, before a call that takes much.

    question: as a dialogue shows it. reason: the same as a statement, for a model that passes the question on.
    otherwise: what the model may do without consent.
    """

    question: str
    reason: str
    otherwise: str


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a tool.

    id: the call's id, by which its result counts as recently recalled; "" if the host has none
    signal: cancels the call once set
    tell: receives progress, in words
    confirm: asks a person whether to continue, from any thread; None if there is no person to ask
    """

    arguments: Arguments = field(default_factory=dict)
    id: str = ""
    signal: Signal | None = None
    tell: Callable[[str], None] | None = None
    confirm: Callable[[ConsentQuestion], bool] | None = None


@dataclass(frozen=True, slots=True)
class Offer:
    """A tool of a session.

    schema: JSON schema of the arguments
    answer: returns a result readable by the model, also for wrong arguments; raises neither for a model's input nor for
    a failing store
    legacy: the tool's name in hosts that use the names of Pi-RLM
    """

    name: str
    description: str
    schema: Mapping[str, Any]
    answer: Callable[[Session, Call], ReadResult]
    legacy: str = ""


def schema(required: tuple[str, ...] = (), **properties: Mapping[str, object]) -> dict[str, Any]:
    """Return the JSON schema of an object with these properties."""
    return {
        "type": "object",
        "properties": {name: dict(one) for name, one in properties.items()},
        "required": [*required],
    }


def refusal_result(text: str) -> ReadResult:
    """Return an error result with this message."""
    return ReadResult(text, is_error=True)


class ArgumentReader:
    """Reads the arguments of a call and collects errors."""

    def __init__(self, tool: str, arguments: Arguments) -> None:
        self._tool = tool
        self._arguments = arguments
        self._missing: list[str] = []
        self._wrong: list[str] = []

    def has(self, name: str) -> bool:
        """Return whether the call has an argument of this name."""
        return self._arguments.get(name) is not None

    def text(self, name: str) -> str:
        """Return a required text that must not be blank."""
        value = self._arguments.get(name)
        if isinstance(value, str) and value.strip():
            return value
        if value is None or isinstance(value, str):
            self._missing.append(name)
        else:
            self._wrong.append(f"{name}: must be a text")
        return ""

    def texts(self, name: str) -> tuple[str, ...] | None:
        """Return a list of texts; a single text counts as a list. None if the argument is missing."""
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
        """Return a number, truncated to an integer."""
        value = self._arguments.get(name)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            self._wrong.append(f"{name}: must be a number")
            return default
        return int(value)

    def span(self, name: str) -> tuple[int, int] | None:
        """Return a first and a last number, written `3` or `3-5`. None if the argument is missing."""
        value = self._arguments.get(name)
        if value is None:
            return None
        found = _SPAN.fullmatch(str(value).strip())
        if found is None or not 1 <= int(found[1]) <= int(found[2] or found[1]):
            self._wrong.append(f"{name}: must be a number from 1 on, or a range such as 3-5")
            return None
        return int(found[1]), int(found[2] or found[1])

    def yes(self, name: str) -> bool:
        """Return whether a flag is true."""
        return self._arguments.get(name) is True

    def is_one_of(self, name: str, words: Sequence[str]) -> bool:
        """Return whether an argument is missing or one of these words."""
        value = self._arguments.get(name)
        return value is None or value in words

    def problem(self) -> ReadResult | None:
        """Return the errors in a form that a model can act on, or None for valid arguments."""
        if self._missing:
            return refusal_result(f"Missing required parameter: {self._missing[0]}")
        if not self._wrong:
            return None
        lines = "\n".join(f"  - {line}" for line in self._wrong)
        given = json.dumps(dict(self._arguments), indent=2, default=str)
        return refusal_result(f'Validation failed for tool "{self._tool}":\n{lines}\n\nReceived arguments:\n{given}')
