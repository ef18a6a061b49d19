"""What follows from the service manifest: packages, console scripts, roles, compose services, docs."""

import tomllib
from pathlib import Path

import pytest

from shared.contract.services import MANIFEST, SERVICES, ServiceEntry
from shared.contract.topics import EVENTS, TOPICS, rows
from shared.fleet.declaration import Declaration, ServiceSwitch
from shared.fleet.fleet import Fleet

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("entry", MANIFEST, ids=lambda entry: str(entry.name))
def test_a_service_is_a_package_with_a_script(entry: ServiceEntry) -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert scripts[f"muster-{entry.name}"] == f"services.{entry.name}.__main__:main"
    assert (ROOT / "services" / entry.name / "__main__.py").is_file()


@pytest.mark.parametrize("entry", MANIFEST, ids=lambda entry: str(entry.name))
def test_what_a_service_says_and_hears_are_topics(entry: ServiceEntry) -> None:
    assert rows((*entry.writes, *entry.follows, *entry.hints))
    assert not set(entry.follows) & set(entry.hints)
    assert set(rows(entry.follows)) <= set(EVENTS)


def test_a_topic_has_one_service() -> None:
    written = [pattern for entry in MANIFEST for pattern in entry.writes]
    assert len(written) == len(set(written))
    assert all(row.writers for row in TOPICS)


@pytest.mark.parametrize("entry", MANIFEST, ids=lambda entry: str(entry.name))
def test_the_readme_says_what_a_service_does(entry: ServiceEntry) -> None:
    assert f"| {entry.name} | {entry.does} |" in (ROOT / "README.md").read_text()


def test_an_optional_service_can_be_switched_off() -> None:
    optional = [entry.name for entry in MANIFEST if entry.optional]
    assert optional
    for name in optional:
        declared = Declaration.model_validate({name: ServiceSwitch(enabled=False)})
        assert Fleet(ROOT / "fleet.yaml", declared).services == tuple(each for each in SERVICES if each != name)
    assert Fleet(ROOT / "fleet.yaml", Declaration()).services == SERVICES
