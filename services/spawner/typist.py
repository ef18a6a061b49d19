"""Typing for people: keys and answers to dialogs first, then texts, one thing at a time for each agent."""

from collections.abc import Callable, Sequence
from datetime import timedelta

from services.spawner.asking import hold, sentence
from services.spawner.presses import Presses, purpose_of
from services.spawner.scene import Scene
from services.spawner.texts import Text, Texts
from shared.commands import AgentCommand, Send
from shared.errors import Retryable
from shared.fleet import Kind
from shared.states import Desired
from shared.turn import Asked

FIRST = "something else is typed into this agent first"


class Typist:
    def __init__(self, texts: Texts, presses: Presses) -> None:
        self._texts = texts
        self._presses = presses

    def serve(self, scene: Scene, asked: Sequence[Asked]) -> None:
        """Go one step on with everything that is to be typed."""
        wanted: dict[str, list[Asked]] = {}
        for each in asked:
            if isinstance(each.command, AgentCommand):
                wanted.setdefault(each.command.agent, []).append(each)
        prompted = [agent for agent in scene.panes if scene.running(agent) and scene.known(agent).prompt]
        for agent in dict.fromkeys([*wanted, *prompted]):
            self._serve(scene, agent, wanted.get(agent, []))

    def _serve(self, scene: Scene, agent: str, asked: Sequence[Asked]) -> None:
        pane = scene.running(agent)
        if pane is None or pane.spawn is None:
            self._serve_nobody(scene, agent, asked)
            return
        if agent in scene.fleet.agents and scene.fleet.agents[agent].kind is Kind.SERVICE:
            for each in asked:
                scene.turn.answer(each, f"{agent} is a side service: nobody types into it", code="refused")
            return
        asked = [each for each in asked if not self._is_for_another(scene, each, pane.spawn)]
        presses = [each for each in asked if not _is_text(each)]
        texts = [Text.of(each.command, each) for each in asked if isinstance(each.command, Send) and _is_text(each)]
        if prompt := scene.known(agent).prompt:
            texts.insert(0, Text(id=f"prompt-{pane.spawn}", text=prompt))
        under_way = self._texts.is_under_way(scene, agent)
        texts.sort(key=lambda text: text.id != under_way)
        # Nothing comes between the stages of a text, but what answers a dialog that it waits for.
        text_first = bool(texts) and (not presses or (texts[0].id == under_way and purpose_of(presses[0]) == "keys"))
        served: set[str] = set()
        waits_for: str | None = None
        if text_first:
            waits_for = self._attempt(scene, texts[0].asked, lambda: self._texts.step(scene, agent, pane, texts[0]))
            served.add(texts[0].id)
        if presses and (not text_first or waits_for):
            self._attempt(scene, presses[0], lambda: self._presses.step(scene, agent, pane, presses[0]))
            served.add(presses[0].request.id)
        first = f"{FIRST}, which waits: {waits_for}" if waits_for else FIRST
        for each in asked:
            if each.request.id in served:
                continue
            if isinstance(each.command, Send) and scene.now - each.request.asked > each.command.wait_s:
                scene.turn.answer(each, f"it was not typed: {first}", code="refused")
            else:
                hold(scene, each, first)

    def _serve_nobody(self, scene: Scene, agent: str, asked: Sequence[Asked]) -> None:
        """A text waits for an agent that is about to be started again; everything else was meant for what has ended."""
        returns = scene.wish(agent) is Desired.RUNNING and not scene.known(agent).gave_up
        returns = returns and agent in scene.fleet.agents and scene.fleet.agents[agent].kind is not Kind.TASK
        for each in asked:
            in_time = isinstance(each.command, Send) and scene.now - each.request.asked <= each.command.wait_s
            in_time = in_time and getattr(each.command, "spawn", None) is None
            if returns and in_time and _is_text(each):
                hold(scene, each, f"the text waits: {agent} is not running, and is about to be started again")
                scene.turn.again_at(scene.turn.now + timedelta(seconds=1))
            else:
                said = f"{agent} is not running, so nothing can be typed into it; start it first"
                scene.turn.answer(each, said, code="refused")

    def _is_for_another(self, scene: Scene, asked: Asked, spawn: str) -> bool:
        """Whether it was meant for a session that has ended since: then it is refused."""
        meant = getattr(asked.command, "spawn", None)
        if meant in (None, spawn):
            return False
        scene.turn.answer(asked, f"it was meant for the session {meant}, and another runs since", code="refused")
        return True

    def _attempt(self, scene: Scene, asked: Asked | None, step: Callable[[], str | None]) -> str | None:
        try:
            return step()
        except Retryable:
            raise
        except Exception as error:  # noqa: BLE001 - a text that can't be typed must not keep the others waiting
            if asked is None:
                scene.turn.complain(sentence(error))
            else:
                scene.turn.answer(asked, sentence(error), code="refused")
        return None


def _is_text(asked: Asked) -> bool:
    return isinstance(asked.command, Send) and asked.command.text is not None
