"""Characters per token of a model, from the prompt sizes reported in a recording."""

from collections.abc import Iterator, Sequence

from pagein.model.messages import ToolCall
from pagein.providers.tokens.counters import Sample, ratio_counter
from pagein.replay.prompt.model_calls import RecordedCall, RecordedCalls

__all__ = ["Sample", "accesses_files", "chars_per_token", "samples"]

# Calls whose growth is mostly tool results measure best.
_LEAST_RESULT_CHARS, _MOST_USER_CHARS = 2000, 500


def samples(calls: RecordedCalls) -> Iterator[Sample]:
    """Yield the growth of the prompt and the new characters of each suitable call."""
    before: RecordedCall | None = None
    for call in calls.calls:
        usage, earlier = call.usage, before
        before = call
        if usage is None or earlier is None or earlier.usage is None or call.opens_segment:
            continue
        chars = {"user": 0, "assistant": 0, "arguments": 0, "result": 0}
        for block in calls.blocks[slice(*call.blocks)]:
            chars[block.kind] += block.chars
        if chars["result"] > _LEAST_RESULT_CHARS and chars["user"] < _MOST_USER_CHARS:
            said = chars["assistant"] + chars["arguments"]
            yield Sample(chars["result"], said, usage.prompt - earlier.usage.prompt)


def chars_per_token(model: str, sampled: Sequence[Sample]) -> float:
    """Return the ratio for a model: its prior, corrected by samples of its usage."""
    return ratio_counter(model).calibrate(sampled).result


def accesses_files(calls: RecordedCalls) -> bool:
    """Return whether the session's agent works on files, the mark of a coding session."""
    said = (block for message in calls.messages for block in message.blocks)
    return any(isinstance(block, ToolCall) and block.accesses for block in said)
