"""What a process is called: its program, and the script that an interpreter runs."""

from collections.abc import Iterator, Sequence
from pathlib import PurePath

RUNS_SCRIPTS = ("python", "pypy", "node", "bun", "deno", "ruby", "perl", "bash", "dash", "sh", "zsh", "fish", "ksh")
STARTS_OTHERS = ("env", "npx", "npm", "pnpm", "yarn", "uv", "uvx", "pipx", "tmux", "screen", "sudo", "doas", "ssh")
KEEPS_OTHERS = ("timeout", "nohup", "nice", "script", "docker", "podman", "login", "busybox", "mosh", "setsid", "su")
GENERAL = frozenset((*RUNS_SCRIPTS, *STARTS_OTHERS, *KEEPS_OTHERS))
"""Programs whose name says nothing of what runs in them."""


def is_general(program: str) -> bool:
    """Whether a program is an interpreter, a shell or a starter of others: `python3.11` is, too."""
    return program.rstrip("0123456789.-") in GENERAL


def called(arguments: Sequence[str]) -> Iterator[str]:
    """The names of a program and of the script that it runs. A word after any other program is only its argument."""
    if not arguments:
        return
    program = PurePath(arguments[0].lstrip("-")).name  # a login shell's begins with a dash
    yield program
    if program.rstrip("0123456789.-") not in RUNS_SCRIPTS:
        return
    words = iter(arguments[1:])
    for word in words:
        if word == "-m":
            yield next(words, "")
            return
        if word in ("-c", "-e", "--eval", "-p", "--print"):
            return
        if not word.startswith("-"):
            yield PurePath(word).name
            return
