"""Merge answers without streaming: the fields around their content, in the formats with an `id` and `usage`."""

from collections.abc import Sequence

from pagein.providers.wire.json_values import Json
from pagein.providers.wire.streams.stream_merge import sum_usage


def merge_envelopes(answers: Sequence[Json], content: Json) -> Json:
    """Put merged content into the last answer, with the first answer's id and the usage of all.

    content: the fields with the content.
    """
    made = {**answers[-1], "id": answers[0].get("id"), **content}
    usages = [one["usage"] for one in answers if isinstance(one.get("usage"), dict)]
    return {**made, "usage": sum_usage(usages)} if usages else made
