"""Serves `muster peek`: asks a copy of an agent's conversation a person's question, and replies with the answer."""

import os
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from registry import AgentRecord
from services.monitor.health.query import QueryOptions, of_session, query_for, why_not
from services.monitor.health.query_runner import QueryRunner
from services.monitor.health.question import read_answer
from services.monitor.subject import Subject
from shared.agents.fork import ForkAnswer, ForkFailed, ForkSilent, TimedResult
from shared.contract.commands import Peek
from shared.errors import MusterError
from shared.fleet import Fleet
from shared.runtime.turn import PendingCommand, Turn

QUEUED_S = 900.0
"""How long a question may wait for others to be answered first."""
SAID_CHARACTERS = 2_000
"""How much of an answer in free words is in the sentence; the result has more."""
RESULT_CHARACTERS = 50_000


@dataclass(frozen=True)
class PeekQuestion:
    """A question that is under way."""

    spawn: str
    model: str
    timeout_s: float
    until: datetime


class PeekRequests:
    def __init__(self, queries: QueryRunner) -> None:
        self._queries = queries
        self._under_way: dict[str, PeekQuestion] = {}
        """By the id of the command. It is not remembered: a restarted monitor asks again."""

    def begin(self, turn: Turn) -> None:
        """Keep the questions under way from expiring, and cancel those whose command is gone."""
        turn.commands += [pending for pending in turn.late_commands if pending.request.id in self._under_way]
        open_ids = {pending.request.id for pending in turn.commands}
        for command_id in [command_id for command_id in self._under_way if command_id not in open_ids]:
            self._cancel(command_id)

    def serve(
        self,
        turn: Turn,
        fleet: Fleet,
        pending: PendingCommand,
        peek: Peek,
        subject: Subject,
        record: AgentRecord | None,
    ) -> None:
        """Ask about an agent that runs, or reply with the answer once it is there."""
        command_id, own = pending.request.id, of_session(record, subject.spawn)
        if command_id not in self._under_way and (why := self._ask(turn, fleet, command_id, peek, subject, own)):
            turn.reply(pending, why, code="refused")
            return
        question = self._under_way[command_id]
        if question.spawn != subject.spawn:
            self.refuse(turn, pending, f"{peek.agent} was started anew")
        elif (answered := self._queries.take(_key(command_id))) is not None:
            del self._under_way[command_id]
            _reply(turn, pending, peek, answered, question)
        else:
            by = f" by {question.model}" if question.model else ""
            said = f"a copy of {peek.agent}'s conversation is asked{by}, for up to {question.timeout_s:g} s"
            turn.defer(pending, said, question.until)

    def refuse(self, turn: Turn, pending: PendingCommand, why: str, *, code: str = "refused") -> None:
        """Refuse a question about an agent that does not run, or not any more."""
        was_asked = pending.request.id in self._under_way
        self._cancel(pending.request.id)
        turn.reply(pending, f"its session ended before it answered: {why}" if was_asked else why, code=code)

    def _ask(
        self, turn: Turn, fleet: Fleet, command_id: str, peek: Peek, subject: Subject, record: AgentRecord | None
    ) -> str:
        """Ask, or give the reason why not."""
        if why := why_not(fleet, peek.agent, subject.backend, record):
            return why
        options = QueryOptions(peek.question, peek.model, peek.timeout_s)
        try:
            query = query_for(fleet, peek.agent, subject.backend, record, os.environ, options)
        except MusterError as error:
            return f"{peek.agent} can't be asked: {error}"
        until = turn.now + timedelta(seconds=query.timeout_s + QUEUED_S)
        self._queries.ask(_key(command_id), query, soon=True)
        self._under_way[command_id] = PeekQuestion(subject.spawn, query.model, query.timeout_s, until)
        return ""

    def _cancel(self, command_id: str) -> None:
        if self._under_way.pop(command_id, None) is not None:
            self._queries.cancel(_key(command_id))


def _reply(turn: Turn, pending: PendingCommand, peek: Peek, answered: TimedResult, question: PeekQuestion) -> None:
    agent = peek.agent
    match answered.result:
        case ForkSilent():
            turn.reply(pending, f"{agent} did not answer within {question.timeout_s:g} s", code="refused")
        case ForkFailed(reason=reason, limited=limited):
            what = "the model that would answer is limited" if limited else f"{agent} can't be asked"
            turn.reply(pending, f"{what}: {reason}", code="refused")
        case ForkAnswer(text=text, structured=structured):
            known = read_answer(text, structured) if peek.question is None else None
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


def _key(command_id: str) -> str:
    return f"peek:{command_id}"
