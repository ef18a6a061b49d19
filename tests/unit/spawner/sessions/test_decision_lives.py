"""Whole lives of agents, with deaths, crashes of the spawner and jumps of the clock, as properties."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.spawner.sessions.decision import (
    Action,
    ClaimSession,
    ClearDeadPane,
    KeepRules,
    LookAgain,
    NoteDeath,
    ReportGaveUp,
    Start,
    decide,
)
from services.spawner.sessions.memory import AgentMemory, LostWithServer, Running
from shared.fleet import RestartPolicy
from shared.runtime.moments import moved, mover
from shared.system.tmux import Pane
from tests.unit.spawner.samples import remembered
from tests.unit.spawner.sessions.test_decision import POLICY, RUNNING, pane


class Life:
    """One agent, its tmux session and the spawner's memory, with every action carried out."""

    def __init__(self, policy: RestartPolicy, *, once: bool = False) -> None:
        self.rules = KeepRules(policy, once=once)
        self.known = AgentMemory()
        self.pane: Pane | None = None
        self.now = 0.0
        self.starts: list[float] = []
        self.gave_up = 0
        self.deaths = 0
        self.left_no_trace = False
        """Whether a session was gone before its start was remembered: nobody can know of it."""

    def look(self, *, crashes_after: int = 1_000) -> list[Action]:
        """One step. With `crashes_after`, the spawner dies after so many actions, and its memory of them with it."""
        done: list[Action] = []
        kept = self.known
        for action in decide(self.known, RUNNING, self.pane, self.rules, self.now):
            if len(done) == crashes_after:
                break
            done.append(action)
            kept = self._carry_out(action, kept)
        if len(done) < crashes_after:
            self.known = kept
        else:
            cleared = [each.pane.spawn for each in done if isinstance(each, ClearDeadPane)]
            self.left_no_trace |= any(spawn != self.known.spawn for spawn in cleared)
        return done

    def _carry_out(self, action: Action, known: AgentMemory) -> AgentMemory:
        match action:
            case ClaimSession(found):
                return replace(known.with_session(spawn=found.spawn), phase=Running())
            case ClearDeadPane():
                self.pane = None
            case NoteDeath(noted):
                return noted
            case Start():
                assert self.pane is None
                self.starts.append(self.now)
                self.pane = pane(f"s{len(self.starts)}")
                session = {"spawn": self.pane.spawn, "started": self.now, "resumed": action.replaces is not None}
                return replace(known.with_session(**session), phase=Running())
            case ReportGaveUp():
                self.gave_up += 1
                return known.as_given_up()
            case LookAgain(when):
                assert when > self.now
        return known

    def die(self, *, leaves_a_pane: bool) -> None:
        if self.pane is not None and not self.pane.dead:
            self.deaths += 1
            self.left_no_trace |= not leaves_a_pane and self.known.spawn != self.pane.spawn
            self.pane = replace(self.pane, dead=True, dead_status=1) if leaves_a_pane else None


moments = st.lists(
    st.tuples(st.sampled_from(["look", "vanish", "exit", "pass", "crash"]), st.floats(0, 40)), max_size=60
)
policies = st.builds(
    RestartPolicy,
    first_wait_s=st.floats(0, 5),
    longest_wait_s=st.floats(0, 20),
    burst=st.integers(0, 4),
    burst_s=st.floats(1, 200),
    sustained=st.integers(0, 12),
    sustained_s=st.floats(1, 2_000),
)


def live(life: Life, moments: list[tuple[str, float]], *, crashes: bool) -> None:
    for what, number in moments:
        match what:
            case "vanish" | "exit":
                life.die(leaves_a_pane=what == "exit")
            case "pass":
                life.now += number
            case "crash" if crashes:
                life.look(crashes_after=int(number) % 3)
            case _:
                life.look()


@given(policies, moments)
@settings(max_examples=200)
def test_looking_twice_changes_nothing(policy: RestartPolicy, moments: list[tuple[str, float]]) -> None:
    life = Life(policy)
    live(life, moments, crashes=False)
    life.look()
    starts, gave_up = list(life.starts), life.gave_up
    assert all(isinstance(each, LookAgain) for each in life.look())
    assert (life.starts, life.gave_up) == (starts, gave_up)


@given(policies, moments)
@settings(max_examples=200)
def test_it_is_given_up_at_most_once_and_never_started_after(
    policy: RestartPolicy, moments: list[tuple[str, float]]
) -> None:
    life = Life(policy)
    for moment in moments:
        before = len(life.starts)
        was_over = life.known.gave_up
        live(life, [moment], crashes=False)
        assert life.gave_up <= 1
        assert not was_over or len(life.starts) == before
        assert len(life.starts) <= 1 + life.deaths


@given(policies, moments)
@settings(max_examples=200)
def test_a_crash_at_any_point_ends_with_one_session_that_was_published(
    policy: RestartPolicy, moments: list[tuple[str, float]]
) -> None:
    """The world may be ahead of the memory; looking again brings them together."""
    life = Life(policy)
    live(life, moments, crashes=True)
    life.look()
    life.now += policy.longest_wait_s + 1e-3
    life.look()
    assert life.known.gave_up or life.pane is not None
    if life.pane is not None and not life.known.gave_up:
        assert (life.known.spawn, life.known.phase) == (life.pane.spawn, Running())


@given(moments)
@settings(max_examples=200)
def test_a_task_has_one_session_whatever_happens(moments: list[tuple[str, float]]) -> None:
    """Even if the spawner crashes between starting and publishing it."""
    life = Life(POLICY, once=True)
    live(life, moments, crashes=True)
    assert len(life.starts) <= 1 or life.left_no_trace


@given(policies, moments, moments, st.integers(-900_000, 900_000))
@settings(max_examples=200)
def test_an_agent_lives_the_same_life_whatever_is_done_to_the_clock(
    policy: RestartPolicy, before: list[tuple[str, float]], after: list[tuple[str, float]], by: int
) -> None:
    lives = Life(policy), Life(policy)
    for life, jump in zip(lives, (0, by), strict=True):
        life.now = 1e6
        live(life, [(what, float(int(number))) for what, number in before], crashes=False)
        life.now += jump
        life.known = moved(AgentMemory, life.known, mover(jump))
        live(life, [(what, float(int(number))) for what, number in after], crashes=False)
    calm, jumped = lives
    assert (len(jumped.starts), jumped.gave_up, jumped.deaths) == (len(calm.starts), calm.gave_up, calm.deaths)
    assert [death - by for death in jumped.known.deaths] == pytest.approx(calm.known.deaths, abs=1e-6)


def test_an_agent_that_lives_long_between_its_deaths_is_never_given_up() -> None:
    life = Life(RestartPolicy(sustained=60))
    for _ in range(50):
        life.look()
        life.now += POLICY.burst_s
        life.die(leaves_a_pane=False)
        life.look()
        life.now += POLICY.first_wait_s
    assert life.gave_up == 0
    assert len(life.starts) == 50


@given(policies, st.lists(st.floats(0, 300), min_size=1, max_size=40))
@settings(max_examples=200)
def test_a_server_that_ends_again_and_again_is_forgiven_once_in_a_while(
    policy: RestartPolicy, pauses: list[float]
) -> None:
    """No more deaths count than servers ended soon after another, and no burst of them is left out."""
    rules = KeepRules(policy)
    known, now, ended, counted = remembered("s0", server="server 0"), 1_000.0, -1e9, 0
    for number, pause in enumerate(pauses):
        now += pause
        (noted, *_) = decide(known, RUNNING, None, rules, now, f"server {number + 1}")
        assert isinstance(noted, NoteDeath)
        counted += now - ended <= policy.burst_s
        assert isinstance(noted.known.phase, LostWithServer) == (now - ended > policy.burst_s)
        assert len(noted.known.deaths) <= counted
        ended = now
        # It is started again at once, as if nothing ever held it up.
        session = {"spawn": f"s{number + 1}", "server": f"server {number + 1}"}
        known = replace(noted.known.with_session(**session), phase=Running())
