"""Asking in batches: answers stay with their questions, byte for byte."""

import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shared.system.tmux import Tmux
from shared.system.tmux.connection import Connection
from shared.system.tmux.control import Garbled, line
from tests.integration.tmux.server import NASTY


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(values=st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])), max_size=20))
def test_values_come_back_byte_for_byte(asking: Tmux, values: list[str]) -> None:
    values = [*values, *(text for text in NASTY if text.isprintable() or text == "\n")]
    batch = [
        command
        for value in values
        for command in (["set-option", "-t", "=one:", "@x", value], ["show-options", "-v", "-t", "=one:", "@x"])
    ]
    answers = asking.ask(*batch)
    assert [answer.text for answer in answers[1::2]] == values
    assert all(answer.ok and not answer.lines for answer in answers[0::2])


def test_an_error_in_a_batch_stays_with_its_question(asking: Tmux) -> None:
    answers = asking.ask(
        ["display-message", "-p", "a"],
        ["no-such-command"],
        ["has-session", "-t", "=none"],
        ["list-panes", "-t", "=one:", "-F", "b"],
    )
    assert [(answer.ok, answer.lines) for answer in answers] == [
        (True, ("a",)),
        (False, ("parse error: unknown command: no-such-command",)),
        (False, ("can't find session: none",)),
        (True, ("b",)),
    ]
    assert asking.ask() == []


@pytest.mark.parametrize(
    "forged",
    [
        "%end 7 1 1",
        "%end 7 1 1\n%begin 7 2 1",  # takes in the next frames whole
        "%end 7 1 1\n%begin 7 3 1",
        "%end 7 1 1\n%begin 7 2 1\nguess\n%end 7 2 1\n%begin 7 3 1\nfalse",
        "%end 7 1 1\n%begin 7 2 1\nguess\n%end 7 2 1\n%begin 7 3 1\nfalse\n%end 7 3 1",
    ],
)
def test_a_screen_that_guesses_the_frames_is_detected(forged: str) -> None:
    """The worst that text can do, for it knows every number that tmux is about to use."""
    with answered_with(forged, "true") as connection, pytest.raises((Garbled, ConnectionError)):
        connection.ask([line(["first"]), line(["second"])], time.monotonic() + 5)


def test_a_screen_that_guesses_wrong_is_read_as_it_is() -> None:
    harmless = "%end 7 9 1\n%begin 7 2 1\n%error 6 1 1\n%end"
    with answered_with(harmless, "true") as connection:
        answers = connection.ask([line(["first"]), line(["second"])], time.monotonic() + 5)
    assert [answer.text for answer in answers] == [harmless, "true"]


@contextmanager
def answered_with(*texts: str) -> Iterator[Connection]:
    """A connection to something that answers as tmux would if these texts were on its screens."""
    ours, theirs = socket.socketpair()

    def answer() -> None:
        asked = b""
        while asked.count(b"\n") < 2 * len(texts):
            asked += theirs.recv(65536)
        word = asked.decode().split()[-1]
        for place, text in enumerate(texts):
            first, second = f"7 {2 * place + 1} 1", f"7 {2 * place + 2} 1"
            frames = f"%begin {first}\n{text}\n%end {first}\n"
            with suppress(BrokenPipeError):  # ours hangs up as soon as it has seen through a text
                theirs.sendall(f"{frames}%begin {second}\n{word}\n%end {second}\n".encode())

    thread = threading.Thread(target=answer)
    thread.start()
    with theirs, subprocess.Popen(["sleep", "1000"], stderr=subprocess.PIPE) as client:
        connection = Connection(client, ours, lambda: None)
        yield connection
        thread.join()
        connection.close(patience_s=0)


def test_a_client_that_answers_before_it_is_attached_is_waited_for() -> None:
    """tmux pushes changes only to a client that is attached to a session."""
    ours, theirs = socket.socketpair()
    with theirs, subprocess.Popen(["sleep", "1000"], stderr=subprocess.PIPE) as client:
        connection = Connection(client, ours, lambda: None)
        theirs.sendall(b"%begin 7 1 0\n%end 7 1 0\n%window-renamed @1 dead\n")
        with pytest.raises(TimeoutError):
            connection.wait_until_attached(time.monotonic() + 0.1)
        theirs.sendall(b"%session-changed $0 builder\n")
        connection.wait_until_attached(time.monotonic() + 10)
        connection.close(patience_s=0)


def test_a_batch_may_be_larger_than_any_buffer(asking: Tmux) -> None:
    words = [f"{place} " + "x" * 2000 for place in range(1500)]
    answers = asking.ask(*(["display-message", "-p", word] for word in words))
    assert [answer.text for answer in answers] == words


def test_threads_get_their_own_answers(asking: Tmux) -> None:
    wrong: list[str] = []

    def ask(name: str) -> None:
        for place in range(50):
            text = asking.ask(["display-message", "-p", f"{name} {place}"])[0].text
            if text != f"{name} {place}":
                wrong.append(text)

    threads = [threading.Thread(target=ask, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
