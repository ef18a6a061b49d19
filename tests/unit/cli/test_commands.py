"""The verbs that are one command each: what is sent for the words that were typed."""

import io
from datetime import UTC, datetime
from pathlib import Path

import pytest

from services.cli.__main__ import main
from shared.client import request
from shared.contract.commands import (
    Adopt,
    Approve,
    Command,
    Delete,
    Deny,
    Forget,
    Interrupt,
    Poll,
    Rebuild,
    Reply,
    Restart,
    Resume,
    Send,
    Spawn,
    SpawnAll,
    StopAll,
)
from shared.fleet import Fleet


@pytest.fixture
def sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Command]:
    """The commands, without who asked."""
    (tmp_path / "fleet.yaml").write_text("")
    monkeypatch.setenv("MUSTER_FLEET", str(tmp_path / "fleet.yaml"))
    asked: list[Command] = []

    def ask(_: Fleet, given: Command, **_wait: object) -> Reply:
        assert given.by
        asked.append(given.model_copy(update={"by": None}))
        return Reply(id="c", verb=given.verb, ok=True, said="done", by=given.owner, time=datetime.now(UTC))

    monkeypatch.setattr(request, "ask", ask)
    return asked


@pytest.mark.parametrize(
    ("words", "commands"),
    [
        (["rebuild"], [Rebuild()]),
        (["spawn", "--all"], [SpawnAll()]),
        (["stop", "--all"], [StopAll()]),
        (["spawn", "a", "b", "--model", "opus", "--anyway"], [Spawn(agent=x, model="opus", anyway=True) for x in "ab"]),
        (["spawn", "a", "--prompt-file", __file__], [Spawn(agent="a", prompt=Path(__file__).read_text())]),
        (["restart", "a", "--fresh"], [Restart(agent="a", fresh=True)]),
        (["resume", "a", "--conversation", "c-1"], [Resume(agent="a", conversation="c-1")]),
        (["delete", "a", "--purge-conversation"], [Delete(agent="a", purge_conversation=True)]),
        (["send", "a", "run the tests", "--idle"], [Send(agent="a", text="run the tests", when="idle")]),
        (
            ["send", "a", "/compact", "--command", "--keep", "5"],
            [Send(agent="a", text="/compact", as_command=True, wait_s=5)],
        ),
        (["send", "a", "--file", __file__], [Send(agent="a", text=Path(__file__).read_text())]),
        (["send", "a", "--keys", "Escape", "Enter"], [Send(agent="a", keys=["Escape", "Enter"])]),
        (["interrupt", "a"], [Interrupt(agent="a")]),
        (["approve", "a", "--fingerprint", "f"], [Approve(agent="a", fingerprint="f")]),
        (["deny", "a", "b"], [Deny(agent="a"), Deny(agent="b")]),
        (["poll"], [Poll()]),
        (["poll", "main"], [Poll(loop="main")]),
        (["forget", "a", "b"], [Forget(agent="a"), Forget(agent="b")]),
        (["adopt", "a", "by hand"], [Adopt(agent="a", session="by hand")]),
        (["adopt", "a", "s", "--pane", "%3"], [Adopt(agent="a", session="s", pane="%3")]),
        (
            ["adopt", "a", "s", "--backend", "codex", "--pane=%12"],
            [Adopt(agent="a", session="s", pane="%12", backend="codex")],
        ),
    ],
)
def test_what_is_typed_becomes_commands(
    words: list[str], commands: list[Command], sent: list[Command], capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 0
    assert sent == commands
    assert capfd.readouterr().out == "done\n" * len(commands)


@pytest.mark.parametrize("pane", ["3", "%", "%x", "main:1.2", ""])
def test_an_invalid_pane_is_refused_with_a_sentence(
    pane: str, sent: list[Command], capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["adopt", "a", "s", f"--pane={pane}"]) == 1
    assert "such as %3 (`tmux list-panes -a` tells them)" in capfd.readouterr().err
    assert sent == []


def test_a_text_comes_by_standard_input(sent: list[Command], monkeypatch: pytest.MonkeyPatch) -> None:
    for words in (["send", "a"], ["send", "a", "-"], ["send", "a", "--file", "-"]):
        monkeypatch.setattr("sys.stdin", io.StringIO("typed elsewhere"))
        assert main(words) == 0
    assert sent == [Send(agent="a", text="typed elsewhere")] * 3


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["spawn"], "spawn needs the name of an agent, or --all"),
        (["stop", "a", "--all"], "--all takes no names"),
        (["spawn", "--all", "--model", "opus"], "--all takes no names and nothing else"),
        (["spawn", "a.b"], "'a.b' is no agent's name"),
        (["send", "a", "x", "--keep", "-1"], "send can't be sent: wait_s"),
        (["send", "a", "   "], "the text is blank"),
        (["send", "a", "--file", "/nowhere/at/all"], "/nowhere/at/all can't be read"),
    ],
)
def test_arguments_that_make_no_command_are_refused_with_a_sentence(
    words: list[str], says: str, sent: list[Command], capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 1
    assert says in capfd.readouterr().err
    assert sent == []
