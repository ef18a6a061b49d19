"""compose.yaml keeps its promises, as far as that can be said without an engine."""

import json
import re
import shlex
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from shared.contract.services import SERVICES
from shared.runtime.bootstrap import BROKER_URL
from tests.fixtures.compose import FILE, ROOT, Unset, load
from tests.fixtures.packages import wheel

HOME_OF_SCHEMA = ("check-jsonschema", "0.39.0", "14ce5c94871c551268ea948ffe21e9f1464dc48fb20bf9a4c13deeaaf756cf9b")
"""A package that carries the schema of the Compose Specification."""

ENVIRONMENT = {"MUSTER_FLEET_DIR": "/srv/fleet", "MUSTER_UID": "1000", "MUSTER_GID": "1001", "HOME": "/home/ada"}
NEED_TMUX = ("spawner", "reconciler", "monitor", "board")

COMPOSE = load(ENVIRONMENT)
ALL: dict[str, dict[str, Any]] = COMPOSE["services"]
EXPECTED = ("prepare", "broker", *SERVICES)
RUNNING = tuple(name for name in SERVICES if name in ALL)
OURS = tuple(name for name in ("prepare", *SERVICES) if name in ALL)
"""Of what is there: one test alone tells what is missing."""

each_service = pytest.mark.parametrize("name", ALL)


def dockerfile() -> str:
    return str(ALL["spawner"]["build"]["dockerfile_inline"])


def mounts(name: str) -> dict[str, dict[str, Any]]:
    return {mount["target"]: mount for mount in ALL[name]["volumes"]}


def options(command: list[str]) -> dict[str, str]:
    return {name: value for name, value in pairwise(command) if name.startswith("--")}


@pytest.fixture(scope="module")
def specification() -> Draft202012Validator:
    schema = wheel(*HOME_OF_SCHEMA) / "check_jsonschema" / "builtin_schemas" / "vendor" / "compose-spec.json"
    return Draft202012Validator(json.loads(schema.read_text()))


def test_the_file_follows_the_compose_specification(specification: Draft202012Validator) -> None:
    for document in (COMPOSE, load()):
        faults = [f"{error.json_path}: {error.message[:300]}" for error in specification.iter_errors(document)]
        assert not faults


@pytest.mark.parametrize(("key", "wrong"), [("restrat", "no"), ("pull_policy", "perhaps"), ("ports", 1883)])
def test_the_specification_would_notice(specification: Draft202012Validator, key: str, wrong: Any) -> None:
    spoiled = {"services": {"broker": {**ALL["broker"], key: wrong}}}
    assert not specification.is_valid(spoiled)


def test_every_service_is_there_and_nothing_unknown() -> None:
    missing, unknown = set(EXPECTED) - set(ALL), set(ALL) - set(EXPECTED)
    assert not missing, f"compose.yaml has no block for {sorted(missing)}: copy that of a service like it"
    assert not unknown, f"compose.yaml has blocks for {sorted(unknown)}, which shared/contract/services.py lacks"


@pytest.mark.parametrize("name", ["MUSTER_FLEET_DIR", "MUSTER_UID", "MUSTER_GID"])
def test_what_has_to_be_given_is_asked_for_in_words(name: str) -> None:
    with pytest.raises(Unset, match=f"^{name}: set it to "):
        load({key: value for key, value in ENVIRONMENT.items() if key != name})


def test_images_are_pinned_to_an_exact_version() -> None:
    bases = re.findall(r"^FROM (\S+)", dockerfile(), re.MULTILINE)
    assert bases
    for image in (ALL["broker"]["image"], *bases):
        assert re.fullmatch(r"[a-z-]+:\d+\.\d+\.\d+(-[a-z]+)*", image)
    for name in OURS:
        assert (ALL[name]["image"], ALL[name]["pull_policy"]) == ("muster-fleet:local", "build")


def test_packages_are_installed_from_the_lock_file_by_hash() -> None:
    (install,) = re.findall(r"^RUN (pip .*)$", dockerfile(), re.MULTILINE)
    words = shlex.split(install)
    assert "--require-hashes" in words
    assert words[words.index("-r") + 1] == "/opt/muster/requirements.lock"
    assert len([line for line in dockerfile().splitlines() if "pip" in line or "curl" in line]) == 1


def test_everything_that_is_imported_is_copied_and_let_in() -> None:
    copied = set(re.findall(r"^COPY (\S+) /opt/muster/", dockerfile(), re.MULTILINE))
    assert copied == {"requirements.lock", "services", "shared", "registry", "mosquitto"}
    assert all((ROOT / name).exists() for name in copied)
    ignored = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if not line.startswith("#")]
    assert ignored[0] == "*"
    assert {line[1:] for line in ignored if line.startswith("!")} == copied


def test_the_layout_has_no_dockerfile() -> None:
    assert not list(ROOT.glob("*ockerfile*"))


@each_service
def test_nobody_is_root_or_has_more_than_needed(name: str) -> None:
    service = ALL[name]
    assert service["user"] == "1000:1001"
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert not {"privileged", "cap_add", "devices", "userns_mode", "ipc", "volumes_from", "env_file"} & set(service)
    assert service.get("network_mode") in (None, "none")


@each_service
def test_ports_are_published_on_loopback_only(name: str) -> None:
    for port in ALL[name].get("ports", ()):
        assert re.fullmatch(r"127\.0\.0\.1:(\d+):\1", port)
    assert bool(ALL[name].get("ports")) == (name in ("broker", "board"))


@each_service
def test_it_comes_back_after_a_crash(name: str) -> None:
    assert ALL[name]["restart"] == ("no" if name == "prepare" else "unless-stopped")


@each_service
def test_nothing_in_it_is_secret(name: str) -> None:
    environment = ALL[name].get("environment", {})
    assert set(environment) <= {BROKER_URL, "HOME"}
    text = json.dumps(ALL[name])
    assert not re.search(r"(?i:passw|secret|token|@broker)|-P ", text)
    assert not [word for word in re.findall(r"[A-Za-z0-9_-]{32,}", text) if not word.isalpha()]


@each_service
def test_only_those_who_need_tmux_reach_it(name: str) -> None:
    sockets = [mount for target, mount in mounts(name).items() if "tmux" in target]
    assert bool(sockets) == (name in NEED_TMUX), f"NEED_TMUX in this file and `*tmux` in compose.yaml differ on {name}"
    for mount in sockets:
        assert mount["source"] == mount["target"] == "/tmp/tmux-1000"  # noqa: S108  where tmux keeps its sockets
        assert mount["read_only"] is True, "else a container could start a tmux server of its own"


@each_service
def test_paths_are_the_same_inside_and_outside_and_never_made_up(name: str) -> None:
    for mount in ALL[name]["volumes"]:
        assert mount["type"] == "bind"
        assert mount["source"] == mount["target"]
        assert mount["bind"]["create_host_path"] is False
        assert "docker.sock" not in mount["source"]


def test_the_broker_sees_only_its_own_files() -> None:
    assert set(mounts("broker")) == {"/srv/fleet/.muster/broker"}
    assert ALL["broker"]["command"][-1].startswith("/srv/fleet/.muster/broker/")


def test_the_board_is_published_at_the_port_that_it_listens_on() -> None:
    port = options(ALL["board"]["command"])["--published-port"]
    assert ALL["board"]["ports"] == [f"127.0.0.1:{port}:{port}"]
    assert not [name for name in ALL if "profiles" in ALL[name]]


def test_services_tell_pids_and_topics_of_the_host() -> None:
    assert [name for name in ALL if ALL[name].get("pid") == "host"] == list(RUNNING)
    assert all(ALL[name]["uts"] == "host" for name in OURS)


def test_all_agree_on_where_the_broker_is() -> None:
    port = options(ALL["prepare"]["command"])["--port"]
    assert options(ALL["prepare"]["command"])["--listen"] == "0.0.0.0"  # noqa: S104  inside its own network
    assert ALL["broker"]["ports"] == [f"127.0.0.1:{port}:{port}"]
    assert f"-p {port} " in ALL["broker"]["healthcheck"]["test"][1]
    for name in RUNNING:
        assert ALL[name]["environment"][BROKER_URL] == f"mqtt://broker:{port}"


def test_nothing_starts_before_it_is_prepared() -> None:
    for name in ALL.keys() - {"prepare"}:
        assert ALL[name]["depends_on"]["prepare"] == {"condition": "service_completed_successfully"}


@pytest.mark.parametrize("name", ["broker", *RUNNING])
def test_what_stays_up_is_asked_how_it_is(name: str) -> None:
    check = ALL[name]["healthcheck"]
    assert check["test"][0] in ("CMD", "CMD-SHELL")
    assert {"interval", "timeout", "start_period"} <= set(check)
    if name in SERVICES:
        assert check["test"][-1] == f"/srv/fleet/.muster/run/{name}.lock"


def test_commands_are_modules_that_exist() -> None:
    for name in OURS:
        _python, dash_m, module, *_ = ALL[name]["command"]
        assert dash_m == "-m"
        path = ROOT / Path(*module.split("."))
        assert path.with_suffix(".py").is_file() or (path / "__main__.py").is_file()
        assert options(ALL[name]["command"])["--fleet"] == "/srv/fleet/fleet.yaml"


def test_the_file_says_no_name_of_a_machine() -> None:
    assert not re.search(r"/home/|/root/|https?://", FILE.read_text())
