"""No fault, trace, repr or log line shows what stands in a fleet file where secrets stand."""

import io
import json
import os
import re
import traceback
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from shared.errors import MusterError
from shared.fleet import BadFleetFile, FleetFile, load_fleet
from shared.fleet import launch_needs as needs
from shared.system.log import Log
from tests.unit.shared.fleet.test_fleet import write

CANARY = "sk-CANARY-7f3a"

SHAPES = [
    "{shape}",
    "'{shape}'",
    '"{shape}\\q"',
    "[{shape}]",
    "{{{shape}}}",
    "{{A={shape}}}",
    "{{A={shape}: x}}",
    "{{A: [{shape}]}}",
    "{{A: {{{shape}: x}}}}",
    "{{A: {{B: {shape}}}}}",
    "{{? [{shape}] : x}}",
    "{{A: {shape}, A: {shape}}}",
    "{{A: '{shape}', A: 'it''s \" with value {shape}'}}",
    "{{A: *{shape}}}",
    "{{A: &{shape} &b c}}",
    "{{A: !{shape} x}}",
    "{{A: !{shape}! x}}",
    "{{A: !<{shape} x}}",
    "{{A: !!int {shape}}}",
    "{{A: !!float {shape}}}",
    "{{A: !!bool {shape}}}",
    "{{A: !!timestamp {shape}}}",
    "{{A: !!binary {shape}}}",
    "{{A: !!omap [{shape}: x]}}",
    "!!set {{{shape}}}",
    "{{<<: {shape}}}",
    "{{<<: *{shape}}}",
    "{{A: @{shape}}}",
    "{{A: %{shape}}}",
    '{{A: "{shape}\\0"}}',
    '{{A: "{shape}\\ud800"}}',
    "{{A: '{shape}' x}}",
    "{{A: '{shape}",
    "|\n{shape}",
    "{{\tA: {shape}",
]
"""What people write where one text or mapping is meant; all wrong for one place or another."""

ODD = ":'\"{}[],&*!|>%@#? \n\t<\\"
PLACES = [
    "agents:\n  a:\n    env: {value}\n",
    "agents:\n  a:\n    env:\n      TOKEN: {value}\n",
    "agents:\n  a:\n    env:\n    TOKEN: {value}\n",
    "agents:\n  a:\n    env_file: {value}\n",
    "agents:\n  a:\n    env_from: {value}\n",
    "agents: {{a: {{env: {{TOKEN: {value}}}, dri: x}}}}\n",
    "defaults:\n  env: {value}\n",
    "backends:\n  demo:\n    env: {value}\n",
    "services:\n  s:\n    argv: [x]\n    env: {value}\n",
    "environment:\n  allow: {value}\n",
    "broker:\n  endpoints: {value}\n",
    "broker:\n  endpoints: ['mqtt://user:{value}@host']\n",
]


def everything_said(path: Path) -> str:
    """All that a person or a log could see of loading this file."""
    try:
        fleet = load_fleet(path)
    except BadFleetFile as bad:
        return everything_about(bad)
    seen = [repr(fleet), str(fleet), repr(fleet.agents), repr(fleet.backends), str(fleet.declared.model_dump())]
    for agent in fleet.agents:
        try:
            needs.variables_of(fleet, agent, fleet.profile(agent), {})
        except MusterError as error:
            seen += [str(error), *traceback.format_exception(error)]
    return "\n".join(seen)


def everything_about(bad: BadFleetFile) -> str:
    assert bad.__context__ is None, "what was handled knows what was written"
    log = io.StringIO()
    Log("spawner", log).failure("could not read", bad)
    return "\n".join([str(bad), repr(bad), *traceback.format_exception(bad), log.getvalue(), repr(vars(bad))])


@pytest.mark.filterwarnings("ignore::ruamel.yaml.error.ReusedAnchorWarning")
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.split("{value}")[0].split()[-1])
def test_a_secret_is_never_shown(tmp_path: Path, place: str, shape: str) -> None:
    path = tmp_path / "fleet.yaml"
    path.write_text(place.format(value=shape.format(shape=CANARY)))
    said = everything_said(path).replace(f"PosixPath('{CANARY}')", "")  # an `env_file` may be called so
    assert CANARY.lower() not in said.lower()


@pytest.mark.filterwarnings("ignore::ruamel.yaml.error.ReusedAnchorWarning")
@given(st.sampled_from(PLACES), st.text(ODD + "ab0/=-", max_size=12), st.text(ODD, max_size=4))
@example(PLACES[5], "},{", "")
@settings(max_examples=300, deadline=None)
def test_a_secret_among_any_characters_is_never_shown(
    tmp_path_factory: pytest.TempPathFactory, place: str, before: str, after: str
) -> None:
    path = tmp_path_factory.getbasetemp() / "secret-fleet.yaml"
    path.write_text(place.format(value=f"{before}{CANARY}{after}"))
    # A key is shown as it is written, for a person must find it; below `env` only what can be a variable is.
    said = "\n".join(line for line in everything_said(path).splitlines() if "unknown key" not in line)
    assert CANARY.lower() not in re.sub(r"PosixPath\(.*?\)", "", said).lower()


@pytest.mark.parametrize(
    "url",
    [
        "mqtt://user:{}@host:1883",
        "mqtt://user:{}@host:port",
        "mqtt://user:a/{}@host",
        "user:{}@host:1883",
        "mqtt://host:{}",
        "mqtt://[{}@host",
        "mqtt://host/?password={}",
        "mqtt://host#{}",
        "{}",
    ],
)
def test_a_password_in_an_address_is_never_shown(tmp_path: Path, url: str) -> None:
    said = everything_said(write(tmp_path, f"broker: {{endpoints: ['{url.format(CANARY)}']}}\n"))
    assert "broker.endpoints.0" in said
    assert CANARY.lower() not in said.lower()


def test_a_good_files_secrets_are_never_shown(tmp_path: Path) -> None:
    text = """\
        defaults: {{env: {{A: {0}}}}}
        backends: {{demo: {{env: {{B: {0}}}}}, mine: {{like: demo}}}}
        agents: {{a: {{env: {{C: {0}}}}}, b: {{backend: mine}}}}
        services: {{s: {{argv: [x], env: {{D: {0}}}}}}}
        """
    path = write(tmp_path, text.format(CANARY))
    assert CANARY not in everything_said(path)
    fleet = load_fleet(path)
    assert CANARY not in json.dumps(fleet.declared.model_dump(mode="json"))
    assert needs.variables_of(fleet, "a", fleet.profile("a"), {}) == {"A": CANARY, "B": CANARY, "C": CANARY}


def test_a_broken_edit_shows_no_secret(tmp_path: Path) -> None:
    path = write(tmp_path, "host: good\n")
    file = FleetFile(path)
    write(path, f"agents: {{a: {{env: {{A: {CANARY}, A: {CANARY}}}}}}}\n")
    file.refresh()
    assert "is there twice" in file.fault
    assert CANARY not in file.fault


@pytest.mark.parametrize("written", [f"TOKEN={CANARY}\nwrong {CANARY}\n", f"{CANARY}", f"TOKEN: {CANARY}"])
def test_a_fault_of_an_env_file_shows_no_secret(tmp_path: Path, written: str) -> None:
    secrets = tmp_path / "secrets"
    secrets.write_text(written)
    secrets.chmod(0o600)
    fleet = load_fleet(write(tmp_path, "agents: {a: {env_file: secrets}}\n"))
    with pytest.raises(MusterError, match=r"secrets, line \d: not NAME=value") as caught:
        needs.variables_of(fleet, "a", fleet.profile("a"), os.environ)
    assert CANARY not in "".join(traceback.format_exception(caught.value))


def test_a_secret_in_place_of_its_file_is_not_shown(tmp_path: Path) -> None:
    fleet = load_fleet(write(tmp_path, f"agents: {{a: {{env_file: TOKEN={CANARY}}}}}\n"))
    with pytest.raises(MusterError, match="the env_file of agent 'a' can't be read: No such file") as caught:
        needs.variables_of(fleet, "a", fleet.profile("a"), {})
    assert CANARY not in "".join(traceback.format_exception(caught.value))
