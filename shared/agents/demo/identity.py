"""Muster's own scripted agent: its conversation is on its command line."""

from pathlib import Path

from shared.agents.identity import ConversationIdentity, conversation, option
from shared.system.processes import Process, Processes

SCRIPT = "demo_agent.py"


def identify(processes: Processes, agent: Process, workspace: Path) -> ConversationIdentity | None:  # noqa: ARG001 - the signature of all readers
    found = [process for process in processes.below(agent.pid) if SCRIPT in processes.names(process)]
    if not found:
        return None
    arguments = processes.arguments(found[0])
    said = conversation(option(arguments, "--resume") or option(arguments, "--conversation"))
    return ConversationIdentity(said, _transcript(processes, found[0], said), processes.cwd(found[0])) if said else None


def _transcript(processes: Processes, process: Process, said: str) -> Path | None:
    fleet = processes.environment(process).get("MUSTER_FLEET")
    path = Path(fleet).parent / ".muster" / "demo" / f"{said}.jsonl" if fleet else None
    return path if path is not None and path.is_file() else None
