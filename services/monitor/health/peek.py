"""Serves people who ask how an agent's work is: asks a copy of its conversation, waits for the answer, and gives it."""

import os
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from registry import AgentRecord
from services.monitor.health.query import Wanted, of_session, query_for, why_not
from services.monitor.health.query_runner import QueryRunner
from services.monitor.health.question import read_answer
from services.monitor.subject import Subject
from shared.agents.fork import ForkAnswer, ForkFailed, ForkSilent, TimedResult
from shared.contract.commands import Peek
from shared.errors import MusterError
from shared.fleet import Fleet
from shared.runtime.turn import PendingCommand, Turn

WAITS_IN_LINE_S = 900.0
"""A question may wait so long for others to be answered first."""
SAID_CHARACTERS = 2_000
"""Of an answer in free words, in the sentence; the result has all of it."""
RESULT_CHARACTERS = 50_000


@dataclass(frozen=True)
class PeekQuestion:
    """One that is under way."""

    spawn: str
    """The session that it is about."""
    model: str
    timeout_s: float
    until: datetime


@dataclass
class PeekRequests:
    asking: QueryRunner
    _under_way: dict[str, PeekQuestion] = field(default_factory=dict)
    """By the id of the command. It is not remembered: who starts anew asks again."""

    def begin(self, turn: Turn) -> None:
        """What is under way does not expire; what nobody waits for any more is ended."""
        turn.commands += [pending for pending in turn.late_commands if pending.request.id in self._under_way]
        waited_for = {pending.request.id for pending in turn.commands}
        for ident in [ident for ident in self._under_way if ident not in waited_for]:
            self._end(ident)

    def serve(
        self,
        turn: Turn,
        fleet: Fleet,
        pending: PendingCommand,
        command: Peek,
        subject: Subject,
        record: AgentRecord | None,
    ) -> None:
        """About an agent that runs."""
        ident = pending.request.id
        question = self._under_way.get(ident) or self._ask(
            turn, fleet, pending, command, subject, of_session(record, subject.spawn)
        )
        if question is None:
            return
        if question.spawn != subject.spawn:
            self.refuse(turn, pending, f"{command.agent} was started anew")
        elif (answered := self.asking.take(_key(ident))) is not None:
            del self._under_way[ident]
            answer(turn, pending, command, answered, question)
        else:
            by = f" by {question.model}" if question.model else ""
            said = f"a copy of {command.agent}'s conversation is asked{by}, for up to {question.timeout_s:g} s"
            turn.defer(pending, said, question.until)

    def refuse(self, turn: Turn, pending: PendingCommand, why: str, *, code: str = "refused") -> None:
        """The agent does not run, or not any more."""
        was_asked = pending.request.id in self._under_way
        self._end(pending.request.id)
        turn.reply(pending, f"its session ended before it answered: {why}" if was_asked else why, code=code)

    def _ask(
        self,
        turn: Turn,
        fleet: Fleet,
        pending: PendingCommand,
        command: Peek,
        subject: Subject,
        record: AgentRecord | None,
    ) -> PeekQuestion | None:
        if why := why_not(fleet, command.agent, subject.backend, record):
            turn.reply(pending, why, code="refused")
            return None
        wanted = Wanted(command.question, command.model, command.timeout_s)
        try:
            query = query_for(fleet, command.agent, subject.backend, record, os.environ, wanted)
        except MusterError as error:
            turn.reply(pending, f"{command.agent} can't be asked: {error}", code="refused")
            return None
        until = turn.now + timedelta(seconds=query.timeout_s + WAITS_IN_LINE_S)
        self.asking.ask(_key(pending.request.id), query, soon=True)
        question = self._under_way[pending.request.id] = PeekQuestion(
            subject.spawn, query.model, query.timeout_s, until
        )
        return question

    def _end(self, ident: str) -> None:
        if self._under_way.pop(ident, None) is not None:
            self.asking.cancel(_key(ident))


def answer(turn: Turn, pending: PendingCommand, command: Peek, answered: TimedResult, question: PeekQuestion) -> None:
    """Give what came of it."""
    agent = command.agent
    match answered.result:
        case ForkSilent():
            turn.reply(pending, f"{agent} did not answer within {question.timeout_s:g} s", code="refused")
        case ForkFailed(reason=reason, limited=limited):
            what = "the model that would answer is limited" if limited else f"{agent} can't be asked"
            turn.reply(pending, f"{what}: {reason}", code="refused")
        case ForkAnswer(text=text, structured=structured):
            known = read_answer(text, structured) if command.question is None else None
            found: dict[str, Any] = {
                "agent": agent,
                "state": known.state.value if known is not None else None,
                "summary": known.summary if known is not None else None,
                "output": known.output[:RESULT_CHARACTERS] if known is not None else None,
                "text": text[:RESULT_CHARACTERS],
                "seconds": answered.seconds,
                "model": question.model or None,
            }
            said = f"says: {text.strip()[:SAID_CHARACTERS] or 'nothing'}"
            if known is not None:
                said = f"is {known.state.value}: {known.summary}"
            turn.reply(pending, f"{agent} {said}", **found)


def _key(ident: str) -> str:
    return f"peek:{ident}"
