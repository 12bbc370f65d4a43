"""Validity rules as data. Each wire format has a table of rules: `providers/wire/*/rules.py`."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from pagein.providers.validity.turns import TurnPart, Turns

Check: TypeAlias = Callable[[Turns, int], Iterator[tuple[TurnPart, str]]]


@dataclass(frozen=True, slots=True)
class ValidityRule:
    """A reason for the refusal of requests.

    says: the rule in one sentence.
    check: finds violations; None for a rule without a refusal of its own, which states a consequence of further rules.
    kept: where pagein follows a rule without a check.
    errors: the provider's own words, `{...}` for variable parts.
    words: pagein's words, if the provider's are not known.
    status: HTTP status of the refusal.
    """

    says: str
    check: Check | None = None
    errors: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    status: int = 400
    kept: str = ""
