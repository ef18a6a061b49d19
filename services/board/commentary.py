"""Comments in a turn: what events are worth on cards, what people say there, and what was held back."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from services.board import loops
from services.board.cards import CardContext
from services.board.comments import HELD_BACK, Discussion, room_at
from services.board.day import DAYS
from services.board.memory import (
    CARDS,
    COMMENTS,
    FIGURES,
    LOOPS,
    BoardFigures,
    CardComments,
    CardMemory,
    LoopProgress,
    StoredComment,
)
from services.board.news import news_in
from shared.contract.commands import Comment
from shared.contract.events.activity import ApprovalNeeded
from shared.contract.events.board import CardCommented, CardEvent, CardObserved, MonitoringResumed, MonitoringStopped
from shared.contract.events.drift import DriftEvent, DriftResolved
from shared.contract.events.lifecycle import AgentDeleted, AgentExited
from shared.contract.events.loops import LoopEvent
from shared.contract.states import CardQuestion, CardState
from shared.fleet.faults import allowed
from shared.messaging.cursors import ReceivedEvent
from shared.runtime.turn import PendingCommand, Turn

NewComments = list[tuple[str, StoredComment]]
"""Comments that are new in a turn, each with its card."""


def forget(turn: Turn, agent: str) -> None:
    """Forget all that is remembered of an agent."""
    turn.memory.put(CARDS, None, agent)
    turn.memory.put(COMMENTS, None, agent)
    turn.memory.put(DAYS, None, agent)


class Commentary:
    """Takes up the events and the commands of a turn."""

    def __init__(self) -> None:
        self._held_back: set[str] | None = None
        """The agents whose cards have something to sum up; None: to be found in the memory."""

    def observe(self, turn: Turn, context: CardContext) -> NewComments:
        figures = turn.memory.find(FIGURES) or BoardFigures(since=turn.now.timestamp())
        # A clock that was set back would make history of all that is to come.
        figures = replace(figures, since=min(figures.since, turn.now.timestamp()))
        made: NewComments = []
        for received in turn.events:
            with turn.isolated(received.envelope.subject):
                figures = _counted(figures, received)
                self._note(turn, received)
                if received.envelope.time.timestamp() >= figures.since:
                    made += list(self._comment_on(turn, context, received))
        turn.memory.put(FIGURES, replace(figures, comments=figures.comments + len(made)))
        return made

    def _note(self, turn: Turn, received: ReceivedEvent) -> None:
        """Remember what the card or the page shows of an event."""
        match received.envelope.data:
            case ApprovalNeeded() as asked:
                question = CardQuestion.model_validate(asked, from_attributes=True)
                known = turn.memory.find(CARDS, asked.agent) or CardMemory()
                turn.memory.put(CARDS, replace(known, question=question, asked_by=asked.spawn), asked.agent)
            case AgentExited(agent=agent, last_words=words):
                known = turn.memory.find(CARDS, agent) or CardMemory()
                turn.memory.put(CARDS, replace(known, last_words=words), agent)
            case LoopEvent(loop=name):
                progress = turn.memory.find(LOOPS, name) or LoopProgress()
                turn.memory.put(LOOPS, loops.after(progress, received.envelope), name)
            case AgentDeleted(agent=agent):
                forget(turn, agent)

    def _comment_on(
        self, turn: Turn, context: CardContext, received: ReceivedEvent
    ) -> Iterator[tuple[str, StoredComment]]:
        envelope, now = received.envelope, turn.now.timestamp()
        for news in news_in(envelope.data, context.fleet):
            discussion = _discussion(turn, news.card).observe(news, envelope.time.timestamp(), now)
            yield from self._store(turn, news.card, discussion, cause=envelope.id)

    def sum_up(self, turn: Turn) -> NewComments:
        """Sum up what was held back on cards, as soon as there is room for a comment."""
        made: NewComments = []
        if self._held_back is None:
            self._held_back = {agent for agent, memory in turn.memory.all(CARDS).items() if memory.held_back}
        for agent in sorted(self._held_back):
            memory = turn.memory.find(CARDS, agent)
            if memory is None or not memory.held_back:
                self._held_back.discard(agent)
                continue
            summed_up = _discussion(turn, agent).sum_up(turn.now.timestamp())
            if summed_up.new:  # the agent stays in the set until a later turn finds that this one was committed
                made += self._store(turn, agent, summed_up)
            else:
                turn.look_again_at(datetime.fromtimestamp(room_at(memory), UTC) + timedelta(seconds=0.1))
        if made:
            figures = turn.memory.find(FIGURES) or BoardFigures(since=turn.now.timestamp())
            turn.memory.put(FIGURES, replace(figures, comments=figures.comments + len(made)))
        return made

    def _store(
        self, turn: Turn, agent: str, discussion: Discussion, cause: str | None = None
    ) -> Iterator[tuple[str, StoredComment]]:
        discussion = discussion.prune(turn.now.timestamp())
        before = turn.memory.find(CARDS, agent) or CardMemory()
        turn.memory.put(CARDS, discussion.memory, agent)
        if self._held_back is not None and discussion.memory.held_back:
            self._held_back.add(agent)
        turn.memory.put(COMMENTS, CardComments(discussion.comments) if discussion.comments else None, agent)
        for comment in discussion.new:
            turn.emit(_event(agent, comment, before), cause=cause)
            yield agent, comment

    def answer(self, turn: Turn, context: CardContext, cards: Mapping[str, CardState]) -> NewComments:
        """Take up what people say on cards."""
        made: NewComments = []
        for pending in turn.commands:
            if isinstance(pending.command, Comment):
                with turn.answering(pending):
                    made += self._comment(turn, context, pending, pending.command, cards)
        return made

    def _comment(
        self,
        turn: Turn,
        context: CardContext,
        pending: PendingCommand,
        command: Comment,
        cards: Mapping[str, CardState],
    ) -> NewComments:
        agent = command.agent
        if agent not in context.agents:
            said = f"there is no card of {agent!r}; {allowed(agent, context.agents)}"
            turn.reply(pending, said, code="unknown_agent")
            return []
        who = (command.by or "somebody").removeprefix(f"{turn.service}: ")
        card = cards.get(agent)
        before = _discussion(turn, agent)
        after = before.say(command.text, who, turn.now.timestamp(), card.headline if card is not None else "")
        made = list(self._store(turn, agent, after, cause=pending.request.id))
        turn.reply(pending, _said(agent, before, after), card=agent, monitoring=after.memory.is_monitored)
        return made


def _discussion(turn: Turn, agent: str) -> Discussion:
    comments = turn.memory.find(COMMENTS, agent)
    memory = turn.memory.find(CARDS, agent) or CardMemory()
    return Discussion(memory, comments.comments if comments is not None else ())


def _counted(figures: BoardFigures, received: ReceivedEvent) -> BoardFigures:
    event = received.envelope.data
    if not isinstance(event, DriftEvent) or isinstance(event, DriftResolved):
        return figures
    at = received.envelope.time.timestamp()
    return replace(figures, drifts=figures.drifts + 1, last_drift=max(at, figures.last_drift or 0.0))


def _event(agent: str, comment: StoredComment, before: CardMemory) -> CardEvent:
    """The event of a comment, with what it says of the comments that there were none of before."""
    common: dict[str, Any] = {
        "card": agent,
        "number": comment.number,
        "at": datetime.fromtimestamp(comment.time, UTC),
        "by": comment.by,
        "text": comment.text,
    }
    match comment.kind:
        case "said":
            return CardCommented(**common)
        case "monitoring_stopped":
            return MonitoringStopped(**common)
        case "monitoring_resumed":
            return MonitoringResumed(**common, missed=before.missed)
    return CardObserved(
        **common,
        about=comment.about,
        tells=comment.tone,
        needs=comment.urgency,
        recorded=comment.recorded,
        found=comment.found,
        held_back=sum(before.held_back.values()) if comment.about == HELD_BACK else 0,
    )


def _said(agent: str, before: Discussion, after: Discussion) -> str:
    """The reply to a person's comment."""
    if not after.new:
        memory = before.memory
        at = datetime.fromtimestamp(memory.stopped_at, UTC)
        if memory.is_monitored:
            return f"{agent} is monitored already"
        return f"monitoring of {agent} was stopped by {memory.stopped_by} at {at:%Y-%m-%d %H:%M:%S} UTC already"
    (comment,) = after.new
    if comment.kind == "monitoring_stopped":
        return f"{agent} is not monitored any more; comment `resume` to start it again"
    return comment.text if comment.kind == "monitoring_resumed" else f"the comment is on the card of {agent}"
