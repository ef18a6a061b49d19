"""Who may write what: from the topic table, to mosquitto's file and NATS subjects."""

import subprocess
import sys
from pathlib import Path

import pytest

from shared.contract.services import PEOPLE, SERVICES
from shared.contract.topics import COMMAND, DEFAULT_OWNER, EVERY_SERVICE, TOPICS, Space
from shared.messaging.broker.acl import ANY_HOST, FILE, BrokerRole, committed, render, roles
from shared.messaging.broker.nats import subjects

ROOT = Path(__file__).parents[5]
BOX = {role.name: role for role in roles(Space("box"))}


def test_every_service_and_person_has_a_role() -> None:
    assert tuple(BOX) == (*SERVICES, *PEOPLE)


def test_every_writer_in_the_table_is_a_role() -> None:
    assert {writer for row in TOPICS for writer in row.writers} - {EVERY_SERVICE} <= set(BOX)


def test_everybody_reads_everything_below_the_prefix() -> None:
    assert {role.reads for role in BOX.values()} == {("muster/#",)}


def test_a_viewer_writes_nothing() -> None:
    assert BOX["viewer"].writes == ()


def test_an_operator_commands_on_its_host() -> None:
    assert BOX["operator"].writes == ("muster/box/command/+",)


@pytest.mark.parametrize(
    ("name", "own"),
    [
        ("spawner", "muster/box/agent/+/lifecycle"),
        ("reconciler", "muster/box/agent/+/drift"),
        ("registrar", "muster/box/agent/+/state"),
    ],
)
def test_a_service_writes_its_own_topics_and_no_other_service_does(name: str, own: str) -> None:
    state = f"muster/box/service/{name}/state"
    assert {own, state, "muster/box/reply/+", "muster/+/command/replay"} <= set(BOX[name].writes)
    for other in set(BOX) - {name}:
        assert not {own, state} & set(BOX[other].writes)


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_leaves_its_host_only_to_ask_for_a_replay(name: str) -> None:
    outside = [topic for topic in BOX[name].writes if not topic.startswith("muster/box/")]
    assert outside == [COMMAND.filter(Space(ANY_HOST), verb="replay")]


@pytest.mark.parametrize("name", SERVICES)
def test_only_the_default_owner_may_clear_a_retained_command(name: str) -> None:
    assert ("muster/box/command/+" in BOX[name].writes) == (name == DEFAULT_OWNER)


def test_the_prefix_is_a_setting() -> None:
    other = {role.name: role for role in roles(Space("box", prefix="team/agents"))}
    assert other["operator"] == BrokerRole("operator", ("team/agents/box/command/+",), ("team/agents/#",))


def test_a_role_as_mosquitto_reads_it() -> None:
    assert render([BrokerRole("a", ("x/+", "y"), ("z/#",)), BrokerRole("b", (), ("z/#",))]) == (
        "user a\ntopic read z/#\ntopic write x/+\ntopic write y\n\nuser b\ntopic read z/#\n"
    )


def test_the_committed_file_is_current() -> None:
    assert FILE.read_text() == committed(Space(ANY_HOST)), "run: ./muster test --write"


def test_the_module_prints_the_committed_file() -> None:
    printed = subprocess.run(
        [sys.executable, "-m", "shared.messaging.broker.acl"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert printed.stdout == FILE.read_text()


@pytest.mark.parametrize(
    ("topic", "meant"),
    [
        ("muster/box/command/+", ["muster.box.command.*"]),
        ("muster/+/agent/a_b-c/state", ["muster.*.agent.a_b-c.state"]),
        ("muster/#", ["muster", "muster.>"]),
        ("#", [">"]),
        ("v1.2/x", ["v1//2.x"]),
    ],
)
def test_a_topic_as_nats_subjects(topic: str, meant: list[str]) -> None:
    assert list(subjects(topic)) == meant
