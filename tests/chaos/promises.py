"""What Muster promises, each as a function from the evidence to what breaks it. Pure."""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator

from tests.chaos.evidence import Asked, Evidence, Finding, SeenEvent, highest

RETURNS_WITH_SESSION = "returning"
"""The subscriber that ends and comes back; the others run all the time."""
BROKER_FORGETS = frozenset(
    {"broker killed", "broker wiped", "fleet down", "fleet up and down at once", "supervisor killed"}
)
SAVED_EVERY_S = 10.0
"""A broker that is killed may have forgotten what it was given in this time."""
RETURNS_WITHIN_S = 3.0
"""So long `mosquitto_sub` takes to be connected again."""
EXPLAINS_S = 90.0
"""So long after a kill the end of a session may be told: services may have been frozen or down."""
STARTS = frozenset({"spawned", "restarted", "resumed"})
ENDS_SESSION = frozenset({"missing", "pane_dead"})
NEVER = frozenset({"stale_id", "duplicate_id", "wrong_backend", "moved"})
"""Drifts that no action of a run leads to."""
MAY_BE_THERE = "look whether it arrived"
"""A refusal that says that it does not know: the session ended in the middle."""
SAID_FOR_A_MINUTE = "the journal was lost and a new one begun"
"""News, and no fault that lasts."""
BAD_FLEET_FILE = 78
MAY_GIVE_UP = "mortal"
MEMORY_LIMIT_MB = 200.0

Promise = Callable[[Evidence], Iterator[Finding]]


def no_event_is_lost(evidence: Evidence) -> Iterator[Finding]:
    """No gap in a source's numbers, at any subscriber and in the journal."""
    everything = evidence.all_events()
    expected = _expected(evidence)
    places = {**evidence.events, "journal": evidence.journal}
    lost_epochs = {lost.epoch for lost in evidence.lost_epochs}
    for place, events in places.items():
        seen: dict[tuple[str, str], set[int]] = defaultdict(set)
        for event in events:
            seen[event.epoch, event.source].add(event.seq)
        for (epoch, source), last in expected.items():
            if place == "journal" and epoch in lost_epochs:
                continue
            first = evidence.bases.get((epoch, source), 0) + 1
            for number in sorted(set(range(first, last + 1)) - seen[epoch, source]):
                lost = everything.get((epoch, source, number))
                if place == RETURNS_WITH_SESSION and lost is not None and was_away(evidence, lost):
                    continue
                told = f"{lost.agent} {lost.kind}" if lost else "seen nowhere"
                yield Finding(
                    "no event is lost", place, f"{source} {number} of {epoch}: {told}", lost.at if lost else 0
                )


def _expected(evidence: Evidence) -> dict[tuple[str, str], int]:
    """The last number of each source that must have been seen."""
    found = highest(evidence.all_events().values())
    for lost in evidence.lost_epochs:
        for source, published in lost.published.items():
            key = (lost.epoch, source)
            found[key] = max(found.get(key, 0), published)
    return found


def was_away(evidence: Evidence, event: SeenEvent) -> bool:
    """Whether the subscriber was away, and the broker that kept its messages forgot them meanwhile."""
    for absence in evidence.absences:
        if absence.began - 1.0 <= event.at <= absence.ended + RETURNS_WITHIN_S:
            forgot = (act for act in evidence.acts if act.fault in BROKER_FORGETS)
            until = absence.ended + RETURNS_WITHIN_S
            if any(act.at <= until and act.until >= absence.began - SAVED_EVERY_S for act in forgot):
                return True
    return False


def a_number_has_one_content(evidence: Evidence) -> Iterator[Finding]:
    content: dict[tuple[str, str, int], str] = {}
    for place, events in {**evidence.events, "journal": evidence.journal}.items():
        for event in events:
            said = json.dumps([event.topic, event.data], sort_keys=True)
            if content.setdefault(event.number, said) != said:
                yield Finding("a number has one content", place, f"{event.number}: {said[:200]}", event.at)


def all_is_published(evidence: Evidence) -> Iterator[Finding]:
    for source, count in evidence.unpublished.items():
        yield Finding("all is published", source, f"{count} events are still only in the journal")


def a_command_acts_once(evidence: Evidence) -> Iterator[Finding]:
    """One outcome for each command and agent, and the same answer whenever it is answered."""
    done: Counter[tuple[str, str, str]] = Counter()
    commands = {asked.command for asked in evidence.asked if asked.command}
    for event in evidence.all_events().values():
        if event.cause in commands and event.topic.endswith("lifecycle"):
            outcome = "started" if event.kind in STARTS else event.kind
            done[event.cause, event.agent, outcome] += 1
    for (command, agent, outcome), times in done.items():
        if times > 1:
            yield Finding("a command acts once", agent, f"{command}: {outcome} {times} times")
    answers: dict[str, set[tuple[bool, str]]] = defaultdict(set)
    for reply in evidence.replies:
        answers[reply.command].add((reply.ok, reply.said))
    for command, given in answers.items():
        if len(given) > 1:
            yield Finding("a command is answered once", command, f"{sorted(given)}")


def a_text_arrives_once(evidence: Evidence) -> Iterator[Finding]:
    """By the agents' own records: once if it was answered ok, never if it was refused, at most once otherwise."""
    for asked in evidence.asked:
        if not asked.word:
            continue
        times = sum(asked.word in text for _, text in evidence.heard)
        said = f"{asked.word} by {asked.way}, heard {times} times; answered: {_answer(asked)}"
        if times > 1:
            yield Finding("a text arrives once", asked.agent, said, asked.at)
        elif times == 0 and asked.reply and asked.reply.ok and asked.reply.confirmed != "none":
            yield Finding("a text that was answered ok is there", asked.agent, said, asked.at)
        elif times == 1 and asked.reply and not asked.reply.ok and MAY_BE_THERE not in asked.reply.said:
            yield Finding("a text that was refused is not there", asked.agent, said, asked.at)


def _answer(asked: Asked) -> str:
    if asked.reply:
        return f"{'ok' if asked.reply.ok else 'refused'} ({asked.reply.said})"
    return f"open ({asked.said[:200]})" if asked.is_open else f"nothing (rc {asked.code}: {asked.said[:200]})"


def a_command_ends(evidence: Evidence) -> Iterator[Finding]:
    """What was accepted has an answer, or is open in the journal. Open commands die with a journal."""
    for asked in evidence.asked:
        if asked.way == "registry" or asked.reply or asked.is_open:
            continue
        if any(asked.at - 2.0 <= lost.at <= asked.until + EXPLAINS_S for lost in evidence.lost_epochs):
            continue
        if asked.way == "cli" and asked.code == 75:
            yield Finding("a pending command ends", asked.agent, f"{asked.verb}: {asked.said[:300]}", asked.at)
        elif asked.way == "pub" and asked.code == 0 and not _broker_forgot(evidence, asked):
            said = f"{asked.verb} {asked.command} left no trace"
            yield Finding("a command that the broker took ends", asked.agent, said, asked.at)
    for asked in evidence.asked:
        allowed = (0, 1, 75, *([BAD_FLEET_FILE] if _file_was_broken(evidence, asked) else []))
        if asked.way == "cli" and (asked.code not in allowed or "Traceback" in asked.said):
            yield Finding(
                "the CLI ends well", asked.agent, f"{asked.verb}: rc {asked.code}: {asked.said[-600:]}", asked.at
            )


def _file_was_broken(evidence: Evidence, asked: Asked) -> bool:
    acts = (act for act in evidence.acts if act.fault.startswith("fleet file"))
    return any(act.at <= asked.until and act.until >= asked.at for act in acts)


def _broker_forgot(evidence: Evidence, asked: Asked) -> bool:
    acts = (act for act in evidence.acts if act.fault in BROKER_FORGETS)
    return any(asked.at - 1.0 <= act.until and act.at <= asked.until + SAVED_EVERY_S for act in acts)


def the_last_wish_holds(evidence: Evidence) -> Iterator[Finding]:
    """Also over every restart: stopped stays stopped, what is wanted runs."""
    for agent, views in evidence.agents.items():
        wished = _wishes(evidence, agent)
        record = views.registry or {}
        if record.get("desired") not in wished:
            said = f"wished: {sorted(wished)}, recorded: {record.get('desired')}"
            yield Finding("the last wish holds", agent, said)
        elif agent == MAY_GIVE_UP:
            continue
        elif record.get("desired") == "running" and (record.get("status") != "running" or not views.tmux):
            yield Finding("what is wanted runs", agent, f"{record.get('status')}: {record.get('reason')}")
        elif record.get("desired") == "stopped" and views.tmux:
            yield Finding("what is stopped stays stopped", agent, f"it runs in session {views.tmux}")


def _wishes(evidence: Evidence, agent: str) -> set[str]:
    """What may be wished at the end: the last known wish, and later ones of which nothing is known."""
    wished = {"running"}
    for asked in sorted((each for each in evidence.asked if each.agent == agent), key=lambda each: each.at):
        wish = {"stop": "stopped", "spawn": "running", "restart": "running", "resume": "running"}.get(asked.verb)
        if wish is None or (asked.reply and not asked.reply.ok):
            continue
        if asked.reply or asked.way == "registry":
            wished = {wish}
        else:
            wished.add(wish)
    return wished


def the_registry_is_whole(evidence: Evidence) -> Iterator[Finding]:
    for at, said in evidence.broken_reads:
        yield Finding("the registry is whole", "registry.yaml", said[:400], at)


def all_places_agree(evidence: Evidence) -> Iterator[Finding]:
    """Registry, tmux, retained states and `muster status --json` say the same."""
    if evidence.unsettled:
        yield Finding("it settles", "fleet", evidence.unsettled)
    for service, reason in evidence.not_online.items():
        if reason.startswith(SAID_FOR_A_MINUTE) and ";" not in reason:
            continue
        yield Finding("all services are well again", service, reason)
    for agent, views in evidence.agents.items():
        record = views.registry
        if record is None:
            yield Finding("all places agree", agent, f"not in the registry; {views}")
            continue
        running = record.get("spawn") if record.get("status") == "running" else None
        if running != views.tmux:
            yield Finding("all places agree", agent, f"registry: {running}, tmux: {views.tmux}")
        for place, other in (("retained", views.retained), ("status --json", views.status)):
            for name in ("status", "desired", "spawn", "conversation"):
                if (other or {}).get(name) != record.get(name):
                    said = f"{name}: registry {record.get(name)}, {place} {(other or {}).get(name)}"
                    yield Finding("all places agree", agent, said)


def no_drift_is_false(evidence: Evidence) -> Iterator[Finding]:
    """Each drift has a cause among what was done, and is told once."""
    told: dict[tuple[str, str, str, str], list[SeenEvent]] = defaultdict(list)
    for event in evidence.all_events().values():
        if not event.topic.endswith("drift"):
            continue
        if event.kind in ENDS_SESSION:
            told[event.epoch, event.agent, event.kind, str(event.data.get("spawn"))].append(event)
            kills = [
                act for act in evidence.felt(event.agent, event.at - EXPLAINS_S, event.at + 2.0) if _ends(act.fault)
            ]
            if not kills and event.agent != MAY_GIVE_UP:
                yield Finding("no drift is false", event.agent, f"{event.kind}, but nobody ended it", event.at)
        elif event.kind == "unregistered":
            lost = [each.at for each in evidence.lost_epochs]
            lost += [act.at for act in evidence.acts if act.fault.startswith("registry")]
            if not any(at - 1.0 <= event.at <= at + EXPLAINS_S for at in lost):
                yield Finding("no drift is false", event.agent, f"unregistered: {dict(event.data)}", event.at)
        elif event.kind in NEVER:
            yield Finding("no drift is false", event.agent, f"{event.kind}: {dict(event.data)}", event.at)
    for (_, agent, kind, spawn), events in told.items():
        if len(events) > 1:
            numbers = [event.number for event in events]
            yield Finding("a drift is told once", agent, f"{kind} of {spawn}: {numbers}", events[0].at)


def _ends(fault: str) -> bool:
    return fault.startswith(("agent", "session", "tmux server"))


def no_healthy_agent_is_given_up(evidence: Evidence) -> Iterator[Finding]:
    for event in evidence.all_events().values():
        if event.kind == "gave_up" and event.agent != MAY_GIVE_UP:
            yield Finding("no healthy agent is given up", event.agent, str(event.data.get("reason")), event.at)


def no_log_has_a_traceback(evidence: Evidence) -> Iterator[Finding]:
    for name, text in evidence.logs.items():
        for found in re.finditer(r"Traceback \(most recent call last\)", text):
            yield Finding("no log has a traceback", name, text[max(0, found.start() - 200) : found.start() + 1500])


def nothing_is_left(evidence: Evidence) -> Iterator[Finding]:
    for what in evidence.left_over:
        yield Finding("nothing is left after `down --agents`", "fleet", what)


def status_always_answers(evidence: Evidence) -> Iterator[Finding]:
    for fault in evidence.bad_status:
        yield Finding("status always answers", "status --json", fault)


def the_run_is_sound(evidence: Evidence) -> Iterator[Finding]:
    for fault in evidence.unsound:
        yield Finding("the run itself is sound", "chaos", fault)


def memory_is_bounded(evidence: Evidence) -> Iterator[Finding]:
    for name, samples in evidence.memory_mb.items():
        if samples and max(samples) > MEMORY_LIMIT_MB:
            yield Finding("memory is bounded", name, f"{max(samples):.0f} MB")


PROMISES: tuple[Promise, ...] = (
    no_event_is_lost,
    a_number_has_one_content,
    all_is_published,
    a_command_acts_once,
    a_text_arrives_once,
    a_command_ends,
    the_last_wish_holds,
    the_registry_is_whole,
    all_places_agree,
    no_drift_is_false,
    no_healthy_agent_is_given_up,
    no_log_has_a_traceback,
    nothing_is_left,
    memory_is_bounded,
    status_always_answers,
    the_run_is_sound,
)


def broken(evidence: Evidence) -> list[Finding]:
    return [finding for promise in PROMISES for finding in promise(evidence)]
