"""The contract of the tool `read`: the fields of an answer, in every mode.

A program reads it from `ReadResult.details`, the model reads `text`. `contract_fields` gives the fields as they are printed
under `--json`; docs/reference/read.md describes them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias


def target_of(path: str) -> str:
    """Return a path from the workspace on as a target that names just this file; a leading `@` or `~` is read otherwise."""
    return f"./{path}" if path.startswith(("@", "~")) else path


@dataclass(frozen=True, slots=True)
class ReadPlace:
    """Where the text of an answer stands.

    file: path from the workspace on; absolute outside of it.
    line, end_line: first and last line that the answer is about, from 1; None where it is about no lines.
    """

    file: str
    line: int | None = None
    end_line: int | None = None


@dataclass(frozen=True, slots=True)
class ReadMeta:
    """Facts about an answer.

    truncated: the file, the symbol, the matches or the hunks go on behind what the answer shows, whoever set the limit.
    token_estimate: estimated tokens of `text`, as it is sent.
    preview_degraded: a bound of the tool, and not the call, cut the answer.
    more: fields of the mode, such as `against` or `resolved_symbol`, and `stabilization`.
    """

    truncated: bool = False
    token_estimate: int = 0
    preview_degraded: bool = False
    more: Mapping[str, Any] = field(default_factory=dict)


NextCall: TypeAlias = Mapping[str, object]
"""A call that would help next, as plain values: `tool` and its `arguments`."""


@dataclass(frozen=True, slots=True)
class ReadError:
    """Why a call failed.

    code: one of the table in docs/reference/read.md.
    message: what is wrong, and what to do.
    """

    code: str
    message: str
    next_calls: tuple[NextCall, ...] = ()


@dataclass(frozen=True, slots=True)
class ReadReply:
    """The answer to a call.

    mode, target: as the call gave them; None where it did not.
    error: None for a call that succeeded.
    """

    mode: str | None
    target: str | None
    text: str
    location: ReadPlace | None = None
    meta: ReadMeta = field(default_factory=ReadMeta)
    error: ReadError | None = None


def contract_fields(reply: ReadReply) -> dict[str, Any]:
    """Return the contract as plain values."""
    place, meta, error = reply.location, reply.meta, reply.error
    fields: dict[str, Any] = {
        "ok": error is None,
        "mode": reply.mode,
        "target": reply.target,
        "text": reply.text,
        "location": None if place is None else {"file": place.file, "line": place.line, "end_line": place.end_line},
        "meta": {
            "truncated": meta.truncated,
            "token_estimate": meta.token_estimate,
            "preview_degraded": meta.preview_degraded,
            **meta.more,
        },
    }
    if error is not None:
        calls = [dict(one) for one in error.next_calls]
        fields["error"] = {"code": error.code, "message": error.message, "next_calls": calls}
    return fields
