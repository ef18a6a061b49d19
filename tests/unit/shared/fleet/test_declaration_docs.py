"""docs/fleet.md says what the models say: every key is there, and no default is wrong."""

import re
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

from services.spawner.sessions.restarts import GiveUp, RestartAt, next_restart
from shared.fleet import BadFleetFile, RestartPolicy, load_fleet
from shared.fleet.profiles import shipped
from shared.fleet.section import Section
from tests.unit.cli.test_init import all_kinds

PAGE = (Path(__file__).parents[4] / "docs" / "fleet.md").read_text(encoding="utf-8")
KINDS = [kind for kind in all_kinds() if kind.__module__.startswith("shared.fleet")]


def rows() -> Iterator[tuple[str, str]]:
    """Key and default of every row; a row may be for several keys."""
    for line in PAGE.splitlines():
        cells = [cell.strip() for cell in line.replace("\\|", "¦").split("|")[1:-1]]
        if len(cells) == 3:
            yield from ((key.rpartition(".")[2], cells[1].strip("`")) for key in re.findall(r"`([\w.]+)`", cells[0]))


ROWS = list(rows())


def as_written(default: Any) -> str | None:
    """A default as the page writes it, where that is short."""
    match default:
        case bool():
            return str(default).lower()
        case Enum():
            return str(default.value)
        case int() | float():
            return f"{default:g}"
        case [] | {}:
            return "[]" if default == [] else "{}"
    return None


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_key_is_there_with_its_default(kind: type[Section]) -> None:
    for key, field in kind.model_fields.items():
        shown = {default for name, default in ROWS if name == key}
        assert shown or re.search(rf"\b{key}\b", PAGE), (
            f"docs/fleet.md does not name {key!r} of {kind.__name__}: add a row (key, default, meaning) to its table"
        )
        wanted = as_written(field.default)
        if wanted is not None and shown:
            assert shown & {wanted, "", "as for agents"}, (
                f"docs/fleet.md says that the default of {key!r} is {shown}; {kind.__name__} says {wanted}"
            )


def test_every_number_in_a_table_is_a_default() -> None:
    numbers = {(key, f"{float(shown):g}") for key, shown in ROWS if re.fullmatch(r"\d[\d.]*", shown)}
    defaults = {(key, as_written(field.default)) for kind in KINDS for key, field in kind.model_fields.items()}
    assert numbers <= defaults, f"docs/fleet.md shows defaults that no model has: {sorted(numbers - defaults)}"
    assert len(numbers) > 20


def test_every_shipped_backend_is_named() -> None:
    (sentence,) = re.findall(r"^(.+) come with Muster", PAGE, re.MULTILINE)
    assert set(re.findall(r"`(\w+)`", sentence)) == set(shipped()), (
        "the sentence `… come with Muster` under `backends` in docs/fleet.md must name the folders of shared/agents"
    )


@pytest.mark.parametrize("block", re.findall(r"```yaml\n(.+?)```", PAGE, re.DOTALL))
def test_every_example_loads(tmp_path: Path, block: str) -> None:
    path = tmp_path / "fleet.yaml"
    path.write_text(block)
    try:
        load_fleet(path)
    except BadFleetFile as bad:
        pytest.fail(str(bad))


def test_the_worked_example_is_true() -> None:
    policy, now, deaths, waits = RestartPolicy(), 0.0, [], []
    while True:
        deaths.append(now)
        verdict = next_restart(policy, deaths)
        if isinstance(verdict, GiveUp):
            break
        waits.append(verdict.when - now)
        now = verdict.when
    assert (waits, len(deaths), now) == ([1, 2, 4, 8, 16], 6, 31)
    assert "after 1, 2, 4, 8 and 16 s; the sixth death, 31 s after the first," in PAGE

    every_100 = [100.0 * number for number in range(31)]
    assert next_restart(policy, every_100[:30]) == RestartAt(every_100[29] + 1, 1)
    assert isinstance(next_restart(policy, every_100), GiveUp)
    assert every_100[-1] == 50 * 60
    assert isinstance(next_restart(policy, [180.0 * number for number in range(1_000)]), RestartAt)
