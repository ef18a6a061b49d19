"""Real agents that somebody started by hand: what they are is told by their processes, and by their own files which
conversation they are in. It is the right one if its transcript holds the prompt that was typed, and the last one typed.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from shared.agents.identity import ConversationIdentity, identify
from shared.agents.recognition import agent_in
from shared.agents.transcript import READERS, Speaker, same_prompt
from shared.fleet.profiles import shipped
from shared.system.processes import Processes
from tests.fixtures.broker import wait_until
from tests.real_agents.clis import CLIS, Claude, Cli, Codex, Gemini
from tests.real_agents.installs import installed
from tests.real_agents.model import Model
from tests.real_agents.workbench import WITHIN_S, Workbench, started

pytestmark = [pytest.mark.real_agent, pytest.mark.timeout(600)]

MOVES_ON = {"claude": "/clear", "codex": "/new", "gemini": "/clear", "opencode": "/new"}
"""What has each of them begin another conversation."""


@dataclass(frozen=True)
class ByHand:
    """An agent in a pane, seen as Muster sees a pane that it knows nothing about."""

    bench: Workbench
    model: Model

    def look(self) -> ConversationIdentity | None:
        processes = Processes.look()
        found = agent_in(processes, shipped(), int(self.bench.ask("#{pane_pid}")))
        assert found is not None, "no agent was seen"
        name, process = found
        assert name == self.bench.cli.name
        return identify(name, shipped()[name], processes, process, self.bench.work)

    def holds(self, identity: ConversationIdentity, prompt: str) -> bool:
        """Whether the last thing that was asked there is this."""
        if identity.transcript is None:
            return False
        entries = READERS[self.bench.cli.name].entries(identity.transcript, identity.conversation)
        asked = [entry.text for entry in entries if entry.who is Speaker.USER]
        return bool(asked) and same_prompt(prompt, asked[-1])

    def type(self, text: str) -> None:
        self.bench.paste(text)
        self.bench.wait_for(text.split(maxsplit=1)[0])
        self.bench.wait_until_still()
        self.bench.keys("Enter")

    def prompt(self, text: str) -> None:
        self.type(text)
        self.bench.wait_for(lambda: text in self.model.prompts)

    def wait_until_it_is_in(self, prompt: str) -> ConversationIdentity:
        return self.wait_until_it_is(lambda found: self.holds(found, prompt), f"the conversation with {prompt!r}")

    def wait_until_it_is(self, right: Callable[[ConversationIdentity], bool], what: str) -> ConversationIdentity:
        def found() -> ConversationIdentity | None:
            identity = self.look()
            return identity if identity is not None and right(identity) else None

        return wait_until(found, what, WITHIN_S)

    def beside(self) -> "ByHand":
        """Another of its kind, in the same directory and the same HOME."""
        bench = self.bench
        given = [
            word for name, value in bench.cli.environment(bench.place).items() for word in ("-e", f"{name}={value}")
        ]
        window = ["new-session", "-d", "-P", "-F", "#{pane_id}", "-x", "120", "-y", "40", "-c", str(bench.work), *given]
        pane = bench.tmux(*window, "--", str(installed(bench.cli)), *bench.cli.arguments()).strip()
        other = replace(bench, pane=pane)
        other.wait_until_ready()
        return ByHand(other, self.model)


@pytest.mark.parametrize("cli", CLIS, ids=lambda cli: f"{cli.name}-{cli.version}")
def test_the_conversation_is_the_one_that_was_typed_into(cli: Cli, model: Model, tmp_path: Path) -> None:
    with started(cli, installed(cli), model, tmp_path) as bench:
        bench.wait_until_ready()
        agent = ByHand(bench, model)
        agent.look()
        agent.prompt("first question")
        first = agent.wait_until_it_is_in("first question")
        assert first.workspace == bench.work

        agent.type(MOVES_ON[cli.name])
        bench.wait_for(lambda: "first question" not in bench.screen())
        agent.prompt("second question")
        second = agent.wait_until_it_is_in("second question")
        assert second.conversation != first.conversation

        other = agent.beside()
        other.prompt("third question")
        # Gemini leaves nothing by which two that people started in one directory could be told apart.
        is_certain = not isinstance(cli, Gemini)
        if is_certain:
            other.wait_until_it_is_in("third question")
        for each, asked in ((agent, "second question"), (other, "third question")):
            found = each.look()
            assert each.holds(found, asked) if found is not None else not is_certain


@pytest.mark.parametrize("cli", [Claude(), Codex()], ids=lambda cli: f"{cli.name}-{cli.version}")
def test_it_is_known_before_the_first_prompt(cli: Cli, model: Model, tmp_path: Path) -> None:
    with started(cli, installed(cli), model, tmp_path) as bench:
        bench.wait_until_ready()
        agent = ByHand(bench, model)
        first = agent.wait_until_it_is(lambda found: found.transcript is None, "a conversation without a transcript")
        agent.prompt("first question")
        asked = agent.wait_until_it_is_in("first question")
        assert asked.conversation == first.conversation

        agent.type(MOVES_ON[cli.name])
        agent.wait_until_it_is(lambda found: found.conversation != first.conversation, "the next conversation")


def test_codex_with_its_server_is_known_while_it_is_alone(model: Model, tmp_path: Path) -> None:
    """As it is shipped: one process keeps the conversations of all, and nothing says whose they are."""
    cli = Codex(daemon=True)
    with started(cli, installed(cli), model, tmp_path) as bench:
        bench.wait_until_ready()
        agent = ByHand(bench, model)
        agent.prompt("first question")
        agent.wait_until_it_is_in("first question")
        other = agent.beside()
        other.prompt("second question")
        assert [agent.look(), other.look()] == [None, None]
