"""Where the record and the world differ, reported by the reconciler: each difference once, again when it changes."""

from typing import ClassVar, Literal

from pydantic import Field

from shared.contract.envelope import AgentEvent, Tone, Urgency
from shared.contract.ids import ConversationId, Id


class DriftEvent(AgentEvent):
    """A difference between the record and the world."""

    ends_session: ClassVar[bool] = False
    """Whether it reports the end of a session: once per session, and not if a command explains it."""
    outlives_session: ClassVar[bool] = False
    """Whether it is about the agent, not about one of its sessions."""
    resolved_because: ClassVar[str] = ""
    """The reason in `resolved`, for a drift that stays open until the world changes. Recording closes the others."""

    def difference(self) -> tuple[str, str]:
        """What the record says, and what was found instead; for people."""
        return "", self.sentence()


class SessionMissing(DriftEvent):
    """Recorded as running, but tmux has no such session."""

    kind: Literal["missing"] = "missing"
    tone: ClassVar[Tone] = Tone.BAD
    urgency: ClassVar[Urgency] = Urgency.NEWS
    ends_session: ClassVar[bool] = True

    spawn: Id
    session: str

    def difference(self) -> tuple[str, str]:
        return f"running in session {self.session}", "tmux has no such session"

    def sentence(self) -> str:
        return f"recorded as running, but tmux has no session {self.session}"


class PaneDead(DriftEvent):
    """Recorded as running, but the program in its pane has ended."""

    kind: Literal["pane_dead"] = "pane_dead"
    tone: ClassVar[Tone] = Tone.BAD
    urgency: ClassVar[Urgency] = Urgency.NEWS
    ends_session: ClassVar[bool] = True

    spawn: Id
    session: str
    exit_status: int | None = None

    def difference(self) -> tuple[str, str]:
        return f"running in session {self.session}", self.sentence()

    def sentence(self) -> str:
        return "its program ended" + (f" with status {self.exit_status}" if self.exit_status is not None else "")


class Unregistered(DriftEvent):
    """An agent runs in tmux, and no record says so. It is recorded; if nobody keeps it, it is adopted too."""

    kind: Literal["unregistered"] = "unregistered"
    spawn: Id | None = Field(default=None, description="Of a session of this fleet; none: somebody else started it.")
    backend: Id = Field(description="Told by its processes, or by what was recorded.")
    workspace: str
    session: str
    pane: str
    pid: int
    command: str = ""
    conversation: ConversationId | None = None
    adopts: bool = Field(default=False, description="The spawner is asked to adopt it.")

    def difference(self) -> tuple[str, str]:
        return "no such session", f"{self.backend} in session {self.session}, pid {self.pid}, in {self.workspace}"

    def sentence(self) -> str:
        then = "; the spawner is asked to adopt it" if self.adopts else ""
        return f"runs {self.backend} in session {self.session}, pid {self.pid}, and no record said so{then}"


class Identified(DriftEvent):
    """The agent's own id of its conversation appeared on disk, or it went on to another conversation."""

    kind: Literal["identified"] = "identified"
    tone: ClassVar[Tone] = Tone.GOOD

    spawn: Id
    conversation: ConversationId
    transcript: str | None = Field(default=None, description="The file in which it is kept, once there is one.")
    previous: str | None = Field(default=None, description="What was recorded before.")

    def difference(self) -> tuple[str, str]:
        before = f"conversation {self.previous}" if self.previous else "no conversation"
        return before, f"conversation {self.conversation}"

    def sentence(self) -> str:
        if self.previous is None:
            return f"is in conversation {self.conversation}"
        return f"went on to conversation {self.conversation}; it was {self.previous}"


class StaleId(DriftEvent):
    """The recorded conversation is no longer on disk. Nothing is deleted for that."""

    kind: Literal["stale_id"] = "stale_id"
    tone: ClassVar[Tone] = Tone.BAD
    outlives_session: ClassVar[bool] = True
    resolved_because: ClassVar[str] = "its conversation is on disk"

    spawn: Id | None = None
    conversation: str
    transcript: str = Field(description="Where it was kept.")

    def difference(self) -> tuple[str, str]:
        return f"conversation {self.conversation}", f"nothing at {self.transcript}"

    def sentence(self) -> str:
        return f"its conversation {self.conversation} is no longer at {self.transcript}"


class DuplicateId(DriftEvent):
    """Two agents run on one conversation: each writes what the other does not know."""

    kind: Literal["duplicate_id"] = "duplicate_id"
    tone: ClassVar[Tone] = Tone.BAD
    urgency: ClassVar[Urgency] = Urgency.NEWS
    resolved_because: ClassVar[str] = "nobody else runs on its conversation any more"

    spawn: Id
    conversation: str
    others: list[Id] = Field(description="Who else runs on it.")

    def difference(self) -> tuple[str, str]:
        return f"conversation {self.conversation} is its own", f"{', '.join(self.others)} runs on it too"

    def sentence(self) -> str:
        return f"runs on conversation {self.conversation}, and so does {', '.join(self.others)}"


class WrongBackend(DriftEvent):
    """Its pane runs something else than its backend's program."""

    kind: Literal["wrong_backend"] = "wrong_backend"
    tone: ClassVar[Tone] = Tone.BAD
    urgency: ClassVar[Urgency] = Urgency.NEWS
    resolved_because: ClassVar[str] = "its pane runs its backend's program again"

    spawn: Id
    expected: Id
    found: Id | None = Field(default=None, description="The backend whose program runs there; none: no agent at all.")
    command: str = Field(description="What tmux calls the program.")

    def difference(self) -> tuple[str, str]:
        return self.expected, f"{self.found} ({self.command})" if self.found else self.command

    def sentence(self) -> str:
        found = f"{self.found} ({self.command})" if self.found else self.command
        return f"recorded as {self.expected}, but its pane runs {found}"


class Moved(DriftEvent):
    """Its session has another name, or the agent works in another directory, than was recorded."""

    kind: Literal["moved"] = "moved"
    spawn: Id
    session: str
    workspace: str
    was_session: str
    was_workspace: str

    def difference(self) -> tuple[str, str]:
        return f"session {self.was_session} in {self.was_workspace}", f"session {self.session} in {self.workspace}"

    def sentence(self) -> str:
        changed = []
        if self.session != self.was_session:
            changed.append(f"recorded as session {self.was_session}, but it is called {self.session}")
        if self.workspace != self.was_workspace:
            changed.append(f"recorded in {self.was_workspace}, but it works in {self.workspace}")
        return "; ".join(changed)


class DriftResolved(DriftEvent):
    """A drift that was reported before is over."""

    kind: Literal["resolved"] = "resolved"
    tone: ClassVar[Tone] = Tone.GOOD

    spawn: Id | None = None
    drift: str = Field(description="The kind of what was told.")
    reason: str

    def sentence(self) -> str:
        return f"{self.drift}: {self.reason}"
