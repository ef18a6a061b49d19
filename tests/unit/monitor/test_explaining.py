"""A verdict in full: every piece of evidence, what was made of it, and the subagents."""

from services.monitor.evidence import Evidence, Source
from services.monitor.evidence.hooks import Hooked, Part
from services.monitor.explaining import explanation
from services.monitor.fusion import Verdict, fuse
from services.monitor.subject import Subject
from services.monitor.told import tell
from shared.processes import Processes
from shared.states import Activity
from tests.unit.monitor.seeing import NOW, START, turn


def subject(**parts: Activity) -> Subject:
    hooked = Hooked("c1", {name.removeprefix("main"): Part(says, NOW, "") for name, says in parts.items()})
    return Subject("builder", "s1", "claude", "claude", lambda: Processes([]), NOW, hooked, version="2.1.197")


def test_every_piece_is_there_and_what_was_made_of_it() -> None:
    found = [
        Evidence(Source.SCREEN, Activity.WAITING, NOW - 9, "its input box is empty", "input-box", weak=True),
        Evidence(Source.HOOKS, Activity.WORKING, NOW - 3.25, "it uses Bash"),
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


def test_since_is_what_was_told() -> None:
    taken, verdict = turn(now=NOW + 60), Verdict(Activity.UNKNOWN, None, ())
    tell(first := turn(), "builder", "s1", verdict, None, {})
    taken.memory = first.kept
    explained = explanation(taken, subject(), verdict, [])
    assert explained["since"] == START.isoformat()
    assert (explained["decided_by"], explained["evidence"]) == ("", [])
    assert explained["reason"] == "nothing that can be seen of it tells"
