"""A session's commands are its own, and old ones are forgotten."""

from services.board.web.command_ledger import MOST_COMMANDS, CommandLedger
from shared.client.board_access import MOST_SESSIONS, BoardSession


def session(name: str) -> BoardSession:
    return BoardSession(name, "token", "ada", 0, 1)


def test_a_session_has_its_own_commands() -> None:
    now = [0.0]
    ledger = CommandLedger(lambda: now[0])
    ledger.add(session("one"), "c1")
    now[0] = 5.0
    ledger.add(session("one"), "c2")
    assert ledger.of(session("one")) == [("c1", 5.0), ("c2", 0.0)]
    assert ledger.has(session("one"), "c1")
    assert not ledger.has(session("two"), "c1")
    assert ledger.of(session("two")) == []


def test_the_oldest_are_forgotten() -> None:
    ledger = CommandLedger()
    for number in range(MOST_COMMANDS + 1):
        ledger.add(session("one"), f"c{number}")
    assert len(ledger.of(session("one"))) == MOST_COMMANDS
    assert not ledger.has(session("one"), "c0")
    for number in range(MOST_SESSIONS):
        ledger.add(session(f"s{number}"), "c")
    assert ledger.of(session("one")) == []
