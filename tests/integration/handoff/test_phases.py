"""Phases by a status file on a real branch: begun, advanced, complete, gone on with, and moved by people."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from shared.contract.commands import PhaseNext, PhaseSet, PhaseShow, Restart, Spawn, Stop
from shared.contract.events.loops import (
    KickedOff,
    KickoffFailed,
    PhaseAdvanced,
    PhaseDone,
    SequenceCompleted,
    StatusSeen,
)
from shared.contract.states import Activity
from tests.fixtures.repositories import Clone
from tests.integration.handoff.station import PAIR, Station

Make = Callable[..., Station]
AGENTS = {**PAIR, "tidy": {"kind": "task", "enabled": False}, "lead": {}}


@pytest.fixture
def phased(station: Make, clone: Clone, tmp_path: Path) -> Callable[..., Station]:
    """A station whose loop has two phases and templates, with the first phase begun and its agents running."""
    (tmp_path / "phase.md").write_text("{role_prompt}\nPhase {number} of {phases}: {phase}. {unknown}")
    (tmp_path / "build.md").write_text("You {role} as {agent}.")

    def make(names: tuple[str, ...] = ("one", "two"), **loop: Any) -> Station:
        settings = {
            "status_file": "STATUS.md",
            "kickoff": "phase.md",
            "role_prompts": {"build": "build.md"},
            "phases": [{"name": name} for name in names],
            "patterns": {"claim": {"to": "review"}},
            "on_complete": "tidy",
        }
        world = station(AGENTS, **{**settings, **loop})
        world.until(lambda: world.starts("builder") and world.starts("reviewer"), "the first phase")
        world.answers_all()
        world.runs("builder", "reviewer")
        world.turn()
        return world

    return make


def phases(world: Station) -> list[tuple[int, str]]:
    return [(each.number, each.phase) for each in world.of(PhaseAdvanced)]


def says(clone: Clone, text: str, *more: str) -> None:
    for each in (text, *more):
        clone.commit("status", STATUS_md=f"{each}\n")
    clone.push()


def test_a_phase_starts_its_agents_with_its_prompt_and_models(phased: Make) -> None:
    world = phased(phases=[{"name": "one", "models": {"build": "large"}}])
    (start,) = world.starts("builder")
    assert (start.fresh, start.model) == (True, "large")
    assert start.prompt == "You build as builder.\nPhase 1 of 1: one. {unknown}"
    assert (world.starts("reviewer")[0].prompt, world.starts("reviewer")[0].model) == (
        "Phase 1 of 1: one. {unknown}",
        None,
    )
    assert [(each.agent, each.role, each.model) for each in world.of(KickedOff)] == [
        ("builder", "build", "large"),
        ("reviewer", "review", None),
    ]


def test_a_done_line_advances_and_the_last_one_completes(phased: Make, clone: Clone) -> None:
    world = phased()
    says(clone, "STATUS: DONE one")
    world.until(lambda: len(world.starts("builder")) == 2, "the second phase")
    world.answers_all()
    says(clone, "STATUS: DONE two")
    world.until(lambda: world.of(SequenceCompleted), "the end")
    world.until(lambda: len([each for each in world.asked if isinstance(each, Stop)]) == 2, "its agents are stopped")
    assert not [each for each in world.asked if isinstance(each, Spawn)]
    world.answers_all()
    world.until(lambda: [each for each in world.asked if isinstance(each, Spawn)], "the task")
    assert [each.agent for each in world.asked if isinstance(each, Spawn)] == ["tidy"]
    world.answers_all()
    world.settled()
    assert phases(world) == [(1, "one"), (2, "two")]
    assert len(world.asked) == 2 + 2 + 2 + 1
    world.restarts()
    world.settled()
    assert len(world.asked) == 7


def test_a_stale_line_counts_once_it_was_removed_and_written_again(phased: Make, clone: Clone) -> None:
    world = phased()
    says(clone, "STATUS: DONE")
    world.until(lambda: len(phases(world)) == 2, "the second phase")
    says(clone, "STATUS: DONE\n\nand a word more")
    world.settled()
    assert not world.of(SequenceCompleted)
    says(clone, "STATUS: OPEN", "STATUS: DONE")  # both in one push
    world.until(lambda: world.of(SequenceCompleted), "the end")


@pytest.mark.parametrize(
    "text", ["STATUS: DONE <sha>", "STATUS: DONE | OPEN", "<!--\nSTATUS: DONE\n-->", "```\nSTATUS: DONE\n```"]
)
def test_a_template_that_nobody_filled_in_does_not_count(phased: Make, clone: Clone, text: str) -> None:
    world = phased()
    says(clone, text)
    world.settled()
    assert phases(world) == [(1, "one")]
    said = [(each.done, each.reason) for each in world.of(StatusSeen)]
    assert said in (
        [],
        [(False, "it does not count: a placeholder in < >")],
        [(False, "it does not count: a choice that nobody made")],
    )
    says(clone, "STATUS: DONE 4c1d")
    world.until(lambda: len(phases(world)) == 2, "the second phase")


def test_a_line_may_name_its_phase_and_several_may_be_done_at_once(phased: Make, clone: Clone) -> None:
    world = phased(("one", "two", "three"), done="^{number}[.] {phase}: done$")
    says(clone, "2. two: done")
    world.settled()
    assert phases(world) == [(1, "one")]
    says(clone, "1. one: done\n2. two: done")
    world.until(lambda: phases(world)[-1] == (3, "three"), "the third phase")
    assert [each.prompt for each in world.starts("builder")][
        -1
    ] == "You build as builder.\nPhase 3 of 3: three. {unknown}"
    assert len(world.starts("builder")) == 2


def test_status_files_may_be_one_for_each_phase(phased: Make, clone: Clone) -> None:
    world = phased(status_file="status/{number}-{phase}.md")
    clone.commit("status", status__2_two_md="", **{"status__1-one_md": "STATUS: DONE\n"})
    clone.push()
    world.until(lambda: len(phases(world)) == 2, "the second phase")


def test_an_agent_that_ended_the_phase_gets_time_to_finish(phased: Make, clone: Clone) -> None:
    world = phased()
    world.runs("builder", activity=Activity.WORKING)
    says(clone, "STATUS: DONE")
    world.until(lambda: len(world.starts("reviewer")) == 2, "the idle one is started anew")
    world.settled()
    assert len(world.starts("builder")) == 1
    world.runs("builder")
    world.until(lambda: len(world.starts("builder")) == 2, "the other, once it is idle")


def test_messages_of_an_earlier_phase_are_forgotten_and_new_ones_wait_for_the_start(phased: Make, clone: Clone) -> None:
    world = phased()
    clone.commit("claim: and done at once", STATUS_md="STATUS: DONE\n")
    clone.push()
    world.until(lambda: len(world.starts("reviewer")) == 2, "the second phase")
    clone.commit("claim: new")
    clone.push()
    world.until(lambda: world.kinds().count("claim") == 2, "the second claim")
    world.settled()
    assert world.texts("reviewer") == []
    world.answers_all()
    world.runs("reviewer", spawn="s2")
    world.until(lambda: world.texts("reviewer"), "the new message")
    assert [text.split(": ", 1)[1] for text in world.texts("reviewer")] == ["claim: new"]


def test_a_phase_that_is_added_later_resumes_the_loop(phased: Make, clone: Clone) -> None:
    world = phased(("one",))
    says(clone, "STATUS: DONE")
    world.until(lambda: world.of(SequenceCompleted), "the end")
    world.until(lambda: len(world.asked) == 4, "its agents are stopped")
    world.answers_all()
    declared = world.path.read_text().replace(
        '"phases": [{"name": "one"}]', '"phases": [{"name": "one"}, {"name": "two"}]'
    )
    world.path.write_text(declared)
    world.until(lambda: len(world.starts("builder")) == 2, "it goes on")
    assert (phases(world)[-1], world.of(PhaseAdvanced)[-1].reason) == ((2, "two"), "a phase was added")


def test_people_may_decide_when_the_next_phase_begins(phased: Make, clone: Clone) -> None:
    world = phased(advance=False)
    says(clone, "STATUS: DONE")
    world.until(lambda: world.of(PhaseDone), "that it is done")
    world.settled()
    assert (phases(world), len(world.of(PhaseDone))) == ([(1, "one")], 1)
    assert world.reply(PhaseNext(by="ada")).said == "main: phase 2, two, begins"
    world.turn(PhaseNext())
    assert world.of(PhaseAdvanced)[-1].reason == "asked for by ada"
    assert world.of(SequenceCompleted)
    assert not world.reply(PhaseNext()).ok


def test_phase_set_begins_any_phase_by_name_or_number_at_once(phased: Make) -> None:
    world = phased()
    world.runs("builder", "reviewer", activity=Activity.WORKING)
    world.turn(PhaseSet(phase="two"))
    assert len(world.starts("builder")) == 2
    world.turn(PhaseSet(phase="1"))
    world.turn(PhaseSet(phase="1"))
    assert phases(world) == [(1, "one"), (2, "two"), (1, "one"), (1, "one")]
    assert len(world.starts("builder")) == 4
    refused = world.reply(PhaseSet(phase="three"))
    assert (refused.code, refused.said) == (
        "refused",
        "main: there is no phase 'three'; there are: one, two, or 1 to 2",
    )
    unknown = world.reply(PhaseSet(loop="other", phase="1"))
    assert (unknown.code, unknown.said) == ("unknown_loop", "there is no loop 'other' in fleet.yaml; allowed are: main")


def test_a_refused_start_is_reported_once_and_retried(phased: Make) -> None:
    world = phased()
    world.turn(PhaseSet(phase="two"))
    for start in (world.starts("builder")[-1], world.starts("reviewer")[-1]):
        world.answers(start, "there is no such program", ok=False)
    world.settled()
    failed = [(each.agent, each.reason) for each in world.of(KickoffFailed)]
    assert failed == [("builder", "there is no such program"), ("reviewer", "there is no such program")]
    shown = world.reply(PhaseShow()).result["loops"]["main"]
    assert [each["failure"] for each in shown["errands"]] == ["there is no such program"] * 2


def test_a_template_that_can_not_be_read_is_reported_and_then_retried(phased: Make, tmp_path: Path) -> None:
    world = phased()
    (tmp_path / "phase.md").rename(tmp_path / "away.md")
    world.turn(PhaseSet(phase="two"))
    (failed, _) = world.of(KickoffFailed)
    assert failed.reason == f"the template {tmp_path / 'phase.md'} (`kickoff`) can't be read: No such file or directory"
    assert len(world.starts("builder")) == 1


def test_an_agent_that_is_not_of_kind_loop_keeps_its_session_and_gets_the_prompt(station: Make, clone: Clone) -> None:
    world = station(AGENTS, roles={"build": "builder", "lead": "lead"}, phases=[{"name": "one"}])
    world.runs("lead")
    world.until(lambda: world.texts("lead") and world.starts("builder"), "both have their parts")
    assert world.texts("lead") == ["Phase 1 of 1: one."]
    assert not [each for each in world.asked if isinstance(each, Restart) and each.agent == "lead"]


def test_phase_show_says_how_far_the_loop_is(phased: Make, clone: Clone) -> None:
    world = phased()
    shown = world.reply(PhaseShow())
    assert shown.said == "main: phase 1 of 2, one"
    found = shown.result["loops"]["main"]
    assert (found["tip"], found["failure"], found["complete"]) == (clone.head, "", False)
    assert [(each["number"], each["name"], each["state"]) for each in found["phases"]] == [
        (1, "one", "current"),
        (2, "two", "to come"),
    ]


def test_a_phase_that_is_edited_while_its_agents_finish_keeps_its_name_and_prompt(phased: Make, clone: Clone) -> None:
    world = phased()
    world.runs("builder", "reviewer", activity=Activity.WORKING)
    says(clone, "STATUS: DONE")
    world.until(lambda: len(phases(world)) == 2, "the second phase")
    world.path.write_text(world.path.read_text().replace('{"name": "one"}', '{"name": "zero"}, {"name": "one"}'))
    world.runs("builder", "reviewer")
    world.until(lambda: len(world.starts("builder")) == 2, "the second phase, which is the third by now")
    assert world.starts("builder")[-1].prompt == "You build as builder.\nPhase 3 of 3: two. {unknown}"


def test_an_agent_that_a_person_started_gets_the_phases_prompt_once(phased: Make) -> None:
    world = phased_again(phased())
    world.runs("builder", spawn="s0", conversation="c0")  # the record is a moment late
    world.turn()
    world.runs("builder", spawn="s1", conversation="c1")
    world.turn()
    world.runs("builder", spawn="s2", conversation="c1")  # it died, and went on where it was
    world.turn()
    assert world.texts("builder") == []
    world.runs("builder", spawn="s3", conversation="c2")  # stopped and spawned by a person
    world.turn()
    world.turn()
    assert world.texts("builder") == ["You build as builder.\nPhase 1 of 2: one. {unknown}"]


def phased_again(world: Station) -> Station:
    """The same phase, begun anew: its start is answered with the session that came of it."""
    world.turn(PhaseSet(phase="one"))
    for start in (world.starts("builder")[-1], world.starts("reviewer")[-1]):
        world.answers(start, spawn="s1")
    world.turn()
    return world


def test_a_start_that_a_person_has_overtaken_is_not_retried(phased: Make) -> None:
    world = phased()
    world.turn(PhaseSet(phase="two"))
    world.answers(world.starts("builder")[-1], "something else was asked of it meanwhile", code="overtaken")
    world.answers(world.starts("reviewer")[-1])
    world.turn()
    world.turns.now += timedelta(hours=1)
    world.turn()
    assert len(world.starts("builder")) == 2
    assert [each.reason for each in world.of(KickoffFailed)] == ["something else was asked of it meanwhile"]


def test_an_agent_whose_role_went_to_another_is_stopped(phased: Make) -> None:
    world = phased()
    text = world.path.read_text().replace('"build": "builder"', '"build": "second"')
    world.path.write_text(
        text.replace('"reviewer": {"kind": "loop"}', '"reviewer": {"kind": "loop"}, "second": {"kind": "loop"}')
    )
    world.until(lambda: world.starts("second"), "the new one")
    world.until(lambda: [each for each in world.asked if isinstance(each, Stop)], "the end of the other")
    assert [each.agent for each in world.asked if isinstance(each, Stop)] == ["builder"]


def test_a_limited_agent_is_started_anew_when_its_limit_has_lifted(phased: Make, clone: Clone) -> None:
    world = phased()
    world.runs("builder", activity=Activity.LIMITED, limit="weekly")
    says(clone, "STATUS: DONE")
    world.until(lambda: len(world.starts("reviewer")) == 2, "the other one")
    world.settled()
    assert len(world.starts("builder")) == 1
    world.runs("builder")
    world.turns.now += timedelta(seconds=31)
    world.until(lambda: len(world.starts("builder")) == 2, "it")
