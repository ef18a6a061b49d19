"""The spawner is SIGKILLed at every point of a command: neither a doubled session nor a lost command comes of it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fixtures.lives import Lives

POINTS = range(1, 16)
"""More than there are in any of these commands: the last ones show a life without an accident."""


@pytest.fixture
def lives(tmp_path: Path) -> Iterator[Lives]:
    lives = Lives(tmp_path)
    yield lives
    lives.end()


@pytest.mark.parametrize("point", POINTS)
def test_a_spawn_is_carried_out_once(lives: Lives, point: int) -> None:
    reply = lives.carried_out_over_a_death(point, "spawn")
    assert reply["ok"], reply
    (session,) = lives.sessions()
    assert not session.dead
    told = lives.told()
    assert [data["kind"] for data in told] == ["spawned"]
    assert told[0]["spawn"] == session.spawn == reply["result"]["spawn"]


@pytest.mark.parametrize("point", POINTS[::2])
def test_a_restart_is_carried_out_once(lives: Lives, point: int) -> None:
    with lives.life("services.spawner"):
        before = lives.answer(lives.ask("spawn"))["result"]["spawn"]
    reply = lives.carried_out_over_a_death(point, "restart", fresh=True)
    assert reply["ok"], reply
    (session,) = lives.sessions()
    told = [data for data in lives.told() if data["kind"] != "spawned"]
    assert session.spawn != before
    assert [data["kind"] for data in told] == ["restarted"]
    assert told[0]["spawn"] == session.spawn


@pytest.mark.long
@pytest.mark.parametrize("point", range(1, 28))
def test_a_text_is_submitted_once(lives: Lives, point: int) -> None:
    with lives.life("services.spawner"):
        lives.answer(lives.ask("spawn"))
    text = "do\nthis -- $(now)"
    reply = lives.carried_out_over_a_death(point, "send", text=text)
    assert reply["ok"], reply
    assert lives.heard() == ["build", text]
    assert [data["kind"] for data in lives.told()] == ["spawned", "sent"]
