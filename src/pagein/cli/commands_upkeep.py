"""The commands for the upkeep of a store, registered by `cli`.

Exit status: 0; 1 if `check` found unrepaired damage, or `export` had to omit unreadable records; 2 as in `cli`. Heavy
imports are inside the commands, as in `cli`.
"""

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from pagein.cli.options import AsJson, Store, Workspace
from pagein.cli.standard_streams import print_json, warn
from pagein.errors import BadSetting

if TYPE_CHECKING:
    from pagein.ports import WholeStore
    from pagein.upkeep import CollectionPlan, RepairReport

Quiet: TypeAlias = Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")]

_WRONG = 1
_LARGEST = 1e18
_BEHIND = "{places} places of the store are not followed yet; commands and a running gateway follow them, and so does pagein reindex"
# The file for unreadable lines of a database; a repaired file is kept whole instead.
_SALVAGED = "pagein.salvaged.jsonl"
_DAY = 86_400.0
_SHOWN = 20
_TIMES = {"h": 3_600.0, "d": _DAY, "w": 7 * _DAY}
_SIZES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}


def add_to(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command(
        "export",
        epilog="Examples:\n\npagein export store.jsonl.gz\n\npagein export - | wc -l\n\n"
        "pagein export ~/project/.pi/rlm --pi-rlm fix-login",
    )(export_)
    app.command(
        "import",
        epilog="Examples:\n\npagein import store.jsonl.gz --workspace ~/project\n\npagein import .pi/rlm/SESSION --workspace ~/project",
    )(import_)
    app.command(epilog="Examples:\n\npagein check\n\npagein check --repair")(check)
    app.command(epilog="Examples:\n\npagein reindex\n\npagein reindex search")(reindex)
    app.command(
        epilog="Examples:\n\npagein gc\n\npagein gc --apply\n\npagein gc --older-than 90d --quota 2G --apply\n\npagein gc --end fix-login"
    )(gc)


def export_(
    file: Annotated[
        str,
        typer.Argument(metavar="FILE", help="The file to write; - for standard output. A name in .gz is compressed."),
    ],
    *,
    pi_rlm: Annotated[
        str | None,
        typer.Option(
            "--pi-rlm",
            metavar="SESSION",
            help="Write the evicted results of this session in the format of Pi-RLM, into a folder of its name in FILE.",
        ),
    ] = None,
    workspace: Workspace = Path(),
    store: Store = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Write the whole content of a store as JSON lines (docs/reference/format.md).

    It contains no content of files that must not be stored. Other processes may use the store meanwhile.
    """
    from pagein import upkeep
    from pagein.settings.sources import load_config

    patterns = load_config(workspace).engine.excluded
    if pi_rlm is not None:
        with _open_store(store, workspace) as opened:
            folder = upkeep.export_rlm(opened, Path(file), pi_rlm, patterns)
        if as_json:
            print_json({"folder": str(folder)})
        elif not quiet:
            sys.stdout.write(_plain(f"written to {folder}") + "\n")
        return
    with _open_store(store, workspace) as opened, _progress("exporting", wanted=not quiet) as tick:
        done = upkeep.export_to(opened, file, tick, patterns)
    answer = {"records": done.counts, "withheld": done.withheld, "lost": done.lost}
    out = sys.stderr if file == upkeep.STANDARD else sys.stdout
    if as_json:
        print_json(answer, out)
    elif not quiet:
        out.write(f"exported {_count_words(done.counts)}\n")
        if done.withheld:
            out.write(f"{done.withheld} of them changed or left out, as they may show files that must not be stored\n")
    for line in done.lost:
        warn(f"not exported: {line}")
    if done.lost:
        raise typer.Exit(_WRONG)


def import_(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE|DIR",
            help="An export, compressed or not; - for standard input. Or a session folder of Pi-RLM, or what a repair left "
            "(STORE.damaged-1, STORE.salvaged.jsonl).",
        ),
    ],
    *,
    workspace: Workspace = Path(),
    store: Store = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Import an export into a store, completely or not at all.

    Existing records stay, so a repeated import changes nothing. Contradicting records are refused.
    """
    from pagein import upkeep, wiring
    from pagein.settings.sources import load_config

    patterns = load_config(workspace).engine.excluded
    with wiring.open_for_import(store, workspace=workspace) as opened, _progress("importing", wanted=not quiet) as tick:
        done = upkeep.import_from(opened, file, tick, patterns)
    if as_json:
        answer = {
            "records": done.counts,
            "added": done.added,
            "withheld": done.withheld,
            "forgotten": done.forgotten,
            "lost": done.lost,
            "unburied": done.unburied,
        }
        print_json(answer)
    elif not quiet:
        sys.stdout.write(f"read {_count_words(done.counts)}; new here: {_count_words(done.added)}\n")
        if done.forgotten:
            sys.stdout.write(f"{done.forgotten} of them redacted, because they held texts that were erased here\n")
        if done.withheld:
            sys.stdout.write(
                f"{done.withheld} of them changed or left out, as they may show files that must not be stored\n"
            )
    for line in done.unburied:
        warn(f"can come again here: {line}")
    for line in done.lost:
        warn(f"not imported: {line}")
    if done.lost:
        raise typer.Exit(_WRONG)


def check(
    *,
    repair: Annotated[bool, typer.Option("--repair", help="Repair what can be repaired.")] = False,
    workspace: Workspace = Path(),
    store: Store = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Read and verify a whole store: every hash, reference, stub, journal and answer.

    Exit status 1 where something is wrong or missing and not repaired. Without --repair nothing is changed; with it, a new file takes
    the place of a damaged one, which is kept beside it.
    """
    from pagein import upkeep, wiring

    done = _repair_store(store, workspace, quiet=quiet) if repair else None
    if done is not None:
        report = done.report
    else:
        with _open_store(store, workspace, looks=True) as opened, _progress("checking", wanted=not quiet) as tick:
            report = upkeep.check_store(opened, tick)
            report.behind = {layer.name: layer.behind() for layer in wiring.layers_of(opened)}
    findings = [
        {"kind": one.kind, "where": one.where, "why": one.why, "repaired": one.repaired} for one in report.findings
    ]
    if as_json:
        answer = {"clean": report.is_clean, "checked": report.counts, "unresolved_references": report.unresolved}
        answer["behind"] = report.behind
        if done is not None:
            answer |= {"rows": done.rows, "kept": None if done.kept is None else str(done.kept)}
        print_json({**answer, "findings": findings})
    else:
        for one in report.findings:
            mark = "repaired" if one.repaired else "WRONG"
            sys.stdout.write(_plain(f"{mark}  {one.kind}  {one.where}: {one.why}") + "\n")
        if not quiet:
            sys.stdout.write(
                f"checked {_count_words(report.counts)}: {'all well' if report.is_clean else 'not all well'}\n"
            )
            sys.stdout.writelines(
                f"behind  {name}  {_BEHIND.format(places=places)}\n" for name, places in report.behind.items() if places
            )
        if done is not None and done.kept is not None:
            sys.stdout.write(
                _plain(f"the old file is kept as {done.kept}; pagein import reads what can be read of it") + "\n"
            )
    if not report.is_clean:
        if not repair:
            warn("pagein check --repair repairs what can be repaired")
        raise typer.Exit(_WRONG)


def reindex(
    layer: Annotated[
        str | None,
        typer.Argument(
            metavar="[LAYER]",
            help="memory: the objects made from journals. search: the index of searches.",
            show_default="all",
        ),
    ] = None,
    *,
    workspace: Workspace = Path(),
    store: Store = None,
    as_json: AsJson = False,
) -> None:
    """Drop and rebuild the layers derived from a store: the objects of sessions, the search index.

    Needed only if `pagein check` finds an object that differs from its journal. Objects of sessions without a journal stay.
    """
    from rich.console import Console

    from pagein import upkeep, wiring
    from pagein.ui.progress import step_bar

    with _open_store(store, workspace) as opened, step_bar(Console(stderr=True), "following the store") as tell:
        done = upkeep.reindex(opened, wiring.layers_of(opened), layer, tell)
    if as_json:
        print_json({"layers": [{"layer": name, **asdict(one)} for name, one in done.items()]})
        return
    for name, one in done.items():
        sys.stdout.write(f"{name}: followed {one.followed:,}, made {one.made:,}\n")


def gc(  # noqa: PLR0913 - a command has as many options as it has
    *,
    apply: Annotated[bool, typer.Option("--apply", help="Delete. Otherwise it is only shown.")] = False,
    older_than: Annotated[
        str | None,
        typer.Option("--older-than", metavar="AGE", help="Also ended sessions unused for this long: 90d, 12h, 4w."),
    ] = None,
    quota: Annotated[
        str | None,
        typer.Option(
            "--quota", metavar="SIZE", help="Also the oldest ended sessions, until the store has this size: 500M, 2G."
        ),
    ] = None,
    idle: Annotated[
        str, typer.Option("--idle", metavar="AGE", help="A session unused for this long counts as ended.")
    ] = "30d",
    end: Annotated[
        list[str] | None, typer.Option("--end", metavar="SESSION", help="First mark this session as ended.")
    ] = None,
    workspace: Workspace = Path(),
    store: Store = None,
    as_json: AsJson = False,
) -> None:
    """Show, or with --apply delete, content that no session needs; with --older-than or --quota also ended sessions.

    Content that an active session can recall, and every version of every object, always stay. --apply also compresses the rest.
    """
    import time

    from pagein import upkeep
    from pagein.ui.figures import plural

    keep = None if older_than is None else _time(older_than)
    retention = upkeep.Retention(_time(idle), keep, None if quota is None else _size(quota))
    with _open_store(store, workspace) as opened:
        _end(opened, end or ())
        planned = upkeep.garbage(opened, retention, time.time(), apply=apply)  # noqa: TID251 - the rim reads the clock
    if as_json:
        print_json({"applied": apply, **_plan_json(planned)})
        return
    for session, why in list(zip(planned.sessions, planned.reasons, strict=True))[:_SHOWN]:
        sys.stdout.write(_plain(f"session  {session.name}  {why}, {session.size:,} bytes of journal") + "\n")
    if len(planned.sessions) > _SHOWN:
        sys.stdout.write(f"and {len(planned.sessions) - _SHOWN} more sessions\n")
    sessions, objects, blobs = (len(one) for one in (planned.sessions, planned.objects, planned.blobs))
    what = f"{plural(sessions, 'session')}, {plural(objects, 'object')} and {plural(blobs, 'blob')}"
    if planned.after is None:  # nobody can know before how much room the rest takes then
        takes = f"{planned.freed:,} of {planned.size:,} bytes of journals and contents"
        sys.stdout.write(f"would delete {what}, which take {takes}; --apply does it\n")
    else:
        sys.stdout.write(
            f"deleted {what}; journals and contents take {planned.after:,} bytes, {planned.size:,} before\n"
        )


def _end(opened: "WholeStore", names: list[str] | tuple[str, ...]) -> None:
    from pagein.model.store_inventory import session_name

    known = {one.name for one in opened.sessions()}
    for ended in [session_name(name, known) for name in names]:
        opened.end_session(ended)
        warn(f"session {ended} has ended")


def _plan_json(planned: "CollectionPlan") -> dict[str, Any]:
    return {
        "sessions": [one.name for one in planned.sessions],
        "rows": [
            {"session": one.name, "why": why, "bytes": one.size, "touched": one.touched}
            for one, why in zip(planned.sessions, planned.reasons, strict=True)
        ],
        "objects": sorted(map(str, planned.objects)),
        "blobs": len(planned.blobs),
        "bytes": planned.freed,
        "bytes_before": planned.size,
        "bytes_after": planned.after,
    }


@contextmanager
def _open_store(store: str | None, workspace: Path, *, looks: bool = False) -> "Iterator[WholeStore]":
    from pagein import wiring

    opened = wiring.open_for_upkeep(store, workspace=workspace, looks=looks)
    try:
        yield opened
    finally:
        opened.close()


@contextmanager
def _progress(doing: str, *, wanted: bool) -> Iterator[Callable[[str], object]]:
    """Show the number of finished records on stderr, to a person at a terminal only."""
    if not (wanted and sys.stderr.isatty()):
        yield lambda _kind: None
        return
    from rich.console import Console

    done = 0
    with Console(stderr=True).status(doing) as status:

        def tick(kind: str) -> None:
            nonlocal done
            done += 1
            if done % 500 == 0:
                status.update(f"{doing}: {done:,} records, at a {kind}")

        yield tick


def _repair_store(store: str | None, workspace: Path, *, quiet: bool) -> "RepairReport":
    """Repair a store: write a file anew, but repair a database in place, because the server manages the pages."""
    from pagein import upkeep, wiring

    path = wiring.store_file(store, workspace=workspace)
    with _open_store(store, workspace, looks=True) as opened, _progress("repairing", wanted=not quiet) as tick:
        if path is not None:
            return upkeep.repair_file(path, tick)
        return upkeep.RepairReport(upkeep.repair_store(opened, Path(_SALVAGED), tick))


def _time(text: str) -> float:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([hdw])", text.strip().lower())
    if found is None:
        raise BadSetting(f"not a time: {text!r}; expected a number with h, d or w, such as 30d")
    return _check_bound(text, float(found[1]) * _TIMES[found[2]], "a time")


def _size(text: str) -> int:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([kmgt]?)b?", text.strip().lower())
    if found is None:
        raise BadSetting(f"not a size: {text!r}; expected a number of bytes, or one with k, M, G or T, such as 2G")
    return int(_check_bound(text, float(found[1]) * _SIZES[found[2]], "a size"))


def _check_bound(text: str, value: float, what: str) -> float:
    if value > _LARGEST:
        raise BadSetting(f"too large for {what}: {text[:40]!r}")
    return value


def _count_words(counts: dict[str, int]) -> str:
    from pagein.ui.figures import plural

    things = {"entry": "entries", "history": "histories"}
    named = [plural(number, kind, things.get(kind)) for kind, number in counts.items() if kind != "key"]
    return ", ".join(named) or "nothing"


def _plain(text: str) -> str:
    from pagein.ui.figures import plain

    return plain(text)
