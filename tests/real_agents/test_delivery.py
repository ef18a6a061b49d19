"""Texts reach real agents whole and once, in a whole fleet: what the model was asked is compared with what was sent."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.real_agents.clis import CLIS, Claude, Cli, Gemini
from tests.real_agents.manned import Manned, manned
from tests.real_agents.model import Model

pytestmark = [pytest.mark.real_agent, pytest.mark.timeout(600)]

NASTY = """--flag 'single' "double" `tick` $(false) ${HOME} $HOME \\n \\x1b[31m \\\\ #{pane_id} #(true) %1 ; exit
é ü 漢字 かな 🙂 👩\u200d👩\u200d👧 ❤\ufe0f עברית ﷺ [Pasted text #1] {prompt} <b>&amp;</b>"""
LONG = "\n".join([NASTY, "", *(f"{n}: {NASTY}   " for n in range(45)), "-- the end"])
BEYOND_TERMINALS = "a \x1b[31mred\x1b[0m word, \x07 bell, \r return, \x1b[201~ end of paste, \x9b C1\n\tand a tab"
UNKNOWN = {"opencode": "ses_0000000000000000000000000a"}
AGENT_PROGRAMS = pytest.mark.parametrize("cli", CLIS, ids=lambda cli: f"{cli.name}-{cli.version}")
SHORT = "short, and --so 'on'\n$(false) \\n 漢字 é 🙂"


@AGENT_PROGRAMS
def test_texts_arrive_whole_and_once(cli: Cli, model: Model, tmp_path: Path) -> None:
    """One session for all of it, since a start takes longest: texts, dialogs, interrupts, and texts again."""
    first = f"-- the first prompt\n{NASTY}"
    with manned(cli, model, tmp_path, prompt=first) as agent:
        agent.wait_for_prompt(first)
        agent.wait_until_idle()
        _sends(agent, LONG)
        _sends(agent, SHORT)
        note = _sends_by_file(agent, BEYOND_TERMINALS)
        agent.leave_in_box("left over by somebody\nin two lines")
        _sends(agent, "after what was left over")
        assert model.prompts == [first, LONG, SHORT, note, "after what was left over"]

        _waits_for_a_yes(agent)
        _waits_for_a_no(agent)
        _interrupts(agent)
        assert model.prompts[5:] == [
            "DO-BASH touch made.txt",
            "after the yes",
            "DO-BASH touch never.txt",
            "after the no",
            "DO-THINK 60 and be interrupted",
            "after the interrupt",
        ]
        assert [sent["what"] for sent in agent.sent() if sent["what"] != "prompt"] == [
            *["text"] * 4,
            *("text", "approve", "text"),
            *("text", "deny", "text"),
            *("text", "interrupt", "text"),
        ]
        assert all(sent["confirmed"] != "none" for sent in agent.sent())


def _well(reply: dict[str, Any]) -> dict[str, Any]:
    assert reply["ok"], reply
    return reply


def _sends(agent: Manned, text: str) -> None:
    reply = _well(agent.told("send", text=text))
    assert reply["result"]["confirmed"] in ("transcript", "screen")
    agent.wait_for_prompt(text)
    agent.wait_until_idle()


def _sends_by_file(agent: Manned, text: str) -> str:
    before = len(agent.model.prompts)
    _well(agent.told("send", text=text))
    agent.until(lambda: len(agent.model.prompts) > before, "the note about the file")
    (file,) = (agent.place.work / ".muster-messages").glob("*.txt")
    assert file.read_bytes() == text.encode()
    note = agent.model.prompts[-1]
    assert str(file.relative_to(agent.place.work)) in note
    agent.wait_until_idle()
    return note


def _waits_for_a_yes(agent: Manned) -> None:
    _asks_for_permission(agent, "touch made.txt")
    waiting = _waits(agent, "after the yes")
    _well(agent.told("approve"))
    _well(agent.answer(waiting))
    agent.wait_for_prompt("after the yes")
    agent.until((agent.place.work / "made.txt").exists, "what was allowed")
    agent.wait_until_idle()


def _waits_for_a_no(agent: Manned) -> None:
    _asks_for_permission(agent, "touch never.txt")
    waiting = _waits(agent, "after the no")
    _well(agent.told("deny"))
    _well(agent.answer(waiting))
    agent.wait_for_prompt("after the no")
    agent.wait_until_idle()
    assert not (agent.place.work / "never.txt").exists()
    assert "no dialog" in agent.told("approve")["said"]


def _asks_for_permission(agent: Manned, command: str) -> None:
    _well(agent.told("send", text=f"DO-BASH {command}"))
    agent.wait_for_dialog("permission")


def _waits(agent: Manned, text: str) -> str:
    """Send a text, and see that it waits for the dialog."""
    ident = agent.ask("send", text=text)
    reply = agent.until(lambda: agent.replies(ident), "a first word")[0]
    assert (reply["code"], reply["final"]) == ("waiting", False)
    assert "a permission dialog is on the screen" in reply["said"]
    assert text not in agent.model.prompts
    assert agent.reading().dialog is not None
    return ident


def _interrupts(agent: Manned) -> None:
    """Claude Code puts the prompt back into the box then: the next text must not join it."""
    _well(agent.told("send", text="DO-THINK 60 and be interrupted"))
    agent.wait_for_prompt("DO-THINK 60 and be interrupted")
    agent.wait_for_screen(lambda reading: reading.working, "the agent at work")
    _well(agent.told("interrupt"))
    _sends(agent, "after the interrupt")


@pytest.mark.parametrize("cli", [Claude(), Gemini()], ids=lambda cli: f"{cli.name}-{cli.version}")
def test_a_question_about_trust_holds_everything(cli: Cli, model: Model, tmp_path: Path) -> None:
    with manned(cli, model, tmp_path, trusted=False, prompt="the first prompt") as agent:
        agent.wait_for_dialog("trust")
        ident = agent.ask("send", text="a text for later")
        reply = agent.until(lambda: agent.replies(ident), "a first word")[0]
        assert (reply["code"], reply["final"]) == ("waiting", False)
        assert "is to be trusted" in reply["said"]
        refusal = agent.told("approve")
        assert not refusal["ok"]
        assert "only a person at the terminal" in refusal["said"]
        assert model.prompts == []
        assert agent.reading().dialog is not None

        agent.until(lambda: _is_closed_by(agent, "Enter"), "the question is answered")
        _well(agent.answer(ident))
        agent.wait_for_prompt("a text for later")
        agent.until(lambda: len(model.prompts) == 2, "both texts")
        assert sorted(model.prompts) == ["a text for later", "the first prompt"]


def _is_closed_by(agent: Manned, key: str) -> bool:
    """Whether the dialog is gone. A key is lost that comes before the program listens: a person presses it again."""
    if agent.reading().dialog is None:
        return True
    agent.keys(key)
    time.sleep(1.0)  # a program may need that long to show what it did
    return False


@AGENT_PROGRAMS
def test_a_conversation_is_taken_up_or_a_new_one_begun(cli: Cli, model: Model, tmp_path: Path) -> None:
    with manned(cli, model, tmp_path, prompt="remember the number 4711", resume_prompt="go on, --please") as agent:
        agent.wait_for_prompt("remember the number 4711")
        agent.wait_for_words("All done.")  # by then it has written down what was said
        agent.wait_until_idle()
        reply = _well(agent.told("restart"))
        assert "takes up its conversation" in reply["said"]
        agent.wait_for_prompt("go on, --please")
        assert _were_asked_together(model, "4711", "go on, --please")
        agent.wait_until_idle()
        _sends(agent, "now go on with it")
        assert _were_asked_together(model, "4711", "now go on with it")

        _well(agent.told("stop"))
        unknown = UNKNOWN.get(cli.name, "00000000-0000-4000-8000-000000000000")
        reply = _well(agent.told("resume", conversation=unknown))
        assert reply["result"]["fresh"] is True
        assert "refused to take up its conversation and began a new one" in reply["said"]
        agent.until(lambda: len(model.prompts) == 4, "the first prompt again")
        first = "remember the number 4711"
        assert model.prompts == [first, "go on, --please", "now go on with it", first]


def _were_asked_together(model: Model, *words: str) -> bool:
    """Whether there was a request with all of them: the conversation went on."""
    bodies = [json.dumps(body, ensure_ascii=False) for _path, body in model.requests]
    return any(all(word in body for word in words) for body in bodies)
