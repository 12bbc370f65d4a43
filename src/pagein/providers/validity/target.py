"""Whom a request goes to, as far as what it refuses depends on it."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import date
from typing import Final, Literal, TypeAlias

from pagein.providers.prices.model_abilities import UNKNOWN, Abilities, abilities

Platform: TypeAlias = Literal["current", "legacy"]

CHECKED_SINCE: Final = date(2026, 8, 31)
"""Accounts made from this day on have the prefix of thinking checked on every request (T4)."""


@dataclass(frozen=True, slots=True)
class ModelTarget:
    """A model behind an API, and the account and headers that it is asked with.

    betas: values of the beta header; None: not known, so nothing is refused for one that is missing.
    account: when the account was made; None: not known, and taken for one whose prefixes are checked, as all new ones are.
    platform: `legacy` for Bedrock's first integration and others of its age, which know fewer forms (M8, M16).
    """

    abilities: Abilities = UNKNOWN
    betas: frozenset[str] | None = None
    account: date | None = None
    platform: Platform = "current"

    def lacks_beta(self, family: str) -> bool:
        """Whether the header is known to hold no beta of this family, such as `compact-`."""
        return self.betas is not None and not any(beta.startswith(family) for beta in self.betas)

    @property
    def account_is_checked(self) -> bool:
        """Whether prefixes are checked without being asked for (T4)."""
        return self.account is None or self.account >= CHECKED_SINCE


ANYBODY: Final = ModelTarget()


def target(
    model: str | None,
    on: date | None = None,
    *,
    betas: Collection[str] | None = None,
    account: date | None = None,
    platform: Platform = "current",
) -> ModelTarget:
    """The target for a model id as hosts record it, as documented on a day (None: the newest)."""
    return ModelTarget(abilities(model, on), None if betas is None else frozenset(betas), account, platform)
