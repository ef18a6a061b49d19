"""The story of `muster demo`: what is said when something is first seen, and whether the accident was healed. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from shared.contract.envelope import Event
from shared.contract.events.activity import AgentStalled, ApprovalNeeded, LimitHit, LimitLifted
from shared.contract.events.drift import SessionMissing
from shared.contract.events.lifecycle import AgentExited, AgentGaveUp, AgentRestarted, AgentStopped, SessionStarted
from shared.contract.events.loops import PhaseAdvanced, WorkClaimed, WorkReviewed
from shared.contract.states import AgentState, Status

VICTIM = "tester"
STOPPED = "benchmark"


@dataclass(frozen=True)
class Chapter:
    """What is said when such an event is first seen."""

    event: type[Event]
    agent: str
    """Of whom; empty: of a loop."""
    said: str


CHAPTERS = (
    Chapter(
        ApprovalNeeded,
        "deployer",
        "deployer asks whether it may run a command, and waits. Answer {on_the_board}with: muster approve deployer",
    ),
    Chapter(
        ApprovalNeeded,
        "architect",
        "architect asks a question with options. Choose {on_the_board}with: muster send architect --keys 1",
    ),
    Chapter(
        LimitHit,
        "writer",
        "writer hit the usage limit of its account. Muster starts and types nothing on that account until it resets",
    ),
    Chapter(
        LimitLifted,
        "writer",
        "the limit is over. Muster told writer to continue; translator, on the same account, comes next",
    ),
    Chapter(
        SessionMissing,
        VICTIM,
        f"a drift: the record says that {VICTIM} runs, and tmux has no such session. Muster corrects the record",
    ),
    Chapter(
        AgentRestarted,
        VICTIM,
        f"{VICTIM} runs again, and goes on with the conversation that it had",
    ),
    Chapter(
        WorkClaimed,
        "",
        "builder pushed a commit that says that its work is ready. Muster tells reviewer to look at it",
    ),
    Chapter(
        WorkReviewed,
        "",
        "reviewer pushed its review. Muster tells builder: the agents need nobody to pass their work on",
    ),
    Chapter(
        AgentStalled,
        "triage",
        "triage is idle for longer than its policy allows. Muster shows it as stalled, then types a reminder",
    ),
    Chapter(
        AgentGaveUp,
        "importer",
        "importer died three times in a row. Muster stops restarting it; `muster logs importer` shows why it died",
    ),
    Chapter(
        AgentExited,
        "changelog",
        "changelog finished its task. A task that ends is not started again",
    ),
    Chapter(
        AgentStopped,
        STOPPED,
        f"the demo stopped {STOPPED}, as you can: muster stop {STOPPED}. It stays down until you start it",
    ),
)
PHASE_SAID = "a phase of the loop is done. Muster starts builder and reviewer anew for phase {number}, {phase}"


class DemoStory:
    """How far the demo is: all agents run, one is killed, the drift is told, recorded, and the agent restarted."""

    def __init__(self, agents: set[str]) -> None:
        """`agents`: those that are to run before anything is killed."""
        self.killed = self.drift = self.recorded = self.restarted = self.runs_again = False
        self.has_board = False
        """Whether people can answer there."""
        self._to_start = set(agents)
        self._left = list(CHAPTERS)
        self._phase_said = False

    def see(self, data: Any) -> Iterator[str]:
        """Take what a document says, and give what there is to say about it."""
        agent = getattr(data, "agent", "")
        if isinstance(data, SessionStarted) or (isinstance(data, AgentState) and data.status is Status.RUNNING):
            self._to_start.discard(agent)
        if self.killed and agent == VICTIM:
            self._see_victim(data)
        for chapter in [each for each in self._left if isinstance(data, each.event) and agent == each.agent]:
            self._left.remove(chapter)
            yield chapter.said.format(on_the_board="on the board, or " if self.has_board else "")
        if isinstance(data, PhaseAdvanced) and data.number > 1 and not self._phase_said:
            self._phase_said = True
            yield PHASE_SAID.format(number=data.number, phase=data.phase)

    def _see_victim(self, data: Any) -> None:
        self.drift = self.drift or isinstance(data, SessionMissing)
        self.restarted = self.restarted or isinstance(data, AgentRestarted)
        if isinstance(data, AgentState):
            self.recorded = self.recorded or data.status is Status.TERMINATED
            self.runs_again = self.recorded and data.status is Status.RUNNING

    @property
    def ready(self) -> bool:
        return not self._to_start

    @property
    def healed(self) -> bool:
        return self.drift and self.recorded and self.restarted and self.runs_again

    @property
    def is_told(self) -> bool:
        """Whether there is nothing left to say."""
        return self.healed and not self._left

    def missing(self) -> str:
        steps = (
            (self.ready or self.killed, "not all agents were running yet"),
            (self.killed, "no agent was killed yet"),
            (self.drift, "the drift was not seen"),
            (self.recorded, "the registry did not change"),
            (self.restarted, "the agent was not restarted"),
        )
        return next((said for seen, said in steps if not seen), "the restarted agent was not recorded as running")
