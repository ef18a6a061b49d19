"""What each fault does to a fleet: the rows of docs/reliability.md, each with the tests that show it.

    python -m tests.reliability    writes docs/reliability.md anew

A row names its tests as pytest does. One that does not exist is an error, so the page can't promise what nobody shows.
"""

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "reliability.md"
HEAD = """\
# What faults do

Made by `./muster test --write` from `tests/reliability.py`; do not edit it here. Each row is played against real
parts: SIGKILL to real processes, a real broker, a real tmux server. `python -m tests.chaos --seconds 600` plays them at
random and checks the same promises.

"""
TITLES = ("fault", "what you see", "what survives", "what can be lost", "shown by")


@dataclass(frozen=True)
class Fault:
    name: str
    seen: str
    survives: str
    lost: str
    tests: tuple[str, ...]
    """`path below tests/` or `path::function`."""


@dataclass(frozen=True)
class Group:
    title: str
    faults: tuple[Fault, ...]


SERVICES = Group(
    "Services",
    (
        Fault(
            "kill -9 of the spawner after any trace that it leaves of a spawn, a restart or a text",
            "its presence says `offline`; it is back within seconds, and the reply comes then",
            "the command: it is finished once, with the same session",
            "nothing",
            ("integration/test_spawner_killed.py",),
        ),
        Fault(
            "kill -9 of the spawner as a phase of a loop begins",
            "the phase begins when it is back",
            "the phase: it is begun once",
            "nothing",
            ("integration/test_spawner_phases.py::test_a_phase_is_begun_once_though_the_spawner_dies",),
        ),
        Fault(
            "kill -9 of the registrar at any instant of a write",
            "the file as it was, or as it will be",
            "`registry.yaml`, whole, and edits by hand",
            "nothing",
            ("integration/test_registry_killed.py", "integration/test_registry_edits.py"),
        ),
        Fault(
            "kill -9 of the monitor",
            "nothing: what was reported is not reported again",
            "limits, parks, policies, hooks that were called meanwhile",
            "nothing",
            (
                "e2e/test_monitor.py::test_calls_of_hooks_count_and_a_restarted_monitor_reports_nothing_twice",
                "e2e/test_limits.py::test_a_service_that_dies_in_between_changes_nothing",
            ),
        ),
        Fault(
            "kill -9 of handoff",
            "a later commit event",
            "each commit is reported and sent once",
            "nothing",
            (
                "e2e/test_loops.py",
                "integration/handoff/test_commits.py::test_no_commit_is_reported_twice_or_missed_over_restarts",
            ),
        ),
        Fault(
            "kill -9 of the board",
            "the page reconnects",
            "sessions of browsers, comments",
            "nothing",
            ("e2e/test_board.py::test_a_killed_board_loses_nothing_and_says_nothing_twice",),
        ),
        Fault(
            "kill -9 of any service between the journal and the broker",
            "the event comes when it is back",
            "every committed event, in order, once for a reader with a cursor",
            "nothing",
            (
                "integration/test_nothing_is_lost.py::test_a_service_killed_between_journal_and_publish_tells_it_later",
                "integration/test_nothing_is_lost.py::test_a_reader_killed_in_the_middle_handles_each_once",
            ),
        ),
        Fault(
            "kill -9 of the supervisor",
            "`status` says so; the next `up` ends its orphans and begins anew",
            "all agents",
            "nothing",
            ("e2e/test_lifecycle.py::test_orphans_of_a_killed_supervisor_are_ended", "e2e/test_odd_worlds.py"),
        ),
        Fault(
            "a second copy of a service or a fleet",
            "a sentence, and it ends",
            "the first one",
            "nothing",
            ("e2e/test_bus.py::test_a_second_copy_refuses",),
        ),
        Fault(
            "a service hangs in the middle of many starts",
            "its presence gets old; the rest is started when it goes on",
            "everything: a start under way is no drift",
            "nothing",
            ("e2e/test_mass_start.py",),
        ),
        Fault(
            "`up` and `down` at once, or two `down`",
            "each says for whom it waits, or who ended it",
            "what the last one asked for",
            "nothing",
            ("e2e/test_going_down.py::test_up_waits_for_a_down_and_says_when_a_down_has_ended_it",),
        ),
        Fault(
            "`down --agents` is killed",
            "nothing more is ended; what was ended starts again",
            "the other agents, also after the next `up`",
            "the work under way of the agents that were ended",
            ("e2e/test_going_down.py::test_what_is_left_of_a_killed_down_ends_nothing_after_the_next_up",),
        ),
        Fault(
            "services die during `down --agents`",
            "it goes on by itself, and says how far it is",
            "its promise: no agent stays",
            "nothing; events of these ends reach subscribers after the next `up`",
            ("e2e/test_going_down.py::test_all_are_ended_though_the_services_die",),
        ),
    ),
)
BROKER = Group(
    "Broker",
    (
        Fault(
            "killed, again and again",
            "`status` and the CLI work on by the journal; events arrive late, some twice with the same number",
            "every event and state; commands of the CLI",
            "commands of `mosquitto_pub` of the last moments ([brokers.md](brokers.md))",
            (
                "integration/test_nothing_is_lost.py::test_ten_thousand_events_survive_broker_kills",
                "e2e/test_broker_down.py::test_the_fleet_goes_on_without_a_broker",
            ),
        ),
        Fault(
            "hangs with its port open",
            "it counts as down after two seconds; commands go through the journal",
            "everything",
            "nothing",
            (
                "e2e/test_broker_down.py::test_a_hanging_broker_is_worked_around",
                "integration/test_bus.py::test_a_broker_that_hangs_counts_as_down",
            ),
        ),
        Fault(
            "freezes for seconds, is slow, or is killed, in any order",
            "events pause for seconds; some come again with the same numbers",
            "every event, at subscribers that stay or return with their session",
            "nothing",
            ("integration/test_frozen_broker.py",),
        ),
        Fault(
            "wiped: it lost its disk",
            "all retained states are published again",
            "events in the journal: the command `replay` publishes them again",
            "its queues: what waited there for others than the services",
            ("e2e/test_broker_down.py::test_a_broker_that_lost_its_disk_learns_everything_again",),
        ),
        Fault(
            "its port is taken by a stranger",
            "it moves to another port and says so",
            "everything",
            "nothing",
            ("integration/test_broker_process.py::test_a_stranger_on_its_port_makes_it_move",),
        ),
        Fault(
            "a command waits in it for longer than a minute",
            "the reply `expired`",
            "the fleet as it is wanted now",
            "the command, and you are told",
            ("e2e/test_broker_down.py::test_a_command_that_waited_too_long_is_answered_expired",),
        ),
        Fault(
            "it held a `spawn`, and the agent was stopped meanwhile",
            "the reply `outdated`: a later `stop` stands",
            "the later wish",
            "nothing",
            ("e2e/test_broker_down.py::test_a_later_stop_beats_a_spawn_that_a_frozen_broker_held",),
        ),
        Fault(
            "it dies with the sender, after it has accepted a command",
            "the command is carried out once",
            "commands of `muster`, the board and the services",
            "commands of `mosquitto_pub` of the last moments ([brokers.md](brokers.md))",
            ("e2e/test_broker_down.py::test_a_command_outlives_its_sender_and_the_broker",),
        ),
        Fault(
            "down and up again, with subscribers that stay",
            "the first events a moment later",
            "every event",
            "nothing",
            ("e2e/test_broker_down.py::test_a_subscriber_that_stays_over_down_and_up_misses_no_event",),
        ),
    ),
)
TMUX = Group(
    "tmux, agents and the machine",
    (
        Fault(
            "the tmux server is killed, or the machine restarts",
            "one drift for each agent; all come back",
            "what was wanted, each conversation",
            "what was on screen; a text that was not submitted is typed again",
            (
                "e2e/test_drift.py::test_the_end_of_tmux_is_one_drift_for_each_agent_and_all_come_back",
                "e2e/test_drift.py::test_after_a_reboot_what_was_wanted_runs_again_where_it_was",
                "integration/tmux/test_server_ends.py",
            ),
        ),
        Fault(
            "tmux hangs",
            "services are `degraded` and say why; no drift is reported",
            "everything",
            "nothing",
            ("e2e/test_drift.py::test_a_tmux_that_does_not_answer_is_no_drift", "integration/tmux/test_silence.py"),
        ),
        Fault(
            "a session is killed, or its program ends",
            "one event with its status; it is restarted within its limits",
            "the conversation",
            "nothing",
            (
                "e2e/test_lifecycle.py::test_a_killed_session_is_told_once_and_healed",
                "e2e/test_lifecycle.py::test_a_program_that_ends_is_told_with_its_status_and_healed",
            ),
        ),
        Fault(
            "an agent dies again and again",
            "it is given up once, with the reason",
            "the others",
            "nothing",
            ("integration/test_spawner_alone.py::test_a_crash_loop_is_given_up_once",),
        ),
        Fault(
            "an agent hangs at work",
            "it is restarted by its policy, and you are told",
            "the conversation",
            "the work of that moment",
            ("e2e/test_policies.py::test_an_agent_that_hangs_at_work_is_restarted",),
        ),
        Fault(
            "an agent forks, or ignores that it is to end",
            "nothing of it stays after a stop",
            "what it started in a process session of its own",
            "nothing",
            (
                "integration/test_termination.py",
                "e2e/test_going_down.py::test_a_program_that_outlives_its_session_is_ended_too",
            ),
        ),
        Fault(
            "a process number is used again",
            "nothing",
            "the stranger: it is neither asked nor ended",
            "nothing",
            ("integration/test_processes.py::test_a_reused_number_is_not_asked",),
        ),
        Fault(
            "two thousand foreign sessions in the same tmux",
            "nothing",
            "everything",
            "nothing",
            ("e2e/test_foreign_sessions.py",),
        ),
        Fault(
            "the clock is set back or forward",
            "the spawner is `degraded` for a minute, and says by how much",
            "agents, restart limits, idle times, history, open commands; limits and cron go by the new time",
            "nothing; a cron time that comes twice wakes twice",
            ("e2e/test_clock_jumps.py",),
        ),
        Fault(
            "an agent prints 35 MB/s",
            "nothing",
            "its newest output, `logs.keep` + 1 parts of `logs.max_mb`, without a gap",
            "older output",
            ("integration/test_logs.py", "integration/tmux/test_logs.py"),
        ),
    ),
)
FILES = Group(
    "Files and disks",
    (
        Fault(
            "the journal is removed, moved or damaged",
            "services begin a new epoch and say so; a damaged file is set aside",
            "agents that run, who was stopped, each conversation",
            "unpublished events, open commands, positions of loops ([design.md](design.md#the-journal))",
            ("e2e/test_lost_journal.py",),
        ),
        Fault(
            "`registry.yaml` is removed, or broken by an edit",
            "a sentence with file and line; it is written anew once it is gone or right again",
            "everything",
            "comments in a file that was removed",
            ("e2e/test_registry_by_hand.py", "e2e/test_status.py::test_a_broken_registry_is_told_with_its_place"),
        ),
        Fault(
            "journal and registry are both lost",
            "agents that run are taken as they are, declared ones that do not are started",
            "sessions that run",
            "who was stopped; conversations of agents that did not run",
            ("e2e/test_registry_by_hand.py::test_registry_and_journal_may_both_be_lost",),
        ),
        Fault(
            "the fleet file is broken by an edit",
            "a sentence; the last good one counts",
            "everything; `status` and `down` work",
            "nothing",
            (
                "e2e/test_lifecycle.py::test_a_broken_edit_of_the_fleet_file_is_told_and_the_last_good_one_stays",
                "e2e/test_odd_worlds.py::test_a_broken_file_keeps_nobody_from_seeing_and_ending_the_fleet",
            ),
        ),
        Fault(
            "the disk is full as you send a command",
            "`pending` (75) with its id, or that it was not accepted",
            "a command that is pending",
            "nothing that was accepted",
            ("e2e/test_full_disk.py",),
        ),
        Fault(
            "the state directory can't be written",
            "each service is `degraded` and says so; `status`, `events`, `logs` and `down` work",
            "agents, records, events",
            "commands of that time, and you are told; agents' output of that time",
            ("e2e/test_read_only_state.py",),
        ),
        Fault(
            "`down --agents` on a full disk, or with a broken fleet file",
            "what can't be written or read; sessions are ended without the services",
            "sessions that Muster did not start",
            "nothing",
            (
                "e2e/test_going_down.py::test_all_are_ended_though_the_disk_is_full",
                "e2e/test_going_down.py::test_all_are_ended_though_the_fleet_file_is_broken_and_nothing_runs",
            ),
        ),
        Fault(
            "the supervisor can't write its log",
            "nothing",
            "it restarts what ends",
            "its log lines",
            ("integration/test_supervisor_disk.py",),
        ),
        Fault(
            "the disk of logs is full",
            "a sentence; the log goes on when there is room",
            "the agents",
            "output of that time",
            ("integration/test_logs.py::test_a_full_disk_is_told_and_passes",),
        ),
    ),
)
TOGETHER = Group(
    "All of it together",
    (
        Fault(
            "random faults of all these kinds, under load",
            "what each of them shows",
            "no event, text or command is lost or done twice; all states agree when it is quiet",
            "what the rows above say",
            ("e2e/test_chaos.py",),
        ),
    ),
)
GROUPS = (SERVICES, BROKER, TMUX, FILES, TOGETHER)


def page() -> str:
    return HEAD + "\n".join(line for group in GROUPS for line in _section(group))


def _section(group: Group) -> Iterator[str]:
    yield f"## {group.title}\n"
    yield f"| {' | '.join(TITLES)} |"
    yield "|---" * len(TITLES) + "|"
    for fault in group.faults:
        tests = "<br>".join(_link(test) for test in fault.tests)
        yield f"| {fault.name} | {fault.seen} | {fault.survives} | {fault.lost} | {tests} |"
    yield ""


def _link(test: str) -> str:
    path, _, function = test.partition("::")
    file = ROOT / "tests" / path
    if not file.is_file():
        raise SystemExit(f"docs/reliability.md names tests/{path}, which does not exist")
    if function and not re.search(rf"^def {function}\(", file.read_text(encoding="utf-8"), re.MULTILINE):
        raise SystemExit(f"docs/reliability.md names {function}, which is not in tests/{path}")
    return f"[{Path(path).stem}](../tests/{path})"


def main() -> int:
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
