"""What `muster explain` gives: every piece of evidence, why it is believed, and the subagents."""

import pytest

from services.monitor.evidence.hooks import HookActor, HookMemory, HookState
from services.monitor.explanation import explanation
from services.monitor.reports import report
from services.monitor.subject import Subject
from services.monitor.verdict import Verdict, fuse
from shared.agents.evidence import Evidence, EvidenceSource
from shared.contract.states import Activity
from shared.runtime.memory import Memory
from shared.system.processes import Processes
from tests.fakes.records import START
from tests.unit.monitor.samples import NOW, turn


def subject(**parts: Activity) -> Subject:
    hooks = HookState("c1", {name.removeprefix("main"): HookActor(says, NOW, "") for name, says in parts.items()})
    return Subject("builder", "s1", "claude", "claude", lambda: Processes([]), NOW, HookMemory("s1", hooks))


def test_an_explanation_has_every_piece_of_evidence_and_why_it_is_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Subject, "version", "2.1.197")
    found = [
        Evidence(EvidenceSource.SCREEN, Activity.WAITING, NOW - 9, "its input box is empty", "input-box", weak=True),
        Evidence(EvidenceSource.HOOKS, Activity.WORKING, NOW - 3.25, "it uses Bash"),
    ]
    taken = turn()
    explained = explanation(taken, subject(main=Activity.WORKING, a1=Activity.WAITING), fuse(found, NOW), [])
    assert (explained["agent"], explained["backend"], explained["version"]) == ("builder", "claude", "2.1.197")
    assert (explained["status"], explained["decided_by"]) == ("working", "hooks")
    assert explained["reason"] == "it uses Bash"
    hooks, screen = explained["evidence"]
    assert (hooks["source"], hooks["believed"], hooks["age_s"]) == ("hooks", True, 3.2)
    assert (screen["source"], screen["believed"], screen["rule"], screen["weak"]) == (
        "screen",
        False,
        "input-box",
        True,
    )
    assert "absent" in screen["because"]
    assert explained["subagents"] == {"a1": "waiting"}


def test_since_is_the_reported_time() -> None:
    taken, verdict = turn(now=NOW + 60), Verdict(Activity.UNKNOWN, None, ())
    report(first := turn(), "builder", "s1", verdict)
    taken.memory = Memory(first.memory.changes)
    explained = explanation(taken, subject(), verdict, [])
    assert explained["since"] == START.isoformat()
    assert (explained["decided_by"], explained["evidence"]) == ("", [])
    assert explained["reason"] == "nothing that can be seen of it tells"
