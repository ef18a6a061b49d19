"""What a demo agent does. It has no model, so it follows lines of its prompt:

    demo: on start: work 1; write done/{number}.md all of it; push claim: {phase} is ready
    demo: on review: write STATUS.md STATUS: DONE {phase}; push status: {phase} is done

`start` is the prompt itself, any other word a message that has it. A real agent needs none of these lines.

    work 12 docs               works for so many seconds, and shows lines of such work: demo_work.py has the topics
    ask rm -r build | why      asks for permission; the steps after it are dropped if it is refused
    choose Which? | one | two  asks which
    limit 45 of docs           is at its usage limit for so many seconds; agents that name the same account share it
    say TEXT                   prints a line
    fail TEXT, exit            ends, with an error or well
    write FILE TEXT, delete FILE, pull, push SUBJECT
"""

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

LINE = re.compile(r"^\s*demo: on ([\w-]+): (\S.*)$", re.MULTILINE)
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
START = "start"
PUSHES = 5
"""How often a push is tried: another agent may push at the same time."""
GIT_WITHIN_S = 60.0
TEMPO = "MUSTER_DEMO_TEMPO"
"""The variable that says how many times faster scripts are played: for tests."""


class ScriptFailed(Exception):
    """A step could not be done; the message says why."""


class DemoScript:
    def __init__(self) -> None:
        self._on: dict[str, list[str]] = {}

    def learn(self, text: str) -> None:
        """Store the lines of a prompt; they replace earlier ones for the same word."""
        for word, steps in LINE.findall(text):
            self._on[word.lower()] = [step.strip() for step in steps.split(";") if step.strip()]

    def steps(self, text: str) -> list[str]:
        """The steps for a message. A prompt with lines starts the script, and is not matched by their words."""
        if LINE.search(text):
            return list(self._on.get(START, ()))
        said = text.lower()
        words = [word for word in self._on if word != START and re.search(rf"\b{re.escape(word)}\b", said)]
        return [step for word in words for step in self._on[word]]


def tempo() -> float:
    try:
        return max(float(os.environ.get(TEMPO, "")), 0.1)
    except ValueError:
        return 1.0


def for_people(text: str) -> str:
    """A prompt in one line, without comments and the lines of a script."""
    return " ".join(LINE.sub("", COMMENT.sub("", text)).split())


def play(step: str) -> Iterator[str]:
    """Do one step in the workspace and yield what was done. The agent itself does the other steps."""
    verb, _, rest = step.partition(" ")
    match verb:
        case "write":
            path, _, text = rest.partition(" ")
            file = _inside(path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"{text}\n", encoding="utf-8")
            yield f"wrote {path}"
        case "delete":
            _inside(rest).unlink(missing_ok=True)
            yield f"deleted {rest}"
        case "pull":
            _pull()
            yield "pulled"
        case "push":
            yield from _push(rest)
        case _:
            raise ScriptFailed(
                f"a demo agent can't do {verb!r}: "
                "it can work, ask, choose, limit, say, fail, exit, write, delete, pull and push"
            )


def _inside(path: str) -> Path:
    here = Path.cwd().resolve()
    file = (here / path).resolve()
    if not path or here not in file.parents or ".git" in file.parts:
        raise ScriptFailed(f"{path!r} is no file of the workspace")
    return file


def _pull() -> None:
    if _git("ls-remote", "--heads", "origin").strip():
        _git("pull", "--quiet", "--rebase")


def _push(subject: str) -> Iterator[str]:
    _git("add", "--all")
    _git("commit", "--quiet", "--allow-empty", "--message", subject)
    for left in reversed(range(PUSHES)):
        try:
            _pull()
            _git("push", "--quiet", "origin", "HEAD")
        except ScriptFailed:
            if not left:
                raise
        else:
            yield f"pushed {subject!r}"
            return


def _git(*arguments: str) -> str:
    env = {**os.environ, "GIT_TERMINAL_PROMPT": "0", "GIT_EDITOR": "true", "LC_ALL": "C"}
    try:
        done = subprocess.run(
            ["git", "-c", "commit.gpgsign=false", *arguments],
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=GIT_WITHIN_S,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ScriptFailed(f"git {arguments[0]}: {error}") from error
    if done.returncode:
        raise ScriptFailed(f"git {arguments[0]}: {' '.join(done.stderr.split())[:200]}")
    return done.stdout
