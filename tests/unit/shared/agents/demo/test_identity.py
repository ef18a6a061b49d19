"""Muster's own scripted agent."""

from pathlib import Path

import pytest

from shared.agents.identity import IDENTITY_READERS, ConversationIdentity, identify, identity_reader_for
from shared.agents.parts import programs_with
from shared.fleet.profiles import shipped
from shared.system.processes import Process
from tests.fakes.processes import Details, FakeProcesses
from tests.unit.shared.agents.process_samples import put

SHELL, AGENT = Process(10, 1, "sh", 1.0, 1), Process(11, 10, "python", 2.0, 2)


def seen(room: Path, *arguments: str) -> FakeProcesses:
    words = ["/usr/bin/python3.11", "-I", "/opt/muster/demo_agent.py", "builder", *arguments]
    return FakeProcesses(
        {
            SHELL: Details(["sh"]),
            AGENT: Details(words, {"MUSTER_FLEET": str(room / "fleet.yaml")}, room),
        }
    )


@pytest.mark.parametrize(
    ("arguments", "conversation"),
    [
        (["--conversation", "c1"], "c1"),
        (["--resume=c2"], "c2"),
        (["--conversation", "c1", "--resume", "c2"], "c2"),
        ([], None),
        (["--conversation"], None),
        (["--conversation", "--model"], None),
    ],
)
def test_its_command_line_says_it(arguments: list[str], conversation: str | None, tmp_path: Path) -> None:
    processes = seen(tmp_path, *arguments)
    expected = ConversationIdentity(conversation, None, tmp_path) if conversation else None
    assert IDENTITY_READERS["demo"](processes, SHELL, tmp_path) == expected


def test_the_file_is_named_once_it_is_there(tmp_path: Path) -> None:
    path = put(tmp_path / ".muster" / "demo" / "c1.jsonl", "{}\n")
    processes = seen(tmp_path, "--conversation", "c1")
    assert identify("demo", shipped()["demo"], processes, AGENT, tmp_path) == ConversationIdentity("c1", path, tmp_path)


def test_another_script_is_none(tmp_path: Path) -> None:
    processes = FakeProcesses({AGENT: Details(["python", "demo.py", "--conversation", "c1"])})
    assert IDENTITY_READERS["demo"](processes, AGENT, tmp_path) is None


def test_every_shipped_backend_has_a_reader_if_its_folder_has_one() -> None:
    without = {name for name, backend in shipped().items() if identity_reader_for(name, backend) is None}
    readers = programs_with("identity.py")
    assert without == {name for name, backend in shipped().items() if (backend.transcript or name) not in readers}, (
        "a program has an identity reader exactly if there is shared/agents/<name>/identity.py with `identify`"
    )
    assert "aider" in without
    assert identify("aider", shipped()["aider"], FakeProcesses({AGENT: Details()}), AGENT, Path("/")) is None
