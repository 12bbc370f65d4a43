"""Add pagein's entry to an agent's configuration file, and remove exactly that entry again.

Rules of this file
------------------
1. A change is planned first, shown, and made only when a person agrees.
2. The file with the entry must parse to what it said before and the entry, and to nothing else. Otherwise it is not written.
3. The text that was put in is noted in the user's own data folder, so that taking it out gives back every byte.
4. A file that pagein does not understand, and an entry that somebody else wrote, are left alone, with the reason.
5. While a file has a token in it, the user alone can read the file. Its mode comes back when the token goes.
"""

import json
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from pagein.errors import BadInput
from pagein.installation.agents import Agent, AgentFile, Folders, HttpServer
from pagein.installation.install_notes import NEW_FILE, NEW_FOLDER, read_notes, write_notes
from pagein.installation.json_inserts import Keys, TextInsert, element_insert, member_insert, parse_json, value_at
from pagein.installation.toml_inserts import parse_toml, table_insert
from pagein.workspace.file_replacement import replace_file


@dataclass(frozen=True, slots=True)
class Change:
    """A planned change of a file.

    before, after: its text; `before` is None for a file that does not exist, `after` for one that goes.
    note: the text that is put in or taken out.
    done: True if there is nothing to change.
    is_secret: whether what is put in is for the user alone.
    """

    file: Path
    before: str | None
    after: str | None
    note: str = ""
    is_secret: bool = False

    @property
    def done(self) -> bool:
        """Whether the file is as it should be."""
        return self.before == self.after


NO_CHANGES: Final[Mapping[Path, Change]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class InstallNote:
    """An insertion into a file. made: whether the file was made for it. mode: of the file before; 0 if it stayed."""

    file: str
    text: str
    made: bool
    mode: int = 0


class Installer:
    """Puts one entry, a server or a hook, into an agent's configuration file.

    notes: file with what was put in.
    """

    def __init__(self, place: AgentFile, folders: Folders, notes: Path) -> None:
        self._place = place
        self._file = place.path(folders)
        self._notes = notes
        self._name = f"{self._file}#{'.'.join(place.keys)}"

    @classmethod
    def of(cls, agent: Agent, folders: Folders, notes: Path, *, project: bool = False) -> tuple["Installer", ...]:
        """Return the installers of an agent's server and hooks, in the order of installation.

        They are taken out in the reverse order, because an entry may stand in what an earlier one made. Raises BadInput for
        an agent without such a file.
        """
        server, hooks = (agent.project, agent.project_hooks) if project else (agent.user, agent.user_hooks)
        if server is None:
            raise BadInput(f"{agent.title} has no such file; use {'no --project' if project else '--project'}")
        return tuple(cls(place, folders, notes) for place in (server, *hooks))

    def plan_install(
        self, command: list[str], http: HttpServer | None = None, earlier: Mapping[Path, Change] = NO_CHANGES
    ) -> Change:
        """Return the change that adds the server to an agent's file. Raises BadInput for an unchangeable file.

        http: the server that runs already; None if the agent starts its own by the command. Hooks have no such form.
        earlier: the last planned change of each file, which is made first.
        """
        before, keys = self._text_after(earlier), self._place.keys
        is_http = http is not None and self._place.http is not None
        entry = dict(self._place.http(http) if http and self._place.http else self._place.entry(command))
        text = before or ""
        value = self._parse(text)
        there = self._entry_in(value)
        if there == entry:
            return Change(self._file, before, before)
        if there is not None:
            raise BadInput(
                f"{self._file} has another entry {'.'.join(keys)}; remove it by `pagein uninstall` if pagein added it, else by hand"
            )
        try:
            found = self._insert(text, entry)
        except BadInput as problem:
            raise BadInput(f"{self._file} {problem}") from problem
        self._check(found, text, value, entry)
        return Change(self._file, before, found.applied(text), found.text, is_secret=is_http)

    def plan_removal(self, earlier: Mapping[Path, Change] = NO_CHANGES) -> Change:
        """Return the change that takes the entry out. Raises BadInput for a foreign entry.

        earlier: as in `plan_install`.
        """
        before, note = self._text_after(earlier), self._note()
        text = before or ""
        if self._entry_in(self._parse(text)) is None:
            return Change(self._file, before, before)
        found = [] if note is None else [one for one in _without(text, note.text) if self._lacks_entry(one)]
        if note is None or len(found) != 1:
            raise BadInput(
                f"{self._file}: the entry {'.'.join(self._place.keys)} is not as pagein put it in; remove it by hand"
            )
        after = found[0]
        return Change(self._file, before, None if note.made and not after else after, note.text)

    def apply(self, change: Change) -> None:
        """Make a change, and note it. Raises BadInput if the file has changed since, or cannot be written."""
        if self._text() != change.before:
            raise BadInput(f"{self._file} has changed meanwhile; run the command again")
        if change.done:
            return
        adds, real = len(change.after or "") > len(change.before or ""), self._file.resolve()
        mode = real.stat().st_mode & 0o777 if real.exists() else NEW_FILE
        if adds:  # noted first: an entry without a note could not be taken out again
            kept = mode if change.is_secret else 0
            self._write_note(InstallNote(str(self._file), change.note, change.before is None, kept))
            mode &= NEW_FILE if change.is_secret else mode
        else:
            note = self._note()
            mode = (note.mode if note is not None else 0) or mode
        try:
            if change.after is None:
                real.unlink()
            else:
                real.parent.mkdir(mode=NEW_FOLDER, parents=True, exist_ok=True)
                replace_file(real, change.after, mode)
        except OSError as problem:
            raise BadInput(f"{self._file} cannot be written: {problem.strerror or problem}") from problem
        if not adds:
            self._write_note(None)

    def _write_note(self, made: InstallNote | None) -> None:
        """Note pagein's part of this entry's file; None for no part."""
        notes = {name: one for name, one in read_notes(self._notes).items() if name != self._name}
        if made is not None:
            notes[self._name] = asdict(made)
        try:
            write_notes(self._notes, notes)
        except OSError as problem:
            raise BadInput(f"{self._notes} cannot be written: {problem.strerror or problem}") from problem

    def _entry_in(self, value: Any) -> Any:  # noqa: ANN401 - any JSON
        """Return pagein's entry in a file's value; None if absent."""
        found = value_at(value, self._place.keys)
        if not self._place.mark:
            return found
        listed = found if isinstance(found, list) else ()
        return next((one for one in listed if self._place.mark in json.dumps(one).replace("'", "")), None)

    def _lacks_entry(self, text: str) -> bool:
        try:
            return self._entry_in(self._parse(text)) is None
        except BadInput:
            return False

    def _insert(self, text: str, entry: dict[str, Any]) -> TextInsert:
        if not self._is_json:
            return table_insert(text, self._place.keys, entry)
        if self._place.mark:
            return element_insert(text, self._place.keys, entry)
        return member_insert(text, self._place.keys, entry, self._place.first)

    @property
    def _is_json(self) -> bool:
        return self._place.form == "json"

    def _text_after(self, earlier: Mapping[Path, Change]) -> str | None:
        change = earlier.get(self._file)
        return self._text() if change is None else change.after

    def _text(self) -> str | None:
        """Return the file's text with its own line ends; None for a missing file."""
        try:
            return self._file.read_bytes().decode("utf-8")
        except FileNotFoundError:
            return None
        except UnicodeDecodeError as problem:
            raise BadInput(f"{self._file} is not UTF-8 text") from problem
        except OSError as problem:
            raise BadInput(f"{self._file} cannot be read: {problem.strerror}") from problem

    def _parse(self, text: str) -> Any:  # noqa: ANN401 - any JSON
        try:
            found = parse_json(text) if self._is_json else parse_toml(text)
        except BadInput as problem:
            raise BadInput(f"{self._file} {problem}; mend it, or add the entry by hand (docs/mcp.md)") from problem
        if not isinstance(found, dict):
            raise BadInput(f"{self._file} is no JSON object; add the entry by hand (docs/mcp.md)")
        return found

    def _check(self, insert: TextInsert, text: str, value: dict[str, Any], entry: dict[str, Any]) -> None:
        """Raise BadInput if the file with the entry would say anything else than before, beside the entry."""
        listed = bool(self._place.mark)
        wanted = _with_entry(value if text.strip() else dict(self._place.first), self._place.keys, entry, listed=listed)
        try:
            fits = wanted is not None and self._parse(insert.applied(text)) == wanted
        except BadInput:  # the file is right, but not with this entry behind it
            fits = False
        if not fits:
            raise BadInput(f"{self._file} has a form that pagein cannot add to; add the entry by hand (docs/mcp.md)")

    def _note(self) -> InstallNote | None:
        found = read_notes(self._notes).get(self._name)
        return None if found is None else InstallNote(**found)


def _without(text: str, piece: str) -> Iterator[str]:
    """Yield a text without a piece, once for each place where the piece stands: two lists may hold equal entries."""
    place = text.find(piece)
    while place >= 0:
        yield text[:place] + text[place + len(piece) :]
        place = text.find(piece, place + 1)


def _with_entry(value: dict[str, Any], keys: Keys, entry: dict[str, Any], *, listed: bool) -> dict[str, Any] | None:
    """Return the value of a file with an entry; None if something else stands where an object or list must be.

    listed: whether the entry is the last of a list.
    """
    made = deepcopy(value)
    inner = made
    for key in keys[:-1]:
        inner = inner.setdefault(key, {})
        if not isinstance(inner, dict):
            return None
    if not listed:
        inner[keys[-1]] = entry
        return made
    there = inner.setdefault(keys[-1], [])
    if not isinstance(there, list):
        return None
    there.append(entry)
    return made
