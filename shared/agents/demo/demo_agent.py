"""A stand-in for a coding agent: works a little, waits a little, answers what is typed. Needs nothing but Python.

It has what real agents have and what makes typing into them hard: an input box that is redrawn, pastes that are shown
as a placeholder, a permission dialog (say `ask …`), a question with options (`choose Which? | one | two`), work that
can be interrupted, conversations that can be resumed, a usage limit (`limit 30`, in seconds; `limit 30 menu` asks what
to do about it, `limit 30 auto` goes on by itself), a login that is refused (`login`), a program that hangs (`freeze`),
and promises (`promise 2026-01-31T09:30:00Z`). What else it does is in lines of its prompt: demo_script.py.

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
import signal
import sys
import termios
import time
import tty
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shared.agents.demo.demo_dialog import DemoDialog, choice, limit_menu, permission
    from shared.agents.demo.demo_script import DemoScript, ScriptFailed, for_people, play, tempo
    from shared.agents.demo.demo_terminal import BOLD, CYAN, FAINT, YELLOW, DemoTerminal, styled
    from shared.agents.demo.demo_work import CODE, DemoWork
else:
    sys.path.insert(0, str(Path(__file__).parent))  # it is run as a program, alone (-I) with what is beside it
    from demo_dialog import DemoDialog, choice, limit_menu, permission
    from demo_script import DemoScript, ScriptFailed, for_people, play, tempo
    from demo_terminal import BOLD, CYAN, FAINT, YELLOW, DemoTerminal, styled
    from demo_work import CODE, DemoWork

PASTE_BEGINS, PASTE_ENDS = "\x1b[200~", "\x1b[201~"
SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|O[A-Z])")
SHOWN_AT_MOST = 600
KEYS_WITHIN_S = 0.05
LOOK_EVERY_S, LOOK_BUSY_S, LOOK_NEXT_STEP_S = 1.0, 0.25, 0.05
SHOWN_BEFORE_END_S = 0.2
"""tmux may lose what a program writes right before it ends."""


class DemoConversation:
    """The transcript, in a file of the fleet's home, so that the conversation can be resumed."""

    def __init__(self, name: str, *, resume: bool) -> None:
        fleet = os.environ.get("MUSTER_FLEET")
        self._path = Path(fleet).parent / ".muster" / "demo" / f"{name}.jsonl" if fleet and name else None
        if resume and (self._path is None or not self._path.exists()):
            sys.exit(f"demo agent: there is no conversation {name}")

    def shared_limit(self, account: str, until: float) -> float:
        """When the limit of an account resets: as the first agent said that hit it, if that is still to come."""
        if self._path is None or not account.isidentifier():
            return until
        file = self._path.with_name(f"{account}.limit")
        with contextlib.suppress(OSError, ValueError):
            if (known := float(file.read_text(encoding="utf-8"))) > time.time():
                return known
        file.write_text(str(until), encoding="utf-8")
        return until

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


class DemoAgent:
    def __init__(self, name: str, conversation: DemoConversation) -> None:
        self._chance = random.Random(name)  # noqa: S311 - the same agent prints the same each time
        self._conversation = conversation
        self._terminal = DemoTerminal()
        self._decode = codecs.getincrementaldecoder("utf-8")("replace")
        self._keys = ""
        self._text = ""
        self._dialog: DemoDialog | None = None
        self._work: DemoWork | None = None
        self._steps: list[str] = []
        self._in_turn = False
        self._script = DemoScript()
        for text in conversation.told():
            self._script.learn(text)
        self._frozen = False
        self._limited_until = 0.0
        self._goes_on = False
        self._said: list[str] = []
        self.ended = False
        self.failed = False

    def run(self) -> None:
        while not self.ended:
            self._show()
            while self._frozen:
                time.sleep(60)
            if self._wait_for_keys():
                self._read_keys()
            elif self._dialog is not None:
                continue
            elif self._steps and not self._is_at_work():
                self._play(self._steps.pop(0))
            elif self._goes_on and not self._is_limited():
                self._goes_on = False
                self.say("* usage limit reset, going on by itself")
                self.submit("go on")
            elif self._work is not None and self._is_at_work():
                self._said += self._work.lines(time.monotonic())
            elif self._in_turn:
                self._end_turn()
        if self.failed:
            self._terminal.draw(self._said, [])
            time.sleep(SHOWN_BEFORE_END_S)

    def say(self, line: str) -> None:
        self._said.append(line)

    def submit(self, text: str) -> None:
        """Take a message as if it was typed."""
        self._conversation.note("user", text)
        first = for_people(text)
        self.say(f"> heard: {first[:60]}{'…' if len(first) > 60 else ''}")
        if text.strip() == "exit":
            self.ended = True
        elif not self._is_refused(text):
            self._take_up(text)

    def _take_up(self, text: str) -> None:
        answer = "All done."
        if text.startswith("ask"):
            self._dialog = permission(text)
        elif text.startswith("choose ") and "|" in text:
            self._dialog = choice(text.removeprefix("choose "))
        elif text.startswith("work"):
            seconds = re.search(r"\d+", text)
            self._begin_work(float(seconds[0] if seconds else 10), CODE)
        elif text.startswith("freeze"):
            self._begin_work(float("inf"), CODE)
            self._frozen = True
        elif steps := self._part(text):
            self._steps += steps
            self._in_turn = True
        elif text.startswith("promise"):
            answer = f"WAITING-UNTIL: {text.removeprefix('promise').strip()}"
            self.say(f"* {answer}")
        if not self._in_turn:
            self._conversation.note("agent", answer)

    def _part(self, text: str) -> list[str]:
        """The steps of its script, if it has one. Who pushes pulls first."""
        self._script.learn(text)
        steps = self._script.steps(text)
        return ["pull", *steps] if any(step.startswith("push ") for step in steps) else steps

    def _begin_work(self, seconds: float, topic: str) -> None:
        now = time.monotonic()
        self._work = DemoWork(topic, self._chance, now, now + seconds)
        self._in_turn = True

    def _end_turn(self) -> None:
        """Say so in the conversation: since then it waits."""
        self._work, self._in_turn = None, False
        self._conversation.note("agent", "All done.")

    def _play(self, step: str) -> None:
        try:
            self._do(step)
        except (ScriptFailed, OSError, ValueError) as error:
            self.say(f"! {error}")
            self._steps.clear()

    def _do(self, step: str) -> None:
        verb, _, rest = step.partition(" ")
        match verb:
            case "work":
                seconds, _, topic = rest.partition(" ")
                self._begin_work(float(seconds or 1) / tempo(), topic or CODE)
            case "ask":
                self._dialog = permission(rest)
            case "choose":
                self._dialog = choice(rest)
            case "limit":
                self._hit_limit(rest.split(), tempo())
                self._refuse_for_limit()
            case "say":
                self.say(f"● {rest}")
            case "fail":
                self.say(f"! {rest}")
                self.ended = self.failed = True
            case "exit":
                self.ended = True
            case _:
                self._said += [f"● {said}" for said in play(step)]

    def _is_refused(self, text: str) -> bool:
        """Refuse as a model does: the account is at its limit, or not logged in."""
        if text.startswith("limit"):
            self._hit_limit(text.split()[1:])
        if self._is_limited():
            self._refuse_for_limit()
            return True
        if text.strip() == "login":
            self.say("! not logged in")
            self._conversation.note("error", "not logged in")
            return True
        return False

    def _hit_limit(self, words: list[str], faster: float = 1.0) -> None:
        seconds = float(words[0]) if words else 30.0
        account = words[2] if words[1:2] == ["of"] and len(words) > 2 else ""
        self._limited_until = self._conversation.shared_limit(account, time.time() + seconds / faster)
        self._goes_on = "auto" in words
        self._dialog = limit_menu() if "menu" in words else None

    def _refuse_for_limit(self) -> None:
        resets = time.strftime("%H:%M:%S", time.gmtime(self._limited_until))
        by_itself = f" · going on by itself at {resets}" if self._goes_on else ""
        self.say(f"! usage limit reached · resets {resets} (UTC){by_itself}")
        self._steps.clear()
        self._work, self._in_turn = None, False
        self._conversation.note("limit", "usage limit reached", resets=self._limited_until)

    def _is_limited(self) -> bool:
        return time.time() < self._limited_until

    # --- what is seen ---

    def _show(self) -> None:
        said, self._said = self._said, []
        self._terminal.draw(said, self._block())

    def _block(self) -> list[str]:
        columns = self._terminal.columns()
        rule = "─" * columns
        if self._dialog is not None:
            title, *rows = (row[:columns] for row in self._dialog.rows())
            return [rule, styled(title, BOLD), *rows[:-1], styled(rows[-1], FAINT)]
        if not self._is_working():
            return [rule, *self._box(columns - 3), rule, "  demo agent · enter to send"]
        turns = [styled(self._work.row(time.monotonic()), YELLOW)] if self._work is not None else []
        return [*turns, rule, *self._box(columns - 3), rule, f"  {styled('working', CYAN)} · esc to interrupt"]

    def _box(self, width: int) -> list[str]:
        if not self._text:
            return ["› \x1b[2mtype a message\x1b[0m"]
        if len(self._text) > SHOWN_AT_MOST:
            return [f"› [pasted {len(self._text)} characters]"]
        lines = [line[at : at + width] for line in self._text.split("\n") for at in range(0, max(1, len(line)), width)]
        return [("› " if place == 0 else "  ") + line for place, line in enumerate(lines)]

    def _is_working(self) -> bool:
        return bool(self._steps) or self._is_at_work()

    def _is_at_work(self) -> bool:
        """Whether the last step that takes time still lasts."""
        return self._work is not None and time.monotonic() < self._work.until

    # --- what is typed ---

    def _wait_for_keys(self) -> bool:
        wait_s = LOOK_BUSY_S if self._is_at_work() else LOOK_NEXT_STEP_S if self._steps else LOOK_EVERY_S
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
            if self._dialog is None:
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
        if self._dialog is not None:
            self._answer(self._dialog, key)
        elif key == "\r":
            text, self._text = self._text, ""
            if text.strip():
                self.submit(text)
        elif key == "\x1b":
            if self._is_working():
                self._work = None
                self._steps.clear()
                self.say("* interrupted")
        elif key == "\x15":
            self._text = ""
        elif key in ("\x7f", "\b"):
            self._text = self._text[:-1]
        elif key == "\x03":
            self.ended = True
        elif key.isprintable() or key == "\n":
            self._text += key

    def _answer(self, dialog: DemoDialog, key: str) -> None:
        answer = dialog.answers.get(key)
        if answer is None:
            return
        self._dialog = None
        if answer.said:
            self.say(f"* {answer.said}")
        if not answer.goes_on:
            self._steps.clear()


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
    sys.exit(agent.failed)


if __name__ == "__main__":
    main()
