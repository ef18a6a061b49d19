"""The registrar: what everybody says becomes one file, and each change is shown."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from registry import RegistryFile
from services.registrar.service import Registrar
from shared.errors import Retryable
from shared.events import AgentExited, AgentSpawned, AgentState, AgentStopped, Data, Envelope, Event, SessionMissing
from shared.following import Heard
from shared.states import Desired, Status
from shared.topics import AGENT_STATE, TOPICS, row_for
from shared.turn import Turn

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def turn(*events: Event) -> Turn:
    heard = [
        Heard(
            "box",
            row_for(event),
            Envelope[Any](
                type="muster.test",
                subject="",
                time=NOW + timedelta(seconds=place),
                data=event,
                source="/box/spawner",
                seq=place,
                epoch="e",
                id=f"e-{place}",
            ),
        )
        for place, event in enumerate(events, start=1)
    ]
    return Turn("registrar", NOW, poll=False, heard=heard, asked=[], memory={})


def spawned(agent: str = "builder", spawn: str = "s1") -> AgentSpawned:
    return AgentSpawned(agent=agent, spawn=spawn, backend="demo", workspace="/", session=agent, pane="%1", pid=7)


def shown(states: list[Data]) -> list[tuple[str, Status]]:
    return [(each.agent, each.status) for each in states if isinstance(each, AgentState)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "registry.yaml"


@pytest.fixture
def registrar(path: Path) -> Registrar:
    return Registrar(RegistryFile(path))


def step(registrar: Registrar, *events: Event) -> Turn:
    taken = turn(*events)
    registrar.step(taken)
    return taken


def test_what_was_said_is_recorded_and_shown(registrar: Registrar, path: Path) -> None:
    taken = step(registrar, spawned(), spawned("tester", "s2"))
    assert shown(taken.shown) == [("builder", Status.RUNNING), ("tester", Status.RUNNING)]
    assert set(RegistryFile(path).records()) == {"builder", "tester"}


def test_of_several_events_about_an_agent_the_last_state_is_shown(registrar: Registrar) -> None:
    taken = step(registrar, spawned(), AgentExited(agent="builder", spawn="s1", exit_status=1), spawned(spawn="s2"))
    assert shown(taken.shown) == [("builder", Status.RUNNING)]


def test_nothing_new_writes_nothing(registrar: Registrar, path: Path) -> None:
    assert step(registrar).shown == []
    assert not path.exists()
    step(registrar, spawned())
    before = path.stat().st_mtime_ns
    assert step(registrar, SessionMissing(agent="builder", spawn="s0", session="builder")).shown == []
    assert step(registrar).shown == []
    assert path.stat().st_mtime_ns == before


def test_events_that_come_again_after_a_crash_change_nothing(registrar: Registrar, path: Path) -> None:
    events = (spawned(), SessionMissing(agent="builder", spawn="s1", session="builder"), spawned("tester", "s2"))
    step(registrar, *events)
    before = path.read_bytes()
    again = Registrar(RegistryFile(path))
    step(again, *events)
    assert path.read_bytes() == before
    assert step(again, *events).shown == []


def test_all_states_are_told_again_on_a_new_connection(registrar: Registrar, path: Path) -> None:
    step(registrar, spawned(), AgentStopped(agent="builder", spawn="s1", reason="asked for"), spawned("tester", "s2"))
    for each in (registrar, Registrar(RegistryFile(path))):
        assert shown(list(each.states())) == [("builder", Status.STOPPED), ("tester", Status.RUNNING)]


def test_a_broken_registry_is_waited_for_and_the_last_good_states_stay(registrar: Registrar, path: Path) -> None:
    step(registrar, spawned())
    good = path.read_text()
    path.write_text("agents: {")
    with pytest.raises(Retryable, match=r"registry\.yaml, line"):
        step(registrar, spawned("tester", "s2"))
    assert shown(list(registrar.states())) == [("builder", Status.RUNNING)]
    path.write_text(good)
    assert shown(step(registrar, spawned("tester", "s2")).shown) == [("tester", Status.RUNNING)]


def test_a_file_that_can_not_be_written_is_tried_again(
    registrar: Registrar, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full)
        with pytest.raises(OSError, match="No space left"):
            step(registrar, spawned())
    assert shown(step(registrar, spawned()).shown) == [("builder", Status.RUNNING)]
    assert set(RegistryFile(path).records()) == {"builder"}


def test_a_persons_edit_is_shown(registrar: Registrar, path: Path) -> None:
    """The registrar reads people's edits; the retained states follow the file."""
    step(registrar, spawned())
    path.write_text(path.read_text().replace("desired: running", "desired: stopped"))
    taken = step(registrar)
    assert [each.desired for each in taken.shown if isinstance(each, AgentState)] == [Desired.STOPPED]


def test_it_follows_whoever_writes_about_agents_and_owns_their_states() -> None:
    about_agents = {row for row in TOPICS if row.pattern.startswith("agent/") and not row.retain}
    assert set(Registrar.follows) == about_agents
    assert Registrar.owns == (AGENT_STATE,)
    assert AGENT_STATE.writers == (Registrar.name,)
