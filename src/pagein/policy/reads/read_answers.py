"""The decision on a read: answer with text, a marker, a diff, or text with markers in it.

Rules of this file
------------------
1. The baseline is always a right answer. Everything else must be proven from knowledge, and must be smaller.
2. A marker names only numbers under which its text is in the window (see `file_view`). A diff is based on the file as
   the model believes it to be; without an available version equal to that, there is no diff. A length once told is part
   of the meaning of *unchanged*. Every answer with metadata v2 is checked once more against the transition table before
   it is given.
3. A plan asks for the text of earlier versions with `NeedBlob`, only on the path that needs it, and goes on without.
"""

from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Final, TypeAlias

from pagein.model.names import ContentHash
from pagein.model.read_events import LineCopy, Mode
from pagein.model.spans import NO_LINES, Spans
from pagein.policy.reads import markers
from pagein.policy.reads.baseline import byte_length
from pagein.policy.reads.knowledge import PathKnown
from pagein.policy.reads.known_lines import Sight
from pagein.policy.reads.line_diff import Diff, LineChange, changes, split_lines, unified_diff, within
from pagein.policy.reads.partial_reads import chosen_lines, partly_known
from pagein.policy.reads.read_request import DEFAULTS, NeedBlob, ReadDecision, ReadingSettings, ReadRequest

_DIFFED_BASES: Final = 3  # versions that a range is compared with, one of them perhaps the current one

Plan: TypeAlias = Generator[NeedBlob, bytes | None, ReadDecision]
Texts: TypeAlias = Generator[NeedBlob, bytes | None, dict[ContentHash, Sequence[str]]]


def decide(
    request: ReadRequest,
    known: PathKnown,
    fetch: Callable[[ContentHash], bytes | None],
    settings: ReadingSettings = DEFAULTS,
) -> ReadDecision:
    """Run the plan for a read and return its decision.

    fetch: returns the bytes of a version, or None for an unavailable version; must not raise.
    """
    return _run(plan(request, known, settings), fetch)


def decide_lines(
    request: ReadRequest,
    wanted: Spans,
    known: PathKnown,
    fetch: Callable[[ContentHash], bytes | None],
    settings: ReadingSettings = DEFAULTS,
) -> ReadDecision:
    """Decide on a read of some runs of lines. The answer has a line for each gap between runs.

    request: from the first of these lines to the last.
    wanted: at least two runs.
    """
    return _run(_plan_lines(request, wanted, known, settings), fetch)


def _plan_lines(request: ReadRequest, wanted: Spans, known: PathKnown, settings: ReadingSettings) -> Plan:
    texts: dict[ContentHash, Sequence[str]] = {request.document.hash: request.document.lines}
    if not request.bypass and known.view and settings.new_answers:
        texts = yield from _texts(request, known, settings, _base(request, known))
    else:
        known = PathKnown(total=known.total)
    withheld = known.stale.unite(known.blocked).clamp(request.first, request.last)
    return chosen_lines(Sight(request, known, settings, texts, withheld), wanted)


def _run(going: Plan, fetch: Callable[[ContentHash], bytes | None]) -> ReadDecision:
    try:
        need = next(going)
        while True:
            need = going.send(fetch(need.version))
    except StopIteration as done:
        decision: ReadDecision = done.value
        return decision


def plan(request: ReadRequest, known: PathKnown, settings: ReadingSettings = DEFAULTS) -> Plan:
    """Decide on one read: yield NeedBlob for each needed version, and return the decision."""
    withheld = known.stale if request.whole else known.stale.unite(known.blocked)
    sight = Sight(request, known, settings, {}, withheld.clamp(request.first, request.last))
    base = _base(request, known)
    if request.bypass:
        return _baseline(sight, None, "bypass_cache")
    if not known.view:
        return _baseline(sight, base, "no_base_hash")
    if _is_fresh(sight):
        same = request.document.hash
        answer = sight.answer(_unchanged_mode(request), _unchanged_text(sight), "hash_match", base=same)
        return answer if _is_smaller(answer, request) else _baseline(sight, same, "marker_not_smaller")
    texts = yield from _texts(request, known, settings, base)
    sight = Sight(request, known, settings, texts, sight.withheld)
    answer_or_none = _best(sight)
    if answer_or_none is not None:
        return answer_or_none
    if base is not None and base not in texts:
        return _baseline(sight, base, "base_object_missing")
    return _baseline(sight, base, "no_base_hash" if base is None else "nothing_smaller")


def _base(request: ReadRequest, known: PathKnown) -> ContentHash | None:
    """Return the version to compare with: known whole, or for a range, over the whole range."""
    if request.whole:
        last = known.last_complete()
        return None if last is None else last[0]
    held = (version for version, seen in reversed(known.versions) if seen.spans.holds(request.first, request.last))
    return next(held, None)


def _is_fresh(sight: Sight) -> bool:
    """Return whether everything asked for is as last shown: decided by hashes alone."""
    request, known = sight.request, sight.known
    if sight.withheld:
        return False
    if request.whole:
        return known.is_taken_for(request.document.hash)
    return known.fresh(request.document.hash).holds(request.first, request.last)


def _texts(request: ReadRequest, known: PathKnown, settings: ReadingSettings, base: ContentHash | None) -> Texts:
    """Return the lines of the current version, and of likely earlier bases, the likeliest first."""
    texts: dict[ContentHash, Sequence[str]] = {request.document.hash: request.document.lines}
    seen = {piece.source for piece in known.view} | {piece.told for piece in known.view}
    wanted = [version for version, _ in reversed(known.versions) if settings.new_answers and version in seen]
    if base is not None:
        wanted = [base, *(version for version in wanted if version != base)]
    fetched = 0
    for version in wanted:
        if version in texts or fetched >= settings.max_bases:
            continue
        fetched += 1
        content = yield NeedBlob(version)
        if content is not None:
            try:
                texts[version] = content.decode("utf-8").split("\n")
            except UnicodeDecodeError:  # cannot be the text that was shown: as good as missing
                continue
    return texts


def _best(sight: Sight) -> ReadDecision | None:
    """Return the answer to give instead of the baseline; None for the baseline."""
    in_place = sight.in_place()
    request = sight.request
    same = _unchanged_whole(sight) if request.whole else _unchanged_by_lines(sight, in_place)
    if same is not None:
        return same if _is_smaller(same, request) else None
    if not sight.settings.new_answers:
        return _full_diff(sight)
    moved = _moved_decision(sight)
    if moved is not None and _is_smaller(moved, request):
        return moved
    diff = _full_diff(sight) if request.whole else _range_diff(sight)
    partly = partly_known(sight, in_place)
    if diff is not None and _costs_little_more(diff, partly, sight):
        return diff
    answers = [answer for answer in (diff, partly) if answer is not None and _is_smaller(answer, request)]
    return min(answers, key=lambda answer: byte_length(answer.text), default=None)


def _costs_little_more(diff: ReadDecision, partly: ReadDecision | None, sight: Sight) -> bool:
    """Return whether a diff is worth its extra bytes, as only a diff shows removed lines.

    For a whole file a diff is preferred, so there it may cost a share of the text that is read.
    """
    if partly is None:
        return True
    settings, request = sight.settings, sight.request
    more = settings.news_share * byte_length(request.baseline.text) if request.whole else 0.0
    return byte_length(diff.text) <= byte_length(partly.text) + max(settings.news_bytes, more)


def _unchanged_mode(request: ReadRequest) -> Mode:
    return "unchanged" if request.whole else "unchanged_range"


def _unchanged_text(sight: Sight) -> str:
    request = sight.request
    if request.whole:
        return markers.unchanged_marker(request.total)
    return markers.lines_unchanged_marker(request.first, request.last, request.total)


def _unchanged_whole(sight: Sight) -> ReadDecision | None:
    """Return the marker for a file equal to the model's view, although never shown as one version."""
    if not sight.settings.new_answers or not sight.as_taken():
        return None
    total = sight.request.total
    answer = sight.answer("unchanged", _unchanged_text(sight), "lines_unchanged", copies=sight.taken(1, total, 1))
    return _check_answer(sight, answer)


def _unchanged_by_lines(sight: Sight, in_place: Spans) -> ReadDecision | None:
    """Return the marker for unchanged lines in a file that changed elsewhere, or was shown in parts."""
    request = sight.request
    if not in_place.holds(request.first, request.last):
        return None
    told = {piece.told for piece in sight.known.view if piece.first <= request.last and piece.last >= request.first}
    base = told.pop() if len(told) == 1 else None
    if base is not None:
        text = markers.inside_unchanged_marker(request.first, request.last)
        return sight.answer("unchanged_range", text, "range_slice_unchanged", base=base)
    if not sight.settings.new_answers:
        return None
    rests_on = sight.taken(request.first, request.last, request.first)
    return _check_answer(
        sight, sight.answer("unchanged_range", _unchanged_text(sight), "lines_unchanged", copies=rests_on)
    )


def _moved_decision(sight: Sight) -> ReadDecision | None:
    """Return the marker for a range now wholly under other numbers; for a whole file, a diff says more."""
    request = sight.request
    if request.whole or sight.withheld or not sight.settings.allow(request.document.text):
        return None
    count = request.last - request.first + 1
    for run in sight.moved([(request.first, request.last)]):
        if run.count == count:
            text = markers.moved_marker(request.first, request.last, request.total, run.shown_as)
            return _check_answer(
                sight, sight.answer("moved", text, "lines_moved", copies=sight.copies(run.at, count, run.shown_as))
            )
    return None


def _full_diff(sight: Sight) -> ReadDecision | None:
    if not sight.request.whole or sight.withheld:
        return None
    base = next((version for version, _ in reversed(sight.known.versions) if sight.known.is_taken_for(version)), None)
    both = None if base is None else _both(sight, base)
    if base is None or both is None:
        return None
    old, new, found = both
    frame = LineChange(0, len(old), 0, len(new))
    diff = unified_diff(old, new, sight.request.given, found, frame, sight.settings.context)
    text = f"{markers.changed_marker(diff.changed, sight.request.total)}\n{diff.text}"
    copies = _copies_in_frame(sight, base, found, frame)
    answer = sight.answer("diff", text, "diff_emitted", base=base, emitted=Spans.of(*diff.shown), copies=copies)
    return answer if _is_useful(answer, diff, sight) else None


def _range_diff(sight: Sight) -> ReadDecision | None:
    """Return a diff of the range against the version in the model's view."""
    if sight.withheld:
        return None
    request = sight.request
    already = sight.already()
    tells_end = request.last == request.total != sight.known.total
    if already.holds(request.first, request.last) and not tells_end:
        return None  # nothing changed since the last answer
    candidates = [version for version, _ in reversed(sight.known.versions) if version in sight.texts]
    for version in candidates[:_DIFFED_BASES]:
        both = _both(sight, version)
        if both is None:
            continue
        old, new, found = both
        frame, inside = within(found, request.first - 1, min(request.last, len(new)))
        if not inside or (frame.j2 < request.last and frame.i2 < len(old)):
            continue  # unchanged, or lines after the last line were removed, which this diff would not show
        if not sight.known.lines_taken_for(version).holds(frame.i1 + 1, frame.i2):
            continue  # the model was shown other text there since
        told = already.subtract(sight.known.lines_taken_for(version))
        if any(told.clamp(change.j1 + 1, change.j2) for change in inside):
            continue  # the model was also shown another version since, and knows some of the new lines from there
        if frame.i2 == len(old) and sight.known.total != len(sight.texts[version]):
            continue  # the model was told another length, so lines may follow that the base does not have
        diff = unified_diff(old, new, request.given, inside, frame, sight.settings.context)
        head = markers.lines_changed_marker(diff.changed, request.first, request.last, request.total)
        answer = sight.answer(
            "range_diff",
            f"{head}\n{diff.text}",
            "range_diff_emitted",
            base=version,
            emitted=Spans.of(*diff.shown),
            copies=_copies_in_frame(sight, version, inside, frame),
        )
        if _is_useful(answer, diff, sight) and _check_answer(sight, answer) is not None:
            return answer
    return None


def _copies_in_frame(
    sight: Sight, version: ContentHash, inside: Iterable[LineChange], frame: LineChange
) -> tuple[LineCopy, ...]:
    """Return the unchanged lines of the frame, as copies of the base."""
    request, lines = sight.request, len(sight.texts[version])
    copies: list[LineCopy] = []
    i, j = frame.i1, frame.j1
    # the empty line after a last newline is not a line of a diff; it follows the line before it
    tail = request.last - frame.j2
    for change in (*inside, LineChange(frame.i2 + tail, frame.i2 + tail, frame.j2 + tail, frame.j2 + tail)):
        if change.j1 > j:
            copies.append(LineCopy(version, i + 1, change.j1 - j, j + 1))
        i, j = change.i2, change.j2
    # where the newline at the end is new, so is the empty line behind it
    return tuple(copy for copy in copies if copy.first + copy.count - 1 <= lines)


def _both(sight: Sight, version: ContentHash) -> tuple[list[str], list[str], tuple[LineChange, ...]] | None:
    """Return the lines of a base and of the file, with line ends, and the changes; None if unavailable or too big."""
    document = sight.request.document
    theirs = sight.texts.get(version)
    if version == document.hash or theirs is None:
        return None
    text = "\n".join(theirs)
    if not sight.settings.allow(text) or not sight.settings.allow(document.text):
        return None
    old, new = split_lines(text), split_lines(document.text)
    return old, new, changes(old, new)


def _is_useful(answer: ReadDecision, diff: Diff, sight: Sight) -> bool:
    """Return whether a diff is worth sending."""
    settings, request = sight.settings, sight.request
    size, lines = byte_length(answer.text), answer.text.count("\n") + 1
    return (
        _is_smaller(answer, request)
        and size < settings.byte_ratio * byte_length(request.baseline.text)
        and diff.lines <= settings.line_ratio * (request.last - request.first + 1)
        and size <= settings.cap_bytes
        and lines <= settings.cap_lines
    )


def _is_smaller(answer: ReadDecision, request: ReadRequest) -> bool:
    """Return whether an answer has fewer bytes than the text it replaces, and no more lines."""
    text, plain = answer.text, request.baseline.text
    return byte_length(text) < byte_length(plain) and text.count("\n") <= plain.count("\n")


def _check_answer(sight: Sight, answer: ReadDecision) -> ReadDecision | None:
    lines = Spans.of((sight.request.first, sight.request.last))
    return answer if sight.proves(answer, lines) else None


def _baseline(sight: Sight, base: ContentHash | None, reason: str) -> ReadDecision:
    baseline = sight.request.baseline
    emitted = Spans.of((baseline.first, baseline.last)) if baseline.shown > 0 else NO_LINES
    mode: Mode = "full" if base is None else "baseline_fallback"
    return sight.answer(mode, baseline.text, reason, base=base, emitted=emitted)
