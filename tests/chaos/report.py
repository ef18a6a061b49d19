"""What a run comes to: each attack and its count, the totals, and what was broken with the time around it. Pure."""

from collections import Counter
from collections.abc import Iterator, Mapping

from tests.chaos.evidence import Evidence, Finding
from tests.chaos.promises import RETURNS_WITH_SESSION, was_away

AROUND_S = 20.0
SHOWN = 12


def report(evidence: Evidence, findings: list[Finding], played: Mapping[str, int]) -> str:
    return "\n".join([*_attacks(evidence, played), "", *_totals(evidence, findings), "", *_broken(evidence, findings)])


def _attacks(evidence: Evidence, played: Mapping[str, int]) -> Iterator[str]:
    felt = Counter(act.fault.partition(":")[0] for act in evidence.acts)
    names = sorted(set(played) | set(felt), key=lambda name: -max(played.get(name, 0), felt[name]))
    yield f"{'attack':32}{'times':>6}{'hits':>6}"
    for name in names:
        yield f"{name:32}{played.get(name, 0):>6}{felt[name]:>6}"


def _totals(evidence: Evidence, findings: list[Finding]) -> Iterator[str]:
    broken = Counter(finding.promise for finding in findings)
    texts = [asked for asked in evidence.asked if asked.word]
    answered = [asked for asked in evidence.asked if asked.reply]
    open_ = sum(asked.is_open for asked in evidence.asked)
    kept = sum(max(lost.published.values(), default=0) for lost in evidence.lost_epochs)
    away = _kept_from_the_returning(evidence)
    rows: dict[str, object] = {
        "attacks": len(evidence.acts),
        "events": len(evidence.all_events()),
        "seen by each subscriber": ", ".join(f"{name} {len(each)}" for name, each in evidence.events.items()),
        "forgotten by a killed broker": f"{away} events, while the returning subscriber was away",
        "in the last journal": len(evidence.journal),
        "journals lost": f"{len(evidence.lost_epochs)} (up to {kept} events of a service published in them)",
        "commands": f"{len(evidence.asked)} ({len(answered)} answered, {open_} open)",
        "texts": f"{len(texts)} ({sum(bool(t.reply and t.reply.ok) for t in texts)} confirmed)",
        "registry reads": evidence.registry_reads,
        "status reads": evidence.status_reads,
        "lost": broken["no event is lost"],
        "twice": sum(broken[name] for name in broken if "once" in name or "one content" in name),
        "unequal": broken["all places agree"] + broken["it settles"],
        "memory, MB at most": ", ".join(f"{n} {max(mb):.0f}" for n, mb in evidence.memory_mb.items() if mb),
    }
    yield from (f"{name:32}{value}" for name, value in rows.items())


def _kept_from_the_returning(evidence: Evidence) -> int:
    seen = {event.number for event in evidence.events.get(RETURNS_WITH_SESSION, [])}
    return sum(event.number not in seen and was_away(evidence, event) for event in evidence.all_events().values())


def _broken(evidence: Evidence, findings: list[Finding]) -> Iterator[str]:
    if not findings:
        yield "every promise was kept"
    for promise, times in Counter(finding.promise for finding in findings).items():
        yield f"BROKEN: {promise}: {times} times"
        for finding in [each for each in findings if each.promise == promise][:SHOWN]:
            yield f"  {_time(evidence, finding.at)} {finding.subject}: {finding.says}"
            yield from _timeline(evidence, finding)


def _timeline(evidence: Evidence, finding: Finding) -> Iterator[str]:
    """What was done and told about the agent around that time."""
    if not finding.at:
        return
    lines = [
        (act.at, f"did {act.fault} {act.target} until {_time(evidence, act.until)}")
        for act in evidence.acts
        if act.at < finding.at + 5.0 and max(act.until, act.at) > finding.at - AROUND_S
    ]
    lines += [
        (event.at, f"told {event.source} {event.seq} {event.kind} {event.data.get('spawn', '')}")
        for event in evidence.all_events().values()
        if event.agent == finding.subject and abs(event.at - finding.at) < AROUND_S
    ]
    for asked in evidence.asked:
        if asked.agent == finding.subject and abs(asked.at - finding.at) < AROUND_S:
            said = asked.reply.said if asked.reply else asked.said
            lines.append((asked.at, f"asked {asked.verb} by {asked.way} {asked.command}: {said[:160]}"))
    for at, line in sorted(lines)[-25:]:
        yield f"      {_time(evidence, at)} {line}"


def _time(evidence: Evidence, at: float) -> str:
    return f"{at - evidence.began:8.2f}" if at else " " * 8
