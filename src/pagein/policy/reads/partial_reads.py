"""Answers to a partly known read: the file's text in order, with a marker line for each known run."""

from pagein.model.read_events import LineCopy
from pagein.model.spans import NO_LINES, Spans
from pagein.policy.reads import markers
from pagein.policy.reads.baseline import byte_length
from pagein.policy.reads.known_lines import Sight
from pagein.policy.reads.line_matches import MovedLines
from pagein.policy.reads.read_request import ReadDecision


def partly_known(sight: Sight, in_place: Spans) -> ReadDecision | None:
    """Return the baseline's lines with markers for the known runs; None if no run is worth a marker.

    The baseline's closing notice stays, since the text is cut where the baseline cuts it.
    """
    baseline = sight.request.baseline
    runs = _worth_a_marker(sight, in_place, Spans.of((baseline.first, baseline.last)))
    if not runs:
        return None
    anew = Spans.of((baseline.first, baseline.last))
    anew = anew.subtract(Spans.of(*((run.at, run.at + run.count - 1) for run in runs if run.at == run.shown_as)))
    out: list[str] = []
    copies: list[LineCopy] = []
    emitted: list[tuple[int, int]] = []
    at = baseline.first
    for run in runs:
        out.extend(sight.lines[at - 1 : run.at - 1])
        emitted.append((at, run.at - 1))
        out.append(_marker(run, sight.request.total, anew))
        copies.extend(sight.copies(run.at, run.count, run.shown_as))
        at = run.at + run.count
    out.extend(sight.lines[at - 1 : baseline.last])
    emitted.append((at, baseline.last))
    text = "\n".join(out) + baseline.notice
    decision = sight.answer("partly_known", text, "partly_known", emitted=Spans.of(*emitted), copies=tuple(copies))
    if sight.request.whole and not decision.event.emitted and sight.known.total != sight.request.total:
        return None  # only a number would show that the file lost its end
    shown = Spans.of((baseline.first, baseline.last))
    return decision if sight.proves(decision, shown) else None


def chosen_lines(sight: Sight, wanted: Spans) -> ReadDecision:
    """Answer with some runs of lines: each as text with markers for its known runs, and a line for the lines between.

    wanted: at least two runs. The request goes from the first of these lines to the last, and its baseline ends with the
        closing notice.
    """
    decision = _in_order(sight, wanted, _worth_a_marker(sight, sight.in_place(), wanted))
    return decision if sight.proves(decision, wanted) else _in_order(sight, wanted, [])


def _in_order(sight: Sight, wanted: Spans, runs: list[MovedLines]) -> ReadDecision:
    total, ahead = sight.request.total, list(runs)
    anew = wanted.subtract(Spans.of(*((run.at, run.at + run.count - 1) for run in runs if run.at == run.shown_as)))
    out: list[str] = []
    copies: list[LineCopy] = []
    emitted: list[tuple[int, int]] = []
    at = sight.request.first
    for first, last in wanted:
        if first > at:
            out.append(markers.left_out_marker(at, first - 1, total))
        at = first
        while ahead and ahead[0].at <= last:
            run = ahead.pop(0)
            out.extend(sight.lines[at - 1 : run.at - 1])
            emitted.append((at, run.at - 1))
            out.append(_marker(run, total, anew))
            copies.extend(sight.copies(run.at, run.count, run.shown_as))
            at = run.at + run.count
        out.extend(sight.lines[at - 1 : last])
        emitted.append((at, last))
        at = last + 1
    text = "\n".join(out) + sight.request.baseline.notice
    return sight.answer("partly_known", text, "partly_known", emitted=Spans.of(*emitted), copies=tuple(copies))


def _worth_a_marker(sight: Sight, in_place: Spans, shown: Spans) -> list[MovedLines]:
    """Return known runs whose marker is shorter than their text: unmoved runs first, then moved runs, sorted by place.

    shown: the lines of the answer.
    """
    least = sight.settings.min_run
    kept = [MovedLines(a, b - a + 1, a) for a, b in in_place.intersect(shown) if b - a + 1 >= least]
    kept = [run for run in kept if _saves(sight, run)]
    if sight.settings.allow(sight.request.document.text):
        rest = shown.subtract(sight.withheld)
        rest = rest.subtract(Spans.of(*((run.at, run.at + run.count - 1) for run in kept)))
        kept.extend(run for run in sight.moved(rest) if _saves(sight, run))
    return sorted(kept, key=lambda run: run.at)


def _saves(sight: Sight, run: MovedLines) -> bool:
    text = "\n".join(sight.lines[run.at - 1 : run.at - 1 + run.count])
    return len(_marker(run, sight.request.total, NO_LINES)) < byte_length(text)


def _marker(run: MovedLines, total: int, anew: Spans) -> str:
    """Return the marker line of a run.

    anew: numbers under which this answer shows other text than was shown before.
    """
    last = run.at + run.count - 1
    if run.at == run.shown_as:
        return markers.lines_unchanged_marker(run.at, last, total)
    over = anew.clamp(run.shown_as, run.shown_as + run.count - 1)
    return markers.moved_marker(run.at, last, total, run.shown_as, over_again=bool(over))
