"""One agent as the monitor watches it: its program, the readers of its sources, and when to look at which."""

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import tzinfo
from pathlib import Path
from typing import Any

from registry import AgentRecord
from services.monitor.evidence import Evidence, EvidenceSource
from services.monitor.evidence.hooks import HookState, take
from services.monitor.evidence.processes import ProcessReader
from services.monitor.evidence.screen import ScreenReader, TitleReader
from services.monitor.limits.zones import local_zone
from services.monitor.verdict import Verdict, fuse
from shared.agents.claude.identity import live_files
from shared.agents.claude.live_file import LiveFileReader
from shared.agents.recognition import program_in, version_of
from shared.agents.transcript_activity import ActivityReader, reader_for
from shared.contract.states import Activity
from shared.fleet import Backend
from shared.system.processes import Process, Processes, environment_of, is_there
from shared.system.tmux import Pane

BUSY_S, IDLE_S = 0.5, 1.0
"""Between two looks while something goes on, and while nothing does. Hooks and tmux wake us besides."""
QUIET_AFTER_S = 5.0
AGAIN_S = 0.9
"""An agent at work paints all the time: where better sources say that it works, its screen is read so often."""
BETTER = (EvidenceSource.HOOKS, EvidenceSource.LIVE_FILE, EvidenceSource.TRANSCRIPT)


class LookSchedule:
    def __init__(self) -> None:
        self._busy_until = float("-inf")

    def is_due(self, pane: Pane, captured_at: float, verdict: Verdict | None, now: float) -> bool:
        """Whether a screen may have changed since it was captured. tmux tells the second in which it last did."""
        if captured_at == float("-inf") or captured_at > now:
            return True  # it never was, or the clock was set back
        if pane.activity < int(captured_at):
            return False
        winner = verdict.winner if verdict is not None and verdict.status is Activity.WORKING else None
        return winner is None or winner.source not in BETTER or now - captured_at >= AGAIN_S

    def note(self, pane: Pane, verdict: Verdict, now: float) -> None:
        at_work = verdict.status in (Activity.WORKING, Activity.STARTING, Activity.NEEDS_APPROVAL)
        if at_work or now - pane.activity < QUIET_AFTER_S:
            self._busy_until = now + QUIET_AFTER_S

    def next_look_s(self, now: float) -> float:
        return BUSY_S if now < self._busy_until else IDLE_S


Look = Callable[[], Processes]

SEEKS_S, SEEKS_AT_MOST_S = 0.5, 5.0
"""A program that is not found in its pane is looked for again so soon, and half as often each time."""
CORRECTS = (EvidenceSource.LIVE_FILE, EvidenceSource.TRANSCRIPT, EvidenceSource.PROCESSES)
"""Sources whose word is good enough to forget what hooks told before."""
KEEPS_LIVE_FILE = "claude"
"""The kind of agent that says in a file of its own what it is doing."""


@dataclass
class Subject:
    """Of one session: a new one of the same agent begins anew."""

    agent: str
    spawn: str
    backend: str
    """The name of what runs it."""
    kind: str
    """What its backend names as the format of its files, or the backend's own name."""
    look: Look
    met: float
    """When it was first seen."""
    hooked: HookState = field(default_factory=HookState)
    hooked_anew: bool = False
    """Whether that has changed since it was last remembered."""
    process: Process | None = None
    version: str | None = None
    screen: str = ""
    """What was last captured."""
    captured_at: float = float("-inf")
    verdict: Verdict | None = None
    """What it was last found to be doing."""
    _weighed: list[Evidence] = field(default_factory=list)
    _shown_at: float = float("-inf")
    """Since when the screen is known to show it."""
    _screened: Evidence | None = None
    _screened_by: tuple[Backend, str | None] | None = None
    """The rules by which it was read: they may be edited, and the version may be known only later."""
    _titled: Evidence | None = None
    _titled_by: tuple[str, Backend, str | None] | None = None
    _at: tuple[Backend, Pane] | None = None
    """What runs it and where, this turn."""
    _lived: tuple[Process, bool] | None = None
    _seek_at: float = float("-inf")
    _sought: int = 0
    _may_live: list[tuple[Process, Path]] = field(default_factory=list)
    _live: LiveFileReader | None = None
    _transcript: tuple[tuple[object, ...], ActivityReader | None] | None = None
    _on_screen: ScreenReader = field(default_factory=ScreenReader)
    _in_title: TitleReader = field(default_factory=TitleReader)
    _zone: tuple[Process | None, tzinfo] | None = None
    _named_transcript: tuple[str | None, str | None] = (None, None)
    """The conversation and its file, as a hook named them."""

    def __post_init__(self) -> None:
        self._running = ProcessReader(self.look, self._lives)

    def recalled(self, kept: Mapping[str, Any] | None) -> "Subject":
        """The same, as it was before a restart, if that is of this session and can be read."""
        if kept is not None and kept.get("spawn") == self.spawn:
            with suppress(TypeError, KeyError, ValueError, AttributeError):
                self.hooked = HookState.read(kept.get("hooked"))
                self.process = Process(**kept["program"]) if kept.get("program") else None
        return self

    def begin(self, backend: Backend, pane: Pane, now: float) -> None:
        """Begin a turn: see whether its program is there, and look for it where it is not known or gone."""
        self._lived, self._at = None, (backend, pane)
        self.find(backend, pane, now)

    def is_ending(self, pane: Pane, now: float) -> bool:
        """Whether nothing should be concluded before it is known how its program ended."""
        return self._running.is_ending(pane, self.process, now)

    def find(self, backend: Backend, pane: Pane, now: float) -> None:
        """Look for its program, where that is not known or not there any more, and for the file that it keeps."""
        lives = self.process is not None and self._lives(self.process)
        if pane.dead or (lives and not self._wants_live_file) or 0 <= self._seek_at - now < SEEKS_AT_MOST_S:
            return
        processes = self.look()
        found = self.process if lives else program_in(processes, backend, pane.pid)
        self._sought += 1
        self._seek_at = now + min(SEEKS_AT_MOST_S, SEEKS_S * 2.0 ** min(self._sought, 10))
        if found is None:
            return
        if not lives:
            self._meet_program(found)
        self._may_live = list(live_files(processes, found)) if self.kind == KEEPS_LIVE_FILE else []

    @property
    def _wants_live_file(self) -> bool:
        """Whether it should keep one, and none is known: a wrapper may start the program that does only later."""
        return self.kind == KEEPS_LIVE_FILE and self._live is None

    def _meet_program(self, found: Process) -> None:
        if self.process is not None and self.process != found and self.hooked.parts:
            self.hooked, self.hooked_anew = HookState(), True  # what a program said that is gone counts no longer
        self.process, self.version, self._sought, self._live = found, version_of(found), 0, None

    @property
    def warning(self) -> str:
        """What its screen warns of: a usage limit that is near."""
        return self._on_screen.warning

    @property
    def zone(self) -> tzinfo:
        """In which its program tells the time of day."""
        if self._zone is None or self._zone[0] is not self.process:
            variables = environment_of(self.process) if self.process is not None else os.environ
            self._zone = (self.process, local_zone(variables.get("TZ")))
        return self._zone[1]

    def program(self) -> dict[str, Any] | None:
        """Its program, to be known again after a restart."""
        return asdict(self.process) if self.process is not None else None

    def hear(self, payload: Mapping[str, Any], at: float, pid: int, now: float) -> None:
        """Take in a call of one of its hooks."""
        if self._at is not None and (self.process is None or not self._lives(self.process)):
            self._seek_at = float("-inf")  # somebody is there who calls
            self.find(*self._at, now)
        before, self.hooked = self.hooked, take(self.hooked.clamped(now), payload, at, pid)
        self._note_transcript(payload)
        self.hooked_anew = self.hooked_anew or before != self.hooked

    def _note_transcript(self, payload: Mapping[str, Any]) -> None:
        """Where its conversation is kept: a hook tells it before anybody has looked for it on disk."""
        conversation, path = payload.get("session_id"), payload.get("transcript_path")
        of_main = conversation == self.hooked.conversation and not payload.get("agent_id")
        if of_main and isinstance(path, str) and path.startswith("/"):
            self._named_transcript = (str(conversation), path)

    def judge(self, backend: Backend, pane: Pane, record: AgentRecord | None, now: float) -> Verdict:
        """What it is doing; the verdict of before where nothing has changed, as with most agents most of the time."""
        evidence = self.evidence(backend, pane, record, now)
        verdict = self.verdict
        is_due = verdict is None or (verdict.again_at is not None and now >= verdict.again_at)
        if verdict is None or is_due or evidence != self._weighed:
            self._weighed = evidence
            self.verdict = verdict = fuse(evidence, now)
            self._correct_hooks(verdict)
        return verdict

    def _correct_hooks(self, verdict: Verdict) -> None:
        """Forget what hooks told that was seen to be otherwise since: a question that was answered, work that was
        interrupted. Else it would be believed again when the other source falls silent."""
        winner = verdict.winner
        hooks = next((each.evidence for each in verdict.heard if each.evidence.source is EvidenceSource.HOOKS), None)
        if winner is None or hooks is None or hooks.says is winner.says or winner.at <= hooks.at:
            return
        if winner.source in CORRECTS or hooks.says is Activity.NEEDS_APPROVAL:
            self.hooked, self.hooked_anew = self.hooked.after(winner.at), True

    def evidence(self, backend: Backend, pane: Pane, record: AgentRecord | None, now: float) -> list[Evidence]:
        """All that can be told of it now."""
        alive = not pane.dead and (self.process is None or self._lives(self.process))
        asked_for = self.hooked.asked_for if alive else None
        found = [
            self._running.read(
                backend, pane, self.process, now, asked_for=asked_for, said_goodbye=self.hooked.said_goodbye
            )
        ]
        if alive:  # what a program said that is gone is said no longer
            found += [
                self.hooked.evidence(),
                self._live_file(),
                self._in_transcript(record, pane),
                self._read_title(backend, pane, now),
                self._read_screen(backend, now),
            ]
        # A clock that was set back must not make anybody believe what was told before that until it is there again.
        return [each if each.at <= now else replace(each, at=now) for each in found if each is not None]

    def _lives(self, process: Process) -> bool:
        """Whether a process is there; the system is asked once a turn."""
        if self._lived is None or self._lived[0] is not process:
            self._lived = (process, is_there(process))
        return self._lived[1]

    def show(self, pane: Pane, screen: str, now: float) -> None:
        """Take in what its screen shows now. The first look tells what has been there since it last changed."""
        self._shown_at = min(now, pane.activity + 1) if self.captured_at == float("-inf") else now
        self.screen, self.captured_at, self._screened_by = screen, now, None

    def _read_screen(self, backend: Backend, now: float) -> Evidence | None:
        if self.captured_at != float("-inf") and self._screened_by != (backend, self.version):
            at = self._shown_at if self._screened_by is None else now
            self._screened = self._on_screen.read(backend, self.screen, self.version, at)
            self._screened_by = (backend, self.version)
        return self._screened

    def _read_title(self, backend: Backend, pane: Pane, now: float) -> Evidence | None:
        by = (pane.title, backend, self.version)
        if self._titled_by != by:
            at = min(now, pane.activity + 1) if self._titled_by is None else now
            self._titled = self._in_title.read(backend, pane.title, self.version, at)
            self._titled_by = by
        return self._titled

    def _live_file(self) -> Evidence | None:
        if self._live is None:
            there = [(path, process) for process, path in self._may_live if path.is_file()]
            if not there:
                return None
            self._live = LiveFileReader(*there[0])
        said = self._live.read()
        self.version = self._live.version or self.version
        return said

    def _in_transcript(self, record: AgentRecord | None, pane: Pane) -> Evidence | None:
        known = record is not None and record.transcript is not None
        conversation, path = (record.conversation, record.transcript) if record and known else self._named_transcript
        if path is None:
            return None
        since = self.process.started if self.process is not None else float(pane.created)
        key = (path, conversation, since)
        if self._transcript is None or self._transcript[0] != key:
            self._transcript = (key, reader_for(self.kind, Path(path), conversation, since=since))
        reader = self._transcript[1]
        return reader.read() if reader is not None else None
