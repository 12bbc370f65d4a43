"""Checking requests against the rules of their provider (law 3)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from pagein.model.messages import Message
from pagein.providers.validity.body_turns import turns_of
from pagein.providers.validity.rules import RULES, Api, Check
from pagein.providers.validity.target import ANYBODY, ModelTarget, target
from pagein.providers.validity.turns import (
    NOTHING_RECEIVED,
    AnswerFacts,
    PromptTurn,
    Turns,
    Wire,
    cut,
    extend_turns,
    neutral_turns,
)


@dataclass(frozen=True, slots=True)
class Violation:
    """Why a request would be refused: the rule, the message and block that break it (from 0; -1: tools or system), and how.

    text: the provider's words, where they are known. status: of its answer.
    """

    rule: str
    message: int
    block: int
    text: str
    status: int = 400


_CHECKS: Final[dict[Api, list[tuple[str, Check, int]]]] = {
    api: [(name, rule.check, rule.status) for name, rule in RULES.items() if rule.check and api in rule.apis]
    for api in ("anthropic", "openai_chat", "openai_responses")
}


def view(
    body: Wire, api: Api, whom: ModelTarget | None = None, received: AnswerFacts = NOTHING_RECEIVED, *, size: int = 0
) -> Turns:
    """A request body as the rules see it. whom: None for the model it names, with nothing known of headers and account."""
    turns = turns_of(body, api)
    model: Any = body.get("model")
    known = target(model if isinstance(model, str) else None) if whom is None else whom
    return replace(turns, target=known, received=received, size=size)


def check_body(
    body: Wire, api: Api, whom: ModelTarget | None = None, received: AnswerFacts = NOTHING_RECEIVED, *, size: int = 0
) -> list[Violation]:
    """Why a provider would refuse this request body, given as plain values. Empty: it would not.

    whom: None for the model it names, with nothing known of headers and account. received: what is known of answers that it holds.
    size: its bytes, where known.
    """
    return _violations(view(body, api, whom, received, size=size), api, 0)


def check_messages(
    messages: Sequence[Message],
    api: Api = "anthropic",
    whom: ModelTarget = ANYBODY,
    received: AnswerFacts = NOTHING_RECEIVED,
) -> list[Violation]:
    """Why a provider would refuse these messages, once rendered for it. Empty: it would not."""
    return Checker(api, whom).check(0, messages, received)


class Checker:
    """Checks each request of a conversation at the cost of what is new in it."""

    def __init__(self, api: Api = "anthropic", whom: ModelTarget = ANYBODY) -> None:
        self._api: Api = api
        self._target = whom
        self._turns: list[PromptTurn] = []
        self._head = 0

    def check(self, keep: int, tail: Sequence[Message], received: AnswerFacts = NOTHING_RECEIVED) -> list[Violation]:
        """Check the request that has the first `keep` messages of the one before and then `tail`.

        What is reported for messages that were kept is only what the tail changes for them.
        """
        cut(self._turns, keep)
        since = max(len(self._turns) - 1, 0)
        if keep <= self._head:
            # Nothing but system messages was kept: those that follow at once stand outside of the turns like them.
            self._head = keep + next((place for place, one in enumerate(tail) if one.role != "system"), len(tail))
        skip = max(self._head - keep, 0)
        extend_turns(self._turns, neutral_turns(tail[skip:], keep + skip))
        return _violations(Turns(self._turns, target=self._target, received=received), self._api, since)


def _violations(turns: Turns, api: Api, since: int) -> list[Violation]:
    return [
        Violation(name, part.message, part.block, text, status)
        for name, check, status in _CHECKS[api]
        for part, text in check(turns, since)
    ]
