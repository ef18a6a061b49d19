"""What the monitor tells against what is true: over all recorded cases, and over real agents in a real fleet.

    python -m tests.real_agents.matrix                       writes docs/confusion.md anew
    python -m tests.real_agents.matrix --live                plays every situation on every program first
    python -m tests.real_agents.matrix --live claude-2.1.325 … only on this one

The recorded cases are read by the monitor's own readers. What was seen live is kept in `live.json`, so that the page
can be made without playing it all again; a test says that the page is what the recorded cases give.
"""

import argparse
import json
import statistics
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from shared.agents.evidence import EvidenceSource
from shared.contract.states import Activity
from tests.real_agents.cases import Case, cases
from tests.real_agents.clis import CLIS, Claude, Cli
from tests.real_agents.situations import SITUATIONS
from tests.real_agents.stage import RIGHT_WITHIN_S, Outcome, stage

PAGE = Path(__file__).parents[2] / "docs" / "confusion.md"
LIVE = Path(__file__).parent / "live.json"
PROGRAMS: tuple[Cli, ...] = (*CLIS, replace(Claude(), version="2.1.325"))

Pair = tuple[str, str]
"""What is true, and what was told."""


def program_of(cli: Cli) -> str:
    return f"{cli.name}-{cli.version}"


# --- playing ---


def play(cli: Cli, only: Sequence[str] = ()) -> Iterator[Outcome]:
    """Every situation of a program, one after the other, in a fleet of its own."""
    wanted = [one for one in SITUATIONS if one.concerns(cli.name, cli.version) and (not only or one.name in only)]
    with tempfile.TemporaryDirectory(prefix="muster-stage-") as room, stage(cli, wanted, Path(room)) as on_stage:
        for situation in wanted:
            try:
                outcome = on_stage.play(situation)
            except AssertionError as why:
                print(f"NOT PLAYED {program_of(cli)} {situation.name}: {why}", flush=True)
                continue
            after = "never" if outcome.after_s is None else f"{outcome.after_s:.2f} s"
            verdict = "right" if outcome.right else f"WRONG ({outcome.told})"
            print(f"{program_of(cli)} {situation.name}: {verdict} after {after}, by {outcome.by}", flush=True)
            yield outcome


def known_live() -> dict[str, list[Outcome]]:
    if not LIVE.exists():
        return {}
    found = json.loads(LIVE.read_text(encoding="utf-8"))
    return {program: [Outcome(**one) for one in outcomes] for program, outcomes in found.items()}


def keep_live(live: dict[str, list[Outcome]]) -> None:
    told = {program: [asdict(one) for one in outcomes] for program, outcomes in sorted(live.items())}
    LIVE.write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


# --- the page ---


def page(recorded: Sequence[Case], live: dict[str, list[Outcome]]) -> str:
    """Pure but for the recorded files."""
    told = {case: case.verdict().status for case in recorded}
    outcomes = [one for each in live.values() for one in each]
    return "\n".join(
        [
            "# What is told, and what is true",
            "",
            "Made by `./muster test --write`. Rows are what is true, columns what the monitor told.",
            "",
            f"## Recorded: {len(recorded)} cases of {len({case.program for case in recorded})} programs",
            "",
            *table((case.expected.value, status.value) for case, status in told.items()),
            "",
            *_wrong([f"{case.name}: {status.value}" for case, status in told.items() if status is not case.expected]),
            "",
            *without_hooks(recorded),
            "",
            "What each source alone says of these cases (80 and 200 columns have a title and a screen only):",
            "",
            *by_source(recorded),
            "",
            f"## Live: {len(outcomes)} situations of {len(live)} programs, in a fleet with all its services",
            "",
            *table((one.expected, one.told) for one in outcomes),
            "",
            *_wrong([f"{program} {one.situation}: {one.told}" for program, one in _each(live) if not one.right]),
            "",
            f"How long after the situation was there the right status was told (promised: {RIGHT_WITHIN_S:g} s):",
            "",
            *latencies(live),
            "",
        ]
    )


def table(pairs: Iterable[Pair]) -> list[str]:
    count = Counter(pairs)
    order = [each.value for each in Activity]
    rows = [name for name in order if any(true == name for true, _ in count)]
    columns = [name for name in (*order, "nothing") if any(told == name for _, told in count)]
    return [
        f"| | {' | '.join(columns)} |",
        f"|---{'|---' * len(columns)}|",
        *(f"| **{true}** | {' | '.join(str(count[true, told] or '·') for told in columns)} |" for true in rows),
    ]


def without_hooks(recorded: Sequence[Case]) -> list[str]:
    """How agents fare that people started by hand, and that have none."""
    whole = [case for case in recorded if case.is_whole]
    wrong = [case.name for case in whole if case.verdict(but=EvidenceSource.HOOKS).status is not case.expected]
    but = f" (wrong: {', '.join(wrong)})" if wrong else ""
    return [f"Without hooks: {len(whole) - len(wrong)} of {len(whole)} right{but}."]


def by_source(recorded: Sequence[Case]) -> list[str]:
    lines = ["| source | right | silent or weak | overruled | wrong |", "|---|---|---|---|---|"]
    for source in EvidenceSource:
        right = silent = overruled = wrong = 0
        for case in recorded:
            verdict = case.verdict()
            piece = next((each.evidence for each in verdict.weighed if each.evidence.source is source), None)
            if piece is None or (piece.weak and piece.says is not case.expected):
                silent += 1
            elif piece.says is case.expected:
                right += 1
            elif verdict.status is case.expected:
                overruled += 1
            else:
                wrong += 1
        lines.append(f"| {source.value} | {right} | {silent} | {overruled} | {wrong} |")
    return lines


def latencies(live: dict[str, list[Outcome]]) -> list[str]:
    lines = ["| program | situations | median | slowest | over the promise |", "|---|---|---|---|---|"]
    for program, outcomes in sorted(live.items()):
        took = [(one.after_s, one.situation) for one in outcomes if one.after_s is not None]
        if took:
            worst, where = max(took)
            late = [name for seconds, name in took if seconds > RIGHT_WITHIN_S]
            middle = statistics.median(seconds for seconds, _ in took)
            told = f"{middle:.2f} s | {worst:.2f} s ({where}) | {', '.join(late) or 'none'}"
            lines.append(f"| {program} | {len(outcomes)} | {told} |")
    return lines


def _wrong(cases_told: Sequence[str]) -> list[str]:
    return ["Wrong: none."] if not cases_told else ["Wrong:", *(f"- {each}" for each in cases_told)]


def _each(live: dict[str, list[Outcome]]) -> Iterator[tuple[str, Outcome]]:
    for program, outcomes in sorted(live.items()):
        yield from ((program, one) for one in outcomes)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.real_agents.matrix", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    named = [program_of(cli) for cli in PROGRAMS]
    parser.add_argument("--live", nargs="*", choices=named, metavar="PROGRAM", help=f"one of {', '.join(named)}")
    parser.add_argument("--situation", nargs="+", default=[], help="only these")
    asked = parser.parse_args()
    live = known_live()
    if asked.live is not None:
        for cli in PROGRAMS:
            if not asked.live or program_of(cli) in asked.live:
                before = {one.situation: one for one in live.get(program_of(cli), [])} if asked.situation else {}
                played = {one.situation: one for one in play(cli, asked.situation)}
                live[program_of(cli)] = list({**before, **played}.values())
                keep_live(live)
    PAGE.write_text(page(cases(), live), encoding="utf-8")
    print(f"wrote {PAGE.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
