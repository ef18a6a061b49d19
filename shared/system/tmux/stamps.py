"""The marks by which Muster knows what is an agent's: put on, compared and taken off by tmux in one step. Pure.

They are user options of a session, or of one pane of it: then `@muster_pane` holds the pane's id, since a pane also
shows what its session has. Options of a pane go where it goes, when people join, break and swap panes. Of a session
`@muster_own` holds the id of the agent's own pane: the others in it are people's, or have marks of their own.
"""

import re
from collections.abc import Mapping, Sequence

from shared.system.tmux.control import CommandLine, line
from shared.system.tmux.rows import CAREFUL_FORMAT, Pane
from shared.system.tmux.targets import PANE, exact, is_pane, name

CONTROL_CHARACTER = re.compile(r"[\x00-\x1f\x7f]")
TAKEN = "taken "
SPAWN = "spawn "
# A pane without marks of its own, in a session that is marked for another of its panes.
BESIDE = "#{&&:#{==:#{@muster_pane},},#{&&:#{!=:#{@muster_own},},#{!=:#{@muster_own},#{pane_id}}}}"

Commands = Sequence[Sequence[str]]


def check(session: str, stamps: Mapping[str, str]) -> None:
    """ValueError if the stamps would break the list that they are read from."""
    name("spawn", stamps["spawn"])
    if found := [text for text in stamps.values() if not text or CONTROL_CHARACTER.search(text)]:
        raise ValueError(f"a stamp for session {session!r} is empty or holds control characters: {found[0]!r}")


def stamp(pane: Pane, stamps: Mapping[str, str], *, pane_only: bool) -> CommandLine:
    """Write the line that makes a pane, or its session, ours if it is nobody's; else it is answered whose it is."""
    check(pane.session, stamps)
    target = pane.pane_id if pane_only else f"{pane.session_id}:"
    # Where the answer was lost, the same is asked again.
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


def own(session_id: str, spawn: str, pane_id: str) -> CommandLine:
    """Write the line that says which pane of a session is the agent's, where an earlier version did not."""
    target = f"{session_id}:"
    commands = [("set-option", "-t", target, "@muster_own", pane_id), _list(target, CAREFUL_FORMAT)]
    return _if_spawn(session_id, spawn, commands)


def unstamp(target: str, spawn: str | None, *, rename: str | None = None, left: str | None = None) -> CommandLine:
    """Write the line that takes our marks off a session or a pane, gives it another name, and notes who left it."""
    return _if_spawn(target, spawn, _letting_go(target, rename, left))


def _letting_go(target: str, rename: str | None, left: str | None = None) -> Commands:
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
    """Write the line that ends a session or a pane; with `spawn`, one that tells what stamps there are instead, if that
    is not among them, or if another agent is in a pane of the session."""
    alone = "" if is_pane(target) else "#{==:#{W:#{P:#{@muster_pane}}},}"
    return _if_spawn(target, spawn, [("kill-pane" if is_pane(target) else "kill-session", "-t", target)], alone)


def leave(session_id: str, spawn: str, pane_id: str, *, rename: str | None) -> CommandLine:
    """Write the line that ends one pane of a session and lets go of the rest."""
    return _if_spawn(session_id, spawn, [*_letting_go(session_id, rename), ("kill-pane", "-t", exact(PANE, pane_id))])


def marks_of_session(target: str, window: str, stamps: Mapping[str, str]) -> list[Sequence[str]]:
    return [
        *(("set-option", "-t", target, f"@muster_{each}", text) for each, text in stamps.items()),
        ("set-option", "-F", "-t", target, "@muster_own", window if window.startswith(PANE) else "#{pane_id}"),
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


def _if_spawn(target: str, spawn: str | None, commands: Commands, also: str = "") -> CommandLine:
    if spawn is None:
        return line(*commands)
    name("spawn", spawn)
    if is_pane(target):
        where, stamped = target, f"#{{==:#{{@muster_spawn}},{spawn}}}"
    else:
        # One pane of it is enough: people may have moved another agent's there, which shows its own stamp.
        where, stamped = f"{target}:", f"#{{m:*<{spawn}>*,#{{W:#{{P:<#{{@muster_spawn}}>}}}}}}"
    condition = f"#{{&&:{stamped},{also}}}" if also else stamped
    return _if(where, condition, commands, _list(where, f"{SPAWN}#{{@muster_spawn}}"))


def _if(target: str, condition: str, commands: Commands, otherwise: Sequence[str]) -> CommandLine:
    """A condition that tmux checks in the same step as it acts. The last answer is the one that counts."""
    # Every command is answered with a block of its own, so both ways must be equally long.
    waits = [("display-message", "-p", "")] * (len(commands) - 1)
    ways = (_text(commands), _text([*waits, otherwise]))
    return line(("if-shell", "-F", "-t", target, condition, *ways), blocks=1 + len(commands))


def _text(commands: Commands) -> str:
    return line(*commands).text.decode().rstrip("\n")
