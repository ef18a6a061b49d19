"""The board: one card per agent, comments on what matters, a heartbeat. It only looks, and asks by commands.

A turn brings the records up to date, takes up events and people's comments, works out the cards that may have changed,
and hands everything to the page.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar

from services.board import loops
from services.board.cards import CardContext, update
from services.board.comments import Discussion, room_at
from services.board.day import DAYS, SLICE_S, AgentDay, new_day
from services.board.documents import card_document, comment_document, fleet_document
from services.board.feed import BoardFeed
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
from services.board.page_commands import PageCommands
from services.board.records import MirroredRecords
from shared.client.presence import PresenceReport
from shared.contract.commands import Comment
from shared.contract.envelope import Data
from shared.contract.events.activity import ApprovalNeeded
from shared.contract.events.board import (
    BoardHeartbeat,
    CardCommented,
    CardEvent,
    CardObserved,
    MonitoringResumed,
    MonitoringStopped,
)
from shared.contract.events.drift import DriftEvent, DriftResolved
from shared.contract.events.lifecycle import AgentDeleted
from shared.contract.events.loops import LoopEvent
from shared.contract.states import CardColumn, CardQuestion, CardState
from shared.contract.topics import CARD_STATE, SERVICE_STATE
from shared.fleet import Fleet, FleetFile
from shared.fleet.faults import allowed
from shared.messaging.cursors import ReceivedEvent
from shared.messaging.journal import Journal
from shared.runtime.memory import Memory
from shared.runtime.turn import PendingCommand, Turn
from shared.system.git_branch import branch_of

HEARTBEAT = timedelta(minutes=5)
COALESCE_S = 0.08
"""Messages wait this long after a turn with changes, so that a burst becomes a few turns."""
BRANCHES_EVERY_S = 15.0
FORGOTTEN_AFTER_S = 600.0
"""The comments of an agent that has no record any more are kept this long: its record may come a moment later."""


class Board:
    name: ClassVar[str] = "board"

    def __init__(self, fleet_file: FleetFile, journal: Journal, feed: BoardFeed, commands: PageCommands) -> None:
        self._fleet_file = fleet_file
        self._feed = feed
        self._commands = commands
        self._mirror = MirroredRecords(journal)
        self._presence = PresenceReport()
        self._branches: dict[str, str | None] = {}
        self._branches_at = 0.0
        self._fleet: Fleet | None = None
        self._all_dirty = True
        self._fleet_is_shown = self._cards_are_shown = self._broker_answered = False
        self._held_back: set[str] | None = None
        """The agents whose cards have something to sum up; None: to be found in the memory."""
        self._remembered: dict[str, CardMemory] = {}
        """What the last turn remembered of cards. It counts if the next turn finds it committed."""
        self._slice = 0
        self.days: Mapping[str, AgentDay] = {}
        """Replaced as a whole: the page's thread reads it."""
        self._cards: dict[str, CardState] = dict(self._first_cards(Memory(journal.memory())))

    def _first_cards(self, memory: Memory) -> Iterator[tuple[str, CardState]]:
        """The cards as they were last: a connection may be made before the first turn, and shows them."""
        context = CardContext.of(self._fleet_file.fleet, self._mirror.records, self._branches)
        for agent in context.agents:
            known = memory.find(CARDS, agent)
            if known is not None:
                yield agent, update(context, agent, known, datetime.now(UTC))[0]

    def states(self) -> Iterable[Data]:
        return list(self._cards.values())

    def step(self, turn: Turn) -> None:
        self._fleet_file.refresh()
        dirty, is_all_dirty = self._look(turn)
        self._all_dirty = True  # until this turn is through
        context = CardContext.of(self._fleet_file.fleet, self._mirror.records, self._branches)
        comments = self._take_up_events(turn, context)
        comments += self._answer(turn, context)
        comments += self._sum_up(turn)
        dirty |= {card for card, _ in comments} | self._agents_in(turn)
        changed = self._update_cards(turn, context, context.agents if is_all_dirty else dirty)
        gone = self._drop_cards(turn, context)
        self._beat(turn)
        self._commands.send(turn)
        self._show(turn, context, changed, gone, comments)
        if changed or gone or comments:
            turn.coalesce(COALESCE_S)
        self._all_dirty = False

    # --- looking ---

    def _look(self, turn: Turn) -> tuple[set[str], bool]:
        """Bring records, presence and branches up to date; returns the agents whose cards may change, and if all may."""
        fleet, dirty = self._fleet_file.fleet, set[str]()
        # Whether a turn was committed shows in the next one.
        is_lost = any(turn.memory.find(CARDS, agent) != memory for agent, memory in self._remembered.items())
        is_all_dirty = self._all_dirty or is_lost or self._fleet is not fleet
        self._fleet = fleet
        limits = _limits(self._mirror)
        if turn.poll or is_all_dirty:
            dirty |= self._mirror.read_all() | self._read_branches(turn.now.timestamp())
        for hint in turn.hints:
            if hint.row is SERVICE_STATE:
                self._presence.take(hint.topic, hint.payload, fleet.space.prefix)
                self._fleet_is_shown = False
            elif (agent := self._mirror.take(hint)) is not None:
                dirty.add(agent)
        if turn.poll or is_all_dirty or turn.broker_answers is not self._broker_answered:
            self._fleet_is_shown = False
        self._broker_answered = turn.broker_answers
        # A limit holds all agents of its account.
        return dirty, is_all_dirty or _limits(self._mirror) != limits

    def _read_branches(self, now: float) -> set[str]:
        if 0 <= now - self._branches_at < BRANCHES_EVERY_S:
            return set()
        self._branches_at = now
        found = {agent: branch_of(Path(record.workspace)) for agent, record in self._mirror.records.items()}
        changed = {agent for agent, branch in found.items() if self._branches.get(agent) != branch}
        self._branches = found
        return changed

    def _agents_in(self, turn: Turn) -> set[str]:
        return {agent for received in turn.events if (agent := getattr(received.envelope.data, "agent", None))}

    # --- comments ---

    def _take_up_events(self, turn: Turn, context: CardContext) -> list[tuple[str, StoredComment]]:
        figures = turn.memory.find(FIGURES) or BoardFigures(since=turn.now.timestamp())
        made: list[tuple[str, StoredComment]] = []
        for received in turn.events:
            with turn.isolated(received.envelope.subject):
                figures = _counted(figures, received)
                self._note(turn, received)
                if received.envelope.time.timestamp() >= figures.since:
                    made += self._comment_on(turn, context, received)
        figures = replace(figures, comments=figures.comments + len(made))
        turn.memory.put(FIGURES, figures)
        return made

    def _note(self, turn: Turn, received: ReceivedEvent) -> None:
        """Remember what the card or the page shows of an event."""
        match received.envelope.data:
            case ApprovalNeeded() as asked:
                question = CardQuestion.model_validate(asked, from_attributes=True)
                known = turn.memory.find(CARDS, asked.agent) or CardMemory()
                turn.memory.put(CARDS, replace(known, question=question, asked_by=asked.spawn), asked.agent)
            case LoopEvent(loop=name):
                progress = turn.memory.find(LOOPS, name) or LoopProgress()
                turn.memory.put(LOOPS, loops.after(progress, received.envelope), name)
            case AgentDeleted(agent=agent):
                for table in (CARDS, COMMENTS, DAYS):
                    turn.memory.put(table, None, agent)  # type: ignore[misc]

    def _comment_on(
        self, turn: Turn, context: CardContext, received: ReceivedEvent
    ) -> Iterator[tuple[str, StoredComment]]:
        envelope, now = received.envelope, turn.now.timestamp()
        for news in news_in(envelope.data, context.fleet):
            discussion = _discussion(turn, news.card).observe(news, envelope.time.timestamp(), now)
            yield from self._store(turn, news.card, discussion, cause=envelope.id)

    def _sum_up(self, turn: Turn) -> list[tuple[str, StoredComment]]:
        """Sum up what was held back on cards, as soon as there is room for a comment."""
        made: list[tuple[str, StoredComment]] = []
        if self._held_back is None:
            self._held_back = {agent for agent, memory in turn.memory.all(CARDS).items() if memory.held_back}
        for agent in sorted(self._held_back):
            made += self._store(turn, agent, _discussion(turn, agent).sum_up(turn.now.timestamp()))
            memory = turn.memory.find(CARDS, agent)
            if memory is not None and memory.held_back:
                turn.look_again_at(datetime.fromtimestamp(room_at(memory), UTC) + timedelta(seconds=0.1))
        return made

    def _store(
        self, turn: Turn, agent: str, discussion: Discussion, cause: str | None = None
    ) -> Iterator[tuple[str, StoredComment]]:
        discussion = discussion.prune(turn.now.timestamp())
        before = turn.memory.find(CARDS, agent) or CardMemory()
        turn.memory.put(CARDS, discussion.memory, agent)
        if self._held_back is not None:
            (self._held_back.add if discussion.memory.held_back else self._held_back.discard)(agent)
        turn.memory.put(COMMENTS, CardComments(discussion.comments) if discussion.comments else None, agent)
        for comment in discussion.new:
            turn.emit(_event(agent, comment, before.missed), cause=cause)
            yield agent, comment

    def _answer(self, turn: Turn, context: CardContext) -> list[tuple[str, StoredComment]]:
        """Take up what people say on cards."""
        made: list[tuple[str, StoredComment]] = []
        for pending in turn.commands:
            if isinstance(pending.command, Comment):
                with turn.answering(pending):
                    made += self._comment(turn, context, pending, pending.command)
        return made

    def _comment(
        self, turn: Turn, context: CardContext, pending: PendingCommand, command: Comment
    ) -> list[tuple[str, StoredComment]]:
        agent = command.agent
        if agent not in context.agents:
            said = f"there is no card of {agent!r}; {allowed(agent, context.agents)}"
            turn.reply(pending, said, code="unknown_agent")
            return []
        who = (command.by or "somebody").removeprefix(f"{self.name}: ")
        card = self._cards.get(agent)
        before = _discussion(turn, agent)
        after = before.say(command.text, who, turn.now.timestamp(), card.headline if card is not None else "")
        made = list(self._store(turn, agent, after, cause=pending.request.id))
        turn.reply(pending, _said(agent, before, after), card=agent, monitoring=after.memory.is_monitored)
        return made

    # --- cards ---

    def _update_cards(self, turn: Turn, context: CardContext, agents: Iterable[str]) -> dict[str, CardState]:
        """Work out these cards, and publish those that changed."""
        changed: dict[str, CardState] = {}
        self._remembered = {}
        for agent in agents:
            if agent not in context.records and agent not in context.fleet.agents:
                continue
            with turn.isolated(agent):
                before = turn.memory.find(CARDS, agent) or CardMemory()
                card, memory = update(context, agent, before, turn.now)
                turn.memory.put(CARDS, memory, agent)
                if memory != before:
                    self._remembered[agent] = memory
                known = self._cards.get(agent)
                if known != card:
                    turn.publish_state(card)
                    changed[agent] = card
        self._pass_time(turn, changed)
        self._cards |= changed
        return changed

    def _pass_time(self, turn: Turn, changed: Mapping[str, CardState]) -> None:
        """Note for the day how long each agent was in its column, when it leaves it and at the end of each slice."""
        now = turn.now.timestamp()
        is_first, is_over = self._slice == 0, self._slice != int(now // SLICE_S)
        self._slice = int(now // SLICE_S)
        days = dict(self.days)
        for agent in {*self._cards, *changed} if is_over else changed:
            before, after = self._cards.get(agent), changed.get(agent)
            if not is_over and before is not None and after is not None and before.column is after.column:
                continue
            day = days.get(agent) or turn.memory.find(DAYS, agent) or new_day(now)
            if is_first or before is None:
                day = day.after_absence(now)
            else:
                day = day.until(now, before.column)
            days[agent] = day
            turn.memory.put(DAYS, day, agent)
        self.days = days

    def _drop_cards(self, turn: Turn, context: CardContext) -> list[str]:
        """Remove the cards of agents that are neither declared nor recorded any more."""
        gone = [agent for agent in self._cards if agent not in context.records and agent not in context.fleet.agents]
        for agent in gone:
            del self._cards[agent]
            turn.clear_state(CARD_STATE, card=agent)
        if gone:
            self.days = {agent: day for agent, day in self.days.items() if agent not in gone}
        if turn.poll:
            self._forget(turn, context)
        return gone

    def _forget(self, turn: Turn, context: CardContext) -> None:
        """Forget what is remembered of agents that are gone for good."""
        known, now = set(context.agents), turn.now.timestamp()
        for agent, memory in turn.memory.all(CARDS).items():
            last = max(memory.since, *memory.commented[-1:], 0.0)
            if agent not in known and not 0 <= now - last < FORGOTTEN_AFTER_S:
                for table in (CARDS, COMMENTS, DAYS):
                    turn.memory.put(table, None, agent)  # type: ignore[misc]

    # --- the heartbeat and the page ---

    def _beat(self, turn: Turn) -> None:
        figures = turn.memory.find(FIGURES)
        assert figures is not None, "the events of this turn were taken up before"
        now = turn.now.timestamp()
        if 0 <= now - figures.beat_at < HEARTBEAT.total_seconds():
            turn.look_again_at(datetime.fromtimestamp(figures.beat_at, UTC) + HEARTBEAT)
            return
        columns = Counter(card.column for card in self._cards.values())
        asked = [card.since.timestamp() for card in self._cards.values() if card.column is CardColumn.NEEDS_YOU]
        turn.emit(
            BoardHeartbeat(
                cards=len(self._cards),
                columns={column.value: columns[column] for column in CardColumn},
                drifts=figures.drifts,
                last_drift=datetime.fromtimestamp(figures.last_drift, UTC) if figures.last_drift else None,
                comments=figures.comments,
                needs_you_s=round(max(0.0, now - min(asked)), 1) if asked else None,
                pages=self._feed.watchers,
            )
        )
        turn.memory.put(FIGURES, replace(figures, beat_at=now))
        turn.look_again_at(turn.now + HEARTBEAT)

    def _show(
        self,
        turn: Turn,
        context: CardContext,
        changed: Mapping[str, CardState],
        gone: list[str],
        comments: list[tuple[str, StoredComment]],
    ) -> None:
        """Hand what is new to the page."""
        if not self._fleet_is_shown:
            self._fleet_is_shown = True
            presence = self._presence if turn.broker_answers else None
            self._feed.put_fleet(fleet_document(context, presence, self._fleet_file.fault))
        if not self._cards_are_shown:
            self._cards_are_shown, changed = True, self._cards
        self._feed.put_cards({agent: card_document(card) for agent, card in changed.items()}, gone)
        self._feed.put_loops(
            [
                loops.loop_document(name, loop, turn.memory.find(LOOPS, name) or LoopProgress())
                for name, loop in context.fleet.declared.loops.items()
            ]
        )
        self._feed.add_comments(comment_document(agent, comment) for agent, comment in comments)


def _limits(mirror: MirroredRecords) -> set[tuple[str | None, str | None]]:
    return {(record.account, record.limit) for record in mirror.records.values() if record.limit}


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


def _event(agent: str, comment: StoredComment, missed: Mapping[str, int]) -> CardEvent:
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
            return MonitoringResumed(**common, missed=dict(missed))
    return CardObserved(
        **common,
        about=comment.about,
        tells=comment.tone,
        needs=comment.urgency,
        recorded=comment.recorded,
        found=comment.found,
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
