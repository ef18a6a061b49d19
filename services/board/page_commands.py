"""Commands that people send from the page: handed to their owners, and followed until they are answered.

A command goes out with the service's next turn, as any command of a service: it is in the journal then, with or without
a broker. A thread reads the replies there while commands are open.
"""

import threading
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from services.board.web.source import CommandProgress
from shared.contract.commands import COMMAND_EXPIRES_AFTER_S, Command, Reply
from shared.contract.ids import new_id
from shared.errors import MusterError, Retryable, sentence_of
from shared.messaging.journal import Journal
from shared.runtime.turn import Turn
from shared.system.log import Log

MOST_OPEN = 200
MOST_KEPT = 500
READ_EVERY_S = 0.05
READ_EVERY_WHILE_WAITING_S = 0.5
"""Once all open commands are older than `FRESH_FOR_S`: a text may wait for an hour."""
FRESH_FOR_S = 10.0
TRIED_AGAIN_AFTER_S = 1.0
LATE_S = 5.0
"""How long after its expiry a command without any answer counts as lost."""
FOLLOWED_FOR_S = 3600.0


class TooManyCommands(MusterError):
    """So many commands are open that no more is taken."""


@dataclass(frozen=True)
class _Open:
    command: Command
    why: str
    since: float
    is_stored: bool = False
    """Whether it was seen in the journal: then it need not be sent again."""


class PageCommands:
    """The commands of all pages. `submit` and `progress` may be called from any thread."""

    def __init__(self, journal: Path, nudge: Callable[[], None], log: Log) -> None:
        self._journal, self._nudge, self._log = journal, nudge, log
        self._lock = threading.Lock()
        self._open: dict[str, _Open] = {}
        self._progress: dict[str, CommandProgress] = {}
        self._replies: dict[str, Reply] = {}
        self._wakes: set[Callable[[], None]] = set()
        self._thread: threading.Thread | None = None

    def submit(self, command: Command, by: str) -> str:
        """Send a command and follow it; returns its id. Raises TooManyCommands."""
        command_id = new_id()
        made = datetime.now(UTC)
        expires = made + timedelta(seconds=COMMAND_EXPIRES_AFTER_S)
        command = command.model_copy(update={"id": command_id, "made": made, "expires": expires})
        with self._lock:
            if len(self._open) >= MOST_OPEN:
                raise TooManyCommands(f"{MOST_OPEN} commands are open already: wait until they are answered")
            self._open[command_id] = _Open(command, by, time.time())
            self._note(command_id, "sent", "handed over")
            if self._thread is None:
                self._thread = threading.Thread(target=self._follow, daemon=True, name="follows commands")
                self._thread.start()
        self._nudge()
        return command_id

    def progress(self, command_id: str) -> CommandProgress | None:
        return self._progress.get(command_id)

    def reply(self, command_id: str) -> Reply | None:
        """The final reply; None while there is none."""
        return self._replies.get(command_id)

    def subscribe(self, wake: Callable[[], None]) -> Callable[[], None]:
        """Call `wake`, from any thread, when a command has progressed; returns how to end that."""
        with self._lock:
            self._wakes.add(wake)
        return lambda: self._wakes.discard(wake)

    # --- the service's thread ---

    def send(self, turn: Turn) -> None:
        """Send what is open and not in the journal yet. The same id acts once, so a repeat does no harm."""
        with self._lock:
            waiting = [each for each in self._open.values() if not each.is_stored]
        for each in waiting:
            turn.send_command(each.command, each.why)

    # --- the following thread ---

    def _follow(self) -> None:
        try:
            while not self._follow_all():
                time.sleep(TRIED_AGAIN_AFTER_S)
        except Exception as error:  # noqa: BLE001 - else nobody would follow the next command
            self._log.failure("could not follow the commands of pages", error)
            with self._lock:
                self._thread = None
                for command_id in list(self._open):
                    self._end(command_id, "lost", f"its answer can't be read: {sentence_of(error)}")

    def _follow_all(self) -> bool:
        """Follow the open commands until none is left; False if the journal can't be read just now."""
        try:
            with closing(Journal(self._journal, "board")) as journal:
                while self._read(journal):
                    time.sleep(self._pause_s())
        except Retryable as error:
            self._log.warning("could not follow the commands of pages for now", reason=str(error))
            return False
        return True

    def _pause_s(self) -> float:
        with self._lock:
            newest = max((each.since for each in self._open.values()), default=0.0)
        return READ_EVERY_S if time.time() - newest < FRESH_FOR_S else READ_EVERY_WHILE_WAITING_S

    def _read(self, journal: Journal) -> bool:
        """Read the replies to all open commands; False if none is open any more."""
        with self._lock:
            waiting = list(self._open.items())
        news = [self._news(journal, command_id, each) for command_id, each in waiting]
        if any(news):
            for wake in list(self._wakes):
                wake()
        with self._lock:
            if not self._open:
                self._thread = None
            return bool(self._open)

    def _news(self, journal: Journal, command_id: str, each: _Open) -> bool:
        owner = each.command.addressee()
        payload = journal.requests.answer_to(command_id, owner) or journal.requests.waits_for(command_id, owner)
        if payload is None:
            if not each.is_stored and journal.requests.is_stored(command_id, owner):
                with self._lock:
                    self._open[command_id] = replace(each, is_stored=True)
            return self._give_up_late(command_id, each)
        reply = Reply.model_validate_json(payload)
        with self._lock:
            self._open[command_id] = replace(each, is_stored=True)
            if reply.final:
                self._replies[command_id] = reply
                self._end(command_id, "done" if reply.ok else "refused", reply.said)
                return True
            known = self._progress.get(command_id)
            if known is not None and (known.state, known.said) == ("waiting", reply.said):
                return self._give_up_followed(command_id, each)
            self._note(command_id, "waiting", reply.said)
            return True

    def _give_up_late(self, command_id: str, each: _Open) -> bool:
        if time.time() - each.since < COMMAND_EXPIRES_AFTER_S + LATE_S:
            return False
        with self._lock:
            said = f"the {each.command.addressee()} gave no answer: it is not carried out any more; is it running?"
            self._end(command_id, "lost", said)
        return True

    def _give_up_followed(self, command_id: str, each: _Open) -> bool:
        if time.time() - each.since < FOLLOWED_FOR_S:
            return False
        self._end(command_id, "lost", "it still waits; `muster events` tells its end")
        return True

    def _end(self, command_id: str, state: str, said: str) -> None:
        self._open.pop(command_id, None)
        self._note(command_id, state, said)
        for kept in (self._progress, self._replies):
            ended = [each for each in kept if each not in self._open]
            for each in ended[: max(0, len(kept) - MOST_KEPT)]:
                kept.pop(each)

    def _note(self, command_id: str, state: str, said: str) -> None:
        known = self._progress.get(command_id)
        command = self._open[command_id].command if command_id in self._open else None
        verb = command.verb if command is not None else known.verb if known is not None else ""
        agent = str(getattr(command, "agent", "")) if command is not None else known.agent if known is not None else ""
        self._progress[command_id] = CommandProgress(command_id, verb, agent, state, said, datetime.now(UTC))
