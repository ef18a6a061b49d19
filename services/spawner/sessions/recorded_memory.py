"""What the spawner remembers when its journal is new: what `registry.yaml` says. Pure.

The journal holds what people wished and each agent's conversation. When it is lost, the registry still has both: an
agent that a person stopped stays stopped, one that ran goes on, or is restarted in its conversation.
"""

from registry import AgentRecord
from services.spawner.sessions.memory import (
    AgentMemory,
    Ended,
    Exited,
    GivenUp,
    LostWithServer,
    NeverStarted,
    Origin,
    Phase,
    Running,
    SessionFacts,
)
from shared.contract.events.lifecycle import AgentAdopted
from shared.contract.states import Desired, Status
from shared.system.tmux import Pane


def from_record(record: AgentRecord, pane: Pane | None, *, declared: bool, starts_by_itself: bool) -> AgentMemory:
    """The memory of an agent by its record and its pane, dead or alive, if tmux has one."""
    is_adopted = not declared and record.reason == AgentAdopted.name()
    session = SessionFacts(
        spawn=record.spawn,
        origin=Origin.ADOPTED if is_adopted else Origin.STARTED,
        started=record.started.timestamp() if record.started else 0.0,
        backend=record.backend,
        workspace=record.workspace,
        conversation=record.conversation,
        pid=record.pid or 0,
        pane=record.pane or "",
    )
    wish = Desired.STOPPED if record.desired is Desired.STOPPED else None if starts_by_itself else Desired.RUNNING
    # Deaths before the last one are not in the record: they no longer count in the restart limits.
    died = record.ended if record.status in (Status.EXITED, Status.TERMINATED) else None
    return AgentMemory(
        wish=wish, phase=_phase(record, pane), session=session, deaths=(died.timestamp(),) if died else ()
    )


def _phase(record: AgentRecord, pane: Pane | None) -> Phase:
    if record.spawn is None:
        return NeverStarted()
    match record.status:
        case Status.GAVE_UP:
            return GivenUp()
        case Status.RUNNING if pane is None:
            return LostWithServer()  # it ended while nobody looked: that counts in no limit
        case Status.RUNNING:
            return Running()
        case Status.EXITED if pane is not None and pane.spawn == record.spawn:
            return Exited(record.spawn)
    return Ended()
