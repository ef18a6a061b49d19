"""How to run one kind of agent: data, never code. Every field can be overridden in the fleet file."""

from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from pydantic import Field

from shared.agents.parts import programs_with
from shared.contract.ids import Id
from shared.fleet.screen_rules import Dialog, ScreenRules, Sign, TitleRule
from shared.fleet.section import (
    KeyName,
    PositiveSeconds,
    Regex,
    Seconds,
    Section,
    VariableName,
    VariablePattern,
    Variables,
)

__all__ = [
    "Backend",
    "Dialog",
    "ForkRules",
    "HookRules",
    "ModelChoice",
    "PromptDelivery",
    "ResumeRules",
    "ScreenRules",
    "Sign",
    "TitleRule",
    "TypingRules",
]


if TYPE_CHECKING:
    HooksKind: TypeAlias = str
    ForkKind: TypeAlias = str
    TranscriptKind: TypeAlias = str
else:
    HooksKind = Literal[programs_with("hooks.py")]
    ForkKind = Literal[programs_with("fork.py")]
    TranscriptKind = Literal[programs_with("transcript.py")]

UNSAID: Any = ""
"""Left to the backend that this one is `like`; `check` reports it if that does not say it either."""


class PromptDelivery(StrEnum):
    """How the first prompt reaches the agent."""

    ARG = "arg"  # on its command line: `prompt_args`
    PASTE = "paste"  # typed into its input box once that is there
    EXEC = "exec"  # the program is run once per prompt and ends; the prompt is in a file


class ModelChoice(Section):
    """How a model is named to the agent; nothing is said when none is chosen."""

    args: list[str] = []
    """With `{model}`."""
    env: VariableName | None = None
    """The variable that is set to it."""


class ResumeRules(Section):
    """How an earlier conversation is taken up again."""

    args: list[str] = []
    """With `{session}`, the agent's own id of the conversation."""
    latest: list[str] = []
    """When no id is known: the newest conversation in the workspace."""
    takes_prompt: bool = True
    """Whether a prompt on the command line is heeded then too; else it is pasted."""
    refused: list[Regex] = []
    """What the agent shows when it has no such conversation."""
    refused_within_s: PositiveSeconds = 20.0
    """A resumed agent that ends so soon, not by our hand and not with status 0, refused it."""
    otherwise: Literal["fresh", "stop"] = "fresh"
    """After a refusal: begin a new conversation with the agent's prompt, or leave it down."""


class TypingRules(Section):
    """How to type into the agent's terminal."""

    submit: list[KeyName] = ["Enter"]
    """What sends the text."""
    clear: list[KeyName] = ["C-u"]
    """What empties the input box, and does no harm when it is empty."""
    clear_times: int = Field(default=1, ge=1, le=200)
    """How often that is pressed in one go; it is repeated until the box is empty."""
    after_placeholder: list[KeyName] = []
    """What is pressed after a paste that is shown as a placeholder, before it is submitted."""
    interrupt: list[KeyName] = ["Escape"]
    """What stops the agent's work."""
    settle_s: Seconds = 0.1
    """How long after a paste the submit key would still be taken for a part of it."""
    while_working: bool = True
    """Whether the agent takes a text while it works, for later."""
    command: Regex | None = None
    """Texts that the agent's program would take as orders to itself: refused, unless they are meant so."""
    completes: Regex | None = None
    """Texts at whose end the box would offer to complete a word: a space behind them stops that. It is trimmed."""
    unpasteable: Regex | None = r"[\x00-\x08\x0b-\x1f\x7f-\x9f]"
    """Characters that a paste would lose or change; a text with one is handed over in a file of the workspace."""
    composes: bool = False
    """Whether the agent changes decomposed characters (an e and an accent) into composed ones."""
    by_file: str = "Read the file {prompt_file} and do what it says: it is my message, which a terminal can't carry."
    """What is typed then."""


class HookRules(Section):
    """How the agent is told, for one run, to tell Muster what it does; its user's settings are not touched.

    `{hooks_file}` is a file that says so, `{hooks}` the same text itself.
    """

    kind: HooksKind = UNSAID
    """Whose hooks they are; needed, unless a shipped backend says it."""
    args: list[str] = []
    """Words for the command line, in place of `{hooks_args}`."""
    env: dict[VariableName, str] = {}
    """Variables."""


class ForkRules(Section):
    """How a copy of the agent's conversation is asked how the work is; the agent itself is left alone.

    `{binary} {session} {question} {model} {schema} {scratch} {transcript}` and those of the backend are filled in.
    """

    kind: ForkKind = UNSAID
    """Who makes the copy and reads the answer; needed, unless a shipped backend says it."""
    argv: list[str] = []
    """The command line; needed. Where it has no `{question}`, that is the standard input. `{model_args}` stands for the
    backend's own `model.args`, if there is a model; `{schema_args}` for those below."""
    schema_args: list[str] = []
    """Where the answer is to be of a certain form: with `{schema}`, a JSON Schema."""
    env: dict[VariableName, str] = {}
    """Variables, over those of the agent. `{scratch}` is a directory that is removed afterwards."""
    model: str = ""
    """The cheap model that answers; empty: the program's own choice."""


class Backend(Section):
    """One kind of agent.

    `{binary} {python} {backends} {agent} {prompt} {prompt_file} {session} {model} {workspace}` are filled in.
    """

    like: Id | None = None
    """Begin with another backend, and say here only what is different."""
    binary: str = ""
    """The program; looked up on the agent's PATH."""
    install: str = ""
    """How a person gets it."""
    argv: list[str] = Field(
        default=[
            "{binary}",
            "{resume_args}",
            "{extra_args}",
            "{hooks_args}",
            "{fresh_args}",
            "{model_args}",
            "{prompt_args}",
        ],
        min_length=1,
    )
    """The command line; a word such as `{model_args}` stands for the list, which may be empty."""
    extra_args: list[str] = []
    """More of it, for what you want to add."""
    deliver: PromptDelivery = PromptDelivery.PASTE
    """The first prompt: `arg` on the command line, `paste` into the input box, `exec` in a file."""
    prompt_args: list[str] = ["{prompt}"]
    """With `deliver: arg`, when there is a prompt."""
    fresh_args: list[str] = []
    """For a new conversation. With `{session}` Muster chooses the id of it, a UUID."""
    model: ModelChoice = ModelChoice()
    resume: ResumeRules = ResumeRules()
    process: list[str] = []
    """What the agent's process is called; default: the binary."""
    env: Variables = {}
    """Variables for every agent of this kind."""
    env_from: list[VariablePattern] = []
    """Variables that it may see of Muster's own environment, beside those that all may."""
    transcript: TranscriptKind | None = None
    """The format in which it keeps its conversations."""
    hooks: HookRules | None = None
    """How it tells what it does; null: it does not."""
    ask: ForkRules | None = None
    """How a copy of its conversation is asked how the work is; null: it is not."""
    typing: TypingRules = TypingRules()
    screen: ScreenRules = ScreenRules()
    titles: dict[Id, TitleRule | None] = {}
    """What the terminal's title tells; the first that matches counts. `null` takes a shipped one away."""
    ready_within_s: PositiveSeconds = 60.0
    """How long it may take to be ready for its first prompt."""
