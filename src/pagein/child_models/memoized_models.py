"""Answer a call that was made before from memory, without a call to the provider.

Rules of this file
------------------
1. Calls are the same if model, instructions, content, tools, form of the answer and output limit are the same, byte by byte.
2. A remembered answer costs nothing, and reports usage of zero tokens, so that no cost is counted twice.
3. Only whole answers that say something are remembered, the newest ones: a child that answered with nothing may be asked again.
   Nothing is written to a disk.
"""

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

import msgspec

from pagein.model.json_text import encode_json
from pagein.model.messages import Usage
from pagein.policy.delegation.child_replies import parse_reply
from pagein.ports import ChildAnswer, ChildModel, ChildRequest

_KEPT: Final = 2_000
_BYTES: Final = 64 << 20
_WHOLE: Final = ("end", "tools")


@dataclass(frozen=True, slots=True)
class MemoFigures:
    """How many calls were asked for, and how many of them were answered from memory."""

    calls: int = 0
    hits: int = 0

    @property
    def says(self) -> str:
        """The figures in words."""
        share = self.hits / self.calls if self.calls else 0.0
        return f"{self.hits} of {self.calls} calls ({share:.0%}) were answered from memory"


class AnswerMemo:
    """Remembers answers for a process. Thread-safe."""

    def __init__(self, most_bytes: int = _BYTES) -> None:
        self._answers: OrderedDict[bytes, tuple[ChildAnswer, int]] = OrderedDict()
        self._most = most_bytes
        self._size = 0
        self._lock = threading.Lock()

    def find(self, key: bytes) -> ChildAnswer | None:
        """Return the answer to a call that was made before."""
        with self._lock:
            found = self._answers.get(key)
            if found is None:
                return None
            self._answers.move_to_end(key)
        return replace(found[0], usage=Usage())

    def keep(self, key: bytes, answer: ChildAnswer) -> None:
        """Remember an answer. The oldest ones are forgotten when there are too many."""
        if answer.stop not in _WHOLE or not (answer.tool_calls or parse_reply(answer.text).answer.strip()):
            return
        size = sum(map(len, _texts(answer)))
        with self._lock:
            if key in self._answers:
                return
            self._answers[key] = (answer, size)
            self._size += size
            while self._answers and (len(self._answers) > _KEPT or self._size > self._most):
                self._size -= self._answers.popitem(last=False)[1][1]


class MemoizedModels:
    """Child models whose answers are remembered. Implements `ChildModel`.

    figures: of the calls through this connection.
    """

    def __init__(self, models: ChildModel, memo: AnswerMemo) -> None:
        self._models = models
        self._memo = memo
        self.figures = MemoFigures()

    @property
    def default_model(self) -> str:
        """As of the models behind."""
        return self._models.default_model

    def knows(self, model: str, /) -> bool:
        """As of the models behind."""
        return self._models.knows(model)

    async def complete(self, request: ChildRequest, /) -> ChildAnswer:
        """Return the remembered answer, or call the model once."""
        key = call_key(replace(request, model=request.model or self.default_model))
        found = self._memo.find(key)
        self.figures = MemoFigures(self.figures.calls + 1, self.figures.hits + (found is not None))
        if found is not None:
            return found
        answer = await self._models.complete(request)
        self._memo.keep(key, answer)
        return answer

    async def close(self) -> None:
        """As of the models behind."""
        await self._models.close()


def call_key(request: ChildRequest) -> bytes:
    """Return what names a call: equal for equal calls. Cache marks and streaming change no answer, and are left out."""
    digest = hashlib.sha256()
    for part in (request.model, request.system, request.messages, request.tools, request.max_output, request.schema):
        digest.update(hashlib.sha256(encode_json(msgspec.to_builtins(part))).digest())
    return digest.digest()


def _texts(answer: ChildAnswer) -> Iterator[str]:
    for block in answer.blocks:
        for name in ("text", "arguments", "json"):
            yield getattr(block, name, "")
