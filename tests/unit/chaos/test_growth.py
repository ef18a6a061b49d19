"""What counts as growth, and that it is seen."""

import random

import pytest

from tests.chaos.growth import Series, growth, table

CHANCE = random.Random(3)


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ([40.0] * 60, "flat"),
        ([40 + CHANCE.uniform(-2, 2) for _ in range(60)], "flat"),
        ([20.0 + min(place, 15) for place in range(60)], "flat"),  # it warms up, and then stays
        ([40 + place / 4 for place in range(60)], "grows"),
        ([40 + place / 4 + CHANCE.uniform(-2, 2) for place in range(60)], "grows"),
        ([40.0] * 30 + [60.0] * 30, "grows"),
        ([60.0] * 30 + [40.0] * 30, "flat"),
    ],
)
def test_what_grows_is_seen(values: list[float], verdict: str) -> None:
    series = Series("spawner", "MB", list(enumerate(values)))
    assert growth(series).verdict == verdict
    assert table([series]).endswith(verdict)


def test_a_little_more_of_little_is_no_growth() -> None:
    assert growth(Series("threads", "", [(at, 4 + (at > 30)) for at in range(60)], slack=2)).verdict == "flat"


@pytest.mark.parametrize(("highest", "verdict"), [(10.0, "flat"), (10.5, "grows")])
def test_what_is_cut_may_grow_up_to_its_bound(highest: float, verdict: str) -> None:
    values = [(at, highest * at / 59) for at in range(60)]
    assert growth(Series("log", "MB", values, bound=10.0)).verdict == verdict


def test_too_few_samples_say_nothing() -> None:
    with pytest.raises(ValueError, match="let the run last longer"):
        growth(Series("x", "MB", [(0, 1), (1, 1)]))
