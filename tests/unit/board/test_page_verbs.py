"""What a page may ask for, and what it may not."""

from typing import Any

import pytest

from services.board.page_verbs import ARGUMENTS, BadPageCommand, page_command
from shared.contract.commands import VERBS, Approve, Command, Comment, Send
from shared.contract.topics import EVERY_SERVICE


@pytest.mark.parametrize(
    ("verb", "arguments", "said"),
    [
        ("rebuild", {}, "pages send no such command"),
        ("delete", {"agent": "builder"}, "pages send no such command"),
        ("", {}, "pages send no such command"),
        (7, {}, "pages send no such command"),
        ("send", {"agent": "builder", "text": "go", "as_command": "yes"}, "send takes nothing but agent, text, when"),
        ("send", {"agent": "builder", "text": "go", "keys": ["C-c"]}, "send takes nothing but"),
        ("send", {"agent": "builder", "text": " "}, "send can't be sent"),
        ("send", {"agent": "builder", "text": "\ud800"}, "text is no text that can be sent"),
        ("send", {"agent": "builder"}, "send needs text"),
        ("send", {"agent": "builder", "text": "go", "when": "never"}, "send can't be sent"),
        ("stop", {"agent": "builder", "by": "root"}, "stop takes nothing but agent"),
        ("stop", {"agent": "builder", "id": "x"}, "stop takes nothing but agent"),
        ("stop", {}, "stop needs agent"),
        ("stop", {"agent": "../x"}, "`agent` is no agent's name"),
        ("stop", {"agent": 7}, "agent is no text"),
        ("approve", {"agent": "builder"}, "approve needs fingerprint"),
        ("deny", {"agent": "builder", "fingerprint": ""}, "deny needs fingerprint"),
        ("answer", {"agent": "builder", "key": "1"}, "answer needs fingerprint"),
        ("answer", {"agent": "builder", "fingerprint": "f"}, "answer needs key"),
        ("answer", {"agent": "builder", "fingerprint": "f", "key": ["1", "2"]}, "key is no text"),
        ("answer", {"agent": "builder", "fingerprint": "f", "key": "1", "text": "x"}, "answer takes nothing but"),
        ("comment", {"agent": "builder", "text": ""}, "comment needs text"),
    ],
)
def test_nothing_else_can_be_sent(verb: object, arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(BadPageCommand) as refused:
        page_command(verb, arguments)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("verb", "arguments", "command"),
    [
        ("approve", {"fingerprint": "f1"}, Approve(agent="builder", fingerprint="f1")),
        ("answer", {"fingerprint": "f1", "key": "2"}, Send(agent="builder", keys=["2"], fingerprint="f1")),
        ("send", {"text": "go", "when": "idle"}, Send(agent="builder", text="go", when="idle")),
        ("comment", {"text": "stop"}, Comment(agent="builder", text="stop")),
    ],
)
def test_what_a_page_asks_for_becomes_a_command(verb: str, arguments: dict[str, Any], command: Command) -> None:
    assert page_command(verb, {"agent": "builder", **arguments}) == command


@pytest.mark.parametrize("verb", ARGUMENTS)
def test_the_board_may_send_what_the_page_may_ask_for(verb: str) -> None:
    command = VERBS["send" if verb == "answer" else verb]
    assert command.owner == "board" or "board" in command.askers
    assert command.owner != EVERY_SERVICE
    needed, optional = ARGUMENTS[verb]
    assert {*needed, *optional} - {"key"} <= command.model_fields.keys()
