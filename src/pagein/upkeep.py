"""Maintain a store: export, import, check and garbage collection, each as a single call on files."""

import base64
import contextlib
import gzip
import io
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO, Final, cast

from pagein.engine.reads.law_audit import objections
from pagein.errors import BadInput, StoreError
from pagein.memory.indexer import Indexer
from pagein.memory.projection_check import projection_faults
from pagein.model.entries import Entry
from pagein.model.layer_report import LayerReport
from pagein.model.names import ContentHash
from pagein.model.objects import ObjectId
from pagein.model.store_inventory import JournalLine, session_name
from pagein.model.text_removal import Retold
from pagein.policy.privacy.erased_texts import ErasedTexts
from pagein.policy.privacy.erasure import finder
from pagein.policy.privacy.exclusions import EXCLUDED
from pagein.ports import DerivedLayer, Progress, WholeStore
from pagein.store.exchange.export_files import replace_file, unpacked_lines
from pagein.store.exchange.exporter import ExportReport, export
from pagein.store.exchange.import_key import texts_of
from pagein.store.exchange.import_state import ImportReport
from pagein.store.exchange.importer import import_lines
from pagein.store.exchange.rlm_exchange import import_rlm, records_of
from pagein.store.exchange.rlm_format import LOG, append, load_store, session_folder
from pagein.store.exchange.salvage_import import import_salvage
from pagein.store.sqlite.sqlite_database import is_outdated
from pagein.store.upkeep.collection import CollectionPlan, Retention, collect, drop_unneeded, measured, plan
from pagein.store.upkeep.file_swap import DAMAGED, alone, exchange
from pagein.store.upkeep.journal_check import check_journals
from pagein.store.upkeep.rebuild import rebuilt, rows_in
from pagein.store.upkeep.salvage import SalvageReport
from pagein.store.upkeep.sqlite_pages import MAGIC
from pagein.store.upkeep.sqlite_upkeep import SqliteUpkeep
from pagein.store.upkeep.store_check import CheckReport, CheckRun, check_contents, guard_check
from pagein.store.upkeep.store_repair import mend

__all__ = [
    "STANDARD",
    "CollectionPlan",
    "RepairReport",
    "Retention",
    "check_store",
    "export_rlm",
    "export_to",
    "garbage",
    "import_from",
    "reindex",
    "repair_file",
    "repair_store",
]

SALVAGED: Final = ".salvaged.jsonl"
STANDARD: Final = "-"
"""The name of standard output and standard input."""
_PRIVATE: Final = 0o600
Tick = Callable[[str], object]


def _silent(_: str) -> None:
    """Ignore progress."""


def export_to(
    store: WholeStore, target: str, tick: Tick = _silent, patterns: tuple[str, ...] = EXCLUDED
) -> ExportReport:
    """Write an export to a file, or to standard output for `-`. A name ending in .gz is compressed.

    Only the user can read the file. The file appears complete or not at all, and replaces an existing one, but no
    database, pipe or device. Raises BadInput, StoreError.

    patterns: names of files whose content is left out, the setting `excluded` included
    """
    if target == STANDARD:
        return export(store, sys.stdout.buffer.write, tick, patterns)
    with replace_file(Path(target)) as file:
        if not target.endswith(".gz"):
            return export(store, file.write, tick, patterns)
        # no file name and no time stamp: equal content gives an equal file
        with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as packed:
            return export(store, packed.write, tick, patterns)


def export_rlm(store: WholeStore, root: Path, session: str, patterns: tuple[str, ...] = EXCLUDED) -> Path:
    """Write a session's evicted results in the format of Pi-RLM, into a folder named after the session.

    Raises BadInput and StoreError.
    """
    session = session_name(session, {one.name for one in store.sessions()})
    folder = session_folder(root, session)
    append(folder, records_of(store, session, patterns))
    return folder


def import_from(
    store: WholeStore, source: str, tick: Tick = _silent, patterns: tuple[str, ...] = EXCLUDED
) -> ImportReport:
    """Import into the store from a file, from standard input for `-`, or from a folder.

    Accepted: an export, compressed or not; the folder or log of a Pi-RLM session; a damaged store file, from which
    every readable record is taken; and `STORE.salvaged.jsonl`, written by a repair.

    Then the objects that follow from the imported journals are made.

    Raises BadInput, with nothing stored, and StoreError.
    """
    done = _import(store, source, tick, patterns)

    def tell(_place: int, _last: int) -> None:
        tick("journal")

    Indexer(store).catch_up(tell=tell)
    return done


def _import(store: WholeStore, source: str, tick: Tick, patterns: tuple[str, ...]) -> ImportReport:
    folder = _rlm_folder(Path(source))
    if folder is not None:
        return import_rlm(store, load_store(folder), patterns)
    if source != STANDARD and _is_store(Path(source)):
        return _import_store(store, Path(source), tick, patterns)
    if source == STANDARD:
        lines = unpacked_lines(cast("io.BufferedReader", sys.stdin.buffer), "standard input")
        return _import_export(store, lines, "standard input", tick, patterns)
    try:
        handle = os.open(source, os.O_RDONLY)
    except OSError as problem:
        raise BadInput(f"{source}: {problem.strerror}") from problem
    with os.fdopen(handle, "rb") as file:
        if source.endswith(SALVAGED):
            return import_salvage(store, unpacked_lines(file, source), source, patterns)
        return _import_export(store, unpacked_lines(file, source), source, tick, patterns)


def check_store(store: WholeStore, tick: Tick = _silent) -> CheckReport:
    """Read and verify the whole store without changing anything.

    Raises StoreError if the store cannot be read at all.
    """
    report, _ = _check_store(store, tick)
    checked = CheckRun(store, report, lambda _: (), tick)

    def look() -> None:
        for fault in projection_faults(store, lambda: checked.saw("projection")):
            report.add("projection", fault.where, f"{fault.why}; `pagein reindex` makes the objects again")

    guard_check(checked, "projection", look)
    return report


def reindex(
    store: WholeStore, layers: Sequence[DerivedLayer], name: str | None = None, tell: Progress | None = None
) -> dict[str, LayerReport]:
    """Drop layers over a store, and make them again. Returns what was done, by the name of the layer. Raises StoreError.

    layers: all layers; each follows the layers that it is made from
    name: the layer to make again; None for all. Raises BadInput for an unknown name
    """
    chosen = [layer for layer in layers if name in (None, layer.name)]
    if not chosen:
        raise BadInput(f"there is no layer {name!r}; the layers are {', '.join(layer.name for layer in layers)}")
    done: dict[str, LayerReport] = {}
    for layer in chosen:
        layer.drop(store)
        drop_unneeded(store)
        done[layer.name] = layer.catch_up(tell=tell)
    return done


def repair_store(store: WholeStore, salvage: Path, tick: Tick = _silent) -> CheckReport:
    """Check a store in a database, repair the damage, and check again.

    The report is the first report, with repaired findings marked.

    salvage: file for undecodable lines, appended before bridges replace them; created when first needed
    """
    report, mending = _check_store(store, tick)
    if not report.findings:
        return report
    with contextlib.ExitStack() as stack:
        mending(_salvage_lines(salvage, stack))
    after, _ = _check_store(store, tick)
    return _compare_reports(report, after)


@dataclass(frozen=True, slots=True)
class RepairReport:
    """Result of repairing a store's file.

    rows: rows in the new file, by table
    kept: the old file, renamed; None if the old file stayed in place
    """

    report: CheckReport
    rows: dict[str, int] = field(default_factory=dict)
    kept: Path | None = None


def repair_file(path: Path, tick: Tick = _silent) -> RepairReport:
    """Check a store's file.

    If the check finds damage, build a new file from every readable record, swap the files, and keep the old file.

    The report is the report of the check, with repaired findings marked, and with missing records added. A file without
    further repairable damage stays in place. Raises BadInput if others use the file or no record is readable, and
    StoreError.
    """
    report = _check_file(path, tick)
    if not report.findings:
        return RepairReport(report)
    with alone(path), tempfile.TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent) as folder:
        made = Path(folder) / path.name
        done = rebuilt(path, made)
        made.chmod(_PRIVATE)
        with contextlib.closing(SqliteUpkeep(made)) as store:
            after = _mend(store, tick)
            _report_missing(store, done, after)
        if _fault_set(after) == _fault_set(report):
            return RepairReport(after)
        return RepairReport(_compare_reports(report, after), rows_in(made), exchange(path, made))


def _mend(store: WholeStore, tick: Tick) -> CheckReport:
    """Repair until a check finds nothing more to repair, because a repair can enable another.

    Return the last report.
    """
    told: list[set[tuple[str, str, str]]] = []
    while True:
        report, mending = _check_store(store, tick)
        found = _fault_set(report)
        if found in told:
            return report
        told.append(found)
        mending(lambda _: None)  # unreadable lines stay in the old file


def _check_file(path: Path, tick: Tick) -> CheckReport:
    """Check a store's file. If the file cannot be checked, return a report with the reason."""
    if is_outdated(path):
        with contextlib.closing(SqliteUpkeep(path)) as store:
            store.sessions()  # migrates the schema, as any use does
    with contextlib.closing(SqliteUpkeep(path, looks=True)) as store:
        try:
            return _check_store(store, tick)[0]
        except StoreError as problem:
            report = CheckReport()
            report.add("database", "file", str(problem))
            return report


def _report_missing(store: WholeStore, done: SalvageReport, report: CheckReport) -> None:
    for words in done.untold:
        report.add("database", "file", words)
    for one in done.missing:
        name = one.key.get("hash") or one.key.get("id") or one.key.get("name")
        match one.table:
            case "blob" if isinstance(name, bytes) and not store.has(ContentHash(name.hex())):
                report.add("blob", name.hex(), "is lost")
            case "object" if isinstance(name, str) and store.find(ObjectId(name)) is None:
                report.add("object", name, "is lost")
            case "version" if isinstance(name := one.key["document"], str):
                report.add("version", f"version {one.key['number']!r} of {name}", "is lost")
            case "request":
                report.add("database", f"request {name!r}", "is forgotten: sent again, it would be carried out again")


def _fault_set(report: CheckReport) -> set[tuple[str, str, str]]:
    return {(one.kind, one.where, one.why) for one in report.findings}


def _compare_reports(before: CheckReport, after: CheckReport) -> CheckReport:
    """Return the later report's findings, after the earlier findings since repaired."""
    left = {(one.kind, one.where) for one in after.findings}
    gone = [replace(one, repaired=True) for one in before.findings if (one.kind, one.where) not in left]
    return replace(after, findings=[*gone, *after.findings])


def garbage(store: WholeStore, retention: Retention, now: float, *, apply: bool) -> CollectionPlan:
    """Return the removable content; with `apply` remove it, store the rest in less room, and return free space to the disk.

    now: seconds since 1970

    Raises StoreError.
    """
    planned = plan(store, retention, now)
    if not apply:
        return planned
    if planned.sessions:  # what they said and touched stays, as objects
        has_objects = Indexer(store).follow_all([one.name for one in planned.sessions], now)
        done = collect(store, planned, has_objects=has_objects)
    else:
        done = planned if planned.is_empty else collect(store, planned)
    while store.bundle_more(rest=True):
        pass
    store.shrink()
    return measured(store, done)


def _rlm_folder(path: Path) -> Path | None:
    if path.is_dir():
        if not (path / LOG).is_file():
            raise BadInput(f"{path}: a folder without {LOG}; name an export, or the folder of one session of Pi-RLM")
        return path
    return path.parent.absolute() if path.name == LOG and path.is_file() else None


def _check_store(
    store: WholeStore, tick: Tick
) -> tuple[CheckReport, Callable[[Callable[[JournalLine], object]], None]]:
    def load_stored(name: ContentHash) -> bytes | None:
        try:
            return store.get(name)
        except StoreError:
            return None

    def audit(entries: Sequence[Entry]) -> Sequence[str]:
        return objections(entries, load_stored)

    checked = CheckRun(store, CheckReport(), audit, tick)
    check_contents(checked)
    broken = check_journals(checked)
    return checked.report, lambda salvage: mend(checked, broken, salvage)


def _salvage_lines(path: Path, stack: contextlib.ExitStack) -> Callable[[JournalLine], object]:
    files: list[BinaryIO] = []

    def salvage(line: JournalLine) -> None:
        if not files:
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            files.append(stack.enter_context(os.fdopen(handle, "ab")))
        record = {"session": line.session, "place": line.place, "line": base64.b64encode(line.line).decode("ascii")}
        files[0].write(json.dumps(record).encode() + b"\n")
        files[0].flush()
        os.fsync(files[0].fileno())

    return salvage


def _is_store(path: Path) -> bool:
    """Return whether `path` is the file of a store, or the kept old file of a repair."""
    try:
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC or DAMAGED in path.name
    except OSError:
        return False


def _import_store(store: WholeStore, path: Path, tick: Tick, patterns: tuple[str, ...]) -> ImportReport:
    """Import every readable record of a store's file, which may be damaged."""
    with tempfile.TemporaryDirectory(prefix="pagein-") as folder:
        made = Path(folder) / "one.pagein"
        done = rebuilt(path, made)
        with contextlib.closing(SqliteUpkeep(made)) as found, tempfile.TemporaryFile() as file:
            report = _mend(found, tick)
            _report_missing(found, done, report)
            exported = export(found, file.write, tick, patterns)
            file.seek(0)
            imported = _import_export(store, file, str(path), tick, patterns)
    imported.withheld += exported.withheld
    imported.lost += [f"{one.kind} {one.where}: {one.why}" for one in report.findings]
    return imported


def _import_export(
    store: WholeStore, lines: Iterable[bytes], name: str, tick: Tick, patterns: tuple[str, ...]
) -> ImportReport:
    """Import an export, without texts erased from this store."""
    with store.exclusive():  # so that nothing is erased meanwhile
        buried = store.tombstones()
        if not buried:
            return import_lines(store, lines, name, tick, patterns)
    key = store.secret()
    finds = ErasedTexts(key, buried).finds
    with tempfile.TemporaryDirectory(prefix="pagein-") as folder, tempfile.TemporaryFile() as file:
        with contextlib.closing(SqliteUpkeep(Path(folder) / "one.pagein")) as whole:
            first = import_lines(whole, lines, name, patterns=patterns)
            texts = sorted({one[found.start : found.end] for one in texts_of(whole) for found in finds(one)})
            told = whole.retell(key, finder(texts)) if texts else Retold()
            export(whole, file.write, patterns=patterns)
        file.seek(0)
        done = import_lines(store, file, name, tick, patterns)
    done.withheld += first.withheld
    done.forgotten = told.count
    return done
