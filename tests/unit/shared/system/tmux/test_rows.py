"""What tmux tells of its panes: every row is read, and of every session comes what somebody may want to see."""

import pytest

from shared.system.tmux import Pane
from shared.system.tmux.control import Garbled
from shared.system.tmux.rows import panes_in

ROW = "$3\t%5\t77\t0\t\t\t1700\t1800\t0\t0\tbuilder\ts1\thome\t\t\t%5\tbuilder\tpython\t/work\t✳ thinking"


def row(session: str, pane: str, stamps: str = "", *, pane_only: bool = False, left: str = "", own: str = "") -> str:
    agent, spawn, fleet = (f"{stamps}-agent", f"{stamps}-spawn", "home") if stamps else ("", "", "")
    only = pane if pane_only else ""
    facts = f"{session}\t{pane}\t77\t0\t\t\t1700\t1800\t0\t0"
    return f"{facts}\t{agent}\t{spawn}\t{fleet}\t{only}\t{left}\t{own}\tname-{session}\tsh\t/\ttitle"


def seen(*rows: str) -> list[tuple[str, str]]:
    return [(pane.session_id, pane.pane_id) for pane in panes_in(rows)]


# --- one row ---


def test_a_row_is_read() -> None:
    assert panes_in([ROW]) == [
        Pane(
            session="builder",
            session_id="$3",
            pane_id="%5",
            pid=77,
            command="python",
            dead=False,
            dead_status=None,
            path="/work",
            title="✳ thinking",
            created=1700,
            activity=1800,
            agent="builder",
            spawn="s1",
            fleet="home",
            own="%5",
        )
    ]


def test_a_log_and_a_mode_are_read() -> None:
    rows = [ROW, ROW.replace("1800\t0\t0", "1800\t1\t0"), ROW.replace("1800\t0\t0", "1800\t0\t2")]
    panes = [pane for each in rows for pane in panes_in([each])]
    assert [(pane.piped, pane.in_mode) for pane in panes] == [(False, False), (True, False), (False, True)]


@pytest.mark.parametrize(("said", "status"), [("1\t7\t", 7), ("1\t0\t", 0), ("1\t\t9", -9), ("1\t\t", None)])
def test_how_a_program_ended(said: str, status: int | None) -> None:
    (pane,) = panes_in([ROW.replace("77\t0\t\t", f"77\t{said}")])
    assert (pane.dead, pane.dead_status) == (True, status)


def test_a_program_whose_last_words_are_still_unread_is_not_dead() -> None:
    (pane,) = panes_in([ROW.replace("77\t0\t\t", "77\t0\t7\t")])
    assert (pane.dead, pane.dead_status) == (False, None)


def test_a_session_without_stamps_has_none() -> None:
    (pane,) = panes_in([row("$3", "%5")])
    assert (pane.agent, pane.spawn, pane.fleet, pane.left, pane.is_stamped) == (None, None, None, None, False)


@pytest.mark.parametrize("spoilt", ["\ts1\thome", "builder\t\thome", "The Builder\ts1\thome", "builder\ts 1\thome"])
def test_a_pane_belongs_to_the_fleet_whose_stamps_it_has_unspoilt(spoilt: str) -> None:
    ours, broken = (panes_in([each])[0] for each in (ROW, ROW.replace("builder\ts1\thome", spoilt)))
    assert (ours.belongs_to("home"), ours.belongs_to("abroad"), broken.belongs_to("home")) == (True, False, False)


def test_a_stamp_is_the_sessions_or_the_panes() -> None:
    whole, alone = panes_in([row("$3", "%5", "a"), row("$4", "%6", "b", pane_only=True)])
    assert (whole.pane_only, whole.target) == (False, "$3")
    assert (alone.pane_only, alone.target) == (True, "%6")


def test_the_mark_of_another_pane_is_no_mark() -> None:
    (pane,) = panes_in([row("$3", "%5", "a", pane_only=True).replace("\t%5\t\t\tname", "\t%4\t\t\tname")])
    assert not pane.pane_only


def test_a_left_session_names_its_fleet_until_it_is_stamped_again() -> None:
    left, again = panes_in([row("$3", "%5", left="home"), row("$4", "%6", "b", left="home")])
    assert (left.left, again.left) == ("home", None)


GARBLED = ["", "no tabs", ROW + "\tmore", ROW.replace("77", "x"), ROW.replace("\t/work", ""), ROW.replace("%5", "%x")]


@pytest.mark.parametrize("garbled", GARBLED)
def test_a_row_that_can_not_be_read_is_not_left_out(garbled: str) -> None:
    with pytest.raises(Garbled):
        panes_in([ROW, garbled])


# --- many ---


def agents(*rows: str) -> list[tuple[str, str | None]]:
    return [(pane.pane_id, pane.agent) for pane in panes_in(rows)]


def test_the_agents_own_pane_stands_for_its_session_though_an_older_one_was_moved_there() -> None:
    rows = [row("$3", pane, "a", own="%9") for pane in ("%10", "%2", "%9")]
    assert agents(*rows) == [("%9", "a-agent"), ("%2", None), ("%10", None)]


def test_panes_beside_an_agents_own_have_no_stamps() -> None:
    own, beside = panes_in([row("$3", "%1", "a", own="%1"), row("$3", "%2", "a", own="%1", left="home")])
    assert (own.agent, own.target, own.left) == ("a-agent", "$3", None)
    assert (beside.is_stamped, beside.own, beside.left) == (False, None, "home")


def test_another_agent_beside_it_is_seen_as_one() -> None:
    rows = [row("$3", "%1", "a", own="%1"), row("$3", "%2", "b", own="%1", pane_only=True)]
    assert agents(*rows) == [("%1", "a-agent"), ("%2", "b-agent")]


def test_where_the_agents_own_pane_is_gone_another_stands_for_it() -> None:
    rows = [row("$3", "%4", "a", own="%1"), row("$3", "%2", "a", own="%1"), row("$4", "%1")]
    assert agents(*rows) == [("%2", "a-agent"), ("%4", None), ("%1", None)]


def test_the_first_pane_stands_for_a_session_that_an_earlier_version_stamped() -> None:
    rows = [row("$3", pane, "a") for pane in ("%10", "%9", "%11")]
    assert seen(*rows, row("$4", "%5", "b")) == [("$3", "%9"), ("$4", "%5")]


def test_every_pane_of_an_unstamped_session_is_listed_in_order() -> None:
    assert seen(row("$3", "%10"), row("$3", "%9"), row("$4", "%5")) == [("$3", "%9"), ("$3", "%10"), ("$4", "%5")]


def test_a_pane_with_stamps_of_its_own_is_seen_among_others() -> None:
    rows = [row("$3", "%1"), row("$3", "%2", "a", pane_only=True), row("$3", "%3", "b", pane_only=True)]
    assert seen(*rows) == [("$3", "%1"), ("$3", "%2"), ("$3", "%3")]


def test_a_pane_that_was_moved_into_an_agents_session_is_seen_beside_it() -> None:
    rows = [row("$3", "%1", "b", pane_only=True), row("$3", "%4", "a"), row("$3", "%5", "a")]
    assert [(pane.agent, pane.pane_id) for pane in panes_in(rows)] == [("a-agent", "%4"), ("b-agent", "%1")]


def test_a_window_in_two_sessions_shows_an_agent_once() -> None:
    """People watch an agent through a second session of the same windows."""
    watched = [row("$7", "%1"), row("$7", "%2"), row("$3", "%1", "a"), row("$3", "%2", "a")]
    assert seen(*watched) == [("$7", "%2"), ("$3", "%1")]
    watched = [row("$7", "%1"), row("$7", "%2"), row("$3", "%1", "a", own="%1"), row("$3", "%2", "a", own="%1")]
    assert seen(*watched) == [("$7", "%2"), ("$3", "%1")]
    alone = [row("$7", "%1", "a", pane_only=True), row("$3", "%1", "a", pane_only=True)]
    assert seen(*alone) == [("$3", "%1")]
    assert seen(*reversed(alone)) == [("$3", "%1")]
