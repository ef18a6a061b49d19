"""Which pane is taken over, and what is refused: a sentence for each."""

from pathlib import Path

import pytest

from services.spawner.commands.adoption import chosen_pane, must_be_free
from services.spawner.commands.replies import Refusal
from services.spawner.sessions.memory import AgentMemory, Origin
from shared.contract.commands import Adopt
from shared.system.tmux import Pane
from tests.unit.spawner.samples import ended, pane, remembered, view

SHELL, SLEEP, CAT = pane("%1", command="bash"), pane("%2", command="sleep"), pane("%3", command="cat")
OURS = {"agent": "other", "spawn": "s1", "fleet": "f"}


def runs(seen: Pane) -> str | None:
    return {"sleep": "sleeper", "cat": "cat"}.get(seen.command)


def adopt(
    pane_id: str | None = None, *, agent: str = "helper", backend: str | None = None, found: bool = False
) -> Adopt:
    return Adopt(agent=agent, session="theirs", pane=pane_id, backend=backend, found=found)


def chosen(directory: Path, command: Adopt, *others: Pane, panes: dict[str, Pane] | None = None) -> str:
    return chosen_pane(view(directory, others=others, panes=panes), command, runs).pane_id


def test_a_session_is_its_first_pane(tmp_path: Path) -> None:
    assert chosen(tmp_path, adopt(), SHELL) == "%1", "whatever runs there: a backend may be named"
    assert chosen(tmp_path, adopt(), SLEEP, CAT) == "%2"
    assert chosen(tmp_path, adopt(), SHELL, pane("%2", command="vim")) == "%1"
    assert chosen(tmp_path, adopt(), SHELL, pane("%2", command="sleep", dead=True)) == "%1"


def test_a_named_pane_is_meant(tmp_path: Path) -> None:
    for each in (SHELL, SLEEP, CAT):
        assert chosen(tmp_path, adopt(each.pane_id), SHELL, SLEEP, CAT) == each.pane_id


def test_an_agent_beside_the_first_pane_has_to_be_named(tmp_path: Path) -> None:
    with pytest.raises(Refusal, match=r"in the first pane of the session 'theirs', but in %2 \(sleeper\); name the"):
        chosen(tmp_path, adopt(), SHELL, SLEEP)
    with pytest.raises(Refusal, match=r"but in %2 \(sleeper\) and %3 \(cat\);"):
        chosen(tmp_path, adopt(), SHELL, SLEEP, CAT)


def test_where_a_backend_is_named_only_its_agents_count(tmp_path: Path) -> None:
    with pytest.raises(Refusal, match=r"but in %3 \(cat\);"):
        chosen(tmp_path, adopt(backend="cat"), SLEEP, CAT)
    assert chosen(tmp_path, adopt(backend="demo"), SHELL, SLEEP, CAT) == "%1"
    assert chosen(tmp_path, adopt(agent="builder"), SHELL, SLEEP, CAT) == "%1", "its backend is declared"


IN_PANE = {"other": pane("%2", pane_only=True, **OURS)}
WHOLE = {"other": pane("%2", **OURS)}


def test_what_is_an_agents_is_not_taken(tmp_path: Path) -> None:
    with pytest.raises(Refusal, match="the session 'theirs' is the agent other already"):
        chosen(tmp_path, adopt(), panes=WHOLE)
    with pytest.raises(Refusal, match="tmux has no pane %5; the session 'theirs' has: %2"):
        chosen(tmp_path, adopt("%5"), panes=WHOLE)
    assert chosen(tmp_path, adopt("%3"), CAT, panes=WHOLE) == "%3", "what people start beside it is another's"
    with pytest.raises(Refusal, match="the pane %2 is the agent other already"):
        chosen(tmp_path, adopt("%2"), SHELL, panes=IN_PANE)
    with pytest.raises(
        Refusal, match="the pane %2 of the session 'theirs' is the agent other already; name the `pane`"
    ):
        chosen(tmp_path, adopt(), SHELL, panes=IN_PANE)
    assert chosen(tmp_path, adopt("%3"), SHELL, CAT, panes=IN_PANE) == "%3"


def test_what_is_not_there_is_not_taken(tmp_path: Path) -> None:
    with pytest.raises(Refusal, match="tmux has no session 'theirs'"):
        chosen(tmp_path, adopt())
    with pytest.raises(Refusal, match="tmux has no pane %9; the session 'theirs' has: %1, %3"):
        chosen(tmp_path, adopt("%9"), SHELL, CAT)
    with pytest.raises(Refusal, match="tmux has no pane %9; nor a session 'theirs'"):
        chosen(tmp_path, adopt("%9"), pane(session="another"))
    with pytest.raises(Refusal, match="the pane %1 is in the session 'another' and not in 'theirs'"):
        chosen(tmp_path, adopt("%1"), pane(session="another"))


def test_what_belongs_to_another_fleet_is_not_taken(tmp_path: Path) -> None:
    with pytest.raises(Refusal, match="the session 'theirs' belongs to another fleet"):
        chosen(tmp_path, adopt(), pane(fleet="away"))
    with pytest.raises(Refusal, match="the pane %1 of the session 'theirs' belongs to another fleet"):
        chosen(tmp_path, adopt("%1"), pane(fleet="away", pane_only=True))


@pytest.mark.parametrize("named", [None, "%1"])
def test_what_was_to_be_forgotten_is_taken_only_for_a_person(tmp_path: Path, named: str | None) -> None:
    left = pane(left="home")
    assert chosen(tmp_path, adopt(named), left) == "%1"
    with pytest.raises(Refusal, match="was to be forgotten: only a person has it adopted again"):
        chosen(tmp_path, adopt(named, found=True), left)


def test_a_window_in_two_sessions_is_meant_in_the_one_that_was_named(tmp_path: Path) -> None:
    assert chosen(tmp_path, adopt("%1"), pane(session="another"), pane()) == "%1"


@pytest.mark.parametrize(
    ("agent", "known"),
    [("builder", AgentMemory()), ("helper", remembered("s", origin=Origin.ADOPTED))],
    ids=["declared", "running"],
)
def test_what_is_found_takes_no_name_that_is_in_use(tmp_path: Path, agent: str, known: AgentMemory) -> None:
    now = view(tmp_path, known={agent: known})
    must_be_free(now, adopt(agent=agent))
    with pytest.raises(Refusal, match=f"the name '{agent}' is in use"):
        must_be_free(now, adopt(agent=agent, found=True))


def test_a_name_of_what_was_adopted_before_and_ended_is_free(tmp_path: Path) -> None:
    adopted = ended("s", origin=Origin.ADOPTED)
    for known in ({"helper": adopted}, {"helper": ended("s", origin=Origin.FOUND)}, {}):
        must_be_free(view(tmp_path, known=known), adopt(found=True))
    with pytest.raises(Refusal, match="in use"):
        must_be_free(view(tmp_path, known={"helper": remembered("s", origin=Origin.ADOPTED)}), adopt(found=True))


def test_a_declared_name_that_a_person_gave_to_another_is_not_free(tmp_path: Path) -> None:
    itself = Adopt(agent="builder", session="builder", found=True)
    with pytest.raises(Refusal, match="in use"):
        must_be_free(view(tmp_path, known={"builder": ended("s", origin=Origin.ADOPTED)}), itself)


def test_the_declared_agent_itself_may_be_found(tmp_path: Path) -> None:
    """As where a person started it by hand, in the session that it would have."""
    for backend in (None, "demo"):
        itself = Adopt(agent="builder", session="builder", backend=backend, found=True)
        must_be_free(view(tmp_path), itself)
        with pytest.raises(Refusal, match="in use"):
            must_be_free(view(tmp_path, known={"builder": remembered("s")}), itself)
    with pytest.raises(Refusal, match="in use"):
        must_be_free(view(tmp_path), Adopt(agent="builder", session="builder", backend="cat", found=True))
