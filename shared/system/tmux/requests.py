"""Command lines for tmux: start a session, capture a pane, type into it, log it. Pure."""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from shared.system.tmux import stamps as session_stamps
from shared.system.tmux.control import PANE, CommandLine, exact, line, name
from shared.system.tmux.log_pipe import LogPipe

VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Only what tmux 3.3a knows with these modifiers: it types others as text (`S-Enter`) or drops them (`C-5`).
KEY = re.compile(
    r"(?:[CMS]-){0,3}(?:F[1-9]|F1[0-2]|Up|Down|Left|Right|Home|End|PageUp|PageDown|PPage|NPage|DC|IC)"
    r"|(?:[CM]-){0,2}(?:[A-Za-z]|Space)|(?:M-)?(?:[0-9]|Enter|Escape|Tab|BTab|BSpace)"
)

# In shell syntax, since a value may have lines that look like another variable.
VARIABLES = line(("show-environment", "-gs"))
EXPORTED = re.compile(r'([^=\n]+)="(?:[^"\\]|\\.)*"; export \1;(?:\n|$)|unset [^\n]+;(?:\n|$)', re.DOTALL)

# The session that control clients are attached to; it runs nothing. A client attached to an agent's session would be
# detached with its end and have to connect again, which tmux may not survive (see `change_lock`).
KEEPER = "muster-keeper"
CREATE_KEEPER = line(
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
SWITCH_TO_KEEPER = line(("switch-client", "-E", "-t", f"={KEEPER}:"))
END_UNUSED_KEEPER = line(
    (
        *("if-shell", "-F", "#{S:#{W:#{P:#{@muster_spawn}}}}"),
        *("display-message -p needed", f"kill-session -t '={KEEPER}:'"),
    ),
    blocks=2,
)
# A pid may be used again, but not within the same second.
SERVER_IDENTITY = line(("display-message", "-p", "#{pid}-#{start_time}"))


@lru_cache(maxsize=4096)
def capture(pane_id: str, *, styled: bool = False) -> CommandLine:
    return line(("capture-pane", "-p", *(["-e"] if styled else []), "-t", exact(PANE, pane_id)))


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
    log: LogPipe | None = None,
) -> CommandLine:
    """Create and stamp a session and start its program, in one step."""
    if name("session", session) == KEEPER:
        raise ValueError(f"the session name {KEEPER!r} is Muster's own; choose another for the agent")
    session_stamps.check(session, stamps)
    if not argv or "=" in argv[0] or not argv[0]:
        raise ValueError(f"session {session!r} can't run {list(argv)!r}: a program without '=' must come first")
    target = f"={session}:"
    recoverable = {f"MUSTER_STAMP_{each.upper()}": text for each, text in stamps.items()}
    variables = [word for each, text in {**env, **recoverable}.items() for word in ("-e", f"{each}={text}")]
    new = ("new-session", "-d", "-E", "-s", session, "-x", f"{width}", "-y", f"{height}")
    if found := [
        *(each for each in env if not VARIABLE.fullmatch(each)),
        *(each for each in unset if not each or "=" in each),
    ]:
        raise ValueError(f"session {session!r} can't have an environment variable named {found[0]!r}")
    # Without `env`, tmux would hand a program without arguments to a shell, and a missing one would leave no message.
    # `env -u` also removes variables of the server by name.
    forgotten = [word for each in unset if each not in {**env, **recoverable} for word in ("-u", each)]
    program = ("--", "/usr/bin/env", *forgotten, "--", *argv)
    # In the same step as the program starts, so that the log has its first output.
    piped = [pipe_command(target, log)] if log else []
    return line(
        (*new, "-c", literal(str(cwd.absolute())), *variables, *program),
        *piped,
        *session_stamps.marks_of_session(target, target, stamps),
    )


def pipe(pane_id: str, log: LogPipe) -> CommandLine:
    """Append a pane's output to a log, and no longer to another one."""
    return line(pipe_command(exact(PANE, pane_id), log))


def unpipe(pane_id: str) -> CommandLine:
    """End that."""
    return line(("pipe-pane", "-t", exact(PANE, pane_id)))


def pipe_command(target: str, log: LogPipe) -> Sequence[str]:
    # tmux only takes a shell command here. Its text is fixed but for two paths, which are quoted for the shell, and
    # then for tmux, which expands formats and dates in it.
    return ("pipe-pane", "-O", "-t", target, literal(log.command()).replace("%", "%%"))


def paste(pane_id: str, spawn: str, text: str) -> list[CommandLine]:
    """Type text as one paste, byte for byte, bracketed if the program has asked for that. Refused if the pane has
    another spawn stamp, is dead, or somebody scrolls in it."""
    buffer = f"muster-{name('spawn', spawn)}"
    put = f"paste-buffer -p -r -d -b {buffer} -t {exact(PANE, pane_id)}"
    return [
        line(("set-buffer", "-b", buffer, "--", text)),
        _if_ours(pane_id, spawn, put),
        line(("delete-buffer", "-b", buffer)),  # left over if it was refused; else this fails, which is harmless
    ]


def press(pane_id: str, spawn: str, keys: Sequence[str]) -> CommandLine:
    """Press keys, under the same conditions."""
    if found := [key for key in keys if not KEY.fullmatch(key)]:
        raise ValueError(f"{found[0]!r} is not the name of a key; names are as in tmux: Enter, Escape, Up, C-c, F1, a")
    return _if_ours(pane_id, spawn, f"send-keys -t {exact(PANE, pane_id)} {' '.join(keys)}")


def _if_ours(pane_id: str, spawn: str, command: str) -> CommandLine:
    """Run a command if tmux finds the pane as expected in the same step; else the answer is the reason."""
    ours = f"#{{==:#{{@muster_spawn}},{name('spawn', spawn)}}}"
    # tmux 3.3a crashes on a paste into a dead pane, and drops what is typed while input is off.
    free = "#{==:#{pane_in_mode}#{pane_dead}#{pane_input_off},000}"
    reason = "refused #{pane_id} #{pane_in_mode} #{pane_dead} #{pane_input_off} #{@muster_spawn}"
    refuse = f"display-message -p -t {exact(PANE, pane_id)} '{reason}'"
    return line(("if-shell", "-F", "-t", pane_id, f"#{{&&:{ours},{free}}}", command, refuse), blocks=2)


def literal(text: str) -> str:
    """Text, escaped for places where tmux expands formats."""
    # tmux reads `##[` as the start of a style; a bracket in a format of its own prevents that.
    return text.replace("#", "##").replace("##[", "###{l:[}")
