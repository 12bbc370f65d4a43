r"""The witness: check each marker and diff of a request against the text of the same request.

It reads an outgoing message list from the first message to the last, as a careful reader would (`proof_sheets`): the
text under each number, the lines moved since by the model's own edits and by the diffs that it was shown, and the
length of the file as told. Where an answer is a marker or a diff, it works out what the reader understands, and
compares that with the stored bytes of the version. It shares no code with the policy and knows none of its reasons; the
claims tell it only which call speaks of which version of which file, and which of the answer's lines are file text.

Rules of this file
------------------
1. A marker that names lines means the text last shown under these numbers: in a result, in a hunk of a diff, or in a
   write of the whole file. The text of an edit has no numbers.
2. A marker that says a file or lines are unchanged also means the text that the reader believes to be there now.
3. A diff changes the file as the reader believes it to be. Its quoted and its omitted lines must be there.
4. A length once told is part of what "unchanged" says.
5. A number that the answer itself shows with other text means that text, unless the marker says "before this answer".
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pagein.model.messages import Message, ToolCall, ToolResult
from pagein.model.names import ContentHash
from pagein.model.read_events import ReadClaim
from pagein.policy.audit.diff_sides import ShownDiff
from pagein.policy.audit.proof_sheets import MisledReader, Sheet, numbers_of

_WHOLE: Final = re.compile(r"\[readcache: unchanged, (\d+) lines\]")
_PLACE: Final = re.compile(
    r"\[readcache: unchanged in lines (\d+)-(\d+)(?: of (\d+)|; changes exist outside this range)?\]"
)
_MOVED: Final = re.compile(
    r"\[readcache: lines (\d+)-(\d+)(?: of (\d+))? unchanged, shown (earlier|before this answer) as lines (\d+)-(\d+)\]"
)
_LEFT_OUT: Final = re.compile(r"\[readcache: lines (\d+)-(\d+) of (\d+) not shown\]")
_CHANGED: Final = re.compile(r"\[readcache: (\d+) lines changed of (\d+)\]")
_CHANGED_IN: Final = re.compile(r"\[readcache: (\d+) lines changed in lines (\d+)-(\d+)(?: of (\d+))?\]")
_TOLD: Final = re.compile(r"\[(?:(\d+) more lines in file|Showing lines \d+-\d+ of (\d+))\b")
"""A host's notice after the lines of a file that goes on."""


@dataclass(frozen=True, slots=True)
class Objection:
    """A claim that the request does not prove.

    line: first failing line of the version, if any.
    """

    call_id: str
    why: str
    line: int | None = None


def witness(
    messages: Sequence[Message],
    claims: Mapping[str, ReadClaim],
    stored: Callable[[ContentHash], bytes | None],
) -> tuple[Objection, ...]:
    """Return the objections against a request, in message order; an empty tuple for a proven request.

    claims: by call id, the meaning of each tool call that touches a file. Calls without a claim are plain text.
    stored: returns the bytes of a version; None for a lost version, which is an objection to every claim based on it.
    Time grows with the text of the request and the lines of the files its diffs stand for.
    """
    return tuple(_RequestPass(claims, stored).objections(messages))


@dataclass(frozen=True, slots=True)
class _AnswerStatement:
    """The content of an answer.

    lines: lines that it stands for. length: of the file; None if not stated.
    reckoned: length of the file by earlier answers, where the answer names its length only in passing.
    """

    lines: dict[int, str]
    length: int | None
    reckoned: int | None = None


@dataclass(frozen=True, slots=True)
class _Marker:
    """A marker that names lines.

    start: number under which the first line was shown; None for its own number.
    length: of the file; None if not stated.
    before: whether it excludes the answer that it is part of.
    """

    first: int
    last: int
    length: int | None
    start: int | None = None
    before: bool = False

    def named_lines(self, sheet: Sheet) -> dict[int, str]:
        """Return the lines that the marker stands for."""
        if self.start is None:
            return sheet.in_place(self.first, self.last)
        return sheet.shown_as(self.first, self.last, self.start)

    def is_clear(self, sheet: Sheet, shown: Mapping[int, str]) -> None:
        """Raise MisledReader where the answer shows other text under a number of the marker."""
        if self.start is None or self.before:
            return
        for n in range(self.start, self.start + self.last - self.first + 1):
            if shown.get(n, sheet.printed[n]) != sheet.printed[n]:
                raise MisledReader(
                    f"line {n} is said to have been shown earlier, and this answer shows other text there", n
                )


def _marker(claim: ReadClaim, text: str) -> _Marker:
    place, moved = _PLACE.fullmatch(text), _MOVED.fullmatch(text)
    if place is not None:
        marker = _Marker(int(place[1]), int(place[2]), int(place[3]) if place[3] else None)
    elif moved is not None:
        length, is_before = int(moved[3]) if moved[3] else None, moved[4] != "earlier"
        marker = _Marker(int(moved[1]), int(moved[2]), length, int(moved[5]), is_before)
        if int(moved[6]) - int(moved[5]) != marker.last - marker.first:
            raise MisledReader("the marker names two ranges of different length", marker.first)
    else:
        raise MisledReader("what is said to be a marker is none")
    if marker.length not in (None, claim.total) or not 1 <= marker.first <= marker.last <= claim.total:
        raise MisledReader("the marker names lines that the file does not have", marker.first)
    return marker


def _after_gap(claim: ReadClaim, number: int, gap: re.Match[str]) -> int:
    """Return the line behind lines that an answer says it leaves out."""
    first, last, total = (int(part) for part in gap.groups())
    if (first, total) != (number, claim.total) or not first <= last < claim.last:
        raise MisledReader("the lines that the answer says it leaves out are others", number)
    return last + 1


def _line(claim: ReadClaim, number: int, row: str) -> str:
    """Return the text of a line without the host's gutter.

    A number in the gutter must be the line's.
    """
    found = re.match(claim.gutter, row) if claim.gutter else None
    if found is None:
        return row
    printed = re.search(r"\d+", found[0])
    if printed is not None and int(printed[0]) != number:
        raise MisledReader(f"the line stands under the number {printed[0]}", number)
    return row[found.end() :]


def _length(claim: ReadClaim, behind: str) -> int | None:
    """Return the file's length if an answer in text states it, by a notice or by ending with the last line."""
    found = _TOLD.search(behind)
    if found is not None:
        told = int(found[2]) if found[2] else claim.last + int(found[1])
        if told != claim.total:
            raise MisledReader(f"the answer says that the file has {told} lines")
        return told
    return claim.total if claim.emitted.holds(claim.total, claim.total) else None


class _RequestPass:
    """One pass over a request."""

    def __init__(self, claims: Mapping[str, ReadClaim], stored: Callable[[ContentHash], bytes | None]) -> None:
        self._claims = claims
        self._stored = stored
        self._sheets: dict[str, Sheet] = {}
        self._arguments: dict[str, str] = {}
        self._truth: dict[ContentHash, list[str] | None] = {}

    def objections(self, messages: Sequence[Message]) -> Iterator[Objection]:
        for message in messages:
            for block in message.blocks:
                if isinstance(block, ToolCall):
                    self._arguments[block.id] = block.arguments
                elif isinstance(block, ToolResult) and block.call_id in self._claims:
                    try:
                        self._look(self._claims[block.call_id], block)
                    except MisledReader as misled:
                        yield Objection(block.call_id, misled.why, misled.line)

    def _look(self, claim: ReadClaim, result: ToolResult) -> None:
        sheet = self._sheets.setdefault(claim.path, Sheet())
        if claim.kind == "authored":
            self._check_write(claim, sheet, result.call_id)
            return
        text = result.text[claim.before : len(result.text) - claim.after]
        if claim.kind == "text":
            said = self._as_text(claim, text, result.text[len(result.text) - claim.after :])
        elif claim.kind == "partly_known":
            said = self._in_parts(claim, sheet, text, result.text[len(result.text) - claim.after :])
        elif claim.kind in ("diff", "range_diff"):
            said = self._by_diff(claim, sheet, text)
        else:
            said = self._by_marker(claim, sheet, text)
        self._compare(claim, said.lines)
        if claim.kind == "diff":
            sheet.taken = {}
        sheet.reads(said.lines, numbers_of(claim.emitted), said.length, said.reckoned)

    # the lines that an answer stands for

    def _as_text(self, claim: ReadClaim, text: str, behind: str) -> _AnswerStatement:
        rows = text.split("\n")
        numbers = numbers_of(claim.emitted)
        if len(numbers) > len(rows):
            raise MisledReader("the answer has fewer lines than it is said to show", numbers[len(rows)])
        seen = {n: _line(claim, n, row) for n, row in zip(numbers, rows, strict=False)}
        return _AnswerStatement(seen, _length(claim, "\n".join([*rows[len(numbers) :], behind])))

    def _by_marker(self, claim: ReadClaim, sheet: Sheet, text: str) -> _AnswerStatement:
        whole = _WHOLE.fullmatch(text)
        if whole is not None:
            total = int(whole[1])
            if total != claim.total or not (claim.first == 1 and claim.last == total):
                raise MisledReader("the file is said to be unchanged, and has another length")
            return _AnswerStatement(sheet.whole(total), total)
        marker = _marker(claim, text)
        if (marker.first, marker.last) != (claim.first, claim.last):
            raise MisledReader("the marker speaks of other lines than were asked for", marker.first)
        reckoned = sheet.length if marker.start is None and marker.last < claim.total else None
        return _AnswerStatement(marker.named_lines(sheet), marker.length, reckoned)

    def _in_parts(self, claim: ReadClaim, sheet: Sheet, text: str, behind: str) -> _AnswerStatement:
        """Walk through an answer: text where the claim says text, else a marker that leads to the next text."""
        seen: dict[int, str] = {}
        found: list[_Marker] = []
        texts = dict.fromkeys(numbers_of(claim.emitted))
        n, rows, end = claim.first, text.split("\n"), max(texts, default=0)
        at, length = 0, None
        for row in rows:
            if n in texts:
                seen[n] = _line(claim, n, row)
                n += 1
            elif n > claim.last or (n > end and not row.startswith("[readcache: ")):
                break  # the closing notice
            elif (gap := _LEFT_OUT.fullmatch(row)) is not None:
                length = claim.total
                n = _after_gap(claim, n, gap)
            else:
                marker = _marker(claim, row)
                if marker.first != n:
                    raise MisledReader("a marker does not begin where the text before it ends", n)
                found.append(marker)
                seen |= marker.named_lines(sheet)
                n = marker.last + 1
            at += 1
        if n <= end:
            raise MisledReader("the answer ends before the text it is said to show", n)
        for marker in found:
            marker.is_clear(sheet, {k: seen[k] for k in texts if k in seen})
        told = length or _length(claim, "\n".join([*rows[at:], behind]))
        return _AnswerStatement(seen, next((one.length for one in found if one.length is not None), told))

    def _by_diff(self, claim: ReadClaim, sheet: Sheet, text: str) -> _AnswerStatement:
        head, _, body = text.partition("\n")
        found = (_CHANGED if claim.kind == "diff" else _CHANGED_IN).fullmatch(head)
        if found is None:
            raise MisledReader("a diff does not say how much it changes")
        patch = ShownDiff(body, sheet.taken, sheet.end)
        first, last, total = 1, claim.total, found[2]
        if claim.kind == "range_diff":
            first, last, total = int(found[2]), int(found[3]), found[4]
        if (first, last) != (claim.first, claim.last) or int(total or claim.total) != claim.total:
            raise MisledReader("a diff speaks of other lines than were asked for", first)
        if int(found[1]) != max(patch.added, patch.removed):
            raise MisledReader("a diff changes another number of lines than it says")
        seen = {n: patch.line(n, claim.total) for n in range(first, last + 1)}
        reckoned = None
        if claim.kind == "range_diff":
            sheet.learns(seen, claim.total)
            if sheet.length is not None and last < claim.total:
                reckoned = patch.length()
            sheet.shifts(last + patch.shift(last + 1), last)
        else:
            rest = [n for n in range(1, sheet.end + 1) if n not in sheet.taken]
            if rest or patch.length() != claim.total:
                raise MisledReader("the base of a diff was not shown whole", min(rest, default=None))
        return _AnswerStatement(seen, int(total) if total else None, reckoned)

    def _check_write(self, claim: ReadClaim, sheet: Sheet, call_id: str) -> None:
        leaves = tuple(_leaves(self._arguments.get(call_id, "null")))
        truth = self._true(claim.version)
        base = self._true(claim.copies[0].base) if claim.copies else None
        grown = None if base is None else claim.total - len(base)
        if truth is None:  # the file's lines in the call are unknown, so the reader learns nothing
            sheet.edits(claim.copies, {}, grown)
            return
        own: dict[int, str] = {}
        for first, last in claim.emitted:
            block = truth[first - 1 : last]
            missing = _first_missing(block, leaves)
            if missing is not None:
                sheet.edits(claim.copies, {}, grown)
                raise MisledReader("what the model is said to have written is not in its call", first + missing)
            own |= dict(enumerate(block, first))
        self._compare(claim, own)
        if claim.whole and claim.emitted.holds(1, claim.total):
            sheet.writes(own)
        else:
            sheet.edits(claim.copies, own, grown)

    # comparison with the stored version

    def _compare(self, claim: ReadClaim, seen: Mapping[int, str]) -> None:
        truth = self._true(claim.version)
        if truth is None:
            if claim.kind == "text":
                return  # the text is in the request, whatever happened to the stored copy
            raise MisledReader("the version is not in the store", min(seen, default=None))
        if len(truth) != claim.total:
            raise MisledReader("the version has another number of lines")
        for n in sorted(seen):
            if n > len(truth) or truth[n - 1] != seen[n]:
                raise MisledReader("what the request shows is not what the version says", n)

    def _true(self, version: ContentHash) -> list[str] | None:
        if version not in self._truth:
            content = self._stored(version)
            right = content is not None and ContentHash.of(content) == version
            self._truth[version] = (
                content.decode("utf-8", "replace").split("\n") if right and content is not None else None
            )
        return self._truth[version]


def _first_missing(block: Sequence[str], leaves: Sequence[str]) -> int | None:
    """Return the index of the first line missing from the texts; lines may continue from one text to the next."""
    at = 0
    while at < len(block):
        low, high = 0, len(block) - at
        while low < high:
            count = (low + high + 1) // 2
            if any("\n".join(block[at : at + count]) in leaf for leaf in leaves):
                low = count
            else:
                high = count - 1
        if low == 0:
            return at
        at += low
    return None


def _leaves(arguments: str) -> Iterator[str]:
    """Yield every text in the arguments of a call."""
    try:
        waiting = [json.loads(arguments)]
    except ValueError:
        return
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)
