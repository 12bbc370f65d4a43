r"""The witness: is every marker and diff of a request borne out by the text of that same request?

It reads an outgoing message list from the first message to the last, as a model would: it keeps, for each file, the
lines it has seen of each version, and which text it saw last under each line number. Where an answer is a marker or a
diff, it rebuilds the lines the answer stands for from what it has seen so far, and compares them with the stored bytes
of the version. It shares no code with the policy and knows none of its reasons; the claims tell it only which call
speaks of which version of which file, and which of the answer's lines are file text.

A line of a version counts as seen when it stood as text in a tool result, or in the arguments of the model's own
successful write or edit, or when an earlier marker or diff that held stood for it.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from pagein.model.messages import Message, ToolCall, ToolResult
from pagein.model.names import ContentHash
from pagein.model.reading import Claim

_WHOLE: Final = re.compile(r"\[readcache: unchanged, (\d+) lines\]")
_PLACE: Final = re.compile(
    r"\[readcache: unchanged in lines (\d+)-(\d+)(?: of (\d+)|; changes exist outside this range)?\]"
)
_MOVED: Final = re.compile(
    r"\[readcache: lines (\d+)-(\d+)(?: of (\d+))? unchanged, "
    r"shown (?:earlier|before this answer) as lines (\d+)-(\d+)\]"
)
_CHANGED: Final = re.compile(r"\[readcache: (\d+) lines changed of (\d+)\]")
_CHANGED_IN: Final = re.compile(r"\[readcache: (\d+) lines changed in lines (\d+)-(\d+)(?: of (\d+))?\]")
_HEAD: Final = re.compile(r"--- a/[^\n]*\n\+\+\+ b/[^\n]*\n")
_HUNK: Final = re.compile(r"@@ -(\d+),(\d+) \+(\d+),(\d+) @@")


@dataclass(frozen=True, slots=True)
class Objection:
    """A claim that the request does not bear out. line: the first line of the version where it fails, if there is one."""

    call_id: str
    why: str
    line: int | None = None


class _Unproven(Exception):
    def __init__(self, why: str, line: int | None = None) -> None:
        super().__init__(why)
        self.why = why
        self.line = line


@dataclass(slots=True)
class _Sheet:
    """What has been seen of one file. printed: the text that stood last under each number. under: what was said last of each number,
    in text or otherwise. of: lines seen of each version.
    """

    printed: dict[int, str] = field(default_factory=dict)
    under: dict[int, str] = field(default_factory=dict)
    of: dict[ContentHash, dict[int, str]] = field(default_factory=dict)
    totals: dict[ContentHash, int] = field(default_factory=dict)


def witness(
    messages: Sequence[Message],
    claims: Mapping[str, Claim],
    stored: Callable[[ContentHash], bytes | None],
) -> tuple[Objection, ...]:
    """Objections against a request, in the order of its messages; none means that every claim is borne out.

    claims: by call id, what each tool call of the request that touches a file stands for. Calls without a claim are
    plain text. stored: the bytes of a version, None where they are lost (then what rests on them is objected to).
    Time grows with the text of the request and the lines of the files its diffs stand for.
    """
    return tuple(_Reading(claims, stored).objections(messages))


class _Reading:
    """One pass over a request."""

    def __init__(self, claims: Mapping[str, Claim], stored: Callable[[ContentHash], bytes | None]) -> None:
        self._claims = claims
        self._stored = stored
        self._sheets: dict[str, _Sheet] = {}
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
                    except _Unproven as unproven:
                        yield Objection(block.call_id, unproven.why, unproven.line)

    def _look(self, claim: Claim, result: ToolResult) -> None:
        sheet = self._sheets.setdefault(claim.path, _Sheet())
        if claim.kind == "authored":
            self._written(claim, sheet, result.call_id)
            return
        text = result.text[claim.before : len(result.text) - claim.after]
        if claim.kind == "text":
            seen = self._as_text(claim, text)
        elif claim.kind == "partly_known":
            seen = self._in_parts(claim, sheet, text)
        elif claim.kind in ("diff", "range_diff"):
            seen = self._by_diff(claim, sheet, text)
        else:
            seen = self._by_marker(claim, sheet, text)
        self._compare(claim, seen)
        self._remember(claim, sheet, seen)
        sheet.printed |= self._printed(claim, seen)

    # what an answer stands for

    def _as_text(self, claim: Claim, text: str) -> dict[int, str]:
        lines = text.split("\n")
        if claim.gutter:
            lines = [re.sub(claim.gutter, "", line, count=1) for line in lines]
        numbers = [n for first, last in claim.emitted for n in range(first, last + 1)]
        if len(numbers) > len(lines):
            raise _Unproven("the answer has fewer lines than it is said to show", numbers[len(lines)])
        return dict(zip(numbers, lines, strict=False))

    def _by_marker(self, claim: Claim, sheet: _Sheet, text: str) -> dict[int, str]:
        whole = _WHOLE.fullmatch(text)
        if whole is not None:
            total = int(whole[1])
            beyond = [n for n in sheet.under if n > total]
            if total != claim.total or beyond:
                raise _Unproven(
                    "the file is said to be unchanged, but it has another length now", min(beyond, default=None)
                )
            return self._under(sheet.under, 1, total, 0)
        first, last, shift = self._marked(claim, text)
        if (first, last) != (claim.first, claim.last):
            raise _Unproven("the marker speaks of other lines than were asked for", first)
        return self._under(sheet.printed, first, last, shift)

    def _marked(self, claim: Claim, text: str) -> tuple[int, int, int]:
        """What a marker that names lines says: first, last, and how much lower those lines were shown."""
        found = _PLACE.fullmatch(text)
        if found is not None:
            first, last, total, shift = int(found[1]), int(found[2]), int(found[3] or claim.total), 0
        else:
            found = _MOVED.fullmatch(text)
            if found is None:
                raise _Unproven("what is said to be a marker is none")
            first, last, total = int(found[1]), int(found[2]), int(found[3] or claim.total)
            shift = int(found[4]) - first
            if int(found[5]) - int(found[4]) != last - first:
                raise _Unproven("the marker names two ranges of different length", first)
        if total != claim.total or not 1 <= first <= last <= total:
            raise _Unproven("the marker names lines that the file does not have", first)
        return first, last, shift

    def _under(self, page: Mapping[int, str], first: int, last: int, shift: int) -> dict[int, str]:
        seen: dict[int, str] = {}
        for n in range(first, last + 1):
            text = page.get(n + shift)
            if text is None:
                raise _Unproven(f"line {n + shift} was never shown", n)
            seen[n] = text
        return seen

    def _in_parts(self, claim: Claim, sheet: _Sheet, text: str) -> dict[int, str]:
        """Walk down the answer: text where the claim says text, else a marker that leads to the next text."""
        seen: dict[int, str] = {}
        texts = dict.fromkeys(n for first, last in claim.emitted for n in range(first, last + 1))
        n, rows, end = claim.first, text.split("\n"), max(texts, default=0)
        for row in rows:
            if n in texts:
                seen[n] = re.sub(claim.gutter, "", row, count=1) if claim.gutter else row
                n += 1
                continue
            if n > end and not row.startswith("[readcache: "):
                break  # the closing notice
            first, last, shift = self._marked(claim, row)
            if first != n:
                raise _Unproven("a marker does not begin where the text before it ends", n)
            seen |= self._under(sheet.printed, first, last, shift)
            n = last + 1
            if n > claim.last:
                break
        if n <= end:
            raise _Unproven("the answer ends before the text it is said to show", n)
        return seen

    def _by_diff(self, claim: Claim, sheet: _Sheet, text: str) -> dict[int, str]:
        head, _, body = text.partition("\n")
        if claim.base is None:
            raise _Unproven("a diff without a base")
        found = (_CHANGED if claim.kind == "diff" else _CHANGED_IN).fullmatch(head)
        if found is None:
            raise _Unproven("a diff does not say how much it changes")
        old = sheet.of.get(claim.base, {})
        old_total = sheet.totals.get(claim.base, 0)
        patch = _Patch(body, old, old_total)
        first, last, total = 1, claim.total, found[2]
        if claim.kind == "range_diff":
            first, last, total = int(found[2]), int(found[3]), found[4]
        if (first, last) != (claim.first, claim.last) or int(total or claim.total) != claim.total:
            raise _Unproven("a diff speaks of other lines than were asked for", first)
        if int(found[1]) != max(patch.added, patch.removed):
            raise _Unproven("a diff changes another number of lines than it says")
        seen = {n: patch.line(n, claim.total) for n in range(first, last + 1)}
        if claim.kind == "diff":
            rest = [n for n in range(1, old_total + 1) if n not in old]
            if rest or patch.length() != claim.total:
                raise _Unproven("the base of a diff was not shown whole", min(rest, default=None))
        return seen

    def _printed(self, claim: Claim, seen: Mapping[int, str]) -> dict[int, str]:
        """The lines that stand as text in an answer."""
        return {n: seen[n] for first, last in claim.emitted for n in range(first, last + 1) if n in seen}

    def _written(self, claim: Claim, sheet: _Sheet, call_id: str) -> None:
        leaves = tuple(_leaves(self._arguments.get(call_id, "null")))
        truth = self._true(claim.version)
        if truth is None:
            return  # which of the file's lines the call holds cannot be told; nothing is learned from it
        seen: dict[int, str] = {}
        for copy in claim.copies:
            before = sheet.of.get(copy.base, {})
            seen |= {copy.at + k: before[copy.first + k] for k in range(copy.count) if copy.first + k in before}
        for first, last in claim.emitted:
            block = truth[first - 1 : last]
            missing = _missing(block, leaves)
            if missing is not None:
                raise _Unproven("what the model is said to have written is not in its call", first + missing)
            seen |= dict(enumerate(block, first))
        self._compare(claim, seen)
        whole = claim.emitted.holds(1, claim.total)
        if claim.copies or whole:
            kept = {copy.at + k for copy in claim.copies for k in range(copy.count)}
            sheet.under = {n: text for n, text in sheet.under.items() if n in kept}
        if claim.whole:  # an edit's text has no numbers in its call
            sheet.printed |= self._printed(claim, seen)
        self._remember(claim, sheet, seen)

    # what is true, and what is remembered

    def _compare(self, claim: Claim, seen: Mapping[int, str]) -> None:
        truth = self._true(claim.version)
        if truth is None:
            if claim.kind == "text":
                return  # it stands there as text, whatever became of our copy
            raise _Unproven("the version is not in the store", min(seen, default=None))
        if len(truth) != claim.total:
            raise _Unproven("the version has another number of lines")
        for n in sorted(seen):
            if n > len(truth) or truth[n - 1] != seen[n]:
                raise _Unproven("what the request shows is not what the version says", n)

    def _true(self, version: ContentHash) -> list[str] | None:
        if version not in self._truth:
            content = self._stored(version)
            right = content is not None and ContentHash.of(content) == version
            self._truth[version] = (
                content.decode("utf-8", "replace").split("\n") if right and content is not None else None
            )
        return self._truth[version]

    def _remember(self, claim: Claim, sheet: _Sheet, seen: Mapping[int, str]) -> None:
        page = sheet.of.setdefault(claim.version, {})
        page |= seen
        sheet.under |= seen
        sheet.totals[claim.version] = claim.total
        if claim.kind != "unchanged_range" or claim.base in (
            None,
            claim.version,
        ):  # the others tell where the file ends
            sheet.under = {n: text for n, text in sheet.under.items() if n <= claim.total}


class _Patch:
    """A unified diff, laid over the lines seen of its base."""

    def __init__(self, body: str, old: Mapping[int, str], old_total: int) -> None:
        self.added = 0
        self.removed = 0
        self._old = old
        self._old_total = old_total
        self._new: dict[int, str] = {}
        self._shifts: list[tuple[int, int]] = []
        self._unended: dict[str, bool] = {"-": False, "+": False}
        head = _HEAD.match(body)
        rows = body[head.end() :].split("\n") if head is not None else []
        if not rows or rows.pop():
            raise _Unproven("a diff that is none")
        at = 0
        while at < len(rows):
            at = self._hunk(rows, at)

    def _hunk(self, rows: Sequence[str], at: int) -> int:
        found = _HUNK.fullmatch(rows[at])
        if found is None:
            raise _Unproven("a diff with a hunk that is none")
        old, olds, new, news = (int(number) for number in found.groups())
        old, new = old + (olds == 0), new + (news == 0)
        if not self._shifts:
            self._shifts.append((1, old - new))
        end_old, end_new = old + olds, new + news
        at += 1
        while at < len(rows) and not rows[at].startswith("@@"):
            sign, text = rows[at][:1], rows[at][1:]
            if sign == "\\":
                self._end(rows[at - 1][:1])
            if sign in ("-", " ") and sign:
                if self._old.get(old, text) != text:
                    raise _Unproven("a diff quotes another text than was shown", old)
                old += 1
                self.removed += sign == "-"
            if sign in ("+", " ") and sign:
                self._new[new] = text
                new += 1
                self.added += sign == "+"
            at += 1
        if (old, new) != (end_old, end_new):
            raise _Unproven("a diff whose hunk has another length than it says")
        self._shifts.append((new, old - new))
        return at

    def _end(self, sign: str) -> None:
        for side in "-+" if sign == " " else sign:
            self._unended[side] = True

    def line(self, n: int, total: int) -> str:
        """Line `n` of the new side, which has `total` lines."""
        if n in self._new:
            return self._new[n]
        shift = self._shift(n)
        text = self._old.get(n + shift)
        if text is None:
            # behind a last newline there is an empty line, which no diff shows
            if n == total and not self._unended["+"] and self._is_ended(n - 1):
                return ""
            raise _Unproven(f"line {n + shift} of the base was never shown", n)
        return text

    def _is_ended(self, n: int) -> bool:
        return n in self._new or n + self._shift(n) < self._old_total

    def _shift(self, n: int) -> int:
        shift = 0
        for first, by in self._shifts:
            if first > n:
                break
            shift = by
        return shift

    def length(self) -> int:
        """Lines of the new side."""
        ended = self._old_total - self._shifts[-1][1] if self._shifts else self._old_total
        # the empty line behind the last newline comes or goes with that newline
        return ended + self._unended["-"] - self._unended["+"]


def _missing(block: Sequence[str], leaves: Sequence[str]) -> int | None:
    """The first of these lines that does not stand in the texts; what one text cannot hold may go on in the next."""
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
    """Every text in the arguments of a call."""
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
