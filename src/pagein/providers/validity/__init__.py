"""Refusals of requests by providers: the request as the rules see it, and the checks. `providers/wire` applies both."""

from pagein.providers.validity.rules import ValidityRule
from pagein.providers.validity.target import ANYBODY, ModelTarget, target
from pagein.providers.validity.thinking_bonds import with_messages
from pagein.providers.validity.turns import NOTHING_RECEIVED, AnswerFacts, Api

__all__ = [
    "ANYBODY",
    "NOTHING_RECEIVED",
    "AnswerFacts",
    "Api",
    "ModelTarget",
    "ValidityRule",
    "target",
    "with_messages",
]
