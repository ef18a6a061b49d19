"""Keeping sessions turn by turn: what is started, published and remembered, and in which order."""

from dataclasses import replace

from services.spawner.sessions.keeper import DEAD_PANE_STAYS_S, EXIT_STATUS_WITHIN_S, STARTS_IN_A_TURN
from services.spawner.sessions.memory import Ended, Exited, GivenUp, Origin, RefusedToResume, Running
from shared.contract.commands import Adopt, Restart, Resume, Spawn, Stop
from shared.contract.events.lifecycle import AgentExited, AgentGaveUp, AgentRestarted, AgentSpawned
from tests.unit.spawner.conftest import MakeWorld
from tests.unit.spawner.world import QUICK_RESTART, SpawnerWorld, box

NOT_LOGGED_IN = f"> heard: login\n! not logged in\n{box()}"


def started(make: MakeWorld, **declared: object) -> SpawnerWorld:
    world = make({"restart": QUICK_RESTART, **declared})
    world.turn()
    return world


def dies(world: SpawnerWorld, status: int = 1, screen: str = "") -> None:
    world.exits(status, screen)
    world.turn()
    world.turn(after=DEAD_PANE_STAYS_S)


def test_a_declared_agent_is_started_and_published(make: MakeWorld) -> None:
    world = started(make)
    (event,) = world.events
    pane = world.tmux.panes["builder"]
    assert isinstance(event, AgentSpawned)
    assert (event.spawn, event.pane, event.pid) == (pane.spawn, pane.pane_id, pane.pid)
    assert (world.known().phase, world.known().spawn) == (Running(), pane.spawn)


def test_a_turn_starts_a_few_and_the_next_one_follows_at_once(make: MakeWorld) -> None:
    agents: dict[str, dict[str, object]] = {f"agent-{number}": {} for number in range(2 * STARTS_IN_A_TURN)}
    world = make(agents=agents, start={"at_once": 100, "gap_s": 0})
    for turns in (1, 2):
        turn = world.turn()
        assert len(world.events) == len(world.tmux.panes) == turns * STARTS_IN_A_TURN
        assert turn.look_again == turn.now
    world.turn()
    assert len(world.events) == len(agents) + 1


def test_a_session_that_was_started_before_a_crash_is_claimed_and_not_started_twice(make: MakeWorld) -> None:
    world = make()
    world.turn(commits=False)
    spawn = world.tmux.panes["builder"].spawn
    world.restarts()
    world.turn()
    assert world.tmux.panes["builder"].spawn == spawn == world.known().spawn
    assert world.kinds() == ["spawned"]


def test_a_dead_pane_stays_until_its_exit_was_published(make: MakeWorld) -> None:
    world = started(make)
    spawn = world.known().spawn or ""
    world.exits(3, "boom\n")
    world.turn()
    assert world.kinds() == ["spawned"], "others may look at it first"
    world.turn(after=DEAD_PANE_STAYS_S)
    assert isinstance(exited := world.events[-1], AgentExited)
    assert (exited.spawn, exited.exit_status, exited.last_words) == (spawn, 3, "boom")
    assert world.known().phase == Exited(spawn)
    assert world.tmux.panes["builder"].dead, "only the pane knows how it ended: it goes after the commit"
    world.turn()
    assert "builder" not in world.tmux.panes
    assert world.known().phase == Ended()
    world.turn()
    assert world.kinds() == ["spawned", "exited", "restarted"]


def test_an_exit_is_published_once_over_a_crash(make: MakeWorld) -> None:
    world = started(make)
    dies(world)
    for _ in range(2):  # it is killed each time before it can commit what it cleared away
        world.turn(commits=False)
        world.restarts()
    world.turn()
    world.turn()
    assert world.kinds() == ["spawned", "exited", "restarted"]


def test_tmux_may_not_know_the_exit_status_at_once(make: MakeWorld) -> None:
    world = started(make)
    world.tmux.panes["builder"] = replace(world.tmux.panes["builder"], dead=True)
    world.turn()
    world.turn(after=DEAD_PANE_STAYS_S)
    assert world.kinds() == ["spawned"]
    world.turn(after=EXIT_STATUS_WITHIN_S)
    assert isinstance(exited := world.events[-1], AgentExited)
    assert exited.exit_status is None


def test_a_session_that_vanished_is_restarted_and_says_what_it_replaces(make: MakeWorld) -> None:
    world = started(make)
    first = world.known().spawn
    world.tmux.panes.clear()
    world.opens("mine")  # the server lives
    world.turn()
    world.turn()
    assert isinstance(restarted := world.events[-1], AgentRestarted)
    assert (restarted.replaces, restarted.attempt) == (first, 1)
    assert restarted.spawn == world.tmux.panes["builder"].spawn != first


def test_an_agent_that_dies_too_often_is_given_up_once(make: MakeWorld) -> None:
    world = started(make)
    for _ in range(6):
        if "builder" in world.tmux.panes:
            dies(world)
        world.turn()
        world.turn()
    # Two restarts are allowed. Each resumes, ends at once, and is followed by a fresh start that counts for nothing.
    assert world.kinds().count("restarted") == 4
    assert world.kinds().count("gave_up") == 1
    assert world.known().phase == GivenUp()


def test_a_person_who_asks_for_it_gives_it_new_chances(make: MakeWorld) -> None:
    world = started(make, **{"restart": {**QUICK_RESTART, "burst": 0}})
    dies(world)
    world.turn()
    world.turn()
    assert world.known().gave_up
    assert world.reply(Spawn(agent="builder", id="c1")).ok
    assert (world.known().phase, world.known().deaths) == (Running(), ())


def test_an_agent_that_has_to_be_logged_in_is_given_up_with_its_reason(make: MakeWorld) -> None:
    world = started(make)
    dies(world, 1, NOT_LOGGED_IN)
    world.turn()
    world.turn()
    assert isinstance(gave_up := world.events[-1], AgentGaveUp)
    assert "it is not logged in; log it in, then start it again" in gave_up.reason
    assert "builder" not in world.tmux.panes


def test_a_login_screen_counts_also_where_tmux_does_not_know_the_exit_status(make: MakeWorld) -> None:
    world = started(make)
    world.tmux.panes["builder"] = replace(world.tmux.panes["builder"], dead=True)
    world.shows(NOT_LOGGED_IN)
    world.turn()
    world.turns_for(EXIT_STATUS_WITHIN_S + 1)
    assert world.kinds() == ["spawned", "exited", "gave_up"]


def test_an_agent_that_was_stopped_stays_down(make: MakeWorld) -> None:
    world = started(make)
    assert world.reply(Stop(agent="builder", id="c1")).said == "builder was stopped"
    world.turns_for(5)
    assert (world.kinds(), world.known().phase) == (["spawned", "stopped"], Ended())


def test_a_fleet_that_goes_down_leaves_its_wishes_as_they_are(make: MakeWorld) -> None:
    world = started(make)
    world.reply(Stop(agent="builder", id="c1", for_now=True))
    world.turns_for(2)
    assert world.tmux.panes == {}
    world.restarts()
    world.turn()
    assert "builder" in world.tmux.panes


def test_many_starts_are_spread_out(make: MakeWorld) -> None:
    world = make(agents={f"agent-{number}": {} for number in range(4)}, start={"at_once": 2, "gap_s": 1})
    world.turn()
    assert len(world.tmux.panes) == 2
    world.turn(after=1)
    assert len(world.tmux.panes) == 3


def test_one_odd_agent_costs_the_others_nothing(make: MakeWorld) -> None:
    world = make(agents={"odd": {"backend": "missing"}}, backends={"missing": {"binary": "no-such-program"}})
    turn = world.turn()
    assert "builder" in world.tmux.panes
    assert turn.trouble.startswith("odd: ")
    assert "no-such-program" in turn.trouble


def test_an_adopted_session_is_not_restarted(make: MakeWorld) -> None:
    world = make()
    world.turn()
    world.opens("theirs")
    reply = world.reply(Adopt(agent="helper", session="theirs", backend="demo", id="c1"))
    assert reply.ok, reply.said
    assert world.known("helper").session.origin is Origin.ADOPTED
    del world.tmux.panes["theirs"]
    world.turns_for(3)
    assert (world.kinds("helper"), world.known("helper").phase) == (["adopted"], Ended())


# --- a refusal to resume, a login, and a crash between them ---


def refuses(world: SpawnerWorld) -> None:
    world.turn(Resume(agent="builder", conversation="c-1", id="c1"))
    dies(world, 1, "demo agent: there is no conversation c-1")
    world.turn()
    assert isinstance(world.known().phase, RefusedToResume)


def test_a_refusal_outlives_a_session_that_died_before_it_was_published(make: MakeWorld) -> None:
    world = make({"enabled": False, "restart": {**QUICK_RESTART, "burst": 9}})
    refuses(world)
    world.turn(commits=False)  # the new conversation is begun, and the spawner is killed
    world.restarts()
    dies(world)
    world.turn()
    assert isinstance(world.known().phase, RefusedToResume), "what comes next begins a new conversation too"


def test_a_task_that_has_to_be_logged_in_is_given_up_and_its_resume_is_refused(make: MakeWorld) -> None:
    world = make({"kind": "task", "enabled": False})
    world.turn(Resume(agent="builder", conversation="c-1", id="c1"))
    dies(world, 1, NOT_LOGGED_IN)
    world.turns_for(2)
    assert world.kinds() == ["resumed", "exited", "gave_up"]
    assert (world.replies["c1"].code, world.known().session.conversation) == ("refused", "c-1")


def test_a_restart_that_counts_does_not_forget_that_a_person_is_needed(make: MakeWorld) -> None:
    world = started(make)
    dies(world, 1, NOT_LOGGED_IN)
    assert isinstance(world.known().phase, Exited)
    world.turn(Restart(agent="builder", id="c1", counts=True))
    world.turns_for(2)
    assert world.kinds()[-1] == "gave_up"
    assert world.known().gave_up


def test_a_dead_pane_whose_end_is_remembered_is_only_cleared_away(make: MakeWorld) -> None:
    world = started(make)
    pane = replace(world.tmux.panes["builder"], dead=True, dead_status=1)
    dies(world)
    world.turn()
    assert world.known().phase == Ended()
    deaths = world.known().deaths
    world.tmux.panes["builder"] = pane  # it could not be cleared away
    world.turn()
    world.turn(after=DEAD_PANE_STAYS_S)
    assert world.kinds().count("exited") == 1
    assert world.known().deaths == deaths
