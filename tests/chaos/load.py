"""What people do meanwhile: texts with unique words, wishes, approvals, edits of the registry, by CLI and by MQTT."""

import json
import os
import random
import re
import subprocess
import sys
import threading
import time
from collections.abc import Mapping

from services.cli.broker import connection
from shared.contract.ids import new_id
from tests.chaos.evidence import Asked, SeenReply
from tests.chaos.stage import Stage

CLI_WITHIN_S = 180
COMMAND_ID = re.compile(r"; \w+ (\w+) (?:is carried out|was sent)")
WISHES = ("stop", "spawn", "restart", "restart")


class People(threading.Thread):
    """One person: acts on agents of their own, one thing after the other."""

    def __init__(self, stage: Stage, name: str, agents: tuple[str, ...], chance: random.Random, pause_s: float) -> None:
        super().__init__(name=name, daemon=True)
        self._stage, self._agents, self._chance, self._pause_s = stage, agents, chance, pause_s
        self._count = 0
        self.asked: list[Asked] = []
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            while not self._stage.over.wait(self._chance.uniform(0.0, 2 * self._pause_s)):
                self._act(self._chance.choice(self._agents))
        except BaseException as failure:
            self.failure = failure
            raise

    def _act(self, agent: str) -> None:
        cast = self._stage.cast
        if agent in cast.edited:
            self._edit(agent)
        elif agent in cast.asking:
            self._chance.choice((self._ask_and_approve, self._send))(agent)
        elif agent in cast.limited:
            self._chance.choice((self._hit_limit, self._send, self._send))(agent)
        else:
            # The others are killed often, and people send more texts than they stop agents.
            self._chance.choice((self._send, self._send, self._send, self._wish, self._exit))(agent)

    def _word(self) -> str:
        self._count += 1
        return f"word-{self.name}-{self._count:04}-{self._chance.randrange(16**6):06x}"

    def _send(self, agent: str) -> None:
        word = self._word()
        text = self._chance.choice((f"note {word}", f"work 1 {word}", f"note {word}\nsecond line", f"note {word} ü"))
        self._command("send", agent, word, text=text)

    def _ask_and_approve(self, agent: str) -> None:
        word = self._word()
        self._command("send", agent, word, text=f"ask {word}")
        self._command(self._chance.choice(("approve", "deny")), agent)

    def _hit_limit(self, agent: str) -> None:
        word = self._word()
        self._command("send", agent, word, text=f"limit 3 {word}")

    def _exit(self, agent: str) -> None:
        with self._stage.lasting("agent told to end", agent):
            self._command("send", agent, text="exit")

    def _wish(self, agent: str) -> None:
        self._command(self._chance.choice(WISHES), agent)

    # --- ways ---

    def _command(self, verb: str, agent: str, word: str = "", *, text: str = "") -> None:
        if self._chance.random() < 0.3:
            self._publish(verb, agent, word, text)
        else:
            self._cli(verb, agent, word, text)

    def _cli(self, verb: str, agent: str, word: str, text: str) -> None:
        words = [sys.executable, "-P", "-m", "services.cli", "--fleet", str(self._stage.fleet.path)]
        words += [verb, agent, *([text] if text else []), "--json", "--wait", "15"]
        environment = {k: v for k, v in os.environ.items() if k != "TMUX"}
        began = time.time()
        try:
            done = subprocess.run(
                words,
                capture_output=True,
                text=True,
                timeout=CLI_WITHIN_S,
                check=False,
                env=environment,
                cwd="/",
                stdin=subprocess.DEVNULL,
            )
            code, said, out = done.returncode, done.stderr.strip(), done.stdout
        except subprocess.TimeoutExpired:
            code, said, out = -1, f"no end within {CLI_WITHIN_S} s", ""
        asked = Asked(began, time.time(), verb, agent, "cli", code, said, word)
        if out.startswith("{"):
            document = json.loads(out)
            asked.reply, asked.command = reply_of(document), document["id"]
        elif found := COMMAND_ID.search(said):
            asked.command = found[1]
        self.asked.append(asked)

    def _publish(self, verb: str, agent: str, word: str, text: str) -> None:
        command = new_id()
        payload = json.dumps({"id": command, "agent": agent, **({"text": text} if text else {})})
        argv = ["mosquitto_pub", *connection(self._stage.fleet.fleet, "operator").split(), "-q", "1"]
        argv += ["-t", f"muster/box/command/{verb}", "-m", payload]
        began, code, said = time.time(), 0, ""
        for _ in range(self._chance.choice((1, 1, 2))):  # the same command twice acts once
            try:
                done = subprocess.run(argv, capture_output=True, text=True, timeout=30, check=False)
                code, said = done.returncode, done.stderr.strip()
            except subprocess.TimeoutExpired:
                code, said = -1, "mosquitto_pub did not end"
        self.asked.append(Asked(began, time.time(), verb, agent, "pub", code, said, word, command))

    def _edit(self, agent: str) -> None:
        """As an editor does: read, change one field, replace the file."""
        if not self._stage.registry_is_free():
            return
        with self._stage.registry_lock:
            file = self._stage.fleet.fleet.registry
            try:
                text = file.read_text()
            except FileNotFoundError:
                return
            wish = self._chance.choice(("stopped", "running"))
            pattern = rf"(^  {agent}:\n(?:    .*\n)*?    desired: )\w+"
            changed, times = re.subn(pattern, rf"\g<1>{wish}", text, count=1, flags=re.MULTILINE)
            if not times or changed == text:
                return
            beside = self._stage.directory / f"edit-{agent}"
            beside.write_text(changed)
            beside.replace(file)
            now = time.time()
        verb = "stop" if wish == "stopped" else "spawn"
        self.asked.append(Asked(now, now, verb, agent, "registry"))


def reply_of(document: Mapping[str, object]) -> SeenReply:
    result = document.get("result")
    confirmed = str(result.get("confirmed", "")) if isinstance(result, dict) else ""
    return SeenReply(
        str(document["id"]), bool(document["ok"]), str(document["said"]), str(document.get("code", "")), confirmed
    )
