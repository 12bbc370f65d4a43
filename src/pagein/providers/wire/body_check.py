"""Check requests against the rules of their provider (law 3)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from pagein.model.messages import Message
from pagein.providers.validity.rules import Check
from pagein.providers.validity.target import ANYBODY, ModelTarget, target
from pagein.providers.validity.thinking_bonds import learn_turns
from pagein.providers.validity.turns import (
    NOTHING_RECEIVED,
    AnswerFacts,
    Api,
    PromptTurn,
    Turns,
    Wire,
    extend_turns,
    neutral_turns,
    remove_from,
)
from pagein.providers.wire.formats import FORMATS, format_named


@dataclass(frozen=True, slots=True)
class Violation:
    """A reason for the refusal of a request.

    rule: id of the broken rule.
    message, block: place of the violation, from 0; -1: tools or system.
    text: the provider's words, if they are known.
    status: HTTP status of the provider's answer.
    """

    rule: str
    message: int
    block: int
    text: str
    status: int = 400


_CHECKS: Final[Mapping[Api, Sequence[tuple[str, Check, int]]]] = {
    one.name: [(name, rule.check, rule.status) for name, rule in one.validity.rules.items() if rule.check]
    for one in FORMATS
}


def turns_of(body: Wire, api: Api) -> Turns:
    """Convert a request body, given as plain values, to turns."""
    return format_named(api).validity.turns(body)


def view(
    body: Wire, api: Api, whom: ModelTarget | None = None, received: AnswerFacts = NOTHING_RECEIVED, *, size: int = 0
) -> Turns:
    """Convert a request body to turns, the input of the rules.

    whom: None for the model named in the body, with headers and account unknown.
    """
    turns = turns_of(body, api)
    model: Any = body.get("model")
    known = target(model if isinstance(model, str) else None) if whom is None else whom
    return replace(turns, target=known, received=received, size=size)


def check_body(
    body: Wire, api: Api, whom: ModelTarget | None = None, received: AnswerFacts = NOTHING_RECEIVED, *, size: int = 0
) -> list[Violation]:
    """Check a request body, given as plain values, for reasons of refusal. An empty list means valid.

    whom: None for the model named in the body, with headers and account unknown.
    received: known facts about the answers in the body.
    size: bytes of the body, if known.
    """
    return _violations(view(body, api, whom, received, size=size), api, 0)


def check_messages(
    messages: Sequence[Message],
    api: Api = "anthropic",
    whom: ModelTarget = ANYBODY,
    received: AnswerFacts = NOTHING_RECEIVED,
) -> list[Violation]:
    """Check messages, in rendered form, for reasons of refusal. An empty list means valid."""
    return Checker(api, whom).check(0, messages, received)


def with_request(received: AnswerFacts, body: Wire, api: Api, answer: Sequence[Wire] = ()) -> AnswerFacts:
    """The facts known after an accepted request and the answer, given as blocks (Messages) or items (Responses).

    Unknown thinking in the request is assumed to be where it was made.
    """
    form = format_named(api).validity
    return learn_turns(received, form.turns(form.with_answer(body, answer) if answer else body))


class Checker:
    """Checks each request of a conversation at the cost of the new part."""

    def __init__(self, api: Api = "anthropic", whom: ModelTarget = ANYBODY) -> None:
        self._api: Api = api
        self._target = whom
        self._turns: list[PromptTurn] = []
        self._head = 0

    def check(self, keep: int, tail: Sequence[Message], received: AnswerFacts = NOTHING_RECEIVED) -> list[Violation]:
        """Check a request with the first `keep` messages of the previous request, followed by `tail`.

        For kept messages, only violations caused by the tail are reported.
        """
        remove_from(self._turns, keep)
        since = max(len(self._turns) - 1, 0)
        if keep <= self._head:
            # Only system messages were kept: system messages directly after them are outside of the turns too.
            self._head = keep + next((place for place, one in enumerate(tail) if one.role != "system"), len(tail))
        skip = max(self._head - keep, 0)
        extend_turns(self._turns, neutral_turns(tail[skip:], keep + skip))
        return _violations(Turns(self._turns, target=self._target, received=received), self._api, since)


def _violations(turns: Turns, api: Api, since: int) -> list[Violation]:
    return [
        Violation(name, part.message, part.block, text, status)
        for name, check, status in _CHECKS[format_named(api).name]
        for part, text in check(turns, since)
    ]
