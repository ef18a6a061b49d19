"""What processes tell: a start, an end and how, and a command that was asked for and runs."""

import signal

import pytest

from services.monitor.evidence.hooks import HookActor
from services.monitor.evidence.processes import DEAD_PANE_WITHIN_S, STATUS_WITHIN_S, ProcessReader
from shared.agents.evidence import Evidence
from shared.contract.states import Activity
from shared.fleet import PromptDelivery
from shared.fleet.profiles import shipped
from shared.system.processes import Processes
from shared.system.tmux import Pane
from tests.unit.monitor.samples import GONE, NOW, here, pane, tree

DEMO = shipped()["demo"]
EXEC = DEMO.model_copy(update={"deliver": PromptDelivery.EXEC})
NOBODY = Processes([])
DEAD = pane(dead=True)


def ended(status: int | None) -> Pane:
    return pane(dead=True, dead_status=status)


def reader(processes: Processes = NOBODY) -> ProcessReader:
    return ProcessReader(lambda: processes)


def said(found: Evidence | None) -> tuple[Activity, str] | None:
    return (found.says, found.why) if found is not None else None


# --- how it ended ---


@pytest.mark.parametrize(
    ("status", "goodbye", "says", "why"),
    [
        (0, False, Activity.DONE, "its program ended with status 0"),
        (0, True, Activity.DONE, "its program ended with status 0"),
        (3, False, Activity.FAILED, "its program ended with status 3"),
        (3, True, Activity.FAILED, "its program ended with status 3"),
        (-signal.SIGKILL, False, Activity.FAILED, "its program ended by signal 9"),
        (None, False, Activity.FAILED, "its program ended and did not say how"),
        (None, True, Activity.DONE, "its program ended and did not say how"),
    ],
)
def test_an_end_is_told_with_its_exit_status(status: int | None, goodbye: bool, says: Activity, why: str) -> None:
    assert said(reader().read(DEMO, ended(status), None, NOW, said_goodbye=goodbye)) == (says, why)


def test_an_end_is_since_it_was_first_seen() -> None:
    reads = reader()
    first, again = (reads.read(DEMO, ended(1), None, NOW + later) for later in (0, 7))
    assert first is not None
    assert again == first
    assert first.at == NOW


def test_nothing_is_concluded_before_it_is_known_how_it_ended() -> None:
    reads = reader()
    assert reads.is_ending(DEAD, None, NOW)
    assert reads.is_ending(DEAD, None, NOW + STATUS_WITHIN_S - 0.1)
    assert not reads.is_ending(ended(0), None, NOW + 0.1)
    assert not reads.is_ending(DEAD, None, NOW + STATUS_WITHIN_S), "tmux does not learn it any more"


def test_what_runs_is_not_ending() -> None:
    assert not reader().is_ending(pane(), None, NOW)
    assert not reader().is_ending(pane(), here(), NOW)


def test_a_program_that_has_just_gone_may_have_ended_well() -> None:
    """Its process ends after tmux was asked for the pane, and before we look at the process."""
    reads = reader()
    assert reads.is_ending(pane(), GONE, NOW)
    assert not reads.is_ending(ended(0), GONE, NOW + 0.1)
    assert said(reads.read(DEMO, ended(0), GONE, NOW + 0.1)) == (Activity.DONE, "its program ended with status 0")


@pytest.mark.parametrize(("goodbye", "says"), [(False, Activity.FAILED), (True, Activity.DONE)])
def test_a_program_that_left_its_shell_behind_is_gone(goodbye: bool, says: Activity) -> None:
    reads = reader()
    assert reads.is_ending(pane(), GONE, NOW)
    assert not reads.is_ending(pane(), GONE, NOW + DEAD_PANE_WITHIN_S)
    found = reads.read(DEMO, pane(), GONE, NOW + DEAD_PANE_WITHIN_S, said_goodbye=goodbye)
    assert said(found) == (says, "its program is gone from its pane")
    assert found is not None
    assert found.at == NOW


def test_a_program_that_runs_again_has_not_ended() -> None:
    reads = reader()
    assert reads.read(DEMO, pane(), GONE, NOW) is not None
    assert reads.read(DEMO, pane(), here(), NOW + 1) is None
    later = reads.read(DEMO, pane(), GONE, NOW + 50)
    assert later is not None
    assert later.at == NOW + 50, "the next end is another one"


# --- the command that it asked for ---

SHELL = "source x.sh && eval 'touch '\\''a b'\\''' \\< /dev/null && pwd -P"
APPROVED = {
    "as it is": ("sleep 100", ["sleep", "100"]),
    "in a shell": ("sleep 100", ["bash", "-c", "sleep 100"]),
    "quoted by the agent": ("touch 'a b'", ["/bin/bash", "-c", SHELL]),
    "quoted by the model, and carried out by its shell": ('git log --format="%h"', ["git", "log", "--format=%h"]),
    "over several lines": ("for x in 1 2\ndo\n  sleep 1\ndone", ["sh", "-c", "for x in 1 2\ndo\n  sleep 1\ndone"]),
    "after a word that holds it, too": ("ls", ["bash", "-c", "tools; ls"]),
}
ANOTHER = {
    "a part of a longer word": ("ls", ["node", "tools.js", "--false"]),
    "the beginning of a longer one": ("rm x", ["bash", "-c", "rm x-files"]),
    "in a path": ("sh", ["/usr/bin/env", "/bin/sh/run"]),
    "something else": ("touch x", ["touch", "y"]),
}


def asking(command: str, argv: list[str], started: float) -> Evidence | None:
    agent = here()
    processes = tree((agent.pid, 1, 0.0, ["agent", command]), (77, agent.pid, started, argv))
    return reader(processes).read(
        DEMO, pane(), agent, NOW + 5, asked_for=HookActor(Activity.NEEDS_APPROVAL, NOW, "", command)
    )


@pytest.mark.parametrize(("command", "argv"), APPROVED.values(), ids=APPROVED)
def test_the_command_that_was_asked_for_runs(command: str, argv: list[str]) -> None:
    found = asking(command, argv, NOW + 2)
    assert found is not None
    assert (found.says, found.at, found.rule) == (Activity.WORKING, NOW + 2, "approved")
    assert command[:80] in found.why


@pytest.mark.parametrize(("command", "argv"), ANOTHER.values(), ids=ANOTHER)
def test_another_command_is_no_sign_of_approval(command: str, argv: list[str]) -> None:
    assert asking(command, argv, NOW + 2) is None


def test_a_command_that_ran_before_the_question_is_no_sign_of_approval() -> None:
    assert asking("sleep 100", ["sleep", "100"], NOW - 2) is None


def test_a_start_that_seems_just_before_the_question_counts_as_after_it() -> None:
    found = asking("sleep 100", ["sleep", "100"], NOW - 0.1)
    assert found is not None
    assert found.at > NOW


@pytest.mark.parametrize("command", ["", " ", "''", '"\\"'])
def test_an_empty_command_is_never_found(command: str) -> None:
    assert asking(command, ["sleep", "100"], NOW + 2) is None


def test_the_agent_itself_is_not_the_command_that_it_was_told_of() -> None:
    agent = here()
    processes = tree((agent.pid, 1, NOW + 1, ["agent", "run touch x"]))
    asked_for = HookActor(Activity.NEEDS_APPROVAL, NOW, "", "touch x")
    assert reader(processes).read(DEMO, pane(), agent, NOW + 5, asked_for=asked_for) is None


def test_an_approved_command_is_found_below_the_pane_too() -> None:
    processes = tree((GONE.pid, 1, 0.0, ["sh"]), (77, GONE.pid, NOW + 1, ["sleep", "100"]))
    found = reader(processes).read(
        DEMO, pane(), None, NOW + 5, asked_for=HookActor(Activity.NEEDS_APPROVAL, NOW, "", "sleep 100")
    )
    assert found is not None
    assert found.says is Activity.WORKING


def test_processes_are_looked_at_only_when_it_matters() -> None:
    def look() -> Processes:
        raise AssertionError("it costs something")

    reads = ProcessReader(look)
    assert reads.read(DEMO, pane(), here(), NOW) is None
    assert reads.read(DEMO, ended(0), None, NOW, asked_for=HookActor(Activity.NEEDS_APPROVAL, NOW, "", "x")) is not None


# --- while it runs ---


def test_a_program_that_is_run_for_its_task_works_until_it_ends() -> None:
    found = reader().read(EXEC, pane(created=int(NOW) - 5_000), here(), NOW)
    assert found is not None
    assert (found.says, found.at) == (Activity.WORKING, NOW - 5_000)


def test_it_starts_until_it_should_be_ready() -> None:
    young = pane(created=int(NOW))
    found = reader().read(DEMO, young, here(), NOW + DEMO.ready_within_s - 1)
    assert found is not None
    assert (found.says, found.at, found.weak) == (Activity.STARTING, NOW, True)
    assert reader().read(DEMO, young, here(), NOW + DEMO.ready_within_s) is None
