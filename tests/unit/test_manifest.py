"""What follows from the service manifest: packages, console scripts, roles, compose services, docs."""

import ast
import tomllib
from pathlib import Path

import pytest

from shared.contract.commands import VERBS, Command
from shared.contract.services import MANIFEST, SERVICES, ServiceEntry
from shared.contract.topics import EVENTS, EVERY_SERVICE, TOPICS, rows
from shared.fleet.declaration import Declaration
from shared.fleet.fleet import Fleet

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("entry", MANIFEST, ids=lambda entry: str(entry.name))
def test_a_service_is_a_package_with_a_script(entry: ServiceEntry) -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    name, main = f"muster-{entry.name}", f"services.{entry.name}.__main__:main"
    assert scripts.get(name) == main, f'add to [project.scripts] in pyproject.toml: {name} = "{main}"'
    assert (ROOT / "services" / entry.name / "__main__.py").is_file(), f"add services/{entry.name}/__main__.py"


@pytest.mark.parametrize("entry", MANIFEST, ids=lambda entry: str(entry.name))
def test_what_a_service_says_and_hears_are_topics(entry: ServiceEntry) -> None:
    named = {*entry.writes, *entry.follows, *entry.hints}
    unknown = named - {row.pattern for row in TOPICS}
    assert named
    assert not unknown, f"add a row to shared/contract/topics.py, in EVENTS or STATES too, for {sorted(unknown)}"
    assert not set(entry.follows) & set(entry.hints), f"{entry.name} has a topic in both `follows` and `hints`"
    assert set(rows(entry.follows)) <= set(EVENTS), f"{entry.name} follows a topic without events: make it a hint"


def test_a_topic_has_one_service() -> None:
    written = [pattern for entry in MANIFEST for pattern in entry.writes]
    assert len(written) == len(set(written)), "two services write one topic in shared/contract/services.py"
    unwritten = [row.pattern for row in TOPICS if not row.writers]
    assert not unwritten, f"no service in shared/contract/services.py has {unwritten} in its `writes`"


@pytest.mark.parametrize("entry", MANIFEST, ids=lambda entry: str(entry.name))
def test_the_readme_says_what_a_service_does(entry: ServiceEntry) -> None:
    row = f"| {entry.name} | {entry.does} |"
    assert row in (ROOT / "README.md").read_text(), f"the table `What runs` of README.md needs a row: {row} … |"


ON, OFF = {"enabled": True}, {"enabled": False}


def test_an_optional_service_can_be_switched_off() -> None:
    optional = [entry.name for entry in MANIFEST if entry.optional]
    assert optional
    for name in optional:
        assert name in Declaration.model_fields, (
            f"add to Declaration in shared/fleet/declaration.py: {name}: ServiceSwitch = ServiceSwitch()"
        )
        switches = dict.fromkeys(optional, ON)
        assert _services(switches) == SERVICES
        assert _services({**switches, name: OFF}) == tuple(each for each in SERVICES if each != name)


def _services(switches: dict[str, dict[str, bool]]) -> tuple[str, ...]:
    return Fleet(ROOT / "fleet.yaml", Declaration.model_validate(switches)).services


@pytest.mark.parametrize("command", [each for each in VERBS.values() if each.owner != EVERY_SERVICE])
def test_a_verb_is_handled_by_its_owner(command: type[Command]) -> None:
    sources = (ROOT / "services" / command.owner).rglob("*.py")
    names = {
        node.id for path in sources for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Name)
    }
    assert command.__name__ in names, (
        f"services/{command.owner}/ has no handler for {command.verb}: docs/contributing.md"
    )
