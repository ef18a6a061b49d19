"""What is to be typed into each agent: keys and answers to dialogs first, then texts, one at a time.

A turn works in rounds: a round remembers what it is about to type, the turn commits that, and the next round types it.
"""

from collections.abc import Callable, Sequence
from datetime import timedelta

from services.spawner.commands.replies import defer
from services.spawner.typing.delivery import DELIVERIES
from services.spawner.typing.keys import KEY_PRESSES, KeyPresses, purpose_of
from services.spawner.typing.texts import PendingText, StepResult, TextDelivery
from services.spawner.view import SpawnerView
from shared.contract.commands import AgentCommand, Send
from shared.contract.states import Desired
from shared.fleet import AgentKind
from shared.runtime.turn import PendingCommand, Turn
from shared.system.tmux import Pane

ROUNDS = 3
"""How often a turn commits for typing, at most."""
FIRST = "something else is typed into this agent first"


class TypingQueue:
    def __init__(self, texts: TextDelivery, presses: KeyPresses) -> None:
        self._texts = texts
        self._presses = presses

    def serve(self, view: SpawnerView, pending: Sequence[PendingCommand]) -> None:
        """Do what can be done now about everything that is to be typed."""
        wanted: dict[str, list[PendingCommand]] = {}
        for each in pending:
            if isinstance(each.command, AgentCommand):
                wanted.setdefault(each.command.agent, []).append(each)
        prompted = [agent for agent in view.panes if view.running(agent) and view.known(agent).session.prompt]
        agents = list(dict.fromkeys([*wanted, *prompted]))
        for number in range(ROUNDS):
            if number:
                view.turn.checkpoint()
            agents = [agent for agent in agents if self._serve(view, agent, _open(view.turn, wanted.get(agent, [])))]
            if not agents:
                return

    def _serve(self, view: SpawnerView, agent: str, pending: Sequence[PendingCommand]) -> bool:
        """One round for one agent; True if it is about to type."""
        pane = view.running(agent)
        if pane is None or pane.spawn is None:
            self._answer_without_session(view, agent, pending)
            return False
        if agent in view.fleet.agents and view.fleet.agents[agent].kind is AgentKind.SERVICE:
            for each in pending:
                view.turn.reply(each, f"{agent} is a side service: nobody types into it", code="refused")
            return False
        pending = [each for each in pending if not self._is_for_another(view, each, pane.spawn)]
        return self._step(view, agent, pane, pending)

    def _step(self, view: SpawnerView, agent: str, pane: Pane, pending: Sequence[PendingCommand]) -> bool:
        """Take the next step of what is typed first, and defer the others; True if it is about to type."""
        prompt = view.known(agent).session.prompt
        first_prompt = PendingText(id=f"prompt-{pane.spawn}", text=prompt) if prompt else None
        text, press = typed_first(pending, first_prompt, self._texts.under_way(view, agent))
        served: set[str] = set()
        text_result = press_result = StepResult()
        if text is not None:
            text_result = _attempt(view, agent, text.pending, lambda: self._texts.step(view, agent, pane, text))
            served.add(text.id)
        if press is not None and (text is None or text_result.waits_for):
            press_result = _attempt(view, agent, press, lambda: self._presses.step(view, agent, pane, press))
            served.add(press.request.id)
        others = [each for each in pending if each.request.id not in served]
        is_prompted = text is not None and text.pending is None and not view.known(agent).session.prompt
        if others and (is_prompted or served & view.turn.replies.keys()):
            view.turn.look_again_at(view.turn.now)  # the next one is due
        reason = f"{FIRST}, which waits: {text_result.waits_for}" if text_result.waits_for else FIRST
        for each in others:
            if isinstance(each.command, Send) and view.now - each.request.asked > each.command.wait_s:
                view.turn.reply(each, f"it was not typed: {reason}", code="refused")
            else:
                defer(view, each, reason)
        return text_result.is_intent or press_result.is_intent

    def _answer_without_session(self, view: SpawnerView, agent: str, pending: Sequence[PendingCommand]) -> None:
        """A text waits for an agent that is about to be restarted; everything else was meant for what has ended."""
        returns = view.wish(agent) is Desired.RUNNING and not view.known(agent).gave_up
        returns = returns and agent in view.fleet.agents and view.fleet.agents[agent].kind is not AgentKind.TASK
        for each in pending:
            in_time = isinstance(each.command, Send) and view.now - each.request.asked <= each.command.wait_s
            in_time = in_time and getattr(each.command, "spawn", None) is None
            if returns and in_time and _is_text(each):
                defer(view, each, f"the text waits: {agent} is not running, and is about to be started again")
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


def typed_first(
    pending: Sequence[PendingCommand], prompt: PendingText | None, under_way: str | None
) -> tuple[PendingText | None, PendingCommand | None]:
    """What comes first: a text, a press, or a text and the press that follows if the text has to wait. Pure.

    A press comes before texts; but nothing comes between the stages of the text that is under way, except the answer to
    a dialog that blocks it.
    """
    press = next((each for each in pending if not _is_text(each)), None)
    sent = (PendingText.of(each.command, each) for each in pending if isinstance(each.command, Send) and _is_text(each))
    texts = [*([prompt] if prompt else []), *sent]
    text = next((each for each in texts if each.id == under_way), texts[0] if texts else None)
    if text and press and not (text.id == under_way and purpose_of(press) == "keys"):
        return None, press
    return text, press


def is_typing(turn: Turn, agent: str, request_id: str) -> bool:
    """Whether the typing that this command asked for has begun."""
    under_way = (turn.memory.find(DELIVERIES, agent), turn.memory.find(KEY_PRESSES, agent))
    return any(each is not None and each.id == request_id for each in under_way)


def forget_typing(turn: Turn, agent: str) -> None:
    turn.memory.put(DELIVERIES, None, agent)
    turn.memory.put(KEY_PRESSES, None, agent)


def _attempt(
    view: SpawnerView, agent: str, pending: PendingCommand | None, step: Callable[[], StepResult]
) -> StepResult:
    result = StepResult()
    with view.turn.isolated(f"the first prompt of {agent}") if pending is None else view.turn.answering(pending):
        result = step()
    return result


def _open(turn: Turn, pending: Sequence[PendingCommand]) -> list[PendingCommand]:
    return [each for each in pending if each.request.id not in turn.replied | turn.replies.keys()]


def _is_text(pending: PendingCommand) -> bool:
    return isinstance(pending.command, Send) and pending.command.text is not None
