"""Typing for people: keys and answers to dialogs first, then texts, one thing at a time for each agent."""

from collections.abc import Callable, Sequence
from datetime import timedelta

from services.spawner.commands.replies import hold
from services.spawner.typing.keys import KeyPresses, purpose_of
from services.spawner.typing.texts import PendingText, TextDelivery
from services.spawner.view import SpawnerView
from shared.contract.commands import AgentCommand, Send
from shared.contract.states import Desired
from shared.fleet import AgentKind
from shared.runtime.turn import PendingCommand

FIRST = "something else is typed into this agent first"


class TypingQueue:
    def __init__(self, texts: TextDelivery, presses: KeyPresses) -> None:
        self._texts = texts
        self._presses = presses

    def serve(self, view: SpawnerView, pending: Sequence[PendingCommand]) -> None:
        """Go one step on with everything that is to be typed."""
        wanted: dict[str, list[PendingCommand]] = {}
        for each in pending:
            if isinstance(each.command, AgentCommand):
                wanted.setdefault(each.command.agent, []).append(each)
        prompted = [agent for agent in view.panes if view.running(agent) and view.known(agent).prompt]
        for agent in dict.fromkeys([*wanted, *prompted]):
            self._serve(view, agent, wanted.get(agent, []))

    def _serve(self, view: SpawnerView, agent: str, pending: Sequence[PendingCommand]) -> None:
        pane = view.running(agent)
        if pane is None or pane.spawn is None:
            self._serve_nobody(view, agent, pending)
            return
        if agent in view.fleet.agents and view.fleet.agents[agent].kind is AgentKind.SERVICE:
            for each in pending:
                view.turn.reply(each, f"{agent} is a side service: nobody types into it", code="refused")
            return
        pending = [each for each in pending if not self._is_for_another(view, each, pane.spawn)]
        presses = [each for each in pending if not _is_text(each)]
        texts = [
            PendingText.of(each.command, each) for each in pending if isinstance(each.command, Send) and _is_text(each)
        ]
        if prompt := view.known(agent).prompt:
            texts.insert(0, PendingText(id=f"prompt-{pane.spawn}", text=prompt))
        under_way = self._texts.is_under_way(view, agent)
        texts.sort(key=lambda text: text.id != under_way)
        # Nothing comes between the stages of a text, but what answers a dialog that it waits for.
        text_first = bool(texts) and (not presses or (texts[0].id == under_way and purpose_of(presses[0]) == "keys"))
        served: set[str] = set()
        waits_for: str | None = None
        if text_first:
            waits_for = self._attempt(
                view, agent, texts[0].pending, lambda: self._texts.step(view, agent, pane, texts[0])
            )
            served.add(texts[0].id)
        if presses and (not text_first or waits_for):
            self._attempt(view, agent, presses[0], lambda: self._presses.step(view, agent, pane, presses[0]))
            served.add(presses[0].request.id)
        first = f"{FIRST}, which waits: {waits_for}" if waits_for else FIRST
        for each in pending:
            if each.request.id in served:
                continue
            if isinstance(each.command, Send) and view.now - each.request.asked > each.command.wait_s:
                view.turn.reply(each, f"it was not typed: {first}", code="refused")
            else:
                hold(view, each, first)

    def _serve_nobody(self, view: SpawnerView, agent: str, pending: Sequence[PendingCommand]) -> None:
        """A text waits for an agent that is about to be started again; everything else was meant for what has ended."""
        returns = view.wish(agent) is Desired.RUNNING and not view.known(agent).gave_up
        returns = returns and agent in view.fleet.agents and view.fleet.agents[agent].kind is not AgentKind.TASK
        for each in pending:
            in_time = isinstance(each.command, Send) and view.now - each.request.asked <= each.command.wait_s
            in_time = in_time and getattr(each.command, "spawn", None) is None
            if returns and in_time and _is_text(each):
                hold(view, each, f"the text waits: {agent} is not running, and is about to be started again")
                view.turn.look_again_at(view.turn.now + timedelta(seconds=1))
            else:
                said = f"{agent} is not running, so nothing can be typed into it; start it first"
                view.turn.reply(each, said, code="refused")

    def _is_for_another(self, view: SpawnerView, pending: PendingCommand, spawn: str) -> bool:
        """Whether it was meant for a session that has ended since: then it is refused."""
        meant = getattr(pending.command, "spawn", None)
        if meant in (None, spawn):
            return False
        view.turn.reply(pending, f"it was meant for the session {meant}, and another runs since", code="refused")
        return True

    def _attempt(
        self, view: SpawnerView, agent: str, pending: PendingCommand | None, step: Callable[[], str | None]
    ) -> str | None:
        waits: str | None = None
        with view.turn.isolated(agent) if pending is None else view.turn.answering(pending):
            waits = step()
        return waits


def _is_text(pending: PendingCommand) -> bool:
    return isinstance(pending.command, Send) and pending.command.text is not None
