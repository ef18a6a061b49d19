"""The marks by which Muster knows what is an agent's: put on, compared and taken off by tmux in one step. Pure.

They are user options of a session, or of one pane of it: then `@muster_pane` holds the pane's id, since a pane also
shows what its session has. Options of a pane go where it goes, when people join, break and swap panes.
"""

import re
from collections.abc import Mapping, Sequence

from shared.tmux.control import Line, line
from shared.tmux.rows import CAREFUL_FORMAT, Pane
from shared.tmux.targets import is_pane, name

CONTROL_CHARACTER = re.compile(r"[\x00-\x1f\x7f]")
TAKEN = "taken "
SPAWN = "spawn "

Commands = Sequence[Sequence[str]]


def check(session: str, stamps: Mapping[str, str]) -> None:
    """ValueError if the stamps would break the list that they are read from."""
    name("spawn", stamps["spawn"])
    if found := [text for text in stamps.values() if not text or CONTROL_CHARACTER.search(text)]:
        raise ValueError(f"a stamp for session {session!r} is empty or holds control characters: {found[0]!r}")


def stamp(pane: Pane, stamps: Mapping[str, str], *, pane_only: bool) -> Line:
    """Write the line that makes a pane, or its session, ours if it is nobody's; else it is answered whose it is."""
    check(pane.session, stamps)
    target = pane.pane_id if pane_only else f"{pane.session_id}:"
    # Where the answer was lost, the same is asked again.
    ours = f"#{{==:#{{@muster_spawn}},{stamps['spawn']}}}"
    fleets = "#{@muster_fleet}" if pane_only else "#{W:#{P:#{@muster_fleet}}}"
    marks = _marks_of_pane(pane.pane_id, stamps) if pane_only else marks_of_session(target, pane.pane_id, stamps)
    tell = _list(target, f"{TAKEN}#{{@muster_fleet}}")
    return _if(target, f"#{{||:#{{==:{fleets},}},{ours}}}", marks, tell)


def unstamp(target: str, spawn: str | None, *, rename: str | None = None, left: str | None = None) -> Line:
    """Write the line that takes our marks off a session or a pane, gives it another name, and notes who left it."""
    of_pane = is_pane(target)
    where = ("-p", "-t", target) if of_pane else ("-t", f"{target}:")
    names = ("agent", "spawn", "fleet", *(["pane"] if of_pane else []))
    window = () if of_pane else ("-uw", "-t", f"{target}:")
    commands: list[Sequence[str]] = [
        *([("rename-session", *where, name("session", rename))] if rename and not of_pane else []),
        *(("set-option", "-u", *where, f"@muster_{each}") for each in names),
        *([("set-option", *where, "@muster_left", left)] if left else []),
        *([("set-option", *window, "remain-on-exit"), ("set-hook", *window, "pane-died")] if window else []),
    ]
    return _if_spawn(target, spawn, commands)


def kill(target: str, spawn: str | None) -> Line:
    """Write the line that ends a session or a pane; with `spawn`, one that tells another stamp instead."""
    return _if_spawn(target, spawn, [("kill-pane" if is_pane(target) else "kill-session", "-t", target)])


def marks_of_session(target: str, window: str, stamps: Mapping[str, str]) -> list[Sequence[str]]:
    return [
        *(("set-option", "-t", target, f"@muster_{each}", text) for each, text in stamps.items()),
        ("set-option", "-u", "-t", target, "@muster_left"),
        ("set-option", "-t", target, "destroy-unattached", "off"),
        ("set-option", "-w", "-t", window, "remain-on-exit", "on"),
        # The words for a dead pane would push the first line off the screen, which may say why it died.
        ("set-option", "-qw", "-t", window, "remain-on-exit-format", ""),
        # tmux pushes nothing when a kept pane dies, but a new window name it does; from a hook only when put off.
        ("set-hook", "-w", "-t", window, "pane-died", "run-shell -b -C 'rename-window -t #{hook_pane} dead'"),
        _list(target, CAREFUL_FORMAT),
    ]


def _marks_of_pane(pane_id: str, stamps: Mapping[str, str]) -> list[Sequence[str]]:
    """No more than the marks: how the session behaves is up to who made it."""
    marks = {**stamps, "pane": pane_id}
    return [
        *(("set-option", "-p", "-t", pane_id, f"@muster_{each}", text) for each, text in marks.items()),
        ("set-option", "-pu", "-t", pane_id, "@muster_left"),
        _list(pane_id, CAREFUL_FORMAT),
    ]


def _list(target: str, words: str) -> Sequence[str]:
    """The question for all panes of a session, or for one pane. Unlike others, it fails where the target is gone."""
    if target.startswith("%"):
        return ("list-panes", "-t", target, "-f", f"#{{==:#{{pane_id}},{target}}}", "-F", words)
    return ("list-panes", "-s", "-t", target, "-F", words)


def _if_spawn(target: str, spawn: str | None, commands: Commands) -> Line:
    if spawn is None:
        return line(*commands)
    name("spawn", spawn)
    if is_pane(target):
        where, stamped = target, f"#{{==:#{{@muster_spawn}},{spawn}}}"
    else:
        # One pane of it is enough: people may have moved another agent's there, which shows its own stamp.
        where, stamped = f"{target}:", f"#{{m:*<{spawn}>*,#{{W:#{{P:<#{{@muster_spawn}}>}}}}}}"
    return _if(where, stamped, commands, _list(where, f"{SPAWN}#{{@muster_spawn}}"))


def _if(target: str, condition: str, commands: Commands, otherwise: Sequence[str]) -> Line:
    """A condition that tmux checks in the same step as it acts. The last answer is the one that counts."""
    # Every command is answered with a block of its own, so both ways must be equally long.
    waits = [("display-message", "-p", "")] * (len(commands) - 1)
    ways = (_text(commands), _text([*waits, otherwise]))
    return line(("if-shell", "-F", "-t", target, condition, *ways), blocks=1 + len(commands))


def _text(commands: Commands) -> str:
    return line(*commands).text.decode().rstrip("\n")
