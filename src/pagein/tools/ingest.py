"""The tool `ingest`: put files into the store without showing them in the window."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from pagein.engine.reads.session_reads import ReadResult
from pagein.engine.recall.ingest import Done, IngestReport, Tell
from pagein.engine.session import Session
from pagein.errors import CallerError, HostError, StoreError
from pagein.model.read_caps import ReadCaps
from pagein.policy.reads.baseline import byte_length
from pagein.tools.calls import ArgumentReader, Call, ConsentQuestion, Offer, refusal_result, schema

_NAMED: Final = 10
"""Number of skipped files listed by name; further files are only counted."""
_ROOM: Final = 8 * 1024


def _ingest(session: Session, call: Call) -> ReadResult:
    given = ArgumentReader("ingest", call.arguments)
    wanted = given.texts("paths")
    problem = given.problem()
    if problem is not None:
        return problem
    if not wanted:
        return refusal_result("Missing required parameter: paths")
    try:
        ingesting = None if session.folder is None else session.recalls.ingest_below(session.folder)
        if ingesting is None:
            return refusal_result("This session has no workspace to ingest files from.")
        report = ingesting.ingest(wanted, confirm=_confirm_of(call), tell=_tell_of(call), signal=call.signal)
    except (CallerError, HostError, StoreError) as why:
        return refusal_result(str(why))
    details: dict[str, object] = {
        "objectIds": [one.object_id for one in report.done],
        "files": [
            {"id": one.object_id, "path": one.path, "tokens": one.tokens, "known": one.known} for one in report.done
        ],
        "skipped": [{"path": path, "why": why} for path, why in report.skipped],
    }
    if report.refused is not None:
        return ReadResult(_with_skipped(report.refused, report), details, is_error=True)
    return ReadResult(_report_text(report, session.recalls.bounds.caps), details, failure=report.failure)


def _confirm_of(call: Call) -> Callable[[int], bool] | None:
    confirm = call.confirm
    if confirm is None:
        return None

    def ask(count: int) -> bool:
        return confirm(
            ConsentQuestion(f"Put {count} files into the store?", f"{count} files match", "else use narrower patterns")
        )

    return ask


def _tell_of(call: Call) -> Tell | None:
    tell = call.tell
    if tell is None:
        return None
    return lambda done, total, path: tell(f"Ingested {done}/{total}: {path}")


def _report_text(report: IngestReport, caps: ReadCaps) -> str:
    lines = [
        f"Ingested {len(report.done)} files. Object IDs:",
        *_lines_that_fit([_line(one) for one in report.done], caps),
    ]
    return _with_skipped("\n".join(lines), report)


def _line(one: Done) -> str:
    was = f", was {one.before}" if one.before is not None else ""
    return f"{one.object_id} {one.path} ({one.tokens:,} tokens{was})"


def _lines_that_fit(lines: Sequence[str], caps: ReadCaps) -> Iterable[str]:
    size = 0
    for count, line in enumerate(lines):
        size += byte_length(line) + 1
        if count and (size > caps.bytes - _ROOM or count >= caps.lines - _NAMED):
            yield f"[{len(lines) - count} more ids are not shown. Use search to find them.]"
            return
        yield line


def _with_skipped(text: str, report: IngestReport) -> str:
    if report.skipped:
        named = ", ".join(f"{path} ({why})" for path, why in report.skipped[:_NAMED])
        more = len(report.skipped) - _NAMED
        text += f"\n\nSkipped {len(report.skipped)} files: {named}" + (f" (+{more} more)" if more > 0 else "")
    if report.ignored and (report.refused is not None or not report.done):
        text += (
            f"\n\n{report.ignored} files and folders are ignored here (.gitignore); name a file itself to ingest it."
        )
    return text


INGEST: Final = Offer(
    "ingest",
    "Put files of the workspace into the store without reading them into your context, to search or peek at them afterwards. "
    "Answers with an id for each file. Files that git ignores, binary files and files with secrets are left out.",
    schema(
        ("paths",),
        paths={
            "type": "array",
            "items": {"type": "string"},
            "description": "Files, folders or globs (src/**/*.py, docs/*.{md,rst}), from the workspace on.",
        },
    ),
    _ingest,
    legacy="rlm_ingest",
)
