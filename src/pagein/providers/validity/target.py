"""The target of a request, as far as the validity rules depend on the target."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import date
from typing import Final, Literal, TypeAlias

from pagein.providers.prices.model_abilities import UNKNOWN, Abilities, abilities

Platform: TypeAlias = Literal["current", "legacy"]

CHECKED_SINCE: Final = date(2026, 8, 31)
"""Accounts created from this day on have the prefix of thinking checked on every request (T4)."""


@dataclass(frozen=True, slots=True)
class ModelTarget:
    """A model behind an API, with the account and headers of the request.

    betas: values of the beta header; None: not known, so no beta counts as missing.
    account: creation date of the account; None: not known, and treated as an account with checked prefixes, like every
        new one.
    platform: `legacy` for Bedrock's first integration and platforms of the same age, which support fewer forms (M8,
        M16).
    """

    abilities: Abilities = UNKNOWN
    betas: frozenset[str] | None = None
    account: date | None = None
    platform: Platform = "current"

    def lacks_beta(self, family: str) -> bool:
        """Whether the header is known to lack every beta of a family such as `compact-`."""
        return self.betas is not None and not any(beta.startswith(family) for beta in self.betas)

    @property
    def account_is_checked(self) -> bool:
        """Whether the provider checks prefixes without a request setting (T4)."""
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
    """The target for a model id as recorded by hosts, as documented on a day (None: the newest documentation)."""
    return ModelTarget(abilities(model, on), None if betas is None else frozenset(betas), account, platform)
