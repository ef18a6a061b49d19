"""The board: one card per agent, comments on what matters, a heartbeat. It only looks, and asks by commands.

A turn brings the records up to date, takes up events and people's comments, works out the cards that may have changed,
and hands everything to the page.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import ClassVar

from registry import AgentRecord
from services.board import loops
from services.board.cards import CardContext, update
from services.board.commentary import Commentary, NewComments, forget
from services.board.day import DAYS, SLICE_S, AgentDay, new_day
from services.board.documents import card_document, comment_document, fleet_document
from services.board.feed import BoardFeed
from services.board.memory import CARDS, FIGURES, LOOPS, BoardFigures, CardMemory, LoopProgress
from services.board.page_commands import PageCommands
from services.board.records import MirroredRecords, tells_of_an_end
from shared.client.presence import PresenceReport
from shared.contract.envelope import Data
from shared.contract.events.board import BoardHeartbeat
from shared.contract.states import CardColumn, CardState
from shared.contract.topics import CARD_STATE, SERVICE_STATE
from shared.fleet import Fleet, FleetFile
from shared.messaging.journal import Journal
from shared.runtime.memory import Memory
from shared.runtime.turn import Turn
from shared.system.git_branch import branch_of

HEARTBEAT = timedelta(minutes=5)
COALESCE_S = 0.05
"""Messages wait this long after a turn with changes, so that a burst becomes a few turns."""
BRANCHES_EVERY_S = 15.0
FORGOTTEN_AFTER_S = 600.0
"""The comments of an agent that has no record any more are kept this long: its record may come a moment later."""


class Board:
    name: ClassVar[str] = "board"

    def __init__(
        self,
        fleet_file: FleetFile,
        journal: Journal,
        feed: BoardFeed,
        commands: PageCommands,
        tmux_fault: Callable[[], str] = lambda: "",
        serve_page: Callable[[], str] = lambda: "",
    ) -> None:
        """`tmux_fault` says why screens can't be read; `serve_page` serves the page if it is not, or says why it can't.

        Both say nothing while all is well.
        """
        self._fleet_file = fleet_file
        self._tmux_fault = tmux_fault
        self._serve_page = serve_page
        self._feed = feed
        self._commands = commands
        self._mirror = MirroredRecords(journal)
        self._presence = PresenceReport()
        self._branches: dict[str, str | None] = {}
        self._branches_at = 0.0
        self._fleet: Fleet | None = None
        self._all_dirty = True
        self._fleet_is_shown = False
        self._dropped: set[str] = set()
        """Cards that were removed since the last poll, which removes them again: a turn may not have been committed."""
        self._outside: tuple[bool, str, str] | None = None
        """Whether the broker answers, and what is wrong with tmux and the fleet file, as it was shown last."""
        self._commentary = Commentary()
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

    @property
    def records(self) -> Mapping[str, AgentRecord]:
        """The agents' records. For any thread."""
        return self._mirror.records

    def backend_of(self, agent: str) -> str | None:
        """What an agent runs on. For any thread."""
        card = self._cards.get(agent)
        return card.backend if card is not None else None

    def step(self, turn: Turn) -> None:
        self._fleet_file.refresh()
        dirty, is_all_dirty = self._look(turn)
        self._all_dirty = True  # until this turn is through
        context = CardContext.of(self._fleet_file.fleet, self._mirror.records, self._branches)
        comments = self._commentary.observe(turn, context)
        comments += self._commentary.answer(turn, context, self._cards)
        comments += self._commentary.sum_up(turn)
        dirty |= {card for card, _ in comments} | self._agents_in(turn)
        changed = self._update_cards(turn, context, context.agents if is_all_dirty else dirty)
        gone = self._drop_cards(turn, context)
        self._beat(turn)
        self._commands.send(turn)
        # After a turn that did not come to its end, the page may have missed anything.
        self._show(turn, context, self._cards if is_all_dirty else changed, gone, comments)
        if fault := self._serve_page():
            turn.degrade(fault)  # the cards are kept all the same
        if changed or gone or comments:
            turn.coalesce(COALESCE_S)
        self._all_dirty = False

    # --- looking ---

    def _look(self, turn: Turn) -> tuple[set[str], bool]:
        """Bring records, presence and branches up to date; returns whose cards may change, and whether all may."""
        fleet, dirty = self._fleet_file.fleet, set[str]()
        # Whether a turn was committed shows in the next one.
        is_lost = any(turn.memory.find(CARDS, agent) != memory for agent, memory in self._remembered.items())
        is_all_dirty = self._all_dirty or is_lost or self._fleet is not fleet
        self._fleet = fleet
        limits = _limits(self._mirror)
        if turn.poll or is_all_dirty or any(map(tells_of_an_end, turn.hints)):
            dirty |= self._mirror.read_all() | self._read_branches(turn.now.timestamp())
        for hint in turn.hints:
            if hint.row is SERVICE_STATE:
                self._presence.take(hint.topic, hint.payload, fleet.space.prefix)
                self._fleet_is_shown = False
            elif (agent := self._mirror.take(hint)) is not None:
                dirty.add(agent)
        outside = (turn.broker_answers, self._tmux_fault(), self._fleet_file.fault)
        if turn.poll or is_all_dirty or outside != self._outside:
            self._fleet_is_shown = False
        self._outside = outside
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
            seen = before if not is_first else None
            days[agent] = day.until(now, seen.column) if seen is not None else day.after_absence(now)
            turn.memory.put(DAYS, days[agent], agent)
        self.days = days

    def _drop_cards(self, turn: Turn, context: CardContext) -> set[str]:
        """Remove the cards of agents that are neither declared nor recorded any more."""
        gone = self._cards.keys() - set(context.agents)
        for agent in gone:
            del self._cards[agent]
        if gone:
            self.days = {agent: day for agent, day in self.days.items() if agent not in gone}
        again = self._dropped - self._cards.keys() if turn.poll else set()
        for agent in sorted(gone | again):
            turn.clear_state(CARD_STATE, card=agent)
        self._dropped = set(gone) if turn.poll else self._dropped | gone
        if turn.poll:
            self._forget(turn, context)
        return gone | again

    def _forget(self, turn: Turn, context: CardContext) -> None:
        """Forget what is remembered of agents that are gone for good."""
        known, now = set(context.agents), turn.now.timestamp()
        for agent, memory in turn.memory.all(CARDS).items():
            last = max(memory.since, *memory.commented[-1:], 0.0)
            if agent not in known and not 0 <= now - last < FORGOTTEN_AFTER_S:
                forget(turn, agent)

    # --- the heartbeat and the page ---

    def _beat(self, turn: Turn) -> None:
        now = turn.now.timestamp()
        figures = turn.memory.find(FIGURES) or BoardFigures(since=now)
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
        cards: Mapping[str, CardState],
        gone: set[str],
        comments: NewComments,
    ) -> None:
        """Hand what is new to the page."""
        if not self._fleet_is_shown:
            self._fleet_is_shown = True
            presence = self._presence if turn.broker_answers else None
            self._feed.put_fleet(fleet_document(context, presence, self._fleet_file.fault, self._tmux_fault()))
        self._feed.put_cards({agent: card_document(card) for agent, card in cards.items()}, gone)
        self._feed.put_loops(
            [
                loops.loop_document(name, loop, turn.memory.find(LOOPS, name) or LoopProgress())
                for name, loop in context.fleet.declared.loops.items()
            ]
        )
        self._feed.add_comments(comment_document(agent, comment) for agent, comment in comments)


def _limits(mirror: MirroredRecords) -> list[tuple[str, str | None, str | None, datetime | None]]:
    """What the cards of other agents of the same account show of a limit."""
    found = [(agent, record) for agent, record in mirror.records.items() if record.limit]
    return [(agent, record.account, record.limit, record.limit_resets) for agent, record in found]
