"""What the spawner does about one agent: tables for each situation, and whole lives of agents as properties."""

from dataclasses import asdict, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.spawner.decide import Action, Bury, Claim, Known, LookAgain, NoteDeath, SayGaveUp, Start, decide
from shared.fleet import RestartPolicy
from shared.states import Desired
from shared.tmux import Pane

POLICY = RestartPolicy()
NOW = 1_000.0
RUNNING, STOPPED = Desired.RUNNING, Desired.STOPPED


def pane(spawn: str = "s1", *, dead: bool = False, status: int | None = None) -> Pane:
    return Pane(
        session="builder",
        session_id="$1",
        pane_id="%1",
        pid=7,
        command="python",
        dead=dead,
        dead_status=status,
        path="/",
        title="",
        created=1,
        activity=1,
        agent="builder",
        spawn=spawn,
        fleet="f",
    )


def actions(
    known: Known, wish: Desired = RUNNING, seen: Pane | None = None, *, now: float = NOW, policy: RestartPolicy = POLICY
) -> list[Action]:
    return list(decide(known, wish, seen, policy, now))


NEW = Known()
ALIVE = Known(spawn="s1", alive=True)
DOWN = Known(spawn="s1", alive=False)
DEAD = pane(dead=True, status=3)


# --- nothing runs yet ---


def test_a_wanted_agent_is_started() -> None:
    assert actions(NEW) == [Start("declared in the fleet file", attempt=0, replaces=None)]


def test_an_agent_that_is_not_wanted_is_left_alone() -> None:
    for known in (NEW, ALIVE, DOWN, Known(spawn="s1", deaths=[NOW - 1])):
        assert actions(known, STOPPED) == []


def test_an_agent_that_was_stopped_and_is_wanted_again_is_started_at_once() -> None:
    assert actions(DOWN) == [Start("wanted, and not running", attempt=0, replaces="s1")]


# --- it runs ---


@pytest.mark.parametrize("wish", [RUNNING, STOPPED])
def test_a_session_that_is_known_is_left_alone(wish: Desired) -> None:
    assert actions(ALIVE, wish, pane()) == []


@pytest.mark.parametrize("wish", [RUNNING, STOPPED])
@pytest.mark.parametrize("known", [NEW, DOWN, replace(ALIVE, spawn="s0"), Known(spawn="s1", gave_up=True)])
def test_a_session_that_was_started_but_never_told_is_claimed(known: Known, wish: Desired) -> None:
    assert actions(known, wish, pane()) == [Claim(pane())]


# --- it died ---


def test_a_session_that_is_gone_is_started_again_after_a_wait() -> None:
    died = replace(DOWN, deaths=[NOW])
    assert actions(ALIVE) == [NoteDeath(died), LookAgain(NOW + 1)]
    assert actions(died, now=NOW + 0.9) == [LookAgain(NOW + 1)]
    assert actions(died, now=NOW + 1) == [Start("its session had ended", attempt=1, replaces="s1")]


def test_without_a_wait_it_is_started_at_once() -> None:
    policy = RestartPolicy(first_wait_s=0)
    assert [type(each) for each in actions(ALIVE, policy=policy)] == [NoteDeath, Start]


def test_a_program_that_ended_is_buried_and_started_again() -> None:
    assert actions(ALIVE, seen=DEAD) == [Bury(DEAD), NoteDeath(replace(DOWN, deaths=[NOW])), LookAgain(NOW + 1)]


def test_a_program_that_ended_before_it_was_told_is_a_death_too() -> None:
    unknown = pane("s2", dead=True)
    assert actions(DOWN, seen=unknown) == [
        Bury(unknown),
        NoteDeath(replace(DOWN, deaths=[NOW])),
        LookAgain(NOW + 1),
    ]


def test_a_program_that_ended_and_is_not_wanted_is_only_buried() -> None:
    assert actions(ALIVE, STOPPED, DEAD) == [Bury(DEAD)]


def test_a_death_that_was_noted_is_not_noted_again() -> None:
    died = Known(spawn="s1", deaths=[NOW])
    assert actions(died, seen=DEAD, now=NOW + 0.5) == [Bury(DEAD), LookAgain(NOW + 1)]


def test_it_is_given_up_when_it_dies_too_often() -> None:
    known = replace(ALIVE, deaths=[NOW - second for second in (5.0, 4.0, 3.0, 2.0, 1.0)])
    noted, given_up = actions(known)
    assert isinstance(noted, NoteDeath)
    assert given_up == SayGaveUp("it died 6 times within 60 s; 5 restarts are allowed")
    assert actions(noted.known) == [given_up]


@pytest.mark.parametrize("seen", [None, DEAD])
def test_what_was_given_up_stays_down(seen: Pane | None) -> None:
    known = Known(spawn="s1", deaths=[NOW] * 6, gave_up=True)
    assert actions(known, seen=seen, now=NOW + 1e6) == ([Bury(DEAD)] if seen else [])


def test_a_clock_that_was_set_back_does_not_keep_an_agent_down() -> None:
    died = Known(spawn="s1", deaths=[NOW])
    (look_again,) = actions(died, now=NOW - 3_600)
    assert isinstance(look_again, LookAgain)
    assert look_again.when <= NOW - 3_600 + POLICY.longest_wait_s


# --- memory ---


@pytest.mark.parametrize("wish", [None, RUNNING, STOPPED])
def test_what_is_known_is_read_back_as_it_was_kept(wish: Desired | None) -> None:
    known = Known(wish=wish, spawn="s1", alive=True, deaths=[1.0, 2.0], gave_up=True)
    assert Known.read(asdict(known)) == known
    assert Known.read(asdict(Known())) == Known()


def test_nothing_kept_is_nothing_known() -> None:
    assert Known.read(None) == Known()
    assert Known.read({}) == Known()


# --- whole lives ---


class Life:
    """One agent, its tmux session and the spawner's memory, with every action carried out."""

    def __init__(self, policy: RestartPolicy) -> None:
        self.policy = policy
        self.known = Known()
        self.pane: Pane | None = None
        self.now = 0.0
        self.starts: list[float] = []
        self.gave_up = 0
        self.deaths = 0
        self.claimed = 0

    def look(self, *, crashes_after: int = 1_000) -> list[Action]:
        """One step. With `crashes_after`, the spawner dies after so many actions, and its memory of them with it."""
        done: list[Action] = []
        kept = self.known
        for action in decide(self.known, RUNNING, self.pane, self.policy, self.now):
            if len(done) == crashes_after:
                break
            done.append(action)
            kept = self._carry_out(action, kept)
        if len(done) < crashes_after:
            self.known = kept
        return done

    def _carry_out(self, action: Action, known: Known) -> Known:
        match action:
            case Claim(found):
                self.claimed += 1
                return replace(known, spawn=found.spawn, alive=True)
            case Bury():
                self.pane = None
            case NoteDeath(noted):
                return noted
            case Start():
                assert self.pane is None
                self.starts.append(self.now)
                self.pane = pane(f"s{len(self.starts)}")
                return replace(known, spawn=self.pane.spawn, alive=True)
            case SayGaveUp():
                self.gave_up += 1
                return replace(known, gave_up=True)
            case LookAgain(when):
                assert when > self.now
        return known

    def die(self, *, leaves_a_pane: bool) -> None:
        if self.pane is not None and not self.pane.dead:
            self.deaths += 1
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
def test_a_crash_at_any_point_ends_with_one_session_that_was_told(
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
        assert (life.known.spawn, life.known.alive) == (life.pane.spawn, True)


def test_an_agent_that_lives_long_between_its_deaths_is_never_given_up() -> None:
    life = Life(POLICY)
    for _ in range(50):
        life.look()
        life.now += POLICY.burst_s
        life.die(leaves_a_pane=False)
        life.look()
        life.now += POLICY.first_wait_s
    assert life.gave_up == 0
    assert len(life.starts) == 50
