"""The registry by hand: what people write into it, and what becomes of it when it is lost."""

from typing import Any

import pytest

from registry.records import ACTIVITY_FIELDS
from tests.e2e.hands import BOTH, by_hand, demo_by_hand, maybe_without_broker
from tests.fixtures.broker import wait_until
from tests.fixtures.fleet import RunningFleet, Watcher


@BOTH
def test_a_wish_that_is_typed_into_the_registry_is_carried_out(fleet: RunningFleet, alone: bool) -> None:
    path = fleet.fleet.registry
    with maybe_without_broker(fleet, without=alone):
        text = path.read_text()
        head, _, tail = text.partition("  builder:\n")
        path.write_text(f"{head}  builder:  # mine\n{tail.replace('desired: running', 'desired: stopped', 1)}")
        wait_until(lambda: fleet.pane("builder") is None, "it is stopped")
        fleet.wait_for_status("builder", "stopped")
        assert "  builder:  # mine\n" in path.read_text()
        assert fleet.pane("reviewer") is not None
        path.write_text(path.read_text().replace("desired: stopped", "desired: running"))
        wait_until(lambda: fleet.pane("builder"), "it runs again")
        fleet.wait_for_status("builder", "running")


def test_a_broken_edit_is_told_and_the_fleet_goes_on(fleet: RunningFleet) -> None:
    path = fleet.fleet.registry
    watcher: Watcher = fleet.watch("muster/box/#")
    good = path.read_text()
    path.write_text(good.replace("agents:", "agents: ]", 1))

    def complaint() -> str:
        said = [doc["data"]["reason"] for doc in watcher.documents("service/registrar/state")]
        return said[-1] if said else ""

    said = wait_until(lambda: complaint() if "registry.yaml, line" in complaint() else "", "the registrar says where")
    assert "column" in said
    old = fleet.kill_session("builder")
    fleet.wait_for_new_session("builder", old)
    wait_until(lambda: watcher.drifts("builder")[-1:] == ["missing"], "drifts are told all the same")
    wait_until(
        lambda: watcher.documents("agent/builder/state")[-1]["data"]["spawn"] == fleet.spawn_of("builder"), "and shown"
    )
    assert "as the journal has them" in fleet.cli("status", code=3).stdout
    path.write_text("# mended by hand\n" + good)
    wait_until(lambda: fleet.records()["builder"].spawn == fleet.spawn_of("builder"), "the file follows")
    assert path.read_text().startswith("# mended by hand\n")
    wait_until(lambda: complaint() == "", "nothing is wrong any more")


def test_a_registry_that_was_lost_is_written_anew(fleet: RunningFleet) -> None:
    old = fleet.kill_session("builder")
    fleet.wait_for_new_session("builder", old)
    wait_until(lambda: fleet.records()["builder"].spawn == fleet.spawn_of("builder"), "it is recorded")
    wait_until(lambda: fleet.records()["builder"].transcript, "its file is known")
    before, ended = _lasting(fleet), dict(fleet.history())
    assert set(ended) == {old}
    fleet.fleet.registry.unlink()
    wait_until(lambda: fleet.records().keys() == before.keys(), "it is back")
    assert _lasting(fleet) == before
    assert fleet.history() == ended
    wait_until(lambda: all(record.activity for record in fleet.records().values()), "what they do is told as before")


@pytest.mark.long
def test_registry_and_journal_may_both_be_lost(fleet: RunningFleet) -> None:
    """All that is left is tmux and the agents' own files."""
    wait_until(lambda: fleet.records()["builder"].transcript, "its file")
    by_hand(fleet, "new-session", "-d", "-s", "mine", demo_by_hand(fleet, "c-5"))
    fleet.wait_for_status("mine", "running")
    wait_until(lambda: fleet.records()["mine"].transcript, "its file")
    before = {agent: (r.spawn, r.conversation, r.transcript, r.backend) for agent, r in fleet.records().items()}
    fleet.cli("down")
    for lost in ("registry.yaml", "journal.db", "journal.db-wal", "journal.db-shm"):
        (fleet.fleet.home / lost).unlink(missing_ok=True)
    fleet.up()

    def now() -> dict[str, Any]:
        return {agent: (r.spawn, r.conversation, r.transcript, r.backend) for agent, r in fleet.records().items()}

    wait_until(lambda: now() == before, f"{before} is known again; known is {now()}", 30)


def _lasting(fleet: RunningFleet) -> dict[str, dict[str, Any]]:
    """What is recorded of each agent, but for what it is doing at the moment."""
    return {agent: record.model_dump(exclude=set(ACTIVITY_FIELDS)) for agent, record in fleet.records().items()}
