"""Checking requests against the rules of their provider (law 3)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pagein.model.messages import Message
from pagein.providers.validity.rules import RULES, Api
from pagein.providers.validity.turns import (
    Turn,
    Turns,
    anthropic_turns,
    chat_turns,
    cut,
    extended,
    neutral_turns,
    responses_turns,
)


@dataclass(frozen=True, slots=True)
class Violation:
    """Why a request would be refused: the rule, the message and block that break it (from 0; -1: tools or system), and how."""

    rule: str
    message: int
    block: int
    text: str


_READERS: Final[Mapping[Api, Callable[[Mapping[str, Any]], Turns]]] = {
    "anthropic": anthropic_turns,
    "openai_chat": chat_turns,
    "openai_responses": responses_turns,
}


def check_body(body: Mapping[str, Any], api: Api) -> list[Violation]:
    """Why a provider would refuse this request body, given as plain values. Empty: it would not."""
    return _violations(_READERS[api](body), api, 0)


def check_messages(messages: Sequence[Message], api: Api = "anthropic") -> list[Violation]:
    """Why a provider would refuse these messages, once rendered for it. Empty: it would not."""
    return Checker(api).check(0, messages)


class Checker:
    """Checks each request of a conversation at the cost of what is new in it."""

    def __init__(self, api: Api = "anthropic") -> None:
        self._api: Api = api
        self._turns: list[Turn] = []
        self._head = 0

    def check(self, keep: int, tail: Sequence[Message]) -> list[Violation]:
        """Check the request that has the first `keep` messages of the one before and then `tail`.

        What is reported for messages that were kept is only what the tail changes for them.
        """
        cut(self._turns, keep)
        since = max(len(self._turns) - 1, 0)
        if keep <= self._head:
            # Nothing but system messages was kept: those that follow at once stand outside of the turns like them.
            self._head = keep + next((place for place, one in enumerate(tail) if one.role != "system"), len(tail))
        skip = max(self._head - keep, 0)
        extended(self._turns, neutral_turns(tail[skip:], keep + skip))
        return _violations(Turns(self._turns), self._api, since)


def _violations(turns: Turns, api: Api, since: int) -> list[Violation]:
    return [
        Violation(name, part.message, part.block, text)
        for name, rule in RULES.items()
        if rule.api == api
        for part, text in rule.check(turns, since)
    ]
