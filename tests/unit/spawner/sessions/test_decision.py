"""What the spawner does about one agent: a table for each situation."""

from dataclasses import replace

import pytest

from services.spawner.sessions.decision import (
    GONE_FOR_S,
    REFUSED,
    SERVER_ENDED,
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
from services.spawner.sessions.memory import (
    AGENTS,
    AgentMemory,
    Ended,
    Exited,
    GivenUp,
    LostWithServer,
    NeverStarted,
    Origin,
    Paused,
    Phase,
    RefusedToResume,
    Running,
)
from shared.contract.states import Desired
from shared.fleet import RestartPolicy
from shared.system.tmux import Pane
from tests.unit.spawner.samples import ended, remembered

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


RULES = KeepRules(POLICY)
TASK = KeepRules(POLICY, once=True)


def actions(
    known: AgentMemory, wish: Desired = RUNNING, seen: Pane | None = None, *, now: float = NOW, rules: KeepRules = RULES
) -> list[Action]:
    return list(decide(known, wish, seen, rules, now))


NEW = AgentMemory()
ALIVE = remembered()
DOWN = ended()
DEAD = pane(dead=True, status=3)


# --- nothing runs yet ---


def test_a_wanted_agent_is_started() -> None:
    assert actions(NEW) == [Start("declared in the fleet file", attempt=0, replaces=None)]


def test_an_agent_that_is_not_wanted_is_left_alone() -> None:
    for known in (NEW, ALIVE, DOWN, ended(deaths=[NOW - 1])):
        assert actions(known, STOPPED) == []


def test_an_agent_that_was_stopped_and_is_wanted_again_is_started_at_once() -> None:
    assert actions(DOWN) == [Start("wanted, and not running", attempt=0, replaces="s1", blameless=True)]


# --- it runs ---


@pytest.mark.parametrize("wish", [RUNNING, STOPPED])
def test_a_session_that_is_known_is_left_alone(wish: Desired) -> None:
    assert actions(ALIVE, wish, pane()) == []


@pytest.mark.parametrize("wish", [RUNNING, STOPPED])
@pytest.mark.parametrize("known", [NEW, DOWN, remembered("s0"), remembered(phase=GivenUp())])
def test_a_session_that_was_started_but_never_published_is_claimed(known: AgentMemory, wish: Desired) -> None:
    assert actions(known, wish, pane()) == [ClaimSession(pane())]


# --- it died ---


def test_a_session_that_is_gone_is_started_again_after_a_wait() -> None:
    died = ended(deaths=[NOW])
    assert actions(ALIVE) == [NoteDeath(died), LookAgain(NOW + 1)]
    assert actions(died, now=NOW + 0.9) == [LookAgain(NOW + 1)]
    assert actions(died, now=NOW + 1) == [Start("its session had ended", attempt=1, replaces="s1")]


def test_without_a_wait_it_is_started_at_once() -> None:
    rules = KeepRules(RestartPolicy(first_wait_s=0))
    assert [type(each) for each in actions(ALIVE, rules=rules)] == [NoteDeath, Start]


def test_a_program_that_ended_is_cleared_away_and_started_again() -> None:
    assert actions(ALIVE, seen=DEAD) == [
        ClearDeadPane(DEAD),
        NoteDeath(ended(deaths=[NOW])),
        LookAgain(NOW + 1),
    ]


def test_a_program_that_ended_before_it_was_published_is_a_death_too() -> None:
    unknown = pane("s2", dead=True)
    assert actions(DOWN, seen=unknown) == [
        ClearDeadPane(unknown),
        NoteDeath(ended(deaths=[NOW])),
        LookAgain(NOW + 1),
    ]


def test_a_first_session_that_ended_before_it_was_published_is_a_death_too() -> None:
    """The spawner died between starting and publishing it."""
    died = ended(deaths=[NOW])
    assert actions(NEW, seen=DEAD) == [ClearDeadPane(DEAD), NoteDeath(died), LookAgain(NOW + 1)]


def test_a_program_that_ended_and_is_not_wanted_is_only_cleared_away() -> None:
    assert actions(ALIVE, STOPPED, DEAD) == [ClearDeadPane(DEAD)]


def test_a_death_that_was_noted_is_not_noted_again() -> None:
    died = ended(deaths=[NOW])
    assert actions(died, seen=DEAD, now=NOW + 0.5) == [ClearDeadPane(DEAD), LookAgain(NOW + 1)]


def test_it_is_given_up_when_it_dies_too_often() -> None:
    known = remembered(deaths=[NOW - second for second in (5.0, 4.0, 3.0, 2.0, 1.0)])
    noted, given_up = actions(known)
    assert isinstance(noted, NoteDeath)
    assert given_up == ReportGaveUp("it died 6 times within 60 s; 5 restarts are allowed")
    assert actions(noted.known) == [given_up]


@pytest.mark.parametrize("seen", [None, DEAD])
def test_what_was_given_up_stays_down(seen: Pane | None) -> None:
    known = remembered(phase=GivenUp(), deaths=[NOW] * 6)
    assert actions(known, seen=seen, now=NOW + 1e6) == ([ClearDeadPane(DEAD)] if seen else [])


# --- a task ---


def test_a_task_is_started_once() -> None:
    assert actions(NEW, rules=TASK) == [Start("declared in the fleet file", attempt=0, replaces=None)]
    assert actions(ALIVE, seen=pane(), rules=TASK) == []


@pytest.mark.parametrize("seen", [None, DEAD, pane(dead=True, status=0), pane("s2", dead=True)])
def test_a_task_that_ended_is_not_started_again(seen: Pane | None) -> None:
    done = actions(ALIVE, seen=seen, rules=TASK)
    assert done == [*([ClearDeadPane(seen)] if seen else []), NoteDeath(DOWN)]
    assert actions(DOWN, rules=TASK) == []


def test_a_task_that_ended_before_it_was_published_is_not_started_again() -> None:
    """Its work may be done."""
    cleared, noted = actions(NEW, seen=DEAD, rules=TASK)
    assert (cleared, noted) == (ClearDeadPane(DEAD), NoteDeath(DOWN))
    assert actions(DOWN, rules=TASK) == []


def test_a_task_that_found_no_conversation_begins_a_new_one() -> None:
    known = remembered(resumed=True, started=NOW - 1)
    *_, start = actions(known, seen=DEAD, rules=TASK)
    assert start == Start(f"{REFUSED}; it began a new one", attempt=0, replaces=known.spawn, fresh=True, blameless=True)


# --- a conversation that can't be taken up ---

RESUMED = remembered(resumed=True, started=NOW - 2, conversation="c1")


def test_after_a_refusal_a_new_conversation_is_begun_at_once() -> None:
    known = remembered(phase=RefusedToResume(), started=NOW - 2)
    assert actions(RESUMED, seen=DEAD) == [
        ClearDeadPane(DEAD),
        NoteDeath(known),
        Start(f"{REFUSED}; it began a new one", attempt=0, replaces="s1", fresh=True, blameless=True),
    ]


def test_after_a_refusal_it_stays_down_where_the_backend_says_so() -> None:
    done = actions(RESUMED, seen=DEAD, rules=KeepRules(POLICY, otherwise="stop"))
    assert [type(each) for each in done] == [ClearDeadPane, NoteDeath, ReportGaveUp]
    assert done[-1] == ReportGaveUp(f"{REFUSED}, and the backend's `resume.otherwise` is `stop`")


def test_a_new_conversation_that_has_to_wait_for_its_turn_is_still_a_new_one() -> None:
    """The fleet's limits may hold the start back: the next look must not take up what was refused."""
    noted = actions(RESUMED, seen=DEAD)[1]
    assert isinstance(noted, NoteDeath)
    assert actions(noted.known, now=NOW + 1) == [
        Start(f"{REFUSED}; it began a new one", attempt=0, replaces="s1", fresh=True, blameless=True),
    ]
    later = replace(noted.known.with_session(spawn="s2"), phase=Running())
    died = actions(later, now=NOW + 100)[0]
    assert isinstance(died, NoteDeath)
    assert actions(died.known, now=NOW + 101) == [Start("its session had ended", attempt=1, replaces="s2")]


@pytest.mark.parametrize(
    ("known", "seen"),
    [
        (RESUMED.with_session(resumed=False), DEAD),
        (RESUMED.with_session(started=NOW - 21), DEAD),
        (RESUMED.with_session(started=NOW + 60), DEAD),
        (RESUMED, pane(dead=True, status=0)),
        (RESUMED, pane(dead=True, status=-9)),
        (RESUMED, pane(dead=True, status=None)),
        (RESUMED, pane("s2", dead=True, status=1)),
        (RESUMED, None),
    ],
    ids=["not resumed", "late", "clock set back", "content", "killed", "status unknown", "another session", "vanished"],
)
def test_other_ends_are_no_refusal(known: AgentMemory, seen: Pane | None) -> None:
    done = actions(known, seen=seen)
    assert not any(isinstance(each, Start | ReportGaveUp) for each in done)
    (noted,) = [each for each in done if isinstance(each, NoteDeath)]
    assert (noted.known.session.conversation, noted.known.deaths) == ("c1", (NOW,))


def test_a_refusal_is_no_death_of_its_own() -> None:
    """It belongs to the death before it: three deaths stay three, however often a conversation was refused."""
    known = replace(RESUMED, deaths=(NOW - 3,))
    noted = actions(known, seen=DEAD)[1]
    assert isinstance(noted, NoteDeath)
    assert noted.known.deaths == (NOW - 3,)


def test_an_agent_that_refuses_and_fails_at_once_is_given_up() -> None:
    """An agent that ends at once with an error, whatever it is started with, is given up like any other."""
    known, starts = ALIVE, 0
    now, resumes = NOW, False
    while not known.gave_up:
        known = replace(known.with_session(resumed=resumes, started=now), phase=Running())
        for action in actions(known, seen=DEAD, now=now):
            match action:
                case NoteDeath(known):
                    pass
                case ReportGaveUp():
                    known = known.as_given_up()
                case Start(fresh=fresh):
                    starts, resumes = starts + 1, not fresh
                case LookAgain(when):
                    now, starts, resumes = when, starts + 1, True
        assert starts <= 2 * (POLICY.burst + 1), "each counted death is followed by at most one refusal"
    assert starts >= POLICY.burst


# --- memory ---


PHASES: list[Phase] = [
    NeverStarted(),
    Running(),
    Exited("s1", needs_person="log it in"),
    Ended("asked for"),
    LostWithServer(),
    RefusedToResume(),
    Paused("log it in"),
    GivenUp(refused=True),
]


@pytest.mark.parametrize("phase", PHASES, ids=lambda phase: phase.name)
def test_what_is_remembered_is_read_back_as_it_was_kept(phase: Phase) -> None:
    known = replace(
        remembered(phase=phase, deaths=[1.0, 2.0], origin=Origin.FOUND, conversation="c1"),
        wish=STOPPED,
        overrides={"dir": "x"},
    )
    assert AGENTS.load(AGENTS.dump(known)) == known


def test_a_person_who_asks_for_an_agent_wipes_its_slate_clean() -> None:
    after = {phase.name: remembered(phase=phase, deaths=[NOW]).as_wanted() for phase in PHASES}
    assert {name: known.phase for name, known in after.items()} == {
        "never_started": NeverStarted(),
        "running": Running(),
        "exited": Exited("s1"),
        "ended": Ended(),
        "lost_with_server": LostWithServer(),
        "refused_to_resume": RefusedToResume(),
        "paused": Ended(),
        "given_up": RefusedToResume(),
    }
    assert all((known.wish, known.deaths) == (RUNNING, ()) for known in after.values())


def test_an_agent_that_was_stopped_has_no_session_and_no_deaths() -> None:
    for phase in PHASES:
        stopped = remembered(phase=phase, deaths=[NOW], prompt="build").as_stopped()
        assert not stopped.had_session
        assert (stopped.gave_up, stopped.deaths, stopped.session.prompt) == (False, (), "")
    assert remembered(phase=GivenUp()).as_stopped().phase == Ended()


# --- a person has to act ---

NOT_LOGGED_IN = "its program ended: it is not logged in; log it in, then start it again"


def test_an_agent_that_needs_a_person_is_given_up_with_what_it_needs() -> None:
    exited = remembered(phase=Exited("s1", NOT_LOGGED_IN))
    cleared, noted, gave_up = actions(exited, seen=DEAD)
    assert cleared == ClearDeadPane(DEAD)
    assert noted == NoteDeath(remembered(phase=Paused(NOT_LOGGED_IN), deaths=[NOW]))
    assert gave_up == ReportGaveUp(NOT_LOGGED_IN)


def test_a_conversation_outlives_a_login_that_has_run_out() -> None:
    """Its program ends at once, as one that has no such conversation does."""
    exited = replace(RESUMED, phase=Exited("s1", NOT_LOGGED_IN))
    _, noted, _ = actions(exited, seen=DEAD)
    assert isinstance(noted, NoteDeath)
    assert noted.known.session.conversation == "c1"


# --- the tmux server ends, or the machine ---


IN_FIRST = remembered(server="1-100", deaths=[NOW - 5])
GONE_WITH_IT = replace(IN_FIRST, phase=LostWithServer(), server_ended=NOW)


@pytest.mark.parametrize("server", [None, "1-200", "2-100"], ids=["none", "later", "another"])
def test_what_went_with_its_server_is_started_again_without_blame(server: str | None) -> None:
    again = Start(SERVER_ENDED, attempt=0, replaces="s1", blameless=True)
    seen_first = LookAgain(NOW + GONE_FOR_S)
    assert list(decide(IN_FIRST, RUNNING, None, RULES, NOW, server)) == [NoteDeath(GONE_WITH_IT), seen_first]
    assert list(decide(GONE_WITH_IT, RUNNING, None, RULES, NOW + GONE_FOR_S / 2, server)) == [seen_first]
    assert list(decide(GONE_WITH_IT, RUNNING, None, RULES, NOW + 2 * GONE_FOR_S, server)) == [again]
    assert list(decide(GONE_WITH_IT, RUNNING, None, RULES, NOW + 99, server)) == [again], "however long it waits"


@pytest.mark.parametrize(
    ("known", "seen"),
    [
        (IN_FIRST, None),
        (IN_FIRST.with_session(server=""), None),
        (replace(IN_FIRST, phase=Exited("s1")), None),
        (IN_FIRST, DEAD),
    ],
    ids=["same server", "not known which", "seen to have ended", "ended there"],
)
def test_any_other_death_counts(known: AgentMemory, seen: Pane | None) -> None:
    server = "1-100" if known == IN_FIRST and seen is None else None
    (noted,) = [each for each in decide(known, RUNNING, seen, RULES, NOW, server) if isinstance(each, NoteDeath)]
    assert (noted.known.deaths, noted.known.phase) == ((NOW - 5, NOW), Ended())


@pytest.mark.parametrize(("ago", "counts"), [(1.0, True), (POLICY.burst_s, True), (POLICY.burst_s + 1, False)])
def test_a_server_that_ends_again_soon_counts(ago: float, *, counts: bool) -> None:
    known = replace(IN_FIRST, deaths=(), server_ended=NOW - ago)
    (noted,) = [each for each in decide(known, RUNNING, None, RULES, NOW, None) if isinstance(each, NoteDeath)]
    assert (noted.known.deaths, noted.known.phase) == (((NOW,), Ended()) if counts else ((), LostWithServer()))
    assert noted.known.server_ended == NOW


def test_a_server_that_ends_in_the_future_is_one_before_the_clock_was_set_back() -> None:
    known = replace(IN_FIRST, deaths=(), server_ended=NOW + 1_000)
    (noted, _) = decide(known, RUNNING, None, RULES, NOW, None)
    assert isinstance(noted, NoteDeath)
    assert noted.known.phase == LostWithServer()


def test_what_is_run_once_is_not_started_again_with_a_new_server() -> None:
    noted = NoteDeath(replace(IN_FIRST, phase=Ended()))
    assert list(decide(IN_FIRST, RUNNING, None, TASK, NOW, None)) == [noted]


def test_an_agent_that_is_not_wanted_or_was_given_up_stays_down_with_a_new_server() -> None:
    assert list(decide(IN_FIRST, STOPPED, None, RULES, NOW, None)) == []
    assert list(decide(replace(IN_FIRST, phase=GivenUp()), RUNNING, None, RULES, NOW, None)) == []
