"""What the spawner remembers about an agent over its own restarts: its newest session, its phase, its deaths.

The phase is one tagged value with the facts that only it has. `decision.decide` says what follows from it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field

from shared.contract.states import Desired
from shared.runtime.memory import MemoryTable
from shared.runtime.moments import Moment


class Origin(StrEnum):
    """How a session came to be the agent's."""

    STARTED = "started"
    ADOPTED = "adopted"  # a person's session that was taken over
    FOUND = "found"  # taken over without being asked: ended only by its name, and never restarted


@dataclass(frozen=True)
class SessionFacts:
    """The newest session that was published. Without a spawn id: there was none yet."""

    spawn: str | None = None
    origin: Origin = Origin.STARTED
    started: Moment = 0.0
    backend: str = ""
    workspace: str = ""
    conversation: str | None = None
    """The agent's own id of its conversation, where it is known."""
    pid: int = 0
    pane: str = ""
    """The agent's own pane; other panes of the session are people's."""
    server: str = ""
    """The tmux server that it ran in; empty while that is not known."""
    resumed: bool = False
    """Whether it was started to resume an earlier conversation."""
    prompt: str = ""
    """What is still to be typed into it, before anything else."""
    piped_elsewhere: bool = False
    """Whether a person's pipe was on its pane when it was taken over: then its output is not logged."""


@dataclass(frozen=True)
class NeverStarted:
    name: Literal["never_started"] = "never_started"


@dataclass(frozen=True)
class Running:
    """Its session was there at the last look."""

    name: Literal["running"] = "running"


@dataclass(frozen=True)
class Exited:
    """Its program ended and that was published; its dead pane is cleared away next."""

    spawn: str
    needs_person: str = ""
    """Why a restart would fail again before a person has acted: a login, say."""
    after_refusal: bool = False
    """Whether the session before it had refused to resume, and this one was never published."""
    name: Literal["exited"] = "exited"


@dataclass(frozen=True)
class Ended:
    """Its session is gone. If people want the agent to run, it is restarted within its limits."""

    reason: str = ""
    """Why it was ended on request, if it was ended in order to be restarted."""
    name: Literal["ended"] = "ended"


@dataclass(frozen=True)
class LostWithServer:
    """Its session went with its tmux server. The restart counts in no limit."""

    name: Literal["lost_with_server"] = "lost_with_server"


@dataclass(frozen=True)
class RefusedToResume:
    """Its program ended at once, because it does not have the conversation. The next one is new."""

    name: Literal["refused_to_resume"] = "refused_to_resume"


@dataclass(frozen=True)
class Paused:
    """A person has to act before a restart makes sense."""

    reason: str
    name: Literal["paused"] = "paused"


@dataclass(frozen=True)
class GivenUp:
    """It is not restarted until a person asks for it."""

    refused: bool = False
    """Whether it was given up because it refused to resume."""
    name: Literal["given_up"] = "given_up"


Phase = NeverStarted | Running | Exited | Ended | LostWithServer | RefusedToResume | Paused | GivenUp


@dataclass(frozen=True)
class AgentMemory:
    wish: Desired | None = None
    """What a person asked for; None leaves it to the fleet file."""
    phase: Annotated[Phase, Field(discriminator="name")] = field(default_factory=NeverStarted)
    session: SessionFacts = field(default_factory=SessionFacts)
    spawns: int = 0
    """How many sessions there were; the id of the next one follows from it."""
    deaths: tuple[Moment, ...] = ()
    """When it died, as far as that counts in its restart limits."""
    server_ended: Moment = 0.0
    """When a tmux server last ended under it."""
    overrides: Mapping[str, str] = field(default_factory=dict)
    """How the newest start differs from the fleet file, on request."""
    resume_request: str | None = None
    """The `resume` command that waits to hear whether the agent took up its conversation."""

    @property
    def spawn(self) -> str | None:
        return self.session.spawn

    @property
    def had_session(self) -> bool:
        """Whether its session was there when the spawner last looked."""
        return isinstance(self.phase, Running | Exited)

    @property
    def gave_up(self) -> bool:
        return isinstance(self.phase, GivenUp)

    @property
    def is_adopted(self) -> bool:
        return self.session.origin is not Origin.STARTED

    @property
    def is_found(self) -> bool:
        return self.session.origin is Origin.FOUND

    def with_session(self, **changes: Any) -> "AgentMemory":
        return replace(self, session=replace(self.session, **changes))

    def as_wanted(self) -> "AgentMemory":
        """The same agent after a person asked for it: earlier deaths no longer count."""
        phase: Phase = self.phase
        match phase:
            case GivenUp() | Paused() | Ended():
                phase = self._at_rest()
            case Exited():
                phase = replace(phase, needs_person="")
        origin = Origin.ADOPTED if self.is_found else self.session.origin
        return replace(self.with_session(origin=origin), wish=Desired.RUNNING, phase=phase, deaths=())

    def as_stopped(self) -> "AgentMemory":
        """The same agent after its session was ended on request."""
        stopped = replace(self, phase=self._at_rest(), deaths=(), resume_request=None)
        return stopped.with_session(prompt="")

    def as_given_up(self) -> "AgentMemory":
        return replace(self, phase=GivenUp(refused=isinstance(self.phase, RefusedToResume)))

    def _at_rest(self) -> Phase:
        match self.phase:
            case NeverStarted() | RefusedToResume():
                return self.phase
            case GivenUp(refused=True) | Exited(after_refusal=True):
                return RefusedToResume()
        return Ended()


AGENTS = MemoryTable("agent:", AgentMemory)
SEED = MemoryTable("seed", str)
"""What the spawn ids of this journal are made of."""
FLEET_RESTARTS = MemoryTable("restarts", list[Moment])
"""When agents of this fleet were restarted."""
