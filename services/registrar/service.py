"""Takes in what everybody says, and keeps the one record of it."""

from collections.abc import Iterable
from typing import ClassVar

from registry import AgentRecord, BadRegistry, RegistryFile, fold
from shared.errors import Retryable
from shared.events import Data
from shared.topics import AGENT_DRIFT, AGENT_LIFECYCLE, AGENT_STATE, Topic
from shared.turn import Turn


class Registrar:
    name: ClassVar[str] = "registrar"
    follows: ClassVar[tuple[Topic, ...]] = (AGENT_LIFECYCLE, AGENT_DRIFT)
    hints: ClassVar[tuple[Topic, ...]] = ()
    owns: ClassVar[tuple[Topic, ...]] = (AGENT_STATE,)

    def __init__(self, file: RegistryFile) -> None:
        self._file = file
        self._shown: dict[str, AgentRecord] = {}

    def step(self, turn: Turn) -> None:
        try:
            before = dict(self._file.records())
        except BadRegistry as fault:
            raise Retryable(str(fault)) from fault
        after = dict(before)
        for heard in turn.heard:
            agent = heard.envelope.data.agent
            record = fold(after.get(agent), heard.envelope)
            if record is not None:
                after[agent] = record
            else:
                after.pop(agent, None)
        changed = {agent: record for agent, record in after.items() if before.get(agent) != record}
        gone = before.keys() - after.keys()
        if changed or gone:
            self._file.write(
                changed, gone
            )  # before the cursors move: a crash in between folds the same events once more
        self._show(turn, after)

    def _show(self, turn: Turn, records: dict[str, AgentRecord]) -> None:
        """Say what is new, be it from an event or from a person's edit of the file."""
        for agent, record in records.items():
            if self._shown.get(agent) != record:
                turn.show(record.state(agent))
        for agent in self._shown.keys() - records.keys():
            turn.withdraw(AGENT_STATE, agent=agent)
        self._shown = records

    def states(self) -> Iterable[Data]:
        return [record.state(agent) for agent, record in self._file.last_good().items()]
