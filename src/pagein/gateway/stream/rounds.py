"""The turns of one answer, in order, in the provider's view and in the client's view."""

from collections.abc import Sequence

from pagein.engine.send.recall_exchanges import RecallExchange
from pagein.model.json_text import encode_json
from pagein.providers.wire.streams.model_turn import ModelTurn, OwnToolResult
from pagein.providers.wire.wire_format import AnswerForm


class Rounds:
    """The turns of an answer, in order."""

    def __init__(self, form: AnswerForm) -> None:
        self._form = form
        self._shown: list[bytes] = []
        self._actual: list[bytes] = []
        self._answers: tuple[bytes, ...] = ()
        self.count = 0

    def end_turn(self, turn: ModelTurn) -> None:
        """Record a finished turn."""
        self.count += 1
        self._shown += turn.shown
        self._actual += turn.said

    def add_answers(self, results: Sequence[OwnToolResult]) -> None:
        """Record results before a continuation."""
        self._actual += self._form.results(self._encode_results(results))

    def add_client_answers(self, results: Sequence[OwnToolResult]) -> None:
        """Record results to be sent together with the client's results."""
        self._answers = self._encode_results(results)

    @property
    def behind(self) -> tuple[bytes, ...]:
        """Return the messages after the client's request so far."""
        return tuple(self._actual)

    @property
    def exchange(self) -> RecallExchange | None:
        """Return the actual messages behind the client's message; None if equal, or if nothing was shown."""
        if self._shown == self._actual or not self._shown:
            return None
        return RecallExchange(tuple(self._shown), tuple(self._actual), self._answers)

    def _encode_results(self, results: Sequence[OwnToolResult]) -> tuple[bytes, ...]:
        return tuple(encode_json(self._form.result(one)) for one in results)
