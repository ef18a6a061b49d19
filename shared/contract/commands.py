"""The commands of the bus, as JSON that a person can type, and their reply.

A verb is one class: its owner, its arguments with examples and help, and its options in the CLI. Its docstring and
descriptions are published in the AsyncAPI file and the CLI's help. A command never holds a command line or an
environment: it names what the fleet file defines.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, field_validator, model_validator

from shared.contract.ids import ConversationId, Id

MAX_PAYLOAD = 256 * 1024
COMMAND_EXPIRES_AFTER_S = 60
"""A command that its owner has not begun by then is answered `expired`, unless it carries its own `expires`."""


@dataclass(frozen=True)
class CliOption:
    """Makes a field an argument of `muster <verb>`. Fields without it can only be set over MQTT."""

    flag: str = ""
    """Default: `--` and the field's name."""
    metavar: str | None = None
    positional: bool = False
    many: bool = False
    """The argument takes several values and makes one command for each."""
    stores: Any = None
    """The option is a switch that sets this value."""
    says: str = ""
    """The help text. Default: the field's description."""
    file_flag: str = ""
    """A second option that reads the value from a file; `-` is standard input."""
    stdin: bool = False
    """Read the value from standard input if it is `-`, or if it is missing and standard input is not a terminal."""
    group: str = ""
    """Options of one group exclude each other."""


class Command(BaseModel):
    """Base of all commands, with the fields that each may carry. Unknown fields are refused: a typo must not act."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)

    verb: ClassVar[str]
    owner: ClassVar[str]
    help: ClassVar[str] = ""
    """One line for `muster --help`. Empty: the CLI makes no verb of it by itself."""
    all_verb: ClassVar[str] = ""
    """The verb behind `muster <verb> --all`."""
    usual: ClassVar[tuple[str, ...]] = ()
    """Optional fields that examples show too."""
    askers: ClassVar[tuple[str, ...]] = ()
    """The services that may send it, beside people."""

    id: Id | None = Field(
        default=None, description="Chosen by the sender; the same id acts once and is answered again."
    )
    reply_to: str | None = Field(
        default=None, description="A topic below `<prefix>/<host>/reply/`; default `reply/<id>`."
    )
    made: AwareDatetime | None = Field(
        default=None,
        description="When it was asked for: of two wishes about an agent the later one counts. Default: as early as a"
        " message may have been sent that arrives now.",
    )
    expires: AwareDatetime | None = Field(default=None, description="Not begun after this time.")
    by: str | None = Field(default=None, max_length=200, description="Who asks, for the audit log.")

    def addressee(self) -> str:
        """The service that must carry it out."""
        return self.owner

    def concerns(self) -> str | None:
        """The agent whose session it changes, `*` for all. While it is open, observers must expect changes there."""
        return None

    @classmethod
    def verbs(cls) -> Iterator[type[Self]]:
        """Every class below this one that defines a verb."""
        if "verb" in vars(cls):
            yield cls
        for below in cls.__subclasses__():
            yield from below.verbs()


ONLY_THIS = "Only if this is still the agent's session."

AgentNames = Annotated[Id, CliOption(positional=True, many=True)]
AgentName = Annotated[Id, CliOption(positional=True)]
Now = Annotated[bool, CliOption()]
NOW = Field(
    default=False, description="Now, though the usage limit of its account is reached; else it waits until that lifts."
)


class AgentCommand(Command):
    changes_session: ClassVar[bool] = True
    """Whether the spawner handles it as one about the agent's session; else it is typed into that session."""

    agent: AgentNames = Field(description="The agent's name in the fleet file.", examples=["builder"])

    def concerns(self) -> str | None:
        return self.agent if self.changes_session else None


class Spawn(AgentCommand):
    """Start the agent, and keep it running. What already runs is left alone, and the reply says so.

    What is said here beside the name holds until the agent is stopped or started by another command; the fleet file
    stays as it is.
    """

    verb = "spawn"
    owner = "spawner"
    askers = ("registrar", "handoff", "board")
    help = "start agents and keep them running"
    all_verb = "spawn_all"

    prompt: Annotated[str | None, CliOption(metavar="TEXT", file_flag="--prompt-file", group="prompt")] = Field(
        default=None, description="Instead of the agent's own, this once."
    )
    model: Annotated[str | None, CliOption()] = Field(
        default=None, max_length=200, description="Instead of the agent's own, this once."
    )
    backend: Annotated[Id | None, CliOption()] = Field(
        default=None, description="Instead of the agent's own, this once; one that the fleet file has."
    )
    dir: Annotated[str | None, CliOption()] = Field(
        default=None, max_length=4096, description="Instead of the agent's own, this once; in an allowed workspace."
    )
    anyway: Now = NOW


class SpawnAll(Command):
    """Start every agent that the fleet file declares as enabled, a few at a time."""

    verb = "spawn_all"
    owner = "spawner"

    def concerns(self) -> str | None:
        return "*"


class Stop(AgentCommand):
    """End the agent's session, and keep it down."""

    verb = "stop"
    owner = "spawner"
    askers = ("registrar", "monitor", "handoff", "board")
    help = "end agents and keep them down"
    all_verb = "stop_all"

    spawn: Id | None = Field(default=None, description=ONLY_THIS)
    for_now: bool = Field(default=False, description="Only until the services are started again.")


class StopAll(Command):
    """End every session of this fleet, also of agents that its file no longer declares."""

    verb = "stop_all"
    owner = "spawner"

    for_now: bool = Field(default=False, description="Only until the services are started again.")
    down: int | None = Field(
        default=None, description="The process id of the `muster down` that asks: only as long as that lives."
    )

    def concerns(self) -> str | None:
        return "*"


class Restart(AgentCommand):
    """End the agent's session and start a new one, which takes up the conversation if it can."""

    verb = "restart"
    owner = "spawner"
    askers = ("monitor", "handoff", "board")
    help = "end agents and start them again; their conversations go on"

    spawn: Id | None = Field(default=None, description=ONLY_THIS)
    counts: bool = Field(
        default=False, description="As after a death: with backoff, and within the agent's restart limits."
    )
    fresh: Annotated[bool, CliOption()] = Field(default=False, description="Begin a new conversation.")
    prompt: str | None = Field(
        default=None, description="Instead of the agent's own, where a new conversation is begun, until it is stopped."
    )
    model: str | None = Field(
        default=None, max_length=200, description="Instead of the agent's own, until it is stopped."
    )
    anyway: Now = NOW


class Resume(AgentCommand):
    """Start the agent where its conversation ended. What already runs is left alone, and the reply says so."""

    verb = "resume"
    owner = "spawner"
    askers = ("board",)
    help = "start an agent where its conversation ended"

    agent: AgentName = Field(description="The agent's name in the fleet file.", examples=["builder"])
    conversation: Annotated[ConversationId | None, CliOption(metavar="ID")] = Field(
        default=None, description="The agent's own id of it; default: the last one."
    )
    anyway: Now = NOW


class Delete(AgentCommand):
    """End the agent's session and forget its record. The files of its conversation stay, unless told otherwise."""

    verb = "delete"
    owner = "spawner"
    help = "end agents and forget their records; their conversations stay"

    purge_conversation: Annotated[bool, CliOption()] = Field(
        default=False, description="Remove the agent's own file of the conversation too."
    )


class Forget(AgentCommand):
    """Forget the agent's record and leave its session to itself, if it has one."""

    verb = "forget"
    owner = "spawner"
    askers = ("registrar",)
    help = "forget agents' records and leave their sessions alone"

    spawn: Id | None = Field(default=None, description="Only if this is still its newest session, and that has ended.")


class Adopt(AgentCommand):
    """Take over a tmux session that somebody else started, under a name."""

    verb = "adopt"
    owner = "spawner"
    askers = ("reconciler",)
    help = "take over a tmux session that somebody else started"

    agent: AgentName = Field(description="The name that it gets.", examples=["builder"])
    session: Annotated[str, CliOption(positional=True)] = Field(
        min_length=1, max_length=200, description="The name of the tmux session.", examples=["work"]
    )
    pane: Annotated[str | None, CliOption(metavar="%N")] = Field(
        default=None,
        pattern=r"^%[0-9]{1,9}$",
        description="The pane in it that the agent runs in, such as %3 (`tmux list-panes -a` tells them); the others"
        " stay yours. Default: the whole session.",
    )
    backend: Annotated[Id | None, CliOption()] = Field(
        default=None, description="What runs in it. Default: the declared agent's, else by the program it runs."
    )
    found: bool = Field(
        default=False, description="Nobody asked for it: it is ended only by name, not with all the others."
    )


FINGERPRINT = Field(
    default=None, max_length=64, description="As `approval_needed` told it: no other dialog is answered."
)
AFTER_WORK = "Not before the agent has finished what it does."


class Send(AgentCommand):
    """Type a text into the agent's input box and submit it, or press keys.

    The text waits while a dialog is on the screen, and the reply says why.
    """

    verb = "send"
    owner = "spawner"
    usual = ("text",)
    askers = ("monitor", "handoff", "board")
    changes_session = False
    help = "type a text into an agent's input box and submit it, or press keys"

    agent: AgentName = Field(description="The agent's name in the fleet file.", examples=["builder"])
    spawn: Id | None = Field(default=None, description=ONLY_THIS)
    text: Annotated[str | None, CliOption(positional=True, file_flag="--file", stdin=True, group="what")] = Field(
        default=None, min_length=1, description="The text; - is standard input.", examples=["run the tests"]
    )
    keys: Annotated[list[str] | None, CliOption(metavar="KEY", group="what")] = Field(
        default=None,
        min_length=1,
        max_length=100,
        description="Press keys instead, by tmux's names: Enter, Escape, Up, C-c, a.",
    )
    fingerprint: Annotated[str | None, CliOption(metavar="PRINT")] = FINGERPRINT
    when: Annotated[Literal["now", "idle", "if_idle"], CliOption(flag="--idle", stores="idle", says=AFTER_WORK)] = (
        Field(
            default="now",
            description="`idle`: not before the agent has finished what it does; `if_idle`: not at all if it works.",
        )
    )
    leaves_menu: bool = Field(
        default=False,
        description="A menu that can be left with nothing bought, changed or called off is left for it; one about a"
        " usage limit that offers to go on with what was refused is answered so, instead.",
    )
    as_command: Annotated[bool, CliOption(flag="--command")] = Field(
        default=False, description="The text is meant for the agent's program, as `/compact` is, and not for its model."
    )
    wait_s: Annotated[float, CliOption(flag="--keep", metavar="S")] = Field(
        default=3600.0,
        ge=0,
        le=7 * 24 * 3600,
        description="How long it may wait for a free input box; where it is not said, not past `expires`.",
    )

    @model_validator(mode="after")
    def _text_or_keys(self) -> Self:
        if (self.text is None) == (self.keys is None):
            raise ValueError("it needs either `text` or `keys`")
        if self.text is not None and not self.text.strip():
            raise ValueError("the text is blank")
        if self.fingerprint is not None and self.keys is None:
            raise ValueError("a fingerprint needs `keys`: a text never goes into a dialog")
        return self


class Interrupt(AgentCommand):
    """Stop what the agent is doing; it stays, and waits for the next text."""

    verb = "interrupt"
    owner = "spawner"
    askers = ("board",)
    changes_session = False
    help = "stop what agents are doing"


class DialogAnswer(AgentCommand):
    """Answer the dialog on the agent's screen."""

    owner = "spawner"
    askers = ("board",)
    changes_session = False

    fingerprint: Annotated[str | None, CliOption(metavar="PRINT")] = FINGERPRINT


class Approve(DialogAnswer):
    """Say yes, this once, to the permission that the agent asks for on its screen."""

    verb = "approve"
    help = "say yes, this once, to the permission an agent asks for"


class Deny(DialogAnswer):
    """Say no to the permission that the agent asks for on its screen."""

    verb = "deny"
    help = "say no to the permission an agent asks for"


AccountModels = list[Annotated[str, Field(max_length=200)]]


class Park(Command):
    """Start no agent of an account until a time, and blame none that ends meanwhile: its usage limit is reached."""

    verb = "park"
    owner = "spawner"
    askers = ("monitor",)

    account: Id = Field(examples=["claude"])
    until: AwareDatetime = Field(examples=["2026-01-31T09:30:00Z"])
    models: AccountModels | None = Field(
        default=None,
        max_length=20,
        description="Only agents whose model's name has one of these in it; an empty one: those that name no model.",
    )
    reason: str = Field(default="", max_length=500)


class Unpark(Command):
    """The usage limit of an account is over: its agents may be started again."""

    verb = "unpark"
    owner = "spawner"
    askers = ("monitor",)

    account: Id = Field(examples=["claude"])
    models: AccountModels | None = Field(default=None, max_length=20, description="As they were parked.")


class Reconcile(Command):
    """Compare the record with tmux, the processes and the agents' files now, and answer what differs."""

    verb = "reconcile"
    owner = "reconciler"

    dry_run: bool = Field(default=False, description="Only answer: tell nobody, and ask nothing of anybody.")


class Explain(Command):
    """Answer what an agent is doing, every piece of evidence for it, and which was believed and why."""

    verb = "explain"
    owner = "monitor"
    askers = ("board",)

    agent: Id = Field(examples=["builder"])


class Peek(Command):
    """Ask a fork of the agent's conversation, with a cheap model, how its work is. The agent itself is left alone."""

    verb = "peek"
    owner = "monitor"

    agent: Id = Field(examples=["builder"])
    question: str | None = Field(default=None, min_length=1, max_length=10_000, description="Instead of the usual one.")
    model: str | None = Field(default=None, max_length=200, description="Instead of the cheap one.")
    timeout_s: float | None = Field(default=None, gt=0, le=3600, description="Instead of the agent's own.")


class LoopCommand(Command):
    """About one loop, which need not be named where there is only one."""

    owner = "handoff"

    loop: Id | None = Field(default=None, description="Needed where the fleet file has several.")


class PhaseShow(Command):
    """Answer how far each loop is: its phases, its remote, and what waits to be said to whom."""

    verb = "phase_show"
    owner = "handoff"
    askers = ("board",)

    loop: Id | None = Field(default=None, description="Only this one.")


class PhaseNext(LoopCommand):
    """End the phase that a loop is in, and begin the next one; after the last one the loop is complete."""

    verb = "phase_next"


class PhaseSet(LoopCommand):
    """Begin a phase of a loop, whichever it is in."""

    verb = "phase_set"

    phase: str = Field(
        min_length=1, max_length=200, description="Its name, or its number, counted from 1.", examples=["second"]
    )


class Poll(Command):
    """Ask the git remotes of loops now, and not when it is time: a hook of the remote can say that it moved."""

    verb = "poll"
    owner = "handoff"
    help = "ask the git remotes of loops now"

    loop: Annotated[Id | None, CliOption(positional=True)] = Field(default=None, description="Only this loop's.")


class Comment(Command):
    """Say something on an agent's card. `stop` stops monitoring it, `resume` starts it again."""

    verb = "comment"
    owner = "board"

    agent: Id = Field(description="The agent's name.", examples=["builder"])
    text: str = Field(max_length=4000, description="What is said; not blank.", examples=["stop"])

    @field_validator("text")
    @classmethod
    def _says_something(cls, text: str) -> str:
        if not text.strip():
            raise ValueError("the text is blank")
        return text


class Rebuild(Command):
    """Write the registry anew from the journal, tmux and the agents' files; the old file is set aside."""

    verb = "rebuild"
    owner = "registrar"
    help = "write the registry again from the journal; the old file is set aside"


class Replay(Command):
    """Publish a service's events again, from its journal. Readers drop what they had, by `seq`."""

    verb = "replay"
    owner = "*"

    service: Id = Field(examples=["spawner"])
    epoch: str | None = Field(default=None, description="Refused when the journal is of another epoch.")
    after: int = Field(ge=0, examples=[0])

    def addressee(self) -> str:
        return self.service


VERBS: Mapping[str, type[Command]] = {command.verb: command for command in Command.verbs()}


class Reply(BaseModel):
    """The answer to a command: `ok`, or an error with a sentence a person understands."""

    model_config = ConfigDict(frozen=True)

    id: str
    verb: str
    ok: bool
    said: str = Field(description="What was done, or what is wrong and what to do about it.")
    code: str = Field(
        default="ok",
        description="`ok`, `waiting`, `malformed`, `unknown_verb`, `unknown_agent`, `unknown_service`,"
        " `unknown_loop`, `refused`, `overtaken`, `outdated`, `expired` or `retained`.",
    )
    final: bool = Field(default=True, description="False: it is under way, `said` tells what it waits for; more comes.")
    result: dict[str, Any] = {}
    by: str = Field(description="The service that answers.")
    time: AwareDatetime
