"""The simulated provider without HTTP: it maps calls to answers and records them.

Not thread-safe; use it from a single event loop.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any, TypeAlias

from pagein.errors import HostError
from pagein.providers.validity import Api
from pagein.providers.validity.thinking_bonds import canonical, hash_parts
from pagein.providers.wire.body_check import turns_of
from pagein.simulator.accounts import Accounts, CallCharge
from pagein.simulator.answer_maker import override_usage, reply_blocks
from pagein.simulator.cleared_context import ClearedCall, clear_context
from pagein.simulator.formats import FORMATS, simulated_format
from pagein.simulator.kept_responses import KeptResponses
from pagein.simulator.model_call import ProviderCall, SimulatedRefusal
from pagein.simulator.named_prompts import NamedPromptRequest, NamedPromptsBill, bill_stored
from pagein.simulator.neutral_answer import ReplyThought, SimulatedReply
from pagein.simulator.provider_settings import KEPT, ProviderSettings
from pagein.simulator.refusals import Doorkeeper, too_long
from pagein.simulator.script import BREAK, NO_SCRIPTS, Failure, Script, Scripts, ScriptTurn, scripts_from, turn_from
from pagein.simulator.thinking_drops import without
from pagein.simulator.turn_choice import TurnChoice, choose_turn

Answerer: TypeAlias = Callable[[ProviderCall], object]
"""A script as a function: from a call to a turn, or to any input of `turn_from`."""


@dataclass(frozen=True, slots=True)
class WireAnswer:
    """The response to a call.

    reply: None if the call fails at once.
    failure: how the call fails; None for a success.
    """

    asked: ProviderCall
    turn: ScriptTurn
    index: int
    reply: SimulatedReply | None = None
    failure: Failure | None = None
    charged: CallCharge | None = None

    def whole(self) -> dict[str, Any]:
        """The body of a complete answer."""
        return simulated_format(self.asked.api).whole(self._successful_reply)

    def events(self) -> Iterable[bytes]:
        """The events of a streamed answer."""
        return simulated_format(self.asked.api).events(self._successful_reply)

    @property
    def _successful_reply(self) -> SimulatedReply:
        if self.reply is None:
            raise HostError("a call that failed has no answer")
        return self.reply


class Service:
    """A provider: scripts, accounts and memory."""

    def __init__(self, script: object, settings: ProviderSettings) -> None:
        """Raises BadInput for an invalid script, and BadSetting for invalid prices."""
        self._answerer: Answerer | None = None
        self._scripts = NO_SCRIPTS
        if callable(script) and not isinstance(script, Script | Scripts):
            self._answerer = script
        elif script is not None:
            self._scripts = scripts_from(script)
        self._settings = settings
        self._key = blake2b(settings.secret.encode(), digest_size=32).digest()
        self._doorkeeper = Doorkeeper(
            self._key, settings.account, takes_foreign_thinking=settings.takes_foreign_thinking
        )
        self._kept = KeptResponses()
        self.accounts = Accounts(settings.prices, settings.counter, KEPT[settings.cache])
        made = {form.name: form.named_prompts for form in FORMATS if form.named_prompts is not None}
        self._named = {name: make(self.count, self._least) for name, make in made.items()}
        asked = {form.name: form.diagnoses for form in FORMATS if form.diagnoses is not None}
        self._diagnoses = {name: make(self.accounts.prompts) for name, make in asked.items()}
        self._successful_reply = 0
        self._failures: Counter[bytes] = Counter()

    def resolve_call(self, asked: ProviderCall) -> ProviderCall | SimulatedRefusal:
        """Expand a call with the stored response or prompt named in the call, or return the refusal."""
        named = self._named.get(asked.api)
        found = asked if named is None else named.resolve_call(asked)
        return found if isinstance(found, SimulatedRefusal) else self._kept.resolve_call(found)

    def answer_named(self, asked: NamedPromptRequest) -> tuple[Api, Mapping[str, Any] | SimulatedRefusal] | None:
        """Answer a request for stored prompts, in the format of its path; None for another path."""
        calls = ((name, one, replace(asked.call, api=name)) for name, one in self._named.items())
        answers = ((name, one.answer(replace(asked, call=call))) for name, one, call in calls)
        return next(((name, answer) for name, answer in answers if answer is not None), None)

    def bill_stored(self, now: float) -> NamedPromptsBill:
        """The cost of stored prompts so far."""
        return bill_stored(
            (one for store in self._named.values() for one in store.stored(now)), self.accounts.prices_of
        )

    def refusal(self, asked: ProviderCall, *, counts: bool = False) -> SimulatedRefusal | None:
        """The reason to refuse a call, or None.

        counts: the call asks only for a token count.
        """
        refusal, window = self._doorkeeper.refusal(asked, counts=counts), self._settings.window
        if refusal is not None or window is None or counts:
            return refusal
        tokens = self.count(self._clear(asked).asked)
        return too_long(asked.api, tokens, window) if tokens > window else None

    def answer(self, asked: ProviderCall) -> WireAnswer:
        """Answer an accepted call."""
        choice = self._choose_turn(asked)
        turn = choice.turn
        failure = self._next_failure(asked, turn.failure)
        if failure is not None and failure.after is None:
            return WireAnswer(asked, turn, choice.index, failure=failure)
        self._successful_reply += 1
        tag = hash_parts(self._key, self._successful_reply.to_bytes(8, "big")).hex()[:16]
        prewarms = simulated_format(asked.api).is_prewarming(asked)
        blocks = () if prewarms else reply_blocks(asked, turn.said, tag, self._key)
        dropped = self._doorkeeper.find_drops(asked)
        seen = self._clear(without(asked, dropped))
        charged = self.accounts.charge(seen.asked, blocks, turn.wait)
        tokens = self.accounts.prompts.tokens
        reply = SimulatedReply(
            tag,
            asked.model,
            int(asked.at),
            blocks,
            override_usage(charged.usage, turn.usage),
            charged.first,
            sum(tokens(asked.model, block.text) for block in blocks if isinstance(block, ReplyThought)),
            "max_tokens" if prewarms else turn.stop,
            self._settings.chunk,
            _reports_usage(asked),
            charged.prices.cache.model == "breakpoints",
            seen.applied,
            tuple(one.as_json() for one in dropped),
            self._diagnoses[asked.api].diagnose(asked, tag) if asked.api in self._diagnoses else {},
        )
        self._remember(asked, reply)
        return WireAnswer(asked, turn, choice.index, reply, failure, charged)

    def count(self, asked: ProviderCall) -> int:
        """Count the tokens of a prompt as sent."""
        return self.accounts.prompt(asked).tokens

    def count_tokens(self, asked: ProviderCall) -> dict[str, Any]:
        """The body of an answer with the token count of a prompt."""
        seen = self._clear(asked)
        told = simulated_format(asked.api).count_body(self.count(seen.asked))
        if seen.applied is not None:
            told["context_management"] = {"original_input_tokens": self.count(asked)}
        return told

    def _least(self, asked: ProviderCall) -> int:
        return self.accounts.prices(asked).cache.min_prefix

    def _clear(self, asked: ProviderCall) -> ClearedCall:
        return clear_context(asked, self.count) if simulated_format(asked.api).clears_context else ClearedCall(asked)

    def _choose_turn(self, asked: ProviderCall) -> TurnChoice:
        if self._answerer is None:
            return choose_turn(asked, self._scripts)
        return TurnChoice(turn_from(self._answerer(asked)), 0)

    def _next_failure(self, asked: ProviderCall, failure: Failure | None) -> Failure | None:
        """The failure, unless the same request has failed often enough."""
        if failure is None or not failure.times:
            return failure
        turns = turns_of(asked.body, asked.api).turns
        name = hash_parts(*(canonical(part) for turn in turns for part in turn.parts), asked.model.encode())
        self._failures[name] += 1
        return failure if self._failures[name] <= failure.times else None

    def _remember(self, asked: ProviderCall, reply: SimulatedReply) -> None:
        form = simulated_format(asked.api)
        if form.memory_blocks is None:
            return
        said = form.memory_blocks(reply)
        self._doorkeeper.remember(asked, said)
        self._kept.keep(asked, f"resp_{reply.tag}", said)


def error_of(failure: Failure, api: Api) -> dict[str, Any]:
    """The body of a failure with an answer."""
    return simulated_format(api).error(failure.status, failure.message, failure.kind)


def is_break(failure: Failure) -> bool:
    """Whether the connection ends without an answer."""
    return failure.status == BREAK


def _reports_usage(asked: ProviderCall) -> bool:
    options = asked.body.get("stream_options")
    return isinstance(options, dict) and options.get("include_usage") is True
