"""A checker that can't fail shows nothing: each promise is kept by a good run, and broken by one planted fault."""

from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest

from tests.chaos.evidence import Absence, Act, AgentViews, Asked, Evidence, LostEpoch, SeenEvent, SeenReply
from tests.chaos.promises import PROMISES, RETURNS_WITH_SESSION, broken
from tests.chaos.report import report

NOW = 1_000.0
RECORD = {"status": "running", "desired": "running", "spawn": "s1", "conversation": "c1"}
SUBSCRIBERS = ("connected", "with session", RETURNS_WITH_SESSION)


def event(
    seq: int, kind: str, *, topic: str = "lifecycle", at: float = NOW, agent: str = "a", **data: object
) -> SeenEvent:
    source = "reconciler" if topic == "drift" else "spawner"
    return SeenEvent("e1", source, seq, at, f"muster/box/agent/{agent}/{topic}", {"agent": agent, "kind": kind, **data})


def asked(verb: str, at: float, *, ok: bool | None = True, way: str = "cli", **more: object) -> Asked:
    command = f"{verb}-{at:g}"
    reply = None if ok is None else SeenReply(command, ok, "said")
    return replace(Asked(at, at + 1, verb, "a", way, 0 if ok else 75, command=command, reply=reply), **more)  # type: ignore[arg-type]


def good() -> Evidence:
    """A text, a kill that was told and mended, and all of it seen everywhere."""
    restarted = event(3, "restarted", at=NOW + 30, spawn="s1", conversation="c1")
    events = [
        event(1, "spawned", spawn="s0"),
        replace(event(2, "sent", at=NOW + 10), cause="send-1010"),
        restarted,
        event(1, "missing", topic="drift", at=NOW + 29, spawn="s0"),
    ]
    views = AgentViews(dict(RECORD), dict(RECORD), dict(RECORD), "s1")
    return Evidence(
        began=NOW,
        events={name: list(events) for name in SUBSCRIBERS},
        journal=list(events),
        replies=[SeenReply("send-1010", True, "said")] * 2,
        asked=[asked("send", NOW + 10, word="word-1")],
        acts=[Act(NOW + 28, "session killed by hand", "a", NOW + 28)],
        agents={"a": views},
        heard=[("c1", "hello"), ("c1", "note word-1")],
        logs={"spawner.log": "all went well"},
        memory_mb={"spawner": [30.0, 40.0]},
    )


def test_a_good_run_breaks_no_promise() -> None:
    assert broken(good()) == []


Plant = Callable[[Evidence], object]


def lose(place: str, seq: int) -> Plant:
    def planted(evidence: Evidence) -> None:
        events = evidence.journal if place == "journal" else evidence.events[place]
        events[:] = [each for each in events if (each.source, each.seq) != ("spawner", seq)]

    return planted


def lose_everywhere(evidence: Evidence) -> None:
    for place in (*SUBSCRIBERS, "journal"):
        lose(place, 2)(evidence)


def tell(*more: SeenEvent) -> Plant:
    def planted(evidence: Evidence) -> None:
        for events in (*evidence.events.values(), evidence.journal):
            events.extend(more)

    return planted


def show(place: str, name: str, value: str) -> Plant:
    def planted(evidence: Evidence) -> None:
        getattr(evidence.agents["a"], place)[name] = value

    return planted


def everywhere(**changed: str) -> Plant:
    def planted(evidence: Evidence) -> None:
        record = {**RECORD, **changed}
        there = "s1" if record["status"] == "running" else None
        evidence.agents["a"] = AgentViews(dict(record), dict(record), dict(record), there)

    return planted


def ask(*more: Asked) -> Plant:
    return lambda evidence: evidence.asked.extend(more)


def heard(*texts: str) -> Plant:
    return lambda evidence: evidence.heard.extend(("c1", text) for text in texts)


def both(*plants: Plant) -> Plant:
    return lambda evidence: [plant(evidence) for plant in plants]


def other_content(evidence: Evidence) -> None:
    evidence.events["connected"].append(event(2, "sent", spawn="other"))


def other_answer(evidence: Evidence) -> None:
    evidence.replies.append(SeenReply("send-1010", False, "it was refused"))


def gone(evidence: Evidence) -> None:
    evidence.agents["a"].tmux = None


def not_recorded(evidence: Evidence) -> None:
    evidence.agents["a"].registry = None


def set_(name: str, value: object) -> Plant:
    return lambda evidence: setattr(evidence, name, value)


STOPPED = everywhere(desired="stopped", status="stopped")

FAULTS: dict[str, tuple[Plant, str]] = {
    "an event that a subscriber missed": (lose("connected", 2), "no event is lost"),
    "one that the session lost": (lose("with session", 2), "no event is lost"),
    "one that was lost to who was there": (lose(RETURNS_WITH_SESSION, 2), "no event is lost"),
    "the last event": (lose("connected", 3), "no event is lost"),
    "an event that the journal lacks": (lose("journal", 2), "no event is lost"),
    "an event that is seen nowhere": (lose_everywhere, "no event is lost"),
    "a published event of a lost journal": (
        set_("lost_epochs", [LostEpoch("e0", NOW, {"spawner": 2})]),
        "no event is lost",
    ),
    "a number with two contents": (other_content, "a number has one content"),
    "an event that stayed in the journal": (set_("unpublished", {"spawner": 1}), "all is published"),
    "a command that acted twice": (
        tell(replace(event(4, "sent", at=NOW + 40), cause="send-1010")),
        "a command acts once",
    ),
    "two answers": (other_answer, "a command is answered once"),
    "a text that came twice": (heard("note word-1"), "a text arrives once"),
    "a text that never came": (set_("heard", []), "a text that was answered ok is there"),
    "a refused text that came": (
        both(ask(asked("send", NOW + 20, ok=False, word="word-2")), heard("word-2")),
        "a text that was refused is not there",
    ),
    "a pending command that nobody knows": (
        ask(asked("send", NOW + 20, ok=None, word="w-3")),
        "a pending command ends",
    ),
    "a published one that nobody knows": (
        ask(asked("send", NOW + 20, ok=None, way="pub", code=0)),
        "a command that the broker took ends",
    ),
    "a CLI that fell": (ask(asked("stop", NOW + 20, ok=False, said="Traceback (most recent")), "the CLI ends well"),
    "a stop that was forgotten": (ask(asked("stop", NOW + 20)), "the last wish holds"),
    "an edit that was forgotten": (ask(asked("stop", NOW + 20, ok=None, way="registry")), "the last wish holds"),
    "a stop that nobody asked for": (STOPPED, "the last wish holds"),
    "an earlier wish that won": (
        both(ask(asked("stop", NOW + 20), asked("spawn", NOW + 22)), STOPPED),
        "the last wish holds",
    ),
    "one that is wanted and does not run": (everywhere(status="exited"), "what is wanted runs"),
    "one that is stopped and runs": (
        both(ask(asked("stop", NOW + 20)), everywhere(desired="stopped")),
        "what is stopped stays stopped",
    ),
    "half a registry": (set_("broken_reads", [(NOW, "no YAML")]), "the registry is whole"),
    "a service that stays degraded": (set_("not_online", {"spawner": "why"}), "all services are well again"),
    "a fleet file that is taken for broken": (ask(asked("stop", NOW + 20, ok=False, code=78)), "the CLI ends well"),
    "a fleet that does not settle": (set_("unsettled", "a: no record"), "it settles"),
    "a session that is gone from tmux": (gone, "all places agree"),
    "an agent without a record": (not_recorded, "all places agree"),
    "an old retained state": (show("retained", "spawn", "s0"), "all places agree"),
    "a wrong status": (show("status", "status", "stopped"), "all places agree"),
    "an end that nobody caused": (set_("acts", []), "no drift is false"),
    "an end of another one": (set_("acts", [Act(NOW + 28, "agent killed", "b", NOW + 28)]), "no drift is false"),
    "a stop that is told as a drift": (set_("acts", [Act(NOW + 28, "service killed", "a", 0)]), "no drift is false"),
    "one taken for unregistered": (tell(event(2, "unregistered", topic="drift")), "no drift is false"),
    "a conversation taken for lost": (tell(event(2, "stale_id", topic="drift")), "no drift is false"),
    "a drift that is told twice": (
        tell(event(2, "missing", topic="drift", at=NOW + 31, spawn="s0")),
        "a drift is told once",
    ),
    "one given up": (tell(event(4, "gave_up")), "no healthy agent is given up"),
    "a traceback": (set_("logs", {"x.log": "Traceback (most recent call last):\n"}), "no log has a traceback"),
    "a process that stayed": (set_("left_over", ["4711 tmux"]), "nothing is left after `down --agents`"),
    "a status that falls": (set_("bad_status", ["Traceback"]), "status always answers"),
    "a subscriber that ended": (set_("unsound", ["the subscriber connected ended"]), "the run itself is sound"),
    "memory that grows": (set_("memory_mb", {"board": [40.0, 900.0]}), "memory is bounded"),
}


@pytest.mark.parametrize(("plant", "promise"), FAULTS.values(), ids=FAULTS)
def test_a_planted_fault_is_found(plant: Plant, promise: str) -> None:
    evidence = good()
    plant(evidence)
    findings = broken(evidence)
    assert promise in {finding.promise for finding in findings}
    assert promise in report(evidence, findings, {})


def away(began: float, ended: float, *acts: Act) -> Plant:
    def planted(evidence: Evidence) -> None:
        evidence.absences.append(Absence(began, ended))
        evidence.acts += acts

    return planted


ALLOWED: dict[str, Plant] = {
    "the broker forgot what it kept for one who was away": both(
        lose(RETURNS_WITH_SESSION, 2), away(NOW + 8, NOW + 12, Act(NOW + 11, "broker killed", "*", NOW + 11))
    ),
    "an unpublished event died with its journal": set_("lost_epochs", [LostEpoch("e0", NOW, {"spawner": 0})]),
    "a journal that is lost lacks its own events": both(
        set_("lost_epochs", [LostEpoch("e1", NOW, {"spawner": 3})]), set_("journal", [])
    ),
    "an open command died with its journal": both(
        ask(asked("send", NOW + 20, ok=None, word="w-3")), set_("lost_epochs", [LostEpoch("e0", NOW + 25, {})])
    ),
    "a stop of which nothing is known": ask(asked("stop", NOW + 20, ok=None, is_open=True)),
    "a stop that was refused": ask(asked("stop", NOW + 20, ok=False)),
    "a refusal that says that the text may be there": both(
        ask(
            replace(
                asked("send", NOW + 20, word="w-2"), reply=SeenReply("x", False, "it ended; look whether it arrived")
            )
        ),
        heard("w-2"),
    ),
    "a command while the fleet file was broken": both(
        ask(asked("stop", NOW + 20, ok=None, code=78)),
        lambda evidence: evidence.acts.append(Act(NOW + 19, "fleet file broken, then mended", "*", NOW + 25)),
    ),
    "a service that still says that its journal was lost": set_(
        "not_online", {"spawner": "the journal was lost and a new one begun: what people wished was read"}
    ),
    "a stop, and then a start": ask(asked("stop", NOW + 20), asked("spawn", NOW + 25)),
    "a session that is found after its journal was lost": both(
        tell(event(2, "unregistered", topic="drift")), set_("lost_epochs", [LostEpoch("e0", NOW - 5, {})])
    ),
    "one that always dies is given up": tell(event(4, "gave_up", agent="mortal")),
    "a server that was killed ends every session": set_("acts", [Act(NOW + 28, "tmux server killed", "*", NOW + 28)]),
}


@pytest.mark.parametrize("plant", ALLOWED.values(), ids=ALLOWED)
def test_what_may_be_is_no_finding(plant: Plant) -> None:
    evidence = good()
    plant(evidence)
    assert broken(evidence) == []


def test_one_who_was_away_still_gets_what_the_broker_kept() -> None:
    evidence = good()
    both(lose(RETURNS_WITH_SESSION, 2), away(NOW + 8, NOW + 12))(evidence)
    assert [finding.subject for finding in broken(evidence)] == [RETURNS_WITH_SESSION]


def names(promises: Iterable[object]) -> set[str]:
    return {str(getattr(promise, "__name__", "")) for promise in promises}


def test_every_promise_has_a_planted_fault() -> None:
    found = set()
    for plant, _ in FAULTS.values():
        evidence = good()
        plant(evidence)
        found |= names(promise for promise in PROMISES if list(promise(evidence)))
    assert found == names(PROMISES)
