"""What Muster says to tmux about sessions and panes, and how it reads the answer. Pure, as `control`."""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from shared.errors import MusterError
from shared.tmux.control import Garbled, Line, line

NAME = re.compile(r"[A-Za-z0-9_-]+")
DIGITS = re.compile(r"[0-9]+")
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Only what tmux 3.3a knows with these modifiers: others it types as text (`S-Enter`) or drops (`C-5`).
KEY = re.compile(
    r"(?:[CMS]-){0,3}(?:F[1-9]|F1[0-2]|Up|Down|Left|Right|Home|End|PageUp|PageDown|PPage|NPage|DC|IC)"
    r"|(?:[CM]-){0,2}(?:[A-Za-z]|Space)|(?:M-)?(?:[0-9]|Enter|Escape|Tab|BTab|BSpace)"
)
CONTROL_CHARACTER = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class Pane:
    """A session's first pane, as tmux tells it. The first stays the agent's when a person splits the window.

    `dead_status` is what the program returned, or minus the signal that ended it; None while it runs and for
    the moment in which tmux has not learned it yet.
    """

    session: str
    session_id: str
    pane_id: str
    pid: int
    command: str
    dead: bool
    dead_status: int | None
    path: str
    title: str
    created: int
    activity: int
    agent: str | None
    spawn: str | None
    fleet: str | None
    piped: bool = False
    """Whether its output goes to a log."""
    in_mode: bool = False
    """Whether somebody scrolls in it: keys would go to tmux and not to the program."""


PANE_FORMAT = "\t".join(
    (
        *("#{session_id}", "#{pane_id}", "#{pane_pid}", "#{pane_dead}", "#{pane_dead_status}"),
        *("#{pane_dead_signal}", "#{session_created}", "#{window_activity}", "#{pane_pipe}", "#{pane_in_mode}"),
        "#{@muster_agent}",
        *("#{@muster_spawn}", "#{@muster_fleet}", "#{session_name}", "#{pane_current_command}"),
        *("#{pane_current_path}", "#{pane_title}"),
    )
)
# A program or directory may have a name with the line end or tab by which the list is read. This has tmux show `?`
# for those, in more than half as much time again. Session names and titles never hold any.
CAREFUL_FORMAT = PANE_FORMAT.replace("#{pane_current_", "#{s/[\x01-\x1f\x7f]/?/:pane_current_")
# As a shell would read it, for a value may have lines that look like another variable.
VARIABLES = line(("show-environment", "-gs"))
EXPORTED = re.compile(r'([^=\n]+)="(?:[^"\\]|\\.)*"; export \1;(?:\n|$)|unset [^\n]+;(?:\n|$)', re.DOTALL)
LIST = line(("list-panes", "-a", "-F", PANE_FORMAT))
LIST_CAREFULLY = line(("list-panes", "-a", "-F", CAREFUL_FORMAT))

# A session that nobody kills, for control clients to be attached to: one attached to an agent's session would be sent
# away with it and have to connect again, which tmux may not survive (see `calm`). It runs nothing.
KEEPER = "muster-keeper"
KEEP = line(
    ("new-session", "-d", "-E", "-s", KEEPER, "-x", "80", "-y", "24", "-c", "/", "--", "/usr/bin/env", "true"),
    ("set-option", "-t", f"={KEEPER}:", "destroy-unattached", "off"),
    ("set-option", "-w", "-t", f"={KEEPER}:", "remain-on-exit", "on"),
    (
        "set-option",
        "-qw",
        "-t",
        f"={KEEPER}:",
        "remain-on-exit-format",
        "Muster listens here. It ends with its agents.",
    ),
)
MOVE = line(("switch-client", "-E", "-t", f"={KEEPER}:"))
TIDY = line(
    ("if-shell", "-F", "#{S:#{@muster_spawn}}", "display-message -p needed", f"kill-session -t '={KEEPER}:'"), blocks=2
)


def first_panes(lines: Sequence[str]) -> list[Pane]:
    """Read what `list-panes -F` said in PANE_FORMAT; raises Garbled rather than leave a session out."""
    panes: dict[str, Pane] = {}
    for pane in map(_pane, lines):
        known = panes.get(pane.session_id)
        if known is None or int(pane.pane_id[1:]) < int(known.pane_id[1:]):
            panes[pane.session_id] = pane
    return list(panes.values())


def _pane(row: str) -> Pane:
    try:
        session_id, pane_id, pid, dead, status, signal, created, activity, *more, name, command, path, title = (
            row.split("\t")
        )
        piped, in_mode, agent, spawn, fleet = more
        return Pane(
            session=name,
            session_id=session_id,
            pane_id=pane_id,
            pid=int(pid),
            command=command,
            dead=dead == "1",
            # tmux may know how the program ended before it has read the last of what the program wrote.
            dead_status=_status(status, signal) if dead == "1" else None,
            path=path,
            title=title,
            created=int(created),
            activity=int(activity),
            piped=piped == "1",
            in_mode=bool(int(in_mode)),
            agent=agent or None,
            spawn=spawn or None,
            fleet=fleet or None,
        )
    except ValueError as error:
        raise Garbled(f"not a line about a pane: {row!r}") from error


def _status(status: str, signal: str) -> int | None:
    return int(status) if status else -int(signal) if signal else None


@lru_cache(maxsize=4096)
def capture(pane_id: str, *, styled: bool = False) -> Line:
    return line(("capture-pane", "-p", *(["-e"] if styled else []), "-t", _id("%", pane_id)))


def start(
    session: str,
    *,
    argv: Sequence[str],
    cwd: Path,
    env: Mapping[str, str],
    stamps: Mapping[str, str],
    width: int,
    height: int,
    unset: Sequence[str] = (),
    log: Path | None = None,
) -> Line:
    """Write the one line that creates and stamps a session. tmux runs it as a whole before anything else."""
    if _name("session", session) == KEEPER:
        raise ValueError(f"the session name {KEEPER!r} is Muster's own; choose another for the agent")
    _check_stamps(session, stamps)
    if not argv or "=" in argv[0] or not argv[0]:
        raise ValueError(f"session {session!r} can't run {list(argv)!r}: a program without '=' must come first")
    if not cwd.is_dir():
        # tmux would quietly start the program in the home directory.
        raise MusterError(f"session {session!r} can't start in {cwd}: it is not a directory; create it first")
    target = f"={session}:"
    recoverable = {f"MUSTER_STAMP_{name.upper()}": text for name, text in stamps.items()}
    variables = [word for name, text in {**env, **recoverable}.items() for word in ("-e", f"{name}={text}")]
    new = ("new-session", "-d", "-E", "-s", session, "-x", f"{width}", "-y", f"{height}")
    if found := [
        *(name for name in env if not VARIABLE.fullmatch(name)),
        *(name for name in unset if not name or "=" in name),
    ]:
        raise ValueError(f"session {session!r} can't have an environment variable named {found[0]!r}")
    # Without env, tmux would hand a program with no arguments to a shell, and a missing one would leave no word.
    # What is not to reach the program is unset here by name: values have no place in a command line.
    forgotten = [word for name in unset if name not in {**env, **recoverable} for word in ("-u", name)]
    program = ("--", "/usr/bin/env", *forgotten, "--", *argv)
    # In the same breath as the program starts, so that its first word is in the log.
    piped = [pipe_command(target, log)] if log else []
    return line(
        (*new, "-c", literal(str(cwd.absolute())), *variables, *program),
        *piped,
        *_marks(target, target, stamps),
    )


def stamp(pane: Pane, stamps: Mapping[str, str]) -> Line:
    """Write the line that makes a session of somebody else's one of ours."""
    _check_stamps(pane.session, stamps)
    return line(*_marks(f"{pane.session_id}:", pane.pane_id, stamps))


def _check_stamps(session: str, stamps: Mapping[str, str]) -> None:
    _name("spawn", stamps["spawn"])
    if found := [text for text in stamps.values() if not text or CONTROL_CHARACTER.search(text)]:
        raise ValueError(f"a stamp for session {session!r} is empty or holds control characters: {found[0]!r}")


def unstamp(session_id: str, rename: str | None = None) -> Line:
    """Write the line that takes our marks off a session, and gives it another name."""
    target = f"{_id('$', session_id)}:"
    return line(
        *([("rename-session", "-t", target, _name("session", rename))] if rename else []),
        *(("set-option", "-u", "-t", target, f"@muster_{name}") for name in ("agent", "spawn", "fleet")),
        ("set-option", "-uw", "-t", target, "remain-on-exit"),
        ("set-hook", "-uw", "-t", target, "pane-died"),
    )


def _marks(target: str, window: str, stamps: Mapping[str, str]) -> list[Sequence[str]]:
    return [
        *(("set-option", "-t", target, f"@muster_{name}", text) for name, text in stamps.items()),
        ("set-option", "-t", target, "destroy-unattached", "off"),
        ("set-option", "-w", "-t", window, "remain-on-exit", "on"),
        # The words for a dead pane would push the first line off the screen, which may say why it died.
        ("set-option", "-qw", "-t", window, "remain-on-exit-format", ""),
        # tmux pushes nothing when a kept pane dies, but a new window name it does; from a hook only when put off.
        ("set-hook", "-w", "-t", window, "pane-died", "run-shell -b -C 'rename-window -t #{hook_pane} dead'"),
        ("list-panes", "-s", "-t", target, "-F", CAREFUL_FORMAT),
    ]


def kill(session_id: str, spawn: str | None) -> Line:
    """Write the line that ends a session; with `spawn`, one that tells another stamp instead, in the same step."""
    _id("$", session_id)
    if spawn is None:
        return line(("kill-session", "-t", session_id))
    stamped = f"#{{==:#{{@muster_spawn}},{_name('spawn', spawn)}}}"
    end = f"kill-session -t '{session_id}'"
    tell = f"list-panes -s -t '{session_id}' -F 'spawn #{{@muster_spawn}}'"
    return line(("if-shell", "-F", "-t", f"{session_id}:", stamped, end, tell), blocks=2)


def pipe(pane_id: str, log: Path) -> Line:
    """Write the line that has a pane's output appended to a file, from now on and instead of to another."""
    return line(pipe_command(_id("%", pane_id), log))


def pipe_command(target: str, log: Path) -> Sequence[str]:
    # tmux has no other way than a shell here. Its text is ours and fixed but for one path of the fleet's own, quoted
    # for the shell, and then for tmux, which expands formats and dates in it.
    append = f"exec cat >> {shlex.quote(str(log.absolute()))}"
    return ("pipe-pane", "-O", "-t", target, literal(append).replace("%", "%%"))


def paste(pane_id: str, spawn: str, text: str) -> list[Line]:
    """Write the lines that put text into a pane as one paste, byte for byte, with the marks of a paste if the program
    has asked for them. Nothing is put in if the pane is of another spawn or if somebody scrolls in it."""
    buffer = f"muster-{_name('spawn', spawn)}"
    put = f"paste-buffer -p -r -d -b {buffer} -t {_id('%', pane_id)}"
    return [
        line(("set-buffer", "-b", buffer, "--", text)),
        _if_ours(pane_id, spawn, put),
        line(("delete-buffer", "-b", buffer)),  # where it was refused; else this fails, and nothing is lost
    ]


def press(pane_id: str, spawn: str, keys: Sequence[str]) -> Line:
    """Write the line that presses keys, under the same conditions."""
    if found := [key for key in keys if not KEY.fullmatch(key)]:
        raise ValueError(f"{found[0]!r} is not the name of a key; names are as in tmux: Enter, Escape, Up, C-c, F1, a")
    return _if_ours(pane_id, spawn, f"send-keys -t {_id('%', pane_id)} {' '.join(keys)}")


def _if_ours(pane_id: str, spawn: str, command: str) -> Line:
    """A condition that tmux checks in the same step. What it says instead of acting is the reason."""
    ours = f"#{{==:#{{@muster_spawn}},{_name('spawn', spawn)}}}"
    # tmux 3.3a dies of a paste into a dead pane. It drops what is typed where input is off.
    free = "#{==:#{pane_in_mode}#{pane_dead}#{pane_input_off},000}"
    reason = "refused #{pane_id} #{pane_in_mode} #{pane_dead} #{pane_input_off} #{@muster_spawn}"
    refuse = f"display-message -p -t {_id('%', pane_id)} '{reason}'"
    return line(("if-shell", "-F", "-t", pane_id, f"#{{&&:{ours},{free}}}", command, refuse), blocks=2)


def literal(text: str) -> str:
    """Write text so that it survives where tmux expands formats."""
    # tmux leaves `##[` alone, for styles; a bracket written as a format of its own keeps the two apart.
    return text.replace("#", "##").replace("##[", "###{l:[}")


def _name(what: str, text: str) -> str:
    if not NAME.fullmatch(text):
        raise ValueError(f"a {what} is made of letters, digits, '_' and '-', not {text!r}")
    return text


def _id(sign: str, text: str) -> str:
    if text[:1] != sign or not DIGITS.fullmatch(text[1:]):
        raise ValueError(f"a tmux id of this kind is '{sign}' and a number, not {text!r}")
    return text
