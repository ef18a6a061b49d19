"""Where an agent's transcript is: the file that the agent's own program keeps."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from registry import AgentRecord
from shared.agents.transcript import READERS
from shared.errors import MusterError
from shared.fleet import Fleet
from shared.fleet.launch_needs import variables_of


@dataclass(frozen=True)
class TranscriptPlace:
    """What is needed to find an agent's transcript."""

    agent: str
    format: str
    env: Mapping[str, str]
    workspace: Path
    conversation: str | None = None
    """None: the newest of the workspace."""
    recorded: Path | None = None
    """The file of that conversation, if the record names one that is there: its program may have a home of its own."""

    @classmethod
    def of(cls, fleet: Fleet, agent: str, record: AgentRecord | None) -> "TranscriptPlace":
        """By the agent's record, which may differ from its declaration; without a record, by the declaration."""
        name = record.backend if record else fleet.agents[agent].backend
        declared = agent in fleet.agents
        backend = fleet.backends.get(name) or (fleet.profile(agent) if declared else None)
        if backend is None:
            raise MusterError(f"{agent} runs {name}, which the fleet file does not know any more")
        env = variables_of(fleet, agent, backend, os.environ) if declared else dict(os.environ)
        env = {**env, "MUSTER_FLEET": str(fleet.path)}  # as the spawner gives it to every agent
        workspace = Path(record.workspace) if record else fleet.resolve(fleet.agents[agent].dir)
        known, form = record.conversation if record else None, backend.transcript or name
        recorded = Path(record.transcript) if record and record.transcript else None
        if known is not None and recorded is not None and recorded.is_file():
            return cls(agent, form, env, workspace, known, recorded)
        reader = READERS.get(form)
        is_there = known is not None and reader is not None and reader.locate(env, workspace, known) is not None
        return cls(agent, form, env, workspace, known if is_there else None)

    def find(self, wanted: str | None = None) -> tuple[Path, str]:
        """The file and the conversation in it. Raises a sentence about what was looked for."""
        reader = READERS.get(self.format)
        if reader is None:
            raise MusterError(
                f"{self.agent} runs {self.format}, of which no transcripts are known; known: {', '.join(READERS)}"
            )
        wanted = wanted or self.conversation
        is_recorded = self.recorded is not None and wanted == self.conversation
        path = self.recorded if is_recorded else reader.locate(self.env, self.workspace, wanted)
        conversation = wanted or (reader.conversation_in(path, self.workspace) if path else None)
        if path is None or conversation is None:
            what = f"conversation {wanted!r}" if wanted else f"conversation in {self.workspace}"
            raise MusterError(
                f"{self.format} has no {what} for {self.agent}: it begins with the first prompt;"
                f" muster logs {self.agent} shows the screen"
            )
        return path, conversation
