"""The scenes of a record of behaviour, by section."""

import platform
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import zstandard
from scripts.behaviour import library, older, outside, requests
from scripts.behaviour.records import Witness, beside, section_of
from scripts.behaviour.stillness import World, still_world

SECTIONS: Final = {
    "sessions": "what the readers give of recorded sessions",
    "requests": "bytes of prepared requests and what is told of them: three formats, restarts, retries, forks, three kinds of settings",
    "recalls": "each object that left a window, as it is recalled",
    "stores": "rows of each table, journals line by line",
    "library": "reads, tools, the user's hand, forks, commands that print JSON, export and import",
    "gateway": "bytes sent to providers and answered to clients over HTTP, streamed and whole, with recalls",
    "replay": "the bill of the demo, the tests' sessions and the small corpus",
    "corpus": "the bill of the corpus that was given",
    "commands": "commands, arguments and options",
    "settings": "keys, kinds and defaults of settings, rules and fields of the JSON bill",
    "words": "texts for people: help, reference pages, tables",
    "older": "the store that was kept beside the record: opened, checked, recalled from, gone on with",
}
"""What is looked at, by the name in front of an item's first slash."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be done. root: of the checkout. file: of the record. few: only so many files with sessions, None: all."""

    root: Path
    file: Path
    sections: frozenset[str]
    few: int | None = None
    corpus: Path | None = None
    sample: int | None = None
    jobs: int = 1


@dataclass(frozen=True, slots=True)
class _Wanted:
    """Shows a witness what it asked for."""

    sections: frozenset[str]
    witness: Witness

    def see(self, name: str, data: bytes) -> None:
        """An item."""
        if section_of(name) in self.sections:
            self.witness.see(name, data)


def conditions(plan: Plan) -> dict[str, str]:
    """What results depend on beside the code."""
    return {
        "folder": str(Path(tempfile.gettempdir()).resolve()),
        "python": platform.python_version(),
        "zstandard": zstandard.__version__,
        "corpora": str((plan.root.parent / "shared" / "corpus").is_dir()),
        "few": str(plan.few),
    }


def play(plan: Plan, witness: Witness, *, keeps: bool = False) -> None:
    """All that is wanted, one thing after the other. keeps: write the store that later versions are to open."""
    if plan.sections - {"corpus"}:
        with still_world() as world:
            if keeps and "older" in plan.sections:
                older.keep(world, plan.root, beside(plan.file, "store"))
            _play(world, plan, witness)
    _play_corpus(plan, witness)


def _play(world: World, plan: Plan, witness: Witness) -> None:
    seen = _Wanted(plan.sections, witness)
    if plan.sections & {"commands", "settings"}:
        outside.watch_commands(plan.root, seen)
    if "older" in plan.sections:
        older.watch(world, plan.root, beside(plan.file, "store"), seen)
    if plan.sections & {"library", "stores", "recalls"}:
        library.watch(world, seen)
    if "gateway" in plan.sections:
        outside.watch_gateway(world, seen)
    drives = bool(plan.sections & {"requests", "recalls", "stores"})
    if drives or "sessions" in plan.sections:
        requests.watch(world, plan.root, seen, plan.few, drives=drives)
    if "replay" in plan.sections:
        outside.watch_replay(plan.root, seen)
    if "words" in plan.sections:
        outside.watch_words(world, plan.root, seen)


def _play_corpus(plan: Plan, witness: Witness) -> None:
    """The long one, in a world of its own, so that nobody has to wait for it."""
    if plan.corpus is not None and "corpus" in plan.sections:
        with tempfile.TemporaryDirectory(prefix="pagein-corpus-") as top, still_world(Path(top)) as world:
            outside.watch_corpus(world, plan.corpus, plan.sample, plan.jobs, witness)
