"""The verbs that are one command each: what is sent for the words that were typed."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from services.cli import command
from services.cli.__main__ import main
from shared.commands import Adopt, Command, Forget, Rebuild, Reply
from shared.fleet import Fleet


@pytest.fixture
def sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Command]:
    """The commands, without who asked."""
    (tmp_path / "fleet.yaml").write_text("")
    monkeypatch.setenv("MUSTER_FLEET", str(tmp_path / "fleet.yaml"))
    asked: list[Command] = []

    def ask(_: Fleet, given: Command, **_wait: float) -> Reply:
        assert given.by
        asked.append(given.model_copy(update={"by": None}))
        return Reply(id="c", verb=given.verb, ok=True, said="done", by=given.owner, time=datetime.now(UTC))

    monkeypatch.setattr(command, "ask", ask)
    return asked


@pytest.mark.parametrize(
    ("words", "commands"),
    [
        (["rebuild"], [Rebuild()]),
        (["forget", "a", "b"], [Forget(agent="a"), Forget(agent="b")]),
        (["adopt", "a", "by hand"], [Adopt(agent="a", session="by hand")]),
        (["adopt", "a", "s", "--pane", "%3"], [Adopt(agent="a", session="s", pane="%3")]),
        (
            ["adopt", "a", "s", "--backend", "codex", "--pane=%12"],
            [Adopt(agent="a", session="s", pane="%12", backend="codex")],
        ),
    ],
)
def test_the_words_become_commands(
    words: list[str], commands: list[Command], sent: list[Command], capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 0
    assert sent == commands
    assert capfd.readouterr().out == "done\n" * len(commands)


@pytest.mark.parametrize("pane", ["3", "%", "%x", "main:1.2", ""])
def test_a_pane_that_is_none_is_a_sentence(pane: str, sent: list[Command], capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["adopt", "a", "s", f"--pane={pane}"]) == 1
    assert "panes are called %3 and the like" in capfd.readouterr().err
    assert sent == []
