"""Refuse requests as the provider would: by the rules of `providers.validity`, by field types, and by signatures.

Rules of this file
------------------
1. The bond of thinking is read from its signature. Further facts about answers are remembered by ids (M10, R3, R4).
2. Thinking of a different model is accepted and dropped, as by the provider (T1).
"""

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import Any, Final

from pagein.providers.validity import AnswerFacts, Api, target
from pagein.providers.validity.turns import Bond, TurnPart, object_at, text_at
from pagein.providers.wire import Violation, check_body, format_named, with_request
from pagein.providers.wire.body_check import turns_of
from pagein.simulator import seals
from pagein.simulator.formats import simulated_format
from pagein.simulator.model_call import Body, ProviderCall, SimulatedRefusal
from pagein.simulator.thinking_drops import ThinkingDrop

__all__ = ["FIELD", "SIGNATURE", "WINDOW", "Doorkeeper", "SimulatedRefusal", "too_long"]

SIGNATURE: Final = "signature"
"""Used instead of a rule id for a signature made elsewhere, or for different words."""
WINDOW: Final = "window"
"""Used instead of a rule id for a prompt longer than the model's window."""
FIELD: Final = "field"
"""Used instead of a rule id for a missing field or a field of the wrong type."""

_REMEMBERED: Final = 100_000


def too_long(api: Api, tokens: int, window: int) -> SimulatedRefusal:
    """Refuse a prompt too long for the model's window."""
    return SimulatedRefusal(WINDOW, 400, simulated_format(api).too_long(tokens, window))


class Doorkeeper:
    """Refuses the requests that the provider would refuse. Remembers facts of earlier answers, by id."""

    def __init__(self, key: bytes, account: date | None = None, *, takes_foreign_thinking: bool = False) -> None:
        """Start without any remembered answer.

        key: of the signatures.
        account: creation date of the account (T4).
        takes_foreign_thinking: accept signatures made elsewhere.
        """
        self._key = key
        self._account = account
        self._takes_foreign = takes_foreign_thinking
        self._thoughts: OrderedDict[str, tuple[bytes, ...]] = OrderedDict()
        self._reasoning: OrderedDict[str, str] = OrderedDict()
        self._followers: OrderedDict[str, str] = OrderedDict()

    def refusal(self, asked: ProviderCall, *, counts: bool = False) -> SimulatedRefusal | None:
        """The reason to refuse a call, or None.

        counts: the call asks only for a token count.
        """
        form = simulated_format(asked.api)
        for name, kind in form.needed:
            if name == "max_tokens" and counts:
                continue
            if not isinstance(asked.body.get(name), kind):
                return SimulatedRefusal(FIELD, 400, form.field_error(name, is_missing=name not in asked.body))
        broken = self._check_signatures(asked)
        if broken is not None:
            return broken
        found = self._find_violations(asked)
        return SimulatedRefusal(found[0].rule, found[0].status, found[0].text) if found else None

    def find_drops(self, asked: ProviderCall) -> list[ThinkingDrop]:
        """The thinking of an accepted call hidden from the model."""
        if not _binds(asked):
            return []
        others = [ThinkingDrop(*place, "model_binding_mismatch") for place in self._foreign_thinking(asked)]
        thinking = object_at(asked.body, "thinking")
        if object_at(thinking, "block_binding").get("prefix_mismatch_behavior") != "drop_block":
            return others
        strict = {**thinking, "block_binding": {"prefix_mismatch_behavior": "error"}}
        found = self._find_violations(replace(asked, body={**asked.body, "thinking": strict}))
        broken = {(one.message, one.block) for one in found if one.rule in ("T2", "T6")}
        return [*others, *(ThinkingDrop(*place, "prefix_mismatch") for place in sorted(broken))]

    def _find_violations(self, asked: ProviderCall) -> list[Violation]:
        whom = target(asked.model, betas=asked.betas if _binds(asked) else None, account=self._account)
        return check_body(asked.body, asked.api, whom, self._answer_facts(asked), size=asked.size)

    def _foreign_thinking(self, asked: ProviderCall) -> Iterator[tuple[int, int]]:
        for part in _thinking_parts(asked):
            seal = seals.open_seal(self._key, part.id, None)
            if seal is not None and seal.model != seals.short(asked.model):
                yield part.message, part.block

    def remember(self, asked: ProviderCall, answer: Sequence[Body]) -> None:
        """Remember the facts of an answer, given as wire blocks or items."""
        bare: Body = {"messages": [], "input": []}
        learned = with_request(AnswerFacts(), bare, asked.api, answer)
        for memory, more in (
            (self._thoughts, learned.thoughts),
            (self._reasoning, learned.reasoning),
            (self._followers, learned.followers),
        ):
            memory.update(more)  # type: ignore[arg-type]
            while len(memory) > _REMEMBERED:
                memory.popitem(last=False)

    def _answer_facts(self, asked: ProviderCall) -> AnswerFacts:
        signatures = [part.id for part in _thinking_parts(asked)] if _binds(asked) else []
        bonds: dict[str, Bond] = {}
        for signature in signatures:
            seal = seals.open_seal(self._key, signature, None)
            if seal is not None and seal.model == seals.short(asked.model):
                bonds[signature] = Bond(seals.trail_of(seal, signatures), b"")
        return AnswerFacts(bonds, self._thoughts, self._reasoning, self._followers)

    def _check_signatures(self, asked: ProviderCall) -> SimulatedRefusal | None:
        error = simulated_format(asked.api).signature_error
        if error is None:
            return None
        for part in _thinking_parts(asked):
            signed, words = _signature_of(part)
            if not signed or seals.open_seal(self._key, signed, words) is not None:
                continue
            if self._takes_foreign and not seals.is_ours(signed):
                continue
            message, kind = error(part)
            return SimulatedRefusal(SIGNATURE, 400, message, kind)
        return None


def _binds(asked: ProviderCall) -> bool:
    return format_named(asked.api).validity.binds_thinking


def _thinking_parts(asked: ProviderCall) -> Iterator[TurnPart]:
    for turn in turns_of(asked.body, asked.api).turns:
        yield from (part for part in turn.parts if part.kind == "thinking")


def _signature_of(part: TurnPart) -> tuple[str, str | None]:
    """The signature of a block and the signed words; None for hidden words."""
    wire: Mapping[str, Any] = part.wire
    if wire.get("type") == "thinking":
        return text_at(wire, "signature") or "none", text_at(wire, "thinking")
    return text_at(wire, "data") or text_at(wire, "encrypted_content"), None
