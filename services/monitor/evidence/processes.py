"""What an agent's processes tell: that it starts, that a command it asked permission for runs, and how it ended."""

from collections.abc import Callable
from dataclasses import dataclass

from services.monitor.evidence.hooks import HookActor
from shared.agents.evidence import Evidence, EvidenceSource
from shared.contract.states import Activity, Trouble
from shared.fleet import Backend, PromptDelivery
from shared.system.processes import Process, Processes, is_there
from shared.system.tmux import Pane

START_EARLIER_S = 0.5
"""How much before its question a command may seem to have started: process clocks count in ticks."""
COMMAND_CHARACTERS = 80
QUOTING = " \t\n'\"\\"
"""Characters that shells and agents add to a command."""
WORD_CHARACTERS = ("_", "-", ".", "/")
STATUS_WITHIN_S = 2.0
"""tmux may see that a program ended before it knows the exit status."""
DEAD_PANE_WITHIN_S = 0.4
"""A program may be gone before tmux sees that its pane is dead."""


@dataclass
class ProcessReader:
    """Reads one agent's processes. `look` gives those of this moment; it is costly, so it is called late."""

    look: Callable[[], Processes]
    lives: Callable[[Process], bool] = is_there
    _ended_at: float | None = None

    def read(
        self,
        backend: Backend,
        pane: Pane,
        process: Process | None,
        now: float,
        *,
        asked_for: HookActor | None = None,
        said_goodbye: bool = False,
    ) -> Evidence | None:
        """`process`: the agent's program, if found; `asked_for`: what it last asked permission for."""
        if (ended := self._ended(pane, process, now, said_goodbye=said_goodbye)) is not None:
            return ended
        if asked_for is not None and (runs := self._approved(process or pane.pid, asked_for)) is not None:
            return runs
        if backend.deliver is PromptDelivery.EXEC:
            why = "its program runs, and ends when it is done"
            return Evidence(EvidenceSource.PROCESSES, Activity.WORKING, pane.created, why)
        if now - pane.created < backend.ready_within_s:
            why = "its program has just started"
            return Evidence(EvidenceSource.PROCESSES, Activity.STARTING, pane.created, why, weak=True)
        return None

    def is_ending(self, pane: Pane, process: Process | None, now: float) -> bool:
        """Whether it has ended, and it will soon be known how: nothing should be concluded before that."""
        if (pane.dead and pane.dead_status is not None) or not self._is_over(pane, process):
            return False
        self._ended_at = self._ended_at or now
        return 0 <= now - self._ended_at < (STATUS_WITHIN_S if pane.dead else DEAD_PANE_WITHIN_S)

    def _ended(self, pane: Pane, process: Process | None, now: float, *, said_goodbye: bool) -> Evidence | None:
        if not self._is_over(pane, process):
            self._ended_at = None
            return None
        self._ended_at = self._ended_at or now
        if not pane.dead:
            says = Activity.DONE if said_goodbye else Activity.FAILED
            why = "its program is gone from its pane"
            return Evidence(EvidenceSource.PROCESSES, says, self._ended_at, why, "gone", trouble=Trouble.GONE)
        status = pane.dead_status
        well = status == 0 or (status is None and said_goodbye)
        says = Activity.DONE if well else Activity.FAILED
        return Evidence(EvidenceSource.PROCESSES, says, self._ended_at, f"its program ended {_how(status)}", "ended")

    def _is_over(self, pane: Pane, process: Process | None) -> bool:
        return pane.dead or (process is not None and not self.lives(process))

    def _approved(self, top: Process | int, asked_for: HookActor) -> Evidence | None:
        """If the command that it asked permission for runs, the permission was given."""
        wanted = _bare(asked_for.command)
        if not wanted:
            return None
        processes = self.look()
        for process in processes.below(top if isinstance(top, int) else top.pid)[1:]:
            if process.started < asked_for.at - START_EARLIER_S:
                continue
            if _runs(wanted, " ".join(processes.arguments(process))):
                why = f"the command that it asked for runs: {asked_for.command[:COMMAND_CHARACTERS]}"
                at = max(process.started, asked_for.at + 0.01)
                return Evidence(EvidenceSource.PROCESSES, Activity.WORKING, at, why, "approved")
        return None


def _bare(command: str) -> str:
    """A command without spaces and quoting."""
    return "".join(letter for letter in command if letter not in QUOTING)


def _runs(wanted: str, line: str) -> bool:
    """Whether a bare command is in a command line as whole words: `ls` is not in `tools`."""
    places = [place for place, letter in enumerate(line) if letter not in QUOTING]
    bare = _bare(line)
    at = bare.find(wanted)
    while at >= 0:
        first, last = places[at], places[at + len(wanted) - 1]
        if not (_is_of_a_word(line[first - 1 : first]) or _is_of_a_word(line[last + 1 : last + 2])):
            return True
        at = bare.find(wanted, at + 1)
    return False


def _is_of_a_word(letter: str) -> bool:
    return letter.isalnum() or letter in WORD_CHARACTERS


def _how(status: int | None) -> str:
    if status is None:
        return "and did not say how"
    return f"by signal {-status}" if status < 0 else f"with status {status}"
