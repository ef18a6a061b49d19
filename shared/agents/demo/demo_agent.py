"""A stand-in for a coding agent: works a little, waits a little, answers what is typed. Needs nothing but Python.

It has what real agents have and what makes typing into them hard: an input box that is redrawn, pastes that are shown
as a placeholder, a permission dialog (say `ask …`), work that can be interrupted, conversations that can be resumed,
a usage limit (`limit 30`, in seconds; `limit 30 menu` asks what to do about it, `limit 30 auto` goes on by itself), a
login that is refused (`login`), a program that hangs (`freeze`), and promises (`promise 2026-01-31T09:30:00Z`).
In a loop it plays its part by lines in its prompt: demo_script.py.

With `--answer` it only says how the work in a conversation is, as a fork of a real one would: done after `finish …`,
waiting after a promise, else at work; after `hang` it never answers.
"""

import argparse
import codecs
import contextlib
import json
import os
import random
import re
import select
import shutil
import signal
import sys
import termios
import time
import tty
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shared.agents.demo.demo_script import DemoScript, ScriptFailed, play
else:
    sys.path.insert(0, str(Path(__file__).parent))  # it is run as a program, alone (-I) with what is beside it
    from demo_script import DemoScript, ScriptFailed, play

STEPS = ("reading the code", "thinking", "editing", "running the tests", "writing a commit message")
PASTE_BEGINS, PASTE_ENDS = "\x1b[200~", "\x1b[201~"
SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|O[A-Z])")
SHOWN_AT_MOST = 600
KEYS_WITHIN_S = 0.05


class DemoConversation:
    """The transcript, in a file of the fleet's home, so that the conversation can be resumed."""

    def __init__(self, name: str, *, resume: bool) -> None:
        fleet = os.environ.get("MUSTER_FLEET")
        self._path = Path(fleet).parent / ".muster" / "demo" / f"{name}.jsonl" if fleet and name else None
        if resume and (self._path is None or not self._path.exists()):
            sys.exit(f"demo agent: there is no conversation {name}")

    def told(self) -> list[str]:
        """All prompts of the conversation."""
        if self._path is None or not self._path.exists():
            return []
        said = [json.loads(line) for line in self._path.read_text(encoding="utf-8").splitlines()]
        return [str(each["text"]) for each in said if each["who"] == "user"]

    def note(self, who: str, text: str, **more: float) -> None:
        if self._path is None:
            return
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"time": time.time(), "who": who, "text": text, **more}) + "\n")


class DemoTerminal:
    """Lines that scroll, and below them a box that is redrawn after every change."""

    def __init__(self) -> None:
        self._drawn = 0

    def draw(self, said: list[str], block: list[str]) -> None:
        if self._drawn:
            sys.stdout.write(f"\x1b[{self._drawn - 1}A" if self._drawn > 1 else "")
            sys.stdout.write("\r\x1b[J")
        sys.stdout.write("".join(f"{line}\r\n" for line in said))
        sys.stdout.write("\r\n".join(block))
        sys.stdout.flush()
        self._drawn = len(block)

    def columns(self) -> int:
        return shutil.get_terminal_size().columns


class DemoAgent:
    def __init__(self, name: str, conversation: DemoConversation) -> None:
        self._chance = random.Random(name)  # noqa: S311 - the same agent prints the same each time
        self._conversation = conversation
        self._terminal = DemoTerminal()
        self._decode = codecs.getincrementaldecoder("utf-8")("replace")
        self._keys = ""
        self._text = ""
        self._asks = ""
        self._works_until = 0.0
        self._steps: list[str] = []
        self._script = DemoScript()
        for text in conversation.told():
            self._script.learn(text)
        self._frozen = False
        self._limited_until = 0.0
        self._goes_on = False
        self._menu = False
        self._said: list[str] = []
        self.ended = False

    def run(self) -> None:
        while not self.ended:
            self._terminal.draw(self._said, self._block())
            self._said.clear()
            while self._frozen:
                time.sleep(60)
            if self._wait_for_keys():
                self._read_keys()
            elif self._steps and time.monotonic() >= self._works_until:
                self._play(self._steps.pop(0))
            elif self._goes_on and time.time() >= self._limited_until:
                self._goes_on = False
                self._said.append("* usage limit reset, going on by itself")
                self.submit("go on")
            elif not self._asks and not self._menu and not self._is_limited():
                self._said.append(f"* {self._chance.choice(STEPS)} ...")

    def say(self, line: str) -> None:
        self._said.append(line)

    def submit(self, text: str) -> None:
        """Take a message as if it was typed."""
        self._conversation.note("user", text)
        first = " ".join(text.split())
        self._said.append(f"> heard: {first[:60]}{'…' if len(first) > 60 else ''}")
        if text.strip() == "exit":
            self.ended = True
        elif not self._is_refused(text):
            self._take_up(text)

    def _take_up(self, text: str) -> None:
        answer = "All done."
        if text.startswith("ask"):
            self._asks = " ".join(text.split())[:40]
        elif text.startswith("work"):
            seconds = re.search(r"\d+", text)
            self._works_until = time.monotonic() + float(seconds[0] if seconds else 10)
        elif text.startswith("freeze"):
            self._works_until, self._frozen = float("inf"), True
        elif steps := self._part(text):
            self._steps += steps
        elif text.startswith("promise"):
            answer = f"WAITING-UNTIL: {text.removeprefix('promise').strip()}"
            self._said.append(f"* {answer}")
        self._conversation.note("agent", answer)

    def _part(self, text: str) -> list[str]:
        """The steps of its script in a loop, if it is in one."""
        self._script.learn(text)
        steps = self._script.steps(text)
        return ["pull", *steps] if steps else []

    def _play(self, step: str) -> None:
        if found := re.fullmatch(r"work ?(\d*\.?\d*)", step):
            self._works_until = time.monotonic() + float(found[1].strip(".") or 1)
            return
        if step == "exit":
            self.ended = True
            return
        try:
            self._said += [f"* {said}" for said in play(step)]
        except (ScriptFailed, OSError, ValueError) as error:
            self._said.append(f"! {error}")
            self._steps.clear()

    def _is_refused(self, text: str) -> bool:
        """Refuse as a model does: the account is at its limit, or not logged in."""
        if text.startswith("limit"):
            self._hit_limit(text.split())
        if self._is_limited():
            resets = time.strftime("%H:%M:%S", time.gmtime(self._limited_until))
            by_itself = f" · going on by itself at {resets}" if self._goes_on else ""
            self._said.append(f"! usage limit reached · resets {resets} (UTC){by_itself}")
            self._conversation.note("limit", "usage limit reached", resets=self._limited_until)
            return True
        if text.strip() == "login":
            self._said.append("! not logged in")
            self._conversation.note("error", "not logged in")
            return True
        return False

    def _hit_limit(self, words: list[str]) -> None:
        seconds = float(words[1]) if len(words) > 1 else 30.0
        self._limited_until = time.time() + seconds
        self._menu, self._goes_on = "menu" in words, "auto" in words

    def _is_limited(self) -> bool:
        return time.time() < self._limited_until

    # --- what is seen ---

    def _block(self) -> list[str]:
        columns = self._terminal.columns()
        rule = "─" * columns
        if self._asks:
            return [rule, f"Do you allow this? {self._asks}", "  1. Yes", "  2. No", "1 or 2 · esc to refuse"]
        if self._menu:
            return [rule, "What do you want to do?", "  1. Buy more", "  2. Wait for the reset", "1 or 2"]
        footer = "  working · esc to interrupt" if self._is_working() else "  demo agent · enter to send"
        return [rule, *self._box(columns - 3), rule, footer]

    def _box(self, width: int) -> list[str]:
        if not self._text:
            return ["› \x1b[2mtype a message\x1b[0m"]
        if len(self._text) > SHOWN_AT_MOST:
            return [f"› [pasted {len(self._text)} characters]"]
        lines = [line[at : at + width] for line in self._text.split("\n") for at in range(0, max(1, len(line)), width)]
        return [("› " if place == 0 else "  ") + line for place, line in enumerate(lines)]

    def _is_working(self) -> bool:
        return bool(self._steps) or time.monotonic() < self._works_until

    # --- what is typed ---

    def _wait_for_keys(self) -> bool:
        idle_s = self._chance.uniform(1.0, 4.0) if not self._is_working() else 0.3
        wait_s = 0.05 if self._steps and time.monotonic() >= self._works_until else idle_s
        return bool(select.select([0], [], [], wait_s)[0])

    def _read_keys(self) -> None:
        data = os.read(0, 1 << 16)
        if not data:
            self.ended = True
        self._keys += self._decode.decode(data)
        while self._keys and not self.ended and self._take():
            pass

    def _take(self) -> bool:
        """Handle one key or paste; False if more input is needed first."""
        if self._keys.startswith(PASTE_BEGINS):
            text, ended, rest = self._keys.removeprefix(PASTE_BEGINS).partition(PASTE_ENDS)
            if not ended:
                return False
            self._keys = rest
            if not self._asks and not self._menu:
                self._text += text
        elif found := SEQUENCE.match(self._keys):
            self._keys = self._keys[found.end() :]
        elif self._keys == "\x1b" and select.select([0], [], [], KEYS_WITHIN_S)[0]:
            return False
        else:
            key, self._keys = self._keys[0], self._keys[1:]
            self._press(key)
        return True

    def _press(self, key: str) -> None:
        if self._menu:
            self._choose(key)
        elif self._asks:
            self._answer(key)
        elif key == "\r":
            text, self._text = self._text, ""
            if text.strip():
                self.submit(text)
        elif key == "\x1b":
            if self._is_working():
                self._works_until = 0.0
                self._steps.clear()
                self._said.append("* interrupted")
        elif key == "\x15":
            self._text = ""
        elif key in ("\x7f", "\b"):
            self._text = self._text[:-1]
        elif key == "\x03":
            self.ended = True
        elif key.isprintable() or key == "\n":
            self._text += key

    def _choose(self, key: str) -> None:
        if key in ("1", "\r"):
            self._said.append("* bought")
        elif key != "2":
            return
        self._menu = False

    def _answer(self, key: str) -> None:
        if key in ("1", "y"):
            self._said.append("* allowed")
        elif key in ("2", "n", "\x1b"):
            self._said.append("* refused")
        else:
            return
        self._asks = ""


@contextlib.contextmanager
def raw_terminal() -> Iterator[None]:
    if not sys.stdin.isatty():
        yield
        return
    before = termios.tcgetattr(0)
    tty.setraw(0)
    sys.stdout.write("\x1b[?2004h")
    try:
        yield
    finally:
        sys.stdout.write("\x1b[?2004l\r\n")
        termios.tcsetattr(0, termios.TCSADRAIN, before)


def how_it_is(told: str, question: str) -> str:
    """The answer to a side question."""
    if told.startswith("hang"):
        signal.pause()
    if "JSON" not in question:
        return f"The last I was told is: {told}"
    state = "finished" if told.startswith("finish") else "waiting" if told.startswith("promise") else "working"
    output = told.removeprefix("finish").strip() if state == "finished" else ""
    return json.dumps({"state": state, "summary": f"told last: {told[:60]}", "output": output})


def main() -> None:
    parser = argparse.ArgumentParser(prog="demo agent")
    parser.add_argument("name")
    parser.add_argument("--conversation", default="")
    parser.add_argument("--resume", default="")
    parser.add_argument("--model", default="")
    parser.add_argument("--prompt", default="")
    parser.add_argument("--answer", default="")
    given = parser.parse_args()
    if given.answer:
        print(how_it_is(next(reversed(DemoConversation(given.answer, resume=True).told()), ""), sys.stdin.read()))
        return
    conversation = DemoConversation(given.resume or given.conversation, resume=bool(given.resume))
    agent = DemoAgent(given.name, conversation)
    agent.say(f"demo agent {given.name}" + (f" on {given.model}" if given.model else ""))
    if given.resume:
        agent.say(f"* taking up the conversation {given.resume}")
    if given.prompt:
        agent.submit(given.prompt)
    with raw_terminal():
        agent.run()


if __name__ == "__main__":
    main()
