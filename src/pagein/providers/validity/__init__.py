"""Refusals of requests by providers: rules as data, and the checker."""

from pagein.providers.validity.body_check import Checker, Violation, check_body, check_messages
from pagein.providers.validity.rules import RULES, Api, ValidityRule
from pagein.providers.validity.target import ANYBODY, ModelTarget, target
from pagein.providers.validity.thinking_bonds import with_messages, with_request
from pagein.providers.validity.turns import NOTHING_RECEIVED, AnswerFacts

__all__ = [
    "ANYBODY",
    "NOTHING_RECEIVED",
    "RULES",
    "AnswerFacts",
    "Api",
    "Checker",
    "ModelTarget",
    "ValidityRule",
    "Violation",
    "check_body",
    "check_messages",
    "target",
    "with_messages",
    "with_request",
]
