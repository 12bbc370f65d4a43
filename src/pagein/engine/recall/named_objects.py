"""Find the object and the version that a person or a model names.

Rules of this file
------------------
1. Every command and every tool that takes the name of an object asks here.
2. An exact id or nickname wins, then the name of a session, then the path of a file. Only then the name may be an
   abbreviation: the beginning of a session's name or of a nickname, or the last parts of a path; then the last parts
   of the path of a deleted file; then the beginning of an id, which a person rarely types.
3. An abbreviation of several objects is an error that lists them. Of several lives of one session the last is meant.
4. Of the versions of an object, the newest is the latest by time: old sessions may be taken in after new ones.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from pagein.errors import BadInput, NotRecallable
from pagein.model.file_homes import machine_in
from pagein.model.versions import Version
from pagein.model.writes import Query
from pagein.ports import ObjectStore

Paths: TypeAlias = Callable[[str], Sequence[str]]
"""Returns the paths that a text may mean, the most likely first."""

ALWAYS: Final = 1e300
"""A time after every version."""
FILES: Final = frozenset({"file", "note"})
SESSIONS: Final = frozenset({"session"})
HOW_TO_FILL: Final = (
    "`pagein run AGENT` records the sessions of an agent from now on, `pagein remember` takes in recorded ones"
)
"""The remedy for an empty store."""
_VERSION: Final = re.compile(r"(.+)@([0-9]{1,15})", re.DOTALL)
_SHORTEST: Final = 4
_SHORT_ENOUGH: Final = 20
# Lengths of abbreviations that are shown. With 13 characters, a UUIDv7 tells its millisecond.
_LENGTHS: Final = (8, 13, 18)
_MOST: Final = 8
_LONGEST_TITLE: Final = 60


@dataclass(frozen=True, slots=True)
class VersionChoice:
    """The version of an object that is asked for; without a number and a time the newest.

    at: seconds since 1970; the latest version at or before this time.
    """

    number: int | None = None
    at: float | None = None


NEWEST: Final = VersionChoice()


def as_given(text: str) -> Sequence[str]:
    """Return a path as it is written."""
    return (text,)


def find_version(store: ObjectStore, text: str, choice: VersionChoice = NEWEST, paths: Paths = as_given) -> Version:
    """Return the version that is named: `NAME`, or `NAME@NUMBER`.

    Raises BadInput for a name of several objects, and for a version named twice; NotRecallable for an unknown name or version.
    """
    name, number = split_name(store, text)
    if number is not None:
        if choice != NEWEST:
            raise BadInput(f"{text[:80]!r} names a version, and so does an option; give one of them")
        choice = VersionChoice(number)
    return version_of_object(store, find_object(store, name, paths), choice)


def version_of_object(store: ObjectStore, meant: Version, choice: VersionChoice = NEWEST) -> Version:
    """Return a version of an object. Raises NotRecallable."""
    if choice.number is not None:
        found = store.version(meant.id, choice.number)
        asked = f"version {choice.number}"
    else:
        found = store.as_of(meant.id, ALWAYS if choice.at is None else choice.at)
        asked = "version from before that time"
    if found is None:
        raise NotRecallable(f"{meant.id} has no {asked}; its versions are 1 to {meant.number}")
    return found


def split_name(store: ObjectStore, text: str) -> tuple[str, int | None]:
    """Split the number of a version from a name. An id or a nickname that ends like a version stays whole."""
    found = _VERSION.fullmatch(text)
    if found is None or store.current(text) is not None:
        return text, None
    return found[1], int(found[2])


def find_object(store: ObjectStore, name: str, paths: Paths = as_given) -> Version:
    """Return the version of an object that was stored last. Raises BadInput or NotRecallable as `find_version`."""
    if (exact := exact_object(store, name, paths)) is not None:
        return exact
    for look in (_files_once_at, *_ABBREVIATIONS):
        if found := look(store, name, paths):
            return _only(name, found)
    if not store.log(0, 1):
        raise NotRecallable(f"no object has the id or nickname {name[:80]!r}: the store is empty; {HOW_TO_FILL}")
    short = f"a beginning needs {_SHORTEST} characters or more; " if len(name) < _SHORTEST else ""
    raise NotRecallable(
        f"no object has the id or nickname {name[:80]!r}, and no session and no file of the store is named so; "
        f"{short}`pagein objects` and `pagein sessions` list what there is"
    )


def exact_object(store: ObjectStore, name: str, paths: Paths = as_given) -> Version | None:
    """Return the object with this id, nickname, name of a session, or path; None if there is none. Raises BadInput for several."""
    exact = store.current(name)
    found = () if exact is not None else _sessions_named(store, name, paths) or _files_at(store, name, paths)
    return _only(name, found) if found else exact


def abbreviation(store: ObjectStore, meant: Version, name: str) -> str:
    """Return the beginning of an object's long name that means this object alone, or else the name."""
    for length in _LENGTHS if len(name) > _SHORT_ENOUGH else ():
        if store.current(name[:length]) is None and _abbreviates(store, name[:length], meant):
            return name[:length]
    return name


def title_of(version: Version) -> str:
    """Return a person's name for an object: its path, nickname, title or call."""
    known = version.metadata
    for value in (known.get("path"), version.nickname, known.get("title"), known.get("session_id")):
        if isinstance(value, str) and value:
            return value
    if version.deleted and version.provenance.origin:
        return version.provenance.origin
    return " ".join(str(known[name]) for name in ("tool", "args_display") if known.get(name) is not None)


def _sessions_named(store: ObjectStore, name: str, _: Paths) -> Sequence[Version]:
    return [*_latest_lives(store.objects(Query(types=SESSIONS, where={"session_id": name}, limit=_MOST))).values()]


def _latest_lives(found: Sequence[Version]) -> dict[str, Version]:
    """Return sessions by name, of several with one name the one that began last: its client told it again, at other times, after its
    journal was removed. The beginning of an id is the time at which the session began.
    """
    return {str(one.metadata["session_id"]): one for one in sorted(found, key=lambda one: one.id)}


def _files_at(store: ObjectStore, name: str, paths: Paths) -> Sequence[Version]:
    for path in paths(name):
        if found := store.objects(Query(types=FILES, where={"path": path}, limit=_MOST)):
            return _known_place(found)
    return ()


def _known_place(found: Sequence[Version]) -> Sequence[Version]:
    """Return the only file with a known machine, if there is one; another session may have met the file without its
    machine.
    """
    known = [one for one in found if machine_in(one.metadata.get("home"))]
    return known if len(known) == 1 else found


def _files_once_at(store: ObjectStore, name: str, paths: Paths) -> Sequence[Version]:
    """Return the deleted files that once had this path."""
    meant = paths(name)
    for path in meant:
        if found := store.objects(Query(types=FILES, where={"last_path": path}, deleted=True, limit=_MOST)):
            return found
    for path in meant:
        if found := store.objects(Query(types=FILES, where={"before": path}, limit=_MOST)):
            return found
    gone = store.objects(Query(types=FILES, deleted=True))
    return [one for one in gone if one.provenance.origin in meant]


def _abbreviates(store: ObjectStore, name: str, meant: Version) -> bool:
    found = next(filter(None, (look(store, name, as_given) for look in _ABBREVIATIONS)), ())
    return [one.id for one in found] == [meant.id]


def _named_so(store: ObjectStore, name: str, _: Paths) -> Sequence[Version]:
    """Return the files by the end of their path, and the sessions and nicknames by their beginning."""
    found = [*store.objects(Query(types=FILES, ending=("path", _path_end(name)), limit=_MOST))]
    if len(name) >= _SHORTEST:
        found += _main_session(store.objects(Query(types=SESSIONS, under=("session_id", name), limit=_MOST)))
        found += store.objects(Query(under=("nickname", name), deleted=None, limit=_MOST))
    return list({one.id: one for one in found}.values())


def _files_once_named_so(store: ObjectStore, name: str, _: Paths) -> Sequence[Version]:
    """Return the deleted files whose path ended with the name."""
    end = _path_end(name)
    gone = store.objects(Query(types=FILES, ending=("last_path", end), deleted=True, limit=_MOST))
    return gone or [
        one for one in store.objects(Query(types=FILES, deleted=True)) if (one.provenance.origin or "").endswith(end)
    ]


def _ids_beginning_so(store: ObjectStore, name: str, _: Paths) -> Sequence[Version]:
    return store.objects(Query(beginning=name, deleted=None, limit=_MOST)) if len(name) >= _SHORTEST else ()


def _path_end(name: str) -> str:
    """Return the end of the paths that a name means; tables shorten long paths to `.../a/b/c`."""
    return f"/{name.removeprefix('...').strip('/')}"


_ABBREVIATIONS: Final = (_named_so, _files_once_named_so, _ids_beginning_so)
"""The kinds of abbreviations; the first kind that fits decides."""


def _main_session(found: Sequence[Version]) -> Sequence[Version]:
    """Return the common session of some sub-agents, else all; a sub-agent is named `SESSION/AGENT`."""
    names = _latest_lives(found)
    for name, version in names.items():
        if all(other == name or other.startswith(f"{name}/") for other in names):
            return [version]
    return [*names.values()]


def _machine_of(version: Version, among: Sequence[Version]) -> str:
    """Return the machine of a file in words, if files of several machines are listed."""
    machines = {machine_in(one.metadata.get("home")) for one in among if one.type in FILES}
    if version.type not in FILES or len(machines) == 1:
        return ""
    return f" on machine {told}" if (told := machine_in(version.metadata.get("home"))) else " on an unknown machine"


def _only(name: str, found: Sequence[Version]) -> Version:
    if len(found) == 1:
        return found[0]
    listed = "; ".join(
        f"{one.type} {title_of(one)[:_LONGEST_TITLE]!r}{_machine_of(one, found)} ({one.id})"
        for one in found[: _MOST - 1]
    )
    more = "" if len(found) < _MOST else "; and more"
    raise BadInput(f"{name[:80]!r} may be one of several objects: {listed}{more}; name more of it, or its id")
