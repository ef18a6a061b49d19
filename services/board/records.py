"""The agents' records as the board has them: from the registrar's states as they come, and from the journal."""

import time

from registry import AgentRecord
from registry.memory import REGISTRAR, records_in
from shared.contract.topics import AGENT_STATE, MalformedDocument
from shared.messaging.cursors import LocatedMessage
from shared.messaging.journal import Journal


def tells_of_an_end(hint: LocatedMessage) -> bool:
    """Whether an agent's state was cleared."""
    return hint.row is AGENT_STATE and not hint.payload


class MirroredRecords:
    """Records by agent. A state on the bus brings one up to date at once; the journal has all of them."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._read_at = 0.0
        self.records: dict[str, AgentRecord] = {}
        self.read_all()

    def read_all(self) -> set[str]:
        """Read the journal; returns the agents whose records changed."""
        self._read_at = time.time()
        found = records_in(self._journal.memory(REGISTRAR))
        changed = {agent for agent, record in found.items() if self.records.get(agent) != record}
        changed |= self.records.keys() - found.keys()
        self.records = found
        return changed

    def take(self, hint: LocatedMessage) -> str | None:
        """Take a state from the bus; returns the agent whose record changed.

        One that is older than what the journal told is of a broker that has forgotten, and is passed over. So is a
        cleared one, which has no time: the agent may be back since. The journal tells who is gone.
        """
        if hint.row is not AGENT_STATE or not hint.payload:
            return None
        agent = hint.topic.split("/")[-2]
        try:
            envelope = AGENT_STATE.read(hint.payload)
        except MalformedDocument:
            return None  # the next poll reads the journal
        if envelope.time.timestamp() < self._read_at:
            return None
        record = AgentRecord.model_validate({name: value for name, value in envelope.data if name != "agent"})
        if self.records.get(agent) == record:
            return None
        self.records[agent] = record
        return agent
