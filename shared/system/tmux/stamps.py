"""Command lines that set, compare and remove stamps; tmux compares and acts in one step. Pure.

A stamp is a set of user options of a session, or of one pane of it. A pane also shows the options of its session, so a
stamped pane has its own id in `@muster_pane`. Options of a pane move with it when people join, break and swap panes. A
stamped session has the id of the agent's own pane in `@muster_own`: its other panes are people's, or have own stamps.
"""

import re
from collections.abc import Mapping, Sequence

from shared.system.tmux.control import PANE, CommandLine, exact, is_pane, line, name
from shared.system.tmux.rows import CAREFUL_FORMAT, Pane

CONTROL_CHARACTER = re.compile(r"[\x00-\x1f\x7f]")
TAKEN = "taken "
SPAWN = "spawn "
# A pane without stamps of its own, in a session whose stamps are for another pane.
BESIDE = "#{&&:#{==:#{@muster_pane},},#{&&:#{!=:#{@muster_own},},#{!=:#{@muster_own},#{pane_id}}}}"

Commands = Sequence[Sequence[str]]


def check(session: str, stamps: Mapping[str, str]) -> None:
    """Raise ValueError if the stamps would break the list that they are read from."""
    name("spawn", stamps["spawn"])
    if found := [text for text in stamps.values() if not text or CONTROL_CHARACTER.search(text)]:
        raise ValueError(f"a stamp for session {session!r} is empty or holds control characters: {found[0]!r}")


def stamp(pane: Pane, stamps: Mapping[str, str], *, pane_only: bool) -> CommandLine:
    """Stamp a pane or its session if it has no stamps; else the answer names the fleet that it belongs to."""
    check(pane.session, stamps)
    target = pane.pane_id if pane_only else f"{pane.session_id}:"
    # Asked again after a lost answer, it is ours already.
    ours = f"#{{==:#{{@muster_spawn}},{stamps['spawn']}}}"
    fleets = "#{@muster_fleet}" if pane_only else "#{W:#{P:#{@muster_fleet}}}"
    free = f"#{{==:{fleets},}}"
    if pane_only:
        marks = _marks_of_pane(pane.pane_id, stamps)
        free = f"#{{||:{free},{BESIDE}}}"
    else:
        marks = marks_of_session(target, pane.pane_id, stamps)
    tell = _list(target, f"{TAKEN}#{{@muster_fleet}}")
    return _if(target, f"#{{||:{free},{ours}}}", marks, tell)


def unstamp(target: str, spawn: str | None, *, rename: str | None = None, left: str | None = None) -> CommandLine:
    """Remove the stamps of a session or pane, rename it, and store the fleet that left it."""
    return _if_spawn(target, spawn, _unstamping(target, rename, left))


def _unstamping(target: str, rename: str | None, left: str | None = None) -> Commands:
    of_pane = is_pane(target)
    where = ("-p", "-t", target) if of_pane else ("-t", f"{target}:")
    names = ("agent", "spawn", "fleet", "pane" if of_pane else "own")
    window = () if of_pane else ("-uw", "-t", f"{target}:")
    return [
        *([("rename-session", *where, name("session", rename))] if rename and not of_pane else []),
        *(("set-option", "-u", *where, f"@muster_{each}") for each in names),
        *([("set-option", *where, "@muster_left", left)] if left else []),
        *([("set-option", *window, "remain-on-exit"), ("set-hook", *window, "pane-died")] if window else []),
    ]


def kill(target: str, spawn: str | None) -> CommandLine:
    """End a session or pane. With `spawn`, the answer names the spawn stamps instead, if that one is not among them or
    another agent has a pane of the session."""
    alone = "" if is_pane(target) else "#{==:#{W:#{P:#{@muster_pane}}},}"
    return _if_spawn(target, spawn, [("kill-pane" if is_pane(target) else "kill-session", "-t", target)], alone)


def leave(session_id: str, spawn: str, pane_id: str, *, rename: str | None) -> CommandLine:
    """End one pane of a session and remove the session's stamps."""
    return _if_spawn(session_id, spawn, [*_unstamping(session_id, rename), ("kill-pane", "-t", exact(PANE, pane_id))])


def marks_of_session(target: str, window: str, stamps: Mapping[str, str]) -> list[Sequence[str]]:
    return [
        *(("set-option", "-t", target, f"@muster_{each}", text) for each, text in stamps.items()),
        ("set-option", "-F", "-t", target, "@muster_own", window if window.startswith(PANE) else "#{pane_id}"),
        ("set-option", "-u", "-t", target, "@muster_left"),
        ("set-option", "-t", target, "destroy-unattached", "off"),
        ("set-option", "-w", "-t", window, "remain-on-exit", "on"),
        # The message in a dead pane would push the first line off the screen, which may say why it died.
        ("set-option", "-qw", "-t", window, "remain-on-exit-format", ""),
        # tmux pushes nothing when a pane that stays dies, so a hook renames the window. `-b`: a rename in the hook
        # itself would not be pushed either.
        ("set-hook", "-w", "-t", window, "pane-died", "run-shell -b -C 'rename-window -t #{hook_pane} dead'"),
        _list(target, CAREFUL_FORMAT),
    ]


def _marks_of_pane(pane_id: str, stamps: Mapping[str, str]) -> list[Sequence[str]]:
    """Only the stamps: the session's other options belong to the person who made it."""
    marks = {**stamps, "pane": pane_id}
    return [
        *(("set-option", "-p", "-t", pane_id, f"@muster_{each}", text) for each, text in marks.items()),
        ("set-option", "-pu", "-t", pane_id, "@muster_left"),
        _list(pane_id, CAREFUL_FORMAT),
    ]


def _list(target: str, row_format: str) -> Sequence[str]:
    """List the panes of a session, or one pane. Unlike other commands, it fails if the target is gone."""
    if target.startswith("%"):
        return ("list-panes", "-t", target, "-f", f"#{{==:#{{pane_id}},{target}}}", "-F", row_format)
    return ("list-panes", "-s", "-t", target, "-F", row_format)


def _if_spawn(target: str, spawn: str | None, commands: Commands, also: str = "") -> CommandLine:
    if spawn is None:
        return line(*commands)
    name("spawn", spawn)
    if is_pane(target):
        where, stamped = target, f"#{{==:#{{@muster_spawn}},{spawn}}}"
    else:
        # One pane with the stamp is enough: people may have moved another agent's pane into the session.
        where, stamped = f"{target}:", f"#{{m:*<{spawn}>*,#{{W:#{{P:<#{{@muster_spawn}}>}}}}}}"
    condition = f"#{{&&:{stamped},{also}}}" if also else stamped
    return _if(where, condition, commands, _list(where, f"{SPAWN}#{{@muster_spawn}}"))


def _if(target: str, condition: str, commands: Commands, otherwise: Sequence[str]) -> CommandLine:
    """A condition that tmux checks in the same step as it acts. The last block is the answer."""
    # Every command has its own block, so both branches need the same number of commands.
    padding = [("display-message", "-p", "")] * (len(commands) - 1)
    branches = (_text(commands), _text([*padding, otherwise]))
    return line(("if-shell", "-F", "-t", target, condition, *branches), blocks=1 + len(commands))


def _text(commands: Commands) -> str:
    return line(*commands).text.decode().rstrip("\n")
