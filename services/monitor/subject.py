"""One session of an agent as the monitor watches it: the readers of its sources, and the verdict that they give.

What it holds has times as they were stamped; what it gives, times on the present clock.

A turn calls `begin`, `take_hook` for each call of a hook, `capture` if the screen changed, then `judge`.
A new session of the same agent is a new subject.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import tzinfo
from pathlib import Path
from typing import Any

from registry import AgentRecord
from services.monitor.evidence.hooks import HookMemory, HookState, take
from services.monitor.evidence.processes import ProcessReader
from services.monitor.evidence.program import AgentProgram
from services.monitor.evidence.screen import CapturedScreen, ShownTitle
from services.monitor.evidence.stamps import CorrectedStamps
from services.monitor.verdict import Verdict, fuse
from shared.agents.evidence import Evidence, EvidenceSource
from shared.agents.transcript_activity import ActivityReader, reader_for
from shared.contract.states import Activity
from shared.fleet import Backend
from shared.system.clock import ClockHistory
from shared.system.processes import Processes
from shared.system.tmux import Pane

CORRECTS_HOOKS = (EvidenceSource.LIVE_FILE, EvidenceSource.TRANSCRIPT, EvidenceSource.PROCESSES)
"""Sources that are sure enough to forget what hooks told before."""


class Subject:
    def __init__(
        self,
        agent: str,
        spawn: str,
        backend: str,
        kind: str,
        look: Callable[[], Processes],
        now: float,
        memory: HookMemory | None = None,
    ) -> None:
        """`kind`: the format of the agent's files. `memory`: from before a restart of the monitor."""
        self.agent, self.spawn, self.backend, self.met_at = agent, spawn, backend, now
        own = memory if memory is not None and memory.spawn == spawn else HookMemory(spawn)
        self.hooks = own.state
        self.screen = CapturedScreen()
        self.verdict: Verdict | None = None
        """What the agent was last found to be doing."""
        self._kind = kind
        self._program = AgentProgram(kind, look, own.process)
        self._processes = ProcessReader(look, self._program.lives)
        self._title = ShownTitle()
        self._stamps = CorrectedStamps()
        self._transcript: tuple[tuple[object, ...], ActivityReader | None] | None = None
        self._named_transcript: tuple[str | None, str | None] = (None, None)
        """The conversation and its file, as a hook named them."""
        self._weighed: list[Evidence] = []

    @property
    def version(self) -> str | None:
        return self._program.version

    @property
    def zone(self) -> tzinfo:
        """The time zone in which the agent tells the time of day."""
        return self._program.zone

    @property
    def memory(self) -> HookMemory:
        """What a restarted monitor must know of it."""
        return HookMemory(self.spawn, self.hooks, self._program.process)

    # --- a turn ---

    def begin(self, backend: Backend, pane: Pane, now: float, clock: ClockHistory | None = None) -> None:
        """Begin a turn: search the agent's program if it is not known, or gone."""
        self._rules, self._pane = backend, pane
        self._stamps.begin(clock or ClockHistory(), now)
        self._program.begin()
        self._find_program(now)

    @property
    def pane(self) -> Pane:
        """Its pane, with times on the present clock."""
        return self._stamps.pane(self._pane)

    def _find_program(self, now: float, *, at_once: bool = False) -> None:
        is_another = self._program.find(self._rules, self._pane, now, at_once=at_once)
        if is_another and self.hooks.parts:  # what the last program said does not count any more
            self.hooks = HookState()

    def take_hook(self, payload: Mapping[str, Any], at: float, pid: int, now: float) -> None:
        """Take a call of one of its hooks."""
        if not self._program.is_there:
            self._find_program(now, at_once=True)  # it calls, so it is there
        self.hooks = take(self.hooks.clamped(now), payload, at, pid)
        # A hook names the transcript before it can be found on disk.
        conversation, path = payload.get("session_id"), payload.get("transcript_path")
        of_main = conversation == self.hooks.conversation and not payload.get("agent_id")
        if of_main and isinstance(path, str) and path.startswith("/"):
            self._named_transcript = (str(conversation), path)

    def capture(self, screen: str, now: float) -> None:
        """Take what its screen shows now."""
        self.screen.capture(self._pane, screen, now)

    def is_ending(self, now: float) -> bool:
        """Whether its program has ended, and nothing should be concluded before it is known how."""
        return self._processes.is_ending(self._pane, self._program.process, now)

    def judge(self, record: AgentRecord | None, now: float) -> Verdict:
        """What the agent is doing. Where no evidence changed, this is the same verdict as before."""
        evidence, verdict = self.evidence(record, now), self.verdict
        is_due = verdict is not None and verdict.again_at is not None and now >= verdict.again_at
        if verdict is None or is_due or evidence != self._weighed:
            self._weighed = evidence
            self.verdict = verdict = fuse(evidence, now)
            self._correct_hooks(verdict)
        return verdict

    def evidence(self, record: AgentRecord | None, now: float) -> list[Evidence]:
        """What each source says now. Of a program that is gone, only its processes say anything."""
        backend, pane, program = self._rules, self._pane, self._program
        alive = not pane.dead and (program.process is None or program.is_there)
        asked_for = self.hooks.asked_for if alive else None
        goodbye = self.hooks.said_goodbye
        found = [
            self._processes.read(backend, pane, program.process, now, asked_for=asked_for, said_goodbye=goodbye),
        ]
        if alive:
            found += [
                self.hooks.evidence(),
                program.read_live_file(),
                self._read_transcript(record, pane),
                self._title.read(backend, pane, program.version, now),
                self.screen.read(backend, program.version, now),
            ]
        return [self._corrected(each) for each in found if each is not None]

    def _corrected(self, evidence: Evidence) -> Evidence:
        at = self._stamps.moment(evidence.source, evidence.at)
        return evidence if at == evidence.at else replace(evidence, at=at)

    def _read_transcript(self, record: AgentRecord | None, pane: Pane) -> Evidence | None:
        recorded = record is not None and record.transcript is not None
        conversation, path = (record.conversation, record.transcript) if record and recorded else self._named_transcript
        if path is None:
            return None
        process = self._program.process
        since = process.started if process is not None else float(pane.created)
        key = (path, conversation, since)
        if self._transcript is None or self._transcript[0] != key:
            self._transcript = (key, reader_for(self._kind, Path(path), conversation, since=since))
        reader = self._transcript[1]
        return reader.read() if reader is not None else None

    def _correct_hooks(self, verdict: Verdict) -> None:
        """Forget what hooks told if another source has since shown otherwise, as after an answer or an interruption.

        Else it would be believed again when the other source falls silent.
        """
        winner = verdict.winner
        told = next((each.evidence for each in verdict.weighed if each.evidence.source is EvidenceSource.HOOKS), None)
        if winner is None or told is None or told.says is winner.says or winner.at <= told.at:
            return
        if winner.source in CORRECTS_HOOKS or told.says is Activity.NEEDS_APPROVAL:
            parts = {name: self._stamps.moment(name, part.at) for name, part in self.hooks.parts.items()}
            self.hooks = self.hooks.without(name for name, at in parts.items() if at <= winner.at)
