"""Characters per token from recorded usage, by trimmed least squares with a prior.

The model of one call: prompt growth = result characters * a + said characters * b + c, where c is the host's addition
to each call. A call that also brought a pasted text, an image or a compaction does not follow it, so the worst third is
left out.
"""

from collections.abc import Iterator, Sequence
from statistics import median
from typing import Final, NamedTuple

LEAST_RESULT = 2_000
_PRIOR_SAMPLES: Final = 3.0
_TYPICAL_RESULT: Final = 4_000.0
_TYPICAL_SAID: Final = 800.0
_TYPICAL_CALL: Final = 200.0
_KEPT: Final = 2 / 3
_ROUNDS: Final = 12
_FEW: Final = 4
_FAR: Final = 8.0
_STARTS: Final = 16
_RANGE: Final = (1.2, 8.0)
_SAID_WITHIN: Final = 1.6


class Sample(NamedTuple):
    """A call of a recording: new characters in the prompt, and the growth of the prompt in tokens."""

    result: float
    said: float
    growth: float


class Ratios(NamedTuple):
    """Characters per token."""

    result: float
    said: float


class _Line(NamedTuple):
    """Tokens per result character, per said character, and per call."""

    result: float
    said: float
    call: float

    def misses(self, sample: Sample) -> float:
        return abs(sample.growth - self.result * sample.result - self.said * sample.said - self.call)


def fit(samples: Sequence[Sample], result: float, said: float) -> Ratios:
    """Fit characters per token to the samples, drawn towards the prior ratios `result` and `said`.

    Calls with fewer than `LEAST_RESULT` result characters carry too little information and are ignored.
    """
    telling = sorted(s for s in samples if s.result >= LEAST_RESULT and s.growth > 0 and s.said >= 0)
    if not telling:
        return Ratios(result, said)
    prior = _Line(1 / result, 1 / said, _TYPICAL_CALL)
    line = min((_fit_until_stable(start, telling, prior) for start in _starts(telling, prior)), key=lambda one: one[0])[
        1
    ]
    usual = median(sorted(line.misses(sample) for sample in telling)[: _count_kept(telling)])
    near = [sample for sample in telling if line.misses(sample) <= _FAR * usual]
    line = _squares(near, prior, _PRIOR_SAMPLES)
    # unlogged thinking grows with the said characters, so their ratio is held near the prior
    near_prior = min(max(1 / line.said if line.said > 0 else _RANGE[1], said / _SAID_WITHIN), said * _SAID_WITHIN)
    return Ratios(_bound_ratio(line.result), near_prior)


def _count_kept(samples: Sequence[Sample]) -> int:
    return max(1, round(len(samples) * _KEPT))


def _fit_until_stable(line: _Line, samples: Sequence[Sample], prior: _Line) -> tuple[float, _Line]:
    """Refit the best-fitting samples until their choice is stable. Return the residual sum and the line."""
    keep = _count_kept(samples)
    kept = sorted(samples, key=line.misses)[:keep]
    for _ in range(_ROUNDS):
        line = _squares(kept, prior, _PRIOR_SAMPLES)
        previous, kept = kept, sorted(samples, key=line.misses)[:keep]
        if kept == previous:
            break
    return sum(line.misses(sample) for sample in kept), line


def _starts(samples: Sequence[Sample], prior: _Line) -> Iterator[_Line]:
    """Yield lines to start from. The result depends on the start, and a single start without outliers is enough."""
    ratio = median((s.growth - prior.said * s.said - prior.call) / s.result for s in samples)
    yield _Line(ratio, prior.said, prior.call)
    yield _squares(samples, prior, _PRIOR_SAMPLES)
    few = len(samples) // _FEW
    for first in range(min(few, _STARTS)):
        yield _squares(samples[first::few], prior, _PRIOR_SAMPLES / 100)


def _squares(samples: Sequence[Sample], prior: _Line, strength: float) -> _Line:
    """Fit a line by least squares. The prior counts as `strength` typical samples."""
    weights = (_TYPICAL_RESULT**2 * strength, _TYPICAL_SAID**2 * strength, strength / 10)
    rows = [(s.result, s.said, 1.0) for s in samples]
    matrix = [
        [sum(row[i] * row[j] for row in rows) + (weights[i] if i == j else 0.0) for j in range(3)] for i in range(3)
    ]
    right = [
        sum(row[i] * s.growth for row, s in zip(rows, samples, strict=True)) + weights[i] * prior[i] for i in range(3)
    ]
    return _Line(*_solve(matrix, right))


def _solve(matrix: list[list[float]], right: list[float]) -> list[float]:
    """Solve a positive definite system. Elimination needs no pivoting here."""
    size = len(right)
    for i in range(size):
        for j in range(i + 1, size):
            factor = matrix[j][i] / matrix[i][i]
            matrix[j] = [below - factor * above for below, above in zip(matrix[j], matrix[i], strict=True)]
            right[j] -= factor * right[i]
    found = [0.0] * size
    for i in reversed(range(size)):
        found[i] = (right[i] - sum(matrix[i][j] * found[j] for j in range(i + 1, size))) / matrix[i][i]
    return found


def _bound_ratio(tokens_per_char: float) -> float:
    """Characters per token, limited to the range of real vocabularies."""
    low, high = _RANGE
    return min(max(1 / tokens_per_char, low), high) if tokens_per_char > 0 else high
