"""Whether something grows: its slope over the later two thirds of a run, against its level in the first third. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, linear_regression

TOLERATED = 0.10
"""Of the level of the first third: what it may gain in the rest of the run and count as flat."""


@dataclass(frozen=True)
class Series:
    name: str
    unit: str
    samples: Sequence[tuple[float, float]]
    """Time and value."""
    slack: float = 0.0
    """A gain in its unit that says nothing: a page of memory, a handle that is open for a moment."""
    bound: float | None = None
    """It may grow up to here: a log until it is cut."""


@dataclass(frozen=True)
class Growth:
    first: float
    last: float
    highest: float
    gained: float
    """By its slope after the first third, until the end."""
    verdict: str


def growth(series: Series) -> Growth:
    values = [value for _, value in series.samples]
    third = len(values) // 3
    if third < 2:
        raise ValueError(f"{series.name}: {len(values)} samples say nothing; let the run last longer")
    later = series.samples[third:]
    times = [at for at, _ in later]
    slope = linear_regression(times, [value for _, value in later]).slope
    first, gained = fmean(values[:third]), slope * (times[-1] - times[0])
    if series.bound is not None:
        verdict = "flat" if max(values) <= series.bound else "grows"
    else:
        verdict = "grows" if gained > max(TOLERATED * first, series.slack) else "flat"
    return Growth(first, fmean(values[-third:]), max(values), gained, verdict)


def table(all_series: Sequence[Series]) -> str:
    rows = [f"{'what':28}{'unit':>8}{'first third':>13}{'last third':>12}{'highest':>10}{'slope':>10}  verdict"]
    for series in all_series:
        found = growth(series)
        numbers = f"{found.first:>13.1f}{found.last:>12.1f}{found.highest:>10.1f}{found.gained:>+10.1f}"
        rows.append(f"{series.name:28}{series.unit:>8}{numbers}  {found.verdict}")
    return "\n".join(rows)
