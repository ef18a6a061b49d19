"""The recorded cases, and the evidence that the monitor's own readers find in each."""

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from services.monitor.evidence.hooks import HookState, take
from services.monitor.evidence.screen import ScreenReader, TitleReader
from services.monitor.verdict import Verdict, fuse
from shared.agents.claude.live_file import claim_of
from shared.agents.evidence import Evidence, EvidenceSource
from shared.agents.opencode.activity import OpencodeActivity
from shared.agents.transcript_activity import READINGS
from shared.contract.states import Activity
from shared.fleet import Backend
from shared.fleet.profiles import shipped

RECORDED = Path(__file__).parent / "recorded"
SHOWN_FOR_S = 1.0
"""A situation had lasted at least so long when it was recorded."""


@dataclass(frozen=True)
class Case:
    file: Path

    @cached_property
    def _found(self) -> dict[str, Any]:
        return dict(json.loads(self.file.read_text(encoding="utf-8")))

    @property
    def name(self) -> str:
        return f"{self.file.parent.name}/{self.file.stem}"

    @property
    def program(self) -> str:
        """Which program at which version."""
        return self.file.parent.name

    @property
    def situation(self) -> str:
        return str(self._found["situation"])

    @property
    def columns(self) -> int:
        return int(self._found["columns"])

    @property
    def expected(self) -> Activity:
        return Activity(self._found["expected"])

    @property
    def backend(self) -> Backend:
        return shipped()[self._found["cli"]]

    @cached_property
    def _evidence(self) -> list[Evidence]:
        """What each source tells, where it was recorded and tells anything."""
        if self._found["dead"]:
            return [self._ended()]
        found = (self._hooks(), self._live(), self._transcript(), self._title(), self._screen())
        return [each for each in found if each is not None]

    @property
    def is_whole(self) -> bool:
        """Whether more was recorded than title and screen."""
        return "hooks" in self._found

    def verdict(self, but: EvidenceSource | None = None) -> Verdict:
        """What is told, or would be without one of the sources."""
        return fuse([piece for piece in self._evidence if piece.source is not but], self._now)

    @property
    def _now(self) -> float:
        return float(self._found["recorded_at"])

    @property
    def _shown_at(self) -> float:
        return self._now - SHOWN_FOR_S

    def _ended(self) -> Evidence:
        status, signal = self._found["exit_status"], self._found.get("exit_signal")
        hooks = self._hooks()
        well = status == 0 if status is not None or signal else hooks is not None and hooks.says is Activity.DONE
        says = Activity.DONE if well else Activity.FAILED
        return Evidence(EvidenceSource.PROCESSES, says, self._shown_at, "its program ended", "ended")

    def _hooks(self) -> Evidence | None:
        known = HookState()
        for call in self._found.get("hooks") or []:
            known = take(known, call["payload"], call["at"])
        return known.evidence()

    def _live(self) -> Evidence | None:
        return claim_of(self._found["live"]) if self._found.get("live") else None

    def _transcript(self) -> Evidence | None:
        kind = self._found["cli"]
        reading = OpencodeActivity() if kind == "opencode" else READINGS[kind]()
        for line in (self._found.get("transcript") or {}).get("lines", []):
            reading.take(line)
        return reading.claim()

    def _title(self) -> Evidence | None:
        return TitleReader().read(self.backend, self._found["title"], self._found["version"], self._shown_at)

    def _screen(self) -> Evidence | None:
        screen = "\n".join(self._found["screen"])
        return ScreenReader().read(self.backend, screen, self._found["version"], self._shown_at)


def cases() -> list[Case]:
    return [Case(file) for file in sorted(RECORDED.glob("*/*@*.json"))]
