"""Hooks for one start of an agent: arguments, variables, and a file of Muster's own. No settings are touched."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from shared.agents.hooks.command import GIVEN, NO_TEXT, is_text, spawned
from shared.agents.hooks.formats import FORMATS
from shared.agents.hooks.spool import Spool
from shared.fleet.backend import HookRules
from shared.fleet.launch_needs import fill
from shared.system.files import write

FILE, ARGS = "{hooks_file}", "{hooks_args}"


@dataclass(frozen=True)
class InjectedHooks:
    """What a start gets; nothing if `withheld` says why."""

    args: list[str] = field(default_factory=list)
    """With placeholders for `values`."""
    values: dict[str, str] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)
    file: Path | None = None
    text: str = ""
    """The content of the file."""
    withheld: str = ""

    def lay_out(self, directory: Path) -> None:
        """Create the spool and the file, if needed. Raises OSError, or MusterError if a directory is another user's."""
        if not self.env:
            return
        Spool(directory).prepare()
        if self.file is not None and _text(self.file) != self.text:
            write(self.file, self.text)

    def taken_back(self, argv: Sequence[str], env: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
        """The command line and environment without these hooks. Raises ValueError if the arguments are not there."""
        mine = [fill(word, self.values) for word in self.args]
        places = [at for at in range(len(argv)) if list(argv[at : at + len(mine)]) == mine]
        if not places:
            raise ValueError("what was given for its hooks is not on its command line")
        rest = [*argv[: places[0]], *argv[places[0] + len(mine) :]]
        return rest, {name: value for name, value in env.items() if name not in self.env}


def given(hooks: HookRules | None, directory: Path, words: Sequence[str], env: Mapping[str, str]) -> InjectedHooks:
    """The hooks for a start with this command line and environment. `directory` is the fleet's hooks directory."""
    if hooks is None:
        return InjectedHooks()
    form = FORMATS[hooks.kind]
    file = directory / f"{hooks.kind}.{form.suffix}"
    if (reason := form.in_the_way(words, env, file)) is not None:
        return InjectedHooks(withheld=reason)
    if hooks.args and ARGS not in words:
        return InjectedHooks(withheld=f"its `argv` has no {ARGS}")
    if not is_text(directory):
        return InjectedHooks(withheld=NO_TEXT)
    text = form.given(spawned(directory))
    values = {"hooks_file": str(file), "hooks": text.strip()}
    needed = any(FILE in word for word in (*hooks.args, *hooks.env.values()))
    return InjectedHooks(
        hooks.args,
        values,
        {**{name: fill(value, values) for name, value in hooks.env.items()}, GIVEN: "given"},
        file if needed else None,
        text,
    )


def _text(file: Path) -> str | None:
    with suppress(OSError, ValueError):
        return file.read_text(encoding="utf-8")
    return None
