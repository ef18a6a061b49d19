"""The server: one on loopback per test, on a port of its own."""

import json
import re
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

from tests.real_agents.model import anthropic, gemini, openai
from tests.real_agents.model.script import Answer, Refuse, Say, Why, answer, side_answer
from tests.real_agents.model.wire import Asked, Json, Refusal

GEMINI_CALL = re.compile(r"/models/(?P<model>[^:/]+):(?P<call>\w+)")


@dataclass(frozen=True)
class Prompt:
    """One text that a person sent to the model, exactly as it came, with the wire it came by and when."""

    text: str
    api: str
    at: float


class Gone(Exception):
    """The test is over, and so is the answer that was under way."""


class Model:
    """What the agents talk to. `url` is where; `prompts` is what came, in order, each submission once. What copies of
    conversations are asked is no prompt, and in `asides`.
    """

    def __init__(self) -> None:
        self.received: list[Prompt] = []
        self.requests: list[tuple[str, Json]] = []
        self.unknown: list[str] = []
        self.asides: list[Asked] = []
        self.spent: tuple[str, float] | None = None
        """The budget that is spent, and until when: nothing but that is answered before, whatever is asked."""
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._last: list[str] = []
        self._refused = False
        self._refusals: Counter[str] = Counter()
        handler = type("Handler", (_Handler,), {"owner": self})
        self._server = _Server(("127.0.0.1", 0), handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def prompts(self) -> list[str]:
        with self._lock:
            return [prompt.text for prompt in self.received]

    @contextmanager
    def serving(self) -> Iterator["Model"]:
        thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield self
        finally:
            self._over.set()
            self._server.shutdown()
            self._server.server_close()
            thread.join()

    def pause(self, seconds: float) -> None:
        if self._over.wait(seconds):
            raise Gone

    def take(self, api: str, path: str, body: Json, asked: Asked) -> Answer:
        """Remember a request and say what it gets.

        A request is told again when it was refused, and when a person adds to a turn that is under way: what was
        already there is no second prompt.
        """
        with self._lock:
            self.requests.append((path, body))
            if (aside := side_answer(asked.turn, asked.step)) is not None:
                self.asides.append(asked)
                return aside
            if not asked.main:
                return Say(("A title",))
            said = [
                text.rstrip("\n") for text in asked.said
            ]  # a program may end an old one with a newline when it repeats it
            again = said == self._last and self._refused
            grown = len(said) > len(self._last) and said[: len(self._last)] == self._last
            new = () if again else asked.said[len(self._last) :] if grown else asked.said
            self.received += [Prompt(text, api, time.time()) for text in new]
            given = self._spent() or self._worn(asked.turn, answer(asked.turn, asked.step))
            self._last, self._refused = said, isinstance(given, Refuse)
            return given

    def _spent(self) -> Answer | None:
        if self.spent is None or time.time() >= self.spent[1]:
            return None
        return Refuse(Why.LIMIT, self.spent[0], self.spent[1] - time.time())

    def _worn(self, prompt: str, given: Answer) -> Answer:
        """A refusal that lasts for some times is an answer after that."""
        if not isinstance(given, Refuse) or given.times is None:
            return given
        self._refusals[prompt] += 1
        if self._refusals[prompt] <= given.times:
            return given
        del self._refusals[prompt]
        return Say()


class _Server(ThreadingHTTPServer):
    daemon_threads = False
    block_on_close = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """An agent that hangs up in the middle of an answer is no event; a mistake of ours is shown."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    owner: ClassVar[Model]

    def do_POST(self) -> None:
        body: Json = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"{}")
        path = self.path.partition("?")[0]
        try:
            self._answer(path, body)
        except (Gone, OSError):
            self.close_connection = True

    def do_GET(self) -> None:
        self.owner.unknown.append(f"GET {self.path}")
        self._json(404, {"error": {"message": "not here"}})

    def do_HEAD(self) -> None:
        self.do_GET()

    def _answer(self, path: str, body: Json) -> None:
        if path.endswith("/messages"):
            asked = anthropic.read(body)
            given = self.owner.take("anthropic", path, body, asked)
            if isinstance(given, Refuse):
                self._refuse(anthropic.refusal(given))
            elif body.get("stream"):
                self._stream(anthropic.stream(asked, given, self.owner.pause), anthropic.headers(given))
            else:
                self._json(200, anthropic.whole(asked, '{"title": "A title"}'))
        elif path.endswith("/messages/count_tokens"):
            self._json(200, {"input_tokens": 10})
        elif path.endswith("/responses"):
            asked = openai.read(body)
            given = self.owner.take("openai", path, body, asked)
            if isinstance(given, Refuse):
                self._refuse(openai.refusal(given))
            else:
                self._stream(openai.stream(asked, given, self.owner.pause))
        elif called := GEMINI_CALL.search(path):
            self._gemini(path, called["model"], called["call"], body)
        else:
            self.owner.unknown.append(f"POST {self.path}")
            self._json(404, {"error": {"message": "not here"}})

    def _gemini(self, path: str, model: str, call: str, body: Json) -> None:
        if call == "countTokens":
            self._json(200, {"totalTokens": 10})
            return
        asked = gemini.read(body, model)
        given = self.owner.take("gemini", path, body, asked)
        if isinstance(given, Refuse):
            self._refuse(gemini.refusal(given))
        elif call == "streamGenerateContent":
            self._stream(gemini.stream(asked, given, self.owner.pause))
        else:
            self._json(200, gemini.whole(asked, '{"reasoning": "scripted", "model_choice": "flash"}'))

    def _stream(self, events: Iterator[bytes], headers: dict[str, str] | None = None) -> None:
        self.send_response(200)
        for name, value in {"content-type": "text/event-stream", **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        for event in events:
            self.wfile.write(event)
            self.wfile.flush()

    def _refuse(self, refusal: Refusal) -> None:
        self._json(refusal.status, refusal.body, refusal.headers)

    def _json(self, status: int, body: Json, headers: dict[str, str] | None = None) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"content-type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the base class's
        """A test's output is for the test."""
