"""Gemini CLI (seen with 0.61.0): each message when it is complete, and again, under its id, when its tools have run.

So an answer with a text may be the last one, or one of its tools may run: the evidence is weak. Nothing is written
while a person is asked, or while a request is retried. After a cancelled request the whole history is written again.
"""

import re
from typing import Any

from shared.agents.transcript import Document, texts
from shared.agents.transcript_activity import PENDING, TURN_ENDED, TranscriptActivity, moment
from shared.contract.states import Activity

OWN = "<session_context>"
OPERATION_CANCELLED = "[Operation Cancelled]"
CANCELLED = re.compile(r"(?i)\brequest cancelled\b")
LIMIT = re.compile(r"(?i)\busage limit reached|\bquota\b|\brate limit|\b429\b|RESOURCE_EXHAUSTED|Access resets at")
NEEDS_PERSON = re.compile(
    r"(?i)\b40[13]\b|API[ _]key|UNAUTHENTICATED|PERMISSION_DENIED|\bauthenticat|\bcredit|\bbilling"
)


class GeminiActivity(TranscriptActivity):
    def __init__(self) -> None:
        super().__init__()
        self._again_at: Any = None
        """The common time stamp of messages that are written again."""

    def _take(self, document: Document) -> None:
        if "$rewindTo" in document and (when := moment(document.get("timestamp"))) is not None:
            self._end_turn(when, "the conversation was taken back to an earlier place", "rewound")
        when = moment(document.get("timestamp"))
        if "type" not in document or when is None or self._is_again(document):
            return
        match document["type"]:
            case "user":
                self._user(document.get("content"), when)
            case "gemini":
                self._gemini(document, when)
            case "info" | "warning" | "error" as kind:
                self._note(kind, " ".join(texts(document.get("content"), "text")), when)

    def _is_again(self, message: Document) -> bool:
        stamp = message.get("timestamp")
        if any(text.startswith(OWN) for text in texts(message.get("content"), "text")):
            self._again_at = stamp
        return self._again_at is not None and stamp == self._again_at

    def _user(self, content: Any, when: float) -> None:
        parts = [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []
        results = [part["functionResponse"] for part in parts if "functionResponse" in part]
        if results and all(_is_cancelled(result) for result in results):
            self._end_turn(when, "it was interrupted", "interrupted")
        elif results:
            self._say(Activity.WORKING, when, "a tool's result went to the model", "tool-result")
        elif said := texts(content, "text"):
            self._say(Activity.WORKING, when, f"took a prompt: {said[0]}", "prompt")

    def _gemini(self, message: Document, when: float) -> None:
        calls = [call for call in message.get("toolCalls") or [] if isinstance(call, dict)]
        if calls:
            self._called(calls, when)
        elif any(said := texts(message.get("content"), "text")):
            self._take_words("\n".join(said))
            self._say(Activity.WAITING, when, "its answer is complete", TURN_ENDED, weak=True)
        else:
            self._say(Activity.WORKING, when, "called a tool, which has no result yet", PENDING, weak=True)

    def _called(self, calls: list[Document], when: float) -> None:
        ended = max((moment(call.get("timestamp")) or when for call in calls), default=when)
        if all(call.get("status") == "cancelled" for call in calls):
            self._end_turn(ended, "a tool was refused", "rejected")
        else:
            self._say(Activity.WORKING, ended, "its tools have run", "tool-result")

    def _note(self, kind: str, said: str, when: float) -> None:
        if CANCELLED.search(said):
            self._end_turn(when, "it was interrupted", "interrupted")
        elif kind == "error":
            self._fail(outcome(said), when, said)


def _is_cancelled(result: Document) -> bool:
    return str(result["response"].get("error", "")).startswith(OPERATION_CANCELLED)


def outcome(said: str) -> Activity:
    """The activity after an error that ended the turn. After an unknown error the next prompt may work."""
    if LIMIT.search(said):
        return Activity.LIMITED
    return Activity.FAILED if NEEDS_PERSON.search(said) else Activity.WAITING


READING = GeminiActivity
