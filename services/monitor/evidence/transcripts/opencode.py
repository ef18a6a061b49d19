"""opencode (seen with 1.18.33): the last messages of a conversation in its database, which all conversations share.

A message is there when it begins, and is complete when it has a time for that. A tool counts as running while a person
is asked about it; once it does run, most say more of it (`metadata`). While it waits for a limit to lift and tries
again, nothing tells. A subagent's conversation is another one.
"""

from collections.abc import Sequence
from typing import Any

from services.monitor.evidence.evidence import Evidence
from services.monitor.evidence.transcripts.reading import Document, Reading, by_status, call
from shared.states import Activity
from shared.transcripts.entry import texts

REJECTED = "The user rejected permission to use this specific tool call."
DISMISSED = "The user dismissed this question"
"""What a tool ends with when the turn ends with it. A rejection that says more lets it go on."""
ASKS = {"question"}
SUBAGENT = "task"
"""It runs while its subagent asks."""
HELD = {"ProviderAuthError", "ProviderModelNotFoundError"}
GOES_ON = {"tool-calls", "unknown"}


class OpencodeReading(Reading):
    """Takes `{"message": …, "parts": […]}`, a later state of a message under the same id."""

    def _take(self, document: Document) -> None:
        message, parts = document["message"], [part for part in document["parts"] if isinstance(part, dict)]
        when = _last_change(message, parts)
        match message.get("role"):
            case "user":
                said = " ".join(text for part in parts for text in texts([part], "text") if not part.get("synthetic"))
                self._work(when, f"took a prompt: {said}" if said else "took a prompt", "prompt")
            case "assistant":
                self._assistant(message, parts, when)

    def _assistant(self, message: Document, parts: Sequence[Document], when: float) -> None:
        tools = [part for part in parts if part.get("type") == "tool"]
        under_way = [part for part in tools if part["state"].get("status") in ("pending", "running")]
        self._pending = {
            str(part.get("id")): (call(part["tool"], part["state"].get("input")), part["tool"] in ASKS)
            for part in under_way
            if part["tool"] == SUBAGENT or not part["state"].get("metadata")
        }
        error = message.get("error")
        ended = message["time"].get("completed") is not None
        if isinstance(error, dict):
            self._error(error, when)
        elif not ended and under_way:
            self._work(when, f"runs {call(under_way[-1]['tool'], under_way[-1]['state'].get('input'))}", "tool-running")
        elif not ended:
            self._work(when, "the model answers", "answer")
        elif any(_is_refused(part["state"]) for part in tools):
            self._end_turn(when, "a tool was refused", "rejected")
        elif message.get("finish") in GOES_ON:
            self._work(when, "its tools have run", "tool-result")
        else:
            self._hear("\n".join(text for part in parts for text in texts([part], "text")))
            self._end_turn(when, "its answer is complete" if message.get("finish") else "its turn ended")

    def _error(self, error: Document, when: float) -> None:
        about = error.get("data")
        data = about if isinstance(about, dict) else {}
        said = str(data.get("message") or error.get("name"))
        if error.get("name") == "MessageAbortedError":
            self._end_turn(when, "it was interrupted", "interrupted")
        elif error.get("name") in HELD:
            self._fail(Activity.FAILED, when, said, error.get("name"))
        else:
            self._fail(by_status(data.get("statusCode")) or _by_words(said), when, said, data.get("statusCode"))


def claim_of(documents: Sequence[Document]) -> Evidence | None:
    """What the last messages of a conversation say, whichever of them changed last. Pure.

    A prompt that waits for its turn is older than the answer which is being written, and newer than the message of it.
    """
    reading = OpencodeReading()
    for document in sorted(documents, key=_changed):
        reading.take(document)
    return reading.claim()


def _changed(document: Document) -> float:
    try:
        return _last_change(document["message"], document["parts"])
    except (TypeError, AttributeError, KeyError, ValueError):
        return 0.0


def _last_change(message: Document, parts: Sequence[Document]) -> float:
    """In seconds; `changed` is what the table says of the row."""
    times = [message["time"].get("completed") or message["time"]["created"]]
    times += [part["changed"] for part in parts if isinstance(part.get("changed"), int)]
    for part in parts:
        time = part["state"].get("time") if isinstance(part.get("state"), dict) else part.get("time")
        times += [found for found in (time or {}).values() if isinstance(found, int)]
    return float(max(times)) / 1000


def _is_refused(state: Document) -> bool:
    said = state.get("error")
    return state.get("status") == "error" and isinstance(said, str) and (said == REJECTED or said.startswith(DISMISSED))


def _by_words(said: Any) -> Activity:
    words = str(said).lower()
    return Activity.FAILED if "credit balance" in words or "insufficient" in words else Activity.WAITING
