"""One loop in one turn: what is declared, what is remembered, and the turn to act in."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from services.handoff.loops.phase_actions import ACTIONS, PhaseAction
from services.handoff.loops.phases import PROGRESS, PhaseProgress
from shared.fleet import AgentKind, Fleet
from shared.fleet.loops import Loop
from shared.runtime.memory import MemoryTable
from shared.runtime.turn import Turn

T = TypeVar("T")
COMMITS_REMEMBERED = 1_000


@dataclass(frozen=True)
class BranchMemory:
    """A loop's branch as it was last observed."""

    address: str
    branch: str
    tip: str | None = None
    """None: the branch never existed."""
    is_gone: bool = False
    head: str | None = None
    """The remote's HEAD, while the branch never existed."""
    reported: tuple[str, ...] = ()
    """Keys of reported commits: a rewrite brings them again under other ids."""
    dropped: tuple[str, ...] = ()
    """Keys of commits that a rewrite took off the branch: they may come again."""
    inbox: tuple[str, ...] = ()
    """The patterns, as in the fleet file, of the inbox files that were looked at."""
    statuses: Mapping[str, str] = field(default_factory=dict)
    """The text of each status file."""
    status_reported: str = ""
    """What was last reported about the status file."""

    def with_reported(self, keys: Iterable[str], dropped: Collection[str]) -> "BranchMemory":
        """The same after commits were reported, and others dropped."""
        reported = (*self.reported, *keys)[-COMMITS_REMEMBERED:]
        all_dropped = dict.fromkeys([*self.dropped, *sorted(dropped)])
        return replace(self, reported=reported, dropped=tuple(all_dropped)[-COMMITS_REMEMBERED:])


BRANCHES = MemoryTable("branch:", BranchMemory)
OUTAGES = MemoryTable("outage:", float, is_moment=True)
"""Since when a loop's remote is reported not to answer."""


@dataclass(frozen=True)
class LoopTurn:
    turn: Turn
    fleet: Fleet
    name: str
    declared: Loop
    address: str = ""
    """The remote as git takes it; empty: the loop is not watched."""

    @property
    def now(self) -> float:
        return self.turn.now.timestamp()

    @property
    def phases(self) -> list[str]:
        return [phase.name for phase in self.declared.phases]

    def agents(self, kind: AgentKind | None = None) -> list[str]:
        """The agents in the loop's roles, as far as the fleet file declares them."""
        agents = [agent for agent in dict.fromkeys(self.declared.roles.values()) if agent in self.fleet.agents]
        return [agent for agent in agents if kind is None or self.fleet.agents[agent].kind is kind]

    # --- memory: every record is the loop's own ---

    def find(self, table: MemoryTable[T]) -> T | None:
        return self.turn.memory.find(table, self.name)

    def put(self, table: MemoryTable[T], value: T | None) -> None:
        self.turn.memory.put(table, value, self.name)

    @property
    def branch(self) -> BranchMemory | None:
        return self.find(BRANCHES)

    @property
    def known_branch(self) -> BranchMemory | None:
        """What is remembered of the branch, unless the fleet file names another one now."""
        branch = self.branch
        is_same = branch is not None and (branch.address, branch.branch) == (self.address, self.declared.branch)
        return branch if is_same else None

    @property
    def progress(self) -> PhaseProgress:
        return self.find(PROGRESS) or PhaseProgress()

    @property
    def actions(self) -> tuple[PhaseAction, ...]:
        return self.find(ACTIONS) or ()
