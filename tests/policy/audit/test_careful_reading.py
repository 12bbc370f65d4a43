"""What a careful reader would get wrong is objected to, and what they would get right is not: in the bytes of real requests.

No policy has a hand in these requests. Their answers are written out as they would stand there, and the witness is told only which call
speaks of which lines of which version.
"""

import json
from dataclasses import dataclass, field, replace
from typing import Self

import pytest

from pagein.model.messages import Message, Text, ToolCall, ToolResult
from pagein.model.names import ContentHash
from pagein.model.read_events import ClaimKind, LineCopy, ReadClaim
from pagein.model.spans import NO_LINES, Spans
from pagein.policy.audit.witness import Objection, witness
from pagein.providers.validity import Api
from pagein.providers.wire import decode, render

APIS: tuple[Api, ...] = ("anthropic", "openai_chat", "openai_responses")
GUTTER = r" *\d+\t"


def rows(first: int, last: int, word: str = "a") -> list[str]:
    return [f"{word} line {n}" for n in range(first, last + 1)]


def text(*parts: list[str]) -> str:
    return "\n".join(line for part in parts for line in part)


A = text(rows(1, 150))
A_AND_THREE = text(rows(1, 9), ["a line 10", "mine 1", "mine 2", "mine 3"], rows(11, 150))
"""A, once the model itself put three lines behind line 10."""
FORMATTED = text(["top 1", "top 2"], A_AND_THREE.split("\n"))
"""The same, once a formatter put two lines in front of all."""
B = text(rows(1, 49), rows(50, 150, "b"))
A_BUT_100 = text(rows(1, 99), ["a line one hundred"], rows(101, 150))
SHORT = text(rows(1, 100))


@dataclass
class Asking:
    """A conversation about one file, as it is put into a request."""

    said: list[Message] = field(default_factory=lambda: [Message("user", (Text("look at f.py"),))])
    claims: dict[str, ReadClaim] = field(default_factory=dict)
    versions: dict[ContentHash, bytes] = field(default_factory=dict)

    def answered(
        self, kind: ClaimKind, version: str, first: int, last: int, answer: str, shown: Spans = NO_LINES
    ) -> Self:
        """A read of these lines of a version, and the text that stands in its result. shown: its lines that stand there as text."""
        return self._called(ReadClaim("f.py", self._name(version), _count(version), first, last, kind, shown), answer)

    def reads(self, version: str, first: int = 1, last: int | None = None, notice: str | None = None) -> Self:
        """A read that is answered with the text, and with what the host says behind it."""
        total = _count(version)
        last = total if last is None else last
        told = f"\n\n[{total - last} more lines in file. Use offset={last + 1} to continue.]" if last < total else ""
        answer = "\n".join(version.split("\n")[first - 1 : last]) + (told if notice is None else notice)
        return self.answered("text", version, first, last, answer, Spans.of((first, last)))

    def is_told(self, version: str, answer: str, first: int = 1, last: int | None = None) -> Self:
        """A read that is answered with a marker or a diff of all that was asked for."""
        last = _count(version) if last is None else last
        kind: ClaimKind = "unchanged" if "unchanged, " in answer and "lines]" in answer else "unchanged_range"
        if "shown " in answer:
            kind = "moved"
        if "changed of" in answer:
            kind = "diff"
        elif "changed in lines" in answer and "unchanged" not in answer.split("\n", maxsplit=1)[0]:
            kind = "range_diff"
        return self.answered(kind, version, first, last, answer, _added(answer) if "diff" in kind else NO_LINES)

    def edits(
        self, before: str, after: str, *copies: tuple[int, int, int], own: Spans = NO_LINES, new: str = ""
    ) -> Self:
        """The model's own edit. copies: (first, count, at) of lines that it left alone."""
        name = self._name(before)
        left = tuple(LineCopy(name, first, count, at) for first, count, at in copies)
        claim = ReadClaim("f.py", self._name(after), _count(after), 1, _count(after), "authored", own, copies=left)
        return self._called(claim, "ok", {"old_string": "a line 10", "new_string": new})

    def writes(self, version: str) -> Self:
        """The model's own write of the whole file."""
        total = _count(version)
        claim = ReadClaim("f.py", self._name(version), total, 1, total, "authored", Spans.of((1, total)), whole=True)
        return self._called(claim, "ok", {"content": version})

    def objections(self, api: Api = "anthropic") -> tuple[Objection, ...]:
        """What the witness has against the request, read from its bytes."""
        body = json.dumps(render(self.said, api, model="a-model")).encode()
        return witness(decode(body, api).messages, self.claims, self.versions.get)

    def _called(self, claim: ReadClaim, answer: str, arguments: dict[str, str] | None = None) -> Self:
        call = f"call-{len(self.said)}"
        self.claims[call] = claim
        said = json.dumps({"path": "f.py", **(arguments or {})})
        self.said.append(Message("assistant", (ToolCall(call, "tool", said),)))
        self.said.append(Message("tool", (ToolResult(call, answer),)))
        return self

    def _name(self, version: str) -> ContentHash:
        name = ContentHash.of(version.encode())
        self.versions[name] = version.encode()
        return name


def _count(version: str) -> int:
    return version.count("\n") + 1


def _added(diff: str) -> Spans:
    """The lines of the new side that stand in a diff."""
    found: list[int] = []
    n = 0
    for row in diff.split("\n")[3:]:
        if row.startswith("@@"):
            n = int(row.split("+")[1].split(",")[0])
        elif row[:1] in (" ", "+") and row:
            found.append(n)
            n += 1
    return Spans.lines(found)


def after_own_edit() -> Asking:
    return Asking().reads(A).edits(A, A_AND_THREE, (1, 10, 1), (11, 140, 14), new="a line 10\nmine 1\nmine 2\nmine 3")


def diff(head: str, *hunks: str) -> str:
    return "\n".join([head, "--- a/f.py\t", "+++ b/f.py\t", *hunks, ""])


RANGE_OF_100 = diff(
    "[readcache: 1 lines changed in lines 50-150 of 150]",
    "@@ -99,3 +99,3 @@",
    " a line 99",
    "-a line 100",
    "+a line one hundred",
    " a line 101",
)
ALL_OF_100 = RANGE_OF_100.replace("changed in lines 50-150 of 150", "changed of 150")
BACK_OF_100 = diff(
    "[readcache: 1 lines changed of 150]",
    "@@ -99,3 +99,3 @@",
    " a line 99",
    "-a line one hundred",
    "+a line 100",
    " a line 101",
)


A_BUT_10 = text(rows(1, 9), ["a line ten"], rows(11, 100))
TOP_OF_100 = diff("[readcache: 1 lines changed in lines 1-60 of 100]", "@@ -10,1 +10,1 @@", "-a line 10", "+a line ten")


RIGHT: dict[str, Asking] = {
    "the whole file after an own edit": after_own_edit()
    .reads(A_AND_THREE, 11, 13)
    .is_told(A_AND_THREE, "[readcache: unchanged, 153 lines]"),
    "lines in front of an own edit": after_own_edit().is_told(
        A_AND_THREE, "[readcache: unchanged in lines 1-9 of 153]", 1, 9
    ),
    "lines behind an own edit, under the numbers that they were shown under": after_own_edit().is_told(
        A_AND_THREE, "[readcache: lines 60-140 of 153 unchanged, shown earlier as lines 57-137]", 60, 140
    ),
    "the same once a formatter moved them again": after_own_edit().is_told(
        FORMATTED, "[readcache: lines 60-140 of 155 unchanged, shown earlier as lines 55-135]", 60, 140
    ),
    "lines that a diff moved, under the numbers that they were shown under": Asking()
    .reads(A)
    .is_told(
        text(["top"], rows(1, 150)),
        diff("[readcache: 1 lines changed of 151]", "@@ -1,1 +1,2 @@", "+top", " a line 1"),
    )
    .is_told(
        text(["top"], rows(1, 150)), "[readcache: lines 41-60 of 151 unchanged, shown earlier as lines 40-59]", 41, 60
    ),
    "the whole file after a diff": Asking()
    .reads(A)
    .is_told(A_BUT_100, ALL_OF_100)
    .is_told(A_BUT_100, "[readcache: unchanged, 150 lines]"),
    "a line that stands in a hunk": Asking()
    .reads(A)
    .is_told(A_BUT_100, ALL_OF_100)
    .is_told(A_BUT_100, "[readcache: unchanged in lines 95-105 of 150]", 95, 105),
    "a diff back to what was shown first": Asking().reads(A).is_told(A_BUT_100, ALL_OF_100).is_told(A, BACK_OF_100),
    "a diff of lines that were shown so last": Asking()
    .reads(A)
    .reads(B, 50, 150)
    .reads(A, 50, 150)
    .is_told(A_BUT_100, RANGE_OF_100, 50, 150),
    "a file of which a diff of a range named the length, and a read showed the end": Asking()
    .reads(A)
    .is_told(A_BUT_10, TOP_OF_100, 1, 60)
    .reads(A_BUT_10, 91, 100)
    .is_told(A_BUT_10, "[readcache: unchanged, 100 lines]"),
    "a file that the model wrote": Asking()
    .writes(A)
    .is_told(A, "[readcache: unchanged in lines 20-30 of 150]", 20, 30),
    "a file shown in two parts, the first of which said how much follows": Asking()
    .reads(A, 1, 100)
    .reads(A, 101, 150)
    .is_told(A, "[readcache: unchanged, 150 lines]"),
    "a file that got shorter, which was told": Asking()
    .reads(A)
    .reads(SHORT, 91, 100)
    .is_told(SHORT, "[readcache: unchanged, 100 lines]"),
    "an answer in parts that says that it does not mean itself": Asking()
    .reads(A, 1, 100)
    .answered(
        "partly_known",
        text(["new"] * 8, rows(1, 142)),
        1,
        108,
        text(["new"] * 8, ["[readcache: lines 9-108 of 150 unchanged, shown before this answer as lines 1-100]"])
        + "\n\n[42 more lines in file. Use offset=109 to continue.]",
        Spans.of((1, 8)),
    ),
    "an answer in parts that points to numbers which it shows with the same text": Asking()
    .reads(A, 1, 100)
    .answered(
        "partly_known",
        text(rows(1, 8), rows(1, 142)),
        1,
        108,
        text(rows(1, 8), ["[readcache: lines 9-108 of 150 unchanged, shown earlier as lines 1-100]"])
        + "\n\n[42 more lines in file. Use offset=109 to continue.]",
        Spans.of((1, 8)),
    ),
    "an answer in parts of a file that grew at its top": Asking()
    .reads(A, 50, 100)
    .answered(
        "partly_known",
        text(["new"] * 8, rows(1, 142)),
        50,
        108,
        text(rows(42, 49), ["[readcache: lines 58-108 of 150 unchanged, shown before this answer as lines 50-100]"])
        + "\n\n[42 more lines in file. Use offset=109 to continue.]",
        Spans.of((50, 57)),
    ),
}


WRONG: dict[str, tuple[Asking, str]] = {
    # 1: numbers that were never shown
    "lines behind an own edit, under numbers that they never had": (
        after_own_edit().is_told(A_AND_THREE, "[readcache: unchanged in lines 60-140 of 153]", 60, 140),
        "other text has moved there",
    ),
    "the same where only the edit moved them": (
        after_own_edit().is_told(
            A_AND_THREE, "[readcache: unchanged in lines 60-140; changes exist outside this range]", 60, 140
        ),
        "other text has moved there",
    ),
    "lines under numbers by an edit that nobody was shown": (
        after_own_edit().is_told(
            FORMATTED, "[readcache: lines 60-140 of 155 unchanged, shown earlier as lines 58-138]", 60, 140
        ),
        "not what the version says",
    ),
    "lines under the numbers that a diff gave them": (
        Asking()
        .reads(A)
        .is_told(
            text(["top"], rows(1, 150)),
            diff("[readcache: 1 lines changed of 151]", "@@ -1,1 +1,2 @@", "+top", " a line 1"),
        )
        .is_told(text(["top"], rows(1, 150)), "[readcache: unchanged in lines 41-60 of 151]", 41, 60),
        "other text has moved there",
    ),
    "lines under the numbers that a marker gave them": (
        after_own_edit()
        .is_told(A_AND_THREE, "[readcache: lines 60-140 of 153 unchanged, shown earlier as lines 57-137]", 60, 140)
        .is_told(A_AND_THREE, "[readcache: unchanged in lines 60-140 of 153]", 60, 140),
        "other text has moved there",
    ),
    "the text of an edit, which has no numbers": (
        Asking()
        .edits(A, A_AND_THREE, own=Spans.of((10, 13)), new="a line 10\nmine 1\nmine 2\nmine 3")
        .is_told(A_AND_THREE, "[readcache: unchanged in lines 10-13 of 153]", 10, 13),
        "was never shown",
    ),
    "lines that an own edit moved away, and somebody else back": (
        after_own_edit().is_told(A, "[readcache: unchanged in lines 60-140 of 150]", 60, 140),
        "other text has moved there",
    ),
    # 2: a diff against what was not shown last
    "a diff of a range against what was shown before something else": (
        Asking().reads(A).reads(B, 50, 150).is_told(A_BUT_100, RANGE_OF_100, 50, 150),
        "a diff quotes another text than was shown",
    ),
    "a diff of the whole file against what was shown before something else": (
        Asking().reads(A).reads(B, 50, 150).is_told(A_BUT_100, ALL_OF_100),
        "a diff quotes another text than was shown",
    ),
    "a diff that leaves out lines that were shown otherwise since": (
        Asking().reads(A).reads(B, 120, 150).is_told(A_BUT_100, RANGE_OF_100, 50, 150),
        "not what the version says",
    ),
    "a diff of a range that tells again what was told already": (
        Asking()
        .reads(A)
        .reads(A_AND_THREE)
        .is_told(
            A_AND_THREE,
            diff(
                "[readcache: 3 lines changed in lines 1-13 of 153]",
                "@@ -10,1 +10,4 @@",
                " a line 10",
                "+mine 1",
                "+mine 2",
                "+mine 3",
            ),
            1,
            13,
        ),
        "takes to be so already",
    ),
    # 3: a version that was overtaken
    "the file as it was before something else was shown, by way of an own edit": (
        Asking()
        .reads(A)
        .reads(B)
        .edits(A, A_AND_THREE, (1, 10, 1), (11, 140, 14), new="mine 1\nmine 2\nmine 3")
        .reads(A_AND_THREE, 11, 13)
        .is_told(A_AND_THREE, "[readcache: unchanged, 153 lines]"),
        "not what the version says",
    ),
    # 4: a length that was told
    "a file that lost its end": (
        Asking().reads(A).is_told(SHORT, "[readcache: unchanged, 100 lines]"),
        "last said to have 150 lines",
    ),
    "a file whose part said that more follows": (
        Asking().reads(A, 1, 100).is_told(SHORT, "[readcache: unchanged, 100 lines]"),
        "last said to have 150 lines",
    ),
    "a file that was cut by the host, which said how long it is": (
        Asking()
        .reads(A, 1, 100, "\n\n[Showing lines 1-100 of 150. Use offset=101 to continue.]")
        .is_told(SHORT, "[readcache: unchanged, 100 lines]"),
        "last said to have 150 lines",
    ),
    "a file whose length a marker told": (
        Asking()
        .reads(A, 1, 100)
        .is_told(A, "[readcache: unchanged in lines 1-100 of 150]", 1, 100)
        .is_told(SHORT, "[readcache: unchanged, 100 lines]"),
        "last said to have 150 lines",
    ),
    "a file of which a diff of a range named the length in passing": (
        Asking().reads(A).is_told(A_BUT_10, TOP_OF_100, 1, 60).is_told(A_BUT_10, "[readcache: unchanged, 100 lines]"),
        "line 100 was never shown",
    ),
    "a file of which a marker of a range named the length in passing": (
        Asking()
        .reads(A)
        .is_told(SHORT, "[readcache: unchanged in lines 1-60 of 100]", 1, 60)
        .is_told(SHORT, "[readcache: unchanged, 100 lines]"),
        "line 100 was never shown",
    ),
    "a diff of a file that lost its end besides": (
        Asking()
        .reads(A)
        .is_told(
            text(rows(1, 9), ["a line ten"], rows(11, 100)),
            diff("[readcache: 1 lines changed of 100]", "@@ -10,1 +10,1 @@", "-a line 10", "+a line ten"),
        ),
        "was not shown whole",
    ),
    "a diff that reaches the end of a file which was said to be longer": (
        Asking()
        .reads(text(rows(1, 9), [""]))
        .edits(text(rows(1, 9), [""]), text(rows(1, 9), ["mine", ""]), (1, 9, 1), (10, 1, 11), new="a line 9\nmine")
        .is_told(
            text(rows(1, 9), ["mine", "more", ""]),
            diff("[readcache: 2 lines changed in lines 5-12 of 12]", "@@ -9,1 +9,3 @@", " a line 9", "+mine", "+more"),
            5,
        ),
        "was never shown",
    ),
    "a notice that tells another length": (
        Asking().reads(A, 1, 100, "\n\n[7 more lines in file. Use offset=101 to continue.]"),
        "says that the file has 107 lines",
    ),
    # 5: numbers that the answer itself shows
    "an answer in parts that points to numbers which it has just shown with other text": (
        Asking()
        .reads(A, 1, 100)
        .answered(
            "partly_known",
            text(["new"] * 8, rows(1, 142)),
            1,
            108,
            text(["new"] * 8, ["[readcache: lines 9-108 of 150 unchanged, shown earlier as lines 1-100]"])
            + "\n\n[42 more lines in file. Use offset=109 to continue.]",
            Spans.of((1, 8)),
        ),
        "this answer shows other text there",
    ),
}


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("asking", RIGHT.values(), ids=RIGHT)
def test_what_a_careful_reader_gets_right_is_not_objected_to(asking: Asking, api: Api) -> None:
    assert asking.objections(api) == ()


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize(("asking", "why"), WRONG.values(), ids=WRONG)
def test_what_a_careful_reader_gets_wrong_is_objected_to(asking: Asking, why: str, api: Api) -> None:
    assert [(one.call_id, why in one.why) for one in asking.objections(api)] == [(list(asking.claims)[-1], True)]


def test_a_line_that_stands_under_another_number_than_its_own_is_objected_to() -> None:
    asking = Asking().answered(
        "text", A, 5, 7, "     5\ta line 5\n     6\ta line 6\n     7\ta line 7", Spans.of((5, 7))
    )
    call = list(asking.claims)[-1]
    asking.claims[call] = replace(asking.claims[call], gutter=GUTTER)
    assert asking.objections() == ()
    asking.claims[call] = replace(asking.claims[call], first=6, last=8, emitted=Spans.of((6, 8)))
    assert asking.objections() == (Objection(call, "the line stands under the number 5", 6),)
